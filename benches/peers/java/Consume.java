// The Java client. It checks CRCs and reads uncommitted by default. Tuned: a poll may return much more. CPU is the
// process's own, from the operating system: compiling and collecting count.

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

public class Consume {
    static final OperatingSystemMXBean SYSTEM = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    record Usage(long at, long cpu) {
        static Usage now() {
            return new Usage(System.nanoTime(), SYSTEM.getProcessCpuTime());
        }
    }

    public static void main(String[] words) throws Exception {
        Map<String, String> args = new HashMap<>();
        for (int i = 0; i + 1 < words.length; i += 2) {
            args.put(words[i].substring(2), words[i + 1]);
        }
        Usage built = Usage.now();
        Properties p = new Properties();
        p.put("bootstrap.servers", args.get("bootstrap-server"));
        p.put("group.id", args.get("group"));
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("group.protocol", args.get("protocol"));
        if (args.get("protocol").equals("classic")) {
            p.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        }
        if (args.get("mode").equals("tuned")) {
            p.put("max.poll.records", "50000");
        }
        long want = Long.parseLong(args.get("records"));
        long records = 0, bytes = 0, already = 0;
        Usage first = null;
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Usage subscribed = Usage.now();
        consumer.subscribe(List.of(args.get("topic")));
        while (records < want) {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofSeconds(1));
            for (ConsumerRecord<byte[], byte[]> r : polled) {
                records++;
                bytes += (r.key() == null ? 0 : r.key().length) + (r.value() == null ? 0 : r.value().length);
            }
            if (first == null && records > 0) {
                first = Usage.now();
                already = records;
            }
        }
        Usage last = Usage.now();
        double wall = (last.at - first.at) / 1e9, cpu = (last.cpu - first.cpu) / 1e9, flowed = records - already;
        double allWall = (last.at - subscribed.at) / 1e9, allCpu = (last.cpu - subscribed.cpu) / 1e9;
        String rss = Files.readAllLines(Path.of("/proc/self/status")).stream().filter(l -> l.startsWith("VmHWM"))
            .map(l -> l.replaceAll("[^0-9]", "")).findFirst().orElse("0");
        System.out.println(String.format(Locale.ROOT,
            "{\"peer\":\"kafka-clients (Java)\",\"version\":\"%s\",\"protocol\":\"%s\",\"mode\":\"%s\",\"records\":%d,\"bytes\":%d,"
            + "\"first_record_ms\":%.1f,\"wall_s\":%.6f,\"cpu_s\":%.6f,\"cpu_ns_per_record\":%.1f,\"records_per_s\":%.1f,"
            + "\"subscribe_wall_s\":%.6f,\"subscribe_cpu_s\":%.6f,\"subscribe_cpu_ns_per_record\":%.1f,"
            + "\"subscribe_records_per_s\":%.1f,\"max_rss_kb\":%s}",
            AppInfoParser.getVersion(), args.get("protocol"), args.get("mode"), records, bytes,
            (first.at - built.at) / 1e6, wall, cpu, cpu * 1e9 / flowed, flowed / wall, allWall, allCpu,
            allCpu * 1e9 / records, records / allWall, rss));
        Runtime.getRuntime().halt(0);
    }
}
