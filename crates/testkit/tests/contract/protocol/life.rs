//! The life of one member.

use super::member::{Hand, group};
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq};
use tontine_wire::ErrorCode;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "protocol::life", one: [
        a_first_join_is_given_an_id_and_must_come_again_with_it,
        an_old_join_is_accepted_at_once,
        a_group_whose_leader_has_not_synced_answers_heartbeats_and_refuses_commits,
        a_stable_group_answers_a_repeated_sync_with_the_current_assignment,
        a_leader_that_joins_again_starts_a_rebalance,
        a_member_that_leaves_empties_the_group_and_its_offsets_stay,
    ]);
}

async fn a_first_join_is_given_an_id_and_must_come_again_with_it(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    let refused = a.join_once(9).await?;
    ensure_eq!(refused.error_code, ErrorCode::MEMBER_ID_REQUIRED, "the first join");
    ensure!(
        refused.member_id.starts_with("raw-"),
        "the id {} begins with the client's id",
        refused.member_id
    );
    ensure_eq!(refused.generation_id, -1, "generation of a refused join");
    ensure_eq!(refused.protocol_name, None, "protocol of a refused join");

    // Nothing was written for it, so Apache Kafka shows the group once writes of other groups are through.
    let described = cluster.plain().until_group(&group, "Empty", 0).await?;
    ensure_eq!(described.protocol_type, "", "the protocol type while an id is out");

    let joined = a.join_once(9).await?;
    ensure_eq!(joined.error_code, ErrorCode::NONE, "the second join");
    ensure_eq!(joined.generation_id, 1, "the first generation");
    ensure_eq!(joined.leader, joined.member_id, "a lone member leads");
    ensure_eq!(joined.protocol_type.as_deref(), Some("consumer"), "the protocol type");
    ensure_eq!(joined.protocol_name.as_deref(), Some("range"), "the protocol");
    ensure_eq!(joined.members.len(), 1, "the members that the leader is told");
    ensure!(!joined.skip_assignment, "a new generation needs an assignment");
    Ok(())
}

async fn an_old_join_is_accepted_at_once(cluster: Cluster) -> Outcome {
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    let joined = a.join_once(3).await?;
    ensure_eq!(joined.error_code, ErrorCode::NONE, "a join of version 3 without an id");
    ensure!(!joined.member_id.is_empty(), "a member id is given");
    Ok(())
}

async fn a_group_whose_leader_has_not_synced_answers_heartbeats_and_refuses_commits(
    cluster: Cluster,
) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join().await?;
    let described = cluster.plain().until_group(&group, "CompletingRebalance", 1).await?;
    ensure_eq!(described.protocol_data, "", "the protocol is told when the group is stable");
    ensure!(described.members.iter().all(|m| m.member_metadata.is_empty()), "so is the members' metadata");
    ensure_eq!(a.heartbeat().await?, ErrorCode::NONE, "a heartbeat before the sync");
    ensure_eq!(a.commit(&topic, 1).await?, ErrorCode::REBALANCE_IN_PROGRESS, "a commit before the sync");
    a.generation += 1;
    ensure_eq!(a.commit(&topic, 1).await?, ErrorCode::ILLEGAL_GENERATION, "a commit with another generation");
    Ok(())
}

async fn a_stable_group_answers_a_repeated_sync_with_the_current_assignment(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    ensure_eq!(
        cluster.plain().describe_group(&group).await?.group_state,
        "Stable",
        "the state after the sync"
    );
    let again = a.sync(&[]).await?;
    ensure_eq!(again.error_code, ErrorCode::NONE, "a second sync");
    ensure_eq!(again.assignment.as_ref(), b"mine".as_slice(), "the assignment of a second sync");
    Ok(())
}

async fn a_leader_that_joins_again_starts_a_rebalance(cluster: Cluster) -> Outcome {
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    a.join_and_sync_alone().await?;
    let again = a.join().await?;
    ensure_eq!(again.generation_id, 2, "the generation after the leader joined again");
    Ok(())
}

async fn a_member_that_leaves_empties_the_group_and_its_offsets_stay(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    ensure_eq!(a.commit(&topic, 7).await?, ErrorCode::NONE, "a commit of a stable member");
    let left = a.leave(5).await?;
    ensure_eq!(left.error_code, ErrorCode::NONE, "the answer to a leave");
    ensure_eq!(left.members[0].error_code, ErrorCode::NONE, "the member's part of the answer");
    ensure_eq!(
        cluster.plain().describe_group(&group).await?.group_state,
        "Empty",
        "the state after the leave"
    );
    ensure_eq!(a.heartbeat().await?, ErrorCode::UNKNOWN_MEMBER_ID, "a heartbeat after the leave");
    ensure_eq!(
        cluster.plain().committed_in(&group, &topic).await?.get(&0),
        Some(&7),
        "the offset after the leave"
    );
    Ok(())
}
