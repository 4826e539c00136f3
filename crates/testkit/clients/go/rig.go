// What the scenarios of franz-go stand on: the broker's address and levers, and ways to wait. Nothing waits for a fixed time: a
// condition is asked until it holds, or the deadline says what did not come.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// For what never comes, not for what is slow.
const long = 60 * time.Second

func fail(format string, words ...any) {
	fmt.Printf(format+"\n", words...)
	os.Exit(1)
}

func ensure(condition bool, format string, words ...any) {
	if !condition {
		fail(format, words...)
	}
}

func ensureEq(got, expected any, what string) {
	ensure(reflect.DeepEqual(got, expected), "%s: got %v, expected %v", what, got, expected)
}

func fine(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func refused(err error, expected *kerr.Error, what string) {
	ensure(errors.Is(err, expected), "%s: got %v, expected %v", what, err, expected)
}

func until(what string, condition func() bool) {
	end := time.Now().Add(long)
	for !condition() {
		ensure(time.Now().Before(end), "waited %v in vain: %s", long, what)
		time.Sleep(10 * time.Millisecond)
	}
}

// The broker ends (graceful or kill), starts again on its data directory, and listens when this returns.
func restart(how string) {
	connection, err := net.DialTimeout("tcp", os.Getenv("TONTINE_CONTROL"), long)
	fine(err, "the control connection")
	defer connection.Close()
	fmt.Fprintln(connection, how)
	answer, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		fine(err, "the answer to "+how)
	}
	ensureEq(strings.TrimSpace(answer), "ok", "the restart ("+how+")")
}

func unique(stem string) string {
	return fmt.Sprintf("%s-%08x", stem, rand.Uint32())
}

func deadline() context.Context {
	ctx, stop := context.WithTimeout(context.Background(), long)
	context.AfterFunc(ctx, stop)
	return ctx
}

// A client that finds a restarted broker soon.
func client(options ...kgo.Opt) *kgo.Client {
	opened, err := kgo.NewClient(append(base(), options...)...)
	fine(err, "a client")
	return opened
}

func base() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(os.Getenv("TONTINE_BOOTSTRAP")),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
}

func admin() *kadm.Client {
	return kadm.NewClient(client())
}

func topic(stem string, partitions int32) string {
	name := unique(stem)
	cl := admin()
	defer cl.Close()
	_, err := cl.CreateTopic(deadline(), partitions, 1, nil, name)
	fine(err, "creating "+name)
	return name
}

// Writes each number to the partition that it says, and waits until all are acknowledged.
func produce(cl *kgo.Client, topic string, from, to, partitions int) {
	records := make([]*kgo.Record, 0, to-from)
	for i := from; i < to; i++ {
		records = append(records, &kgo.Record{
			Topic: topic, Partition: int32(i % partitions), Value: []byte(fmt.Sprint(i)),
		})
	}
	fine(cl.ProduceSync(deadline(), records...).FirstErr(), "producing")
}

// Every value of a topic, by partition, up to its end as this isolation level sees it.
func readAll(topic string, partitions int, level kgo.IsolationLevel) map[int32][]string {
	ends := stableEnds(topic, level)
	offsets := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		offsets[p] = kgo.NewOffset().At(0)
	}
	cl := client(kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
	defer cl.Close()
	values, at := map[int32][]string{}, map[int32]int64{}
	until("the end of "+topic, func() bool {
		ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer stop()
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			at[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				values[r.Partition] = append(values[r.Partition], string(r.Value))
			}
		})
		for p, end := range ends {
			// What was aborted at the very end is skipped without a record: the marker stays.
			if at[p] < end {
				return false
			}
		}
		return true
	})
	return values
}

func stableEnds(topic string, level kgo.IsolationLevel) map[int32]int64 {
	cl := admin()
	defer cl.Close()
	list := cl.ListEndOffsets
	if level == kgo.ReadCommitted() {
		list = cl.ListCommittedOffsets
	}
	listed, err := list(deadline(), topic)
	fine(err, "the ends of "+topic)
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends
}
