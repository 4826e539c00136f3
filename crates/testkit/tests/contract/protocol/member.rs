//! A member by hand: each request on its own, with the answer as it came.

use bytes::Bytes;
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::raw::{Pending, RawConnection};
use tontine_testkit::{Failure, failure, wait};
use tontine_wire::ErrorCode;
use tontine_wire::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use tontine_wire::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use tontine_wire::api::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity};
use tontine_wire::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use tontine_wire::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};
use tontine_wire::consumer_protocol::{PROTOCOL_TYPE, Subscription};

/// A member with a connection for joins and syncs, which may be parked, and one for everything else.
pub struct Hand {
    pub group: String,
    pub member_id: String,
    pub instance_id: Option<String>,
    pub generation: i32,
    pub protocol: String,
    pub session_timeout: Duration,
    pub rebalance_timeout: Duration,
    pub topics: Vec<String>,
    pub parked: RawConnection,
    pub direct: RawConnection,
}

impl Hand {
    /// A hand that has not joined yet.
    pub async fn new(cluster: &Cluster, group: &str) -> Result<Self, Failure> {
        cluster.until_coordinated(group).await?;
        Ok(Self {
            group: group.to_owned(),
            member_id: String::new(),
            instance_id: None,
            generation: -1,
            protocol: "range".to_owned(),
            session_timeout: Duration::from_secs(30),
            rebalance_timeout: Duration::from_secs(30),
            topics: vec!["t".to_owned()],
            parked: cluster.coordinator(group).await?,
            direct: cluster.coordinator(group).await?,
        })
    }

    pub fn join_request(&self) -> JoinGroupRequest {
        let subscription = Subscription { topics: self.topics.clone(), ..Default::default() };
        JoinGroupRequest {
            group_id: self.group.clone(),
            session_timeout_ms: self.session_timeout.as_millis() as i32,
            rebalance_timeout_ms: self.rebalance_timeout.as_millis() as i32,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: vec![JoinGroupRequestProtocol {
                name: self.protocol.clone(),
                metadata: subscription.to_metadata(1),
            }],
            reason: None,
        }
    }

    /// One JoinGroup, whatever it is answered.
    pub async fn join_once(&mut self, version: i16) -> Result<JoinGroupResponse, Failure> {
        let request = self.join_request();
        let answer = self.parked.call(version, request).await?;
        Ok(self.joined(answer))
    }

    /// Asks for a member id and leaves it at that.
    pub async fn ask_for_id(&mut self) -> Result<(), Failure> {
        let answer = self.join_once(9).await?;
        if answer.error_code != ErrorCode::MEMBER_ID_REQUIRED {
            return Err(failure!("a first join was answered {}", answer.error_code));
        }
        Ok(())
    }

    /// Joins with the two steps of a dynamic member and expects to get in.
    pub async fn join(&mut self) -> Result<JoinGroupResponse, Failure> {
        if self.member_id.is_empty() && self.instance_id.is_none() {
            self.ask_for_id().await?;
        }
        let answer = self.join_once(9).await?;
        answer.error_code.into_result().map_err(|code| failure!("a join was answered {code}"))?;
        Ok(answer)
    }

    /// Sends a join that is expected to be parked.
    pub async fn send_join(&mut self) -> Result<Pending<JoinGroupRequest>, Failure> {
        let request = self.join_request();
        self.parked.send(9, request).await
    }

    pub async fn receive_join(
        &mut self,
        sent: Pending<JoinGroupRequest>,
    ) -> Result<JoinGroupResponse, Failure> {
        let answer = self.parked.receive(sent).await?;
        Ok(self.joined(answer))
    }

    fn joined(&mut self, answer: JoinGroupResponse) -> JoinGroupResponse {
        if answer.error_code.is_ok() {
            self.generation = answer.generation_id;
        }
        if answer.error_code.is_ok() || answer.error_code == ErrorCode::MEMBER_ID_REQUIRED {
            self.member_id.clone_from(&answer.member_id);
        }
        answer
    }

    pub fn sync_request(&self, assignments: &[(&str, &str)]) -> SyncGroupRequest {
        let assignment = |(member, bytes): &(&str, &str)| SyncGroupRequestAssignment {
            member_id: (*member).to_owned(),
            assignment: Bytes::from((*bytes).to_owned()),
        };
        SyncGroupRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(self.protocol.clone()),
            assignments: assignments.iter().map(assignment).collect(),
        }
    }

    /// SyncGroup; `assignments` are empty for a follower.
    pub async fn sync(&mut self, assignments: &[(&str, &str)]) -> Result<SyncGroupResponse, Failure> {
        let request = self.sync_request(assignments);
        self.parked.call(5, request).await
    }

    /// Joins alone and becomes stable, with the assignment `mine`.
    pub async fn join_and_sync_alone(&mut self) -> Result<(), Failure> {
        self.join().await?;
        let own = self.member_id.clone();
        let answer = self.sync(&[(&own, "mine")]).await?;
        answer.error_code.into_result().map_err(|code| failure!("a sync was answered {code}"))
    }

    pub async fn heartbeat_answer(&mut self, generation: i32) -> Result<HeartbeatResponse, Failure> {
        let request = HeartbeatRequest {
            group_id: self.group.clone(),
            generation_id: generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
        };
        self.direct.call(4, request).await
    }

    /// A heartbeat with the generation of the last join.
    pub async fn heartbeat(&mut self) -> Result<ErrorCode, Failure> {
        let generation = self.generation;
        Ok(self.heartbeat_answer(generation).await?.error_code)
    }

    /// Sends heartbeats until one is answered with `code`.
    pub async fn until_heartbeat(&mut self, code: ErrorCode) -> Result<(), Failure> {
        let hand = tokio::sync::Mutex::new(self);
        wait::until(&format!("a heartbeat is answered {code}"), Duration::from_secs(40), async || {
            let got = hand.lock().await.heartbeat().await.ok()?;
            (got == code).then_some(())
        })
        .await
    }

    pub async fn leave(&mut self, version: i16) -> Result<LeaveGroupResponse, Failure> {
        let member = MemberIdentity {
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            ..Default::default()
        };
        let request = LeaveGroupRequest {
            group_id: self.group.clone(),
            member_id: self.member_id.clone(),
            members: vec![member],
        };
        self.direct.call(version, request).await
    }

    pub fn commit_request(&self, topic: &str, offset: i64, metadata: &str) -> OffsetCommitRequest {
        let partition = OffsetCommitRequestPartition {
            partition_index: 0,
            committed_offset: offset,
            committed_metadata: Some(metadata.to_owned()),
            ..Default::default()
        };
        OffsetCommitRequest {
            group_id: self.group.clone(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            topics: vec![OffsetCommitRequestTopic {
                name: topic.to_owned(),
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    /// Commits `offset` of partition 0 of `topic`; the partition's code.
    pub async fn commit(&mut self, topic: &str, offset: i64) -> Result<ErrorCode, Failure> {
        let request = self.commit_request(topic, offset, "");
        self.commit_as(request, 9).await
    }

    pub async fn commit_as(
        &mut self,
        request: OffsetCommitRequest,
        version: i16,
    ) -> Result<ErrorCode, Failure> {
        let answer = self.direct.call(version, request).await?;
        let partitions = answer.topics.into_iter().flat_map(|t| t.partitions);
        let first = partitions.into_iter().next().ok_or_else(|| failure!("the commit's answer is empty"))?;
        Ok(first.error_code)
    }
}

/// A group of its own.
pub fn group(cluster: &Cluster) -> String {
    cluster.unique("group")
}
