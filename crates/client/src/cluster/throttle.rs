//! How long a broker wants to be left alone, as its answers say. Since Kafka 2.0 a broker answers at once and expects the
//! client to wait; a client that does not is made to wait by the broker.

use std::time::Duration;
use tontine_wire::api::Response;

/// Quotas count over seconds, so brokers do not ask for more; a longer pause is a damaged answer.
const LONGEST: Duration = Duration::from_secs(30);

macro_rules! throttle_of {
    ($response:expr, $($api:ident)*) => {
        match $response { $(Response::$api(answer) => answer.throttle_time_ms,)* _ => 0 }
    };
}

/// The pause that an answer asks for. APIs that clients of groups do not use are left out.
pub(super) fn throttle(response: &Response) -> Duration {
    let ms = throttle_of!(
        response,
        Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup
        SyncGroup DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics InitProducerId OffsetForLeaderEpoch
        DescribeConfigs CreatePartitions DeleteGroups ElectLeaders IncrementalAlterConfigs OffsetDelete DescribeCluster
        ConsumerGroupHeartbeat ConsumerGroupDescribe
    );
    Duration::from_millis(u64::try_from(ms).unwrap_or(0)).min(LONGEST)
}
