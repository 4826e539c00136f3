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
    settings: LedgerSettings,
    now: Instant,
    open: BTreeMap<TopicPartition, Ownership>,
    /// Commits under way: when they were asked for, and what they are about.
    commits: BTreeMap<CallId, (i64, Vec<(TopicPartition, i64)>)>,
    entries: Vec<Entry>,
    /// Who this is, or was last.
    member: String,
    epoch: i32,
    instance: Option<String>,
    /// When the coordinator last confirmed that.
    confirmed: Instant,
}

/// What a member writes down that does not change.
#[derive(Clone, Debug)]
pub(crate) struct LedgerSettings {
    pub(crate) group: String,
    /// The wall clock when the member's own was zero.
    pub(crate) unix_ms_at_origin: i64,
    /// See [`Event::Released`].
    pub(crate) in_rounds: bool,
}

#[derive(Debug)]
struct Ownership {
    member: String,
    from: i64,
    first: Option<i64>,
    next: Option<i64>,
    /// The latest offset that was asked to be committed.
    asked: Option<i64>,
    committed: Option<i64>,
    sought: bool,
}

impl Ledger {
    pub(crate) fn new(settings: LedgerSettings) -> Self {
        Self {
            settings,
            now: Instant::ZERO,
            open: BTreeMap::new(),
            commits: BTreeMap::new(),
            entries: Vec::new(),
            member: String::new(),
            epoch: -1,
            instance: None,
            confirmed: Instant::ZERO,
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
        self.unix_ms_of(self.now)
    }

    fn unix_ms_of(&self, at: Instant) -> i64 {
        let since: Duration = at.since_origin();
        self.settings.unix_ms_at_origin.saturating_add(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn write(&mut self, at: i64, member: String, partition: TopicPartition, event: Event) {
        let (group, epoch) = (self.settings.group.clone(), self.epoch);
        self.entries.push(Entry { at, group, member, epoch, partition, event });
    }

    /// Who this is by now.
    pub(crate) fn is_member(&mut self, membership: Option<&Membership>) {
        if let Some(membership) = membership {
            (self.epoch, self.instance) = (membership.generation, membership.instance_id.clone());
            self.member.clone_from(&membership.member_id);
        }
    }

    /// When the coordinator last confirmed the membership.
    pub(crate) fn confirmed(&mut self, at: Instant) {
        self.confirmed = at.max(self.confirmed);
    }

    pub(crate) fn assigned(&mut self, partition: &TopicPartition) {
        let (from, member) = (self.unix_ms(), self.member.clone());
        let ownership = Ownership {
            member: member.clone(),
            from,
            first: None,
            next: None,
            asked: None,
            committed: None,
            sought: false,
        };
        self.open.insert(partition.clone(), ownership);
        let (instance, in_rounds) = (self.instance.clone(), self.settings.in_rounds);
        self.write(from, member, partition.clone(), Event::Assigned { instance, in_rounds });
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
            in_rounds: self.settings.in_rounds,
            confirmed: Some(self.unix_ms_of(self.confirmed)),
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

    /// A commit is about to be sent. Asking twice is asking once.
    pub(crate) fn commit_asked(
        &mut self,
        call: CallId,
        offsets: impl Iterator<Item = (TopicPartition, i64)>,
    ) {
        if self.commits.contains_key(&call) {
            return;
        }
        let (at, offsets) = (self.unix_ms(), offsets.collect::<Vec<_>>());
        for (partition, offset) in &offsets {
            let Some(of) = self.open.get_mut(partition).filter(|of| of.asked != Some(*offset)) else {
                continue;
            };
            of.asked = Some(*offset);
            let member = of.member.clone();
            self.write(at, member, partition.clone(), Event::Asked { offset: *offset });
        }
        self.commits.insert(call, (at, offsets));
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
                None => self.member.clone(),
            };
            self.write(at, member, partition, Event::Committed { offset });
        }
    }
}
