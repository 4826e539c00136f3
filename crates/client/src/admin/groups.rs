//! Groups: list, describe, delete.

use super::{Admin, Each, caller::checked, only};
use crate::{Error, TopicPartition, cluster::Target};
use std::{collections::BTreeMap, sync::Arc};
use tontine_wire::{
    ErrorCode,
    api::{consumer_group_describe, delete_groups, describe_groups, list_groups},
    consumer_protocol::{Assignment, PROTOCOL_TYPE},
};

/// How ConsumerGroupDescribe marks a member that speaks the classic protocol.
const CLASSIC_MEMBER: i8 = 0;

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    /// Its id.
    pub id: String,
    /// What its members are: `consumer` for consumers, nothing for a group that only has offsets.
    pub protocol_type: String,
    /// `Stable`, `Empty` and so on, as brokers call it.
    pub state: String,
    /// `classic` or `consumer`, where brokers tell.
    pub kind: String,
}

/// A group and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its id.
    pub id: String,
    /// `Stable`, `Empty` and so on, as brokers call it.
    pub state: String,
    /// The assignor that the group uses.
    pub assignor: String,
    /// Its members, in the order of the answer.
    pub members: Vec<MemberDescription>,
    /// The epoch of a group of the consumer protocol.
    pub epoch: Option<i32>,
    /// The epoch that its targets are for; behind `epoch` when newer ones are due.
    pub target_epoch: Option<i32>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// The id the coordinator gave it.
    pub id: String,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<String>,
    /// How its client calls itself.
    pub client_id: String,
    /// Where it connected from.
    pub host: String,
    /// What it owns. In a group of the consumer protocol also what it has not let go of yet.
    pub assignment: Vec<TopicPartition>,
    /// What it is to own, in a group of the consumer protocol.
    pub target: Option<Vec<TopicPartition>>,
    /// The epoch it is at, in a group of the consumer protocol.
    pub epoch: Option<i32>,
    /// Whether it speaks the classic protocol, which members of both kinds of groups may do.
    pub is_classic: bool,
}

impl Admin {
    /// The groups that any broker coordinates.
    pub async fn list_groups(&self) -> Result<Vec<GroupListing>, Error> {
        let brokers = self.describe_cluster().await?.brokers;
        let op = self.caller.operation("listing groups");
        let request = list_groups::ListGroupsRequest::default();
        let mut groups = BTreeMap::new();
        for broker in brokers {
            let answer = self.caller.retry(&op, || async {
                let answer = self.caller.call(&op, Target::Node(broker.id), request.clone()).await?;
                checked(answer.error_code, "listing groups", None)?;
                Ok(answer)
            });
            for g in answer.await?.groups {
                let (protocol_type, state) = (g.protocol_type, g.group_state);
                let listing =
                    GroupListing { id: g.group_id.clone(), protocol_type, state, kind: g.group_type };
                groups.insert(g.group_id, listing);
            }
        }
        Ok(groups.into_values().collect())
    }

    /// Describes a group. A group that does not exist is described as `Dead` by brokers up to Kafka 3.9, and is the
    /// error `GROUP_ID_NOT_FOUND` from Kafka 4.0 on.
    pub async fn describe_group(&self, group: &str) -> Result<GroupDescription, Error> {
        let context = format!("describing group `{group}`");
        let op = self.caller.operation(context.clone());
        let id: Arc<str> = group.into();
        match self.caller.retry(&op, || async { self.describe_consumer(&op, &id, &context).await }).await {
            Ok(description) => Ok(description),
            // Not a group of the consumer protocol, or the broker does not know that protocol.
            Err(Error::Unsupported(_)) => {
                self.caller.retry(&op, || async { self.describe_classic(&op, &id, &context).await }).await
            }
            Err(e)
                if matches!(
                    e.code(),
                    Some(ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::UNSUPPORTED_VERSION)
                ) =>
            {
                self.caller.retry(&op, || async { self.describe_classic(&op, &id, &context).await }).await
            }
            Err(error) => Err(error),
        }
    }

