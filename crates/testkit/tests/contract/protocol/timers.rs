//! What ends by itself: sessions, ids that nobody uses, members that do not come.

use super::member::{Hand, group};
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure_eq, wait};
use tontine_wire::ErrorCode;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "protocol::timers", one: [
        a_member_that_is_silent_for_its_session_is_removed,
        a_member_that_joined_and_never_syncs_is_removed_although_it_sends_heartbeats,
        a_parked_join_outlives_the_session,
        a_member_that_does_not_come_to_a_rebalance_is_left_behind,
        an_id_that_nobody_uses_is_forgotten,
    ]);
}

const SHORT: Duration = Duration::from_millis(800);

async fn a_member_that_is_silent_for_its_session_is_removed(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.session_timeout = SHORT;
    a.join_and_sync_alone().await?;
    cluster.plain().until_group(&group, "Empty", 0).await?;
    ensure_eq!(a.heartbeat().await?, ErrorCode::UNKNOWN_MEMBER_ID, "a heartbeat after the session");
    Ok(())
}

async fn a_member_that_joined_and_never_syncs_is_removed_although_it_sends_heartbeats(
    cluster: Cluster,
) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.rebalance_timeout = SHORT;
    a.join().await?;
    a.until_heartbeat(ErrorCode::UNKNOWN_MEMBER_ID).await?;
    cluster.plain().until_group(&group, "Empty", 0).await?;
    Ok(())
}

async fn a_parked_join_outlives_the_session(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    let mut b = Hand::new(&cluster, &group).await?;
    b.session_timeout = SHORT;
    b.ask_for_id().await?;
    let parked = b.send_join().await?;
    a.until_heartbeat(ErrorCode::REBALANCE_IN_PROGRESS).await?;
    wait::while_nothing_happens(SHORT * 2).await;
    a.join().await?;
    ensure_eq!(
        b.receive_join(parked).await?.error_code,
        ErrorCode::NONE,
        "a join that was parked for two sessions"
    );
    Ok(())
}

async fn a_member_that_does_not_come_to_a_rebalance_is_left_behind(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.rebalance_timeout = SHORT;
    a.join_and_sync_alone().await?;
    let mut b = Hand::new(&cluster, &group).await?;
    b.rebalance_timeout = SHORT;
    b.ask_for_id().await?;
    let joined = b.join().await?;
    ensure_eq!(joined.generation_id, 2, "the generation without a");
    ensure_eq!(joined.leader, b.member_id, "its leader");
    ensure_eq!(a.heartbeat().await?, ErrorCode::UNKNOWN_MEMBER_ID, "a heartbeat of the one left behind");
    Ok(())
}

async fn an_id_that_nobody_uses_is_forgotten(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.session_timeout = SHORT;
    a.ask_for_id().await?;
    wait::while_nothing_happens(SHORT * 2).await;
    ensure_eq!(
        a.join_once(9).await?.error_code,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "a join with the forgotten id"
    );
    Ok(())
}
