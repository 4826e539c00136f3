//! Who held which partition, from when to when: read out of the callbacks.

use super::event::{Callback, End, Event, What};
use std::collections::BTreeMap;
use std::sync::Arc;
use tontine_group::TopicPartition;

/// How an ownership ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnershipEnd {
    /// It has not.
    Open,
    /// In order: the revoked callback returned.
    Revoked,
    /// The member was told that it had lost the partition, some time after it had.
    Lost,
    /// The member was killed.
    Killed,
    /// The member was closed and no callback told it anything: a broken promise.
    Closed,
}

/// One member's hold on one partition. Numbers are positions in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// Who.
    pub member: Arc<str>,
    /// What.
    pub partition: TopicPartition,
    /// Where the assigned callback began.
    pub from: usize,
    /// Where the assigned callback returned; `None` while it runs.
    pub usable: Option<usize>,
    /// Where the revoked or lost callback began: nothing may be delivered from here on.
    pub stopped: Option<usize>,
    /// Where the member was put out of the group: the partition may be others' from here on, without its knowledge.
    pub expelled: Option<usize>,
    /// Where the revoked or lost callback returned, or the member was killed: others may deliver from here on.
    pub until: Option<usize>,
    /// How it ended.
    pub end: OwnershipEnd,
}

impl Ownership {
    /// Whether the member holds the partition at `at`, callbacks included.
    pub fn covers(&self, at: usize) -> bool {
        self.from <= at && self.until.is_none_or(|until| at <= until)
    }

    /// Whether a delivery at `at` belongs to this ownership.
    pub fn may_deliver(&self, at: usize) -> bool {
        self.usable.is_some_and(|usable| usable < at) && self.stopped.is_none_or(|stopped| at < stopped)
    }
}

/// Reads all ownerships, sorted by their beginning.
pub fn ownerships(events: &[Event]) -> Vec<Ownership> {
    let mut reading = Reading::default();
    for (at, event) in events.iter().enumerate() {
        reading.event(at, event);
    }
    reading.all
}

#[derive(Default)]
struct Reading {
    all: Vec<Ownership>,
    /// Where in `all` the current hold of a member on a partition is.
    held: BTreeMap<(Arc<str>, TopicPartition), usize>,
    /// What the callback that runs at a member was given.
    running: BTreeMap<Arc<str>, Vec<TopicPartition>>,
}

impl Reading {
    fn event(&mut self, at: usize, event: &Event) {
        let member = &event.member;
        match &event.what {
            What::Called(Callback::Assigned, partitions) => self.assigned(at, member, partitions),
            What::Called(Callback::Revoked | Callback::Lost, partitions) => {
                self.stopped(at, member, partitions)
            }
            What::Returned(callback) => self.returned(at, member, *callback),
            What::Expelled => self.expelled(at, member),
            What::Ended(end) => self.ended(at, member, *end),
            _ => {}
        }
    }

    fn assigned(&mut self, at: usize, member: &Arc<str>, partitions: &[TopicPartition]) {
        self.running.insert(member.clone(), partitions.to_vec());
        for partition in partitions {
            let key = (member.clone(), partition.clone());
            // A callback that was cancelled is run again with the same partitions: one ownership, not two.
            if self.held.contains_key(&key) {
                continue;
            }
            self.held.insert(key, self.all.len());
            self.all.push(Ownership {
                member: member.clone(),
                partition: partition.clone(),
                from: at,
                usable: None,
                stopped: None,
                expelled: None,
                until: None,
                end: OwnershipEnd::Open,
            });
        }
    }

    fn stopped(&mut self, at: usize, member: &Arc<str>, partitions: &[TopicPartition]) {
        self.running.insert(member.clone(), partitions.to_vec());
        for partition in partitions {
            if let Some(hold) = self.held.get(&(member.clone(), partition.clone())) {
                self.all[*hold].stopped.get_or_insert(at);
            }
        }
    }

    fn returned(&mut self, at: usize, member: &Arc<str>, callback: Callback) {
        for partition in self.running.remove(member).unwrap_or_default() {
            let key = (member.clone(), partition);
            let Some(&hold) = self.held.get(&key) else { continue };
            let end = match callback {
                Callback::Assigned => {
                    self.all[hold].usable.get_or_insert(at);
                    continue;
                }
                Callback::Revoked => OwnershipEnd::Revoked,
                Callback::Lost => OwnershipEnd::Lost,
            };
            self.held.remove(&key);
            self.all[hold].until = Some(at);
            self.all[hold].end = end;
        }
    }

    fn expelled(&mut self, at: usize, member: &Arc<str>) {
        for (_, hold) in self.held.iter().filter(|((who, _), _)| who == member) {
            self.all[*hold].expelled.get_or_insert(at);
        }
    }

    fn ended(&mut self, at: usize, member: &Arc<str>, end: End) {
        let end = match end {
            End::Closed => OwnershipEnd::Closed,
            End::Killed => OwnershipEnd::Killed,
        };
        let mine: Vec<_> = self.held.keys().filter(|(who, _)| who == member).cloned().collect();
        for key in mine {
            if let Some(hold) = self.held.remove(&key) {
                self.all[hold].stopped.get_or_insert(at);
                self.all[hold].until = Some(at);
                self.all[hold].end = end;
            }
        }
    }
}
