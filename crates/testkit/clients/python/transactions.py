"""Transactions of librdkafka: read, process, write, across restarts of the broker; aborts; fencing."""

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from rig import LONG, Broken, ensure, ensure_eq, produce, read_all, restart, settings, topic, unique, until

PARTITIONS = 3
RECORDS = 900


def copy_exactly_once():
    """Copies a topic in transactions, every fourth of which is given up; restarts on the way. Each record arrives once."""
    source, target = topic("source", PARTITIONS), topic("target", PARTITIONS)
    produce(Producer(settings()), source, range(RECORDS), PARTITIONS)
    copier = Copier(source, target)
    restarts = {3: "graceful", 8: "kill"}
    while not copier.done():
        copier.turn(restarts.pop(copier.turns, None))
    copier.close()
    ensure(not restarts, "the broker was restarted on the way")
    wanted = {p: sorted(i for i in range(RECORDS) if i % PARTITIONS == p) for p in range(PARTITIONS)}
    read = read_all(target, PARTITIONS, "read_committed")
    got = {p: [int(v) for v in values] for p, values in read.items()}
    ensure_eq(got, wanted, "the records as read_committed sees them")
    everything = sum(len(values) for values in read_all(target, PARTITIONS).values())
    ensure(everything > RECORDS, "read_uncommitted sees those of aborted transactions as well")
    restart("kill")
    ensure_eq(read_all(target, PARTITIONS, "read_committed"), read, "the records after a kill")


class Copier:
    def __init__(self, source, target):
        self.source, self.target, self.group = source, target, unique("copier")
        self.turns, self.copied = 0, 0
        self.id = unique("tx")
        self.consumer = Consumer(settings(group_id=self.group, auto_offset_reset="earliest",
                                          enable_auto_commit=False, isolation_level="read_committed"))
        self.consumer.subscribe([source])
        self.begin()

    def begin(self):
        self.producer = Producer(settings(transactional_id=self.id, transaction_timeout_ms=60_000))
        retried(lambda: self.producer.init_transactions(LONG))

    def done(self):
        return self.copied == RECORDS

    def turn(self, restarted):
        messages = []
        until("records to copy", lambda: messages.extend(
            m for m in self.consumer.consume(50, 0.2) if m.error() is None) or messages)
        self.turns += 1
        give_up = self.turns % 4 == 2
        try:
            self.producer.begin_transaction()
            for m in messages:
                self.producer.produce(self.target, m.value(), partition=m.partition())
                self.producer.poll(0)
            if restarted:
                restart(restarted)
            retried(lambda: self.producer.send_offsets_to_transaction(
                self.consumer.position(self.consumer.assignment()), self.consumer.consumer_group_metadata(), LONG))
            if give_up:
                self.producer.flush(LONG)
                self.abort(messages)
            else:
                retried(lambda: self.producer.commit_transaction(LONG))
                self.copied += len(messages)
        except KafkaException as e:
            error = e.args[0]
            if error.txn_requires_abort():
                self.abort(messages)
            else:
                raise

    def abort(self, messages):
        """Gives the transaction up and reads its records again."""
        retried(lambda: self.producer.abort_transaction(LONG))
        first = {}
        for m in messages:
            first[m.partition()] = min(first.get(m.partition(), m.offset()), m.offset())
        for partition, offset in first.items():
            self.consumer.seek(TopicPartition(self.source, partition, offset))

    def close(self):
        found = self.consumer.committed([TopicPartition(self.source, p) for p in range(PARTITIONS)], LONG)
        ensure_eq([part.offset for part in found], [RECORDS // PARTITIONS] * PARTITIONS, "the offsets")
        self.consumer.close()


def retried(call):
    """librdkafka says itself which calls may simply be made again."""
    for _ in range(100):
        try:
            return call()
        except KafkaException as e:
            if not e.args[0].retriable():
                raise
    raise Broken("a call that may be repeated never went well")


def fencing():
    """The second producer of an id fences the first, and what the first had open is aborted."""
    name, id = topic("fenced", 1), unique("tx")
    first, second = (Producer(settings(transactional_id=id)) for _ in range(2))
    first.init_transactions(LONG)
    first.begin_transaction()
    first.produce(name, "lost", partition=0)
    first.flush(LONG)
    second.init_transactions(LONG)
    second.begin_transaction()
    second.produce(name, "kept", partition=0)
    second.commit_transaction(LONG)
    try:
        first.commit_transaction(LONG)
        raise Broken("the first producer could still commit")
    except KafkaException as e:
        ensure(e.args[0].fatal(), f"the first producer is fenced for good: {e}")
        ensure_eq(e.args[0].code(), KafkaError._FENCED, "the error")
    ensure_eq(read_all(name, 1, "read_committed"), {0: ["kept"]}, "what was committed")
    ensure_eq(read_all(name, 1), {0: ["lost", "kept"]}, "what was written")
