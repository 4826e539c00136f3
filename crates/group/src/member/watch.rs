//! Whether a plan still fits: what it was made from against what is known by now.
//!
//! It does not decide when to join again. Mirrors `ConsumerCoordinator.MetadataSnapshot`.

use crate::{Cause, TopicPartition, topics::Topics};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What the leader's plan was made from, to compare with what becomes known later.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    topics: BTreeSet<Arc<str>>,
    /// `None` until metadata of the group's topics are there: a leader that came back has not planned itself.
    planned: Option<BTreeMap<Arc<str>, Shape>>,
    racks_matter: bool,
}

/// The part of a topic that a plan depends on.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    partitions: i32,
    racks: Vec<BTreeSet<Arc<str>>>,
}

impl Watch {
    /// Watches these topics, from the first snapshot on that knows them.
    pub(crate) fn new(topics: BTreeSet<Arc<str>>, racks_matter: bool) -> Self {
        Self { topics, planned: None, racks_matter }
    }

    /// Whether the snapshot knows all topics of the group.
    pub(crate) fn is_covered_by(&self, snapshot: &Topics) -> bool {
        self.topics.iter().all(|name| snapshot.get(name).is_some())
    }

    /// The plan was made from this snapshot.
    pub(crate) fn planned_from(&mut self, snapshot: &Topics) {
        self.planned = Some(self.shapes(snapshot));
    }

    /// Takes this snapshot for what the plan was made from, if nobody said better: it is the first one after this leader
    /// came back.
    pub(crate) fn adopt(&mut self, snapshot: &Topics) {
        if self.planned.is_none() {
            self.planned_from(snapshot);
        }
    }

    pub(crate) fn knows_its_topics(&self) -> bool {
        self.planned.is_some()
    }

    /// Every topic that somebody in the group wants.
    pub(crate) fn topics(&self) -> &BTreeSet<Arc<str>> {
        &self.topics
    }

    fn shapes(&self, snapshot: &Topics) -> BTreeMap<Arc<str>, Shape> {
        let mut shapes = BTreeMap::new();
        for name in &self.topics {
            let Some(topic) = snapshot.get(name) else { continue };
            let racks = if self.racks_matter { topic.racks.as_slice() } else { &[] };
            let racks = racks.iter().map(|racks| racks.iter().cloned().collect()).collect();
            shapes.insert(name.clone(), Shape { partitions: topic.partitions, racks });
        }
        shapes
    }

    /// What the plan of somebody else, who made it before this leader came back, has too little or too much of.
    pub(crate) fn audit(&self, assigned: &BTreeSet<TopicPartition>, snapshot: &Topics) -> Option<Cause> {
        let gone =
            assigned.iter().find(|tp| self.topics.contains(&tp.topic) && snapshot.get(&tp.topic).is_none());
        let gone = gone.map(|tp| Cause::TopicDeleted { topic: tp.topic.clone() });
        gone.or_else(|| incomplete(&self.topics, assigned, snapshot))
    }

