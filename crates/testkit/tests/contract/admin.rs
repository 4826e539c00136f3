//! The admin: what it creates, finds, changes and deletes, whoever the broker is.

use std::collections::BTreeMap;
use std::time::Duration;
use tontine::admin::{Admin, ConfigChange, ConfigResource, ElectionType, NewTopic, OffsetSpec};
use tontine::{Error, OffsetAndMetadata, TopicPartition};
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::wait::until;
use tontine_testkit::{bodies, ensure, ensure_eq, failure};
use tontine_wire::ErrorCode;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "admin", one: [
        topics_are_created_listed_described_and_deleted,
        a_topic_that_exists_or_does_not_is_a_clear_error,
        partitions_are_added_but_never_taken_away,
        offsets_are_found_by_place_and_by_time,
        offsets_of_a_group_are_set_read_and_deleted,
        configurations_are_read_and_changed,
    ]);
    bodies!(suite, "admin", three: [the_cluster_is_described_and_leaders_are_elected]);
}

const LONG: Duration = Duration::from_secs(20);

fn admin(cluster: &Cluster) -> Result<Admin, Error> {
    Admin::builder().bootstrap_servers(cluster.bootstrap_servers()).build()
}

/// Other brokers may learn of a new topic a little later.
async fn create(admin: &Admin, name: &str, partitions: i32) -> Outcome {
    admin.create_topic(NewTopic::new(name, partitions)).await?;
    let known = async || {
        let topic = admin.describe_topic(name).await.ok()?;
        topic.partitions.values().all(|p| p.leader.is_some()).then_some(())
    };
    Ok(until("the new topic has leaders", LONG, known).await?)
}

fn code<T>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err().and_then(|e| e.code())
}

async fn topics_are_created_listed_described_and_deleted(cluster: Cluster) -> Outcome {
    let admin = admin(&cluster)?;
    let name = cluster.unique("made");
    create(&admin, &name, 3).await?;
    let listed = admin.list_topics().await?.into_iter().find(|t| t.name == name);
    let listed = listed.ok_or_else(|| failure!("the topic is not in the list"))?;
    ensure_eq!((listed.partitions, listed.is_internal), (3, false), "the listed topic");
    let described = admin.describe_topic(&name).await?;
    ensure_eq!(described.id, listed.id, "the topic's id");
    ensure!(!described.id.is_zero(), "the topic has an id");
    admin.delete_topic(&name).await?;
    let gone = async || admin.list_topics().await.ok()?.iter().all(|t| t.name != name).then_some(());
    Ok(until("the deleted topic is gone", LONG, gone).await?)
}

async fn a_topic_that_exists_or_does_not_is_a_clear_error(cluster: Cluster) -> Outcome {
    let admin = admin(&cluster)?;
    let name = cluster.unique("twice");
    create(&admin, &name, 1).await?;
    let again = admin.create_topic(NewTopic::new(&name, 1)).await;
    ensure_eq!(code(again), Some(ErrorCode::TOPIC_ALREADY_EXISTS), "creating it twice");
    let missing = cluster.unique("missing");
    let unknown = Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    ensure_eq!(code(admin.describe_topic(&missing).await), unknown, "describing a topic that is not there");
    ensure_eq!(code(admin.delete_topic(&missing).await), unknown, "deleting a topic that is not there");
    let bad = admin.create_topic(NewTopic::new("no/slashes", 1)).await;
    ensure_eq!(code(bad), Some(ErrorCode::INVALID_TOPIC_EXCEPTION), "creating a topic with a bad name");
    Ok(())
}

async fn partitions_are_added_but_never_taken_away(cluster: Cluster) -> Outcome {
    let admin = admin(&cluster)?;
    let name = cluster.unique("grown");
    create(&admin, &name, 1).await?;
    admin.create_partitions(&name, 4).await?;
    let grown = async || (admin.describe_topic(&name).await.ok()?.partitions.len() == 4).then_some(());
    until("the topic has four partitions", LONG, grown).await?;
    ensure_eq!(
        code(admin.create_partitions(&name, 2).await),
        Some(ErrorCode::INVALID_PARTITIONS),
        "taking away"
    );
    Ok(())
}

