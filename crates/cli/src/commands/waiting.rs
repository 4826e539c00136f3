//! Who is waited for in a group of the consumer protocol: how far each member is on the way to its target, and who holds
//! what somebody else is to have.

use crate::output::Table;
use tontine::{
    TopicPartition,
    admin::{GroupDescription, MemberDescription},
};

/// The epoch of a static member that has left and is expected back.
const AWAY: i32 = -2;

/// Why a partition is not where it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing<'a> {
    pub(crate) partition: &'a TopicPartition,
    /// Who is to have it.
    pub(crate) to: &'a str,
    /// Who still holds it; nobody when its new owner only has to hear of it.
    pub(crate) from: Option<&'a str>,
}

impl std::fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Missing { partition, to, from } = self;
        match from {
            Some(from) => write!(f, "member {from} still holds {partition}, which goes to {to}"),
            None => write!(f, "member {to} has not asked for {partition} yet"),
        }
    }
}

/// Every partition that is not where it should be.
pub(crate) fn missing(group: &GroupDescription) -> Vec<Missing<'_>> {
    let holder = |partition: &TopicPartition| {
        group
            .members
            .iter()
            .find(|member| member.assignment.contains(partition))
            .map(|member| member.id.as_str())
    };
    let mut found: Vec<Missing<'_>> = group
        .members
        .iter()
        .flat_map(|member| member.target.iter().flatten().map(move |partition| (member, partition)))
        .filter(|(member, partition)| !member.assignment.contains(partition))
        .map(|(member, partition)| Missing { partition, to: &member.id, from: holder(partition) })
        .collect();
    found.sort_by_key(|missing| missing.partition);
    found
}

/// Members whose partitions are all where they should be, and of which the group waits for a word all the same.
fn silent(group: &GroupDescription, missing: &[Missing<'_>]) -> Vec<String> {
    let named = |id: &str| missing.iter().any(|missing| missing.to == id || missing.from == Some(id));
    let line = |member: &MemberDescription| match (member.epoch?, group.target_epoch?) {
        (AWAY, _) => {
            let name = member.instance_id.as_deref().unwrap_or(&member.id);
            Some(format!("{name} is away, and what it had waits for it until its session is over"))
        }
        (is, newest) if is < newest && !named(&member.id) => {
            Some(format!("member {} has not confirmed epoch {newest} yet", member.id))
        }
        _ => None,
    };
    group.members.iter().filter_map(line).collect()
}

/// The members with their epochs and targets, and a line for everything that is waited for. Nothing for a group of the
/// classic protocol, of which brokers do not tell that.
pub(crate) fn text(group: &GroupDescription) -> String {
    let (Some(epoch), Some(target_epoch)) = (group.epoch, group.target_epoch) else { return String::new() };
    if group.members.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["MEMBER", "PROTOCOL", "EPOCH", "HAS", "TARGET"]);
    for member in &group.members {
        table.row([
            member.id.clone(),
            protocol(member).to_owned(),
            member.epoch.map(|epoch| epoch.to_string()).unwrap_or_default(),
            list(&member.assignment),
            list(member.target.as_deref().unwrap_or_default()),
        ]);
    }
    let mut text = table.render();
    if target_epoch < epoch {
        text += &format!("waiting: the target of epoch {epoch} is not computed yet\n");
    }
    let missing = missing(group);
    for missing in &missing {
        text += &format!("waiting: {missing}\n");
    }
    for silent in silent(group, &missing) {
        text += &format!("waiting: {silent}\n");
    }
    text
}

/// The protocol that a member speaks.
pub(crate) fn protocol(member: &MemberDescription) -> &'static str {
    if member.is_classic { "classic" } else { "consumer" }
}

fn list(partitions: &[TopicPartition]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, epoch: i32, has: &[i32], target: &[i32]) -> MemberDescription {
        let partitions =
            |numbers: &[i32]| numbers.iter().map(|p| TopicPartition::new("orders", *p)).collect();
        MemberDescription {
            id: id.to_owned(),
            instance_id: None,
            client_id: String::new(),
            host: String::new(),
            assignment: partitions(has),
            target: Some(partitions(target)),
            epoch: Some(epoch),
            is_classic: false,
        }
    }

    fn group(target_epoch: i32, members: Vec<MemberDescription>) -> GroupDescription {
        GroupDescription {
            id: "billing".to_owned(),
            state: "Reconciling".to_owned(),
            assignor: "uniform".to_owned(),
            members,
            epoch: Some(4),
            target_epoch: Some(target_epoch),
        }
    }

    #[test]
    fn who_holds_what_somebody_else_is_to_have_is_named() {
        let group = group(4, vec![member("a", 3, &[0, 1, 3], &[0, 1]), member("b", 4, &[], &[2, 3])]);
        let lines: Vec<String> = missing(&group).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            ["member b has not asked for orders-2 yet", "member a still holds orders-3, which goes to b"]
        );
    }

    #[test]
    fn a_group_at_rest_waits_for_nobody() {
        let text = text(&group(4, vec![member("a", 4, &[0], &[0])]));
        assert_eq!(
            text,
            "MEMBER  PROTOCOL  EPOCH  HAS       TARGET\na       consumer  4      orders-0  orders-0\n"
        );
    }

    #[test]
    fn a_member_that_only_has_to_confirm_and_one_that_is_away_are_named() {
        let away = MemberDescription { instance_id: Some("i1".to_owned()), ..member("b", -2, &[1], &[1]) };
        let text = text(&group(4, vec![member("a", 3, &[0], &[0]), away, member("c", 4, &[2], &[2])]));
        let waiting: Vec<&str> = text.lines().filter(|line| line.starts_with("waiting")).collect();
        assert_eq!(
            waiting,
            [
                "waiting: member a has not confirmed epoch 4 yet",
                "waiting: i1 is away, and what it had waits for it until its session is over"
            ]
        );
    }

    #[test]
    fn a_target_that_is_due_is_said_to_be() {
        let text = text(&group(3, vec![member("a", 3, &[0], &[0])]));
        assert!(text.ends_with("waiting: the target of epoch 4 is not computed yet\n"), "{text}");
    }
}
