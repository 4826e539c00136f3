//! Which topics the consumer needs to know of, and what it means when they change.
//!
//! Decides what a pattern stands for, and notices a topic that was deleted and created again: its partitions start
//! afresh, no position is taken over.

use super::{ConsumerState, Tell, Wanted};
use crate::{Error, cluster::TopicsOfInterest};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_group::member::GroupProtocol;
use tontine_wire::ErrorCode;

impl ConsumerState {
    /// Tells the cluster which topics matter, when that changed.
    pub(super) fn update_interest(&mut self) {
        if !std::mem::take(&mut self.interest_is_stale) {
            return;
        }
        let interest = self.topics_of_interest();
        if interest != self.interest {
            self.interest = interest.clone();
            self.cluster.set_topics(self.now, interest);
        }
    }

    fn topics_of_interest(&self) -> TopicsOfInterest {
        let mut names = BTreeSet::new();
        if let Some(group) = &self.group {
            match &group.wanted {
                Some(Wanted::Pattern { .. }) => return TopicsOfInterest::All,
                Some(Wanted::Names(topics)) => names.extend(topics.iter().cloned()),
                None => {}
            }
            names.extend(group.needed.iter().cloned());
        }
        names.extend(self.fetches.partitions.keys().map(|name| name.topic.clone()));
        names.extend(self.lookups.topics());
        TopicsOfInterest::Names(names)
    }

    pub(super) fn metadata_changed(&mut self) {
        self.restart_recreated();
        self.hurry_partitions();
        self.doubt_all();
        self.hurry_lookups();
        self.complain();
        self.answer_partitions();
        self.fetches.reindex();
        // A leader would take what is not told yet for what does not exist, and plan without it.
        if self.cluster.is_partial() {
            return;
        }
        self.resolve_pattern();
        let topics = self.cluster.metadata().to_topics();
        if let Some(group) = &mut self.group {
            group.member.handle_topics(self.now, &topics);
        }
    }

    /// What waited for another leader goes on when there is one.
    fn hurry_partitions(&mut self) {
        let metadata = self.cluster.metadata();
        for (name, partition) in &mut self.fetches.partitions {
            if let Some(known) = metadata.partition(name).filter(|known| known.leader.is_some()) {
                partition.leader_is_known(known.leader_epoch);
            }
        }
    }

    /// Tells the application of topics that it names and that cannot be read, once each: as an error if no waiting will
    /// help, as a warning if somebody may still create it.
    fn complain(&mut self) {
        let code_of = |name: &Arc<str>| self.cluster.metadata().topic(name).map(|topic| topic.error);
        let is_bad =
            |code: &ErrorCode| !code.is_retriable() || *code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let bad: BTreeMap<Arc<str>, ErrorCode> = self
            .named_topics()
            .into_iter()
            .filter_map(|name| {
                code_of(&name).filter(|code| code.is_err() && is_bad(code)).map(|code| (name, code))
            })
            .collect();
        for (name, code) in &bad {
            if self.bad_topics.get(name) == Some(code) {
                continue;
            }
            self.tells.push_back(if code.is_retriable() {
                Tell::Warned(format!("there is no topic `{name}`: waiting until somebody creates it").into())
            } else {
                let error = Error::broker(*code, format!("reading `{name}`"), None);
                Tell::Failed { error, fatal: false }
            });
        }
        self.bad_topics = bad;
    }

    /// The topics that the application chose by name, of a group or by partition.
    fn named_topics(&self) -> BTreeSet<Arc<str>> {
        match self.group.as_ref().and_then(|group| group.wanted.as_ref()) {
            Some(Wanted::Names(names)) => names.clone(),
            Some(Wanted::Pattern { .. }) => BTreeSet::new(),
            None => self.fetches.partitions.keys().map(|name| name.topic.clone()).collect(),
        }
    }

    /// Subscribes to what the pattern stands for, when that changed. With the consumer protocol the coordinator knows
    /// better; what is found here only tells the application.
    pub(super) fn resolve_pattern(&mut self) {
        let Some(group) = &mut self.group else { return };
        let Some(Wanted::Pattern { regex, .. }) = &group.wanted else { return };
        let metadata = self.cluster.metadata();
        if metadata.brokers().is_empty() || self.interest != TopicsOfInterest::All {
            return;
        }
        let visible = metadata.topics().values().filter(|topic| topic.error.is_ok());
        let wanted = visible.filter(|topic| !(topic.is_internal && self.settings.exclude_internal_topics));
        let matching: BTreeSet<Arc<str>> =
            wanted.filter(|topic| regex.matches(&topic.name)).map(|topic| topic.name.clone()).collect();
        let is_ours = group.member.protocol() == GroupProtocol::Classic;
        if is_ours && matching != *group.member.subscription() {
            group.member.subscribe(self.now, matching.clone());
        }
        if group.matched.as_ref() != Some(&matching) {
            group.matched = Some(matching.clone());
            self.tell(Tell::Matched(matching));
        }
    }

    /// With the consumer protocol the partitions of the new topic are assigned by the coordinator like any others, perhaps
    /// to somebody else: what was owned of the old one is not read any more until it is taken away.
    fn restart_recreated(&mut self) {
        let metadata = self.cluster.metadata();
        let group = self.group.as_ref().filter(|group| !group.member.assignment().is_empty());
        let waits = group.is_some_and(|group| group.member.protocol() == GroupProtocol::Consumer);
        let mut recreated = Vec::new();
        for (name, partition) in &mut self.fetches.partitions {
            let Some(topic) = metadata.topic(&name.topic).filter(|topic| !topic.id.is_zero()) else {
                continue;
            };
            if partition.topic_id.is_zero() {
                partition.topic_id = topic.id;
            } else if partition.topic_id != topic.id && waits {
                partition.open = false;
            } else if partition.topic_id != topic.id {
                partition.topic_id = topic.id;
                recreated.push(name.clone());
            }
        }
        for name in recreated {
            let (incarnation, phase) = (self.next_incarnation(), self.first_phase());
            if let Some(partition) = self.fetches.partitions.get_mut(&name) {
                partition.restart(incarnation, phase);
                self.fetches.seeking = true;
                self.tell(Tell::Restarted { partition: name, incarnation });
            }
        }
    }
}
