//! The answer that says nothing but an error, wherever the API has room for one. Mirrors
//! `AbstractRequest.getErrorResponse` of every request.

use bytes::Bytes;
use tontine_group::coordinator;
use tontine_wire::ErrorCode;
use tontine_wire::api::{self, Request, Response};

/// An API that is not served here.
pub(crate) fn refuse_unserved(request: &Request) -> Response {
    refuse(request, 0, ErrorCode::UNSUPPORTED_VERSION)
}

/// Refuses a request with this error.
pub(crate) fn refuse(request: &Request, version: i16, code: ErrorCode) -> Response {
    if let Some(response) = coordinator::refuse(request, version, code) {
        return response;
    }
    match request {
        Request::Produce(r) => produce(r, code).into(),
        Request::Fetch(r) => fetch(r, version, code).into(),
        Request::ListOffsets(r) => list_offsets(r, code).into(),
        Request::Metadata(r) => metadata(r, code).into(),
        Request::FindCoordinator(r) => find_coordinator(r, code).into(),
        Request::OffsetForLeaderEpoch(r) => offset_for_leader_epoch(r, code).into(),
        Request::CreateTopics(_)
        | Request::DeleteTopics(_)
        | Request::CreatePartitions(_)
        | Request::DeleteRecords(_)
        | Request::DescribeConfigs(_)
        | Request::AlterConfigs(_)
        | Request::IncrementalAlterConfigs(_) => admin(request, code),
        Request::AddPartitionsToTxn(_)
        | Request::AddOffsetsToTxn(_)
        | Request::EndTxn(_)
        | Request::WriteTxnMarkers(_)
        | Request::TxnOffsetCommit(_)
        | Request::DescribeTransactions(_)
        | Request::ConsumerGroupDescribe(_)
        | Request::DescribeProducers(_)
        | Request::DescribeTopicPartitions(_) => items(request, code),
        other => whole(other, code),
    }
}

/// APIs with one error for the whole answer.
fn whole(request: &Request, code: ErrorCode) -> Response {
    macro_rules! with_code {
        ($($variant:ident => $module:ident :: $response:ident),* $(,)?) => {
            match request {
                $(Request::$variant(_) => api::$module::$response { error_code: code, ..Default::default() }.into(),)*
                // The others were answered by the caller; ApiVersions is read by every client.
                _ => api::api_versions::ApiVersionsResponse { error_code: code, ..Default::default() }.into(),
            }
        };
    }
    with_code! {
        Heartbeat => heartbeat::HeartbeatResponse,
        ListGroups => list_groups::ListGroupsResponse,
        SyncGroup => sync_group::SyncGroupResponse,
        JoinGroup => join_group::JoinGroupResponse,
        LeaveGroup => leave_group::LeaveGroupResponse,
        OffsetFetch => offset_fetch::OffsetFetchResponse,
        OffsetDelete => offset_delete::OffsetDeleteResponse,
        SaslHandshake => sasl_handshake::SaslHandshakeResponse,
        SaslAuthenticate => sasl_authenticate::SaslAuthenticateResponse,
        InitProducerId => init_producer_id::InitProducerIdResponse,
        DescribeLogDirs => describe_log_dirs::DescribeLogDirsResponse,
        ElectLeaders => elect_leaders::ElectLeadersResponse,
        DescribeCluster => describe_cluster::DescribeClusterResponse,
        ListTransactions => list_transactions::ListTransactionsResponse,
        ConsumerGroupHeartbeat => consumer_group_heartbeat::ConsumerGroupHeartbeatResponse,
        GetTelemetrySubscriptions => get_telemetry_subscriptions::GetTelemetrySubscriptionsResponse,
        PushTelemetry => push_telemetry::PushTelemetryResponse,
        ListConfigResources => list_config_resources::ListConfigResourcesResponse,
    }
}

fn produce(request: &api::produce::ProduceRequest, error_code: ErrorCode) -> api::produce::ProduceResponse {
    use api::produce::{PartitionProduceResponse, ProduceResponse, TopicProduceResponse};
    let responses = request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: topic
            .partition_data
            .iter()
            .map(|partition| PartitionProduceResponse {
                index: partition.index,
                error_code,
                base_offset: -1,
                ..Default::default()
            })
            .collect(),
    });
    ProduceResponse { responses: responses.collect(), ..Default::default() }
}

fn fetch(
    request: &api::fetch::FetchRequest,
    version: i16,
    error_code: ErrorCode,
) -> api::fetch::FetchResponse {
    use api::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
    if version >= 7 {
        return FetchResponse { error_code, ..Default::default() };
    }
    let responses = request.topics.iter().map(|topic| FetchableTopicResponse {
        topic: topic.topic.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| PartitionData {
                partition_index: partition.partition,
                error_code,
                high_watermark: -1,
                records: Some(Bytes::new()),
                ..Default::default()
            })
            .collect(),
    });
    FetchResponse { responses: responses.collect(), ..Default::default() }
}

