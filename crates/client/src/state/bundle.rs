//! Which commits go out in one request, and how each of them ends.
//!
//! One commit is under way at a time. An application that commits after every record without waiting, faster than the
//! coordinator answers, would make the others wait ever longer, until the last ones run out of time. So those that have
//! piled up go out as one request with the latest offset of each partition, and each ends with what the answer says
//! about its own partitions. A commit that somebody waits for goes alone, because it is retried.
//!
//! Kafka's client sends each and has many under way, which lets a commit that is sent again overtake a later one.

use super::{
    Answer, CommitKind, ConsumerState,
    commit::{Commit, Commits, Verdict},
};
use crate::{Error, offsets::OffsetAndMetadata};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_group::{Instant, TopicPartition, ids::Membership};
use tontine_wire::{Uuid, api::offset_commit::OffsetCommitResponse};

impl Commits {
    /// The first of the queue, and so many of them together: the offsets that are left when each has replaced what came
    /// before it, and the time by which the last of them has to have ended.
    pub(super) fn put_together(&self, many: usize) -> (Vec<(TopicPartition, OffsetAndMetadata)>, Instant) {
        let mut offsets = BTreeMap::new();
        let mut deadline = Instant::ZERO;
        for commit in self.queue.iter().take(many) {
            deadline = deadline.max(commit.deadline);
            offsets.extend(commit.offsets.iter().cloned());
        }
        (offsets.into_iter().collect(), deadline)
    }

    /// The topics that the first ones were read of, where that is known.
    pub(super) fn topics_read(&self, many: usize) -> BTreeMap<Arc<str>, Uuid> {
        let mut read = BTreeMap::new();
        for commit in self.queue.iter().take(many) {
            for ((name, _), topic) in commit.offsets.iter().zip(&commit.topics) {
                if let Some(topic) = topic.filter(|topic| !topic.is_zero()) {
                    read.entry(name.topic.clone()).or_insert(topic);
                }
            }
        }
        read
    }

    /// How many of the first ones were read of the same topics: one request has room for one topic of a name.
    fn of_the_same_topics(&self, many: usize) -> usize {
        let read = self.topics_read(many);
        let is_same = |commit: &&Commit| {
            let mut all = commit.offsets.iter().zip(&commit.topics);
            all.all(|((name, _), topic)| {
                let first = read.get(&name.topic);
                topic.is_none_or(|topic| topic.is_zero() || first.is_none_or(|first| *first == topic))
            })
        };
        self.queue.iter().take(many).take_while(is_same).count().max(1)
    }

    /// When the first of those that are under way runs out of time.
    pub(super) fn first_deadline_under_way(&self) -> Option<Instant> {
        self.queue.iter().take(self.bundled + 1).map(|commit| commit.deadline).min()
    }

    /// Takes the first ones out of the queue.
    pub(super) fn take_first(&mut self, many: usize) -> Vec<Commit> {
        self.queue.drain(..many.min(self.queue.len())).collect()
    }
}

impl ConsumerState {
    /// How many commits at the front of the queue can be sent together under this membership.
    pub(super) fn bundle(&self, membership: Option<&Membership>) -> usize {
        let goes_along = |commit: &&Commit| {
            commit.kind == CommitKind::Once
                && matches!(self.verdict(commit), Verdict::Send(under) if under.as_ref() == membership)
        };
        let many = self.commits.queue.iter().take_while(goes_along).count().max(1);
        self.commits.of_the_same_topics(many)
    }

    /// Ends those under way whose partitions were all accepted, if others were not.
    pub(super) fn end_unharmed(&mut self, response: &OffsetCommitResponse) {
        let refused: BTreeSet<_> = response
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(move |partition| (topic, partition)))
            .filter(|(_, partition)| partition.error_code.is_err())
            .map(|(topic, partition)| {
                let name = self.commits.ids.name(&topic.name, topic.topic_id);
                TopicPartition::new(name, partition.partition_index)
            })
            .collect();
        let harmed = |commit: &Commit| commit.offsets.iter().any(|(name, _)| refused.contains(name));
        self.end_bundled(|commit| !harmed(commit), |_| Ok(Answer::Done));
    }

    /// Ends those under way whose time is over while others still have some.
    pub(super) fn expire_bundled(&mut self) {
        let now = self.now;
        let timeout =
            |of: &Commit| Err(Error::Timeout { what: "the commit".to_owned(), after: of.timeout, why: None });
        self.end_bundled(|commit| commit.deadline <= now, timeout);
    }

    /// Ends some of those under way; the last one is left to the answer to the request.
    fn end_bundled(
        &mut self,
        ends: impl Fn(&Commit) -> bool,
        answer: impl Fn(&Commit) -> Result<Answer, Error>,
    ) {
        let mut at = 0;
        while self.commits.bundled > 0 && at <= self.commits.bundled {
            if !self.commits.queue.get(at).is_some_and(&ends) {
                at += 1;
                continue;
            }
            self.commits.bundled -= 1;
            if let Some(commit) = self.commits.queue.remove(at) {
                self.answer(commit.call, answer(&commit));
            }
        }
        self.count_commits();
    }
}
