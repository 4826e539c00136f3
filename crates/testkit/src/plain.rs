//! A plain second client: creates topics, reads what a group has committed and what state it is in.
//!
//! It shares nothing with the client under test but the message tables: no metadata cache, no pipelining, one connection a
//! question. What may be answered "not yet" is asked again until a deadline, as a person at a terminal would.

use crate::raw::RawConnection;
use crate::{Failure, failure, wait};
use std::collections::BTreeMap;
use std::time::Duration;
use tontine_wire::ErrorCode;
use tontine_wire::api::consumer_group_describe::{self, ConsumerGroupDescribeRequest};
use tontine_wire::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use tontine_wire::api::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use tontine_wire::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use tontine_wire::api::describe_groups::{DescribeGroupsRequest, DescribedGroup, DescribedGroupMember};
use tontine_wire::api::elect_leaders::ElectLeadersRequest;
use tontine_wire::api::find_coordinator::FindCoordinatorRequest;
use tontine_wire::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use tontine_wire::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use tontine_wire::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use tontine_wire::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use tontine_wire::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use tontine_wire::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use tontine_wire::records::{BatchBuilder, Compression};

/// How long a question is asked again.
const DEADLINE: Duration = Duration::from_secs(60);
const CLIENT_ID: &str = "tontine-plain";

/// `host:port` of brokers to ask; any of them will do.
#[derive(Debug, Clone)]
pub struct PlainClient {
    servers: Vec<String>,
}

impl PlainClient {
    /// A client of the brokers in `bootstrap_servers`.
    pub fn new(bootstrap_servers: &str) -> Self {
        Self { servers: bootstrap_servers.split(',').map(str::to_owned).collect() }
    }

