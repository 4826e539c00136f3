import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What the scenarios of Java stand on: the broker's address and levers, and ways to wait. Nothing waits for a fixed time: a
 * condition is asked until it holds, or the deadline says what did not come.
 */
final class Rig {
    static final String BOOTSTRAP = System.getenv("TONTINE_BOOTSTRAP");
    /** For what never comes, not for what is slow. */
    static final long LONG_MS = 60_000;

    private Rig() {}

    static void ensure(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    static void ensureEq(Object got, Object expected, String what) {
        ensure(Objects.equals(got, expected), what + ": got " + got + ", expected " + expected);
    }

    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + LONG_MS * 1_000_000;
        while (!condition.call()) {
            ensure(System.nanoTime() < end, "waited in vain: " + what);
            Thread.sleep(10);
        }
    }

    /** The broker ends ("graceful" or "kill"), starts again on its data directory, and listens when this returns. */
    static void restart(String how) throws Exception {
        String[] address = System.getenv("TONTINE_CONTROL").split(":");
        try (Socket control = new Socket(address[0], Integer.parseInt(address[1]))) {
            control.getOutputStream().write((how + "\n").getBytes(StandardCharsets.UTF_8));
            String answer = new BufferedReader(new InputStreamReader(control.getInputStream())).readLine();
            ensureEq(answer, "ok", "the restart (" + how + ")");
        }
    }

    static String unique(String stem) {
        return stem + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    static Properties settings(String... pairs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", BOOTSTRAP);
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        for (int i = 0; i < pairs.length; i += 2) {
            settings.put(pairs[i], pairs[i + 1]);
        }
        return settings;
    }

    static String topic(String stem, int partitions) throws Exception {
        String name = unique(stem);
        try (Admin admin = Admin.create(settings())) {
            admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        }
        return name;
    }

    /** Writes each number to the partition that it says, and waits until all are acknowledged. */
    static void produce(KafkaProducer<String, String> producer, String topic, int from, int to, int partitions)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = from; i < to; i++) {
            sent.add(producer.send(new ProducerRecord<>(topic, i % partitions, null, String.valueOf(i))));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    static List<TopicPartition> partitions(String topic, int count) {
        return IntStream.range(0, count).mapToObj(p -> new TopicPartition(topic, p)).toList();
    }

    /** Every value of a topic, by partition, up to its end as this isolation level sees it. */
    static Map<Integer, List<String>> readAll(String topic, int count, String isolation) throws Exception {
        Map<Integer, List<String>> values = new HashMap<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings("isolation.level", isolation, "auto.offset.reset", "earliest"))) {
            List<TopicPartition> all = partitions(topic, count);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            until("the end of " + topic, () -> {
                for (ConsumerRecord<String, String> record : consumer.poll(java.time.Duration.ofMillis(200))) {
                    values.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(record.value());
                }
                return all.stream().allMatch(p -> consumer.position(p) >= ends.get(p));
            });
        }
        return values;
    }

    static Set<String> numbers(int below) {
        Set<String> all = new HashSet<>();
        for (int i = 0; i < below; i++) {
            all.add(String.valueOf(i));
        }
        return all;
    }
}
