//! Which partition a record goes to, as soon as its topic is known.

use super::{
    batch::Entry,
    partitioner,
    record::ProducerRecord,
    sender::{Event, Sender},
};
use crate::{Error, cluster::TopicsOfInterest};
use tontine_group::TopicPartition;

impl<D, F> Sender<D, F> {
    pub(super) fn accept(&mut self, record: ProducerRecord, timestamp: i64, token: D) {
        if self.topics.insert(record.topic.clone()) {
            self.cluster.set_topics(self.now, TopicsOfInterest::Names(self.topics.clone()));
        }
        let order = self.next_order;
        self.next_order += 1;
        let topic = record.topic.clone();
        let entry = Entry { order, record, timestamp, token, looked_at: None };
        // Records of a topic that waits for metadata must not be overtaken by later ones.
        if self.unplaced.contains_key(&topic) {
            let deadline = self.now + self.config.max_block;
            self.unplaced.entry(topic).or_default().push_back((deadline, entry));
        } else if let Some(entry) = self.place(entry) {
            let deadline = self.now + self.config.max_block;
            self.unplaced.entry(topic).or_default().push_back((deadline, entry));
        }
    }

    /// Puts a record into the queue of its partition; gives it back while the topic is not known.
    fn place(&mut self, mut entry: Entry<D>) -> Option<Entry<D>> {
        let metadata = self.cluster.metadata();
        let usable =
            metadata.topic(&entry.record.topic).filter(|t| t.error.is_ok() && !t.partitions.is_empty());
        let Some(topic) = usable else { return Some(entry) };
        let size = entry.record.size();
        let limit = usize::try_from(self.config.batch_size).unwrap_or(0);
        let count = topic.partitions.len();
        let partition = match (entry.record.partition, &entry.record.key) {
            (Some(partition), _) => partition,
            (None, Some(key)) => partitioner::for_key(key, count),
            (None, None) => self.sticky.choose(topic, size, limit.max(1), &mut self.jitter),
        };
        if !topic.partitions.contains_key(&partition) {
            // The topic may have grown since the last look. An answer that was on its way already proves nothing, so
            // it takes a second one to be sure.
            let looked_at = *entry.looked_at.get_or_insert(self.looks);
            if self.looks < looked_at + 2 {
                self.cluster.refresh_metadata(self.now);
                return Some(entry);
            }
            let what =
                format!("topic `{}` has partitions 0 to {}, no partition {partition}", topic.name, count - 1);
            self.events.push_back(Event::Delivered(entry.token, Err(Error::misuse(what))));
            return None;
        }
        let tp = TopicPartition::new(topic.name.clone(), partition);
        let deadline = self.now + self.config.delivery_timeout;
        self.queues.entry(tp).or_default().push(self.now, entry, size, limit, deadline);
        None
    }

    pub(super) fn place_waiting(&mut self) {
        for topic in self.unplaced.keys().cloned().collect::<Vec<_>>() {
            let refused = self.cluster.metadata().topic(&topic).map(|t| t.error);
            let refused = refused.filter(|code| code.is_err() && !code.is_retriable());
            let Some(mut waiting) = self.unplaced.remove(&topic) else { continue };
            while let Some((deadline, entry)) = waiting.pop_front() {
                if let Some(code) = refused {
                    let error = Error::broker(code, format!("sending to topic `{topic}`"), None);
                    self.events.push_back(Event::Delivered(entry.token, Err(error)));
                } else if deadline <= self.now {
                    let error = self.no_metadata(&topic);
                    self.events.push_back(Event::Delivered(entry.token, Err(error)));
                } else if let Some(entry) = self.place(entry) {
                    waiting.push_front((deadline, entry));
                    break;
                }
            }
            if !waiting.is_empty() {
                self.unplaced.insert(topic, waiting);
            }
        }
    }

    fn no_metadata(&self, topic: &str) -> Error {
        let why = match self.cluster.metadata().topic(topic) {
            Some(t) if t.error.is_err() => {
                Some(format!("the broker answered {} for the topic", t.error).into())
            }
            Some(_) | None => self.cluster.last_error(),
        };
        let what = format!("finding the leaders of topic `{topic}`");
        Error::Timeout { what, after: self.config.max_block, why }
    }
}
