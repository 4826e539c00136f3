import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A Java consumer in a group, seen from its application: prints what it is told, one JSON object a line, each with the time
 * in microseconds since 1970. Commits after each poll. SIGTERM closes it in order.
 *
 * Arguments: topics with commas between, then key=value settings of the consumer.
 */
public final class GroupMember {
    private static final class Talk implements ConsumerRebalanceListener {
        private static void callback(String name, Collection<TopicPartition> partitions) {
            String list = partitions.stream().map(p -> "\"" + p + "\"").collect(Collectors.joining(","));
            say("called", "\"callback\":\"" + name + "\",\"partitions\":[" + list + "]");
            say("returned", "\"callback\":\"" + name + "\"");
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            callback("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            callback("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            callback("lost", partitions);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String pair : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            String[] parts = pair.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(Arrays.asList(arguments[0].split(",")), new Talk());
        say("started", "");
        try {
            while (true) {
                turn(consumer);
            }
        } catch (WakeupException e) {
            consumer.close();
            say("closed", "");
        }
    }

    private static void turn(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
            for (TopicPartition partition : records.partitions()) {
                String offsets = records.records(partition).stream()
                    .map(ConsumerRecord::offset).map(String::valueOf).collect(Collectors.joining(","));
                say("delivered", "\"partition\":\"" + partition + "\",\"offsets\":[" + offsets + "]");
            }
            if (!records.isEmpty()) {
                commit(consumer, records);
            }
        } catch (WakeupException e) {
            throw e;
        } catch (RuntimeException e) {
            say("failed", "\"error\":\"" + quoted(e) + "\"");
        }
    }

    private static void commit(KafkaConsumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : records.partitions()) {
            long last = records.records(partition).get(records.records(partition).size() - 1).offset();
            offsets.put(partition, new OffsetAndMetadata(last + 1));
        }
        String list = offsets.entrySet().stream()
            .map(e -> "\"" + e.getKey() + "\":" + e.getValue().offset()).collect(Collectors.joining(","));
        String field = "\"offsets\":{" + list + "}";
        say("commit_sent", field);
        try {
            consumer.commitSync(offsets);
            say("commit_ended", field);
        } catch (WakeupException e) {
            say("commit_ended", field + ",\"unknown\":\"woken up\"");
            throw e;
        } catch (RuntimeException e) {
            say("commit_ended", field + ",\"refused\":\"" + quoted(e) + "\"");
        }
    }

    private static String quoted(Exception e) {
        return e.toString().replace("\\", "/").replace("\"", "'").replace("\n", " ");
    }

    private static synchronized void say(String event, String fields) {
        long at = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
        String rest = fields.isEmpty() ? "" : "," + fields;
        System.out.println("{\"at\":" + at + ",\"event\":\"" + event + "\"" + rest + "}");
        System.out.flush();
    }
}
