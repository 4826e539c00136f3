"""confluent-kafka against a broker: `scenarios.py NAME`. Ends with 0 when everything held, else says what did not."""

import faulthandler
import sys
import time

import administration
import transactions
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from rig import (LONG, Reader, ensure, ensure_eq, produce, read_all, restart, settings, shared, topic, unique, until)


def records():
    """Codecs, acknowledgements, headers, keys, timestamps, empty values, positions by time, and what is too large."""
    name = topic("records", 1)
    expected = []
    start = int(time.time() * 1000) - 100_000
    for acks in ("all", "1", "0"):
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = Producer(settings(acks=acks, compression_type=codec, linger_ms=5,
                                         enable_idempotence=acks == "all"))
            for i in range(20):
                at = start + 1000 * len(expected)
                value = None if i == 7 else (f"{acks} {codec} {i} " * 20).encode()
                key = None if i % 2 else f"key {i}".encode()
                headers = [("a", b"1"), ("a", None), ("codec", codec.encode())]
                producer.produce(name, value, key, partition=0, timestamp=at, headers=headers)
                expected.append((key, value, headers, at))
            ensure_eq(producer.flush(LONG), 0, "records that were never acknowledged")
    consumer = Consumer(settings(group_id=unique("group"), check_crcs=True, auto_offset_reset="earliest"))
    consumer.assign([TopicPartition(name, 0, 0)])
    read = []
    until("all records", lambda: read.extend(consumer.consume(100, 0.2)) or len(read) >= len(expected))
    got = [(m.key(), m.value(), m.headers(), m.timestamp()[1]) for m in read if m.error() is None]
    # acks=0 promises no order between producers, and nothing else is running here: everything is there once.
    ensure_eq(sorted(map(repr, got)), sorted(map(repr, expected)), "the records")
    ensure_eq(got[:200], expected[:200], "the acknowledged records in their order")
    ensure_eq(consumer.get_watermark_offsets(TopicPartition(name, 0), LONG), (0, len(expected)), "the watermarks")
    found = consumer.offsets_for_times([TopicPartition(name, 0, start + 50_500)], LONG)
    ensure_eq(found[0].offset, 51, "the first record after a time")
    consumer.close()

    told = []
    producer = Producer(settings(message_max_bytes=3_000_000))
    producer.produce(name, b"x" * 2_000_000, on_delivery=lambda error, _: told.append(error))
    producer.flush(LONG)
    ensure_eq(told[0].code(), KafkaError.MSG_SIZE_TOO_LARGE, "a record that is too large")


def many_batches():
    """A stream of some megabytes, in small fetches, across two restarts while it is written: nothing lost, nothing doubled."""
    name = topic("stream", 4)
    producer = Producer(settings(linger_ms=2, compression_type="lz4", enable_idempotence=True))
    total = 0
    for how in ("graceful", "kill", None):
        produce_some(producer, name, total, 10_000)
        total += 10_000
        if how:
            restart(how)
    ensure_eq(producer.flush(LONG), 0, "records that were never acknowledged")
    values = read_all(name, 4)
    for partition in range(4):
        wanted = [f"{i} {'x' * 100}" for i in range(total) if i % 4 == partition]
        ensure_eq(len(values[partition]), len(wanted), f"how many records {name}-{partition} has")
        ensure(values[partition] == wanted, f"the records of {name}-{partition} are in order, each once")


def produce_some(producer, name, start, count):
    """Hands records over without waiting for them: a restart meets some on their way."""
    for i in range(start, start + count):
        while True:
            try:
                producer.produce(name, f"{i} {'x' * 100}", partition=i % 4)
                break
            except BufferError:
                producer.poll(0.1)
    producer.poll(0)


def group(**protocol):
    """Two members share, the broker restarts twice under them, one leaves, and what was committed is what comes next."""
    name = topic("group", 6)
    id = unique("group")
    producer = Producer(settings(linger_ms=1))
    produce(producer, name, range(0, 300), 6)
    a = Reader("a", id, [name], **protocol)
    until("a has everything", lambda: shared([a], 6))
    b = Reader("b", id, [name], **protocol)
    until("a and b share", lambda: shared([a, b], 6))
    total = 300
    for how in ("graceful", "kill"):
        restart(how)
        produce(producer, name, range(total, total + 300), 6)
        total += 300
        wanted = {str(i) for i in range(total)}
        until(f"everything is read ({how})", lambda: wanted <= {*a.values(), *b.values()})
        until(f"a and b share ({how})", lambda: shared([a, b], 6))
    b.ended()
    until("a has everything again", lambda: shared([a], 6))
    produce(producer, name, range(total, total + 60), 6)
    total += 60
    wanted = {str(i) for i in range(total)}
    until("everything is read", lambda: wanted <= {*a.values(), *b.values()})
    commits = {p: (total // 6) for p in range(6)}
    until("everything is committed", lambda: a.check() or a.commits == commits)
    a.ended()
    ensure_eq(committed(id, name), commits, "the commits")

    restart("kill")
    ensure_eq(committed(id, name), commits, "the commits after a kill")
    produce(producer, name, range(total, total + 6), 6)
    c = Reader("c", id, [name], **protocol)
    until("the new records are read", lambda: c.check() or len(c.values()) >= 6)
    c.ended()
    ensure_eq(sorted(c.values()), sorted(str(i) for i in range(total, total + 6)), "only what was not committed")


def committed(id, name):
    consumer = Consumer(settings(group_id=id))
    found = consumer.committed([TopicPartition(name, p) for p in range(6)], LONG)
    consumer.close()
    return {part.partition: part.offset for part in found}


def static_members():
    """A member with an instance id comes back without a rebalance, and two with one id fence each other."""
    name = topic("static", 4)
    id = unique("group")
    produce(Producer(settings()), name, range(40), 4)
    # Only range: the twins below need to be told apart by the coordinator alone.
    more = dict(partition_assignment_strategy="range", session_timeout_ms=30_000, heartbeat_interval_ms=300)
    a = Reader("a", id, [name], group_instance_id="one", **more)
    b = Reader("b", id, [name], group_instance_id="two", **more)
    until("a and b share", lambda: shared([a, b], 4))
    had = b.partitions()
    b.ended()
    again = Reader("b", id, [name], group_instance_id="two", **more)
    until("b is back", lambda: shared([a, again], 4))
    ensure_eq(again.partitions(), had, "its partitions")
    twin = Reader("twin", id, [name], group_instance_id="two", **more)
    until("the first twin is fenced", lambda: again.failed)
    ensure("fenced" in str(again.failed).lower(), f"it says why: {again.failed!r}")
    until("the second one has its partitions", lambda: twin.check() or twin.partitions() == had)
    twin.ended()
    a.ended()


SCENARIOS = {
    "records": records,
    "many_batches": many_batches,
    "group_range": lambda: group(partition_assignment_strategy="range", session_timeout_ms=10_000,
                                 heartbeat_interval_ms=300),
    "group_cooperative": lambda: group(partition_assignment_strategy="cooperative-sticky",
                                       session_timeout_ms=10_000, heartbeat_interval_ms=300),
    "group_consumer": lambda: group(group_protocol="consumer"),
    "static_members": static_members,
    "transactions": transactions.copy_exactly_once,
    "fencing": transactions.fencing,
    "topics": administration.topics,
    "configs": administration.configs,
    "groups": administration.groups,
    "places": administration.places,
    "not_offered": administration.not_offered,
}

if __name__ == "__main__":
    faulthandler.enable()
    SCENARIOS[sys.argv[1]]()
