//! DescribeLogDirs: one directory; it does not exist when everything is in memory.

use crate::state::{BrokerState, Call};
use crate::topics::Topic;
use tontine_wire::api::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeLogDirsResult,
    DescribeLogDirsTopic,
};

pub(super) fn answer(
    state: &BrokerState,
    call: &Call,
    request: &DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let asked = |topic: &Topic, index: i32| match &request.topics {
        None => true,
        Some(topics) => {
            topics.iter().any(|wanted| *wanted.topic == *topic.name && wanted.partitions.contains(&index))
        }
    };
    let mut topics = Vec::new();
    for topic in state.topics.iter() {
        let here = (0..)
            .zip(&topic.partitions)
            .filter(|(index, partition)| partition.replicas.contains(&call.node) && asked(topic, *index));
        let partitions: Vec<_> = here
            .map(|(partition_index, partition)| DescribeLogDirsPartition {
                partition_index,
                partition_size: i64::try_from(partition.log.size()).unwrap_or(i64::MAX),
                ..Default::default()
            })
            .collect();
        if !partitions.is_empty() {
            topics.push(DescribeLogDirsTopic { name: topic.name.to_string(), partitions });
        }
    }
    let result = DescribeLogDirsResult {
        log_dir: state.data_dir().unwrap_or_else(|| "memory".into()),
        topics,
        ..Default::default()
    };
    DescribeLogDirsResponse { results: vec![result], ..Default::default() }
}
