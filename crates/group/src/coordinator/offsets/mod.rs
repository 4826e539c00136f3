//! Offsets of groups: committing, fetching, deleting, forgetting. Each decides from what it is given and changes nothing.

pub(super) mod commit;
pub(super) mod delete;
pub(super) mod expire;
pub(super) mod fetch;
mod transactional;

use super::record::Record;
use crate::TopicPartition;
use tontine_wire::group_records::OffsetCommitKey;

/// The record that ends an offset.
fn tombstone(group: &str, partition: &TopicPartition) -> Record {
    let key = OffsetCommitKey {
        group: group.to_owned(),
        topic: partition.topic.to_string(),
        partition: partition.partition,
    };
    Record::OffsetCommit(key, None)
}
