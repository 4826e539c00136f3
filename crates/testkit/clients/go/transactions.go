package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Copies a topic in transactions, every fourth of which is given up; restarts on the way. Each record arrives once.
func copyExactlyOnce() {
	const partitions, count = 3, 900
	source, target, id := topic("source", partitions), topic("target", partitions), unique("copier")
	producer := client()
	produce(producer, source, 0, count, partitions)
	producer.Close()
	session, err := kgo.NewGroupTransactSession(append(base(),
		kgo.TransactionalID(unique("tx")), kgo.ConsumerGroup(id), kgo.ConsumeTopics(source),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(300*time.Millisecond),
	)...)
	fine(err, "a session")
	restarts := map[int]string{3: "graceful", 8: "kill"}
	copied := 0
	for turn := 1; copied < count; turn++ {
		read := poll(session, 50)
		fine(session.Begin(), "beginning")
		for _, record := range read {
			session.Produce(context.Background(), &kgo.Record{Topic: target, Partition: record.Partition, Value: record.Value}, nil)
		}
		if how := restarts[turn]; how != "" {
			restart(how)
			delete(restarts, turn)
		}
		if turn%4 == 2 {
			fine(session.Client().Flush(deadline()), "flushing what will be aborted")
		}
		committed, err := session.End(deadline(), kgo.TransactionEndTry(turn%4 != 2))
		// What a restart cut off is aborted and comes again; the session says so.
		fine(err, "ending")
		if committed {
			copied += len(read)
		}
	}
	session.Close()
	ensureEq(len(restarts), 0, "the restarts that did not come")
	read := readAll(target, partitions, kgo.ReadCommitted())
	for p := range partitions {
		var wanted []string
		for i := p; i < count; i += partitions {
			wanted = append(wanted, fmt.Sprint(i))
		}
		ensureEq(read[int32(p)], wanted, fmt.Sprintf("%s-%d as read_committed sees it", target, p))
	}
	everything := 0
	for _, values := range readAll(target, partitions, kgo.ReadUncommitted()) {
		everything += len(values)
	}
	ensure(everything > count, "read_uncommitted sees those of aborted transactions as well")
	cl := admin()
	defer cl.Close()
	ensureEq(offsets(cl, id, source), all(partitions, count/partitions), "the offsets")
	restart("kill")
	ensureEq(readAll(target, partitions, kgo.ReadCommitted()), read, "the records after a kill")
}

func poll(session *kgo.GroupTransactSession, most int) []*kgo.Record {
	var read []*kgo.Record
	until("records to copy", func() bool {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		read = session.PollRecords(ctx, most).Records()
		return len(read) > 0
	})
	return read
}

// The second producer of an id fences the first, and what the first had open is aborted.
func fencing() {
	name, id := topic("fenced", 1), unique("tx")
	first, second := client(kgo.TransactionalID(id)), client(kgo.TransactionalID(id))
	defer first.Close()
	defer second.Close()
	fine(first.BeginTransaction(), "the first begins")
	fine(first.ProduceSync(deadline(), &kgo.Record{Topic: name, Value: []byte("lost")}).FirstErr(), "the first writes")
	cl := admin()
	defer cl.Close()
	described, err := cl.DescribeTransactions(deadline(), id)
	fine(err, "describing")
	ensureEq(described[id].State, "Ongoing", "the state of the transaction")
	fine(second.BeginTransaction(), "the second begins")
	fine(second.ProduceSync(deadline(), &kgo.Record{Topic: name, Value: []byte("kept")}).FirstErr(), "the second writes")
	fine(second.EndTransaction(deadline(), kgo.TryCommit), "the second commits")
	err = first.EndTransaction(deadline(), kgo.TryCommit)
	isFenced := slices.ContainsFunc([]*kerr.Error{kerr.InvalidProducerEpoch, kerr.ProducerFenced},
		func(code *kerr.Error) bool { return errors.Is(err, code) })
	ensure(isFenced, "the first is fenced: %v", err)
	ensureEq(readAll(name, 1, kgo.ReadCommitted()), map[int32][]string{0: {"kept"}}, "what was committed")
	ensureEq(readAll(name, 1, kgo.ReadUncommitted()), map[int32][]string{0: {"lost", "kept"}}, "what was written")
}