fn list_offsets(
    request: &api::list_offsets::ListOffsetsRequest,
    error_code: ErrorCode,
) -> api::list_offsets::ListOffsetsResponse {
    use api::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse};
    let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| ListOffsetsPartitionResponse {
                partition_index: partition.partition_index,
                error_code,
                ..Default::default()
            })
            .collect(),
    });
    ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
}

fn metadata(
    request: &api::metadata::MetadataRequest,
    error_code: ErrorCode,
) -> api::metadata::MetadataResponse {
    use api::metadata::{MetadataResponse, MetadataResponseTopic};
    let topics = request.topics.iter().flatten().map(|topic| MetadataResponseTopic {
        error_code,
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        ..Default::default()
    });
    MetadataResponse { topics: topics.collect(), error_code, ..Default::default() }
}

fn find_coordinator(
    request: &api::find_coordinator::FindCoordinatorRequest,
    error_code: ErrorCode,
) -> api::find_coordinator::FindCoordinatorResponse {
    use api::find_coordinator::{Coordinator, FindCoordinatorResponse};
    let coordinators = request.coordinator_keys.iter().map(|key| Coordinator {
        key: key.clone(),
        node_id: -1,
        port: -1,
        error_code,
        ..Default::default()
    });
    FindCoordinatorResponse {
        error_code,
        node_id: -1,
        port: -1,
        coordinators: coordinators.collect(),
        ..Default::default()
    }
}

fn offset_for_leader_epoch(
    request: &api::offset_for_leader_epoch::OffsetForLeaderEpochRequest,
    error_code: ErrorCode,
) -> api::offset_for_leader_epoch::OffsetForLeaderEpochResponse {
    use api::offset_for_leader_epoch::{
        EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
    };
    let topics = request.topics.iter().map(|topic| OffsetForLeaderTopicResult {
        topic: topic.topic.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| EpochEndOffset {
                error_code,
                partition: partition.partition,
                ..Default::default()
            })
            .collect(),
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }
}

/// Admin requests answer item by item.
fn admin(request: &Request, error_code: ErrorCode) -> Response {
    match request {
        Request::CreateTopics(r) => {
            use api::create_topics::{CreatableTopicResult, CreateTopicsResponse};
            let refused =
                |name: &String| CreatableTopicResult { name: name.clone(), error_code, ..Default::default() };
            let topics = r.topics.iter().map(|topic| refused(&topic.name)).collect();
            CreateTopicsResponse { topics, ..Default::default() }.into()
        }
        Request::DeleteTopics(r) => {
            use api::delete_topics::{DeletableTopicResult, DeleteTopicsResponse};
            let named = r.topic_names.iter().map(|name| (Some(name.clone()), tontine_wire::Uuid::ZERO));
            let listed = r.topics.iter().map(|topic| (topic.name.clone(), topic.topic_id));
            let refused =
                |(name, topic_id)| DeletableTopicResult { name, topic_id, error_code, ..Default::default() };
            let responses = named.chain(listed).map(refused).collect();
            DeleteTopicsResponse { responses, ..Default::default() }.into()
        }
        Request::CreatePartitions(r) => {
            use api::create_partitions::{CreatePartitionsResponse, CreatePartitionsTopicResult};
            let results = r.topics.iter().map(|topic| CreatePartitionsTopicResult {
                name: topic.name.clone(),
                error_code,
                ..Default::default()
            });
            CreatePartitionsResponse { results: results.collect(), ..Default::default() }.into()
        }
        Request::DeleteRecords(r) => {
            use api::delete_records::{
                DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
            };
            let topics = r.topics.iter().map(|topic| DeleteRecordsTopicResult {
                name: topic.name.clone(),
                partitions: topic
                    .partitions
                    .iter()
                    .map(|partition| DeleteRecordsPartitionResult {
                        partition_index: partition.partition_index,
                        low_watermark: -1,
                        error_code,
                    })
                    .collect(),
            });
            DeleteRecordsResponse { topics: topics.collect(), ..Default::default() }.into()
        }
        _ => configs(request, error_code),
    }
}

fn configs(request: &Request, error_code: ErrorCode) -> Response {
    match request {
        Request::AlterConfigs(r) => {
            use api::alter_configs::{AlterConfigsResourceResponse, AlterConfigsResponse};
            let responses = r.resources.iter().map(|resource| AlterConfigsResourceResponse {
                error_code,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name.clone(),
                ..Default::default()
            });
            AlterConfigsResponse { responses: responses.collect(), ..Default::default() }.into()
        }
        Request::IncrementalAlterConfigs(r) => {
            use api::incremental_alter_configs::{
                AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
            };
            let responses = r.resources.iter().map(|resource| AlterConfigsResourceResponse {
                error_code,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name.clone(),
                ..Default::default()
            });
            IncrementalAlterConfigsResponse { responses: responses.collect(), ..Default::default() }.into()
        }
        Request::DescribeConfigs(r) => {
            use api::describe_configs::{DescribeConfigsResponse, DescribeConfigsResult};
            let results = r.resources.iter().map(|resource| DescribeConfigsResult {
                error_code,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name.clone(),
                ..Default::default()
            });
            DescribeConfigsResponse { results: results.collect(), ..Default::default() }.into()
        }
        other => whole(other, error_code),
    }
}

