//! Writes down what happens to the partitions of one member.
//!
//! It stands at the desk, where positions move and callbacks return, so it says what the application saw. Without
//! `audit.log` there is none.

use super::line::{Entry, Event, Why};
use crate::state::CallId;
use std::{collections::BTreeMap, time::Duration};
use tontine_group::{Instant, TopicPartition, ids::Membership};

/// What one member writes down.
#[derive(Debug)]
pub(crate) struct Ledger {
    group: String,
    unix_ms_at_origin: i64,
    now: Instant,
    open: BTreeMap<TopicPartition, Ownership>,
    /// Commits under way: when they were asked for, and what they are about.
    commits: BTreeMap<CallId, (i64, Vec<(TopicPartition, i64)>)>,
    entries: Vec<Entry>,
    last_member: (String, i32),
}

#[derive(Debug)]
struct Ownership {
    member: (String, i32),
    from: i64,
    first: Option<i64>,
    next: Option<i64>,
    committed: Option<i64>,
    sought: bool,
}

impl Ledger {
    pub(crate) fn new(group: String, unix_ms_at_origin: i64) -> Self {
        Self {
            group,
            unix_ms_at_origin,
            now: Instant::ZERO,
            open: BTreeMap::new(),
            commits: BTreeMap::new(),
            entries: Vec::new(),
            last_member: (String::new(), -1),
        }
    }

    /// What is new since the last time.
    pub(crate) fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = now.max(self.now);
    }

    fn unix_ms(&self) -> i64 {
        let since: Duration = self.now.since_origin();
        self.unix_ms_at_origin.saturating_add(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn write(&mut self, at: i64, member: (String, i32), partition: TopicPartition, event: Event) {
        let (member, epoch) = member;
        self.entries.push(Entry { at, group: self.group.clone(), member, epoch, partition, event });
    }

    /// Who this is by now.
    pub(crate) fn is_member(&mut self, membership: Option<&Membership>) {
        if let Some(membership) = membership {
            self.last_member = (membership.member_id.clone(), membership.generation);
        }
    }

    pub(crate) fn assigned(&mut self, partition: &TopicPartition) {
        let (from, member) = (self.unix_ms(), self.last_member.clone());
        let ownership = Ownership {
            member: member.clone(),
            from,
            first: None,
            next: None,
            committed: None,
            sought: false,
        };
        self.open.insert(partition.clone(), ownership);
        self.write(from, member, partition.clone(), Event::Assigned);
    }

    pub(crate) fn released(&mut self, partition: &TopicPartition, why: Why) {
        let Some(of) = self.open.remove(partition) else { return };
        let event = Event::Released {
            from: of.from,
            why,
            first: of.first,
            last: of.next.map(|next| next - 1),
            committed: of.committed,
            sought: of.sought,
        };
        self.write(self.unix_ms(), of.member, partition.clone(), event);
    }

    /// Everything that is left is let go.
    pub(crate) fn left(&mut self) {
        for partition in self.open.keys().cloned().collect::<Vec<_>>() {
            self.released(&partition, Why::Left);
        }
    }

    /// The position moved from here to there by what was handed out.
    pub(crate) fn handed_out(&mut self, partition: &TopicPartition, from: i64, to: i64) {
        if self.open.get(partition).and_then(|of| of.next).is_some_and(|next| next != from) {
            self.sought(partition);
        }
        let Some(of) = self.open.get_mut(partition) else { return };
        of.first.get_or_insert(from);
        of.next = Some(to);
    }

    /// The position was moved otherwise.
    pub(crate) fn sought(&mut self, partition: &TopicPartition) {
        let Some(of) = self.open.get_mut(partition) else { return };
        if !std::mem::replace(&mut of.sought, true) {
            let member = of.member.clone();
            self.write(self.unix_ms(), member, partition.clone(), Event::Sought);
        }
    }

    pub(crate) fn commit_asked(&mut self, call: CallId, offsets: Vec<(TopicPartition, i64)>) {
        self.commits.insert(call, (self.unix_ms(), offsets));
    }

    /// A call has ended; if it was a commit that was stored, what it changed is written down.
    pub(crate) fn call_ended(&mut self, call: CallId, is_ok: bool) {
        let Some((at, offsets)) = self.commits.remove(&call).filter(|_| is_ok) else { return };
        for (partition, offset) in offsets {
            let member = match self.open.get_mut(&partition) {
                Some(of) if of.committed == Some(offset) => continue,
                Some(of) => {
                    of.committed = Some(offset);
                    of.member.clone()
                }
                None => self.last_member.clone(),
            };
            self.write(at, member, partition, Event::Committed { offset });
        }
    }
}
