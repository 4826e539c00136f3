//! Every API: which versions are served, and which file answers. The match over requests is exhaustive: an API that is
//! added to the wire does not compile until it is answered here.

mod admin;
mod alter_configs;
pub(crate) mod api_versions;
mod authorized;
mod create_partitions;
mod create_topics;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_log_dirs;
mod describe_producers;
mod describe_topic_partitions;
mod elect_leaders;
pub(crate) mod fetch;
mod find_coordinator;
mod group;
mod init_producer_id;
mod list_offsets;
mod metadata;
mod offset_for_leader_epoch;
mod place;
mod produce;
mod refusal;
mod transactions;

pub(crate) use produce::not_stored;
pub(crate) use refusal::{refuse, refuse_unserved};

use crate::state::{Answer, BrokerState, Call};
use tontine_wire::ErrorCode;
use tontine_wire::api::{ApiKey, Request};

/// The versions of an API that are served; `None` when it is not.
pub(crate) fn versions(key: ApiKey) -> Option<(i16, i16)> {
    let (first, last) = (*key.versions().start(), *key.versions().end());
    match key {
        ApiKey::InitProducerId => Some((first, last.min(5))),
        // Without filters by pattern.
        ApiKey::ListTransactions => Some((first, last.min(1))),
        // Later versions belong to brokers, or to transaction version 2, which is not offered.
        ApiKey::AddPartitionsToTxn => Some((first, last.min(3))),
        ApiKey::AddOffsetsToTxn | ApiKey::EndTxn | ApiKey::TxnOffsetCommit => Some((first, last.min(4))),
        ApiKey::Produce
        | ApiKey::Fetch
        | ApiKey::ListOffsets
        | ApiKey::Metadata
        | ApiKey::OffsetCommit
        | ApiKey::OffsetFetch
        | ApiKey::FindCoordinator
        | ApiKey::JoinGroup
        | ApiKey::Heartbeat
        | ApiKey::LeaveGroup
        | ApiKey::SyncGroup
        | ApiKey::DescribeGroups
        | ApiKey::ListGroups
        | ApiKey::ApiVersions
        | ApiKey::SaslHandshake
        | ApiKey::CreateTopics
        | ApiKey::DeleteTopics
        | ApiKey::DeleteRecords
        | ApiKey::OffsetForLeaderEpoch
        | ApiKey::DescribeConfigs
        | ApiKey::AlterConfigs
        | ApiKey::DescribeLogDirs
        | ApiKey::CreatePartitions
        | ApiKey::DeleteGroups
        | ApiKey::ElectLeaders
        | ApiKey::IncrementalAlterConfigs
        | ApiKey::OffsetDelete
        | ApiKey::DescribeCluster
        | ApiKey::DescribeProducers
        | ApiKey::DescribeTransactions
        | ApiKey::ListConfigResources
        | ApiKey::ConsumerGroupHeartbeat
        | ApiKey::ConsumerGroupDescribe
        | ApiKey::DescribeTopicPartitions => Some((first, last)),
        ApiKey::SaslAuthenticate
        | ApiKey::WriteTxnMarkers
        | ApiKey::GetTelemetrySubscriptions
        | ApiKey::PushTelemetry => None,
    }
}

/// Whether an API changes something that is kept, other than by records and members.
pub(crate) fn changes_something(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::Metadata
            | ApiKey::FindCoordinator
            | ApiKey::CreateTopics
            | ApiKey::DeleteTopics
            | ApiKey::CreatePartitions
            | ApiKey::DeleteRecords
            | ApiKey::AlterConfigs
            | ApiKey::IncrementalAlterConfigs
            | ApiKey::ElectLeaders
            | ApiKey::InitProducerId
            | ApiKey::AddPartitionsToTxn
            | ApiKey::AddOffsetsToTxn
            | ApiKey::TxnOffsetCommit
            | ApiKey::EndTxn
    )
}

/// Whether a version of an API is served.
pub(crate) fn served(key: ApiKey, version: i16) -> bool {
    versions(key).is_some_and(|(first, last)| (first..=last).contains(&version))
}