    /// A connection to any broker that can be reached.
    pub async fn any(&self) -> Result<RawConnection, Failure> {
        let mut last = failure!("no bootstrap servers");
        for server in &self.servers {
            match RawConnection::connect(server, CLIENT_ID).await {
                Ok(connection) => return Ok(connection),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// A connection to the coordinator of `group`, as the client `client_id`.
    pub async fn coordinator(&self, group: &str, client_id: &str) -> Result<RawConnection, Failure> {
        let address = self.coordinator_address(group).await?;
        RawConnection::connect(&address, client_id).await
    }

    /// `host:port` of the coordinator of `group`.
    pub async fn coordinator_address(&self, group: &str) -> Result<String, Failure> {
        let what = format!("a coordinator for {group}");
        wait::until(&what, DEADLINE, async || {
            let request =
                FindCoordinatorRequest { coordinator_keys: vec![group.to_owned()], ..Default::default() };
            let answer = self.any().await.ok()?.call(4, request).await.ok()?;
            let found = answer.coordinators.into_iter().find(|c| c.error_code.is_ok())?;
            Some(format!("{}:{}", found.host, found.port))
        })
        .await
    }

    /// Metadata of these topics.
    pub async fn metadata(&self, topics: &[&str]) -> Result<MetadataResponse, Failure> {
        let topic =
            |name: &&str| MetadataRequestTopic { name: Some((*name).to_owned()), ..Default::default() };
        let request = MetadataRequest {
            topics: Some(topics.iter().map(topic).collect()),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        self.any().await?.call(12, request).await
    }

    /// Creates a topic and waits until each partition has a leader that every broker names.
    pub async fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        replicas: i16,
        configs: &[(&str, &str)],
    ) -> Result<(), Failure> {
        let config = |(name, value): &(&str, &str)| CreatableTopicConfig {
            name: (*name).to_owned(),
            value: Some((*value).to_owned()),
        };
        let topic = CreatableTopic {
            name: name.to_owned(),
            num_partitions: partitions,
            replication_factor: replicas,
            configs: configs.iter().map(config).collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
        // A broker that has just come up or is busy may refuse for a moment.
        wait::until(&format!("topic {name} is created"), DEADLINE, async || {
            let answer = self.any().await.ok()?.call(7, request.clone()).await.ok()?;
            let code = answer.topics.first()?.error_code;
            (code.is_ok() || code == ErrorCode::TOPIC_ALREADY_EXISTS).then_some(())
        })
        .await?;
        self.until_partitions(name, partitions).await
    }

    /// Waits until every broker knows this many partitions of the topic, each with a leader.
    pub async fn until_partitions(&self, name: &str, partitions: i32) -> Result<(), Failure> {
        for server in &self.servers {
            let one = Self::new(server);
            if one.any().await.is_err() {
                continue;
            }
            let what = format!("{partitions} partitions of {name} with leaders at {server}");
            wait::until(&what, DEADLINE, async || {
                let answer = one.metadata(&[name]).await.ok()?;
                let topic = answer.topics.first()?;
                let led =
                    topic.partitions.iter().filter(|p| p.error_code.is_ok() && p.leader_id >= 0).count();
                (led == partitions as usize).then_some(())
            })
            .await?;
        }
        Ok(())
    }

    /// Grows a topic to `count` partitions.
    pub async fn create_partitions(&self, name: &str, count: i32) -> Result<(), Failure> {
        let topic = CreatePartitionsTopic { name: name.to_owned(), count, assignments: None };
        let request =
            CreatePartitionsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
        let answer = self.any().await?.call(3, request).await?;
        for topic in answer.results {
            accept(topic.error_code, &format!("grow topic {name}"))?;
        }
        self.until_partitions(name, count).await
    }

    /// Deletes a topic and waits until it is gone.
    pub async fn delete_topic(&self, name: &str) -> Result<(), Failure> {
        let topic = DeleteTopicState { name: Some(name.to_owned()), ..Default::default() };
        let request = DeleteTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
        let answer = self.any().await?.call(6, request).await?;
        for topic in answer.responses {
            accept(topic.error_code, &format!("delete topic {name}"))?;
        }
        wait::until(&format!("topic {name} is gone"), DEADLINE, async || {
            let answer = self.metadata(&[name]).await.ok()?;
            let code = answer.topics.first()?.error_code;
            (code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION).then_some(())
        })
        .await
    }

    /// What `group` has committed: partition to offset, for every topic.
    pub async fn committed(&self, group: &str) -> Result<BTreeMap<(String, i32), i64>, Failure> {
        let what = format!("the committed offsets of {group}");
        wait::until(&what, DEADLINE, async || self.try_committed(group).await).await
    }

    async fn try_committed(&self, group: &str) -> Option<BTreeMap<(String, i32), i64>> {
        let asked =
            OffsetFetchRequestGroup { group_id: group.to_owned(), topics: None, ..Default::default() };
        let request = OffsetFetchRequest { groups: vec![asked], ..Default::default() };
        let mut connection = self.coordinator(group, CLIENT_ID).await.ok()?;
        let answer = connection.call(8, request).await.ok()?;
        let answered = answer.groups.into_iter().next().filter(|g| g.error_code.is_ok())?;
        let rows = answered.topics.into_iter().flat_map(|topic| {
            topic
                .partitions
                .into_iter()
                .filter(|p| p.committed_offset >= 0)
                .map(move |p| ((topic.name.clone(), p.partition_index), p.committed_offset))
        });
        Some(rows.collect())
    }

    /// What `group` has committed for one topic, by partition.
    pub async fn committed_in(&self, group: &str, topic: &str) -> Result<BTreeMap<i32, i64>, Failure> {
        let all = self.committed(group).await?;
        Ok(all.into_iter().filter(|((t, _), _)| t == topic).map(|((_, p), offset)| (p, offset)).collect())
    }

    /// The state of a classic group and its members.
    pub async fn describe_group(&self, group: &str) -> Result<DescribedGroup, Failure> {
        let what = format!("a description of {group}");
        wait::until(&what, DEADLINE, async || {
            let request = DescribeGroupsRequest { groups: vec![group.to_owned()], ..Default::default() };
            let mut connection = self.coordinator(group, CLIENT_ID).await.ok()?;
            let answer = connection.call(5, request).await.ok()?;
            let described = answer.groups.into_iter().next().filter(|g| g.error_code.is_ok())?;
            // A group of the consumer protocol is none to this request.
            if described.group_state == "Dead" {
                let request =
                    ConsumerGroupDescribeRequest { group_ids: vec![group.to_owned()], ..Default::default() };
                let answer = connection.call(0, request).await.ok()?;
                let found = answer.groups.into_iter().next()?;
                return match found.error_code {
                    ErrorCode::NONE => Some(as_classic(found)),
                    ErrorCode::GROUP_ID_NOT_FOUND => Some(described),
                    _ => None,
                };
            }
            Some(described)
        })
        .await
    }

    /// Settings of one group (`GROUP` resources).
    pub async fn set_of_group(&self, group: &str, settings: &[(&str, &str)]) -> Result<(), Failure> {
        let set = |(key, value): &(&str, &str)| AlterableConfig {
            name: (*key).to_owned(),
            config_operation: 0,
            value: Some((*value).to_owned()),
        };
        let request = IncrementalAlterConfigsRequest {
            resources: vec![AlterConfigsResource {
                resource_type: 32,
                resource_name: group.to_owned(),
                configs: settings.iter().map(set).collect(),
            }],
            validate_only: false,
        };
        let answer = self.any().await?.call(1, request).await?;
        answer
            .responses
            .iter()
            .try_for_each(|r| accept(r.error_code, &format!("set {settings:?} of {group}")))
    }

    /// Waits until the group is in `state` with this many members, as the broker tells it.
    pub async fn until_group(
        &self,
        group: &str,
        state: &str,
        members: usize,
    ) -> Result<DescribedGroup, Failure> {
        let what = format!("group {group} is {state} with {members} members");
        wait::until(&what, DEADLINE, async || {
            let described = self.describe_group(group).await.ok()?;
            (described.group_state == state && described.members.len() == members).then_some(described)
        })
        .await
    }

    /// Removes every member of a classic group, as an administrator does.
    pub async fn remove_all_members(&self, group: &str) -> Result<(), Failure> {
        let described = self.describe_group(group).await?;
        let member = |member: DescribedGroupMember| MemberIdentity {
            member_id: member.member_id,
            group_instance_id: member.group_instance_id,
            reason: Some("removed by an administrator".to_owned()),
        };
        let members = described.members.into_iter().map(member).collect();
        let request = LeaveGroupRequest { group_id: group.to_owned(), members, ..Default::default() };
        let answer = self.coordinator(group, CLIENT_ID).await?.call(5, request).await?;
        accept(answer.error_code, &format!("remove the members of {group}"))
    }

    /// The offset after the last record of each partition.
    pub async fn end_offsets(&self, topic: &str) -> Result<BTreeMap<i32, i64>, Failure> {
        let metadata = self.metadata(&[topic]).await?;
        let partitions = metadata.topics.iter().flat_map(|t| &t.partitions);
        let mut ends = BTreeMap::new();
        for partition in partitions.map(|p| p.partition_index) {
            let what = format!("the end offset of {topic}-{partition}");
            let end =
                wait::until(&what, DEADLINE, async || self.try_end_offset(topic, partition).await).await?;
            ends.insert(partition, end);
        }
        Ok(ends)
    }

    async fn try_end_offset(&self, topic: &str, partition: i32) -> Option<i64> {
        let asked =
            ListOffsetsPartition { partition_index: partition, current_leader_epoch: -1, timestamp: -1 };
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic { name: topic.to_owned(), partitions: vec![asked] }],
            ..Default::default()
        };
        let mut leader = self.leader(topic, partition).await.ok()?;
        let answer = leader.call(7, request).await.ok()?;
        let found = answer.topics.into_iter().next()?.partitions.into_iter().next()?;
        found.error_code.is_ok().then_some(found.offset)
    }

    /// Appends `count` small records to a partition, acknowledged by all replicas; the values are their numbers.
    pub async fn produce(&self, topic: &str, partition: i32, count: usize) -> Result<(), Failure> {
        let mut batch = BatchBuilder::new(Compression::None);
        let now = unix_millis();
        for number in 0..count {
            let value = number.to_string();
            batch
                .append(now, None, Some(value.as_bytes()), std::iter::empty())
                .map_err(|e| failure!("cannot build a batch: {e}"))?;
        }
        let records = batch.build(0);
        let what = format!("{count} records are appended to {topic}-{partition}");
        wait::until(&what, DEADLINE, async || {
            let data = PartitionProduceData { index: partition, records: Some(records.clone()) };
            let topic_data =
                TopicProduceData { name: topic.to_owned(), partition_data: vec![data], ..Default::default() };
            let request = ProduceRequest {
                acks: -1,
                timeout_ms: 10_000,
                topic_data: vec![topic_data],
                ..Default::default()
            };
            let answer = self.leader(topic, partition).await.ok()?.call(9, request).await.ok()?;
            let code = answer.responses.first()?.partition_responses.first()?.error_code;
            code.is_ok().then_some(())
        })
        .await
    }

    /// Appends `count` records to each of the first `partitions` partitions.
    pub async fn fill(&self, topic: &str, partitions: i32, count: usize) -> Result<(), Failure> {
        for partition in 0..partitions {
            self.produce(topic, partition, count).await?;
        }
        Ok(())
    }

    /// A connection to the leader of a partition.
    pub async fn leader(&self, topic: &str, partition: i32) -> Result<RawConnection, Failure> {
        let (_, address) = self.leader_of(topic, partition).await?;
        RawConnection::connect(&address, CLIENT_ID).await
    }

    /// The node that leads a partition, and its address.
    pub async fn leader_of(&self, topic: &str, partition: i32) -> Result<(i32, String), Failure> {
        let answer = self.metadata(&[topic]).await?;
        let partitions = answer.topics.iter().flat_map(|t| &t.partitions);
        let led = partitions.into_iter().find(|p| p.partition_index == partition);
        let leader = led.map(|p| p.leader_id).filter(|leader| *leader >= 0);
        let leader = leader.ok_or_else(|| failure!("{topic}-{partition} has no leader"))?;
        let broker = answer.brokers.iter().find(|b| b.node_id == leader);
        let broker =
            broker.ok_or_else(|| failure!("the leader of {topic}-{partition}, {leader}, is away"))?;
        Ok((leader, format!("{}:{}", broker.host, broker.port)))
    }

    /// Waits until every partition of every topic has all its replicas in sync, as every broker tells it.
    pub async fn until_in_sync(&self, deadline: Duration) -> Result<(), Failure> {
        for server in &self.servers {
            let one = Self::new(server);
            wait::until(&format!("all replicas in sync at {server}"), deadline, async || {
                let request = MetadataRequest { topics: None, ..Default::default() };
                let answer = one.any().await.ok()?.call(12, request).await.ok()?;
                let mut partitions = answer.topics.iter().flat_map(|t| &t.partitions);
                partitions.all(|p| p.isr_nodes.len() == p.replica_nodes.len()).then_some(())
            })
            .await?;
        }
        Ok(())
    }

    /// Gives every partition back to its preferred leader. A partition that has it already is no error.
    pub async fn elect_preferred_leaders(&self) -> Result<(), Failure> {
        let request = ElectLeadersRequest { election_type: 0, topic_partitions: None, timeout_ms: 20_000 };
        let answer = self.any().await?.call(2, request).await?;
        accept(answer.error_code, "elect preferred leaders")
    }
}

/// A group of the consumer protocol, in the words for classic ones.
fn as_classic(group: consumer_group_describe::DescribedGroup) -> DescribedGroup {
    let member = |member: consumer_group_describe::Member| DescribedGroupMember {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        client_id: member.client_id,
        ..Default::default()
    };
    DescribedGroup {
        group_id: group.group_id,
        group_state: group.group_state,
        protocol_type: "consumer".to_owned(),
        protocol_data: group.assignor_name,
        members: group.members.into_iter().map(member).collect(),
        ..Default::default()
    }
}

fn accept(code: ErrorCode, what: &str) -> Result<(), Failure> {
    code.into_result().map_err(|code| failure!("cannot {what}: {code}"))
}

/// The time of the records that are produced: now, since a broker deletes old ones.
#[allow(clippy::disallowed_methods, reason = "a producer stamps its records with the real time")]
fn unix_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}
