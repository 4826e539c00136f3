//! Refusals that say an error for each topic, partition or other thing that was named.

use bytes::Bytes;
use tontine_wire::ErrorCode;
use tontine_wire::api;

pub(super) fn produce(
    request: &api::produce::ProduceRequest,
    error_code: ErrorCode,
) -> api::produce::ProduceResponse {
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

pub(super) fn fetch(
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

pub(super) fn list_offsets(
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

pub(super) fn metadata(
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

pub(super) fn find_coordinator(
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

pub(super) fn offset_for_leader_epoch(
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

pub(super) fn create_topics(
    request: &api::create_topics::CreateTopicsRequest,
    error_code: ErrorCode,
) -> api::create_topics::CreateTopicsResponse {
    use api::create_topics::{CreatableTopicResult, CreateTopicsResponse};
    let refused =
        |name: &String| CreatableTopicResult { name: name.clone(), error_code, ..Default::default() };
    let topics = request.topics.iter().map(|topic| refused(&topic.name)).collect();
    CreateTopicsResponse { topics, ..Default::default() }
}

pub(super) fn delete_topics(
    request: &api::delete_topics::DeleteTopicsRequest,
    error_code: ErrorCode,
) -> api::delete_topics::DeleteTopicsResponse {
    use api::delete_topics::{DeletableTopicResult, DeleteTopicsResponse};
    let named = request.topic_names.iter().map(|name| (Some(name.clone()), tontine_wire::Uuid::ZERO));
    let listed = request.topics.iter().map(|topic| (topic.name.clone(), topic.topic_id));
    let refused =
        |(name, topic_id)| DeletableTopicResult { name, topic_id, error_code, ..Default::default() };
    let responses = named.chain(listed).map(refused).collect();
    DeleteTopicsResponse { responses, ..Default::default() }
}

pub(super) fn create_partitions(
    request: &api::create_partitions::CreatePartitionsRequest,
    error_code: ErrorCode,
) -> api::create_partitions::CreatePartitionsResponse {
    use api::create_partitions::{CreatePartitionsResponse, CreatePartitionsTopicResult};
    let results = request.topics.iter().map(|topic| CreatePartitionsTopicResult {
        name: topic.name.clone(),
        error_code,
        ..Default::default()
    });
    CreatePartitionsResponse { results: results.collect(), ..Default::default() }
}

pub(super) fn delete_records(
    request: &api::delete_records::DeleteRecordsRequest,
    error_code: ErrorCode,
) -> api::delete_records::DeleteRecordsResponse {
    use api::delete_records::{
        DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
    };
    let topics = request.topics.iter().map(|topic| DeleteRecordsTopicResult {
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
    DeleteRecordsResponse { topics: topics.collect(), ..Default::default() }
}

pub(super) fn alter_configs(
    request: &api::alter_configs::AlterConfigsRequest,
    error_code: ErrorCode,
) -> api::alter_configs::AlterConfigsResponse {
    use api::alter_configs::{AlterConfigsResourceResponse, AlterConfigsResponse};
    let responses = request.resources.iter().map(|resource| AlterConfigsResourceResponse {
        error_code,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    });
    AlterConfigsResponse { responses: responses.collect(), ..Default::default() }
}

pub(super) fn incremental_alter_configs(
    request: &api::incremental_alter_configs::IncrementalAlterConfigsRequest,
    error_code: ErrorCode,
) -> api::incremental_alter_configs::IncrementalAlterConfigsResponse {
    use api::incremental_alter_configs::{AlterConfigsResourceResponse, IncrementalAlterConfigsResponse};
    let responses = request.resources.iter().map(|resource| AlterConfigsResourceResponse {
        error_code,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    });
    IncrementalAlterConfigsResponse { responses: responses.collect(), ..Default::default() }
}

pub(super) fn describe_configs(
    request: &api::describe_configs::DescribeConfigsRequest,
    error_code: ErrorCode,
) -> api::describe_configs::DescribeConfigsResponse {
    use api::describe_configs::{DescribeConfigsResponse, DescribeConfigsResult};
    let results = request.resources.iter().map(|resource| DescribeConfigsResult {
        error_code,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    });
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }
}

pub(super) fn describe_transactions(
    request: &api::describe_transactions::DescribeTransactionsRequest,
    error_code: ErrorCode,
) -> api::describe_transactions::DescribeTransactionsResponse {
    use api::describe_transactions::{DescribeTransactionsResponse, TransactionState};
    let refused =
        |id: &String| TransactionState { error_code, transactional_id: id.clone(), ..Default::default() };
    let transaction_states = request.transactional_ids.iter().map(refused).collect();
    DescribeTransactionsResponse { transaction_states, ..Default::default() }
}

pub(super) fn describe_topic_partitions(
    request: &api::describe_topic_partitions::DescribeTopicPartitionsRequest,
    error_code: ErrorCode,
) -> api::describe_topic_partitions::DescribeTopicPartitionsResponse {
    use api::describe_topic_partitions::{
        DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponseTopic,
    };
    let topics = request.topics.iter().map(|topic| DescribeTopicPartitionsResponseTopic {
        error_code,
        name: Some(topic.name.clone()),
        ..Default::default()
    });
    DescribeTopicPartitionsResponse { topics: topics.collect(), ..Default::default() }
}

pub(super) fn add_partitions_to_txn(
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

pub(super) fn write_txn_markers(
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

pub(super) fn txn_offset_commit(
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

pub(super) fn describe_producers(
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
