//! What is refused, and with which code.

use super::member::{Hand, group};
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq};
use tontine_wire::ErrorCode;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "protocol::errors", one: [
        a_session_out_of_range_is_refused_before_an_id_is_given,
        an_empty_group_id_is_refused,
        a_group_that_does_not_exist_knows_no_member,
        a_leave_of_a_stranger_fails_for_the_stranger_only,
        a_join_without_a_protocol_in_common_is_refused,
        a_stranger_is_refused_in_a_living_group,
        heartbeats_of_another_generation_or_instance_are_refused,
    ]);
}

async fn a_session_out_of_range_is_refused_before_an_id_is_given(cluster: Cluster) -> Outcome {
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    for timeout in [Duration::from_millis(10), Duration::from_secs(4000)] {
        a.session_timeout = timeout;
        let answer = a.join_once(9).await?;
        ensure_eq!(answer.error_code, ErrorCode::INVALID_SESSION_TIMEOUT, "a join with session {timeout:?}");
    }
    Ok(())
}

async fn an_empty_group_id_is_refused(cluster: Cluster) -> Outcome {
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    a.group = String::new();
    ensure_eq!(a.join_once(9).await?.error_code, ErrorCode::INVALID_GROUP_ID, "a join");
    ensure_eq!(a.heartbeat().await?, ErrorCode::INVALID_GROUP_ID, "a heartbeat");
    ensure_eq!(a.sync(&[]).await?.error_code, ErrorCode::INVALID_GROUP_ID, "a sync");
    let left = a.leave(5).await?;
    ensure_eq!(left.error_code, ErrorCode::INVALID_GROUP_ID, "a leave");
    ensure_eq!(left.members.len(), 0, "members in the answer to a leave");
    Ok(())
}

async fn a_group_that_does_not_exist_knows_no_member(cluster: Cluster) -> Outcome {
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    a.member_id = "nobody".to_owned();
    a.generation = 1;
    ensure_eq!(a.join_once(9).await?.error_code, ErrorCode::UNKNOWN_MEMBER_ID, "a join with an id");
    ensure_eq!(a.sync(&[]).await?.error_code, ErrorCode::UNKNOWN_MEMBER_ID, "a sync");
    ensure_eq!(a.heartbeat().await?, ErrorCode::UNKNOWN_MEMBER_ID, "a heartbeat");
    Ok(())
}

async fn a_leave_of_a_stranger_fails_for_the_stranger_only(cluster: Cluster) -> Outcome {
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    a.member_id = "nobody".to_owned();
    let left = a.leave(5).await?;
    ensure_eq!(left.error_code, ErrorCode::NONE, "the answer as a whole");
    ensure_eq!(left.members[0].error_code, ErrorCode::UNKNOWN_MEMBER_ID, "the stranger's part");
    ensure_eq!(a.leave(2).await?.error_code, ErrorCode::UNKNOWN_MEMBER_ID, "the answer of version 2");
    Ok(())
}

async fn a_join_without_a_protocol_in_common_is_refused(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    let mut b = Hand::new(&cluster, &group).await?;
    b.protocol = "roundrobin".to_owned();
    let refused = b.join_once(9).await?;
    ensure_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "another assignor, before any id");
    let mut other_type = b.join_request();
    other_type.protocol_type = "connect".to_owned();
    let refused = b.parked.call(9, other_type).await?;
    ensure_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "another protocol type");
    let mut none = b.join_request();
    none.protocols.clear();
    let refused = b.parked.call(9, none).await?;
    ensure_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "no assignor at all");
    ensure_eq!(a.heartbeat().await?, ErrorCode::NONE, "the group is not disturbed");
    Ok(())
}

async fn a_stranger_is_refused_in_a_living_group(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    let mut b = Hand::new(&cluster, &group).await?;
    b.member_id = "nobody".to_owned();
    b.generation = a.generation;
    ensure_eq!(b.join_once(9).await?.error_code, ErrorCode::UNKNOWN_MEMBER_ID, "a join with a foreign id");
    ensure_eq!(b.sync(&[]).await?.error_code, ErrorCode::UNKNOWN_MEMBER_ID, "a sync");
    ensure_eq!(b.heartbeat().await?, ErrorCode::UNKNOWN_MEMBER_ID, "a heartbeat");
    Ok(())
}

async fn heartbeats_of_another_generation_or_instance_are_refused(cluster: Cluster) -> Outcome {
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    a.join_and_sync_alone().await?;
    for generation in [a.generation - 1, a.generation + 1] {
        let answer = a.heartbeat_answer(generation).await?;
        ensure_eq!(answer.error_code, ErrorCode::ILLEGAL_GENERATION, "generation {generation}");
    }
    a.instance_id = Some("somebody".to_owned());
    ensure_eq!(
        a.heartbeat().await?,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "an instance that the group does not know"
    );
    let left = a.leave(5).await?;
    ensure_eq!(left.members[0].error_code, ErrorCode::UNKNOWN_MEMBER_ID, "its leave");
    a.instance_id = None;
    ensure!(a.heartbeat().await?.is_ok(), "the member itself is still there");
    Ok(())
}
