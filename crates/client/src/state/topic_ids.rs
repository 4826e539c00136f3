//! Which topics a commit or a read of committed offsets names by id.
//!
//! Offsets belong to the topic that the partition was read of: one that was deleted and created again under the same name
//! never gets them. So the requests of members carry ids, where all of them are known and the broker takes them (version
//! 10); older versions carry the names of the same request. That the classic protocol assigns topics by name makes no
//! difference here. Who is no member commits for a name.

use super::ConsumerState;
use std::{collections::BTreeMap, sync::Arc};
use tontine_group::TopicPartition;
use tontine_wire::Uuid;

/// The highest version of OffsetCommit and of OffsetFetch that names topics.
const HIGHEST_BY_NAME: i16 = 9;

/// The ids of the topics of one request; none when it goes by name.
#[derive(Debug, Default)]
pub(super) struct TopicIds(BTreeMap<Arc<str>, Uuid>);

impl TopicIds {
    pub(super) fn get(&self, topic: &str) -> Uuid {
        self.0.get(topic).copied().unwrap_or(Uuid::ZERO)
    }

    pub(super) fn highest_version(&self) -> i16 {
        if self.0.is_empty() { HIGHEST_BY_NAME } else { i16::MAX }
    }

    /// What an answer calls by id or by name. A topic that was not asked for has no name.
    pub(super) fn name(&self, name: &str, id: Uuid) -> Arc<str> {
        let by_id = self.0.iter().find(|(_, known)| name.is_empty() && **known == id);
        by_id.map_or_else(|| name.into(), |(name, _)| name.clone())
    }
}

impl ConsumerState {
    /// The ids of these topics. `read`: those that are known to be meant.
    pub(super) fn topic_ids<'a>(
        &self,
        names: impl IntoIterator<Item = &'a TopicPartition>,
        read: &BTreeMap<Arc<str>, Uuid>,
    ) -> TopicIds {
        let is_member = self.group.as_ref().is_some_and(|group| group.member.membership().is_some());
        let mut ids = BTreeMap::new();
        for name in names {
            let owned = self.fetches.partitions.get(name).map(|partition| partition.topic_id);
            let owned = owned.filter(|id| !id.is_zero());
            let id = read.get(&name.topic).copied().or(owned);
            let id = id.or_else(|| self.cluster.metadata().topic(&name.topic).map(|topic| topic.id));
            match id.filter(|id| !id.is_zero() && is_member) {
                Some(id) => ids.insert(name.topic.clone(), id),
                None => return TopicIds::default(),
            };
        }
        TopicIds(ids)
    }
}
