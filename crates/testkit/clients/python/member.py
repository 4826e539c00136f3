"""A librdkafka consumer in a group, seen from its application: prints what it is told, one JSON object a line, each with the
time in microseconds since 1970. Commits after each turn, and in the revoked callback what is not committed yet. SIGTERM closes
it in order.

Arguments: topics with commas between, then key=value settings of librdkafka.
"""

import json
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

# At most this many records a turn.
TURN = 200


def say(event, **fields):
    print(json.dumps({"at": time.time_ns() // 1000, "event": event, **fields}), flush=True)


def names(partitions):
    return sorted(f"{p.topic}-{p.partition}" for p in partitions)


class Member:
    def __init__(self, topics, settings):
        self.stopped = False
        # What was delivered and is not committed: partition to next offset.
        self.pending = {}
        self.consumer = Consumer(settings)
        self.consumer.subscribe(topics, on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.lost)

    def stop(self, *_):
        self.stopped = True

    def assigned(self, _, partitions):
        say("called", callback="assigned", partitions=names(partitions))
        say("returned", callback="assigned")

    def revoked(self, _, partitions):
        say("called", callback="revoked", partitions=names(partitions))
        self.commit()
        say("returned", callback="revoked")

    def lost(self, _, partitions):
        say("called", callback="lost", partitions=names(partitions))
        for partition in partitions:
            self.pending.pop((partition.topic, partition.partition), None)
        say("returned", callback="lost")

    def turn(self):
        # One by one: what is handed out after a callback belongs to what the callback left.
        message = self.consumer.poll(0.2)
        for _ in range(TURN):
            if message is None:
                break
            self.take(message)
            message = self.consumer.poll(0)
        if message is not None:
            self.take(message)
        self.commit()

    def take(self, message):
        if message.error() is not None:
            say("failed", error=str(message.error()))
            return
        partition = (message.topic(), message.partition())
        say("delivered", partition=f"{partition[0]}-{partition[1]}", offsets=[message.offset()])
        self.pending[partition] = message.offset() + 1

    def commit(self):
        if not self.pending:
            return
        pending, self.pending = self.pending, {}
        offsets = {f"{topic}-{partition}": offset for (topic, partition), offset in pending.items()}
        say("commit_sent", offsets=offsets)
        try:
            committed = self.consumer.commit(
                offsets=[TopicPartition(*partition, offset) for partition, offset in pending.items()],
                asynchronous=False)
            refused = next((p.error for p in committed if p.error is not None), None)
        except KafkaException as e:
            refused = e.args[0]
        if refused is None:
            say("commit_ended", offsets=offsets)
        elif refused.code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._WAIT_COORD):
            say("commit_ended", offsets=offsets, unknown=str(refused))
        else:
            say("commit_ended", offsets=offsets, refused=str(refused))


def main():
    member = Member(sys.argv[1].split(","), dict(pair.split("=", 1) for pair in sys.argv[2:]))
    signal.signal(signal.SIGTERM, member.stop)
    say("started")
    while not member.stopped:
        member.turn()
    member.consumer.close()
    say("closed")


main()
