import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/** Kafka Streams counts words, exactly once, while the broker is restarted and killed under it. */
final class WordCount {
    private static final List<String> WORDS = List.of("tontine", "lot", "share", "member", "heir", "estate", "round");
    private static final int LINES = 400;

    private WordCount() {}

    static void exactlyOnce() throws Exception {
        String source = Rig.topic("lines", 2);
        String target = Rig.topic("counts", 2);
        Map<String, Long> expected = new TreeMap<>();
        try (KafkaStreams streams = new KafkaStreams(counting(source, target).build(), settings());
            KafkaProducer<String, String> producer = new KafkaProducer<>(Rig.settings("linger.ms", "0"))) {
            streams.start();
            Rig.until("it runs", () -> streams.state() == KafkaStreams.State.RUNNING);
            int line = 0;
            for (String how : new String[] {"graceful", "kill", null}) {
                for (int end = line + LINES; line < end; line++) {
                    producer.send(new ProducerRecord<>(source, line(line)));
                    Arrays.stream(line(line).split(" ")).forEach(word -> expected.merge(word, 1L, Long::sum));
                }
                producer.flush();
                // Some are counted and some are on their way.
                Rig.until("a first count", () -> !counts(target).isEmpty());
                if (how != null) {
                    Rig.restart(how);
                }
            }
            Rig.until("all words are counted", () -> counts(target).equals(expected));
            Rig.ensureEq(streams.state(), KafkaStreams.State.RUNNING, "its state");
        }
        Rig.restart("kill");
        Rig.ensureEq(counts(target), expected, "the counts after a kill");
    }

    /** Line by line another mix of words. */
    private static String line(int number) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i <= number % 5; i++) {
            line.append(i == 0 ? "" : " ").append(WORDS.get((number * 31 + i * i) % WORDS.size()));
        }
        return line.toString();
    }

    private static StreamsBuilder counting(String source, String target) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(source)
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to(target, Produced.with(Serdes.String(), Serdes.Long()));
        return builder;
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", Rig.BOOTSTRAP);
        settings.put("application.id", Rig.unique("word-count"));
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("state.dir", System.getenv("TONTINE_FOLDER") + "/streams");
        settings.put("commit.interval.ms", "100");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", "10000");
        settings.put("heartbeat.interval.ms", "300");
        settings.put("reconnect.backoff.max.ms", "200");
        return settings;
    }

    /** The last count of each word; a count that goes back was counted twice or not at all. */
    private static Map<String, Long> counts(String topic) throws Exception {
        Map<String, Long> counts = new TreeMap<>();
        Properties settings = Rig.settings("isolation.level", "read_committed");
        settings.put("value.deserializer", LongDeserializer.class.getName());
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> all = Rig.partitions(topic, 2);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(all));
            Rig.until("the end of the counts", () -> {
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(100))) {
                    long before = counts.getOrDefault(record.key(), 0L);
                    Rig.ensure(record.value() > before, record.key() + " went from " + before + " to " + record.value());
                    counts.put(record.key(), record.value());
                }
                return all.stream().allMatch(p -> consumer.position(p) >= ends.get(p));
            });
        }
        return counts;
    }
}
