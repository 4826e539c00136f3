//! Random histories of the consumer protocol: real members and a real coordinator, and between them a network that
//! loses, delays and repeats requests, mixes those of different members, lets old ones arrive when nobody waits any more,
//! and loses and delays answers; members that close, die and are started again; subscriptions and topics that change; a log that fails; a coordinator that reads it
//! again.
//!
//! After every event no partition may be used by two members, unless one of them was thrown out and cannot know it yet.
//! When everything works again, the group has to come to rest: everybody at its target, every partition used, nothing
//! else on the way. Every history follows from its number: `HISTORY=7` tells one again, `HISTORIES=1000000` tells more.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
#[path = "../two_sides/dice.rs"]
mod dice;
mod world;

use world::World;

/// In CI: all tests of this file together.
const HISTORIES: u64 = 100_000;
/// As many tests, so that they run side by side.
const TESTS: u64 = 4;

fn tell(part: u64) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let all = match number("HISTORY") {
        Some(one) => one..one + 1,
        None => 0..number("HISTORIES").unwrap_or(HISTORIES),
    };
    let (mut told, mut events) = (0u64, 0u64);
    for number in all.filter(|number| number % TESTS == part) {
        let history = std::panic::catch_unwind(|| World::new(number).tell());
        events += history.unwrap_or_else(|_| panic!("history {number}: tell it again with HISTORY={number}"));
        told += 1;
    }
    println!("{told} histories of the consumer protocol with {events} events");
}

#[test]
fn no_partition_has_two_users_and_all_comes_to_rest_in_the_first_quarter_of_the_histories() {
    tell(0);
}

#[test]
fn no_partition_has_two_users_and_all_comes_to_rest_in_the_second_quarter_of_the_histories() {
    tell(1);
}

#[test]
fn no_partition_has_two_users_and_all_comes_to_rest_in_the_third_quarter_of_the_histories() {
    tell(2);
}

#[test]
fn no_partition_has_two_users_and_all_comes_to_rest_in_the_last_quarter_of_the_histories() {
    tell(3);
}
