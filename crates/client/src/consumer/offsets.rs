//! Where the consumer stands and where logs begin and end.

use super::Consumer;
use crate::{Error, OffsetAndMetadata, OffsetAndTimestamp, offsets::Spot, topic_name::check_topic};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tontine_group::TopicPartition;

impl Consumer {
    /// The offset of the next record that `poll` returns of an assigned partition. Waits until it is known.
    pub async fn position(&mut self, partition: &TopicPartition) -> Result<i64, Error> {
        let timeout = self.front.default_timeout;
        self.front.position(partition, timeout).await
    }

    /// [`Consumer::position`] with a timeout of its own.
    pub async fn position_with(
        &mut self,
        partition: &TopicPartition,
        timeout: Duration,
    ) -> Result<i64, Error> {
        self.front.position(partition, timeout).await
    }

    /// Goes on reading an assigned partition here.
    pub fn seek(
        &mut self,
        partition: &TopicPartition,
        to: impl Into<OffsetAndMetadata>,
    ) -> Result<(), Error> {
        self.front.seek(partition, &to.into())
    }

    /// Goes on reading these partitions at their first record; all assigned ones when none is named.
    pub fn seek_to_beginning(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.seek_all(partitions, Spot::Beginning)
    }

    /// Goes on reading these partitions at their end; all assigned ones when none is named.
    pub fn seek_to_end(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.seek_all(partitions, Spot::End)
    }

    /// Goes on reading these partitions at the first record with this timestamp or a later one, or at the end when there
    /// is none; all assigned ones when no partition is named.
    pub fn seek_to_timestamp(&mut self, partitions: &[TopicPartition], unix_ms: i64) -> Result<(), Error> {
        self.front.seek_all(partitions, Spot::Timestamp(unix_ms))
    }

    /// Returns nothing of these partitions until they are resumed. They stay assigned, and what is buffered is kept.
    pub fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.set_paused(partitions, true)
    }

    /// Goes on with paused partitions.
    pub fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.set_paused(partitions, false)
    }

    /// The partitions that are paused.
    pub fn paused(&self) -> BTreeSet<TopicPartition> {
        self.front.desk.paused()
    }

    /// How many records there are behind the position of an assigned partition, as the last fetch saw it; `None` before
    /// the first one.
    pub fn lag(&mut self, partition: &TopicPartition) -> Result<Option<i64>, Error> {
        self.front.exchange();
        self.front.desk.lag(partition)
    }

    /// The first offsets of any partitions.
    pub async fn beginning_offsets(
        &mut self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let timeout = self.front.default_timeout;
        self.front.ends(partitions, Spot::Beginning, timeout).await
    }

    /// The offsets behind the last records of any partitions; with `isolation.level=read_committed` behind the last
    /// stable ones.
    pub async fn end_offsets(
        &mut self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let timeout = self.front.default_timeout;
        self.front.ends(partitions, Spot::End, timeout).await
    }

    /// For each partition the first record with this timestamp or a later one; none when there is none.
    pub async fn offsets_for_times(
        &mut self,
        times: impl IntoIterator<Item = (TopicPartition, i64)>,
    ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndTimestamp>>, Error> {
        let times: Vec<_> = times.into_iter().collect();
        if let Some((name, ms)) = times.iter().find(|(_, ms)| *ms < 0) {
            return Err(Error::misuse(format!("cannot look up the negative timestamp {ms} in {name}")));
        }
        let timeout = self.front.default_timeout;
        self.front
            .lookup(times.into_iter().map(|(name, ms)| (name, Spot::Timestamp(ms))).collect(), timeout)
            .await
    }

    /// The numbers of a topic's partitions. Waits until the topic is known.
    pub async fn partitions_for(&mut self, topic: &str) -> Result<Vec<i32>, Error> {
        check_topic(topic)?;
        let timeout = self.front.default_timeout;
        self.front.partitions_of(topic, timeout).await
    }
}
