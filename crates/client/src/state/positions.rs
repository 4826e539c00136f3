//! Where partitions start: the committed offset, or what `auto.offset.reset` says.
//!
//! Mirrors `OffsetsRequestManager.updateFetchPositions` and `AutoOffsetResetStrategy`.

use super::ConsumerState;
use crate::{
    Error,
    config::AutoOffsetReset,
    fetch::{partition::Phase, position::Position},
    lease::{Delivery, Incarnation},
    offsets::{OffsetAndMetadata, OffsetAndTimestamp, Spot},
};
use tontine_group::TopicPartition;

impl ConsumerState {
    /// What `auto.offset.reset` says.
    pub(super) fn reset_phase(&self) -> Phase {
        match self.settings.reset {
            AutoOffsetReset::Earliest => Phase::Spot(Spot::Beginning),
            AutoOffsetReset::Latest => Phase::Spot(Spot::End),
            AutoOffsetReset::ByDuration(age) => {
                let now = self.settings.unix_ms_at_origin.saturating_add(ms(self.now.since_origin()));
                Phase::Spot(Spot::Timestamp(now.saturating_sub(ms(age)).max(0)))
            }
            AutoOffsetReset::None => Phase::Stuck,
        }
    }

    /// The committed offset of a partition is known: start there, or as the policy says when there is none.
    pub(super) fn committed_known(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
        committed: Option<&OffsetAndMetadata>,
    ) {
        match committed {
            Some(at) => {
                self.start_at(name, incarnation, Position { offset: at.offset, epoch: at.leader_epoch })
            }
            None => self.reset(name, incarnation, Error::NoOffset(vec![name.clone()])),
        }
    }

    /// A place that was looked up is known. Where no record is young enough for a reset by duration, reading starts at
    /// the end at once, rather than asking again and again.
    pub(super) fn spot_known(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
        spot: Spot,
        found: Option<&OffsetAndTimestamp>,
    ) {
        match found {
            Some(found) => self.start_at(name, incarnation, Position::at(found.offset)),
            None if spot == Spot::End => self.start_at(name, incarnation, Position::at(0)),
            None => {
                if let Some(partition) = self.partition_as(name, incarnation) {
                    partition.phase = Phase::Spot(Spot::End);
                    self.fetches.seeking = true;
                }
            }
        }
    }

    fn start_at(&mut self, name: &TopicPartition, incarnation: Incarnation, position: Position) {
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        partition.phase = Phase::Fetching(position);
        partition.worked();
        self.fetches.stale = true;
        self.doubt(name);
        self.deliver(name, incarnation, Delivery::Jump(position));
    }

    /// Starts where the policy says; without a policy the application has to hear `otherwise`.
    pub(super) fn reset(&mut self, name: &TopicPartition, incarnation: Incarnation, otherwise: Error) {
        let phase = self.reset_phase();
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        partition.phase = phase;
        partition.worked();
        self.fetches.seeking = true;
        if phase == Phase::Stuck {
            self.deliver(name, incarnation, Delivery::Failed(otherwise));
        }
    }

    /// The partition, when it is still the one that was meant.
    pub(super) fn partition_as(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
    ) -> Option<&mut crate::fetch::partition::Partition> {
        self.fetches.partitions.get_mut(name).filter(|partition| partition.incarnation == incarnation)
    }
}

fn ms(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
