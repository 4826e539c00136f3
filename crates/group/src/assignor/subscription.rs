//! Reads what members say when they join, as the leader gets it.
//!
//! All subscriptions of a group are read by one reader, so that a topic has one name in memory however many members want
//! it: assignors then tell names apart by their addresses. Decides nothing.

use super::MemberSubscription;
use crate::TopicPartition;
use bytes::Bytes;
use std::{cmp::Ordering, collections::HashMap, sync::Arc};
use tontine_wire::{DecodeError, subscription_view::SubscriptionView};

/// Reads the subscriptions of the members of one group.
#[derive(Debug, Default)]
pub struct SubscriptionReader {
    /// Names in the order in which they were first seen, which is mostly the order in which they will be seen again.
    names: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, usize>,
    last: usize,
}

impl SubscriptionReader {
    /// A reader that knows no names yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the metadata of a member's JoinGroup.
    pub fn read(
        &mut self,
        member_id: String,
        instance_id: Option<String>,
        metadata: &Bytes,
    ) -> Result<MemberSubscription, DecodeError> {
        let view = SubscriptionView::parse(metadata)?;
        Ok(MemberSubscription {
            member_id,
            instance_id,
            topics: self.topics(&view),
            user_data: view.user_data.map(|data| metadata.slice_ref(data)),
            owned: self.owned(&view),
            generation: (view.generation_id >= 0).then_some(view.generation_id),
            rack: view.rack_id.filter(|rack| !rack.is_empty()).map(Arc::from),
        })
    }

    /// The topics, sorted and each once.
    fn topics(&mut self, view: &SubscriptionView<'_>) -> Vec<Arc<str>> {
        let mut topics: Vec<_> = view.topics.iter().map(|topic| self.name(topic)).collect();
        if !topics.is_sorted_by(|a, b| a < b) {
            topics.sort();
            topics.dedup();
        }
        topics
    }

    /// What the member owns, sorted and each once.
    fn owned(&mut self, view: &SubscriptionView<'_>) -> Vec<TopicPartition> {
        let mut owned = Vec::with_capacity(view.owned.iter().map(|(_, partitions)| partitions.len()).sum());
        for (topic, partitions) in &view.owned {
            let topic = self.name(topic);
            let partition = |bytes: &[u8; 4]| TopicPartition::new(topic.clone(), i32::from_be_bytes(*bytes));
            owned.extend(partitions.iter().map(partition));
        }
        if !owned.is_sorted_by(|a, b| compare(a, b).is_lt()) {
            owned.sort_unstable_by(compare);
            owned.dedup();
        }
        owned
    }

    /// The shared form of a name.
    fn name(&mut self, name: &str) -> Arc<str> {
        let near = self.names.iter().skip(self.last).take(3).position(|known| &**known == name);
        let at = near.map(|step| self.last + step).or_else(|| self.by_name.get(name).copied());
        self.last = at.unwrap_or(self.names.len());
        if at.is_none() {
            let name: Arc<str> = name.into();
            self.names.push(name.clone());
            self.by_name.insert(name, self.last);
        }
        self.names[self.last].clone()
    }
}

/// Kafka's order, without reading names that are one and the same.
fn compare(a: &TopicPartition, b: &TopicPartition) -> Ordering {
    let topics = if Arc::ptr_eq(&a.topic, &b.topic) { Ordering::Equal } else { a.topic.cmp(&b.topic) };
    topics.then(a.partition.cmp(&b.partition))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tontine_wire::consumer_protocol::{Subscription, TopicPartitions};

    #[test]
    fn a_subscription_is_read_with_everything_in_order_and_once() {
        let said = Subscription {
            topics: vec!["b".into(), "a".into(), "b".into()],
            user_data: Some(Bytes::from_static(b"data")),
            owned_partitions: vec![
                TopicPartitions { topic: "b".into(), partitions: vec![3, 1, 3] },
                TopicPartitions { topic: "a".into(), partitions: vec![0] },
            ],
            generation_id: 5,
            rack_id: Some("r".into()),
        };
        let got = SubscriptionReader::new().read("m".into(), None, &said.to_metadata(3)).expect("readable");
        assert_eq!(got.topics, ["a".into(), "b".into()]);
        assert_eq!(got.owned, [("a", 0), ("b", 1), ("b", 3)].map(TopicPartition::from));
        assert_eq!((got.user_data.as_deref(), got.generation), (Some(&b"data"[..]), Some(5)));
        assert_eq!(got.rack.as_deref(), Some("r"));
    }

    #[test]
    fn members_share_the_names_of_their_topics() {
        let said = |topics: &[&str]| {
            let topics = topics.iter().map(ToString::to_string).collect();
            Subscription { topics, ..Subscription::default() }.to_metadata(1)
        };
        let mut reader = SubscriptionReader::new();
        let a = reader.read("a".into(), None, &said(&["x", "y", "z"])).expect("readable");
        let b = reader.read("b".into(), None, &said(&["z", "x", "w"])).expect("readable");
        assert!(Arc::ptr_eq(&a.topics[0], &b.topics[1]) && Arc::ptr_eq(&a.topics[2], &b.topics[2]));
        assert_eq!((b.topics[0].as_ref(), b.generation), ("w", None));
    }

    #[test]
    fn what_is_no_subscription_is_an_error() {
        let read = |bytes: &'static [u8]| {
            SubscriptionReader::new().read("m".into(), None, &Bytes::from_static(bytes))
        };
        assert!(read(b"").is_err() && read(b"\0\x01\0\0\0\x05").is_err() && read(b"\xff\xff").is_err());
    }
}
