//! Puts the logs of many members together and looks for what must not be.
//!
//! Per partition: nobody's ownership begins before the one before it has ended, unless that one was lost, or its process
//! died without a word; a member commits only while the partition is its own; commits do not go back; and where an
//! ownership begins to read, everything before was read by those before it. A position that the application moved says
//! nothing about what was skipped. Clocks of several machines differ: within the tolerance two times are the same.
//!
//! A member that is put out while it cannot hear of it goes on for a while, and may even give its partitions up in good
//! order before it learns that they were not its own any more. No member can know better, so this is no fault, but it is
//! counted. What tells it from a fault is the generation: two that were members at the same time share one. Where every
//! member has an epoch of its own (the consumer protocol), it is that the coordinator had not confirmed the membership
//! since somebody else got the partition.

use super::line::{Entry, Event, Why};
use std::{collections::BTreeMap, fmt};
use tontine_group::TopicPartition;

/// Logs that are being put together.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    tolerance_ms: i64,
    entries: Vec<(String, Entry)>,
}

/// What does not fit, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The partition.
    pub partition: TopicPartition,
    /// The place in the logs.
    pub place: String,
    /// What is wrong, in a sentence.
    pub what: String,
}

/// What came of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many partitions there were.
    pub partitions: usize,
    /// How many times a partition was somebody's.
    pub ownerships: usize,
    /// How many of them have no end: the process died, or is still running.
    pub unfinished: usize,
    /// How many times a member had a partition for longer than it was a member, and somebody else had it by then.
    pub outlived: usize,
    /// How many commits were stored.
    pub commits: usize,
    /// Everything that does not fit.
    pub problems: Vec<Problem>,
}

/// One time that a partition was somebody's.
#[derive(Debug)]
struct Ownership {
    member: String,
    instance: Option<String>,
    from: i64,
    to: Option<i64>,
    why: Option<Why>,
    /// The epochs at its beginning and at its end.
    epochs: (i32, i32),
    in_rounds: bool,
    confirmed: Option<i64>,
    first: Option<i64>,
    next: Option<i64>,
    /// The furthest commit that was asked for.
    asked: Option<i64>,
    sought: bool,
    place: String,
}

impl Ownership {
    /// Whether one of the two went on for longer than the coordinator knew it for a member, and the other one did not.
    /// Generations tell only when both count them: a group may go over to the consumer protocol and begin anew there.
    fn outlived(&self, other: &Self, tolerance_ms: i64) -> bool {
        let apart = self.epochs.1 < other.epochs.0 || other.epochs.1 < self.epochs.0;
        let replaced =
            self.instance.is_some() && self.instance == other.instance && self.member != other.member;
        let unheard =
            self.is_unheard_since(other, tolerance_ms) || other.is_unheard_since(self, tolerance_ms);
        let in_rounds = self.in_rounds && other.in_rounds;
        self.why == Some(Why::Lost) || replaced || if in_rounds { apart } else { unheard }
    }

    fn is_unheard_since(&self, other: &Self, tolerance_ms: i64) -> bool {
        self.confirmed.is_some_and(|at| at < other.from.saturating_add(tolerance_ms))
    }

    /// What may have been handed out. Of a process that died it is what it wanted to commit.
    fn read(&self) -> Option<i64> {
        if self.to.is_some() { self.next } else { self.next.max(self.asked) }
    }
}

impl Audit {
    /// Nothing yet. Clocks may differ by this many milliseconds.
    pub fn new(tolerance_ms: u32) -> Self {
        Self { tolerance_ms: tolerance_ms.into(), entries: Vec::new() }
    }

    /// Adds what a member wrote down, and where it stands.
    pub fn add(&mut self, place: impl Into<String>, entry: Entry) {
        self.entries.push((place.into(), entry));
    }

