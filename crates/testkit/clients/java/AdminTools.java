import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.clients.producer.KafkaProducer;

/** The tools that look after topics, settings and groups. */
final class AdminTools {
    private static final String TOPICS = "TopicCommand";
    private static final String CONFIGS = "ConfigCommand";
    private static final String GROUPS = "consumer.group.ConsumerGroupCommand";

    private AdminTools() {}

    static void topics() throws Exception {
        String topic = Rig.unique("made");
        Tool.on(TOPICS, "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=123456")
            .ok("Created topic " + topic);
        Tool.on(TOPICS, "--create", "--topic", topic).fails("already exists");
        Tool.on(TOPICS, "--create", "--if-not-exists", "--topic", topic).ok();
        Tool.on(TOPICS, "--create", "--topic", Rig.unique("bad"), "--config", "no.such=1").fails("no.such");
        Tool.on(TOPICS, "--list").ok(topic);
        Tool.on(TOPICS, "--describe", "--topic", topic)
            .ok("PartitionCount: 3", "ReplicationFactor: 1", "retention.ms=123456", "Partition: 2\tLeader: 1", "Isr: 1");
        Tool.on(TOPICS, "--alter", "--topic", topic, "--partitions", "5").ok();
        Tool.on(TOPICS, "--alter", "--topic", topic, "--partitions", "4").fails();
        Rig.restart("kill");
        Tool.on(TOPICS, "--describe", "--topic", topic).ok("PartitionCount: 5");
        Rig.ensureEq(Tool.on(TOPICS, "--describe", "--under-replicated-partitions").ok(), "", "what lacks replicas");
        Tool.on(TOPICS, "--describe", "--topic", "missing").fails("does not exist");
        configs(topic);
        cluster(topic);
        Tool.on(TOPICS, "--delete", "--topic", topic).ok();
        Rig.ensure(!Tool.on(TOPICS, "--list").ok().contains(topic), "a deleted topic is not listed");
    }

    private static void configs(String topic) throws Exception {
        String[] entity = {"--entity-type", "topics", "--entity-name", topic};
        Tool.on(CONFIGS, with(entity, "--alter", "--add-config", "retention.ms=777000,cleanup.policy=[compact,delete]"))
            .ok("Completed updating config for topic " + topic);
        Tool.on(CONFIGS, with(entity, "--describe")).ok("retention.ms=777000", "cleanup.policy=compact,delete");
        Tool.on(CONFIGS, with(entity, "--alter", "--delete-config", "retention.ms,cleanup.policy")).ok();
        Rig.ensure(!Tool.on(CONFIGS, with(entity, "--describe")).ok().contains("retention.ms=777000"), "it is gone");
        Tool.on(CONFIGS, with(entity, "--describe", "--all")).ok("retention.ms=604800000", "DEFAULT_CONFIG");
        Tool.on(CONFIGS, with(entity, "--alter", "--add-config", "no.such=1")).fails("no.such");
        Tool.on(CONFIGS, "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all").ok("num.partitions=");
        String[] group = {"--entity-type", "groups", "--entity-name", Rig.unique("set")};
        Tool.on(CONFIGS, with(group, "--alter", "--add-config", "consumer.session.timeout.ms=45000")).ok();
        Tool.on(CONFIGS, with(group, "--describe")).ok("consumer.session.timeout.ms=45000");
    }

