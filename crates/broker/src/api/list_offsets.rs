//! ListOffsets: the offset at a time, at the start or at the end. Mirrors `KafkaApis.handleListOffsetRequest`.

use crate::state::{BrokerState, Call};
use crate::topics::Partition;
use tontine_wire::ErrorCode;
use tontine_wire::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse,
};

const READ_COMMITTED: i8 = 1;

/// Timestamps that are no time.
mod special {
    pub(super) const LATEST: i64 = -1;
    pub(super) const EARLIEST: i64 = -2;
    pub(super) const MAX_TIMESTAMP: i64 = -3;
    pub(super) const EARLIEST_LOCAL: i64 = -4;
    pub(super) const LATEST_TIERED: i64 = -5;
    pub(super) const EARLIEST_PENDING_UPLOAD: i64 = -6;
}

pub(super) fn answer(state: &BrokerState, call: &Call, request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let committed = request.isolation_level == READ_COMMITTED;
    let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|wanted| one(state, call, &topic.name, wanted, committed))
            .collect(),
    });
    ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
}

fn one(
    state: &BrokerState,
    call: &Call,
    topic: &str,
    wanted: &ListOffsetsPartition,
    committed: bool,
) -> ListOffsetsPartitionResponse {
    let found = state
        .led_in_epoch(call.node, topic, wanted.partition_index, wanted.current_leader_epoch)
        .and_then(|partition| look_up(partition, call.version, wanted.timestamp, committed));
    let partition_index = wanted.partition_index;
    match found {
        Ok(Some((timestamp, offset, epoch))) => ListOffsetsPartitionResponse {
            partition_index,
            timestamp,
            offset,
            leader_epoch: epoch.unwrap_or(-1),
            ..Default::default()
        },
        Ok(None) => ListOffsetsPartitionResponse { partition_index, ..Default::default() },
        Err(error_code) => ListOffsetsPartitionResponse { partition_index, error_code, ..Default::default() },
    }
}

/// Timestamp, offset and epoch of what was asked for; `None` where there is no such record.
type Found = Option<(i64, i64, Option<i32>)>;

fn look_up(partition: &Partition, version: i16, timestamp: i64, committed: bool) -> Result<Found, ErrorCode> {
    let log = &partition.log;
    let known_since = match timestamp {
        special::MAX_TIMESTAMP => 7,
        special::EARLIEST_LOCAL => 8,
        special::LATEST_TIERED => 9,
        special::EARLIEST_PENDING_UPLOAD => 11,
        _ => 1,
    };
    if version < known_since {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    match timestamp {
        special::LATEST if committed => Ok(Some((-1, log.last_stable(), Some(partition.leader_epoch)))),
        special::LATEST => Ok(Some((-1, log.high_watermark(), Some(partition.leader_epoch)))),
        special::EARLIEST | special::EARLIEST_LOCAL => Ok(Some((-1, log.start(), log.epoch_at(log.start())))),
        // Nothing is ever moved to remote storage.
        special::LATEST_TIERED | special::EARLIEST_PENDING_UPLOAD => Ok(None),
        special::MAX_TIMESTAMP => timed(partition, log.offset_of_largest_time()?),
        time if time >= 0 => timed(partition, log.offset_at_time(time)?),
        _ => Err(ErrorCode::INVALID_REQUEST),
    }
}

fn timed(partition: &Partition, found: Option<crate::log::TimedOffset>) -> Result<Found, ErrorCode> {
    Ok(found.map(|found| (found.timestamp, found.offset, partition.log.epoch_at(found.offset))))
}
