//! CreatePartitions: more partitions for a topic; fewer are impossible.

use super::admin::{outcome, repeated};
use crate::cluster::NodeId;
use crate::state::{BrokerState, Call};
use crate::topics::Refusal;
use tontine_wire::ErrorCode;
use tontine_wire::api::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let repeated = repeated(request.topics.iter().map(|topic| topic.name.as_str()));
    let mut results = Vec::new();
    for topic in request.topics {
        let result = if repeated.contains(&topic.name) {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
        } else {
            grow(state, call, &topic, request.validate_only)
        };
        let (error_code, error_message) = outcome(result);
        results.push(CreatePartitionsTopicResult { name: topic.name, error_code, error_message });
    }
    CreatePartitionsResponse { results, ..Default::default() }
}

fn grow(
    state: &mut BrokerState,
    call: &Call,
    wanted: &CreatePartitionsTopic,
    validate_only: bool,
) -> Result<(), Refusal> {
    let replicas = new_replicas(state, wanted)?;
    if !validate_only {
        state.add_partitions(call.now, &wanted.name, replicas)?;
    }
    Ok(())
}

fn new_replicas(state: &BrokerState, wanted: &CreatePartitionsTopic) -> Result<Vec<Vec<NodeId>>, Refusal> {
    let unknown = || {
        Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    };
    let topic = state.topics.get(&wanted.name).ok_or_else(unknown)?;
    let have = topic.partitions.len();
    let want = usize::try_from(wanted.count).unwrap_or_default();
    let wrong = |why: String| Refusal::new(ErrorCode::INVALID_PARTITIONS, why);
    if want == have {
        return Err(wrong(format!("Topic already has {have} partition(s).")));
    }
    if want < have {
        return Err(wrong(format!(
            "The topic {} currently has {have} partition(s); {} would not be an increase.",
            wanted.name, wanted.count
        )));
    }
    if want - have > 10_000 {
        return Err(wrong(format!("Excessively large number of partitions per request: {}.", want - have)));
    }
    let factor = topic.partitions.first().map_or(1, |partition| partition.replicas.len());
    match &wanted.assignments {
        None => Ok(state.place(have, want - have, factor)),
        Some(assignments) if assignments.len() == want - have => {
            let nodes: Vec<_> = assignments.iter().map(|assignment| assignment.broker_ids.clone()).collect();
            state.check_assignments(&nodes, Some(factor))
        }
        Some(assignments) => Err(Refusal::new(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            format!(
                "Attempted to add {} additional partition(s), but only {} assignment(s) were specified.",
                want - have,
                assignments.len()
            ),
        )),
    }
}