    /// Adds a log. Its last line may be cut off, as by a crash; any other line has to make sense.
    pub fn read(&mut self, name: &str, text: &str) -> Result<(), String> {
        let lines: Vec<_> = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
        for (at, (number, line)) in lines.iter().enumerate() {
            let place = format!("{name}:{}", number + 1);
            match Entry::parse(line) {
                Ok(entry) => self.add(place, entry),
                Err(_) if at + 1 == lines.len() && !text.ends_with('\n') => {}
                Err(why) => return Err(format!("{place}: {why}")),
            }
        }
        Ok(())
    }

    /// What fits and what does not.
    pub fn judge(&self) -> Verdict {
        let mut each: BTreeMap<(&str, &TopicPartition), Vec<&(String, Entry)>> = BTreeMap::new();
        for entry in &self.entries {
            each.entry((&entry.1.group, &entry.1.partition)).or_default().push(entry);
        }
        let mut verdict = Verdict { partitions: each.len(), ..Verdict::default() };
        for ((_, partition), mut entries) in each {
            entries.sort_by_key(|(_, entry)| entry.at);
            let owned = ownerships(&entries);
            let tell = |place: &str, what: String| Problem {
                partition: partition.clone(),
                place: place.to_owned(),
                what,
            };
            verdict.ownerships += owned.len();
            verdict.unfinished += owned.iter().filter(|of| of.to.is_none()).count();
            verdict.commits +=
                entries.iter().filter(|(_, e)| matches!(e.event, Event::Committed { .. })).count();
            let overlaps = self.overlaps(&owned);
            let outlived =
                |(earlier, later): &(&Ownership, &Ownership)| earlier.outlived(later, self.tolerance_ms);
            verdict.outlived += overlaps.iter().filter(|both| outlived(both)).count();
            let both = overlaps.into_iter().filter(|both| !outlived(both));
            verdict
                .problems
                .extend(both.map(|(earlier, later)| tell(&later.place, two_owners(earlier, later))));
            verdict.problems.extend(gaps(&owned).into_iter().map(|(p, w)| tell(&p, w)));
            verdict.problems.extend(late_commits(&entries, &owned).into_iter().map(|(p, w)| tell(&p, w)));
            verdict.problems.extend(self.rewinds(&entries, &owned).into_iter().map(|(p, w)| tell(&p, w)));
        }
        verdict
    }

    /// Every two ownerships of which the later one began before the earlier one had ended.
    fn overlaps<'a>(&self, owned: &'a [Ownership]) -> Vec<(&'a Ownership, &'a Ownership)> {
        let mut found = Vec::new();
        for (at, later) in owned.iter().enumerate() {
            let over = |to: i64| to.saturating_sub(later.from) > self.tolerance_ms;
            let earlier = owned.iter().take(at).filter(|earlier| earlier.to.is_some_and(over));
            found.extend(earlier.map(|earlier| (earlier, later)));
        }
        found
    }

    /// Commits that go back although nobody sought.
    fn rewinds(&self, entries: &[&(String, Entry)], owned: &[Ownership]) -> Vec<(String, String)> {
        if owned.iter().any(|of| of.sought) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut before: Option<(i64, i64, &str)> = None;
        for (place, entry) in entries {
            let Event::Committed { offset } = entry.event else { continue };
            match before {
                Some((at, last, member))
                    if offset < last && (member == entry.member || entry.at - at > self.tolerance_ms) =>
                {
                    let what =
                        format!("{} commits {offset} after {member} had committed {last}", entry.member);
                    found.push((place.clone(), what));
                }
                Some(_) | None => {}
            }
            before = Some((entry.at, offset, &entry.member));
        }
        found
    }
}

fn two_owners(earlier: &Ownership, later: &Ownership) -> String {
    let by = earlier.to.unwrap_or(later.from) - later.from;
    format!("{} got it {by} ms before {} had given it up ({})", later.member, earlier.member, earlier.place)
}