/// Requests about transactions, producers and other lists.
fn items(request: &Request, error_code: ErrorCode) -> Response {
    match request {
        Request::AddPartitionsToTxn(r) => add_partitions_to_txn(r, error_code).into(),
        Request::AddOffsetsToTxn(_) => {
            api::add_offsets_to_txn::AddOffsetsToTxnResponse { error_code, ..Default::default() }.into()
        }
        Request::EndTxn(_) => api::end_txn::EndTxnResponse { error_code, ..Default::default() }.into(),
        Request::WriteTxnMarkers(r) => write_txn_markers(r, error_code).into(),
        Request::TxnOffsetCommit(r) => txn_offset_commit(r, error_code).into(),
        Request::DescribeTransactions(r) => {
            use api::describe_transactions::{DescribeTransactionsResponse, TransactionState};
            let refused = |id: &String| TransactionState {
                error_code,
                transactional_id: id.clone(),
                ..Default::default()
            };
            let transaction_states = r.transactional_ids.iter().map(refused).collect();
            DescribeTransactionsResponse { transaction_states, ..Default::default() }.into()
        }
        Request::ConsumerGroupDescribe(r) => {
            use api::consumer_group_describe::{ConsumerGroupDescribeResponse, DescribedGroup};
            let refused =
                |id: &String| DescribedGroup { error_code, group_id: id.clone(), ..Default::default() };
            let groups = r.group_ids.iter().map(refused).collect();
            ConsumerGroupDescribeResponse { groups, ..Default::default() }.into()
        }
        Request::DescribeProducers(r) => describe_producers(r, error_code).into(),
        Request::DescribeTopicPartitions(r) => {
            use api::describe_topic_partitions::{
                DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponseTopic,
            };
            let topics = r.topics.iter().map(|topic| DescribeTopicPartitionsResponseTopic {
                error_code,
                name: Some(topic.name.clone()),
                ..Default::default()
            });
            DescribeTopicPartitionsResponse { topics: topics.collect(), ..Default::default() }.into()
        }
        other => whole(other, error_code),
    }
}

fn add_partitions_to_txn(
    request: &api::add_partitions_to_txn::AddPartitionsToTxnRequest,
    error_code: ErrorCode,
) -> api::add_partitions_to_txn::AddPartitionsToTxnResponse {
    use api::add_partitions_to_txn::{
        AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResponse, AddPartitionsToTxnTopicResult,
    };
    let by_topic = request.v3_and_below_topics.iter().map(|topic| AddPartitionsToTxnTopicResult {
        name: topic.name.clone(),
        results_by_partition: topic
            .partitions
            .iter()
            .map(|index| AddPartitionsToTxnPartitionResult {
                partition_index: *index,
                partition_error_code: error_code,
            })
            .collect(),
    });
    AddPartitionsToTxnResponse {
        error_code,
        results_by_topic_v3_and_below: by_topic.collect(),
        ..Default::default()
    }
}

fn write_txn_markers(
    request: &api::write_txn_markers::WriteTxnMarkersRequest,
    error_code: ErrorCode,
) -> api::write_txn_markers::WriteTxnMarkersResponse {
    use api::write_txn_markers::{
        WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
        WriteTxnMarkersResponse,
    };
    let partition = |index: &i32| WritableTxnMarkerPartitionResult { partition_index: *index, error_code };
    let markers = request.markers.iter().map(|marker| WritableTxnMarkerResult {
        producer_id: marker.producer_id,
        topics: marker
            .topics
            .iter()
            .map(|topic| WritableTxnMarkerTopicResult {
                name: topic.name.clone(),
                partitions: topic.partition_indexes.iter().map(partition).collect(),
            })
            .collect(),
    });
    WriteTxnMarkersResponse { markers: markers.collect() }
}

fn txn_offset_commit(
    request: &api::txn_offset_commit::TxnOffsetCommitRequest,
    error_code: ErrorCode,
) -> api::txn_offset_commit::TxnOffsetCommitResponse {
    use api::txn_offset_commit::{
        TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
    };
    let topics = request.topics.iter().map(|topic| TxnOffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| TxnOffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code,
            })
            .collect(),
    });
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

fn describe_producers(
    request: &api::describe_producers::DescribeProducersRequest,
    error_code: ErrorCode,
) -> api::describe_producers::DescribeProducersResponse {
    use api::describe_producers::{DescribeProducersResponse, PartitionResponse, TopicResponse};
    let topics = request.topics.iter().map(|topic| TopicResponse {
        name: topic.name.clone(),
        partitions: topic
            .partition_indexes
            .iter()
            .map(|index| PartitionResponse { partition_index: *index, error_code, ..Default::default() })
            .collect(),
    });
    DescribeProducersResponse { topics: topics.collect(), ..Default::default() }
}
