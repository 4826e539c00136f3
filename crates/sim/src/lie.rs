//! Brokers that lie and members that err, to prove that the invariants notice.

use bytes::Bytes;
use tontine_wire::{
    ErrorCode,
    api::{
        Response,
        consumer_group_heartbeat::{Assignment, ConsumerGroupHeartbeatResponse},
        sync_group::SyncGroupResponse,
    },
};

/// Changes what a broker answers.
pub trait Lie {
    /// Looks at an answer on its way out, and may change it.
    fn tell(&mut self, response: &mut Response);
}

/// What every member of a run does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// It commits one record more than it was handed out.
    CommitsAhead,
    /// It gives partitions up without a word to its listener.
    ForgetsRevoked,
    /// It hands every record out twice.
    HandsOutTwice,
    /// It does not wake by itself any more, once trouble is over.
    ForgetsTimers,
}

/// Says that a rebalance goes on when none does.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverSettles;

impl Lie for NeverSettles {
    fn tell(&mut self, response: &mut Response) {
        if let Response::Heartbeat(answer) = response
            && answer.error_code.is_ok()
        {
            answer.error_code = ErrorCode::REBALANCE_IN_PROGRESS;
        }
    }
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

/// Says that offsets are committed when its disk did not take them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgetsCommits;

impl Lie for ForgetsCommits {
    fn tell(&mut self, response: &mut Response) {
        let Response::OffsetCommit(answer) = response else { return };
        for partition in answer.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            if partition.error_code == ErrorCode::NOT_COORDINATOR {
                partition.error_code = ErrorCode::NONE;
            }
        }
    }
}

/// Does not say which transactions were aborted.
#[derive(Clone, Copy, Debug, Default)]
pub struct HidesAborted;

impl Lie for HidesAborted {
    fn tell(&mut self, response: &mut Response) {
        let Response::Fetch(answer) = response else { return };
        for partition in answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
            partition.aborted_transactions = None;
        }
    }
}

/// Gives every member what it gave to one of them.
#[derive(Clone, Debug, Default)]
pub struct SharesPartitions {
    classic: Option<Bytes>,
    consumer: Option<Assignment>,
}

impl SharesPartitions {
    /// As a leader of the classic protocol would have dealt.
    fn in_classic(&mut self, answer: &mut SyncGroupResponse) {
        if answer.error_code != ErrorCode::NONE {
            return;
        }
        // The longest assignment is the one that holds partitions.
        if self.classic.as_ref().is_none_or(|kept| kept.len() < answer.assignment.len()) {
            self.classic = Some(answer.assignment.clone());
        } else if let Some(kept) = &self.classic {
            answer.assignment = kept.clone();
        }
    }

    fn in_consumer(&mut self, answer: &mut ConsumerGroupHeartbeatResponse) {
        let size =
            |of: &Assignment| of.topic_partitions.iter().map(|topic| topic.partitions.len()).sum::<usize>();
        let Some(given) = &answer.assignment else { return };
        if self.consumer.as_ref().is_none_or(|kept| size(kept) < size(given)) {
            self.consumer = Some(given.clone());
        } else {
            answer.assignment.clone_from(&self.consumer);
        }
    }
}

impl Lie for SharesPartitions {
    fn tell(&mut self, response: &mut Response) {
        match response {
            Response::SyncGroup(answer) => self.in_classic(answer),
            Response::ConsumerGroupHeartbeat(answer) => self.in_consumer(answer),
            _ => {}
        }
    }
}