/// Puts the beginnings, ends and commits of each member together.
fn ownerships(entries: &[&(String, Entry)]) -> Vec<Ownership> {
    let mut owned: Vec<Ownership> = Vec::new();
    for (place, entry) in entries {
        let current = owned.iter_mut().rev().find(|of| of.member == entry.member && of.to.is_none());
        match (&entry.event, current) {
            (Event::Assigned { instance, in_rounds }, _) => owned.push(Ownership {
                member: entry.member.clone(),
                instance: instance.clone(),
                from: entry.at,
                to: None,
                why: None,
                epochs: (entry.epoch, entry.epoch),
                in_rounds: *in_rounds,
                confirmed: None,
                first: None,
                next: None,
                asked: None,
                sought: false,
                place: place.clone(),
            }),
            (Event::Released { why, first, last, sought, in_rounds, confirmed, .. }, Some(of)) => {
                (of.to, of.why) = (Some(entry.at), Some(*why));
                (of.epochs.1, of.in_rounds, of.confirmed) = (entry.epoch, *in_rounds, *confirmed);
                (of.first, of.next, of.sought) = (*first, last.map(|last| last + 1), *sought);
            }
            (Event::Sought, Some(of)) => of.sought = true,
            (Event::Asked { offset }, Some(of)) => of.asked = of.asked.max(Some(*offset)),
            (Event::Committed { offset }, Some(of)) => of.next = of.next.max(Some(*offset)),
            (
                Event::Released { .. } | Event::Asked { .. } | Event::Committed { .. } | Event::Sought,
                None,
            ) => {}
        }
    }
    owned
}

/// Where an ownership begins behind what was read before.
fn gaps(owned: &[Ownership]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut read: Option<i64> = None;
    let mut sought = false;
    for (at, of) in owned.iter().enumerate() {
        // Whoever took the partition over before this one had given it up may have read on before this one began.
        let meanwhile = owned.iter().skip(at + 1).take_while(|later| of.to.is_none_or(|to| later.from <= to));
        // Where one began that has not ended is not written yet.
        let follows =
            |later: &&Ownership| later.first.map_or(later.to.is_none(), |first| Some(first) <= read);
        let meanwhile = meanwhile.filter(follows);
        let read_by_then = meanwhile.map(Ownership::read).fold(read, Option::max);
        if let (Some(first), Some(read)) = (of.first, read_by_then)
            && first > read
            && !sought
            && !of.sought
        {
            let what =
                format!("{} begins at {first}, but {read}..{first} was handed out to nobody", of.member);
            found.push((of.place.clone(), what));
        }
        sought |= of.sought;
        read = read.max(of.read());
    }
    found
}

/// Commits of a member outside of its ownerships. Its own clock counts, so nothing is tolerated.
fn late_commits(entries: &[&(String, Entry)], owned: &[Ownership]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (place, entry) in entries {
        let Event::Committed { offset } = entry.event else { continue };
        let own = || owned.iter().filter(|of| of.member == entry.member);
        let covers = |of: &Ownership| of.from <= entry.at && of.to.is_none_or(|to| entry.at <= to);
        if let Some(last) = own().rfind(|of| of.from <= entry.at)
            && !own().any(covers)
        {
            let late = entry.at - last.to.unwrap_or(entry.at);
            let what =
                format!("{} commits {offset} {late} ms after it had given the partition up", entry.member);
            found.push((place.clone(), what));
        }
    }
    found
}

impl Verdict {
    /// Whether everything fits.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.partition, self.what)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problems.iter().try_for_each(|problem| writeln!(f, "{problem}"))?;
        write!(
            f,
            "{} partitions, {} ownerships ({} without an end), {} commits: ",
            self.partitions, self.ownerships, self.unfinished, self.commits
        )?;
        if self.outlived > 0 {
            write!(f, "{} times a member that had been put out did not know it yet, ", self.outlived)?;
        }
        match self.problems.len() {
            0 => f.write_str("no overlap, no gap, no commit after a release"),
            1 => f.write_str("one thing does not fit"),
            many => write!(f, "{many} things do not fit"),
        }
    }
}
