//! DeleteRecords: a partition starts later from now on.

use crate::state::{BrokerState, Call};
use crate::work::LogKey;
use tontine_wire::ErrorCode;
use tontine_wire::api::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse,
    DeleteRecordsTopicResult,
};

/// Stands for the end of the log.
const TO_THE_END: i64 = -1;

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: &DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let mut topics = Vec::new();
    for topic in &request.topics {
        let partitions = topic.partitions.iter().map(|wanted| {
            let (low_watermark, error_code) = match delete(state, call, &topic.name, wanted) {
                Ok(start) => (start, ErrorCode::NONE),
                Err(code) => (-1, code),
            };
            DeleteRecordsPartitionResult {
                partition_index: wanted.partition_index,
                low_watermark,
                error_code,
            }
        });
        let partitions = partitions.collect();
        topics.push(DeleteRecordsTopicResult { name: topic.name.clone(), partitions });
    }
    DeleteRecordsResponse { topics, ..Default::default() }
}

fn delete(
    state: &mut BrokerState,
    call: &Call,
    name: &str,
    wanted: &DeleteRecordsPartition,
) -> Result<i64, ErrorCode> {
    state.led(call.node, name, wanted.partition_index)?;
    let topic = state.topics.get_mut(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if topic.is_internal() {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    if !topic.settings.delete {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    let id = topic.id;
    let log =
        &mut topic.partition_mut(wanted.partition_index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?.log;
    let offset = if wanted.offset == TO_THE_END { log.high_watermark() } else { wanted.offset };
    if offset < 0 || offset > log.high_watermark() {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    if log.is_broken() {
        return Err(ErrorCode::KAFKA_STORAGE_ERROR);
    }
    let (change, start) = (log.delete_before(offset), log.start());
    let key = LogKey::Partition(id, wanted.partition_index);
    if let Some(change) = change {
        state.changed(key, change);
    }
    state.sweep(key);
    Ok(start)
}
