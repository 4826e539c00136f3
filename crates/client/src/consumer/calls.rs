//! What both the consumer and the contexts of its callbacks can do, written once.

use super::front::Front;
use crate::{
    Error, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition,
    offsets::Spot,
    state::{Answer, Ask, CommitKind},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Offsets by partition, in order.
pub type Offsets = BTreeMap<TopicPartition, OffsetAndMetadata>;

fn unexpected(answer: &Answer) -> Error {
    Error::Malformed(format!("the consumer's own thread gave an unexpected answer: {answer:?}").into())
}

impl Front {
    /// Commits what poll has returned, and waits for it.
    pub(crate) async fn commit_consumed(&mut self, timeout: Duration) -> Result<(), Error> {
        let offsets = self.desk.consumed();
        self.commit(offsets, timeout).await
    }

    /// Commits these, and waits for it and for all commits before it.
    pub(crate) async fn commit(
        &mut self,
        offsets: Vec<(TopicPartition, OffsetAndMetadata)>,
        timeout: Duration,
    ) -> Result<(), Error> {
        self.desk.check_group()?;
        check_offsets(&offsets)?;
        let result = self.call(|call| Ask::commit(call, offsets, CommitKind::Awaited, timeout)).await;
        self.run_commit_callbacks();
        result.map(|_| ())
    }

    pub(crate) async fn committed(
        &mut self,
        partitions: BTreeSet<TopicPartition>,
        timeout: Duration,
    ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndMetadata>>, Error> {
        self.desk.check_group()?;
        if partitions.is_empty() {
            return Ok(BTreeMap::new());
        }
        match self.call(|call| Ask::Committed { call, partitions, timeout }).await? {
            Answer::Committed(found) => Ok(found.into_iter().collect()),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn position(&mut self, name: &TopicPartition, timeout: Duration) -> Result<i64, Error> {
        let until = self.now() + timeout;
        loop {
            self.exchange();
            if let Some(position) = self.desk.position(name)? {
                return Ok(position.offset);
            }
            self.check_woken()?;
            if self.now() >= until {
                let what = format!("finding the position in {name}");
                return Err(Error::Timeout { what, after: timeout, why: None });
            }
            self.wait(Some(until)).await?;
        }
    }

    pub(crate) async fn lookup(
        &mut self,
        spots: Vec<(TopicPartition, Spot)>,
        timeout: Duration,
    ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndTimestamp>>, Error> {
        match self.call(|call| Ask::Lookup { call, spots, timeout }).await? {
            Answer::Spots(found) => Ok(found.into_iter().collect()),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn ends(
        &mut self,
        partitions: &[TopicPartition],
        spot: Spot,
        timeout: Duration,
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let found =
            self.lookup(partitions.iter().map(|name| (name.clone(), spot)).collect(), timeout).await?;
        Ok(found.into_iter().filter_map(|(name, at)| Some((name, at?.offset))).collect())
    }

    pub(crate) async fn partitions_of(&mut self, topic: &str, timeout: Duration) -> Result<Vec<i32>, Error> {
        let topic: Arc<str> = topic.into();
        match self.call(|call| Ask::PartitionsOf { call, topic, timeout }).await? {
            Answer::Partitions(found) => Ok(found.into_iter().map(|(number, _)| number).collect()),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) fn seek(&mut self, name: &TopicPartition, to: &OffsetAndMetadata) -> Result<(), Error> {
        let result = self.desk.seek(name, to);
        self.flush();
        result
    }

    /// Seeks in these partitions, or in all assigned ones when there are none.
    pub(crate) fn seek_all(&mut self, partitions: &[TopicPartition], spot: Spot) -> Result<(), Error> {
        self.desk.check_open()?;
        let all: Vec<_> = if partitions.is_empty() {
            self.desk.assignment().into_iter().collect()
        } else {
            partitions.to_vec()
        };
        let assigned = self.desk.assignment();
        if let Some(name) = all.iter().find(|name| !assigned.contains(*name)) {
            return self.desk.seek_to_spot(name, spot);
        }
        let result = all.iter().try_for_each(|name| self.desk.seek_to_spot(name, spot));
        self.flush();
        result
    }

    pub(crate) fn set_paused(&mut self, partitions: &[TopicPartition], paused: bool) -> Result<(), Error> {
        let result = self.desk.set_paused(&partitions.iter().cloned().collect(), paused);
        self.flush();
        result
    }
}

pub(super) fn check_offsets(offsets: &[(TopicPartition, OffsetAndMetadata)]) -> Result<(), Error> {
    match offsets.iter().find(|(_, at)| at.offset < 0) {
        None => Ok(()),
        Some((name, at)) => {
            Err(Error::misuse(format!("cannot commit the negative offset {} for {name}", at.offset)))
        }
    }
}
