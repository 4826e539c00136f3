// franz-go. Checks CRCs and reads uncommitted by default. Tuned: it waits 500 ms for records as the others do, not 5 s,
// fetches from a broker as often as it likes, and goes through records without a copy.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type usage struct {
	at  time.Time
	cpu float64
}

func now() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	s := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return usage{time.Now(), s(u.Utime) + s(u.Stime)}
}

func main() {
	bootstrap := flag.String("bootstrap-server", "127.0.0.1:9092", "")
	topic := flag.String("topic", "bench", "")
	group := flag.String("group", "bench", "")
	want := flag.Int64("records", 1000000, "")
	protocol := flag.String("protocol", "classic", "")
	mode := flag.String("mode", "default", "")
	flag.Int("partitions", 8, "")
	flag.Parse()
	built := now()
	ctx := context.Background()
	opts := []kgo.Opt{
		kgo.SeedBrokers(*bootstrap), kgo.ConsumerGroup(*group), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ConsumeTopics(*topic),
	}
	if *protocol == "consumer" {
		ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
		opts = append(opts, kgo.WithContext(ctx))
	}
	if *mode == "tuned" {
		opts = append(opts, kgo.FetchMaxWait(500*time.Millisecond), kgo.MaxConcurrentFetches(8))
	}
	subscribed := now()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		panic(err)
	}
	var records, bytes, already int64
	var first usage
	for records < *want {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			panic(fmt.Sprint(errs))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			records++
			bytes += int64(len(r.Key) + len(r.Value))
		})
		if already == 0 && records > 0 {
			first, already = now(), records
		}
	}
	last := now()
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	wall, cpu, flowed := last.at.Sub(first.at).Seconds(), last.cpu-first.cpu, float64(records-already)
	allWall, allCPU, all := last.at.Sub(subscribed.at).Seconds(), last.cpu-subscribed.cpu, float64(records)
	fmt.Printf("{\"peer\":\"franz-go\",\"version\":\"1.22.3\",\"protocol\":%q,\"mode\":%q,\"records\":%d,\"bytes\":%d,"+
		"\"first_record_ms\":%.1f,\"wall_s\":%.6f,\"cpu_s\":%.6f,\"cpu_ns_per_record\":%.1f,\"records_per_s\":%.1f,"+
		"\"subscribe_wall_s\":%.6f,\"subscribe_cpu_s\":%.6f,\"subscribe_cpu_ns_per_record\":%.1f,"+
		"\"subscribe_records_per_s\":%.1f,\"max_rss_kb\":%d}\n",
		*protocol, *mode, records, bytes, first.at.Sub(built.at).Seconds()*1e3, wall, cpu, cpu*1e9/max(flowed, 1),
		flowed/max(wall, 1e-9), allWall, allCPU, allCPU*1e9/all, all/allWall, u.Maxrss)
	os.Exit(0)
}
