// One franz-go client, told nothing but where: writes so many records with acks=all, then reads them back.
package main

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	bootstrap := flag.String("bootstrap-server", "127.0.0.1:9092", "")
	topic := flag.String("topic", "throughput", "")
	want := flag.Int("records", 1000000, "")
	size := flag.Int("size", 128, "")
	flag.Parse()
	ctx := context.Background()

	producer, err := kgo.NewClient(kgo.SeedBrokers(*bootstrap), kgo.DefaultProduceTopic(*topic),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	must(err)
	must(producer.ProduceSync(ctx, kgo.StringRecord("first")).FirstErr())
	value := make([]byte, *size)
	var failed atomic.Value
	began := time.Now()
	for i := 0; i < *want; i++ {
		producer.Produce(ctx, kgo.SliceRecord(value), func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(err)
			}
		})
	}
	must(producer.Flush(ctx))
	produced := time.Since(began).Seconds()
	if err := failed.Load(); err != nil {
		panic(err)
	}
	producer.Close()

	consumer, err := kgo.NewClient(kgo.SeedBrokers(*bootstrap), kgo.ConsumeTopics(*topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	must(err)
	began = time.Now()
	for read := 0; read < *want; {
		fetches := consumer.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			panic(failed.Err)
		}
		read += fetches.NumRecords()
	}
	consumed := time.Since(began).Seconds()
	consumer.Close()
	fmt.Printf("{\"produced_per_s\":%.0f,\"consumed_per_s\":%.0f}\n", float64(*want)/produced, float64(*want)/consumed)
}
