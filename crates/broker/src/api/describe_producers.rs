//! DescribeProducers: the idempotent producers that wrote to a partition.

use crate::state::{BrokerState, Call};
use tontine_wire::api::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};

pub(super) fn answer(
    state: &BrokerState,
    call: &Call,
    request: &DescribeProducersRequest,
) -> DescribeProducersResponse {
    let topics = request.topics.iter().map(|topic| TopicResponse {
        name: topic.name.clone(),
        partitions: topic
            .partition_indexes
            .iter()
            .map(|index| one(state, call, &topic.name, *index))
            .collect(),
    });
    DescribeProducersResponse { topics: topics.collect(), ..Default::default() }
}

fn one(state: &BrokerState, call: &Call, topic: &str, partition_index: i32) -> PartitionResponse {
    match state.led(call.node, topic, partition_index) {
        Err(error_code) => PartitionResponse { partition_index, error_code, ..Default::default() },
        Ok(partition) => {
            let producers = partition.log.producers().iter().map(|(producer_id, producer)| ProducerState {
                producer_id,
                producer_epoch: i32::from(producer.epoch),
                last_sequence: producer.last().map_or(-1, |last| last.last),
                last_timestamp: producer.last_ms,
                coordinator_epoch: -1,
                current_txn_start_offset: producer.transaction.unwrap_or(-1),
            });
            PartitionResponse { partition_index, active_producers: producers.collect(), ..Default::default() }
        }
    }
}
