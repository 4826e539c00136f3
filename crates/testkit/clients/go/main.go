// franz-go against a broker: the argument names the scenario. Ends with 0 when everything held, else says what did not.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var scenarios = map[string]func(){
	"records":           records,
	"stream":            stream,
	"group_range":       func() { group(kgo.Balancers(kgo.RangeBalancer())) },
	"group_cooperative": func() { group(kgo.Balancers(kgo.CooperativeStickyBalancer())) },
	"group_consumer":    func() { group(kgo.ServerSideBalancer()) },
	"transactions":      copyExactlyOnce,
	"fencing":           fencing,
	"topics":            topics,
	"configs":           configs,
	"groups":            groups,
	"places":            places,
	"not_offered":       notOffered,
}

func main() {
	scenario, known := scenarios[os.Args[1]]
	ensure(known, "there is no scenario %q", os.Args[1])
	scenario()
}

// Codecs, acknowledgements, headers, keys, timestamps, empty values, and what is too large.
func records() {
	name := topic("records", 1)
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	var expected []*kgo.Record
	for _, acks := range []kgo.Acks{kgo.AllISRAcks(), kgo.LeaderAck()} {
		for codec, option := range codecs {
			options := []kgo.Opt{kgo.RequiredAcks(acks), kgo.ProducerBatchCompression(option)}
			if acks != kgo.AllISRAcks() {
				options = append(options, kgo.DisableIdempotentWrite())
			}
			cl := client(options...)
			var batch []*kgo.Record
			for i := range 20 {
				record := &kgo.Record{
					Topic: name, Value: []byte(strings.Repeat(codec, 30)), Timestamp: start.Add(time.Duration(len(expected)) * time.Second),
					Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "codec", Value: []byte(codec)}},
				}
				if i%2 == 0 {
					record.Key = []byte(fmt.Sprint(i))
				}
				if i == 7 {
					record.Value = nil
				}
				batch, expected = append(batch, record), append(expected, record)
			}
			fine(cl.ProduceSync(deadline(), batch...).FirstErr(), "producing with "+codec)
			cl.Close()
		}
	}
	cl := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().At(0)}}))
	defer cl.Close()
	var read []*kgo.Record
	until("all records", func() bool {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		read = append(read, cl.PollFetches(ctx).Records()...)
		return len(read) >= len(expected)
	})
	for i, record := range read {
		wanted := expected[i]
		ensure(bytes.Equal(record.Key, wanted.Key) && bytes.Equal(record.Value, wanted.Value), "record %d", i)
		ensure((record.Value == nil) == (wanted.Value == nil), "an empty value and none differ: record %d", i)
		ensureEq(record.Headers, wanted.Headers, "its headers")
		ensure(record.Timestamp.Equal(wanted.Timestamp), "its time: got %v, expected %v", record.Timestamp, wanted.Timestamp)
		ensureEq(record.Offset, int64(i), "its offset")
	}
	huge := client(kgo.ProducerBatchMaxBytes(3_000_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer huge.Close()
	err := huge.ProduceSync(deadline(), &kgo.Record{Topic: name, Value: bytes.Repeat([]byte("x"), 2_000_000)}).FirstErr()
	refused(err, kerr.MessageTooLarge, "a record that is too large")
}

// Many batches, across two restarts while they are written: nothing lost, nothing doubled, nothing out of order.
func stream() {
	name := topic("stream", 4)
	cl := client(kgo.ProducerLinger(2 * time.Millisecond))
	// A producer that is cut off before it has its identity takes that for a missing login, and gives up.
	produce(cl, name, 0, 4, 4)
	total := 4
	for _, how := range []string{"graceful", "kill", ""} {
		for i := total; i < total+10_000; i++ {
			record := &kgo.Record{Topic: name, Partition: int32(i % 4), Value: []byte(fmt.Sprint(i))}
			cl.Produce(context.Background(), record, func(_ *kgo.Record, err error) { fine(err, "producing") })
		}
		total += 10_000
		if how != "" {
			restart(how)
		}
	}
	fine(cl.Flush(deadline()), "flushing")
	values := readAll(name, 4, kgo.ReadUncommitted())
	for p := range 4 {
		ensureEq(len(values[int32(p)]), total/4, fmt.Sprintf("how many records %s-%d has", name, p))
		for i, value := range values[int32(p)] {
			ensureEq(value, fmt.Sprint(p+4*i), fmt.Sprintf("record %d of %s-%d", i, name, p))
		}
	}
}
