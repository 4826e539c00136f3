//! The table of APIs: which versions are served, whether an answer tells of a change that has to be durable first, who answers, and
//! how a refusal looks. An API that is added to the wire does not compile until it has a row.

use super::*;
use Served::{All, No, UpTo};

/// The versions that are served of those that the wire knows.
#[derive(Debug, Clone, Copy)]
enum Served {
    All,
    UpTo(i16),
    No,
}

/// Changes something that is kept, other than by records and members.
const CHANGE: bool = true;
/// Everything else.
const REST: bool = false;

/// Answered by a function that looks at the request.
macro_rules! look {
    ($answer:path) => {
        |state, call, request| Answer::Now($answer(state, call, &request).into())
    };
}

/// Answered by a function that takes the request.
macro_rules! take {
    ($answer:path) => {
        |state, call, request| Answer::Now($answer(state, call, request).into())
    };
}

/// Refused with one error for the whole answer.
macro_rules! whole {
    ($module:ident :: $response:ident) => {
        |_, _, _, code| {
            tontine_wire::api::$module::$response { error_code: code, ..Default::default() }.into()
        }
    };
}

/// Refused with an error for each thing that was named.
macro_rules! each {
    ($refuse:path) => {
        |_, asked, _, code| $refuse(asked, code).into()
    };
}

macro_rules! apis {
    ($($name:ident: $served:expr, $change:expr, $answer:expr, $refuse:expr;)*) => {
        /// The versions of an API that are served; `None` when it is not.
        pub(crate) fn versions(key: ApiKey) -> Option<(i16, i16)> {
            let served = match key { $(ApiKey::$name => $served,)* };
            let (first, last) = (*key.versions().start(), *key.versions().end());
            match served {
                All => Some((first, last)),
                UpTo(version) => Some((first, last.min(version))),
                No => None,
            }
        }

        /// Whether an API changes something that is kept, other than by records and members.
        pub(crate) fn changes_something(key: ApiKey) -> bool {
            match key { $(ApiKey::$name => $change,)* }
        }

        /// Answers a request of a version that is served.
        pub(super) fn answer(state: &mut BrokerState, call: &Call, request: Request) -> Answer {
            match request { $(Request::$name(request) => answer_by(state, call, request, $answer),)* }
        }

        /// Refuses a request with this error, wherever the API has room for one. Mirrors `AbstractRequest.getErrorResponse`
        /// of every request.
        pub(crate) fn refuse(request: &Request, version: i16, code: ErrorCode) -> Response {
            match request { $(Request::$name(asked) => refuse_by(request, asked, (version, code), $refuse),)* }
        }
    };
}

fn answer_by<R>(
    state: &mut BrokerState,
    call: &Call,
    request: R,
    answer: fn(&mut BrokerState, &Call, R) -> Answer,
) -> Answer {
    answer(state, call, request)
}

fn refuse_by<R>(
    request: &Request,
    asked: &R,
    (version, code): (i16, ErrorCode),
    refuse: fn(&Request, &R, i16, ErrorCode) -> Response,
) -> Response {
    refuse(request, asked, version, code)
}

/// A request whose API is not served is refused before it comes here.
fn nobody<R: Into<Request>>(_: &mut BrokerState, _: &Call, request: R) -> Answer {
    Answer::Now(refuse_unserved(&request.into()))
}

