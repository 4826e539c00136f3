//! A consumer group as it will be when the records of one decision are applied: the group as it is, and what changes.
//!
//! Deciding has several steps, each of which needs to see the ones before. Copying the group would cost as much as the
//! group is large, so only what changes is kept here, next to the records that say so.

use super::{
    record::ConsumerRecord,
    stored::{ConsumerMember, Partitions, StoredConsumer, target_value},
    tally::Tally,
};
use crate::topics::{Topic, Topics};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::group_records::*;

/// A group and what is about to change.
pub(super) struct Draft<'a> {
    pub(super) id: &'a str,
    pub(super) group: &'a StoredConsumer,
    pub(super) topics: &'a Topics,
    pub(super) removed: BTreeSet<Arc<str>>,
    /// The one member that this decision is about.
    pub(super) changed: Option<(Arc<str>, ConsumerMember)>,
    regexes: BTreeMap<String, Option<BTreeSet<String>>>,
    pub(super) targets: BTreeMap<Arc<str>, Partitions>,
    pub(super) epoch: i32,
    pub(super) target_epoch: i32,
    pub(super) records: Vec<ConsumerRecord>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(id: &'a str, group: &'a StoredConsumer, topics: &'a Topics) -> Self {
        Self {
            id,
            group,
            topics,
            removed: BTreeSet::new(),
            changed: None,
            regexes: BTreeMap::new(),
            targets: BTreeMap::new(),
            epoch: group.epoch,
            target_epoch: group.target_epoch,
            records: Vec::new(),
        }
    }

    /// All members as they will be, in no order.
    pub(super) fn each_member(&self) -> impl Iterator<Item = (&str, &ConsumerMember)> {
        let changed = self.changed.as_ref().map(|(id, member)| (&**id, member));
        let stays = move |id: &Arc<str>| {
            !self.removed.contains(id) && changed.is_none_or(|(other, _)| other != &**id)
        };
        let others = self.group.members.iter().filter(move |(id, _)| stays(id)).map(|(id, m)| (&**id, m));
        others.chain(changed)
    }

    /// All members as they will be, by id.
    pub(super) fn members(&self) -> BTreeMap<&str, &ConsumerMember> {
        self.each_member().collect()
    }

    /// The sums over all members as they will be.
    pub(super) fn tally(&self) -> Cow<'_, Tally> {
        let mut tally = Cow::Borrowed(&self.group.tally);
        // A member that was taken out and comes back under its id is taken out once.
        let changed = self.changed.as_ref().map(|(id, _)| id).filter(|id| !self.removed.contains(*id));
        for member in self.removed.iter().chain(changed).filter_map(|id| self.group.members.get(id)) {
            tally.to_mut().remove(member);
        }
        if let Some((_, member)) = &self.changed {
            tally.to_mut().add(member);
        }
        tally
    }

    /// Whether nobody will be left.
    pub(super) fn is_empty(&self) -> bool {
        self.each_member().next().is_none()
    }

    /// The topics that a regular expression means, if that is known.
    pub(super) fn resolved(&self, regex: &str) -> Option<&BTreeSet<String>> {
        match self.regexes.get(regex) {
            Some(resolved) => resolved.as_ref(),
            None => self.group.regexes.get(regex),
        }
    }

    /// Notes what a regular expression means.
    pub(super) fn resolve(&mut self, regex: &str, topics: BTreeSet<String>, wall_ms: i64) {
        let key = ConsumerGroupRegularExpressionKey {
            group_id: self.id.to_owned(),
            regular_expression: regex.to_owned(),
        };
        let value = ConsumerGroupRegularExpressionValue {
            topics: topics.iter().cloned().collect(),
            version: 0,
            timestamp: wall_ms,
        };
        self.records.push(ConsumerRecord::Regex(key, Some(value)));
        self.regexes.insert(regex.to_owned(), Some(topics));
    }

    /// Forgets regular expressions that no member uses any more.
    pub(super) fn forget_unused_regexes(&mut self) {
        if self.group.regexes.is_empty() {
            return;
        }
        let used = self.tally().regexes.clone();
        for regex in self.group.regexes.keys().filter(|regex| !used.contains_key(*regex)) {
            let key = ConsumerGroupRegularExpressionKey {
                group_id: self.id.to_owned(),
                regular_expression: regex.clone(),
            };
            self.records.push(ConsumerRecord::Regex(key, None));
            self.regexes.insert(regex.clone(), None);
        }
    }

    /// The topics a member wants, whether they exist or not.
    pub(super) fn topics_of<'b>(&'b self, member: &'b ConsumerMember) -> BTreeSet<&'b str> {
        let by_regex = self.resolved(&member.regex).into_iter().flatten();
        member.names.iter().chain(by_regex).map(String::as_str).collect()
    }

    /// The topics the group wants, as far as they exist.
    pub(super) fn wanted(&self) -> Vec<(Arc<str>, Topic)> {
        let tally = self.tally();
        let mut names: BTreeSet<&str> = tally.names.keys().map(String::as_str).collect();
        for regex in tally.regexes.keys() {
            names.extend(self.resolved(regex).into_iter().flatten().map(String::as_str));
        }
        let found = names.iter().filter_map(|name| self.topics.get_key_value(name));
        found.map(|(name, topic)| (name.clone(), topic.clone())).collect()
    }

    /// What a member is to have.
    pub(super) fn target(&self, member: &str) -> Partitions {
        self.targets.get(member).cloned().unwrap_or_else(|| self.group.target(member))
    }

    /// The group enters another epoch.
    pub(super) fn bump(&mut self, by: i32, metadata_hash: i64) {
        self.epoch = self.epoch.saturating_add(by);
        let key = ConsumerGroupMetadataKey { group_id: self.id.to_owned() };
        let value = ConsumerGroupMetadataValue { epoch: self.epoch, metadata_hash };
        self.records.push(ConsumerRecord::Group(key, Some(value)));
    }

    pub(super) fn write_member(&mut self, id: &str, member: &ConsumerMember) {
        let key = ConsumerGroupMemberMetadataKey { group_id: self.id.to_owned(), member_id: id.to_owned() };
        self.records.push(ConsumerRecord::Member(key, Some(member.metadata_value())));
    }

    pub(super) fn write_current(&mut self, id: &str, member: &ConsumerMember) {
        let key = ConsumerGroupCurrentMemberAssignmentKey {
            group_id: self.id.to_owned(),
            member_id: id.to_owned(),
        };
        self.records.push(ConsumerRecord::Current(key, Some(member.current_value())));
    }

    pub(super) fn write_target(&mut self, id: &Arc<str>, target: Partitions) {
        let key = ConsumerGroupTargetAssignmentMemberKey {
            group_id: self.id.to_owned(),
            member_id: id.to_string(),
        };
        let value = ConsumerGroupTargetAssignmentMemberValue { topic_partitions: target_value(&target) };
        self.records.push(ConsumerRecord::Target(key, Some(value)));
        self.targets.insert(id.clone(), target);
    }

    pub(super) fn write_target_epoch(&mut self, epoch: i32, timestamp: i64) {
        self.target_epoch = epoch;
        let key = ConsumerGroupTargetAssignmentMetadataKey { group_id: self.id.to_owned() };
        let value = ConsumerGroupTargetAssignmentMetadataValue {
            assignment_epoch: epoch,
            assignment_timestamp: timestamp,
        };
        self.records.push(ConsumerRecord::TargetEpoch(key, Some(value)));
    }

    /// Takes a member out: what it has, what it is to have, what it wants, in Kafka's order.
    pub(super) fn remove(&mut self, id: &Arc<str>) {
        let (group_id, member_id) = (self.id.to_owned(), id.to_string());
        let current = ConsumerGroupCurrentMemberAssignmentKey {
            group_id: group_id.clone(),
            member_id: member_id.clone(),
        };
        let target = ConsumerGroupTargetAssignmentMemberKey {
            group_id: group_id.clone(),
            member_id: member_id.clone(),
        };
        self.records.push(ConsumerRecord::Current(current, None));
        self.records.push(ConsumerRecord::Target(target, None));
        let member = ConsumerGroupMemberMetadataKey { group_id, member_id };
        self.records.push(ConsumerRecord::Member(member, None));
        self.removed.insert(id.clone());
    }
}
