//! Requests as one line of text: `group=g generation=1 member=$memberA instance=~`. `~` is null, `[a;b]` a list.

use crate::embedded::{assignment_bytes, subscription_bytes};
use std::collections::BTreeMap;
use tontine_group::topics::Topics;
use tontine_wire::{
    Uuid,
    api::{
        Request,
        consumer_group_describe::ConsumerGroupDescribeRequest,
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, TopicPartitions},
        delete_groups::*,
        describe_groups::*,
        heartbeat::*,
        join_group::*,
        leave_group::*,
        list_groups::*,
        offset_commit::*,
        offset_delete::*,
        offset_fetch::*,
        sync_group::*,
    },
};

/// The words of a line.
pub(crate) struct Words<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Words<'a> {
    pub(crate) fn read(line: &'a str) -> Self {
        Self(line.split_whitespace().map(|word| word.split_once('=').unwrap()).collect())
    }

    fn text(&self, key: &str) -> &'a str {
        self.0.get(key).unwrap_or_else(|| panic!("no {key}= in the line"))
    }

    fn string(&self, key: &str) -> String {
        self.text(key).to_owned()
    }

    fn option(&self, key: &str) -> Option<String> {
        option(self.text(key))
    }

    fn number(&self, key: &str) -> i32 {
        self.text(key).parse().unwrap()
    }

    fn list(&self, key: &str) -> Vec<&'a str> {
        let text = self.text(key).strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap();
        text.split(';')
            .filter(|item| !item.is_empty())
            .map(|item| if item == "''" { "" } else { item })
            .collect()
    }

    fn strings(&self, key: &str) -> Vec<String> {
        self.list(key).into_iter().map(str::to_owned).collect()
    }
}

fn option(text: &str) -> Option<String> {
    (text != "~").then(|| text.to_owned())
}

/// Metadata of an offset: `x*4097` is that many x.
fn metadata(text: &str) -> Option<String> {
    match text.strip_prefix("x*") {
        Some(count) => Some("x".repeat(count.parse().unwrap())),
        None => option(text),
    }
}

fn partition(text: &str) -> (&str, i32) {
    let (topic, partition) = text.rsplit_once(':').unwrap();
    (topic, partition.parse().unwrap())
}

/// `id:t2` is the id of topic t2, or the id itself.
fn topic_id(text: &str, topics: &Topics) -> Option<Uuid> {
    let name = text.strip_prefix("id:")?;
    Some(topics.get(name).map(|t| t.id).unwrap_or_else(|| name.parse().unwrap()))
}

fn name_or_id(text: &str, topics: &Topics, version: i16) -> (String, Uuid) {
    match topic_id(text, topics) {
        Some(id) => (String::new(), id),
        None if version >= 10 => (String::new(), text.parse().unwrap()),
        None => (text.to_owned(), Uuid::ZERO),
    }
}

pub(crate) fn request(api: &str, version: i16, words: &Words<'_>, topics: &Topics) -> Request {
    match api {
        "JoinGroup" => join(words).into(),
        "SyncGroup" => sync(words).into(),
        "Heartbeat" => HeartbeatRequest {
            group_id: words.string("group"),
            generation_id: words.number("generation"),
            member_id: words.string("member"),
            group_instance_id: words.option("instance"),
        }
        .into(),
        "LeaveGroup" => leave(words, version).into(),
        "OffsetCommit" => commit(words, version, topics).into(),
        "OffsetFetch" => fetch(words, version, topics).into(),
        "OffsetDelete" => delete_offsets(words).into(),
        "DescribeGroups" => {
            DescribeGroupsRequest { groups: words.strings("groups"), ..Default::default() }.into()
        }
        "ListGroups" => {
            ListGroupsRequest { states_filter: words.strings("states"), types_filter: words.strings("types") }
                .into()
        }
        "DeleteGroups" => DeleteGroupsRequest { groups_names: words.strings("groups") }.into(),
        "ConsumerGroupHeartbeat" => beat(words, topics).into(),
        "ConsumerGroupDescribe" => {
            ConsumerGroupDescribeRequest { group_ids: words.strings("groups"), ..Default::default() }.into()
        }
        other => panic!("no such request: {other}"),
    }
}

fn join(words: &Words<'_>) -> JoinGroupRequest {
    let protocol = |text: &str| {
        let (name, subscription) = text.split_once('=').unwrap();
        JoinGroupRequestProtocol { name: name.to_owned(), metadata: subscription_bytes(subscription) }
    };
    JoinGroupRequest {
        group_id: words.string("group"),
        session_timeout_ms: words.number("session"),
        rebalance_timeout_ms: words.number("rebalance"),
        member_id: words.string("member"),
        group_instance_id: words.option("instance"),
        protocol_type: words.string("type"),
        protocols: words.list("protocols").into_iter().map(protocol).collect(),
        reason: None,
    }
}

fn sync(words: &Words<'_>) -> SyncGroupRequest {
    let assignment = |text: &str| {
        let (member, assignment) = text.split_once('=').unwrap();
        SyncGroupRequestAssignment { member_id: member.to_owned(), assignment: assignment_bytes(assignment) }
    };
    SyncGroupRequest {
        group_id: words.string("group"),
        generation_id: words.number("generation"),
        member_id: words.string("member"),
        group_instance_id: words.option("instance"),
        protocol_type: words.option("type"),
        protocol_name: words.option("protocol"),
        assignments: words.list("assignments").into_iter().map(assignment).collect(),
    }
}

