//! The verdict: what was produced against what was delivered and committed.

use super::history::{Event, MemberId, Partition, Step, What, letter};
use super::ownership::Ownership;
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What became of the promises.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Verdict {
    /// Records that the broker acknowledged to the producer.
    pub(crate) produced: u64,
    /// Different records that were handed to some member.
    pub(crate) delivered: u64,
    /// Produced and handed to nobody.
    pub(crate) lost: u64,
    /// Handed out again, for whatever reason.
    pub(crate) duplicated: u64,
    /// Of these, the ones that a killed member had not committed.
    pub(crate) duplicated_after_kill: u64,
    /// Times when two members had one partition.
    pub(crate) two_owners: u64,
    /// Commits below an earlier commit of the same partition.
    pub(crate) commits_backwards: u64,
    /// Longest silence of a partition while nothing happened to the group.
    pub(crate) calm_gap_ms_max: f64,
    /// One entry for each thing that was done to the group.
    pub(crate) rebalances: Vec<Rebalance>,
    /// Whether every promise was kept.
    pub(crate) ok: bool,
}

/// What one rebalance cost.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Rebalance {
    /// What was done to the group.
    pub(crate) cause: String,
    /// Partitions that changed their owner.
    pub(crate) moved: u64,
    /// Partitions that stayed.
    pub(crate) kept: u64,
    /// Longest silence of a partition that stayed.
    pub(crate) kept_gap_ms_max: f64,
    /// Longest silence of a partition that moved.
    pub(crate) moved_gap_ms_max: f64,
    /// Each partition that had an owner before and after.
    pub(crate) partitions: Vec<Silence>,
}

/// How long one partition was silent, and whose it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Silence {
    /// The partition.
    pub(crate) partition: Partition,
    /// Its owner before, by its letter.
    pub(crate) from: char,
    /// Its owner after.
    pub(crate) to: char,
    /// How long nothing of it was delivered.
    pub(crate) silent_ms: f64,
}

/// What the producer was told.
pub(crate) type Produced = BTreeMap<Partition, BTreeSet<i64>>;

/// Judges a demo.
pub(crate) fn judge(produced: &Produced, events: &[Event], steps: &[Step]) -> Verdict {
    let ownership = Ownership::of(events);
    let deliveries = Deliveries::of(events);
    let mut verdict = Verdict {
        produced: produced.values().map(|offsets| offsets.len() as u64).sum(),
        two_owners: ownership.overlaps().len() as u64,
        commits_backwards: commits_backwards(events),
        calm_gap_ms_max: ms(deliveries.calm_gap(steps)),
        rebalances: steps.iter().map(|step| cost(step, &ownership, &deliveries)).collect(),
        ..Verdict::default()
    };
    count_deliveries(produced, events, &mut verdict);
    let unexplained = verdict.duplicated - verdict.duplicated_after_kill;
    verdict.ok = verdict.lost + unexplained + verdict.two_owners + verdict.commits_backwards == 0
        && verdict.produced > 0;
    verdict
}

fn ms(d: Duration) -> f64 {
    (d.as_secs_f64() * 10_000.0).round() / 10.0
}

fn commits_backwards(events: &[Event]) -> u64 {
    let mut highest: BTreeMap<&Partition, i64> = BTreeMap::new();
    let mut backwards = 0;
    let commits = events.iter().filter_map(|e| if let What::Committed(c) = &e.what { Some(c) } else { None });
    for (partition, offset) in commits.flatten() {
        let before = highest.entry(partition).or_insert(*offset);
        backwards += u64::from(offset < before);
        *before = (*before).max(*offset);
    }
    backwards
}

