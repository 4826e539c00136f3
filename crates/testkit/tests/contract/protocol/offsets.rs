//! Committed offsets: who may commit, what is kept, how groups are described, listed and deleted.

use super::member::{Hand, group};
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq, failure};
use tontine_wire::ErrorCode;
use tontine_wire::api::delete_groups::DeleteGroupsRequest;
use tontine_wire::api::list_groups::ListGroupsRequest;
use tontine_wire::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use tontine_wire::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "protocol::offsets", one: [
        a_group_without_offsets_answers_minus_one,
        a_commit_without_a_group_creates_it_and_one_with_a_generation_does_not,
        a_living_group_accepts_commits_of_its_members_only,
        an_empty_group_accepts_commits_without_a_generation,
        a_topic_that_does_not_exist_and_metadata_too_long_are_refused,
        metadata_comes_back_as_it_was_committed,
        offsets_of_a_subscribed_topic_cannot_be_deleted,
        a_living_group_cannot_be_deleted_and_an_empty_one_can,
        groups_are_listed_with_their_type_and_state,
    ]);
}

async fn a_group_without_offsets_answers_minus_one(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    let topics = vec![OffsetFetchRequestTopics {
        name: "none".to_owned(),
        partition_indexes: vec![0],
        ..Default::default()
    }];
    let asked = OffsetFetchRequestGroup { group_id: group, topics: Some(topics), ..Default::default() };
    let answer = a.direct.call(8, OffsetFetchRequest { groups: vec![asked], ..Default::default() }).await?;
    let partition = &answer.groups[0].topics[0].partitions[0];
    ensure_eq!(partition.error_code, ErrorCode::NONE, "the partition's code");
    ensure_eq!(partition.committed_offset, -1, "the offset");
    ensure_eq!(partition.committed_leader_epoch, -1, "the leader epoch");
    ensure_eq!(partition.metadata.as_deref(), Some(""), "the metadata");
    Ok(())
}

async fn a_commit_without_a_group_creates_it_and_one_with_a_generation_does_not(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.generation = 3;
    let request = a.commit_request(&topic, 5, "");
    ensure_eq!(
        a.commit_as(request.clone(), 9).await?,
        ErrorCode::GROUP_ID_NOT_FOUND,
        "version 9 with a generation"
    );
    ensure_eq!(a.commit_as(request, 8).await?, ErrorCode::ILLEGAL_GENERATION, "version 8 with a generation");
    a.generation = -1;
    ensure_eq!(a.commit(&topic, 5).await?, ErrorCode::NONE, "a commit without a generation");
    let described = cluster.plain().describe_group(&group).await?;
    ensure_eq!(described.group_state, "Empty", "the group it made");
    ensure_eq!(cluster.plain().committed_in(&group, &topic).await?.get(&0), Some(&5), "the offset");
    Ok(())
}

async fn a_living_group_accepts_commits_of_its_members_only(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    ensure_eq!(a.commit(&topic, 1).await?, ErrorCode::NONE, "its member; the topic is not even subscribed");
    let good = a.commit_request(&topic, 2, "");
    for (generation, member, code, what) in [
        (-1, String::new(), ErrorCode::UNKNOWN_MEMBER_ID, "no member"),
        (-1, a.member_id.clone(), ErrorCode::ILLEGAL_GENERATION, "no generation"),
        (a.generation + 1, a.member_id.clone(), ErrorCode::ILLEGAL_GENERATION, "a later generation"),
        (a.generation, "nobody".to_owned(), ErrorCode::UNKNOWN_MEMBER_ID, "a stranger"),
    ] {
        let mut request = good.clone();
        request.generation_id_or_member_epoch = generation;
        request.member_id = member;
        ensure_eq!(a.commit_as(request, 9).await?, code, "{what}");
    }
    ensure_eq!(cluster.plain().committed_in(&group, &topic).await?.get(&0), Some(&1), "the offset");
    Ok(())
}

async fn an_empty_group_accepts_commits_without_a_generation(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    a.join_and_sync_alone().await?;
    a.leave(5).await?;
    ensure_eq!(a.commit(&topic, 1).await?, ErrorCode::UNKNOWN_MEMBER_ID, "the member that left");
    a.generation = -1;
    ensure_eq!(a.commit(&topic, 1).await?, ErrorCode::NONE, "without a generation, whatever the id");
    Ok(())
}