apis! {
    Produce: All, REST, produce::answer, each!(refusal::produce);
    Fetch: All, REST, fetch::answer, |_, asked, version, code| refusal::fetch(asked, version, code).into();
    ListOffsets: All, REST, look!(list_offsets::answer), each!(refusal::list_offsets);
    Metadata: All, CHANGE, look!(metadata::answer), each!(refusal::metadata);
    OffsetCommit: All, REST, group::answer, group::refuse;
    OffsetFetch: All, REST, group::answer, group::refuse;
    FindCoordinator: All, CHANGE, look!(find_coordinator::answer), each!(refusal::find_coordinator);
    JoinGroup: All, REST, group::answer, group::refuse;
    Heartbeat: All, REST, group::answer, group::refuse;
    LeaveGroup: All, REST, group::answer, group::refuse;
    SyncGroup: All, REST, group::answer, group::refuse;
    DescribeGroups: All, REST, group::answer, group::refuse;
    ListGroups: All, REST, group::answer, group::refuse;
    SaslHandshake: All, REST, sasl_handshake, whole!(sasl_handshake::SaslHandshakeResponse);
    ApiVersions: All, REST, look!(api_versions::answer), whole!(api_versions::ApiVersionsResponse);
    CreateTopics: All, CHANGE, take!(create_topics::answer), each!(refusal::create_topics);
    DeleteTopics: All, CHANGE, take!(delete_topics::answer), each!(refusal::delete_topics);
    DeleteRecords: All, CHANGE, look!(delete_records::answer), each!(refusal::delete_records);
    InitProducerId: UpTo(5), CHANGE, look!(init_producer_id::answer), whole!(init_producer_id::InitProducerIdResponse);
    OffsetForLeaderEpoch: All, REST, look!(offset_for_leader_epoch::answer), each!(refusal::offset_for_leader_epoch);
    // Later versions of these belong to brokers, or to transaction version 2, which is not offered.
    AddPartitionsToTxn: UpTo(3), CHANGE, look!(transactions::add_partitions), each!(refusal::add_partitions_to_txn);
    AddOffsetsToTxn: UpTo(4), CHANGE, look!(transactions::add_offsets), whole!(add_offsets_to_txn::AddOffsetsToTxnResponse);
    EndTxn: UpTo(4), CHANGE, |state, call, request| transactions::end(state, call, &request), whole!(end_txn::EndTxnResponse);
    WriteTxnMarkers: No, REST, nobody, each!(refusal::write_txn_markers);
    TxnOffsetCommit: UpTo(4), CHANGE, look!(transactions::commit_offsets), each!(refusal::txn_offset_commit);
    DescribeConfigs: All, REST, take!(describe_configs::answer), each!(refusal::describe_configs);
    AlterConfigs: All, CHANGE, take!(alter_configs::answer), each!(refusal::alter_configs);
    DescribeLogDirs: All, REST, look!(describe_log_dirs::answer), whole!(describe_log_dirs::DescribeLogDirsResponse);
    SaslAuthenticate: No, REST, nobody, whole!(sasl_authenticate::SaslAuthenticateResponse);
    CreatePartitions: All, CHANGE, take!(create_partitions::answer), each!(refusal::create_partitions);
    DeleteGroups: All, REST, group::answer, group::refuse;
    ElectLeaders: All, CHANGE, look!(elect_leaders::answer), whole!(elect_leaders::ElectLeadersResponse);
    IncrementalAlterConfigs: All, CHANGE, take!(alter_configs::answer_incremental), each!(refusal::incremental_alter_configs);
    OffsetDelete: All, REST, group::answer, group::refuse;
    DescribeCluster: All, REST, look!(describe_cluster::answer), whole!(describe_cluster::DescribeClusterResponse);
    DescribeProducers: All, REST, look!(describe_producers::answer), each!(refusal::describe_producers);
    DescribeTransactions: All, REST, look!(transactions::describe), each!(refusal::describe_transactions);
    // Without filters by pattern.
    ListTransactions: UpTo(1), REST, look!(transactions::list), whole!(list_transactions::ListTransactionsResponse);
    ConsumerGroupHeartbeat: All, REST, group::answer, group::refuse;
    ConsumerGroupDescribe: All, REST, group::answer, group::refuse;
    GetTelemetrySubscriptions: No, REST, nobody, whole!(get_telemetry_subscriptions::GetTelemetrySubscriptionsResponse);
    PushTelemetry: No, REST, nobody, whole!(push_telemetry::PushTelemetryResponse);
    ListConfigResources: All, REST, look!(describe_configs::list), whole!(list_config_resources::ListConfigResourcesResponse);
    DescribeTopicPartitions: All, REST, look!(describe_topic_partitions::answer), each!(refusal::describe_topic_partitions);
}

/// Kafka lists the handshake on plain ports as well, so that clients learn why it fails.
fn sasl_handshake(
    _: &mut BrokerState,
    call: &Call,
    request: tontine_wire::api::sasl_handshake::SaslHandshakeRequest,
) -> Answer {
    Answer::Now(refuse(&request.into(), call.version, ErrorCode::ILLEGAL_SASL_STATE))
}