    /// Describes groups.
    pub async fn describe_groups(
        &self,
        groups: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Each<String, GroupDescription>, Error> {
        let mut each = Each::new();
        for group in groups {
            let group = group.into();
            let result = self.describe_group(&group).await;
            each.insert(group, result);
        }
        Ok(each)
    }

    async fn describe_classic(
        &self,
        op: &super::caller::Operation,
        group: &Arc<str>,
        context: &str,
    ) -> Result<GroupDescription, Error> {
        let groups = vec![group.to_string()];
        let request = describe_groups::DescribeGroupsRequest { groups, include_authorized_operations: false };
        let answer = self.caller.call(op, Target::Coordinator(group.clone()), request).await?;
        let missing =
            || Error::Malformed(format!("{context}: the broker's answer does not mention it").into());
        let group_answer = answer.groups.into_iter().next().ok_or_else(missing)?;
        if group_answer.error_code == ErrorCode::GROUP_ID_NOT_FOUND {
            checked(group_answer.error_code, context, group_answer.error_message)?;
        }
        self.caller.coordinated(group, group_answer.error_code, context)?;
        let is_consumer = group_answer.protocol_type == PROTOCOL_TYPE;
        let member = |m: describe_groups::DescribedGroupMember| {
            // Another kind of group puts bytes of its own there.
            let assignment =
                if is_consumer { Assignment::from_assignment(m.member_assignment).ok() } else { None };
            MemberDescription {
                id: m.member_id,
                instance_id: m.group_instance_id,
                client_id: m.client_id,
                host: m.client_host,
                assignment: assignment.map(partitions).unwrap_or_default(),
                target: None,
                epoch: None,
                is_classic: true,
            }
        };
        Ok(GroupDescription {
            id: group_answer.group_id,
            state: group_answer.group_state,
            assignor: group_answer.protocol_data,
            members: group_answer.members.into_iter().map(member).collect(),
            epoch: None,
            target_epoch: None,
        })
    }

    async fn describe_consumer(
        &self,
        op: &super::caller::Operation,
        group: &Arc<str>,
        context: &str,
    ) -> Result<GroupDescription, Error> {
        let request = consumer_group_describe::ConsumerGroupDescribeRequest {
            group_ids: vec![group.to_string()],
            include_authorized_operations: false,
        };
        let answer = self.caller.call(op, Target::Coordinator(group.clone()), request).await?;
        let missing =
            || Error::Malformed(format!("{context}: the broker's answer does not mention it").into());
        let answer = answer.groups.into_iter().next().ok_or_else(missing)?;
        self.caller.coordinated(group, answer.error_code, context)?;
        let member = |m: consumer_group_describe::Member| MemberDescription {
            id: m.member_id,
            instance_id: m.instance_id,
            client_id: m.client_id,
            host: m.client_host,
            assignment: sorted(m.assignment),
            target: Some(sorted(m.target_assignment)),
            epoch: Some(m.member_epoch),
            is_classic: m.member_type == CLASSIC_MEMBER,
        };
        Ok(GroupDescription {
            id: answer.group_id,
            state: answer.group_state,
            assignor: answer.assignor_name,
            members: answer.members.into_iter().map(member).collect(),
            epoch: Some(answer.group_epoch),
            target_epoch: Some(answer.assignment_epoch),
        })
    }

    /// Deletes a group that has no members, with its offsets.
    pub async fn delete_group(&self, group: &str) -> Result<(), Error> {
        only(self.delete_groups([group]).await?, &format!("deleting group `{group}`"))
    }

    /// Deletes groups that have no members, with their offsets.
    pub async fn delete_groups(
        &self,
        groups: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Each<String, ()>, Error> {
        let mut each = Each::new();
        for group in groups {
            let id: Arc<str> = group.into().into();
            let context = format!("deleting group `{id}`");
            let op = self.caller.operation(context.clone());
            let request = delete_groups::DeleteGroupsRequest { groups_names: vec![id.to_string()] };
            let attempt = || async {
                let answer = self.caller.call(&op, Target::Coordinator(id.clone()), request.clone()).await?;
                answer.results.iter().try_for_each(|r| self.caller.coordinated(&id, r.error_code, &context))
            };
            let result = self.caller.retry(&op, attempt).await;
            each.insert(id.to_string(), result);
        }
        Ok(each)
    }
}

fn partitions(assignment: Assignment) -> Vec<TopicPartition> {
    let topics = assignment.assigned_partitions.into_iter();
    let mut all: Vec<_> = topics.flat_map(|t| tuples(t.topic.into(), t.partitions)).collect();
    all.sort();
    all
}

fn sorted(assignment: consumer_group_describe::Assignment) -> Vec<TopicPartition> {
    let mut all: Vec<_> = assignment.topic_partitions.into_iter().flat_map(named).collect();
    all.sort();
    all
}

fn named(topic: consumer_group_describe::TopicPartitions) -> Vec<TopicPartition> {
    tuples(topic.topic_name.into(), topic.partitions)
}

fn tuples(topic: Arc<str>, partitions: Vec<i32>) -> Vec<TopicPartition> {
    partitions.into_iter().map(|p| TopicPartition::new(topic.clone(), p)).collect()
}
