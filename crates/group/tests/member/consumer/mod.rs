//! A member of the consumer protocol in the hand of a test.

mod errors;
mod leaving;
mod life;
mod names;

use crate::rig::{Rig, config, names as names_of};
use std::time::Duration;
use tontine_group::{
    member::{GroupProtocol, MemberConfig, MemberState, Ticket},
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{Request, consumer_group_heartbeat::*},
};

/// Topic `a` has id 1 and four partitions, `b` id 2 and three.
pub(crate) const A: u128 = 1;
pub(crate) const B: u128 = 2;

pub(crate) fn topics(all: &[(&str, u128)]) -> Topics {
    let mut topics = Topics::new();
    for (name, id) in all {
        topics.insert(*name, Topic { id: Uuid::from_u128(*id), partitions: 4, racks: Vec::new() });
    }
    topics
}

pub(crate) fn consumer() -> Rig {
    consumer_with(|_| {})
}

pub(crate) fn consumer_with(change: impl FnOnce(&mut MemberConfig)) -> Rig {
    let mut config = MemberConfig { protocol: GroupProtocol::Consumer, ..config() };
    change(&mut config);
    let mut rig = Rig::new(config);
    rig.topics(topics(&[("a", A), ("b", B)]));
    rig
}

pub(crate) fn static_consumer() -> Rig {
    consumer_with(|config| config.instance_id = Some("i1".into()))
}

pub(crate) fn places(all: &[(u128, i32)]) -> Vec<TopicPartitions> {
    let mut topics: Vec<TopicPartitions> = Vec::new();
    for (topic, partition) in all {
        let topic_id = Uuid::from_u128(*topic);
        match topics.last_mut().filter(|last| last.topic_id == topic_id) {
            Some(last) => last.partitions.push(*partition),
            None => topics.push(TopicPartitions { topic_id, partitions: vec![*partition] }),
        }
    }
    topics
}

pub(crate) fn answer(epoch: i32, assignment: Option<&[(u128, i32)]>) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse {
        member_epoch: epoch,
        heartbeat_interval_ms: 5_000,
        assignment: assignment.map(|all| Assignment { topic_partitions: places(all) }),
        ..Default::default()
    }
}

impl Rig {
    /// The heartbeat that waits for an answer, without waiting for one.
    pub(crate) fn said(&mut self) -> Option<(Ticket, ConsumerGroupHeartbeatRequest)> {
        let index =
            self.requests.iter().position(|(_, r)| matches!(r, Request::ConsumerGroupHeartbeat(_)))?;
        match self.requests.remove(index) {
            Some((ticket, Request::ConsumerGroupHeartbeat(request))) => Some((ticket, request)),
            _ => None,
        }
    }

    /// The next heartbeat, waiting for it.
    pub(crate) fn beat(&mut self) -> (Ticket, ConsumerGroupHeartbeatRequest) {
        for _ in 0..100 {
            if let Some(said) = self.said() {
                return said;
            }
            self.now = self.drain().expect("a heartbeat is to come").at;
            self.do_with(|m, now| m.handle_timeout(now));
        }
        panic!("no heartbeat in state {}", self.member.state());
    }

    /// Answers the next heartbeat; returns what it said.
    pub(crate) fn tell(
        &mut self,
        epoch: i32,
        assignment: Option<&[(u128, i32)]>,
    ) -> ConsumerGroupHeartbeatRequest {
        let (ticket, request) = self.beat();
        self.answer(ticket, answer(epoch, assignment));
        request
    }

    /// Refuses the next heartbeat.
    pub(crate) fn refuse(&mut self, error_code: ErrorCode) -> ConsumerGroupHeartbeatRequest {
        let (ticket, request) = self.beat();
        let error_message = Some("because".to_owned());
        self.answer(
            ticket,
            ConsumerGroupHeartbeatResponse { error_code, error_message, ..Default::default() },
        );
        request
    }

    /// At rest at epoch 2, with this of topics `a` and `b`.
    pub(crate) fn at_rest(&mut self, assignment: &[(u128, i32)]) -> &mut Self {
        self.subscribe(&["a", "b"]).poll();
        self.tell(2, Some(assignment));
        self.run();
        self.tell(2, None);
        assert_eq!(self.member.state(), MemberState::Stable);
        self.rest()
    }

    /// Time in which the coordinator has nothing to say.
    pub(crate) fn rest(&mut self) -> &mut Self {
        let end = self.now + Duration::from_secs(30);
        while self.now < end {
            let epoch = self.member.membership().expect("a member").generation;
            self.tell(epoch, None);
            self.poll();
        }
        self
    }

    pub(crate) fn subscribe_matching(&mut self, regex: &str) -> &mut Self {
        self.do_with(|m, now| m.subscribe_matching(now, regex))
    }

    pub(crate) fn epoch(&self) -> Option<i32> {
        self.member.membership().map(|membership| membership.generation)
    }
}

pub(crate) fn subscribed(request: &ConsumerGroupHeartbeatRequest) -> Option<Vec<&str>> {
    request.subscribed_topic_names.as_ref().map(|names| names.iter().map(String::as_str).collect())
}

#[test]
fn each_member_has_an_id_of_its_own_that_stays() {
    let ids: std::collections::BTreeSet<String> = (0..1000)
        .map(|seed| {
            let config = MemberConfig { protocol: GroupProtocol::Consumer, ..config() };
            let mut member = tontine_group::member::Member::new(config, seed);
            member.subscribe(tontine_group::Instant::ZERO, names_of(&["a"]));
            member.member_id().to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 1000);
    assert!(ids.iter().all(|id| id.len() == 22 && !id.starts_with('-')), "{ids:?}");
}
