//! What the application changes in an assigned partition: where it reads, and whether it does.

use super::{Desk, interest::not_assigned};
use crate::{
    Error,
    fetch::position::Position,
    lease::Incarnation,
    offsets::{OffsetAndMetadata, Spot},
    state::{Ask, SeekTarget},
};
use std::collections::BTreeSet;
use tontine_group::TopicPartition;

impl Desk {
    /// Reads on at this offset. What was fetched for the old place is dropped.
    pub fn seek(&mut self, name: &TopicPartition, to: &OffsetAndMetadata) -> Result<(), Error> {
        if to.offset < 0 {
            return Err(Error::misuse(format!("cannot seek to the negative offset {} in {name}", to.offset)));
        }
        let position = Position { offset: to.offset, epoch: to.leader_epoch };
        let target = SeekTarget::Offset { offset: to.offset, epoch: to.leader_epoch };
        self.seek_to(name, Some(position), target)
    }

    /// Reads on at a place that has to be looked up.
    pub(crate) fn seek_to_spot(&mut self, name: &TopicPartition, spot: Spot) -> Result<(), Error> {
        if let Spot::Timestamp(ms) = spot
            && ms < 0
        {
            return Err(Error::misuse(format!("cannot seek to the negative timestamp {ms} in {name}")));
        }
        self.seek_to(name, None, SeekTarget::Spot(spot))
    }

    fn seek_to(
        &mut self,
        name: &TopicPartition,
        position: Option<Position>,
        target: SeekTarget,
    ) -> Result<(), Error> {
        self.check_open()?;
        let held = self.held.get_mut(name).filter(|held| held.announced).ok_or_else(|| not_assigned(name))?;
        let incarnation = held.incarnation.after_seek();
        held.restart(incarnation, position);
        self.audit_sought(name);
        self.asks.push(Ask::Seek { partition: name.clone(), incarnation, target });
        Ok(())
    }

    /// The log ends earlier than what was fetched of it: what was buffered is void, and reading goes on at its end, or
    /// where the application stands when that is before it.
    pub(super) fn truncated(&mut self, name: &TopicPartition, incarnation: Incarnation, at: i64) {
        let Some(held) = self.held.get_mut(name).filter(|held| held.incarnation == incarnation) else {
            return;
        };
        let stands = held.position.map_or(at, |position| position.offset.min(at));
        let next = held.incarnation.after_seek();
        held.restart(next, Some(Position::at(stands)));
        self.audit_sought(name);
        let target = SeekTarget::Offset { offset: stands, epoch: None };
        self.asks.push(Ask::Seek { partition: name.clone(), incarnation: next, target });
    }

    /// Hands out nothing of these any more, or goes on with them. What is buffered stays. All or nothing.
    pub fn set_paused(&mut self, names: &BTreeSet<TopicPartition>, paused: bool) -> Result<(), Error> {
        for name in names {
            self.assigned(name)?;
        }
        for name in names {
            if let Some(held) = self.held.get_mut(name) {
                held.paused = paused;
            }
        }
        self.line_up();
        self.asks.push(Ask::Pause { partitions: names.iter().cloned().collect(), paused });
        Ok(())
    }

    /// The partitions that are paused.
    pub fn paused(&self) -> BTreeSet<TopicPartition> {
        self.held
            .iter()
            .filter(|(_, held)| held.announced && held.paused)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// How many records there are behind the position, as far as the last fetch knows.
    pub fn lag(&self, name: &TopicPartition) -> Result<Option<i64>, Error> {
        let held = self.assigned(name)?;
        let end = held
            .end
            .map(|end| if self.settings.rules.committed_only { end.last_stable } else { end.high_watermark });
        Ok(end.zip(held.position).map(|(end, position)| (end - position.offset).max(0)))
    }
}
