"""librdkafka's AdminClient: topics, settings, groups and their offsets, places in logs, and what is refused."""

from confluent_kafka import (ConsumerGroupState, ConsumerGroupTopicPartitions, ConsumerGroupType, KafkaError,
                             KafkaException, Producer, TopicCollection, TopicPartition)
from confluent_kafka.admin import (AclBindingFilter, AclOperation, AclPermissionType, AlterConfigOpType, ConfigEntry,
                                   ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourcePatternType,
                                   ResourceType)
from rig import LONG, Broken, Reader, admin, ensure, ensure_eq, produce, restart, settings, shared, topic, unique, until


def refused(code, future, what):
    try:
        future.result(LONG)
    except KafkaException as e:
        ensure_eq(e.args[0].code(), code, what)
        return e.args[0].str()
    raise Broken(f"{what}: it was not refused")


def topics():
    client = admin()
    name = topic("made", 3, retention_ms="123456")
    refused(KafkaError.TOPIC_ALREADY_EXISTS, client.create_topics([NewTopic(name, 1, 1)])[name], "twice")
    refused(KafkaError.TOPIC_EXCEPTION, client.create_topics([NewTopic("no/slash", 1, 1)])["no/slash"], "a bad name")
    bad = unique("bad")
    refused(KafkaError.INVALID_CONFIG, client.create_topics([NewTopic(bad, 1, 1, config={"no.such": "1"})])[bad], "a key")
    refused(KafkaError.INVALID_REPLICATION_FACTOR, client.create_topics([NewTopic(bad, 1, 9)])[bad], "nine replicas")
    refused(KafkaError.INVALID_PARTITIONS, client.create_topics([NewTopic(bad, 0, 1)])[bad], "no partitions")
    client.create_topics([NewTopic(bad, 1, 1)], validate_only=True)[bad].result(LONG)

    described = client.describe_topics(TopicCollection([name]))[name].result(LONG)
    ensure_eq([len(described.partitions), described.is_internal], [3, False], "the described topic")
    ensure_eq([[r.id for r in p.replicas] for p in described.partitions],
              [[p.leader.id] for p in described.partitions], "its replicas")
    missing = unique("missing")
    refused(KafkaError.UNKNOWN_TOPIC_OR_PART, client.describe_topics(TopicCollection([missing]))[missing], "a missing one")

    client.create_partitions([NewPartitions(name, 5)])[name].result(LONG)
    refused(KafkaError.INVALID_PARTITIONS, client.create_partitions([NewPartitions(name, 4)])[name], "fewer partitions")
    ensure_eq(len(client.list_topics(name, LONG).topics[name].partitions), 5, "its partitions")
    restart("kill")
    # librdkafka does not repeat an admin's request that went out on the connection that just broke.
    client = admin()
    ensure_eq(len(client.list_topics(name, LONG).topics[name].partitions), 5, "its partitions after a kill")
    after = client.describe_topics(TopicCollection([name]))[name].result(LONG)
    ensure_eq(str(after.topic_id), str(described.topic_id), "its id after a kill")

    client.delete_topics([name])[name].result(LONG)
    refused(KafkaError.UNKNOWN_TOPIC_OR_PART, client.delete_topics([name])[name], "deleting it again")
    ensure(bad not in client.list_topics(timeout=LONG).topics, "validating makes nothing")
    cluster = client.describe_cluster().result(LONG)
    ensure(cluster.cluster_id, "the cluster has an id")
    ensure_eq([node.id for node in cluster.nodes], [cluster.controller.id], "its nodes")


