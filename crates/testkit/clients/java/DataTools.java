import java.util.List;
import java.util.stream.IntStream;

/** The tools that write and read records. */
final class DataTools {
    private DataTools() {}

    static void all() throws Exception {
        console();
        performance();
        verifiable();
        Tool.on("EndToEndLatency", "--topic", Rig.topic("latency", 1), "--num-records", "50", "--producer-acks", "all",
            "--record-size", "100").ok("Avg latency", "99th");
    }

    private static void console() throws Exception {
        String topic = Rig.topic("console", 2);
        String lines = "a:1\nb:2\nc:3\n";
        Tool.run("ConsoleProducer", lines, "--bootstrap-server", Rig.BOOTSTRAP, "--topic", topic,
            "--reader-property", "parse.key=true", "--reader-property", "key.separator=:").ok();
        Rig.restart("kill");
        for (String[] protocol : new String[][] {{}, {"--command-property", "group.protocol=consumer"}}) {
            String[] base = {"--topic", topic, "--from-beginning", "--max-messages", "3", "--timeout-ms", "60000",
                "--formatter-property", "print.key=true", "--formatter-property", "key.separator=="};
            String[] all = new String[base.length + protocol.length];
            System.arraycopy(base, 0, all, 0, base.length);
            System.arraycopy(protocol, 0, all, base.length, protocol.length);
            Tool.on("consumer.ConsoleConsumer", all).ok("a=1", "b=2", "c=3", "Processed a total of 3 messages");
        }
    }

    private static void performance() throws Exception {
        String topic = Rig.topic("performance", 3);
        Tool.on("ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "100",
            "--throughput", "-1", "--command-property", "acks=all", "--command-property", "compression.type=lz4")
            .ok("20000 records sent");
        Tool.on("ConsumerPerformance", "--topic", topic, "--num-records", "20000").ok("20000");
        String ends = Tool.on("GetOffsetShell", "--topic", topic).ok();
        int total = ends.lines().mapToInt(line -> Integer.parseInt(line.substring(line.lastIndexOf(':') + 1).trim())).sum();
        Rig.ensureEq(total, 20000, "how many records there are");
    }

    private static void verifiable() throws Exception {
        String source = Rig.topic("verified", 1);
        String target = Rig.topic("copied", 1);
        Tool.ended(Tool.start("VerifiableProducer", "--bootstrap-server", Rig.BOOTSTRAP, "--topic", source,
            "--max-messages", "500", "--acks", "-1")).ok("\"name\":\"tool_data\"", "\"sent\":500", "\"acked\":500");
        Rig.restart("kill");
        Process classic = verifiableConsumer(source, "classic");
        Process consumer = verifiableConsumer(source, "consumer");
        Process copier = Tool.start("TransactionalMessageCopier", "--broker-list", Rig.BOOTSTRAP, "--input-topic", source,
            "--input-partition", "0", "--output-topic", target, "--max-messages", "500", "--consumer-group",
            Rig.unique("copier"), "--transaction-size", "50", "--transactional-id", Rig.unique("tx"),
            "--enable-random-aborts");
        for (Process process : List.of(classic, consumer)) {
            Tool.ended(process).ok("\"name\":\"partitions_assigned\"", "\"name\":\"offsets_committed\"", "\"success\":true",
                "\"name\":\"shutdown_complete\"");
        }
        Tool.ended(copier).ok("\"remaining\":0");
        var copied = Rig.readAll(target, 1, "read_committed").get(0);
        Rig.ensureEq(copied, IntStream.range(0, 500).mapToObj(String::valueOf).toList(), "the copy");
    }

    private static Process verifiableConsumer(String topic, String protocol) throws Exception {
        return Tool.start("VerifiableConsumer", "--bootstrap-server", Rig.BOOTSTRAP, "--topic", topic, "--group-id",
            Rig.unique("verified"), "--max-messages", "500", "--group-protocol", protocol, "--reset-policy", "earliest");
    }
}