    private static void cluster(String topic) throws Exception {
        Tool.run("ClusterTool", "", "cluster-id", "--bootstrap-server", Rig.BOOTSTRAP).ok("Cluster ID: ");
        Tool.on("LogDirsCommand", "--describe", "--topic-list", topic).ok("\"partition\":\"" + topic + "-4\"");
        Tool.on("BrokerApiVersionsCommand").ok("(id: 1 rack: ", "ConsumerGroupHeartbeat(68): 0 to 1 [usable: 1]");
        Tool.on("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions").ok();
        Tool.run("TransactionsCommand", "", "--bootstrap-server", Rig.BOOTSTRAP, "list").ok("TransactionalId");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Rig.settings())) {
            Rig.produce(producer, topic, 0, 100, 5);
        }
        Tool.run("TransactionsCommand", "", "--bootstrap-server", Rig.BOOTSTRAP, "describe-producers", "--topic", topic,
            "--partition", "0").ok("ProducerId", "LastSequence");
        Tool.on("GetOffsetShell", "--topic", topic).ok(topic + ":0:20", topic + ":4:20");
        Tool.on("GetOffsetShell", "--topic", topic, "--time", "earliest").ok(topic + ":3:0");
        Path json = Path.of(System.getenv("TONTINE_FOLDER"), "delete.json");
        Files.writeString(json, "{\"version\":1,\"partitions\":[{\"topic\":\"" + topic + "\",\"partition\":3,\"offset\":7}]}");
        Tool.on("DeleteRecordsCommand", "--offset-json-file", json.toString()).ok("low_watermark: 7");
        Rig.restart("kill");
        Tool.on("GetOffsetShell", "--topic", topic, "--time", "earliest").ok(topic + ":3:7", topic + ":0:0");
        Tool.on("GetOffsetShell", "--topic", topic, "--time", "latest").ok(topic + ":3:20");
    }

    /** Groups of both kinds: listed, described in all ways, reset, forgotten. */
    static void groups() throws Exception {
        String topic = Rig.topic("read", 4);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Rig.settings())) {
            Rig.produce(producer, topic, 0, 80, 4);
        }
        String classic = Rig.unique("classic");
        String modern = Rig.unique("modern");
        Groups.Reader a = new Groups.Reader(classic, topic, "client.id", "reader-of-" + classic,
            "partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        Groups.Reader b = new Groups.Reader(modern, topic, "client.id", "reader-of-" + modern, "group.protocol", "consumer");
        for (Groups.Reader reader : List.of(a, b)) {
            Rig.until("everything is committed", () -> reader.commits().values().stream().mapToLong(Long::longValue).sum() == 80);
        }
        Tool.on(GROUPS, "--list").ok(classic, modern);
        Tool.on(GROUPS, "--list", "--state").ok("Stable");
        Rig.ensure(!Tool.on(GROUPS, "--list", "--type", "consumer").ok(modern).contains(classic), "types are told apart");
        Tool.on("GroupsCommand", "--list").ok(classic, modern, "Classic", "Consumer");
        alive(classic, topic, "range");
        alive(modern, topic, "uniform");
        Tool.on(GROUPS, "--delete", "--group", classic).fails("not empty");
        a.end();
        b.end();
        Rig.restart("kill");
        empty(classic, topic);
        empty(modern, topic);
        Tool.on(GROUPS, "--describe", "--group", Rig.unique("missing")).fails("not found");
    }

    private static void alive(String group, String topic, String assignor) throws Exception {
        String member = "reader-of-" + group;
        Tool.on(GROUPS, "--describe", "--group", group).ok(topic, "CURRENT-OFFSET", member);
        Tool.on(GROUPS, "--describe", "--group", group, "--verbose").ok(topic, member);
        Tool.on(GROUPS, "--describe", "--group", group, "--members").ok(member, "#PARTITIONS", "4");
        Tool.on(GROUPS, "--describe", "--group", group, "--members", "--verbose").ok(member, topic + ":0,1,2,3");
        Tool.on(GROUPS, "--describe", "--group", group, "--state").ok(assignor, "Stable", "1");
        Tool.on(GROUPS, "--describe", "--group", group, "--state", "--verbose").ok(assignor, "Stable", "1");
        Tool.on(GROUPS, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute").says("inactive");
    }

    private static void empty(String group, String topic) throws Exception {
        Tool.on(GROUPS, "--describe", "--group", group).says("has no active members", topic);
        Tool.on(GROUPS, "--describe", "--group", group, "--state").ok("Empty");
        reset(group, topic, "0", "--to-offset", "0", "--dry-run");
        reset(group, topic, "20", "--to-current", "--dry-run");
        reset(group, topic, "15", "--shift-by", "-5", "--execute");
        reset(group, topic, "0", "--to-earliest", "--execute");
        reset(group, topic, "20", "--to-latest", "--execute");
        reset(group, topic, "0", "--to-datetime", "2020-01-01T00:00:00.000", "--execute");
        reset(group, topic, "0", "--by-duration", "PT1H", "--execute");
        Tool.on(GROUPS, "--delete-offsets", "--group", group, "--topic", topic + ":1").ok("Successful");
        Tool.on(GROUPS, "--delete", "--group", group).ok("Deletion of requested consumer groups", "was successful");
        Rig.ensure(!Tool.on(GROUPS, "--list").ok().contains(group), "a deleted group is not listed");
    }

    private static void reset(String group, String topic, String expected, String... how) throws Exception {
        String said = Tool.on(GROUPS, with(new String[] {"--reset-offsets", "--group", group, "--topic", topic}, how)).ok();
        long rows = said.lines().filter(line -> line.contains(topic) && line.trim().matches(".*\\s" + expected)).count();
        Rig.ensureEq(rows, 4L, "rows with " + expected + " in:\n" + said);
    }

    private static String[] with(String[] first, String... more) {
        String[] all = new String[first.length + more.length];
        System.arraycopy(first, 0, all, 0, first.length);
        System.arraycopy(more, 0, all, first.length, more.length);
        return all;
    }
}
