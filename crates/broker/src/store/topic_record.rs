//! A topic as a record of the metadata: lines of text. Lines that are not known are stepped over.

use crate::cluster::NodeId;
use std::fmt::Write as _;
use tontine_wire::Uuid;

/// A partition that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredPartition {
    /// Who led it.
    pub(crate) leader: Option<NodeId>,
    /// How many leaders there had been.
    pub(crate) epoch: i32,
    /// Who holds it.
    pub(crate) replicas: Vec<NodeId>,
}

/// A topic that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredTopic {
    /// Its name.
    pub(crate) name: String,
    /// Its id.
    pub(crate) id: Uuid,
    /// How often the directory had been opened after an unclean end.
    pub(crate) starts: i32,
    /// Its partitions.
    pub(crate) partitions: Vec<StoredPartition>,
    /// What was set for it.
    pub(crate) configs: Vec<(String, String)>,
}

pub(super) fn encode(topic: &StoredTopic, starts: i32) -> String {
    let mut text = format!("id {}\nstarts {starts}\n", topic.id);
    for partition in &topic.partitions {
        let _ = write!(text, "partition {} {}", partition.epoch, partition.leader.unwrap_or(-1));
        for replica in &partition.replicas {
            let _ = write!(text, " {replica}");
        }
        text.push('\n');
    }
    for (key, value) in &topic.configs {
        let _ = writeln!(text, "config {key} {}", value.replace(['\n', '\r'], " "));
    }
    text
}

/// `None` when the text does not tell of a topic.
pub(super) fn decode(name: &str, text: &str) -> Option<StoredTopic> {
    let (mut id, mut starts) = (None, 0);
    let (mut partitions, mut configs) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "id" => id = rest.parse().ok(),
            "starts" => starts = rest.parse().ok()?,
            "partition" => partitions.push(partition(rest)?),
            "config" => {
                let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
                configs.push((key.to_owned(), value.to_owned()));
            }
            _ => {}
        }
    }
    Some(StoredTopic { name: name.to_owned(), id: id?, starts, partitions, configs })
}

fn partition(text: &str) -> Option<StoredPartition> {
    let mut numbers = text.split(' ').map(|word| word.parse::<i32>());
    let (epoch, leader) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let replicas = numbers.collect::<Result<_, _>>().ok()?;
    Some(StoredPartition { leader: (leader >= 0).then_some(leader), epoch, replicas })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_read_as_it_was_written() {
        let topic = StoredTopic {
            name: "orders".into(),
            id: Uuid::from_u128(7),
            starts: 3,
            partitions: vec![
                StoredPartition { leader: Some(1), epoch: 4, replicas: vec![1, 2] },
                StoredPartition { leader: None, epoch: 0, replicas: vec![2] },
            ],
            configs: vec![("cleanup.policy".into(), "compact,delete".into()), ("a.b".into(), String::new())],
        };
        assert_eq!(decode("orders", &encode(&topic, 3)), Some(topic));
        assert_eq!(decode("orders", "starts 1\n"), None);
        assert_eq!(decode("orders", "id AAAAAAAAAAAAAAAAAAAABw\npartition x\n"), None);
    }
}
