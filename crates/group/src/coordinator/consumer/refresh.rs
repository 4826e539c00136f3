//! What happens without any heartbeat: topics change, and targets are due. Kafka waits for a heartbeat for both.

use super::{
    ConsumerRecord,
    draft::Draft,
    regex,
    stored::StoredConsumer,
    target::{Compute, metadata_hash},
};
use crate::topics::Topics;

/// Brings a group up to date with the topics that exist: what expressions mean, and the epoch if that matters.
pub(in crate::coordinator) fn refresh(
    id: &str,
    group: &StoredConsumer,
    topics: &Topics,
    wall_ms: i64,
    compute: Option<Compute>,
) -> Vec<ConsumerRecord> {
    let mut draft = Draft::new(id, group, topics);
    for (expression, known) in &group.regexes {
        match regex::resolve(expression, topics) {
            Ok(now) if now != *known => draft.resolve(expression, now, wall_ms),
            Ok(_) | Err(_) => {}
        }
    }
    if !group.members.is_empty() {
        let hash = metadata_hash(&draft.wanted());
        if hash != group.metadata_hash {
            draft.bump(1, hash);
        }
        if let Some(compute) = compute.filter(|_| draft.target_epoch < draft.epoch) {
            draft.compute_target(compute);
        }
    }
    draft.records
}
