//! What the assignors cost: CPU time of one assignment, the lowest seen, in milliseconds. A table, not a test.
//!
//! `cargo bench -p tontine-group --bench assignors [-- ROUNDS]`

use bytes::Bytes;
use std::{fs, sync::Arc, time::Duration};
use tontine_group::{
    Assignment, TopicPartition,
    assignor::{ALL, Assignor, CooperativeSticky, MemberSubscription, SubscriptionReader, range, uniform},
    topics::Topics,
};
use tontine_wire::consumer_protocol::{Subscription, TopicPartitions};

/// A group of some size.
struct Case {
    name: &'static str,
    topics: usize,
    partitions: i32,
    members: usize,
    wants: Wants,
}

/// Which topics the members want.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wants {
    All,
    /// Each a random half.
    Halves,
    /// All want all but the first member, which wants one topic less.
    AllButOne,
}

const CASES: [Case; 6] = [
    Case { name: "b", topics: 100, partitions: 100, members: 100, wants: Wants::All },
    Case { name: "c", topics: 500, partitions: 2000, members: 2000, wants: Wants::All },
    Case { name: "d", topics: 1000, partitions: 10, members: 200, wants: Wants::Halves },
    Case { name: "e", topics: 10_000, partitions: 10, members: 200, wants: Wants::Halves },
    Case { name: "g", topics: 500, partitions: 2000, members: 2000, wants: Wants::Halves },
    Case { name: "f", topics: 500, partitions: 2000, members: 2000, wants: Wants::AllButOne },
];

/// An assignor that the broker runs, measured like the others.
#[derive(Debug)]
struct OfTheBroker(&'static str, fn(&Topics, &[MemberSubscription]) -> Assignment);

impl Assignor for OfTheBroker {
    fn name(&self) -> &str {
        self.0
    }

    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        (self.1)(topics, members)
    }
}

fn main() {
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(5);
    println!("CPU ms, lowest of {rounds}; moved: partitions taken from living members");
    for case in &CASES {
        let Case { name, topics, partitions, members, wants } = case;
        println!("\n{name}: {topics} topics x {partitions} partitions, {members} members, wants: {wants:?}");
        println!(
            "{:<20} {:>8} {:>8} {:>8} {:>12} {:>12}",
            "", "fresh", "leave", "join", "moved, leave", "moved, join"
        );
        for assignor in assignors() {
            measure(case, &*assignor, rounds);
        }
        println!("{:<20} {:>8} {:>8.2}", "reading it all", "", millis(reading(case, rounds)));
    }
}

fn assignors() -> Vec<Arc<dyn Assignor>> {
    let broker = [
        OfTheBroker("broker's uniform", uniform::assign_to_owners),
        OfTheBroker("broker's range", range::assign_without_racks),
    ];
    let builtin = ALL.iter().map(|builtin| (builtin.new)());
    builtin.chain(broker.into_iter().map(|assignor| Arc::new(assignor) as Arc<dyn Assignor>)).collect()
}

fn measure(case: &Case, assignor: &dyn Assignor, rounds: usize) {
    let (topics, mut members) = group(case);
    let newcomer = members.pop();
    let (fresh, first) = lowest(rounds, || assignor.assign(&topics, &members));
    rejoin(assignor, &mut members, &first);
    let mut fewer = members.clone();
    fewer.remove(case.members / 2);
    let (leave, left) = lowest(rounds, || assignor.assign(&topics, &fewer));
    let moved_by_leave = moved(&fewer, &left, |i| if i < case.members / 2 { i } else { i + 1 }, &first);
    members.extend(newcomer);
    let (join, joined) = lowest(rounds, || assignor.assign(&topics, &members));
    let moved_by_join = moved(&members, &joined, |i| i, &first);
    println!(
        "{:<20} {:>8.2} {:>8.2} {:>8.2} {moved_by_leave:>12} {moved_by_join:>12}",
        assignor.name(),
        millis(fresh),
        millis(leave),
        millis(join)
    );
}