/// Whether the setting of protocols forbids an API. It stays listed in ApiVersions, as in Kafka.
fn is_switched_off(state: &BrokerState, key: ApiKey) -> bool {
    let of_consumers = matches!(key, ApiKey::ConsumerGroupHeartbeat | ApiKey::ConsumerGroupDescribe);
    of_consumers && !state.settings.group_consumer_protocol
}

/// Answers a request.
pub(crate) fn serve(state: &mut BrokerState, call: &Call, request: Request) -> Answer {
    if !served(request.key(), call.version) {
        return Answer::Now(refuse(&request, call.version, ErrorCode::UNSUPPORTED_VERSION));
    }
    if is_switched_off(state, request.key()) {
        return Answer::Now(refuse(&request, call.version, ErrorCode::UNSUPPORTED_VERSION));
    }
    let response = match request {
        Request::ApiVersions(request) => api_versions::answer(state, call, &request).into(),
        Request::Metadata(request) => metadata::answer(state, call, &request).into(),
        Request::Produce(request) => return produce::answer(state, call, request),
        Request::Fetch(request) => return fetch::answer(state, call, request),
        Request::ListOffsets(request) => list_offsets::answer(state, call, &request).into(),
        Request::OffsetForLeaderEpoch(request) => {
            offset_for_leader_epoch::answer(state, call, &request).into()
        }
        Request::FindCoordinator(request) => find_coordinator::answer(state, call, &request).into(),
        Request::InitProducerId(request) => init_producer_id::answer(state, call, &request).into(),
        Request::CreateTopics(request) => create_topics::answer(state, call, request).into(),
        Request::DeleteTopics(request) => delete_topics::answer(state, call, request).into(),
        Request::CreatePartitions(request) => create_partitions::answer(state, call, request).into(),
        Request::DeleteRecords(request) => delete_records::answer(state, call, &request).into(),
        Request::DescribeCluster(request) => describe_cluster::answer(state, &request).into(),
        Request::DescribeConfigs(request) => describe_configs::answer(state, request).into(),
        Request::AlterConfigs(request) => alter_configs::answer(state, call, request).into(),
        Request::IncrementalAlterConfigs(request) => {
            alter_configs::answer_incremental(state, call, request).into()
        }
        Request::ListConfigResources(request) => describe_configs::list(state, call, &request).into(),
        Request::DescribeLogDirs(request) => describe_log_dirs::answer(state, call, &request).into(),
        Request::DescribeProducers(request) => describe_producers::answer(state, call, &request).into(),
        Request::AddPartitionsToTxn(request) => transactions::add_partitions(state, call, &request).into(),
        Request::AddOffsetsToTxn(request) => transactions::add_offsets(state, call, &request).into(),
        Request::EndTxn(request) => return transactions::end(state, call, &request),
        request @ Request::TxnOffsetCommit(_) => transactions::commit_offsets(state, call, request),
        Request::ListTransactions(request) => transactions::list(state, call, &request).into(),
        Request::DescribeTransactions(request) => transactions::describe(state, call, &request).into(),
        Request::DescribeTopicPartitions(request) => {
            describe_topic_partitions::answer(state, &request).into()
        }
        Request::ElectLeaders(request) => elect_leaders::answer(state, call, &request).into(),
        request @ (Request::JoinGroup(_)
        | Request::SyncGroup(_)
        | Request::Heartbeat(_)
        | Request::LeaveGroup(_)
        | Request::OffsetCommit(_)
        | Request::OffsetFetch(_)
        | Request::OffsetDelete(_)
        | Request::DescribeGroups(_)
        | Request::ListGroups(_)
        | Request::DeleteGroups(_)
        | Request::ConsumerGroupHeartbeat(_)
        | Request::ConsumerGroupDescribe(_)) => return group::answer(state, call, request),
        // Kafka lists the handshake on plain ports as well, so that clients learn why it fails.
        request @ Request::SaslHandshake(_) => refuse(&request, call.version, ErrorCode::ILLEGAL_SASL_STATE),
        request @ (Request::SaslAuthenticate(_)
        | Request::WriteTxnMarkers(_)
        | Request::GetTelemetrySubscriptions(_)
        | Request::PushTelemetry(_)) => refuse_unserved(&request),
    };
    Answer::Now(response)
}
