import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** Producers and members of groups, across restarts of the broker. */
final class Groups {
    private Groups() {}

    /** Many batches, across two restarts while they are written: nothing lost, nothing doubled, nothing out of order. */
    static void stream() throws Exception {
        String topic = Rig.topic("stream", 4);
        int total = 0;
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(Rig.settings("linger.ms", "2", "compression.type", "zstd"))) {
            for (String how : new String[] {"graceful", "kill", null}) {
                for (int i = total; i < total + 10_000; i++) {
                    sent.add(producer.send(new ProducerRecord<>(topic, i % 4, null, String.valueOf(i))));
                }
                total += 10_000;
                if (how != null) {
                    Rig.restart(how);
                }
            }
        }
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
        Map<Integer, List<String>> values = Rig.readAll(topic, 4, "read_uncommitted");
        for (int p = 0; p < 4; p++) {
            List<String> wanted = new ArrayList<>();
            for (int i = p; i < total; i += 4) {
                wanted.add(String.valueOf(i));
            }
            Rig.ensure(values.get(p).equals(wanted), "the records of " + topic + "-" + p + " are in order, each once");
        }
    }

    /** Two members share, the broker restarts twice under them, one leaves, and what was committed is what comes next. */
    static void group(String... protocol) throws Exception {
        String topic = Rig.topic("group", 6);
        String id = Rig.unique("group");
        KafkaProducer<String, String> producer = new KafkaProducer<>(Rig.settings());
        Rig.produce(producer, topic, 0, 300, 6);
        Reader a = new Reader(id, topic, protocol);
        Rig.until("a has everything", () -> shared(6, a));
        Reader b = new Reader(id, topic, protocol);
        Rig.until("a and b share", () -> shared(6, a, b));
        int total = 300;
        for (String how : new String[] {"graceful", "kill"}) {
            Rig.restart(how);
            Rig.produce(producer, topic, total, total + 300, 6);
            total += 300;
            Set<String> wanted = Rig.numbers(total);
            Rig.until("everything is read after " + how, () -> seen(a, b).containsAll(wanted));
            Rig.until("a and b share after " + how, () -> shared(6, a, b));
        }
        b.end();
        Rig.until("a has everything again", () -> shared(6, a));
        Rig.produce(producer, topic, total, total + 60, 6);
        total += 60;
        Map<Integer, Long> commits = new HashMap<>();
        for (int p = 0; p < 6; p++) {
            commits.put(p, (long) total / 6);
        }
        Rig.until("everything is committed", () -> a.commits().equals(commits));
        Rig.ensure(seen(a, b).equals(Rig.numbers(total)), "everything was read");
        a.end();
        Rig.ensureEq(committed(id), commits, "the commits");
        Rig.restart("kill");
        Rig.ensureEq(committed(id), commits, "the commits after a kill");
        Rig.produce(producer, topic, total, total + 6, 6);
        Reader c = new Reader(id, topic, protocol);
        Rig.until("the new records are read", () -> seen(c).size() >= 6);
        c.end();
        Set<String> fresh = Rig.numbers(total + 6);
        fresh.removeAll(Rig.numbers(total));
        Rig.ensureEq(seen(c), fresh, "only what was not committed is read");
        producer.close();
    }

    static Map<Integer, Long> committed(String id) throws Exception {
        Map<Integer, Long> found = new HashMap<>();
        try (Admin admin = Admin.create(Rig.settings())) {
            admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get()
                .forEach((partition, offset) -> found.put(partition.partition(), offset.offset()));
        }
        return found;
    }

    private static Set<String> seen(Reader... readers) {
        Set<String> all = new HashSet<>();
        for (Reader reader : readers) {
            synchronized (reader) {
                all.addAll(reader.seen);
            }
        }
        return all;
    }

    /** Each of the readers has some, together they have all, none twice. */
    static boolean shared(int partitions, Reader... readers) {
        List<Integer> all = new ArrayList<>();
        for (Reader reader : readers) {
            synchronized (reader) {
                if (reader.failed != null) {
                    throw new AssertionError("a member failed", reader.failed);
                }
                if (reader.owned.isEmpty()) {
                    return false;
                }
                all.addAll(reader.owned);
            }
        }
        return all.size() == partitions && new TreeSet<>(all).size() == partitions;
    }

    /** A member: reads, keeps what it saw, commits after each poll. */
    static final class Reader extends Thread implements ConsumerRebalanceListener {
        private final List<String> seen = new ArrayList<>();
        private final Map<Integer, Long> commits = new HashMap<>();
        private final Set<Integer> owned = new TreeSet<>();
        private final KafkaConsumer<String, String> consumer;
        private volatile boolean stopped;
        private Throwable failed;

        Reader(String group, String topic, String... more) {
            List<String> pairs = new ArrayList<>(List.of("group.id", group, "enable.auto.commit", "false",
                "auto.offset.reset", "earliest"));
            pairs.addAll(Arrays.asList(more));
            if (!pairs.contains("group.protocol")) {
                pairs.addAll(List.of("session.timeout.ms", "10000", "heartbeat.interval.ms", "300"));
            }
            consumer = new KafkaConsumer<>(Rig.settings(pairs.toArray(String[]::new)));
            consumer.subscribe(List.of(topic), this);
            setDaemon(true);
            start();
        }

        @Override
        public synchronized void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(p -> owned.add(p.partition()));
        }

        @Override
        public synchronized void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(p -> owned.remove(p.partition()));
        }

        @Override
        public void run() {
            try (consumer) {
                while (!stopped) {
                    turn();
                }
            } catch (Throwable e) {
                synchronized (this) {
                    failed = e;
                }
            }
        }

        private void turn() {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> record : records) {
                offsets.put(new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
                synchronized (this) {
                    seen.add(record.value());
                }
            }
            if (offsets.isEmpty()) {
                return;
            }
            try {
                consumer.commitSync(offsets, Duration.ofSeconds(10));
            } catch (KafkaException e) {
                // Refused or cut off: the records come again, to this member or to another.
                return;
            }
            synchronized (this) {
                offsets.forEach((p, offset) -> commits.merge(p.partition(), offset.offset(), Math::max));
            }
        }

        synchronized Map<Integer, Long> commits() {
            return new HashMap<>(commits);
        }

        void end() throws Exception {
            stopped = true;
            join(Rig.LONG_MS);
            Rig.ensure(!isAlive(), "a member closed in time");
            Rig.ensure(failed == null, "a member failed: " + failed);
        }
    }
}
