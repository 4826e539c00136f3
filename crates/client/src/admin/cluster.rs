//! The cluster: its brokers, and who leads.

use super::{Admin, Each, caller::checked, offsets::by_topic, topics::not_controller};
use crate::{
    Error, TopicPartition,
    cluster::{BrokerInfo, Target},
};
use tontine_wire::api::{describe_cluster, elect_leaders};

/// The cluster and its brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDescription {
    /// The cluster's id.
    pub id: String,
    /// The broker that takes administrative requests.
    pub controller: Option<i32>,
    /// Its brokers by number.
    pub brokers: Vec<BrokerInfo>,
}

/// How a leader is elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionType {
    /// The first of a partition's replicas leads again, if it is in sync.
    Preferred,
    /// Any replica that lives leads; records may be lost.
    Unclean,
}

impl Admin {
    /// Describes the cluster.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription, Error> {
        let op = self.caller.operation("describing the cluster");
        let request = describe_cluster::DescribeClusterRequest::default();
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, Target::Any, request.clone()).await?;
            checked(answer.error_code, "describing the cluster", answer.error_message.clone())?;
            Ok(answer)
        });
        let answer = answer.await?;
        let broker = |b: describe_cluster::DescribeClusterBroker| {
            let port = u16::try_from(b.port).ok()?;
            Some(BrokerInfo { id: b.broker_id, host: b.host, port, rack: b.rack.map(Into::into) })
        };
        let mut brokers: Vec<_> = answer.brokers.into_iter().filter_map(broker).collect();
        brokers.sort_by_key(|b| b.id);
        let controller = (answer.controller_id >= 0).then_some(answer.controller_id);
        Ok(ClusterDescription { id: answer.cluster_id, controller, brokers })
    }

    /// Elects leaders, of all partitions when `partitions` is `None`. A partition that is led as it should be is
    /// answered with `ELECTION_NOT_NEEDED`.
    pub async fn elect_leaders(
        &self,
        kind: ElectionType,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<Each<TopicPartition, ()>, Error> {
        let what = "electing leaders";
        let op = self.caller.operation(what);
        let one = |(topic, partitions)| elect_leaders::TopicPartitions { topic, partitions };
        let request = elect_leaders::ElectLeadersRequest {
            election_type: match kind {
                ElectionType::Preferred => 0,
                ElectionType::Unclean => 1,
            },
            topic_partitions: partitions.map(|p| by_topic(p).into_iter().map(one).collect()),
            timeout_ms: self.caller.request_timeout_ms(),
        };
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, Target::Controller, request.clone()).await?;
            not_controller([answer.error_code].into_iter(), what)?;
            checked(answer.error_code, what, None)?;
            Ok(answer)
        });
        let mut results = Each::new();
        for topic in answer.await?.replica_election_results {
            for partition in topic.partition_result {
                let name = TopicPartition::new(topic.topic.as_str(), partition.partition_id);
                let result =
                    checked(partition.error_code, &format!("{what} of {name}"), partition.error_message);
                results.insert(name, result);
            }
        }
        Ok(results)
    }
}
