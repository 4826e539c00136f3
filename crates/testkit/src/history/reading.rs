//! Readings of a history that tests wait for and compare: callbacks as text, owners, what was delivered.

use super::event::{Event, What};
use super::ownership::{OwnershipEnd, ownerships};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tontine_group::TopicPartition;

/// All records of `topic` that were delivered to anybody: partition and offset.
pub fn delivered(events: &[Event], topic: &str) -> BTreeSet<(i32, i64)> {
    let deliveries = events.iter().filter_map(|event| match &event.what {
        What::Delivered(tp, offsets) if &*tp.topic == topic => Some((tp.partition, offsets)),
        _ => None,
    });
    deliveries
        .flat_map(|(partition, offsets)| offsets.iter().map(move |offset| (partition, *offset)))
        .collect()
}

/// Who owns what at the end of these events: partitions whose assigned callback has returned.
pub(super) fn owners(events: &[Event]) -> BTreeMap<TopicPartition, BTreeSet<Arc<str>>> {
    let mut owners: BTreeMap<TopicPartition, BTreeSet<Arc<str>>> = BTreeMap::new();
    for ownership in ownerships(events) {
        let who = owners.entry(ownership.partition).or_default();
        if ownership.end == OwnershipEnd::Open && ownership.usable.is_some() {
            who.insert(ownership.member);
        }
    }
    owners
}

/// The callbacks of one member, as text: `R(t0 t1) A() L(t0)`; topics by the stems of their names.
pub fn callbacks(events: &[Event], member: &str) -> Vec<String> {
    let mine = events.iter().filter(|event| &*event.member == member);
    let called = mine.filter_map(|event| match &event.what {
        What::Called(callback, partitions) => Some((callback, partitions)),
        _ => None,
    });
    called
        .map(|(callback, partitions)| {
            let names: Vec<String> =
                partitions.iter().map(|tp| format!("{}{}", stem(&tp.topic), tp.partition)).collect();
            format!("{}({})", callback.letter(), names.join(" "))
        })
        .collect()
}

/// Whether no callback of the member is running.
pub(super) fn has_returned(events: &[Event], member: &str) -> bool {
    let mine = events.iter().rev().filter(|event| &*event.member == member);
    let mut callbacks = mine.filter(|event| matches!(event.what, What::Called(..) | What::Returned(_)));
    callbacks.next().is_none_or(|event| matches!(event.what, What::Returned(_)))
}

/// The callbacks of one member with the numbers of their partitions: `R(6) A(3)`.
pub fn shapes(events: &[Event], member: &str) -> Vec<String> {
    let mine = events.iter().filter(|event| &*event.member == member);
    let called = mine.filter_map(|event| match &event.what {
        What::Called(callback, partitions) => Some(format!("{}({})", callback.letter(), partitions.len())),
        _ => None,
    });
    called.collect()
}

/// A topic's name without what makes it unique.
fn stem(topic: &str) -> &str {
    topic.split_once('-').map_or(topic, |(stem, _)| stem)
}
