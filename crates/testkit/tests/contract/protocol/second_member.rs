//! A second member, and what everybody is answered meanwhile.

use super::member::{Hand, group};
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies, ensure, ensure_eq};
use tontine_wire::ErrorCode;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "protocol::second_member", one: [
        asking_for_an_id_disturbs_nobody,
        a_join_is_parked_until_the_others_have_come_and_commits_of_the_old_generation_are_good_meanwhile,
        the_old_leader_leads_on_and_only_it_is_told_the_members,
        followers_wait_for_the_leaders_sync_and_old_generations_are_refused,
        a_follower_that_joins_again_unchanged_starts_nothing,
        a_leader_that_leaves_hands_over,
    ]);
}

/// A stable, and B in the middle of its join, with what was sent for it.
async fn pair(cluster: &Cluster) -> Result<(Hand, Hand), Failure> {
    let group = group(cluster);
    let mut a = Hand::new(cluster, &group).await?;
    a.join_and_sync_alone().await?;
    let mut b = Hand::new(cluster, &group).await?;
    b.ask_for_id().await?;
    Ok((a, b))
}

/// A and B stable in one generation, A leading.
async fn stable_pair(cluster: &Cluster) -> Result<(Hand, Hand), Failure> {
    let (mut a, mut b) = pair(cluster).await?;
    let parked = b.send_join().await?;
    a.until_heartbeat(ErrorCode::REBALANCE_IN_PROGRESS).await?;
    a.join().await?;
    b.receive_join(parked).await?;
    let ids = (a.member_id.clone(), b.member_id.clone());
    a.sync(&[(&ids.0, "a's"), (&ids.1, "b's")]).await?;
    b.sync(&[]).await?;
    Ok((a, b))
}

async fn asking_for_an_id_disturbs_nobody(cluster: Cluster) -> Outcome {
    let (mut a, _b) = pair(&cluster).await?;
    ensure_eq!(a.heartbeat().await?, ErrorCode::NONE, "a heartbeat while an id is out");
    Ok(())
}

async fn a_join_is_parked_until_the_others_have_come_and_commits_of_the_old_generation_are_good_meanwhile(
    cluster: Cluster,
) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let (mut a, mut b) = pair(&cluster).await?;
    let parked = b.send_join().await?;
    a.until_heartbeat(ErrorCode::REBALANCE_IN_PROGRESS).await?;
    ensure!(!b.parked.is_answered_within(Duration::from_millis(100)).await?, "b's join is parked");

    let described = cluster.plain().until_group(&a.group, "PreparingRebalance", 2).await?;
    ensure_eq!(described.members.len(), 2, "the members while joining");
    b.generation = a.generation;
    ensure_eq!(b.heartbeat().await?, ErrorCode::REBALANCE_IN_PROGRESS, "a heartbeat of the newcomer");
    let wrong = a.heartbeat_answer(a.generation + 5).await?;
    ensure_eq!(wrong.error_code, ErrorCode::ILLEGAL_GENERATION, "a heartbeat of another generation");
    ensure_eq!(a.commit(&topic, 3).await?, ErrorCode::NONE, "a commit of a member that still has to join");
    ensure_eq!(b.commit(&topic, 4).await?, ErrorCode::NONE, "a commit of a member that has just joined");
    let sync = a.sync(&[]).await?;
    ensure_eq!(sync.error_code, ErrorCode::REBALANCE_IN_PROGRESS, "a sync while joining");

    a.join().await?;
    let joined = b.receive_join(parked).await?;
    ensure_eq!(joined.generation_id, a.generation, "both are in one generation");
    Ok(())
}

async fn the_old_leader_leads_on_and_only_it_is_told_the_members(cluster: Cluster) -> Outcome {
    let (mut a, mut b) = pair(&cluster).await?;
    let parked = b.send_join().await?;
    a.until_heartbeat(ErrorCode::REBALANCE_IN_PROGRESS).await?;
    let leaders = a.join().await?;
    let followers = b.receive_join(parked).await?;
    ensure_eq!(leaders.generation_id, 2, "the second generation");
    ensure_eq!(leaders.leader, a.member_id, "the leader as it is told itself");
    ensure_eq!(followers.leader, a.member_id, "the leader as the follower is told");
    ensure_eq!(leaders.members.len(), 2, "the members that the leader is told");
    ensure_eq!(followers.members.len(), 0, "the members that a follower is told");
    Ok(())
}

async fn followers_wait_for_the_leaders_sync_and_old_generations_are_refused(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let (mut a, mut b) = pair(&cluster).await?;
    let parked = b.send_join().await?;
    a.until_heartbeat(ErrorCode::REBALANCE_IN_PROGRESS).await?;
    a.join().await?;
    b.receive_join(parked).await?;

    let request = b.sync_request(&[]);
    let waiting = b.parked.send(5, request).await?;
    ensure!(!b.parked.is_answered_within(Duration::from_millis(100)).await?, "a follower's sync is parked");
    ensure_eq!(b.heartbeat().await?, ErrorCode::NONE, "a heartbeat while the leader thinks");
    ensure_eq!(
        b.commit(&topic, 1).await?,
        ErrorCode::REBALANCE_IN_PROGRESS,
        "a commit of the new generation"
    );
    b.generation -= 1;
    ensure_eq!(b.commit(&topic, 1).await?, ErrorCode::ILLEGAL_GENERATION, "a commit of the old generation");
    b.generation += 1;

    let ids = (a.member_id.clone(), b.member_id.clone());
    let own = a.sync(&[(&ids.0, "a's"), (&ids.1, "b's")]).await?;
    ensure_eq!(own.assignment.as_ref(), b"a's".as_slice(), "the leader's own assignment");
    let others = b.parked.receive(waiting).await?;
    ensure_eq!(others.assignment.as_ref(), b"b's".as_slice(), "the follower's assignment");

    b.generation -= 1;
    ensure_eq!(b.sync(&[]).await?.error_code, ErrorCode::ILLEGAL_GENERATION, "a sync of the old generation");
    b.generation += 1;
    let mut other = b.sync_request(&[]);
    other.protocol_name = Some("roundrobin".to_owned());
    let answer = b.parked.call(5, other).await?;
    ensure_eq!(
        answer.error_code,
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        "a sync that names another assignor"
    );
    let old = b.sync_request(&[]);
    let answer = b.parked.call(4, old).await?;
    ensure_eq!(answer.error_code, ErrorCode::NONE, "a sync of version 4, which names none");
    Ok(())
}

async fn a_follower_that_joins_again_unchanged_starts_nothing(cluster: Cluster) -> Outcome {
    let (mut a, mut b) = stable_pair(&cluster).await?;
    let again = b.join().await?;
    ensure_eq!(again.generation_id, a.generation, "the generation of a follower that joins again");
    ensure_eq!(again.leader, a.member_id, "the leader it is told");
    ensure_eq!(again.members.len(), 0, "the members it is told");
    ensure_eq!(a.heartbeat().await?, ErrorCode::NONE, "the leader's heartbeat afterwards");
    Ok(())
}

async fn a_leader_that_leaves_hands_over(cluster: Cluster) -> Outcome {
    let (mut a, mut b) = stable_pair(&cluster).await?;
    a.leave(5).await?;
    ensure_eq!(b.heartbeat().await?, ErrorCode::REBALANCE_IN_PROGRESS, "the follower's heartbeat");
    let joined = b.join().await?;
    ensure_eq!(joined.generation_id, 3, "the next generation");
    ensure_eq!(joined.leader, b.member_id, "the new leader");
    Ok(())
}
