//! Whatever is asked can be asked from a task that may move between threads: every future is `Send`.

use std::{collections::BTreeMap, time::Duration};
use tontine::{
    Admin, Consumer, Error, OffsetAndMetadata, Producer, ProducerRecord, RebalanceListener, TopicPartition,
    admin::{ConfigResource, ElectionType, NewTopic, OffsetSpec},
};

struct Listener;
impl RebalanceListener for Listener {}

/// Takes only what may be given to `tokio::spawn`.
fn may_be_spawned<F: Future + Send>(future: F) {
    drop(future);
}

fn orders() -> TopicPartition {
    TopicPartition::new("orders", 0)
}

#[tokio::test]
async fn every_question_to_the_admin_may_be_spawned() -> Result<(), Error> {
    let admin = Admin::builder().set("bootstrap.servers", "127.0.0.1:1").build()?;
    may_be_spawned(admin.describe_cluster());
    may_be_spawned(admin.elect_leaders(ElectionType::Preferred, None));
    may_be_spawned(admin.describe_configs(&ConfigResource::Topic("orders".to_owned())));
    may_be_spawned(admin.alter_configs(&ConfigResource::Topic("orders".to_owned()), []));
    may_be_spawned(admin.list_groups());
    may_be_spawned(admin.describe_group("billing"));
    may_be_spawned(admin.describe_groups(["billing"]));
    may_be_spawned(admin.delete_group("billing"));
    may_be_spawned(admin.delete_groups(["billing"]));
    may_be_spawned(admin.list_offsets([(orders(), OffsetSpec::Latest)]));
    may_be_spawned(admin.list_group_offsets("billing", None));
    may_be_spawned(admin.alter_group_offsets("billing", [(orders(), OffsetAndMetadata::new(1))]));
    may_be_spawned(admin.delete_group_offsets("billing", &[orders()]));
    may_be_spawned(admin.create_topic(NewTopic::new("orders", 1)));
    may_be_spawned(admin.create_topics([NewTopic::new("orders", 1)]));
    may_be_spawned(admin.delete_topic("orders"));
    may_be_spawned(admin.delete_topics(["orders"]));
    may_be_spawned(admin.create_partitions("orders", 2));
    may_be_spawned(admin.list_topics());
    may_be_spawned(admin.describe_topic("orders"));
    may_be_spawned(admin.describe_topics(["orders"]));
    Ok(())
}

#[tokio::test]
async fn everything_a_consumer_does_may_be_spawned() -> Result<(), Error> {
    let mut consumer =
        Consumer::builder().set("bootstrap.servers", "127.0.0.1:1").group_id("billing").build()?;
    may_be_spawned(consumer.subscribe(["orders"], Listener));
    may_be_spawned(consumer.subscribe_topics(["orders"]));
    may_be_spawned(consumer.subscribe_pattern("orders.*", Listener));
    may_be_spawned(consumer.poll(Duration::ZERO));
    may_be_spawned(consumer.commit_sync());
    may_be_spawned(consumer.commit_sync_offsets(BTreeMap::from([(orders(), 1)])));
    may_be_spawned(consumer.commit_async());
    may_be_spawned(consumer.committed(&[orders()]));
    may_be_spawned(consumer.position(&orders()));
    may_be_spawned(consumer.beginning_offsets(&[orders()]));
    may_be_spawned(consumer.end_offsets(&[orders()]));
    may_be_spawned(consumer.partitions_for("orders"));
    may_be_spawned(consumer.unsubscribe());
    may_be_spawned(consumer.close());
    Ok(())
}

#[tokio::test]
async fn everything_a_producer_does_may_be_spawned() -> Result<(), Error> {
    let producer = Producer::builder().set("bootstrap.servers", "127.0.0.1:1").build()?;
    may_be_spawned(producer.send(ProducerRecord::to("orders")));
    may_be_spawned(producer.flush());
    may_be_spawned(producer.close());
    Ok(())
}
