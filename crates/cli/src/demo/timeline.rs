//! What happens, in words, as it happens: one line for each thing worth seeing.
//!
//! Decides what is told and in which order. A member learns why the group rebalanced when its poll returns, after the
//! callbacks that the rebalance led to; here the cause comes first. Commits are many: a member's are told once a second,
//! and before a partition leaves it.

use super::audit::{Rebalance, Silence};
use super::history::{Event, MemberId, Partition, Told, What, letter};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write,
    time::Duration,
};
use tontine_group::Cause;

/// How long a member's commits are gathered for one line.
const COMMITS_EVERY: Duration = Duration::from_secs(1);
/// No more partitions than this on a line.
const MOST: usize = 12;

/// Turns what happens into lines.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// What was done to the group last.
    doing: String,
    members: BTreeMap<MemberId, Lines>,
}

/// What is not yet told of a member.
#[derive(Debug, Default)]
struct Lines {
    /// Callbacks whose cause is not known yet.
    callbacks: VecDeque<(Duration, String)>,
    committed: BTreeMap<Partition, i64>,
    told_commits: Option<Duration>,
}

impl Timeline {
    /// Something is done to the group.
    pub(crate) fn begin(&mut self, at: Duration, doing: &str) -> Vec<String> {
        doing.clone_into(&mut self.doing);
        vec![format!("{:>8.3} s  >  {doing}", at.as_secs_f64())]
    }

    /// The group is at rest again.
    pub(crate) fn settle(&self, at: Duration, took: Duration, cost: &Rebalance) -> Vec<String> {
        let mut lines =
            vec![format!("{:>8.3} s  =  at rest after {:.0} ms", at.as_secs_f64(), took.as_secs_f64() * 1e3)];
        let (moved, kept): (Vec<&Silence>, Vec<_>) = cost.partitions.iter().partition(|s| s.from != s.to);
        let whose =
            |s: &Silence| if s.from == s.to { s.to.to_string() } else { format!("{}>{}", s.from, s.to) };
        for (what, silences) in [("moved", moved), ("kept", kept)] {
            if !silences.is_empty() {
                let one =
                    |s: &&Silence| format!("{}:{} {:.1}", s.partition.0.partition, whose(s), s.silent_ms);
                let line = format!("silent, ms, {what:<5}  {}", capped(silences.iter().map(one)));
                lines.push(format!("{:>14}{line}", ""));
            }
        }
        lines
    }

    /// The lines for an event, none for what happens all the time.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<String> {
        let mut out = Vec::new();
        let (at, member) = (event.at, event.member);
        let callback = |what: &str, partitions: &[Partition]| format!("{what:<9} {}", short(partitions));
        match &event.what {
            What::Delivered { .. } => {}
            What::Committed(offsets) => self.committed(at, member, offsets, &mut out),
            What::Assigned(p) => self.wait(at, member, callback("assigned", p)),
            What::Revoked(p) => {
                self.tell_commits(at, member, &mut out);
                self.wait(at, member, callback("revoked", p));
            }
            What::Lost(p) => {
                self.tell_commits(at, member, &mut out);
                self.wait(at, member, callback("lost", p));
            }
            What::History(told) => self.history(at, member, told, &mut out),
            What::Started => out.push(line(at, member, "started")),
            What::Trouble(text) => out.push(line(at, member, &format!("trouble: {text}"))),
            What::Left | What::Killed => {
                self.flush(member, &mut out);
                self.tell_commits(at, member, &mut out);
                let how = if event.what == What::Left { "left in good order" } else { "killed" };
                out.push(line(at, member, how));
            }
        }
        out
    }

    fn wait(&mut self, at: Duration, member: MemberId, text: String) {
        self.members.entry(member).or_default().callbacks.push_back((at, text));
    }

    fn history(&mut self, at: Duration, member: MemberId, told: &[Told], out: &mut Vec<String>) {
        for one in told {
            let callbacks = &mut self.members.entry(member).or_default().callbacks;
            match one {
                // It came before the callbacks that are still to be told.
                Told::Cause(cause) => {
                    let at = callbacks.front().map_or(at, |(first, _)| *first.min(&at));
                    let text = format!("rebalance, because {}", self.cause(cause));
                    out.push(line(at, member, &text));
                }
                Told::Callback => out.extend(callbacks.pop_front().map(|(at, text)| line(at, member, &text))),
            }
        }
        self.flush(member, out);
    }

    /// Members are told by the coordinator that there is a rebalance, not why. The demo knows: it is its own doing.
    fn cause(&self, cause: &str) -> String {
        match cause {
            _ if cause != Cause::Coordinator.to_string() => cause.to_owned(),
            _ if self.doing.is_empty() => cause.to_owned(),
            _ => format!("{cause}: {}", self.doing),
        }
    }

    /// The poll is over: what has no cause by now gets none.
    fn flush(&mut self, member: MemberId, out: &mut Vec<String>) {
        let callbacks = &mut self.members.entry(member).or_default().callbacks;
        out.extend(callbacks.drain(..).map(|(at, text)| line(at, member, &text)));
    }

    fn committed(
        &mut self,
        at: Duration,
        member: MemberId,
        offsets: &[(Partition, i64)],
        out: &mut Vec<String>,
    ) {
        let lines = self.members.entry(member).or_default();
        lines.committed.extend(offsets.iter().cloned());
        // The first commit of a member and those in its callbacks are told at once.
        if lines.told_commits.is_some_and(|told| at < told + COMMITS_EVERY) {
            return;
        }
        self.tell_commits(at, member, out);
    }

    fn tell_commits(&mut self, at: Duration, member: MemberId, out: &mut Vec<String>) {
        let lines = self.members.entry(member).or_default();
        let committed = std::mem::take(&mut lines.committed);
        if committed.is_empty() {
            return;
        }
        lines.told_commits = Some(at);
        let one = |(p, offset): (&Partition, &i64)| format!("{}:{offset}", p.0.partition);
        out.push(line(at, member, &format!("committed {}", capped(committed.iter().map(one)))));
    }
}

