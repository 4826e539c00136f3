//! What the tests of the assignors write their examples with.

use super::{Assignor, MemberSubscription};
use crate::{Assignment, TopicPartition, topics::Topics};
use std::sync::Arc;

/// A member that wants these topics and owns nothing.
pub(crate) fn member(id: &str, topics: &[&str]) -> MemberSubscription {
    MemberSubscription {
        member_id: id.into(),
        topics: topics.iter().map(|topic| Arc::from(*topic)).collect(),
        ..MemberSubscription::default()
    }
}

/// One line for each member: its id and its partitions.
pub(crate) fn lines(assignment: &Assignment, members: &[MemberSubscription]) -> Vec<String> {
    let by_member = assignment.by_member(members.len());
    let line = |(member, partitions): (&MemberSubscription, &Vec<TopicPartition>)| {
        let partitions: Vec<_> = partitions.iter().map(ToString::to_string).collect();
        format!("{}: {}", member.member_id, partitions.join(" ")).trim_end().to_owned()
    };
    members.iter().zip(&by_member).map(line).collect()
}

/// What an assignor gives, a line for each member.
pub(crate) fn assigned(
    assignor: &dyn Assignor,
    topics: &Topics,
    members: &[MemberSubscription],
) -> Vec<String> {
    lines(&assignor.assign(topics, members), members)
}
