//! ConsumerGroupDescribe, and the state of a consumer group.

use super::{
    ServerAssignors,
    stored::{Held, Partitions, StoredConsumer},
};
use crate::{coordinator::output::GroupState, topics::Topics};
use std::collections::BTreeMap;
use tontine_wire::{ErrorCode, Uuid, api::consumer_group_describe::*};

/// The state a group is in.
pub(in crate::coordinator) fn state(group: &StoredConsumer) -> GroupState {
    if group.members.is_empty() {
        GroupState::Empty
    } else if group.epoch > group.target_epoch {
        GroupState::Assigning
    } else if group.tally.settled_at(group.target_epoch) == group.members.len() {
        GroupState::Stable
    } else {
        GroupState::Reconciling
    }
}

/// Describes a group that is here.
pub(in crate::coordinator) fn describe(
    id: &str,
    group: &StoredConsumer,
    topics: &Topics,
    assignors: ServerAssignors,
) -> DescribedGroup {
    let members = group.members.iter().map(|(id, member)| {
        let mut has = places(&member.assigned);
        for (topic, partitions) in places(&member.revoking) {
            has.entry(topic).or_default().extend(partitions);
        }
        Member {
            member_id: id.to_string(),
            instance_id: member.instance_id.as_deref().map(str::to_owned),
            rack_id: member.rack_id.clone(),
            member_epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            subscribed_topic_names: member.names.iter().cloned().collect(),
            subscribed_topic_regex: Some(member.regex.clone()),
            assignment: assignment(&has, topics),
            target_assignment: assignment(&group.target(id), topics),
            member_type: i8::from(member.classic.is_none()),
        }
    });
    DescribedGroup {
        group_id: id.to_owned(),
        group_state: state(group).name().to_owned(),
        group_epoch: group.epoch,
        assignment_epoch: group.target_epoch,
        assignor_name: assignors.preferred(&group.tally.assignors).name().to_owned(),
        members: members.collect(),
        ..Default::default()
    }
}

/// Describes a group that is not here, or is not of this kind.
pub(in crate::coordinator) fn missing(id: &str, is_classic: bool) -> DescribedGroup {
    let message = if is_classic {
        format!("Group {id} is not a consumer group.")
    } else {
        format!("Group {id} not found.")
    };
    DescribedGroup {
        error_code: ErrorCode::GROUP_ID_NOT_FOUND,
        error_message: Some(message),
        group_id: id.to_owned(),
        ..Default::default()
    }
}

fn places(held: &Held) -> Partitions {
    held.iter().map(|(topic, partitions)| (*topic, partitions.keys().copied().collect())).collect()
}

/// Topics that are gone are not shown.
fn assignment(partitions: &Partitions, topics: &Topics) -> Assignment {
    let names: BTreeMap<Uuid, &str> = topics.iter().map(|(name, topic)| (topic.id, &**name)).collect();
    let topic_partitions = partitions.iter().filter_map(|(topic_id, partitions)| {
        Some(TopicPartitions {
            topic_id: *topic_id,
            topic_name: (*names.get(topic_id)?).to_owned(),
            partitions: partitions.iter().copied().collect(),
        })
    });
    Assignment { topic_partitions: topic_partitions.filter(|t| !t.partitions.is_empty()).collect() }
}
