//! DescribeCluster: the nodes.

use super::authorized;
use crate::state::{BrokerState, Call};
use tontine_wire::ErrorCode;
use tontine_wire::api::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};

/// The endpoints that a client may ask a broker for; controllers have others.
const BROKERS: i8 = 1;

pub(super) fn answer(
    state: &BrokerState,
    _: &Call,
    request: &DescribeClusterRequest,
) -> DescribeClusterResponse {
    if request.endpoint_type != BROKERS {
        return DescribeClusterResponse {
            error_code: ErrorCode::MISMATCHED_ENDPOINT_TYPE,
            error_message: Some("The request was sent to an endpoint of the wrong type.".into()),
            ..Default::default()
        };
    }
    let listed = state.nodes.iter().filter(|(_, node)| node.up || request.include_fenced_brokers);
    let brokers = listed.map(|(id, node)| DescribeClusterBroker {
        broker_id: *id,
        host: node.host.clone(),
        port: i32::from(node.port),
        rack: node.rack.as_deref().map(str::to_owned),
        is_fenced: !node.up,
    });
    DescribeClusterResponse {
        cluster_id: state.cluster_id.clone(),
        controller_id: state.controller(),
        brokers: brokers.collect(),
        cluster_authorized_operations: authorized::cluster(request.include_cluster_authorized_operations),
        ..Default::default()
    }
}