/// What it costs the leader to read the subscriptions of members that own everything, before it assigns anything.
fn reading(case: &Case, rounds: usize) -> Duration {
    let (topics, mut members) = group(case);
    members.pop();
    let assigned = CooperativeSticky.assign(&topics, &members);
    rejoin(&CooperativeSticky, &mut members, &assigned);
    let metadata: Vec<_> = members.iter().map(metadata).collect();
    let read = || {
        let mut reader = SubscriptionReader::new();
        let mut read = |bytes| reader.read(String::new(), None, bytes).map_or(0, |member| member.owned.len());
        metadata.iter().map(&mut read).sum::<usize>()
    };
    lowest(rounds, read).0
}

fn metadata(member: &MemberSubscription) -> Bytes {
    let of_a_topic = |same: &[TopicPartition]| TopicPartitions {
        topic: same[0].topic.to_string(),
        partitions: same.iter().map(|partition| partition.partition).collect(),
    };
    let subscription = Subscription {
        topics: member.topics.iter().map(ToString::to_string).collect(),
        user_data: member.user_data.clone(),
        owned_partitions: member.owned.chunk_by(|a, b| a.topic == b.topic).map(of_a_topic).collect(),
        generation_id: member.generation.unwrap_or(-1),
        rack_id: None,
    };
    subscription.to_metadata(3)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Topics, and one member more than the case says, to join later.
fn group(case: &Case) -> (Topics, Vec<MemberSubscription>) {
    let names: Vec<Arc<str>> = (0..case.topics).map(|i| format!("topic-{i:05}").into()).collect();
    let topics = names.iter().fold(Topics::new(), |topics, name| topics.with(name.clone(), case.partitions));
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut member = |i: usize| {
        let wanted = names.iter().enumerate().filter(|(topic, _)| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            match case.wants {
                Wants::All => true,
                Wants::Halves => random & (1 << 20) == 0,
                Wants::AllButOne => i != 0 || *topic != 0,
            }
        });
        let topics = wanted.map(|(_, name)| name.clone()).collect();
        MemberSubscription { member_id: format!("consumer-{i:05}"), topics, ..MemberSubscription::default() }
    };
    let members = (0..=case.members).map(&mut member).collect();
    (topics, members)
}

/// Members join again with what they got.
fn rejoin(assignor: &dyn Assignor, members: &mut [MemberSubscription], got: &Assignment) {
    let shares = got.by_member(members.len());
    for (member, owned) in members.iter_mut().zip(shares) {
        member.user_data = assignor.user_data(&owned, 1);
        member.owned = owned;
        member.generation = Some(1);
    }
}

/// Partitions that their owner of before lost although it is still there.
fn moved(
    members: &[MemberSubscription],
    now: &Assignment,
    before: impl Fn(usize) -> usize,
    then: &Assignment,
) -> usize {
    let mut stayed: Vec<Option<u32>> = Vec::new();
    for i in 0..members.len() {
        stayed.resize(stayed.len().max(before(i) + 1), None);
        stayed[before(i)] = Some(i as u32);
    }
    let mut moved = 0;
    for (topic, owners) in then.topics() {
        for (partition, owner) in owners.iter().enumerate() {
            let Some(owner) = owner.and_then(|owner| stayed.get(owner as usize).copied().flatten()) else {
                continue;
            };
            let partition = TopicPartition::new(topic.clone(), partition as i32);
            moved += usize::from(now.owner(&partition.topic, partition.partition) != Some(owner as usize));
        }
    }
    moved
}

/// The lowest CPU time of one run among `rounds` batches, and the result. The system counts CPU time in ticks of some
/// milliseconds, so a batch is as many runs as fill a good number of ticks.
fn lowest<T>(rounds: usize, run: impl Fn() -> T) -> (Duration, T) {
    let batch = |runs: u32| {
        let before = cpu();
        (0..runs).for_each(|_| drop(std::hint::black_box(run())));
        cpu() - before
    };
    let mut runs = 1;
    while batch(runs) < Duration::from_millis(60) {
        runs *= 2;
    }
    let best = (0..rounds).map(|_| batch(runs)).min().unwrap_or_default();
    (best / runs, run())
}

/// The CPU time of this thread where the system tells it (nanoseconds in `schedstat`), otherwise what the clock says.
#[allow(clippy::disallowed_methods)]
fn cpu() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next().and_then(|first| first.parse().ok()));
    nanos.map_or_else(|| START.get_or_init(std::time::Instant::now).elapsed(), Duration::from_nanos)
}
