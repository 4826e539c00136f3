//! OffsetForLeaderEpoch: where an epoch ended, so that a consumer notices lost records (KIP-320).

use crate::state::{BrokerState, Call};
use tontine_wire::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
};

pub(super) fn answer(
    state: &BrokerState,
    call: &Call,
    request: &OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.iter().map(|topic| OffsetForLeaderTopicResult {
        topic: topic.topic.clone(),
        partitions: topic.partitions.iter().map(|wanted| one(state, call, &topic.topic, wanted)).collect(),
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }
}

fn one(state: &BrokerState, call: &Call, topic: &str, wanted: &OffsetForLeaderPartition) -> EpochEndOffset {
    let answer = EpochEndOffset { partition: wanted.partition, ..Default::default() };
    match state.led_in_epoch(call.node, topic, wanted.partition, wanted.current_leader_epoch) {
        Err(error_code) => EpochEndOffset { error_code, ..answer },
        Ok(partition) => match partition.log.end_of_epoch(wanted.leader_epoch) {
            Some(end) => EpochEndOffset { leader_epoch: end.epoch, end_offset: end.end_offset, ..answer },
            None => answer,
        },
    }
}