fn leave(words: &Words<'_>, version: i16) -> LeaveGroupRequest {
    let group_id = words.string("group");
    if version < 3 {
        return LeaveGroupRequest { group_id, member_id: words.string("member"), members: Vec::new() };
    }
    let member = |text: &str| {
        let (member, instance) = text.split_once('/').unwrap();
        MemberIdentity { member_id: member.to_owned(), group_instance_id: option(instance), reason: None }
    };
    let members = words.list("members").into_iter().map(member).collect();
    LeaveGroupRequest { group_id, member_id: String::new(), members }
}

fn commit(words: &Words<'_>, version: i16, topics: &Topics) -> OffsetCommitRequest {
    let mut wanted: Vec<OffsetCommitRequestTopic> = Vec::new();
    for item in words.list("offsets") {
        let (place, rest) = item.split_once('=').unwrap();
        let (offset, rest) = rest.split_once('@').unwrap();
        let (epoch, note) = rest.split_once('!').unwrap();
        let (topic, partition_index) = partition(place);
        let (name, topic_id) = name_or_id(topic, topics, version);
        if wanted.last().is_none_or(|last| last.name != name || last.topic_id != topic_id) {
            wanted.push(OffsetCommitRequestTopic { name, topic_id, partitions: Vec::new() });
        }
        wanted.last_mut().unwrap().partitions.push(OffsetCommitRequestPartition {
            partition_index,
            committed_offset: offset.parse().unwrap(),
            committed_leader_epoch: epoch.parse().unwrap(),
            committed_metadata: metadata(note),
        });
    }
    OffsetCommitRequest {
        group_id: words.string("group"),
        generation_id_or_member_epoch: words.number("generation"),
        member_id: words.string("member"),
        group_instance_id: words.option("instance"),
        topics: wanted,
        ..Default::default()
    }
}

fn fetch(words: &Words<'_>, version: i16, topics: &Topics) -> OffsetFetchRequest {
    let mut wanted: Vec<OffsetFetchRequestTopics> = Vec::new();
    let all = words.text("want") == "*";
    for item in if all { Vec::new() } else { words.list("want") } {
        let (topic, partition) = partition(item);
        let (name, topic_id) = name_or_id(topic, topics, version);
        if wanted.last().is_none_or(|last| last.name != name || last.topic_id != topic_id) {
            wanted.push(OffsetFetchRequestTopics { name, topic_id, partition_indexes: Vec::new() });
        }
        wanted.last_mut().unwrap().partition_indexes.push(partition);
    }
    let group_id = words.string("group");
    if version >= 8 {
        let (member_id, member_epoch) = (words.option("member"), words.number("epoch"));
        let group =
            OffsetFetchRequestGroup { group_id, member_id, member_epoch, topics: (!all).then_some(wanted) };
        return OffsetFetchRequest { groups: vec![group], ..Default::default() };
    }
    let single = |t: OffsetFetchRequestTopics| OffsetFetchRequestTopic {
        name: t.name,
        partition_indexes: t.partition_indexes,
    };
    let topics = (!all).then(|| wanted.into_iter().map(single).collect());
    OffsetFetchRequest { group_id, topics, ..Default::default() }
}

fn beat(words: &Words<'_>, topics: &Topics) -> ConsumerGroupHeartbeatRequest {
    let list = |key: &str| (words.text(key) != "~").then(|| words.strings(key));
    let owned = |item: &String| {
        let (topic, partition) = partition(item);
        let topic_id = topics.get(topic).map_or_else(|| topic.parse().unwrap(), |t| t.id);
        TopicPartitions { topic_id, partitions: vec![partition] }
    };
    let plain = |key: &str| words.string(key).replace("%20", " ");
    ConsumerGroupHeartbeatRequest {
        group_id: plain("group"),
        member_id: plain("member"),
        member_epoch: words.number("epoch"),
        instance_id: words.option("instance"),
        rack_id: words.option("rack"),
        rebalance_timeout_ms: words.number("rebalance"),
        subscribed_topic_names: list("names"),
        subscribed_topic_regex: words.option("regex"),
        server_assignor: words.option("assignor"),
        topic_partitions: list("owned").map(|items| merged(items.iter().map(owned))),
    }
}

/// Partitions of one topic go together.
fn merged(items: impl Iterator<Item = TopicPartitions>) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    items.for_each(|item| topics.entry(item.topic_id).or_default().extend(item.partitions));
    topics.into_iter().map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions }).collect()
}

fn delete_offsets(words: &Words<'_>) -> OffsetDeleteRequest {
    let topic = |item: &str| {
        let (name, partition_index) = partition(item);
        OffsetDeleteRequestTopic {
            name: name.to_owned(),
            partitions: vec![OffsetDeleteRequestPartition { partition_index }],
        }
    };
    let topics = words.list("want").into_iter().map(topic).collect();
    OffsetDeleteRequest { group_id: words.string("group"), topics }
}
