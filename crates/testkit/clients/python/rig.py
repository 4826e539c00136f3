"""What the scenarios of confluent-kafka (librdkafka) stand on: the broker's address and levers, and ways to wait.

Nothing here waits for a fixed time: a condition is asked until it holds, or the deadline says what did not come.
"""

import os
import socket
import threading
import time
import uuid

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP = os.environ["TONTINE_BOOTSTRAP"]
CONTROL = os.environ.get("TONTINE_CONTROL", "")
# For what never comes, not for what is slow.
LONG = 60.0


class Broken(Exception):
    """A promise that did not hold."""


def ensure(condition, what):
    if not condition:
        raise Broken(what)


def ensure_eq(left, right, what):
    if left != right:
        raise Broken(f"{what}: got {left!r}, expected {right!r}")


def until(what, condition, deadline=LONG):
    """Asks until the answer is true, and returns it."""
    end = time.monotonic() + deadline
    while True:
        found = condition()
        if found:
            return found
        ensure(time.monotonic() < end, f"waited {deadline} s in vain: {what}")
        time.sleep(0.02)


def restart(how):
    """The broker ends (`graceful` or `kill`), starts again on its data directory, and listens when this returns."""
    if not CONTROL:
        return
    host, port = CONTROL.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=LONG) as control:
        control.sendall(f"{how}\n".encode())
        answer = control.makefile().readline().strip()
        ensure_eq(answer, "ok", f"the restart ({how})")


def unique(stem):
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def settings(**more):
    # The default, `rebootstrap`, forgets the only broker there is when it goes down, and with it what is on its way: requests
    # of an admin and coordinators of transactions then wait for ever, whoever the broker is.
    base = {"bootstrap.servers": BOOTSTRAP, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200,
            "metadata.recovery.strategy": "none"}
    return base | {key.replace("_", "."): value for key, value in more.items()}


def admin():
    return AdminClient(settings())


def topic(stem, partitions, **config):
    name = unique(stem)
    new = NewTopic(name, num_partitions=partitions, replication_factor=1,
                   config={key.replace("_", "."): value for key, value in config.items()})
    client = admin()
    client.create_topics([new])[name].result(LONG)
    return name


def produce(producer, name, values, partitions):
    """Writes each value to the partition that its number says, and waits until all are acknowledged."""
    failed = []

    def told(error, _):
        if error is not None:
            failed.append(error)

    for value in values:
        while True:
            try:
                producer.produce(name, str(value), partition=value % partitions, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    ensure_eq(producer.flush(LONG), 0, "records that were never acknowledged")
    ensure(not failed, f"records that were refused: {failed[:3]}")


def read_all(name, partitions, isolation="read_uncommitted"):
    """Every value of a topic, by partition, up to its end as this isolation level sees it."""
    consumer = Consumer(settings(group_id=unique("reader"), auto_offset_reset="earliest",
                                 enable_auto_commit=False, isolation_level=isolation,
                                 enable_partition_eof=True, check_crcs=True))
    consumer.assign([TopicPartition(name, p, 0) for p in range(partitions)])
    values = {p: [] for p in range(partitions)}
    at_end = set()

    def turn():
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                values[message.partition()].append(message.value().decode())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition())
        return len(at_end) == partitions

    until(f"the end of {name}", turn)
    consumer.close()
    return values


class Reader(threading.Thread):
    """A member of a group: reads, keeps what it saw, commits after each read."""

    def __init__(self, name, group, topics, **more):
        super().__init__(name=name, daemon=True)
        self.seen = []
        self.commits = {}
        self.owned = set()
        self.failed = None
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.incremental = more.get("partition_assignment_strategy") == "cooperative-sticky" or (
            more.get("group_protocol") == "consumer")
        self.consumer = Consumer(settings(group_id=group, client_id=name, auto_offset_reset="earliest",
                                          enable_auto_commit=False, check_crcs=True,
                                          topic_metadata_refresh_interval_ms=1000, **more))
        self.consumer.subscribe(topics, on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.revoked)
        self.start()

    def assigned(self, consumer, partitions):
        with self.lock:
            if not self.incremental:
                self.owned.clear()
            self.owned.update(p.partition for p in partitions)

    def revoked(self, consumer, partitions):
        with self.lock:
            self.owned.difference_update(p.partition for p in partitions)

    def run(self):
        try:
            while not self.stop.is_set():
                self.turn()
            self.consumer.close()
        except BaseException as e:  # a thread's end has to be seen by the one who waits
            self.failed = e

    def turn(self):
        messages = self.consumer.consume(100, 0.1)
        # Errors here are events of a connection that is being made again; fatal ones end the member.
        for message in messages:
            if message.error() is not None and message.error().code() == KafkaError._FATAL:
                raise Broken(str(message.error()))
        read = [m for m in messages if m.error() is None]
        if not read:
            return
        with self.lock:
            self.seen.extend((m.partition(), m.offset(), m.value().decode()) for m in read)
        self.commit()

    def commit(self):
        try:
            for part in self.consumer.commit(asynchronous=False):
                if part.error is None:
                    with self.lock:
                        before = self.commits.get(part.partition, -1)
                        self.commits[part.partition] = max(before, part.offset)
        except KafkaException:
            # Refused or cut off: the records come again, to this member or to another.
            pass

    def values(self):
        with self.lock:
            return [value for _, _, value in self.seen]

    def partitions(self):
        with self.lock:
            return set(self.owned)

    def ended(self):
        self.stop.set()
        self.join(LONG)
        ensure(not self.is_alive(), f"{self.name} closed in time")
        self.check()

    def check(self):
        if self.failed is not None:
            raise Broken(f"{self.name} failed: {self.failed!r}")


def shared(readers, partitions):
    """Each of the readers has some, together they have all, none twice."""
    for reader in readers:
        reader.check()
    owned = [reader.partitions() for reader in readers]
    return all(owned) and sorted(p for some in owned for p in some) == list(range(partitions))