async fn offsets_are_found_by_place_and_by_time(cluster: Cluster) -> Outcome {
    let admin = admin(&cluster)?;
    let topic = cluster.topic("filled", 2).await?;
    cluster.plain().fill(&topic, 2, 5).await?;
    let partition = |p| TopicPartition::new(topic.as_str(), p);
    let find = async |spec| -> Result<Vec<Option<i64>>, Error> {
        let found = admin.list_offsets([(partition(0), spec), (partition(1), spec)]).await?;
        found.into_values().map(|f| Ok(f?.offset)).collect()
    };
    ensure_eq!(find(OffsetSpec::Earliest).await?, [Some(0), Some(0)], "the first offsets");
    let ends = cluster.plain().end_offsets(&topic).await?;
    ensure_eq!(
        find(OffsetSpec::Latest).await?,
        [ends.get(&0).copied(), ends.get(&1).copied()],
        "the last offsets"
    );
    ensure_eq!(find(OffsetSpec::Timestamp(0)).await?, [Some(0), Some(0)], "the offsets since 1970");
    ensure_eq!(
        find(OffsetSpec::Timestamp(i64::MAX / 2)).await?,
        [None, None],
        "the offsets of the far future"
    );
    let missing = partition(7);
    let hasty = admin.clone().with_timeout(Duration::from_secs(1));
    let found = hasty.list_offsets([(missing.clone(), OffsetSpec::Latest)]);
    ensure!(
        matches!(found.await?.remove(&missing), Some(Err(_))),
        "a partition that is not there has no offset"
    );
    Ok(())
}

async fn offsets_of_a_group_are_set_read_and_deleted(cluster: Cluster) -> Outcome {
    let admin = admin(&cluster)?;
    let topic = cluster.topic("read", 2).await?;
    let group = cluster.unique("group");
    let at = |p| TopicPartition::new(topic.as_str(), p);
    let offsets =
        [(at(0), OffsetAndMetadata::new(3)), (at(1), OffsetAndMetadata::new(4).with_metadata("note"))];
    for (tp, result) in admin.alter_group_offsets(&group, offsets.clone()).await? {
        result.map_err(|e| failure!("{tp}: {e}"))?;
    }
    let read = admin.list_group_offsets(&group, None).await?;
    ensure_eq!(read, BTreeMap::from(offsets), "what was set");
    let one = admin.list_group_offsets(&group, Some(&[at(1)])).await?;
    ensure_eq!(one.len(), 1, "the offsets of one partition");
    let listed = admin.list_groups().await?.into_iter().find(|g| g.id == group);
    ensure_eq!(listed.map(|g| g.state), Some("Empty".to_owned()), "the group in the list");
    ensure_eq!(admin.describe_group(&group).await?.members.len(), 0, "its members");
    admin.delete_group_offsets(&group, &[at(0)]).await?.remove(&at(0)).unwrap_or(Ok(()))?;
    ensure_eq!(admin.list_group_offsets(&group, None).await?.len(), 1, "what is left");
    admin.delete_group(&group).await?;
    ensure!(admin.list_group_offsets(&group, None).await?.is_empty(), "nothing is left of a deleted group");
    let gone = admin.delete_group(&group).await;
    ensure_eq!(code(gone), Some(ErrorCode::GROUP_ID_NOT_FOUND), "deleting it again");
    Ok(())
}

async fn configurations_are_read_and_changed(cluster: Cluster) -> Outcome {
    let admin = admin(&cluster)?;
    let topic = cluster.topic("set", 1).await?;
    let resource = ConfigResource::Topic(topic);
    let value = async || -> Result<Option<String>, Error> {
        let entries = admin.describe_configs(&resource).await?;
        Ok(entries.into_iter().find(|e| e.name == "retention.ms").and_then(|e| e.value))
    };
    let set = ConfigChange::Set("retention.ms".to_owned(), "123456".to_owned());
    admin.alter_configs(&resource, [set]).await?;
    until("the change is seen", LONG, async || {
        (value().await.ok()? == Some("123456".to_owned())).then_some(())
    })
    .await?;
    admin.alter_configs(&resource, [ConfigChange::Delete("retention.ms".to_owned())]).await?;
    until("the default is back", LONG, async || {
        (value().await.ok()? != Some("123456".to_owned())).then_some(())
    })
    .await?;
    let wrong = ConfigChange::Set("no.such.setting".to_owned(), "1".to_owned());
    ensure_eq!(
        code(admin.alter_configs(&resource, [wrong]).await),
        Some(ErrorCode::INVALID_CONFIG),
        "a key nobody knows"
    );
    Ok(())
}

async fn the_cluster_is_described_and_leaders_are_elected(cluster: Cluster) -> Outcome {
    let admin = admin(&cluster)?;
    let described = admin.describe_cluster().await?;
    let ids: Vec<i32> = described.brokers.iter().map(|b| b.id).collect();
    ensure_eq!(ids, cluster.node_ids(), "the brokers");
    let topic = cluster.topic("led", 3).await?;
    let partitions: Vec<_> = (0..3).map(|p| TopicPartition::new(topic.as_str(), p)).collect();
    for (tp, result) in admin.elect_leaders(ElectionType::Preferred, Some(&partitions)).await? {
        let fine = result.is_ok()
            || result.as_ref().is_err_and(|e| e.code() == Some(ErrorCode::ELECTION_NOT_NEEDED));
        ensure!(fine, "{tp}: {result:?}");
    }
    Ok(())
}
