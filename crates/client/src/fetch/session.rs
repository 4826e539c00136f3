//! Incremental fetch sessions (KIP-227): a broker remembers what is fetched, and is told only what changes.
//!
//! Decides what a request has to list, given what the broker remembers. Mirrors `FetchSessionHandler`.

use super::plan::Want;
use std::cmp::Ordering;
use tontine_group::TopicPartition;
use tontine_wire::{
    ErrorCode, Uuid,
    api::fetch::{FetchPartition, FetchRequest, FetchTopic, ForgottenTopic},
};

/// What a broker has to know of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) topic_id: Uuid,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) max_bytes: i32,
}

/// The session with one broker.
#[derive(Debug, Default)]
pub(crate) struct Session {
    id: i32,
    /// 0: the next request lists everything.
    epoch: i32,
    /// Sorted by name.
    known: Vec<(TopicPartition, Asked)>,
    /// The last partition that records came of. A broker without sessions is asked for those behind it first; one with
    /// sessions remembers itself whose turn it is.
    served: Option<TopicPartition>,
}

impl Session {
    /// Fills in a request for exactly these partitions, which are sorted by name.
    pub(crate) fn fill(&mut self, request: &mut FetchRequest, wanted: &[Want]) {
        request.session_id = self.id;
        request.session_epoch = self.epoch;
        if self.epoch == 0 {
            for want in self.in_turn(wanted) {
                add(&mut request.topics, want);
            }
        } else {
            self.fill_changes(request, wanted);
        }
        self.remember(wanted);
    }

    /// Lists what is new or different, and what is not wanted any more. Both lists are sorted: one walk along both.
    fn fill_changes(&self, request: &mut FetchRequest, wanted: &[Want]) {
        let (mut known, mut wanted) = (self.known.iter().peekable(), wanted.iter().peekable());
        loop {
            let order = match (known.peek(), wanted.peek()) {
                (Some((name, _)), Some(want)) => name.cmp(&want.name),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            let before = known.next_if(|_| order.is_le());
            let now = wanted.next_if(|_| order.is_ge());
            if let Some((name, before)) = before
                && now.is_none_or(|now| now.asked.topic_id != before.topic_id)
            {
                forget(&mut request.forgotten_topics_data, name, before.topic_id);
            }
            if let Some(now) = now
                && before.is_none_or(|(_, before)| *before != now.asked)
            {
                add(&mut request.topics, now);
            }
        }
    }

    fn remember(&mut self, wanted: &[Want]) {
        let alike = self.known.len() == wanted.len()
            && self.known.iter().zip(wanted).all(|((name, _), want)| *name == want.name);
        if alike {
            for ((_, known), want) in self.known.iter_mut().zip(wanted) {
                *known = want.asked;
            }
        } else {
            self.known = wanted.iter().map(|want| (want.name.clone(), want.asked)).collect();
        }
    }

    fn in_turn<'a>(&self, wanted: &'a [Want]) -> impl Iterator<Item = &'a Want> + use<'a> {
        let first = match &self.served {
            Some(last) => wanted.partition_point(|want| want.name <= *last),
            None => 0,
        };
        let (before, behind) = wanted.split_at_checked(first).unwrap_or((wanted, &[]));
        behind.iter().chain(before)
    }

    /// Records came of this partition.
    pub(crate) fn served(&mut self, name: &TopicPartition) {
        if self.epoch == 0 && self.served.as_ref() != Some(name) {
            self.served = Some(name.clone());
        }
    }

    /// The broker has answered a request of this session.
    pub(crate) fn answered(&mut self, error: ErrorCode, id: i32) {
        if error.is_err() {
            // The broker has forgotten the session, or it is of no use: start anew, and let it drop the old one.
            let known = error != ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
            *self =
                Self { id: if known { self.id } else { 0 }, served: self.served.take(), ..Self::default() };
        } else if id == 0 {
            *self = Self { served: self.served.take(), ..Self::default() };
        } else if self.epoch == 0 {
            (self.id, self.epoch) = (id, 1);
        } else {
            self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        }
    }

    /// There was no answer: nobody knows what the broker remembers.
    pub(crate) fn broken(&mut self) {
        self.epoch = 0;
        self.known.clear();
    }

    /// The request that ends the session, when there is one.
    pub(crate) fn end(&mut self) -> Option<FetchRequest> {
        let id = std::mem::take(self).id;
        (id != 0).then(|| FetchRequest {
            replica_id: -1,
            session_id: id,
            session_epoch: -1,
            ..FetchRequest::default()
        })
    }
}