def configs():
    client = admin()
    name = topic("set", 1, retention_ms="123456")

    def value(key, kind=ConfigResource.Type.TOPIC, of=name):
        resource = ConfigResource(kind, of)
        return client.describe_configs([resource])[resource].result(LONG)[key]

    def change(operation, key, to):
        entry = ConfigEntry(key, to, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
        return client.incremental_alter_configs([resource])[resource]

    ensure_eq([value("retention.ms").value, value("retention.ms").is_default], ["123456", False], "given at creation")
    change(AlterConfigOpType.SET, "retention.ms", "777000").result(LONG)
    ensure_eq(value("retention.ms").value, "777000", "the changed value")
    change(AlterConfigOpType.APPEND, "cleanup.policy", "compact").result(LONG)
    ensure_eq(value("cleanup.policy").value, "delete,compact", "the longer list")
    change(AlterConfigOpType.SUBTRACT, "cleanup.policy", "delete").result(LONG)
    restart("kill")
    # librdkafka does not repeat an admin's request that went out on the connection that just broke.
    client = admin()
    ensure_eq(value("cleanup.policy").value, "compact", "the shorter list, after a kill")
    change(AlterConfigOpType.DELETE, "retention.ms", None).result(LONG)
    ensure_eq(value("retention.ms").is_default, True, "the default is back")
    refused(KafkaError.INVALID_CONFIG, change(AlterConfigOpType.SET, "no.such.key", "1"), "a key nobody knows")
    refused(KafkaError.INVALID_CONFIG, change(AlterConfigOpType.SET, "retention.ms", "soon"), "a value that is none")

    whole = ConfigResource(ConfigResource.Type.TOPIC, name, set_config={"retention.ms": "5000"})
    client.alter_configs([whole])[whole].result(LONG)
    ensure_eq(value("retention.ms").value, "5000", "all settings replaced")
    ensure_eq(value("cleanup.policy").value, "delete", "what was not among them has its default again")
    node = str(client.describe_cluster().result(LONG).controller.id)
    ensure_eq(value("num.partitions", ConfigResource.Type.BROKER, node).name, "num.partitions", "a broker's setting")


def groups():
    client = admin()
    name = topic("read", 4)
    produce(Producer(settings()), name, range(80), 4)
    classic, modern = unique("classic"), unique("modern")
    a = Reader("a", classic, [name], partition_assignment_strategy="range", heartbeat_interval_ms=300)
    b = Reader("b", modern, [name], group_protocol="consumer")
    until("both groups read", lambda: shared([a], 4) and shared([b], 4))
    until("everything is committed", lambda: [r.commits for r in (a, b)] == [{p: 20 for p in range(4)}] * 2)

    def listed(**filters):
        found = client.list_consumer_groups(request_timeout=LONG, **filters).result(LONG)
        ensure_eq(found.errors, [], "errors of the list")
        return {g.group_id: (g.state, g.type) for g in found.valid if g.group_id in (classic, modern)}

    stable = ConsumerGroupState.STABLE
    both = {classic: (stable, ConsumerGroupType.CLASSIC), modern: (stable, ConsumerGroupType.CONSUMER)}
    ensure_eq(listed(), both, "the list")
    ensure_eq(list(listed(types={ConsumerGroupType.CONSUMER})), [modern], "those of the consumer protocol")
    ensure_eq(list(listed(states={ConsumerGroupState.EMPTY})), [], "the empty ones")
    for group, kind in ((classic, ConsumerGroupType.CLASSIC), (modern, ConsumerGroupType.CONSUMER)):
        described = client.describe_consumer_groups([group], request_timeout=LONG)[group].result(LONG)
        ensure_eq((described.state, described.type), (stable, kind), f"the state of {group}")
        ensure_eq(len(described.members), 1, f"the members of {group}")
        member = described.members[0]
        assigned = sorted(tp.partition for tp in member.assignment.topic_partitions)
        ensure_eq(assigned, [0, 1, 2, 3], f"what the member of {group} has")
        ensure_eq(described.coordinator.port > 0, True, "the coordinator is told")
        refused(KafkaError.NON_EMPTY_GROUP, client.delete_consumer_groups([group])[group], "deleting it")
    missing = unique("missing")
    refused(KafkaError.GROUP_ID_NOT_FOUND, client.delete_consumer_groups([missing])[missing], "a missing group")
    a.ended()
    b.ended()

    def offsets(group, parts=None):
        asked = [ConsumerGroupTopicPartitions(group, parts)]
        found = client.list_consumer_group_offsets(asked)[group].result(LONG).topic_partitions
        return {tp.partition: tp.offset for tp in found}

    for group in (classic, modern):
        ensure_eq(offsets(group), {p: 20 for p in range(4)}, f"the offsets of {group}")
        moved = [ConsumerGroupTopicPartitions(group, [TopicPartition(name, 1, 5), TopicPartition(name, 2, 6)])]
        for tp in client.alter_consumer_group_offsets(moved)[group].result(LONG).topic_partitions:
            ensure(tp.error is None, f"{tp}")
        ensure_eq(offsets(group), {0: 20, 1: 5, 2: 6, 3: 20}, f"the changed offsets of {group}")
        one = [TopicPartition(name, 2)]
        ensure_eq(offsets(group, one), {2: 6}, "one of them")
    restart("kill")
    # librdkafka does not repeat an admin's request that went out on the connection that just broke.
    client = admin()
    for group in (classic, modern):
        ensure_eq(offsets(group), {0: 20, 1: 5, 2: 6, 3: 20}, f"the offsets of {group} after a kill")
        again = Reader("again", group, [name])
        until("what was set back is read", lambda: again.check() or len(again.values()) >= 29)
        again.ended()
        ensure_eq(len(again.values()), 29, "how much that is")
        client.delete_consumer_groups([group])[group].result(LONG)
    ensure_eq(listed(), {}, "nothing is left")


def places():
    """Offsets by place and time, records deleted, leaders elected."""
    client = admin()
    name = topic("places", 2)
    produce(Producer(settings()), name, range(100), 2)
    parts = [TopicPartition(name, p) for p in range(2)]

    def at(spec):
        found = client.list_offsets({part: spec for part in parts}, request_timeout=LONG)
        return [found[part].result(LONG).offset for part in parts]

    ensure_eq(at(OffsetSpec.earliest()), [0, 0], "the first")
    ensure_eq(at(OffsetSpec.latest()), [50, 50], "the end")
    ensure_eq(at(OffsetSpec.for_timestamp(0)), [0, 0], "since 1970")
    ensure(all(0 <= offset < 50 for offset in at(OffsetSpec.max_timestamp())), "the latest in time is a record")
    cut = client.delete_records([TopicPartition(name, 0, 20), TopicPartition(name, 1, -1)])
    low = {part.partition: future.result(LONG).low_watermark for part, future in cut.items()}
    ensure_eq(low, {0: 20, 1: 50}, "what is left begins here")
    beyond = TopicPartition(name, 0, 1000)
    refused(KafkaError.OFFSET_OUT_OF_RANGE, client.delete_records([beyond])[beyond], "beyond the end")
    ensure_eq(at(OffsetSpec.earliest()), [20, 50], "the first now")
    restart("kill")
    # Leader epochs count up after a kill; this client knows the old ones until it asks for metadata again.
    client = admin()
    ensure_eq(at(OffsetSpec.earliest()), [20, 50], "the first after a kill")


def not_offered():
    """Access rules and credentials are not offered; asking for them says so at once."""
    client = admin()
    everything = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                  AclPermissionType.ANY)
    for what, ask in {
        "access rules": lambda: client.describe_acls(everything, request_timeout=10),
        "credentials": lambda: client.describe_user_scram_credentials(request_timeout=10),
    }.items():
        try:
            ask().result(LONG)
            raise Broken(f"{what}: it was not refused")
        except KafkaException as e:
            codes = (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION, KafkaError.SECURITY_DISABLED)
            ensure(e.args[0].code() in codes, f"{what}: {e}")
