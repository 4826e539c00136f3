//! The leader's duties: read what the members want, deal the partitions, write each member's share.
//!
//! Nothing that another member sends can stop it: subscriptions that make no sense count as empty ones. Mirrors `ConsumerCoordinator.onLeaderElected`.

use super::Ticket;
use crate::{
    TopicPartition,
    assignor::{Assignor, MemberSubscription, SubscriptionReader},
    rebalance::cooperative,
    topics::Topics,
};
use bytes::Bytes;
use std::{
    collections::BTreeSet,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};
use tontine_wire::{
    api::{join_group::JoinGroupResponseMember, sync_group::SyncGroupRequestAssignment},
    consumer_protocol::{self, TopicPartitions},
};

/// The members of a group as its leader sees them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    members: Vec<MemberSubscription>,
    /// The version in which each member writes its subscription, so that it can read its assignment.
    versions: Vec<i16>,
    topics: BTreeSet<Arc<str>>,
}

impl Group {
    pub(crate) fn read(members: Vec<JoinGroupResponseMember>) -> Self {
        let mut group = Self::default();
        let mut reader = SubscriptionReader::new();
        for member in members {
            group.versions.push(version_of(&member.metadata));
            group.members.push(subscription_of(&mut reader, member));
        }
        group.topics = topics_of(&group.members);
        group
    }

    /// Every topic that somebody in the group wants.
    pub(crate) fn topics(&self) -> &BTreeSet<Arc<str>> {
        &self.topics
    }

    /// Deals the partitions and writes each member's share.
    fn plan(&self, assignor: &dyn Assignor, topics: &Topics) -> Vec<SyncGroupRequestAssignment> {
        let mut plan = assignor.assign(topics, &self.members);
        // The cooperative assignors that come with the library withhold what moves by themselves; here everybody's own
        // assignor is made to. Kafka's client refuses such a plan with an exception, which ends the leader.
        cooperative::withhold(&self.members, &mut plan);
        let shares = plan.by_member(self.members.len());
        let share = |(member, share): (usize, Vec<TopicPartition>)| self.write(member, share, topics);
        shares.into_iter().enumerate().filter_map(share).collect()
    }

    fn known(&self, topics: &Topics) -> Topics {
        let mut known = Topics::new();
        for name in &self.topics {
            if let Some(topic) = topics.get(name) {
                known.insert(name.clone(), topic.clone());
            }
        }
        known
    }

    /// A share in the member's own version; what it did not ask for and what does not exist is left out.
    fn write(
        &self,
        member: usize,
        share: Vec<TopicPartition>,
        known: &Topics,
    ) -> Option<SyncGroupRequestAssignment> {
        let (subscription, version) = self.members.get(member).zip(self.versions.get(member))?;
        let wanted = |same: &&[TopicPartition]| subscription.topics.binary_search(&same[0].topic).is_ok();
        let by_topic = share.chunk_by(|a, b| Arc::ptr_eq(&a.topic, &b.topic)).filter(wanted);
        let assigned_partitions = by_topic.filter_map(|same| existing(same, known)).collect();
        let assignment = consumer_protocol::Assignment { assigned_partitions, user_data: None };
        Some(SyncGroupRequestAssignment {
            member_id: subscription.member_id.clone(),
            assignment: assignment.to_assignment(*version),
        })
    }
}

/// The leader's task, with all that is needed for it.
#[derive(Clone, Debug)]
#[must_use = "the group waits for its plan"]
pub struct Planning {
    ticket: Ticket,
    assignor: Arc<dyn Assignor>,
    group: Group,
    topics: Topics,
}

impl Planning {
    pub(crate) fn new(ticket: Ticket, assignor: Arc<dyn Assignor>, group: Group, topics: &Topics) -> Self {
        let topics = group.known(topics);
        Self { ticket, assignor, group, topics }
    }

    /// Runs the assignor. When it panics, that is the plan: the member tells the application.
    pub fn run(&self) -> Plan {
        let shares = guarded(|| self.group.plan(self.assignor.as_ref(), &self.topics));
        Plan { ticket: self.ticket, shares }
    }
}

/// Runs a method of the application's own assignor; if it panics, answers with what it says. Nothing of the member is
/// touched meanwhile, so nothing is left half done.
pub(super) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "without a message".to_owned())
    })
}

/// What came out of a [`Planning`].
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) ticket: Ticket,
    pub(crate) shares: Result<Vec<SyncGroupRequestAssignment>, String>,
}

/// The version that comes first in the metadata, as far as it can be spoken here.
fn version_of(metadata: &Bytes) -> i16 {
    let version = metadata.first_chunk::<2>().map_or(0, |bytes| i16::from_be_bytes(*bytes));
    version.clamp(0, 3)
}

/// Subscriptions that make no sense count as empty ones.
fn subscription_of(reader: &mut SubscriptionReader, member: JoinGroupResponseMember) -> MemberSubscription {
    let JoinGroupResponseMember { member_id, group_instance_id: instance_id, metadata, .. } = member;
    let read = reader.read(member_id.clone(), instance_id.clone(), &metadata);
    read.unwrap_or(MemberSubscription { member_id, instance_id, ..MemberSubscription::default() })
}

