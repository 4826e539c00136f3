//! `tontine broker` under clients that others wrote: real processes on both sides.
//!
//! Each test is a program of such a client (`crates/testkit/clients`) with a broker process and a data directory of its own.
//! The program says what must hold, and may have the broker restarted under it. A client that cannot be had on this machine
//! is shown as ignored, with the reason; with `CI=true` that is a failure.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod broker;
mod control;
mod trial;

use std::process::ExitCode;
use tontine_testkit::foreign;

/// Each test is a broker and a client, which wait for each other most of the time.
const THREADS: usize = 4;

fn main() -> ExitCode {
    let mut arguments = libtest_mimic::Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let confluent = [
        "records",
        "many_batches",
        "group_range",
        "group_cooperative",
        "group_consumer",
        "static_members",
        "transactions",
        "fencing",
        "topics",
        "configs",
        "groups",
        "places",
        "not_offered",
    ];
    let franz_go = [
        "records",
        "stream",
        "group_range",
        "group_cooperative",
        "group_consumer",
        "transactions",
        "fencing",
        "topics",
        "configs",
        "groups",
        "places",
        "not_offered",
    ];
    let java = [
        "stream",
        "group_range",
        "group_cooperative",
        "group_consumer",
        "transactions",
        "fencing",
        "not_offered",
        "tools_topics",
        "tools_groups",
        "tools_data",
        "word_count",
    ];
    let rust = ["rskafka", "rdkafka_group", "rdkafka_transactions"];
    let mut trials = Vec::new();
    trials.extend(confluent.map(|name| trial::trial("confluent", foreign::python, &[name])));
    trials.extend(franz_go.map(|name| trial::trial("franz_go", foreign::golang, &[name])));
    trials.extend(java.map(|name| trial::trial("java", foreign::java, &[name])));
    trials.extend(rust.map(|name| trial::trial("rust", foreign::rust, &[name])));
    if arguments.filter.is_none() && !arguments.list {
        prepare();
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Fetches and builds all clients while the first ones are already at work. What is missing is said by the tests.
fn prepare() {
    for find in [foreign::python, foreign::golang, foreign::java, foreign::rust] {
        std::thread::spawn(move || drop(find()));
    }
}
