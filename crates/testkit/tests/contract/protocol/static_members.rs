//! Members with `group.instance.id`: they come back without a rebalance, and their twins are fenced.

use super::member::{Hand, group};
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies, ensure, ensure_eq};
use tontine_wire::ErrorCode;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "protocol::static_members", one: [
        a_static_member_is_accepted_at_once,
        a_static_leader_that_comes_back_keeps_the_generation_and_skips_the_assignment,
        an_old_static_leader_is_told_the_previous_leader,
        the_id_from_before_the_restart_is_fenced,
        an_admin_can_remove_a_static_member_by_its_instance_id,
    ]);
}

async fn static_hand(cluster: &Cluster, group: &str, instance: &str) -> Result<Hand, Failure> {
    let mut hand = Hand::new(cluster, group).await?;
    hand.instance_id = Some(instance.to_owned());
    Ok(hand)
}

async fn a_static_member_is_accepted_at_once(cluster: Cluster) -> Outcome {
    let mut a = static_hand(&cluster, &group(&cluster), "i1").await?;
    let joined = a.join_once(9).await?;
    ensure_eq!(joined.error_code, ErrorCode::NONE, "a static member's first join");
    ensure!(joined.member_id.starts_with("i1-"), "the id {} begins with the instance id", joined.member_id);
    Ok(())
}

async fn a_static_leader_that_comes_back_keeps_the_generation_and_skips_the_assignment(
    cluster: Cluster,
) -> Outcome {
    let group = group(&cluster);
    let mut a = static_hand(&cluster, &group, "i1").await?;
    a.join_and_sync_alone().await?;
    let mut back = static_hand(&cluster, &group, "i1").await?;
    let joined = back.join_once(9).await?;
    ensure_eq!(joined.error_code, ErrorCode::NONE, "the join after a restart");
    ensure_eq!(joined.generation_id, a.generation, "its generation");
    ensure!(joined.member_id != a.member_id, "a restarted member has a new id");
    ensure_eq!(joined.leader, joined.member_id, "its leader");
    ensure!(joined.skip_assignment, "the leader is told to skip the assignment");
    ensure_eq!(joined.members.len(), 1, "the leader is told the members all the same");
    let kept = back.sync(&[]).await?;
    ensure_eq!(kept.assignment.as_ref(), b"mine".as_slice(), "the kept assignment");
    Ok(())
}

async fn an_old_static_leader_is_told_the_previous_leader(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = static_hand(&cluster, &group, "i1").await?;
    a.join_and_sync_alone().await?;
    let mut back = static_hand(&cluster, &group, "i1").await?;
    let joined = back.join_once(8).await?;
    ensure_eq!(joined.generation_id, a.generation, "the generation");
    ensure_eq!(joined.leader, a.member_id, "the leader, by its previous id");
    ensure_eq!(joined.members.len(), 0, "the members");
    Ok(())
}

async fn the_id_from_before_the_restart_is_fenced(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let mut old = static_hand(&cluster, &group, "i1").await?;
    old.join_and_sync_alone().await?;
    static_hand(&cluster, &group, "i1").await?.join_once(9).await?;
    ensure_eq!(old.heartbeat().await?, ErrorCode::FENCED_INSTANCE_ID, "a heartbeat");
    ensure_eq!(old.commit(&topic, 1).await?, ErrorCode::FENCED_INSTANCE_ID, "a commit");
    ensure_eq!(old.sync(&[]).await?.error_code, ErrorCode::FENCED_INSTANCE_ID, "a sync");
    ensure_eq!(old.join_once(9).await?.error_code, ErrorCode::FENCED_INSTANCE_ID, "a join");
    ensure_eq!(old.leave(5).await?.members[0].error_code, ErrorCode::FENCED_INSTANCE_ID, "a leave");
    old.instance_id = None;
    ensure_eq!(old.heartbeat().await?, ErrorCode::UNKNOWN_MEMBER_ID, "a heartbeat that hides the instance");
    Ok(())
}

async fn an_admin_can_remove_a_static_member_by_its_instance_id(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = static_hand(&cluster, &group, "i1").await?;
    a.join_and_sync_alone().await?;
    let mut admin = static_hand(&cluster, &group, "i1").await?;
    ensure_eq!(admin.leave(5).await?.members[0].error_code, ErrorCode::NONE, "the removal");
    ensure_eq!(a.heartbeat().await?, ErrorCode::UNKNOWN_MEMBER_ID, "the removed member's heartbeat");
    Ok(())
}
