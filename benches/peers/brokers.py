#!/usr/bin/env python3
"""What one franz-go client gets through the embedded broker and through Apache Kafka, in turns, in the same run.

    benches/peers/brokers.py --rounds 3

acks=all, no compression, records on the disk, and the flush policy that both have by default: the operating system decides.
With --durable topics have flush.messages=1: both sync before each answer. Needs cargo, Go, a JDK of 17 or later, Maven.
PEERS_BUILT=1 takes what has been built before.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

from run import HERE, PEER_TARGET, TONTINE, Broker, Missing

KINDS = ("embedded", "kafka")
DURABLE = ["--set", "flush.messages=1"]


def client():
    binary = PEER_TARGET / "peer-throughput"
    if not (os.environ.get("PEERS_BUILT") and binary.exists()):
        subprocess.run(["go", "build", "-o", str(binary), "./throughput"], cwd=HERE / "go", check=True)
    return str(binary)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--sizes", default="128,1024")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--durable", action="store_true")
    args = parser.parse_args()
    throughput = client()
    sizes = [int(size) for size in args.sizes.split(",")]
    seen = {}
    with tempfile.TemporaryDirectory(prefix="tontine-brokers-") as folder, \
            Broker("embedded", ["--data-dir", folder]) as ours, Broker("kafka") as theirs:
        for number in range(args.rounds + 1):
            for size in sizes:
                for kind, broker in zip(KINDS, (ours, theirs)):
                    topic = f"throughput-{size}-{number}"
                    subprocess.run([str(TONTINE), "topic", "create", topic, "--partitions", str(args.partitions),
                                    "--bootstrap-server", broker.address, *(DURABLE if args.durable else [])], check=True,
                                   capture_output=True)
                    records = args.records * 128 // max(size, 128)
                    ended = subprocess.run([throughput, "-bootstrap-server", broker.address, "-topic", topic, "-records",
                                            str(records), "-size", str(size)], check=True, text=True, capture_output=True)
                    # The first round warms both up.
                    if number > 0:
                        for what, rate in json.loads(ended.stdout).items():
                            seen.setdefault((size, what), {}).setdefault(kind, []).append(rate)
    print("| bytes | records/s | embedded | Apache Kafka | ratio |\n|---|---|---|---|---|")
    for (size, what), rates in seen.items():
        ours, theirs = (statistics.median(rates[kind]) for kind in KINDS)
        print(f"| {size} | {what.removesuffix('_per_s')} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    try:
        main()
    except Missing as why:
        raise SystemExit(f"brokers.py: {why}")