/// A record that comes a second time is explained when the member that had it first was killed before it could commit.
fn count_deliveries(produced: &Produced, events: &[Event], verdict: &mut Verdict) {
    let killed: BTreeSet<MemberId> =
        events.iter().filter(|e| e.what == What::Killed).map(|e| e.member).collect();
    let mut committed: BTreeMap<&Partition, i64> = BTreeMap::new();
    let mut seen: BTreeMap<&Partition, BTreeMap<i64, MemberId>> = BTreeMap::new();
    for event in events {
        match &event.what {
            What::Committed(offsets) => committed.extend(offsets.iter().map(|(p, o)| (p, *o))),
            What::Delivered { partition, runs } => {
                let of_partition = seen.entry(partition).or_default();
                for offset in runs.iter().flat_map(|(first, last)| *first..=*last) {
                    let Some(first) = of_partition.insert(offset, event.member) else { continue };
                    verdict.duplicated += 1;
                    let uncommitted = committed.get(partition).is_none_or(|c| offset >= *c);
                    verdict.duplicated_after_kill += u64::from(killed.contains(&first) && uncommitted);
                }
            }
            What::Started | What::Assigned(_) | What::Revoked(_) | What::Lost(_) => {}
            What::History(_) | What::Left | What::Killed | What::Trouble(_) => {}
        }
    }
    for (partition, offsets) in produced {
        let delivered = seen.get(partition);
        let missing = offsets.iter().filter(|o| delivered.is_none_or(|d| !d.contains_key(o))).count() as u64;
        verdict.lost += missing;
        verdict.delivered += offsets.len() as u64 - missing;
    }
}

/// What a rebalance that has just ended has cost.
pub(crate) fn cost_of(step: &Step, events: &[Event]) -> Rebalance {
    cost(step, &Ownership::of(events), &Deliveries::of(events))
}

fn cost(step: &Step, ownership: &Ownership, deliveries: &Deliveries) -> Rebalance {
    let mut result = Rebalance { cause: step.cause.clone(), ..Rebalance::default() };
    for (partition, _) in ownership.partitions() {
        let before = ownership.owner(partition, step.began);
        let after = ownership.owner(partition, step.settled);
        let (Some(before), Some(after)) = (before, after) else { continue };
        let gap = ms(deliveries.longest_gap(partition, step.began, step.settled));
        let silence =
            Silence { partition: partition.clone(), from: letter(before), to: letter(after), silent_ms: gap };
        result.partitions.push(silence);
        if before == after {
            result.kept += 1;
            result.kept_gap_ms_max = result.kept_gap_ms_max.max(gap);
        } else {
            result.moved += 1;
            result.moved_gap_ms_max = result.moved_gap_ms_max.max(gap);
        }
    }
    result
}

/// When each partition was delivered from.
#[derive(Debug, Default)]
struct Deliveries {
    times: BTreeMap<Partition, Vec<Duration>>,
}

impl Deliveries {
    fn of(events: &[Event]) -> Self {
        let mut deliveries = Self::default();
        for event in events {
            if let What::Delivered { partition, .. } = &event.what {
                deliveries.times.entry(partition.clone()).or_default().push(event.at);
            }
        }
        deliveries
    }

    /// The longest time between two deliveries of a partition of which a part lies between `from` and `to`.
    fn longest_gap(&self, partition: &Partition, from: Duration, to: Duration) -> Duration {
        let Some(times) = self.times.get(partition) else { return Duration::ZERO };
        let touching = |pair: &&[Duration]| pair[1] >= from && pair[0] <= to;
        times.windows(2).filter(touching).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }

    /// The longest silence of any partition between two steps, and after the last one: of a silence that reaches into
    /// a step, the part outside. So it is there however seldom records come.
    fn calm_gap(&self, steps: &[Step]) -> Duration {
        let ends = steps.iter().skip(1).map(|step| step.began).chain([Duration::MAX]);
        let calm: Vec<_> = steps.iter().map(|step| step.settled).zip(ends).collect();
        let pairs = self.times.values().flat_map(|times| times.windows(2));
        let within = |pair: &[Duration]| {
            let part = |(from, to): &(Duration, Duration)| pair[1].min(*to).checked_sub(pair[0].max(*from));
            calm.iter().filter_map(part).max()
        };
        pairs.filter_map(within).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tp() -> Partition {
        "t-0".parse().unwrap()
    }

    fn at(ms: u64, member: MemberId, what: What) -> Event {
        Event { at: Duration::from_millis(ms), member, what }
    }

    fn delivered(ms: u64, member: MemberId, offsets: std::ops::Range<i64>) -> Event {
        at(ms, member, What::Delivered { partition: tp(), runs: vec![(offsets.start, offsets.end - 1)] })
    }

    fn produced(offsets: std::ops::Range<i64>) -> Produced {
        [(tp(), offsets.collect())].into()
    }

    #[test]
    fn everything_once_is_ok() {
        let events =
            [delivered(1, 0, 0..5), at(2, 0, What::Committed(vec![(tp(), 5)])), delivered(3, 1, 5..9)];
        let verdict = judge(&produced(0..9), &events, &[]);
        assert!(verdict.ok, "{verdict:?}");
        assert_eq!((verdict.produced, verdict.delivered), (9, 9));
    }

    #[test]
    fn a_record_that_nobody_got_is_lost() {
        let verdict = judge(&produced(0..9), &[delivered(1, 0, 0..8)], &[]);
        assert_eq!((verdict.lost, verdict.ok), (1, false));
    }

    #[test]
    fn a_second_delivery_is_doubled_and_a_kill_explains_only_what_was_not_committed() {
        let events = [
            delivered(1, 0, 0..6),
            at(2, 0, What::Committed(vec![(tp(), 4)])),
            at(3, 0, What::Killed),
            delivered(4, 1, 4..9),
        ];
        let verdict = judge(&produced(0..9), &events, &[]);
        assert_eq!((verdict.duplicated, verdict.duplicated_after_kill, verdict.ok), (2, 2, true));

        let events =
            [delivered(1, 0, 0..6), at(2, 0, What::Committed(vec![(tp(), 6)])), delivered(4, 1, 4..9)];
        let verdict = judge(&produced(0..9), &events, &[]);
        assert_eq!((verdict.duplicated, verdict.duplicated_after_kill, verdict.ok), (2, 0, false));
    }

    #[test]
    fn a_commit_below_an_earlier_one_went_backwards() {
        let commit = |ms, offset| at(ms, 0, What::Committed(vec![(tp(), offset)]));
        let events = [delivered(0, 0, 0..9), commit(1, 5), commit(2, 4), commit(3, 9)];
        let verdict = judge(&produced(0..9), &events, &[]);
        assert_eq!((verdict.commits_backwards, verdict.ok), (1, false));
    }

    #[test]
    fn gaps_are_told_apart_by_whether_the_partition_moved() {
        let events = [
            at(0, 0, What::Assigned(vec![tp()])),
            delivered(10, 0, 0..1),
            at(20, 0, What::Revoked(vec![tp()])),
            at(30, 1, What::Assigned(vec![tp()])),
            delivered(60, 1, 1..2),
        ];
        let step = Step {
            cause: "joined".into(),
            began: Duration::from_millis(15),
            settled: Duration::from_millis(61),
        };
        let verdict = judge(&produced(0..2), &events, &[step]);
        assert_eq!((verdict.rebalances[0].moved, verdict.rebalances[0].moved_gap_ms_max), (1, 50.0));
        assert_eq!((verdict.rebalances[0].kept, verdict.rebalances[0].kept_gap_ms_max), (0, 0.0));
        let moved = Silence { partition: tp(), from: 'A', to: 'B', silent_ms: 50.0 };
        assert_eq!(verdict.rebalances[0].partitions, [moved]);
    }

    #[test]
    fn a_calm_silence_is_what_lies_between_the_steps_however_seldom_records_come() {
        let step = |began, settled| Step {
            cause: String::new(),
            began: Duration::from_millis(began),
            settled: Duration::from_millis(settled),
        };
        let steps = [step(0, 1100), step(3000, 3500)];
        let every_second = [delivered(1000, 0, 0..1), delivered(2000, 0, 1..2), delivered(3200, 0, 2..3)];
        let verdict = judge(&produced(0..3), &every_second, &steps);
        assert_eq!(verdict.calm_gap_ms_max, 1000.0, "from 2000 to the next step");
        let after = [&every_second[..], &[delivered(5000, 0, 3..4)]].concat();
        assert_eq!(judge(&produced(0..4), &after, &steps).calm_gap_ms_max, 1500.0);
    }
}