/// Every topic that somebody wants. Members mostly want what the one before them wants.
fn topics_of(members: &[MemberSubscription]) -> BTreeSet<Arc<str>> {
    let mut topics = BTreeSet::new();
    for alike in members.chunk_by(|a, b| a.topics == b.topics) {
        topics.extend(alike.iter().take(1).flat_map(|member| member.topics.iter().cloned()));
    }
    topics
}

/// Those partitions of one topic that exist.
fn existing(same: &[TopicPartition], known: &Topics) -> Option<TopicPartitions> {
    let topic = &same.first()?.topic;
    let count = known.partitions(topic)?;
    let partitions: Vec<i32> = same.iter().map(|tp| tp.partition).filter(|p| *p < count).collect();
    (!partitions.is_empty()).then(|| TopicPartitions { topic: topic.to_string(), partitions })
}

/// Partitions grouped by topic, as messages carry them. The partitions of a topic must come together.
pub(crate) fn by_topic(partitions: impl IntoIterator<Item = TopicPartition>) -> Vec<TopicPartitions> {
    let mut grouped: Vec<TopicPartitions> = Vec::new();
    for tp in partitions {
        match grouped.last_mut() {
            Some(last) if *last.topic == *tp.topic => last.partitions.push(tp.partition),
            _ => {
                grouped.push(TopicPartitions { topic: tp.topic.to_string(), partitions: vec![tp.partition] })
            }
        }
    }
    grouped
}

/// Partitions out of a message, each once, without those that cannot exist.
pub(crate) fn flat(grouped: Vec<TopicPartitions>) -> BTreeSet<TopicPartition> {
    let mut partitions = BTreeSet::new();
    for topic in grouped {
        let name: Arc<str> = topic.topic.into();
        let numbers = topic.partitions.into_iter().filter(|p| *p >= 0);
        partitions.extend(numbers.map(|p| TopicPartition::new(name.clone(), p)));
    }
    partitions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assignment, assignor::RebalanceProtocol};
    use std::collections::BTreeMap;
    use tontine_wire::consumer_protocol::Subscription;

    /// Gives everything to the member with the greatest id, whoever holds it.
    #[derive(Debug)]
    struct WinnerTakesAll;

    impl Assignor for WinnerTakesAll {
        fn name(&self) -> &str {
            "winner-takes-all"
        }
        fn rebalance_protocol(&self) -> RebalanceProtocol {
            RebalanceProtocol::Cooperative
        }
        fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
            let winner = (0..members.len()).max_by_key(|m| &members[*m].member_id).unwrap_or(0);
            let mut plan = Assignment::new();
            for (name, topic) in topics.iter() {
                (0..topic.partitions + 1).for_each(|p| plan.assign(name, p, winner));
            }
            plan
        }
    }

    fn member(
        id: &str,
        topics: &[&str],
        owned: &[(&'static str, i32)],
        version: i16,
    ) -> JoinGroupResponseMember {
        let subscription = Subscription {
            topics: topics.iter().map(|t| t.to_string()).collect(),
            owned_partitions: by_topic(owned.iter().map(|(t, p)| TopicPartition::new(*t, *p))),
            ..Subscription::default()
        };
        JoinGroupResponseMember {
            member_id: id.into(),
            metadata: subscription.to_metadata(version),
            ..JoinGroupResponseMember::default()
        }
    }

    fn shares(group: &Group, topics: &Topics) -> BTreeMap<String, Vec<TopicPartition>> {
        let plan = group.plan(&WinnerTakesAll, topics);
        plan.into_iter()
            .map(|share| {
                let read = consumer_protocol::Assignment::from_assignment(share.assignment).unwrap();
                (share.member_id, flat(read.assigned_partitions).into_iter().collect())
            })
            .collect()
    }

    #[test]
    fn a_partition_that_another_member_holds_is_withheld_whatever_the_assignor_says() {
        let group = Group::read(vec![member("a", &["t"], &[("t", 0)], 3), member("b", &["t"], &[], 3)]);
        let shares = shares(&group, &Topics::new().with("t", 2));
        assert_eq!(shares["a"], []);
        assert_eq!(shares["b"], [TopicPartition::new("t", 1)]);
    }

    #[test]
    fn rubbish_from_one_member_does_not_stop_the_leader() {
        let mut odd = member("z", &["t"], &[], 3);
        odd.metadata = Bytes::from_static(&[0, 3, 0, 0, 0, 200]);
        let empty = JoinGroupResponseMember { member_id: "y".into(), ..Default::default() };
        let group = Group::read(vec![odd, empty, member("a", &["t"], &[], 3)]);
        let shares = shares(&group, &Topics::new().with("t", 1));
        assert_eq!(shares.len(), 3);
        assert_eq!(shares["z"], [], "it asked for nothing that can be read");
    }

    #[test]
    fn each_share_is_written_in_the_version_of_its_member() {
        let group = Group::read(vec![member("a", &["t"], &[], 0), member("b", &["t"], &[], 2)]);
        let plan = group.plan(&WinnerTakesAll, &Topics::new().with("t", 1));
        assert_eq!(plan.iter().map(|s| version_of(&s.assignment)).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn partitions_that_do_not_exist_and_topics_nobody_asked_for_are_left_out() {
        let group = Group::read(vec![member("a", &["t"], &[], 3), member("b", &["u"], &[], 3)]);
        let shares = shares(&group, &Topics::new().with("t", 1).with("u", 1));
        assert_eq!(shares["a"], []);
        assert_eq!(shares["b"], [TopicPartition::new("u", 0)]);
    }
}
