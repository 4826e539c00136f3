//! Brokers that lie, to prove that the invariants notice.

use bytes::Bytes;
use tontine_wire::{ErrorCode, api::Response};

/// Changes what a broker answers.
pub trait Lie {
    /// Looks at an answer on its way out, and may change it.
    fn tell(&mut self, response: &mut Response);
}

/// Says that more was committed than was: records are skipped.
#[derive(Clone, Copy, Debug, Default)]
pub struct SkipsRecords;

impl Lie for SkipsRecords {
    fn tell(&mut self, response: &mut Response) {
        let Response::OffsetFetch(answer) = response else { return };
        let partitions = answer.groups.iter_mut().flat_map(|g| &mut g.topics).flat_map(|t| &mut t.partitions);
        for partition in partitions.filter(|partition| partition.committed_offset > 0) {
            partition.committed_offset += 1;
        }
    }
}

/// Gives every member what it gave to one of them.
#[derive(Clone, Debug, Default)]
pub struct SharesPartitions(Option<Bytes>);

impl Lie for SharesPartitions {
    fn tell(&mut self, response: &mut Response) {
        let Response::SyncGroup(answer) = response else { return };
        if answer.error_code != ErrorCode::NONE {
            return;
        }
        // The longest assignment is the one that holds partitions.
        if self.0.as_ref().is_none_or(|kept| kept.len() < answer.assignment.len()) {
            self.0 = Some(answer.assignment.clone());
        } else if let Some(kept) = &self.0 {
            answer.assignment = kept.clone();
        }
    }
}