fn add(topics: &mut Vec<FetchTopic>, want: &Want) {
    let Want { name, asked, .. } = want;
    let partition = FetchPartition {
        partition: name.partition,
        current_leader_epoch: asked.leader_epoch,
        fetch_offset: asked.offset,
        partition_max_bytes: asked.max_bytes,
        ..FetchPartition::default()
    };
    match topics.last_mut().filter(|last| *last.topic == *name.topic && last.topic_id == asked.topic_id) {
        Some(last) => last.partitions.push(partition),
        None => topics.push(FetchTopic {
            topic: name.topic.to_string(),
            topic_id: asked.topic_id,
            partitions: vec![partition],
        }),
    }
}

fn forget(topics: &mut Vec<ForgottenTopic>, name: &TopicPartition, topic_id: Uuid) {
    match topics.last_mut().filter(|last| *last.topic == *name.topic && last.topic_id == topic_id) {
        Some(last) => last.partitions.push(name.partition),
        None => topics.push(ForgottenTopic {
            topic: name.topic.to_string(),
            topic_id,
            partitions: vec![name.partition],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Incarnation;

    fn asked(offset: i64) -> Asked {
        Asked { topic_id: Uuid::from_u128(7), offset, leader_epoch: -1, max_bytes: 100 }
    }

    fn want(partition: i32, asked: Asked) -> Want {
        Want { name: TopicPartition::new("t", partition), asked, incarnation: Incarnation::granted(1) }
    }

    fn wanted(partitions: &[(i32, i64)]) -> Vec<Want> {
        partitions.iter().map(|(p, offset)| want(*p, asked(*offset))).collect()
    }

    fn listed(session: &mut Session, partitions: &[(i32, i64)]) -> (Vec<i32>, Vec<i32>, i32) {
        let mut request = FetchRequest::default();
        session.fill(&mut request, &wanted(partitions));
        let new = request.topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.partition)).collect();
        let gone = request.forgotten_topics_data.iter().flat_map(|t| t.partitions.clone()).collect();
        (new, gone, request.session_epoch)
    }

    #[test]
    fn only_what_changed_is_listed_once_the_broker_has_a_session() {
        let mut session = Session::default();
        assert_eq!(listed(&mut session, &[(0, 5), (1, 5)]), (vec![0, 1], vec![], 0));
        session.answered(ErrorCode::NONE, 9);
        assert_eq!(listed(&mut session, &[(0, 6), (1, 5)]), (vec![0], vec![], 1));
        session.answered(ErrorCode::NONE, 9);
        assert_eq!(listed(&mut session, &[(0, 6), (2, 0)]), (vec![2], vec![1], 2));
    }

    #[test]
    fn a_broker_without_sessions_is_told_everything_each_time() {
        let mut session = Session::default();
        for _ in 0..2 {
            assert_eq!(listed(&mut session, &[(0, 5)]), (vec![0], vec![], 0));
            session.answered(ErrorCode::NONE, 0);
        }
        assert!(session.end().is_none());
    }

    #[test]
    fn a_broker_without_sessions_is_asked_first_for_what_it_left_out_before() {
        let mut session = Session::default();
        let all = [(0, 5), (1, 5), (2, 5), (3, 5)];
        assert_eq!(listed(&mut session, &all).0, [0, 1, 2, 3]);
        session.answered(ErrorCode::NONE, 0);
        session.served(&TopicPartition::new("t", 1));
        assert_eq!(listed(&mut session, &all).0, [2, 3, 0, 1]);
        session.answered(ErrorCode::NONE, 0);
        session.served(&TopicPartition::new("t", 3));
        assert_eq!(listed(&mut session, &all).0, [0, 1, 2, 3]);
    }

    #[test]
    fn a_lost_answer_starts_a_new_session_and_ends_the_old_one() {
        let mut session = Session::default();
        listed(&mut session, &[(0, 5)]);
        session.answered(ErrorCode::NONE, 9);
        session.broken();
        assert_eq!(listed(&mut session, &[(0, 5)]), (vec![0], vec![], 0));
        assert_eq!(session.id, 9);
        session.answered(ErrorCode::FETCH_SESSION_ID_NOT_FOUND, 0);
        assert_eq!(session.id, 0);
    }

    #[test]
    fn a_recreated_topic_is_forgotten_under_its_old_id_and_listed_under_its_new_one() {
        let mut session = Session::default();
        listed(&mut session, &[(0, 5)]);
        session.answered(ErrorCode::NONE, 9);
        let mut request = FetchRequest::default();
        let new = Asked { topic_id: Uuid::from_u128(8), ..asked(0) };
        session.fill(&mut request, &[want(0, new)]);
        assert_eq!(request.topics[0].topic_id, Uuid::from_u128(8));
        assert_eq!(request.forgotten_topics_data[0].topic_id, Uuid::from_u128(7));
    }
}
