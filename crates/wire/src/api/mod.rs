//! Every API that is spoken here: one row each, one file each.

pub use crate::codec::Message;
use crate::codec::{DecodeError, Reader, Wire, Writer};
use bytes::Bytes;
use std::ops::RangeInclusive;

/// A request that knows its answer.
pub trait Call: Message + Into<Request> {
    /// What the broker answers.
    type Response: Message + TryFrom<Response, Error = Response>;
    /// The API's number.
    const KEY: ApiKey;
}

macro_rules! apis {
    ($($name:ident = $key:literal, $module:ident, $request:ident, $response:ident;)*) => {
        $(pub mod $module;)*

        /// The number of an API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum ApiKey { $($name = $key,)* }

        impl ApiKey {
            /// Every API that is spoken here.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The API with this number.
            pub fn from_code(code: i16) -> Result<Self, DecodeError> {
                match code {
                    $($key => Ok(Self::$name),)*
                    _ => Err(DecodeError::UnsupportedApi(code)),
                }
            }

            /// The name as Kafka spells it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The versions that can be encoded and decoded.
            pub fn versions(self) -> RangeInclusive<i16> {
                match self { $(Self::$name => $module::$request::VERSIONS,)* }
            }

            /// Whether this version uses compact encodings and tagged fields.
            pub fn is_flexible(self, version: i16) -> bool {
                match self { $(Self::$name => $module::$request::is_flexible(version),)* }
            }
        }

        /// A request of any API.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum Request { $($name($module::$request),)* }

        /// An answer of any API.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum Response { $($name($module::$response),)* }

        impl Request {
            /// Which API this is.
            pub fn key(&self) -> ApiKey {
                match self { $(Self::$name(_) => ApiKey::$name,)* }
            }

            /// Appends the request in this version.
            pub fn encode(&self, version: i16, out: &mut Writer) {
                match self { $(Self::$name(m) => m.encode(version, out),)* }
            }

            /// Reads a request of this version off `reader`.
            pub fn get(key: ApiKey, version: i16, reader: &mut Reader) -> Result<Self, DecodeError> {
                check_version(key, version)?;
                let flexible = key.is_flexible(version);
                Ok(match key { $(ApiKey::$name => Self::$name(Wire::get(reader, version, flexible)?),)* })
            }
        }

        impl Response {
            /// Which API this answers.
            pub fn key(&self) -> ApiKey {
                match self { $(Self::$name(_) => ApiKey::$name,)* }
            }

            /// Appends the answer in this version.
            pub fn encode(&self, version: i16, out: &mut Writer) {
                match self { $(Self::$name(m) => m.encode(version, out),)* }
            }

            /// Reads a whole answer of this version; bytes left over are an error.
            pub fn decode(key: ApiKey, version: i16, bytes: Bytes) -> Result<Self, DecodeError> {
                check_version(key, version)?;
                Ok(match key { $(ApiKey::$name => Self::$name(Message::decode(bytes, version)?),)* })
            }
        }

        $(
            impl From<$module::$request> for Request {
                fn from(message: $module::$request) -> Self { Self::$name(message) }
            }
            impl From<$module::$response> for Response {
                fn from(message: $module::$response) -> Self { Self::$name(message) }
            }
            impl TryFrom<Response> for $module::$response {
                type Error = Response;
                fn try_from(response: Response) -> Result<Self, Response> {
                    match response { Response::$name(m) => Ok(m), other => Err(other) }
                }
            }
            impl Call for $module::$request {
                type Response = $module::$response;
                const KEY: ApiKey = ApiKey::$name;
            }
        )*
    };
}

