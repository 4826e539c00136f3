//! A member as the scripts know it: as simple as a client can be, and driven by hand.

use std::collections::BTreeMap;
use tontine_wire::{
    ErrorCode,
    api::{Request, heartbeat::*, join_group::*, leave_group::*, offset_commit::*, sync_group::*},
    consumer_protocol::{Assignment, Subscription, TopicPartitions},
};

pub(crate) const GROUP: &str = "g";

/// What a client is about to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// Join.
    Out,
    /// Wait for the answer to its join.
    Joining,
    /// Sync, with what the answer said.
    Joined(JoinGroupResponse),
    /// Wait for the answer to its sync.
    Syncing,
    /// Send heartbeats.
    Stable,
    /// Nothing any more.
    Gone,
}

#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) instance: Option<String>,
    pub(crate) generation: i32,
    pub(crate) topics: Vec<String>,
    pub(crate) protocols: Vec<String>,
    pub(crate) session_ms: i32,
    pub(crate) rebalance_ms: i32,
    pub(crate) version: i16,
    pub(crate) state: State,
}

impl Client {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: String::new(),
            instance: None,
            generation: -1,
            topics: Vec::new(),
            protocols: vec!["range".to_owned()],
            session_ms: 10_000,
            rebalance_ms: 60_000,
            version: 9,
            state: State::Out,
        }
    }

    pub(crate) fn join(&self) -> Request {
        let subscription = Subscription { topics: self.topics.clone(), ..Default::default() };
        let protocol = |name: &String| JoinGroupRequestProtocol {
            name: name.clone(),
            metadata: subscription.to_metadata(3),
        };
        JoinGroupRequest {
            group_id: GROUP.to_owned(),
            session_timeout_ms: self.session_ms,
            rebalance_timeout_ms: self.rebalance_ms,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: "consumer".to_owned(),
            protocols: self.protocols.iter().map(protocol).collect(),
            reason: None,
        }
        .into()
    }

    /// The sync that follows a join: the leader deals the partitions of all topics in turn.
    pub(crate) fn sync(&self, partitions: &BTreeMap<String, i32>) -> Request {
        let assignments = match &self.state {
            State::Joined(answer) if answer.leader == self.id && !answer.skip_assignment => {
                deal(answer, partitions)
            }
            _ => Vec::new(),
        };
        SyncGroupRequest {
            group_id: GROUP.to_owned(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            assignments,
            ..Default::default()
        }
        .into()
    }

    pub(crate) fn heartbeat(&self) -> Request {
        HeartbeatRequest {
            group_id: GROUP.to_owned(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
        }
        .into()
    }

    pub(crate) fn leave(&self, reason: &str) -> Request {
        let member = MemberIdentity {
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            reason: Some(reason.to_owned()),
        };
        LeaveGroupRequest { group_id: GROUP.to_owned(), member_id: String::new(), members: vec![member] }
            .into()
    }

    pub(crate) fn commit(&self, topic: &str, partition_index: i32, committed_offset: i64) -> Request {
        let partition =
            OffsetCommitRequestPartition { partition_index, committed_offset, ..Default::default() };
        let topic = OffsetCommitRequestTopic {
            name: topic.to_owned(),
            partitions: vec![partition],
            ..Default::default()
        };
        OffsetCommitRequest {
            group_id: GROUP.to_owned(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            topics: vec![topic],
            ..Default::default()
        }
        .into()
    }

    /// What an error of the group means to a client.
    pub(crate) fn refused(&mut self, code: ErrorCode) {
        self.state = match code {
            ErrorCode::FENCED_INSTANCE_ID
            | ErrorCode::GROUP_MAX_SIZE_REACHED
            | ErrorCode::INCONSISTENT_GROUP_PROTOCOL => State::Gone,
            _ => State::Out,
        };
        if code == ErrorCode::UNKNOWN_MEMBER_ID {
            self.id.clear();
        }
    }
}

fn deal(answer: &JoinGroupResponse, partitions: &BTreeMap<String, i32>) -> Vec<SyncGroupRequestAssignment> {
    let members = &answer.members;
    let mut dealt = vec![BTreeMap::<String, Vec<i32>>::new(); members.len()];
    for (topic, count) in partitions {
        let wants = |i: &usize| {
            let metadata = members[*i].metadata.clone();
            Subscription::from_metadata(metadata).is_ok_and(|s| s.topics.contains(topic))
        };
        let takers: Vec<usize> = (0..members.len()).filter(wants).collect();
        for partition in 0..*count {
            if let Some(taker) = takers.get(partition as usize % takers.len().max(1)) {
                dealt[*taker].entry(topic.clone()).or_default().push(partition);
            }
        }
    }
    let assignment = |topics: BTreeMap<String, Vec<i32>>| {
        let topic = |(topic, partitions)| TopicPartitions { topic, partitions };
        let assigned_partitions = topics.into_iter().map(topic).collect();
        Assignment { assigned_partitions, user_data: None }.to_assignment(3)
    };
    let members = members.iter().map(|m| m.member_id.clone());
    let pair = |(member_id, topics)| SyncGroupRequestAssignment { member_id, assignment: assignment(topics) };
    members.zip(dealt).map(pair).collect()
}

/// `t:0,1`: what an assignment says.
pub(crate) fn assignment_text(bytes: &bytes::Bytes) -> String {
    let assignment = Assignment::from_assignment(bytes.clone()).unwrap_or_default();
    let topic = |t: &TopicPartitions| {
        let numbers: Vec<String> = t.partitions.iter().map(i32::to_string).collect();
        format!("{}:{}", t.topic, numbers.join(","))
    };
    let topics: Vec<String> = assignment.assigned_partitions.iter().map(topic).collect();
    if topics.is_empty() { "nothing".to_owned() } else { topics.join(" ") }
}