fn line(at: Duration, member: MemberId, said: &str) -> String {
    format!("{:>8.3} s  {}  {said}", at.as_secs_f64(), letter(member))
}

/// The first of them, and how many more there are.
fn capped(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(MOST);
    let mut text = items.take(MOST).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

/// `t-[0-3,5]` for five partitions of one topic.
pub(crate) fn short(partitions: &[Partition]) -> String {
    if partitions.is_empty() {
        return "(nothing)".to_owned();
    }
    let mut sorted = partitions.to_vec();
    sorted.sort();
    let mut out = String::new();
    for of_topic in sorted.chunk_by(|a, b| a.0.topic == b.0.topic) {
        let separator = if out.is_empty() { "" } else { " " };
        let numbers: Vec<i32> = of_topic.iter().map(|p| p.0.partition).collect();
        let _ = write!(out, "{separator}{}-[{}]", of_topic[0].0.topic, runs(&numbers));
    }
    out
}

fn runs(numbers: &[i32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(name: &str) -> Partition {
        name.parse().unwrap()
    }

    fn told(timeline: &mut Timeline, ms: u64, what: What) -> Vec<String> {
        timeline.event(&Event { at: Duration::from_millis(ms), member: 0, what })
    }

    #[test]
    fn partitions_are_written_as_runs() {
        let list: Vec<_> = ["t-0", "t-1", "t-2", "t-3", "t-5"].map(p).into();
        assert_eq!(short(&list), "t-[0-3,5]");
        assert_eq!(short(&[]), "(nothing)");
    }

    #[test]
    fn a_cause_comes_before_the_callbacks_it_led_to() {
        let mut timeline = Timeline::default();
        timeline.begin(Duration::ZERO, "a member joins: B");
        assert!(told(&mut timeline, 5, What::Revoked(vec![p("t-0")])).is_empty());
        assert!(told(&mut timeline, 9, What::Assigned(vec![p("t-1")])).is_empty());
        let causes = [
            Told::Cause(Cause::Coordinator.to_string()),
            Told::Callback,
            Told::Cause("second".into()),
            Told::Callback,
        ];
        let lines = told(&mut timeline, 12, What::History(causes.into()));
        assert_eq!(
            lines,
            [
                "   0.005 s  A  rebalance, because the coordinator asked for it: a member joins: B",
                "   0.005 s  A  revoked   t-[0]",
                "   0.009 s  A  rebalance, because second",
                "   0.009 s  A  assigned  t-[1]",
            ]
        );
    }

    #[test]
    fn a_callback_that_nothing_is_heard_of_any_more_is_told_at_the_end() {
        let mut timeline = Timeline::default();
        told(&mut timeline, 5, What::Assigned(vec![p("t-0")]));
        let lines = told(&mut timeline, 7, What::Killed);
        assert_eq!(lines, ["   0.005 s  A  assigned  t-[0]", "   0.007 s  A  killed"]);
    }

    #[test]
    fn commits_are_gathered() {
        let mut timeline = Timeline::default();
        let commit = |offset| What::Committed(vec![(p("t-0"), offset)]);
        assert_eq!(told(&mut timeline, 0, commit(5)), ["   0.000 s  A  committed 0:5"]);
        assert!(told(&mut timeline, 10, commit(6)).is_empty());
        assert!(told(&mut timeline, 20, commit(7)).is_empty());
        assert_eq!(told(&mut timeline, 1000, commit(8)), ["   1.000 s  A  committed 0:8"]);
        assert!(told(&mut timeline, 1010, commit(9)).is_empty());
        let lines = told(&mut timeline, 1020, What::Left);
        assert_eq!(lines, ["   1.020 s  A  committed 0:9", "   1.020 s  A  left in good order"]);
    }

    #[test]
    fn silences_are_told_for_each_partition_that_moved_and_that_stayed() {
        let silence = |name, from, to, silent_ms| Silence { partition: p(name), from, to, silent_ms };
        let partitions = vec![silence("t-0", 'A', 'A', 3.0), silence("t-1", 'A', 'B', 61.3)];
        let cost = Rebalance { partitions, ..Rebalance::default() };
        let lines = Timeline::default().settle(Duration::from_secs(1), Duration::from_millis(90), &cost);
        assert_eq!(
            lines,
            [
                "   1.000 s  =  at rest after 90 ms",
                "              silent, ms, moved  1:A>B 61.3",
                "              silent, ms, kept   0:A 3.0",
            ]
        );
    }
}
