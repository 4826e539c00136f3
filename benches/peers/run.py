#!/usr/bin/env python3
"""Reads the same topics with tontine and with other clients, one after the other, several rounds, on one broker.

    benches/peers/run.py --broker embedded --rounds 5
    benches/peers/run.py --broker kafka --work 128:none,1024:none --only tontine,floor,librdkafka

Builds what can be built here; what cannot is named in the table with the reason. Needs cargo and Python 3; for the Java client
and for Apache Kafka a JDK of 17 or later and Maven; for franz-go, Go. Every line that a client printed goes to --lines.
PEERS_BUILT=1 takes what has been built before.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PEER_TARGET = Path(os.environ.get("PEERS_TARGET_DIR", TARGET / "peers"))
TONTINE = TARGET / "release" / "tontine"
RECORDS = {128: 3_000_000, 1024: 600_000, 10240: 80_000}


class Missing(Exception):
    """A client that is not to be had here, and why."""


def run(command, **more):
    return subprocess.run([str(word) for word in command], check=True, text=True, **more)


def built(package):
    """The binary of a Rust peer."""
    if not (os.environ.get("PEERS_BUILT") and (PEER_TARGET / "release" / package).exists()):
        command = ["cargo", "build", "--release", "--locked", "--manifest-path", HERE / "Cargo.toml", "-p", package,
                   "--target-dir", PEER_TARGET]
        built = subprocess.run([str(word) for word in command], text=True, stderr=subprocess.PIPE)
        if built.returncode != 0:
            why = [line for line in built.stderr.splitlines() if line.startswith("error")]
            raise Missing(f"does not build: {(why or ['see cargo'])[0]}")
    return [PEER_TARGET / "release" / package]


def go():
    if not shutil.which("go"):
        raise Missing("no Go on this machine")
    binary = PEER_TARGET / "peer-franz-go"
    if os.environ.get("PEERS_BUILT") and binary.exists():
        return [binary]
    made = subprocess.run(["go", "build", "-o", str(binary), "."], cwd=HERE / "go", text=True, stderr=subprocess.PIPE)
    if made.returncode != 0:
        raise Missing(f"does not build: {made.stderr.strip().splitlines()[-1]}")
    return [binary]


def java():
    if not shutil.which("javac") or not shutil.which("mvn"):
        raise Missing("no JDK or no Maven on this machine")
    path = said_by_rig("--class-path")["class path"]
    classes = PEER_TARGET / "java"
    classes.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["javac", "-cp", path, "-d", str(classes), str(HERE / "java" / "Consume.java")], text=True,
                          stderr=subprocess.PIPE)
    if made.returncode != 0:
        raise Missing(f"does not compile: {made.stderr.strip().splitlines()[0][-100:]}")
    quiet = classes / "log4j2.properties"
    quiet.write_text("rootLogger.level = error\n")
    return ["java", f"-Dlog4j2.configurationFile={quiet}", "-cp", f"{classes}:{path}", "Consume"]


def ours():
    return [TONTINE, "bench", "consume"]


# Name, how to get it, modes, protocols it speaks.
BOTH = ("classic", "consumer")
PEERS = [
    ("tontine", ours, ("default", "tuned"), BOTH),
    ("floor", lambda: built("peer-floor"), ("default",), BOTH),
    ("barnabas", lambda: built("peer-barnabas"), ("default",), ("classic",)),
    ("kacrab", lambda: built("peer-kacrab"), ("default", "tuned"), BOTH),
    ("krafka", lambda: built("peer-krafka"), ("default", "tuned"), BOTH),
    ("confluent", lambda: built("peer-confluent"), ("default", "tuned"), ("consumer",)),
    ("librdkafka", lambda: built("peer-librdkafka"), ("default", "tuned"), BOTH),
    ("franz-go", go, ("default", "tuned"), BOTH),
    ("java", java, ("default", "tuned"), BOTH),
]
TUNED = ["-X", "max.poll.records=50000"]


def rig_command(*more):
    built = TARGET / "debug" / "examples" / "kafka"
    if os.environ.get("PEERS_BUILT") and built.exists():
        return [str(built), *more]
    return ["cargo", "run", "-q", "--locked", "--manifest-path", str(ROOT / "Cargo.toml"), "-p", "tontine-testkit",
            "--example", "kafka", "--", *more]


def read_said(stream, words):
    """Lines of the form `WORDS value`, until all are there."""
    said = {}
    while len(said) < len(words):
        line = stream.readline()
        if not line:
            raise Missing("the broker did not start")
        for word in words:
            if line.startswith(word):
                said[word] = line[len(word):].strip()
    return said


def said_by_rig(*more):
    with subprocess.Popen(rig_command(*more), stdout=subprocess.PIPE, text=True) as rig:
        return read_said(rig.stdout, ["class path"])


class Broker:
    """A broker for as long as the block runs."""

    def __init__(self, kind, embedded=()):
        """`embedded`: more arguments for the embedded broker."""
        self.kind = kind
        self.embedded = embedded

    def __enter__(self):
        ours = [str(TONTINE), "broker", "--listen", "127.0.0.1:0", *self.embedded]
        command = rig_command() if self.kind == "kafka" else ours
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = read_said(self.process.stdout, ["listening on"])["listening on"]
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.kind != "kafka":
            self.process.terminate()
        self.process.wait()


def measure(command, name, mode, args, address, topic, records, round_number):
    group = f"{name}-{mode}-{topic}-{round_number}-{int(time.time() * 1000)}"
    command = [*command, "--bootstrap-server", address, "--topic", topic, "--group", group, "--records", records,
               "--mode", mode]
    if name != "floor":
        command += ["--protocol", protocol_of(name, args)]
    if name == "floor":
        command += ["--partitions", args.partitions]
    if name == "tontine" and mode == "tuned":
        command += TUNED
    ended = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=args.patience)
    if ended.returncode != 0:
        raise Missing(f"failed: {(ended.stderr.strip().splitlines() or ['no word'])[-1][:100]}")
    return json.loads(ended.stdout.strip().splitlines()[-1])


def protocol_of(name, args):
    speaks = next(protocols for peer, _, _, protocols in PEERS if peer == name)
    return args.protocol if args.protocol in speaks else speaks[0]


def table(title, results, reasons):
    """Medians, and the ratios to ours and to the floor."""
    cost = {key: [line["subscribe_cpu_ns_per_record"] for line in lines] for key, lines in results.items() if lines}
    median = {key: statistics.median(values) for key, values in cost.items()}
    us, floor = median.get(("tontine", "default")), median.get(("floor", "default"))
    ratio = lambda value, base: f"{value / base:.2f}" if base else "-"
    print(f"\n### {title}\n")
    print("| client | CPU ns per record (min - max) | to tontine | to the floor | 1000 records/s | first record, ms | RSS, MiB |")
    print("|---|---|---|---|---|---|---|")
    for key in sorted(median, key=median.get):
        lines, values = results[key], cost[key]
        of = lambda field: statistics.median(line[field] for line in lines)
        label = f"{lines[0]['peer']} {lines[0]['version']}".replace(" -", "")
        settings = "" if key[0] == "floor" else f", {key[1]}, {lines[0]['protocol']}"
        print(f"| {label}{settings} | **{median[key]:.0f}** ({min(values):.0f} - {max(values):.0f}) "
              f"| {ratio(median[key], us)} | {ratio(median[key], floor)} | {of('subscribe_records_per_s') / 1e3:.0f} "
              f"| {of('first_record_ms'):.0f} | {of('max_rss_kb') / 1024:.0f} |")
    for (name, mode), reason in sorted(reasons.items()):
        print(f"| {name}, {mode} | not measured: {reason} | | | | | |")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--broker", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--protocol", choices=BOTH, default="classic")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--work", default="128:none,1024:none,10240:none,128:lz4,128:zstd",
                        help="value size and compression of each topic, with commas between")
    parser.add_argument("--records", type=int, help="how many; otherwise by the size")
    parser.add_argument("--only", help="names of clients, with commas between")
    parser.add_argument("--patience", type=int, default=300, help="seconds that one run may take")
    parser.add_argument("--lines", type=Path, help="append every line to this file")
    args = parser.parse_args()
    if not os.environ.get("PEERS_BUILT"):
        run(["cargo", "build", "--release", "--locked", "--manifest-path", ROOT / "Cargo.toml", "-p", "tontine-cli"])
    commands, missing = {}, {}
    for name, get, modes, _ in PEERS:
        if args.only and name not in args.only.split(","):
            continue
        try:
            command = get()
            commands.update({(name, mode): command for mode in modes})
        except (Missing, subprocess.CalledProcessError) as why:
            missing.update({(name, mode): str(why) for mode in modes})
    with Broker(args.broker) as broker:
        for work in args.work.split(","):
            size, codec = work.split(":")
            records = args.records or RECORDS.get(int(size), 1_000_000)
            topic = f"bench-{size}-{codec}"
            run([TONTINE, "bench", "load", "-b", broker.address, "-t", topic, "--partitions", args.partitions, "-n", records,
                 "--size", size, "-z", codec])
            results, reasons = {key: [] for key in commands}, dict(missing)
            for round_number in range(args.rounds):
                keys = list(commands)
                # Nobody is always first.
                for key in keys[round_number % len(keys):] + keys[:round_number % len(keys)]:
                    if key in reasons:
                        continue
                    try:
                        line = measure(commands[key], *key, args, broker.address, topic, records, round_number)
                    except (Missing, subprocess.TimeoutExpired, ValueError) as why:
                        reasons[key] = str(why)
                        continue
                    results[key].append(line)
                    if args.lines:
                        with args.lines.open("a") as out:
                            out.write(json.dumps({"broker": args.broker, "topic": topic, **line}) + "\n")
            where = "the embedded broker" if args.broker == "embedded" else "Apache Kafka 4.4.0"
            table(f"{size} B, {codec}, {args.partitions} partitions, {records:,} records, {where}", results, reasons)
            run([TONTINE, "topic", "delete", topic, "-b", broker.address], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
