package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A member of a group: reads, keeps what it saw, commits after each read.
type reader struct {
	cl      *kgo.Client
	mu      sync.Mutex
	seen    []string
	commits map[int32]int64
	owned   map[int32]bool
	stop    context.CancelFunc
	done    chan struct{}
}

func newReader(group, topic string, options ...kgo.Opt) *reader {
	r := &reader{commits: map[int32]int64{}, owned: map[int32]bool{}, done: make(chan struct{})}
	take := func(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, p := range changed[topic] {
				r.owned[p] = has
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.cl = client(append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.SessionTimeout(10 * time.Second), kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.OnPartitionsAssigned(take(true)), kgo.OnPartitionsRevoked(take(false)), kgo.OnPartitionsLost(take(false)),
	}, options...)...)
	go r.run(ctx)
	return r
}

func (r *reader) run(ctx context.Context) {
	defer close(r.done)
	for ctx.Err() == nil {
		turn, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		read := r.cl.PollFetches(turn).Records()
		stop()
		if len(read) > 0 {
			r.take(read)
		}
		r.cl.AllowRebalance()
	}
}

func (r *reader) take(read []*kgo.Record) {
	r.mu.Lock()
	for _, record := range read {
		r.seen = append(r.seen, string(record.Value))
	}
	r.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	// Refused or cut off: the records come again, to this member or to another.
	if r.cl.CommitRecords(ctx, read...) == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, record := range read {
			r.commits[record.Partition] = max(r.commits[record.Partition], record.Offset+1)
		}
	}
}

func (r *reader) close() {
	r.stop()
	<-r.done
	r.cl.CloseAllowingRebalance()
}

func (r *reader) values() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func (r *reader) partitions() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []int
	for p, has := range r.owned {
		if has {
			all = append(all, int(p))
		}
	}
	return all
}

func (r *reader) committed() map[int32]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.commits)
}

// Each of the readers has some, together they have all, none twice.
func shared(partitions int, readers ...*reader) bool {
	var all []int
	for _, r := range readers {
		mine := r.partitions()
		if len(mine) == 0 {
			return false
		}
		all = append(all, mine...)
	}
	slices.Sort(all)
	return len(all) == partitions && len(slices.Compact(all)) == partitions
}

// Whether the readers together have seen all numbers below `total`.
func seen(total int, readers ...*reader) bool {
	all := map[string]bool{}
	for _, r := range readers {
		for _, value := range r.values() {
			all[value] = true
		}
	}
	for i := range total {
		if !all[fmt.Sprint(i)] {
			return false
		}
	}
	return true
}

func offsets(cl *kadm.Client, group, topic string) map[int32]int64 {
	found, err := cl.FetchOffsets(deadline(), group)
	fine(err, "the offsets of "+group)
	fine(found.Error(), "the offsets of "+group)
	all := map[int32]int64{}
	for p, offset := range found[topic] {
		all[p] = offset.At
	}
	return all
}

func all(partitions int, offset int64) map[int32]int64 {
	same := map[int32]int64{}
	for p := range int32(partitions) {
		same[p] = offset
	}
	return same
}

// Two members share, the broker restarts twice under them, one leaves, and what was committed is what comes next.
func group(protocol kgo.Opt) {
	name, id := topic("group", 6), unique("group")
	producer, cl := client(), admin()
	defer producer.Close()
	defer cl.Close()
	produce(producer, name, 0, 300, 6)
	a := newReader(id, name, protocol)
	until("a has everything", func() bool { return shared(6, a) })
	b := newReader(id, name, protocol)
	until("a and b share", func() bool { return shared(6, a, b) })
	total := 300
	for _, how := range []string{"graceful", "kill"} {
		restart(how)
		produce(producer, name, total, total+300, 6)
		total += 300
		until("everything is read after "+how, func() bool { return seen(total, a, b) })
		until("a and b share after "+how, func() bool { return shared(6, a, b) })
	}
	b.close()
	until("a has everything again", func() bool { return shared(6, a) })
	produce(producer, name, total, total+60, 6)
	total += 60
	until("everything is read", func() bool { return seen(total, a, b) })
	commits := all(6, int64(total/6))
	until("everything is committed", func() bool { return maps.Equal(a.committed(), commits) })
	a.close()
	ensureEq(offsets(cl, id, name), commits, "the commits")

	restart("kill")
	ensureEq(offsets(cl, id, name), commits, "the commits after a kill")
	produce(producer, name, total, total+6, 6)
	c := newReader(id, name, protocol)
	until("the new records are read", func() bool { return len(c.values()) >= 6 })
	c.close()
	ensureEq(len(c.values()), 6, "only what was not committed is read")
}
