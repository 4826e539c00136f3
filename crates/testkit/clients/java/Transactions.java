import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Transactions of the Java client: read, process, write, across restarts of the broker; aborts; fencing. */
final class Transactions {
    private static final int PARTITIONS = 3;
    private static final int RECORDS = 900;

    private Transactions() {}

    /** Copies a topic in transactions, every fourth of which is given up; restarts on the way. Each record arrives once. */
    static void copyExactlyOnce() throws Exception {
        String source = Rig.topic("source", PARTITIONS);
        String target = Rig.topic("target", PARTITIONS);
        String group = Rig.unique("copier");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Rig.settings())) {
            Rig.produce(producer, source, 0, RECORDS, PARTITIONS);
        }
        copy(source, target, group);
        Map<Integer, List<String>> read = Rig.readAll(target, PARTITIONS, "read_committed");
        for (int p = 0; p < PARTITIONS; p++) {
            List<String> wanted = new ArrayList<>();
            for (int i = p; i < RECORDS; i += PARTITIONS) {
                wanted.add(String.valueOf(i));
            }
            Rig.ensureEq(read.get(p), wanted, target + "-" + p + " as read_committed sees it");
        }
        int everything = Rig.readAll(target, PARTITIONS, "read_uncommitted").values().stream().mapToInt(List::size).sum();
        Rig.ensure(everything > RECORDS, "read_uncommitted sees those of aborted transactions as well");
        Rig.ensureEq(Groups.committed(group), Map.of(0, 300L, 1, 300L, 2, 300L), "the offsets");
        Rig.restart("kill");
        Rig.ensureEq(Rig.readAll(target, PARTITIONS, "read_committed"), read, "the records after a kill");
    }

    private static void copy(String source, String target, String group) throws Exception {
        Map<Integer, String> restarts = new HashMap<>(Map.of(3, "graceful", 8, "kill"));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Rig.settings(
                "transactional.id", Rig.unique("tx"), "transaction.timeout.ms", "60000"));
            KafkaConsumer<String, String> consumer = new KafkaConsumer<>(Rig.settings("group.id", group,
                "enable.auto.commit", "false", "auto.offset.reset", "earliest", "isolation.level", "read_committed",
                "max.poll.records", "50"))) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            int copied = 0;
            for (int turn = 1; copied < RECORDS; turn++) {
                ConsumerRecords<String, String> records = poll(consumer);
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()));
                }
                String how = restarts.remove(turn);
                if (how != null) {
                    Rig.restart(how);
                }
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                records.partitions().forEach(p -> offsets.put(p, new OffsetAndMetadata(consumer.position(p))));
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (turn % 4 == 2) {
                    producer.flush();
                    producer.abortTransaction();
                    records.partitions().forEach(p -> consumer.seek(p, records.records(p).get(0).offset()));
                } else {
                    producer.commitTransaction();
                    copied += records.count();
                }
            }
        }
        Rig.ensure(restarts.isEmpty(), "the broker was restarted on the way");
    }

    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        List<ConsumerRecords<String, String>> found = new ArrayList<>();
        Rig.until("records to copy", () -> {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            return !records.isEmpty() && found.add(records);
        });
        return found.get(0);
    }

    /** The second producer of an id fences the first, and what the first had open is aborted. */
    static void fencing() throws Exception {
        String topic = Rig.topic("fenced", 1);
        String id = Rig.unique("tx");
        try (KafkaProducer<String, String> first = new KafkaProducer<>(Rig.settings("transactional.id", id));
            KafkaProducer<String, String> second = new KafkaProducer<>(Rig.settings("transactional.id", id))) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>(topic, 0, null, "lost")).get();
            second.initTransactions();
            second.beginTransaction();
            second.send(new ProducerRecord<>(topic, 0, null, "kept"));
            second.commitTransaction();
            try {
                first.commitTransaction();
                throw new AssertionError("the first producer could still commit");
            } catch (ProducerFencedException | InvalidProducerEpochException e) {
                // Told in time.
            } catch (KafkaException e) {
                Rig.ensure(e.getCause() instanceof ProducerFencedException
                    || e.getCause() instanceof InvalidProducerEpochException, "the first producer is fenced: " + e);
            }
        }
        Rig.ensureEq(Rig.readAll(topic, 1, "read_committed"), Map.of(0, List.of("kept")), "what was committed");
        Rig.ensureEq(Rig.readAll(topic, 1, "read_uncommitted"), Map.of(0, List.of("lost", "kept")), "what was written");
    }
}
