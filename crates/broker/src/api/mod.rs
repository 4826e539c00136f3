//! Every API: [`table`] says which versions are served and which file answers, [`unserved`] answers what is not spoken here.

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
mod table;
mod transactions;
pub(crate) mod unserved;

pub(crate) use produce::not_stored;
pub(crate) use table::{changes_something, refuse, versions};

use crate::state::{Answer, BrokerState, Call};
use tontine_wire::ErrorCode;
use tontine_wire::api::{ApiKey, Request, Response};

/// Whether a version of an API is served.
pub(crate) fn served(key: ApiKey, version: i16) -> bool {
    versions(key).is_some_and(|(first, last)| (first..=last).contains(&version))
}

/// The answer of an API that is not served here.
pub(crate) fn refuse_unserved(request: &Request) -> Response {
    refuse(request, 0, ErrorCode::UNSUPPORTED_VERSION)
}

/// Whether the setting of protocols forbids an API. It stays listed in ApiVersions, as in Kafka.
fn is_switched_off(state: &BrokerState, key: ApiKey) -> bool {
    let of_consumers = matches!(key, ApiKey::ConsumerGroupHeartbeat | ApiKey::ConsumerGroupDescribe);
    of_consumers && !state.settings.group_consumer_protocol
}

/// Answers a request.
pub(crate) fn serve(state: &mut BrokerState, call: &Call, request: Request) -> Answer {
    if !served(request.key(), call.version) || is_switched_off(state, request.key()) {
        return Answer::Now(refuse(&request, call.version, ErrorCode::UNSUPPORTED_VERSION));
    }
    table::answer(state, call, request)
}
