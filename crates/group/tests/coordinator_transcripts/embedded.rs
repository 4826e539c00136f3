//! Subscriptions and assignments as text and as bytes. What does not survive the way there and back is shown in hex.

use bytes::Bytes;
use std::fmt::Write;
use tontine_wire::consumer_protocol::{Assignment, Subscription, TopicPartitions};

/// The version in which the members of the transcripts speak.
const VERSION: i16 = 3;

/// `t2+u2(t2:0,1@3)`: topics, and what is owned since which generation. `-` are no bytes at all.
pub(crate) fn subscription_text(bytes: &Bytes) -> String {
    let text = Subscription::from_metadata(bytes.clone()).ok().map(|subscription| {
        let mut text = subscription.topics.join("+");
        if !subscription.owned_partitions.is_empty() || subscription.generation_id != -1 {
            let owned = partitions_text(&subscription.owned_partitions);
            let _ = write!(text, "({owned}@{})", subscription.generation_id);
        }
        text
    });
    text.filter(|text| subscription_bytes(text) == *bytes).unwrap_or_else(|| hex(bytes))
}

pub(crate) fn subscription_bytes(text: &str) -> Bytes {
    if let Some(bytes) = raw(text) {
        return bytes;
    }
    let (topics, owned) = text.split_once('(').unwrap_or((text, "@-1)"));
    let (owned, generation) = owned.trim_end_matches(')').rsplit_once('@').unwrap();
    let subscription = Subscription {
        topics: topics.split('+').filter(|t| !t.is_empty()).map(str::to_owned).collect(),
        owned_partitions: partitions(owned),
        generation_id: generation.parse().unwrap(),
        ..Default::default()
    };
    subscription.to_metadata(VERSION)
}

/// `t2:0,1+u2:0`; `none` is an assignment of no partitions, `-` no bytes at all.
pub(crate) fn assignment_text(bytes: &Bytes) -> String {
    let text = Assignment::from_assignment(bytes.clone()).ok().map(|assignment| {
        let text = partitions_text(&assignment.assigned_partitions);
        if text.is_empty() { "none".to_owned() } else { text }
    });
    text.filter(|text| assignment_bytes(text) == *bytes).unwrap_or_else(|| hex(bytes))
}

pub(crate) fn assignment_bytes(text: &str) -> Bytes {
    raw(text).unwrap_or_else(|| {
        let assigned_partitions = partitions(if text == "none" { "" } else { text });
        Assignment { assigned_partitions, user_data: None }.to_assignment(VERSION)
    })
}

fn raw(text: &str) -> Option<Bytes> {
    if text == "-" {
        return Some(Bytes::new());
    }
    let digits = text.strip_prefix("0x")?;
    let byte = |i: usize| u8::from_str_radix(&digits[i..i + 2], 16).unwrap();
    Some((0..digits.len()).step_by(2).map(byte).collect())
}

fn hex(bytes: &Bytes) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn partitions_text(topics: &[TopicPartitions]) -> String {
    let topic = |t: &TopicPartitions| {
        let numbers: Vec<String> = t.partitions.iter().map(i32::to_string).collect();
        format!("{}:{}", t.topic, numbers.join(","))
    };
    topics.iter().map(topic).collect::<Vec<_>>().join("+")
}

fn partitions(text: &str) -> Vec<TopicPartitions> {
    let topic = |text: &str| {
        let (topic, numbers) = text.split_once(':').unwrap();
        let partitions = numbers.split(',').map(|n| n.parse().unwrap()).collect();
        TopicPartitions { topic: topic.to_owned(), partitions }
    };
    text.split('+').filter(|t| !t.is_empty()).map(topic).collect()
}
