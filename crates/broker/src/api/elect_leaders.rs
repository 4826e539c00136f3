//! ElectLeaders: partitions go back to their preferred leaders.

use crate::state::{BrokerState, Call};
use crate::topics::Partition;
use std::collections::BTreeMap;
use tontine_wire::ErrorCode;
use tontine_wire::api::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};

const PREFERRED: i8 = 0;

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: &ElectLeadersRequest,
) -> ElectLeadersResponse {
    let everything = request.topic_partitions.is_none();
    let mut results: BTreeMap<String, Vec<PartitionResult>> = BTreeMap::new();
    for (topic, partition_id) in wanted(state, request) {
        let code = match elect(state, call, request.election_type, &topic, partition_id) {
            Ok(()) => ErrorCode::NONE,
            // Whoever asks for all partitions is told of those that changed.
            Err(ErrorCode::ELECTION_NOT_NEEDED) if everything => continue,
            Err(code) => code,
        };
        let error_message = code.is_err().then(|| code.to_string());
        results.entry(topic).or_default().push(PartitionResult {
            partition_id,
            error_code: code,
            error_message,
        });
    }
    let replica_election_results = results
        .into_iter()
        .map(|(topic, partition_result)| ReplicaElectionResult { topic, partition_result });
    ElectLeadersResponse {
        replica_election_results: replica_election_results.collect(),
        ..Default::default()
    }
}

fn wanted(state: &BrokerState, request: &ElectLeadersRequest) -> Vec<(String, i32)> {
    match &request.topic_partitions {
        Some(topics) => topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|index| (topic.topic.clone(), *index)))
            .collect(),
        None => state
            .topics
            .iter()
            .flat_map(|topic| (0..).take(topic.partitions.len()).map(|index| (topic.name.to_string(), index)))
            .collect(),
    }
}

fn elect(state: &mut BrokerState, call: &Call, kind: i8, topic: &str, index: i32) -> Result<(), ErrorCode> {
    let partition = state
        .topics
        .get(topic)
        .and_then(|topic| topic.partition(index))
        .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let leader = choose(state, kind, partition)?;
    state.set_leader(call.now, topic, index, Some(leader))
}

fn choose(state: &BrokerState, kind: i8, partition: &Partition) -> Result<i32, ErrorCode> {
    if kind != PREFERRED {
        return match partition.leader {
            Some(_) => Err(ErrorCode::ELECTION_NOT_NEEDED),
            None => Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE),
        };
    }
    match partition.replicas.first() {
        Some(preferred) if partition.leader == Some(*preferred) => Err(ErrorCode::ELECTION_NOT_NEEDED),
        Some(preferred) if state.is_up(*preferred) => Ok(*preferred),
        _ => Err(ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE),
    }
}