    /// What changed since the plan was made, if it asks for a new one.
    pub(crate) fn change(&self, snapshot: &Topics) -> Option<Cause> {
        let (planned, now) = (self.planned.as_ref()?, self.shapes(snapshot));
        for name in &self.topics {
            let topic = name.clone();
            match (planned.get(name), now.get(name)) {
                (None, Some(_)) => return Some(Cause::TopicCreated { topic }),
                (Some(_), None) => return Some(Cause::TopicDeleted { topic }),
                (Some(was), Some(is)) if was.partitions != is.partitions => {
                    return Some(Cause::PartitionsChanged { topic, from: was.partitions, to: is.partitions });
                }
                (Some(was), Some(is)) if new_rack(was, is) => {
                    return Some(Cause::Requested { reason: format!("racks of {topic} changed") });
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        None
    }
}

/// The topics that a plan of somebody else leaves without an owner in part, or gives out although they are gone.
pub(crate) fn incomplete(
    topics: &BTreeSet<Arc<str>>,
    assigned: &BTreeSet<TopicPartition>,
    snapshot: &Topics,
) -> Option<Cause> {
    for name in topics {
        let Some(partitions) = snapshot.partitions(name) else { continue };
        let from =
            assigned.iter().filter(|tp| tp.topic == *name).map(|tp| tp.partition + 1).max().unwrap_or(0);
        let complete = (0..partitions).all(|p| assigned.contains(&TopicPartition::new(name.clone(), p)));
        if !complete || from > partitions {
            return Some(Cause::PartitionsChanged { topic: name.clone(), from, to: partitions });
        }
    }
    None
}

/// Whether a replica moved to another rack. Racks that are only missing belong to brokers that are down for a while.
fn new_rack(was: &Shape, is: &Shape) -> bool {
    was.racks.iter().zip(&is.racks).any(|(was, is)| !is.is_subset(was))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watching(topics: BTreeSet<Arc<str>>, snapshot: &Topics, racks_matter: bool) -> Watch {
        let mut watch = Watch::new(topics, racks_matter);
        watch.planned_from(snapshot);
        watch
    }

    #[test]
    fn a_leader_that_came_back_watches_from_the_first_metadata_on() {
        let mut watch = Watch::new(BTreeSet::from(["a".into(), "later".into()]), false);
        assert_eq!(watch.change(&Topics::new().with("a", 1)), None);
        watch.adopt(&Topics::new().with("a", 1));
        watch.adopt(&Topics::new().with("a", 2));
        assert!(watch.change(&Topics::new().with("a", 2)).is_some());
    }

    #[test]
    fn an_audit_of_the_leader_finds_topics_that_are_gone() {
        let mut watch = Watch::new(BTreeSet::from(["a".into(), "b".into()]), false);
        watch.adopt(&Topics::new().with("a", 1));
        let owned = BTreeSet::from([TopicPartition::new("a", 0), TopicPartition::new("b", 0)]);
        let cause = watch.audit(&owned, &Topics::new().with("a", 1));
        assert_eq!(cause, Some(Cause::TopicDeleted { topic: "b".into() }));
    }

    #[test]
    fn an_audit_finds_partitions_without_an_owner_and_owners_of_what_is_gone() {
        let topics = BTreeSet::from(["a".into()]);
        let owned = BTreeSet::from([TopicPartition::new("a", 0), TopicPartition::new("a", 1)]);
        assert_eq!(incomplete(&topics, &owned, &Topics::new().with("a", 2)), None);
        assert!(incomplete(&topics, &owned, &Topics::new().with("a", 3)).is_some());
        assert!(incomplete(&topics, &owned, &Topics::new().with("a", 1)).is_some());
    }

    #[test]
    fn the_leader_watches_the_topics_of_all_members() {
        let topics = BTreeSet::from(["foo".into(), "bar".into()]);
        let before = Topics::new().with("foo", 1).with("bar", 1);
        let watch = watching(topics, &before, false);
        assert_eq!(watch.change(&before), None);
        assert_eq!(watch.change(&before.clone().with("other", 3)), None);
        assert_eq!(
            watch.change(&before.clone().with("bar", 2)),
            Some(Cause::PartitionsChanged { topic: "bar".into(), from: 1, to: 2 })
        );
        assert_eq!(
            watch.change(&Topics::new().with("foo", 1)),
            Some(Cause::TopicDeleted { topic: "bar".into() })
        );
    }

    #[test]
    fn a_topic_that_appears_is_noticed() {
        let watch = watching(BTreeSet::from(["t".into()]), &Topics::new(), false);
        assert_eq!(
            watch.change(&Topics::new().with("t", 1)),
            Some(Cause::TopicCreated { topic: "t".into() })
        );
    }

    #[test]
    fn a_broker_that_is_down_for_a_while_is_no_change_of_racks() {
        let racks = |racks: &[&str]| {
            let topic = crate::topics::Topic {
                partitions: 1,
                racks: vec![racks.iter().map(|r| Arc::from(*r)).collect()],
                ..Default::default()
            };
            let mut topics = Topics::new();
            topics.insert("t", topic);
            topics
        };
        let watch = watching(BTreeSet::from(["t".into()]), &racks(&["a", "b"]), true);
        assert_eq!(watch.change(&racks(&["a"])), None);
        assert!(watch.change(&racks(&["a", "c"])).is_some());
        let blind = watching(BTreeSet::from(["t".into()]), &racks(&["a", "b"]), false);
        assert_eq!(blind.change(&racks(&["c"])), None);
    }
}