async fn a_topic_that_does_not_exist_and_metadata_too_long_are_refused(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let mut a = Hand::new(&cluster, &group(&cluster)).await?;
    a.join_and_sync_alone().await?;
    ensure_eq!(a.commit("no-such-topic", 1).await?, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "no such topic");
    let long = a.commit_request(&topic, 1, &"x".repeat(4097));
    ensure_eq!(a.commit_as(long, 9).await?, ErrorCode::OFFSET_METADATA_TOO_LARGE, "4097 bytes");
    let fits = a.commit_request(&topic, 1, &"x".repeat(4096));
    ensure_eq!(a.commit_as(fits, 9).await?, ErrorCode::NONE, "4096 bytes");
    Ok(())
}

async fn metadata_comes_back_as_it_was_committed(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    let request = a.commit_request(&topic, 9, "halfway");
    ensure_eq!(a.commit_as(request, 9).await?, ErrorCode::NONE, "the commit");
    let asked = OffsetFetchRequestGroup { group_id: group, topics: None, ..Default::default() };
    let answer = a.direct.call(8, OffsetFetchRequest { groups: vec![asked], ..Default::default() }).await?;
    let partition = &answer.groups[0].topics[0].partitions[0];
    ensure_eq!(partition.committed_offset, 9, "the offset");
    ensure_eq!(partition.metadata.as_deref(), Some("halfway"), "the metadata");
    Ok(())
}

async fn offsets_of_a_subscribed_topic_cannot_be_deleted(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    let delete = OffsetDeleteRequest {
        group_id: group,
        topics: vec![OffsetDeleteRequestTopic {
            name: topic.clone(),
            partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
        }],
    };
    let none = a.direct.call(0, delete.clone()).await?;
    ensure_eq!(none.error_code, ErrorCode::GROUP_ID_NOT_FOUND, "without a group");
    a.topics = vec![topic.clone()];
    a.join_and_sync_alone().await?;
    a.commit(&topic, 1).await?;
    let alive = a.direct.call(0, delete.clone()).await?;
    ensure_eq!(
        alive.topics[0].partitions[0].error_code,
        ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC,
        "while subscribed"
    );
    a.leave(5).await?;
    let empty = a.direct.call(0, delete).await?;
    ensure_eq!(empty.topics[0].partitions[0].error_code, ErrorCode::NONE, "when the group is empty");
    Ok(())
}

async fn a_living_group_cannot_be_deleted_and_an_empty_one_can(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    let delete = DeleteGroupsRequest { groups_names: vec![group] };
    let none = a.direct.call(2, delete.clone()).await?;
    ensure_eq!(none.results[0].error_code, ErrorCode::GROUP_ID_NOT_FOUND, "without a group");
    a.join_and_sync_alone().await?;
    let alive = a.direct.call(2, delete.clone()).await?;
    ensure_eq!(alive.results[0].error_code, ErrorCode::NON_EMPTY_GROUP, "while a member is there");
    a.leave(5).await?;
    let empty = a.direct.call(2, delete).await?;
    ensure_eq!(empty.results[0].error_code, ErrorCode::NONE, "when the group is empty");
    Ok(())
}

async fn groups_are_listed_with_their_type_and_state(cluster: Cluster) -> Outcome {
    let group = group(&cluster);
    let mut a = Hand::new(&cluster, &group).await?;
    a.join_and_sync_alone().await?;
    for (states, types, listed) in [
        (vec![], vec![], true),
        (vec!["stable".to_owned()], vec!["CLASSIC".to_owned()], true),
        (vec!["Empty".to_owned()], vec![], false),
        (vec![], vec!["nonsense".to_owned()], false),
    ] {
        let request = ListGroupsRequest { states_filter: states.clone(), types_filter: types.clone() };
        let answer = a.direct.call(5, request).await?;
        ensure_eq!(answer.error_code, ErrorCode::NONE, "the answer for {states:?} {types:?}");
        let found = answer.groups.iter().find(|g| g.group_id == group);
        ensure_eq!(found.is_some(), listed, "listed for {states:?} {types:?}");
        if let Some(found) = found {
            ensure_eq!(found.group_state, "Stable", "the state");
            ensure_eq!(found.group_type, "classic", "the type");
            ensure_eq!(found.protocol_type, "consumer", "the protocol type");
        }
    }
    let described = cluster.plain().describe_group(&group).await?;
    let member = described.members.first().ok_or_else(|| failure!("no member is described"))?;
    ensure_eq!(member.client_id, "raw", "the client's id");
    ensure!(member.client_host.contains("127.0.0.1"), "the client's host is {}", member.client_host);
    ensure_eq!(member.member_assignment.as_ref(), b"mine".as_slice(), "the assignment");
    Ok(())
}