apis! {
    Produce = 0, produce, ProduceRequest, ProduceResponse;
    Fetch = 1, fetch, FetchRequest, FetchResponse;
    ListOffsets = 2, list_offsets, ListOffsetsRequest, ListOffsetsResponse;
    Metadata = 3, metadata, MetadataRequest, MetadataResponse;
    OffsetCommit = 8, offset_commit, OffsetCommitRequest, OffsetCommitResponse;
    OffsetFetch = 9, offset_fetch, OffsetFetchRequest, OffsetFetchResponse;
    FindCoordinator = 10, find_coordinator, FindCoordinatorRequest, FindCoordinatorResponse;
    JoinGroup = 11, join_group, JoinGroupRequest, JoinGroupResponse;
    Heartbeat = 12, heartbeat, HeartbeatRequest, HeartbeatResponse;
    LeaveGroup = 13, leave_group, LeaveGroupRequest, LeaveGroupResponse;
    SyncGroup = 14, sync_group, SyncGroupRequest, SyncGroupResponse;
    DescribeGroups = 15, describe_groups, DescribeGroupsRequest, DescribeGroupsResponse;
    ListGroups = 16, list_groups, ListGroupsRequest, ListGroupsResponse;
    SaslHandshake = 17, sasl_handshake, SaslHandshakeRequest, SaslHandshakeResponse;
    ApiVersions = 18, api_versions, ApiVersionsRequest, ApiVersionsResponse;
    CreateTopics = 19, create_topics, CreateTopicsRequest, CreateTopicsResponse;
    DeleteTopics = 20, delete_topics, DeleteTopicsRequest, DeleteTopicsResponse;
    DeleteRecords = 21, delete_records, DeleteRecordsRequest, DeleteRecordsResponse;
    InitProducerId = 22, init_producer_id, InitProducerIdRequest, InitProducerIdResponse;
    OffsetForLeaderEpoch = 23, offset_for_leader_epoch, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    AddPartitionsToTxn = 24, add_partitions_to_txn, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse;
    AddOffsetsToTxn = 25, add_offsets_to_txn, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse;
    EndTxn = 26, end_txn, EndTxnRequest, EndTxnResponse;
    WriteTxnMarkers = 27, write_txn_markers, WriteTxnMarkersRequest, WriteTxnMarkersResponse;
    TxnOffsetCommit = 28, txn_offset_commit, TxnOffsetCommitRequest, TxnOffsetCommitResponse;
    DescribeConfigs = 32, describe_configs, DescribeConfigsRequest, DescribeConfigsResponse;
    AlterConfigs = 33, alter_configs, AlterConfigsRequest, AlterConfigsResponse;
    DescribeLogDirs = 35, describe_log_dirs, DescribeLogDirsRequest, DescribeLogDirsResponse;
    SaslAuthenticate = 36, sasl_authenticate, SaslAuthenticateRequest, SaslAuthenticateResponse;
    CreatePartitions = 37, create_partitions, CreatePartitionsRequest, CreatePartitionsResponse;
    DeleteGroups = 42, delete_groups, DeleteGroupsRequest, DeleteGroupsResponse;
    ElectLeaders = 43, elect_leaders, ElectLeadersRequest, ElectLeadersResponse;
    IncrementalAlterConfigs = 44, incremental_alter_configs, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
    OffsetDelete = 47, offset_delete, OffsetDeleteRequest, OffsetDeleteResponse;
    DescribeCluster = 60, describe_cluster, DescribeClusterRequest, DescribeClusterResponse;
    DescribeProducers = 61, describe_producers, DescribeProducersRequest, DescribeProducersResponse;
    DescribeTransactions = 65, describe_transactions, DescribeTransactionsRequest, DescribeTransactionsResponse;
    ListTransactions = 66, list_transactions, ListTransactionsRequest, ListTransactionsResponse;
    ConsumerGroupHeartbeat = 68, consumer_group_heartbeat, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse;
    ConsumerGroupDescribe = 69, consumer_group_describe, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse;
    GetTelemetrySubscriptions = 71, get_telemetry_subscriptions, GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse;
    PushTelemetry = 72, push_telemetry, PushTelemetryRequest, PushTelemetryResponse;
    ListConfigResources = 74, list_config_resources, ListConfigResourcesRequest, ListConfigResourcesResponse;
    DescribeTopicPartitions = 75, describe_topic_partitions, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse;
}

fn check_version(key: ApiKey, version: i16) -> Result<(), DecodeError> {
    if key.versions().contains(&version) {
        return Ok(());
    }
    Err(DecodeError::UnsupportedVersion { key: key as i16, version })
}
