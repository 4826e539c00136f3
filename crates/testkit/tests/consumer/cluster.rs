//! What the consumer follows by itself: leaders, coordinators, nodes and topics that come and go.

use super::rig::*;
use std::{sync::Arc, time::Duration};
use tontine::{Consumer, Error};
use tontine_broker::{Broker, NewTopic};
use tontine_testkit::{
    proxy::{Action, Proxy},
    wait,
};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Response},
};

async fn three_nodes(topic: &str, partitions: i32) -> Broker {
    Broker::builder().nodes(3).topic(topic, partitions).start().await.unwrap()
}

/// Polls until the listener has been told this often.
async fn until_told(consumer: &mut Consumer, log: &Log, times: usize) {
    poll_until(consumer, &format!("{times} callbacks"), |_| log.lines().len() >= times).await;
}

#[tokio::test]
async fn reading_goes_on_when_leaders_move_and_when_they_are_elected_back() {
    let broker = three_nodes("t", 3).await;
    let mut a = consumer(&broker, "g", &[]);
    a.subscribe(["t"], ()).await.unwrap();
    plain(&broker).fill("t", 3, 5).await.unwrap();
    read(&mut a, 15).await;
    for number in 0..3 {
        let (leader, _) = broker.leader("t", number).unwrap();
        broker.move_leader("t", number, leader % 3 + 1).unwrap();
    }
    plain(&broker).fill("t", 3, 5).await.unwrap();
    assert!(read(&mut a, 15).await.iter().all(|(_, offset)| *offset >= 5));
    broker.elect_preferred_leaders();
    plain(&broker).fill("t", 3, 5).await.unwrap();
    assert!(read(&mut a, 15).await.iter().all(|(_, offset)| *offset >= 10));
}

#[tokio::test]
async fn a_node_that_stops_costs_nothing_but_a_moment() {
    let broker = three_nodes("t", 3).await;
    let mut a = consumer(&broker, "g", &[]);
    let log = Log::default();
    a.subscribe(["t"], log.clone()).await.unwrap();
    plain(&broker).fill("t", 3, 5).await.unwrap();
    read(&mut a, 15).await;
    for node in 1..=3 {
        broker.stop_node(node).await.unwrap();
        plain(&broker).fill("t", 3, 5).await.unwrap();
        read(&mut a, 15).await;
        a.commit_sync().await.unwrap();
        broker.start_node(node).await.unwrap();
    }
    assert_eq!(log.lines().len(), 1, "no rebalance: {:?}", log.lines());
    assert!(broker.committed_offsets("g").values().all(|offset| *offset == 20));
}

#[tokio::test]
async fn a_coordinator_that_moves_is_found_without_a_rebalance() {
    let broker = three_nodes("t", 1).await;
    plain(&broker).fill("t", 1, 5).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    let log = Log::default();
    a.subscribe(["t"], log.clone()).await.unwrap();
    read(&mut a, 5).await;
    for _ in 0..3 {
        let next = broker.coordinator_of("g").unwrap() % 3 + 1;
        broker.move_coordinator("g", next).unwrap();
        a.commit_sync().await.unwrap();
        let beats = a.poll(Duration::from_millis(400)).await.unwrap();
        assert!(beats.is_empty());
    }
    assert_eq!(log.lines(), ["A(t-0)"]);
}

#[tokio::test]
async fn added_partitions_are_assigned() {
    let broker = broker(&[("t", 1)]).await;
    let mut a = consumer(&broker, "g", &[("metadata.max.age.ms", "200")]);
    let log = Log::default();
    a.subscribe(["t"], log.clone()).await.unwrap();
    until_told(&mut a, &log, 1).await;
    plain(&broker).create_partitions("t", 3).await.unwrap();
    plain(&broker).fill("t", 3, 2).await.unwrap();
    read(&mut a, 6).await;
    assert_eq!(log.lines().last().unwrap(), "A(t-0 t-1 t-2)");
}

#[tokio::test]
async fn a_topic_that_does_not_exist_yet_is_read_when_it_appears() {
    let broker = Broker::builder().config("auto.create.topics.enable", "false").start().await.unwrap();
    let mut a = consumer(&broker, "g", &[("metadata.max.age.ms", "200")]);
    a.subscribe(["later"], ()).await.unwrap();
    assert!(a.poll(Duration::from_millis(100)).await.unwrap().is_empty());
    broker.create_topic(&NewTopic::new("later", 2)).unwrap();
    plain(&broker).fill("later", 2, 2).await.unwrap();
    read(&mut a, 4).await;
}

#[tokio::test]
async fn a_pattern_follows_topics_that_come_and_go() {
    let broker = broker(&[("red-1", 1), ("blue-1", 1), ("predator", 1)]).await;
    let settings = [("metadata.max.age.ms", "100"), ("partition.assignment.strategy", "cooperative-sticky")];
    let mut a = consumer(&broker, "g", &settings);
    let log = Log::default();
    a.subscribe_pattern("red.*|__.*", log.clone()).await.unwrap();
    until_told(&mut a, &log, 1).await;
    assert_eq!(
        log.lines(),
        ["A(red-1-0)"],
        "the whole name has to match, and Kafka's own topics are left out"
    );
    assert_eq!(a.subscription(), ["red-1".into()].into());
    plain(&broker).create_topic("red-2", 1, 1, &[]).await.unwrap();
    until_told(&mut a, &log, 2).await;
    assert_eq!(log.lines()[1], "A(red-2-0)");
    plain(&broker).delete_topic("red-1").await.unwrap();
    poll_until(&mut a, "the deleted topic goes", |a| a.assignment().len() == 1).await;
    assert!(log.lines().contains(&"R(red-1-0)".to_owned()), "{:?}", log.lines());
    assert!(matches!(a.subscribe_pattern("(", ()).await, Err(Error::Misuse(_))));
}

#[tokio::test]
async fn a_pattern_that_stands_for_what_was_subscribed_before_says_so() {
    let broker = broker(&[("red", 1)]).await;
    let mut a = consumer(&broker, "g", &[]);
    a.subscribe(["red"], ()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 1).await;
    for pattern in ["red", "re.*"] {
        a.subscribe_pattern(pattern, ()).await.unwrap();
        poll_until(&mut a, "the pattern is resolved", |a| a.subscription() == ["red".into()].into()).await;
    }
    assert_eq!(a.assignment().len(), 1);
}

#[tokio::test]
async fn a_recreated_topic_inherits_no_position() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 10).await.unwrap();
    let mut a = consumer(&broker, "g", &[("metadata.max.age.ms", "100")]);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 10).await;
    a.commit_sync().await.unwrap();
    broker.delete_topic("t").unwrap();
    broker.create_topic(&NewTopic::new("t", 1)).unwrap();
    plain(&broker).fill("t", 1, 20).await.unwrap();
    let seen = read(&mut a, 20).await;
    assert_eq!(seen[0].1, 0, "the new topic is read from its beginning: {seen:?}");
}

#[tokio::test]
async fn a_commit_for_a_deleted_topic_fails_soon() {
    let broker =
        Broker::builder().topic("t", 1).config("auto.create.topics.enable", "false").start().await.unwrap();
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 3).await;
    broker.delete_topic("t").unwrap();
    let error =
        wait::within("the refusal", Duration::from_secs(5), a.commit_sync()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Broker { .. } | Error::Lost(_)), "{error}");
}

#[tokio::test]
async fn more_members_than_partitions_wait_and_take_over() {
    let broker = broker(&[("t", 1)]).await;
    let mut members: Vec<_> = (0..3).map(|_| consumer(&broker, "g", &[])).collect();
    for member in &mut members {
        member.subscribe(["t"], ()).await.unwrap();
    }
    let mut left = 30;
    while !members.is_empty() {
        let owner = tokio::time::timeout(LONG, async {
            loop {
                for (at, member) in members.iter_mut().enumerate() {
                    member.poll(Duration::from_millis(10)).await.unwrap();
                    if member.assignment().len() == 1 {
                        return at;
                    }
                }
            }
        });
        let owner = owner.await.unwrap();
        let mut owner = members.remove(owner);
        plain(&broker).fill("t", 1, 10).await.unwrap();
        left -= 10;
        let others = async {
            loop {
                for member in &mut members {
                    member.poll(Duration::from_millis(10)).await.unwrap();
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            seen = read(&mut owner, 10) => assert_eq!(seen.len(), 10),
            () = others => {}
        }
        owner.commit_sync().await.unwrap();
        owner.close().await.unwrap();
    }
    assert_eq!(left, 0);
    assert_eq!(plain(&broker).committed_in("g", "t").await.unwrap(), [(0, 30)].into());
}

#[tokio::test]
async fn each_group_gets_everything() {
    let broker = broker(&[("t", 2)]).await;
    plain(&broker).fill("t", 2, 10).await.unwrap();
    for group in ["one", "two"] {
        let mut a = consumer(&broker, group, &[]);
        a.subscribe(["t"], ()).await.unwrap();
        assert_eq!(read(&mut a, 20).await.len(), 20);
    }
}

#[tokio::test]
async fn one_living_bootstrap_server_is_enough_and_none_is_a_clear_error_in_time() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let servers = format!("127.0.0.1:1,127.0.0.1:2,{}", broker.bootstrap_servers());
    let mut a = consumer(&broker, "g", &[("bootstrap.servers", &servers)]);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 3).await;
    let dead = [("bootstrap.servers", "127.0.0.1:1"), ("default.api.timeout.ms", "500")];
    let mut b = consumer(&broker, "g", &dead);
    let error =
        wait::within("the error", LONG, b.end_offsets(&[partition("t", 0)])).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    b.subscribe(["t"], ()).await.unwrap();
    let failed = async {
        loop {
            if let Err(error) = b.poll(Duration::from_millis(100)).await {
                return error;
            }
        }
    };
    let error = wait::within("a poll that fails", LONG, failed).await.unwrap();
    assert!(matches!(error, Error::Timeout { .. }) && error.is_retriable(), "{error:?}");
    assert!(error.to_string().contains("could not connect to 127.0.0.1:1"), "{error}");
    wait::within("close", LONG, b.close_with(Duration::from_millis(300))).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_static_member_that_comes_back_keeps_its_partitions() {
    let broker = broker(&[("t", 2)]).await;
    let settings = [("group.instance.id", "one")];
    let mut a = consumer(&broker, "g", &settings);
    a.subscribe(["t"], ()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 2).await;
    let generation = a.group_metadata().unwrap().generation;
    a.close().await.unwrap();
    let mut a = consumer(&broker, "g", &settings);
    a.subscribe(["t"], ()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 2).await;
    assert_eq!(a.group_metadata().unwrap().generation, generation, "no rebalance");
}

#[tokio::test]
async fn a_twin_fences_the_older_static_member_for_good() {
    let broker = broker(&[("t", 1)]).await;
    let settings = [("group.instance.id", "one")];
    let (mut a, mut b) = (consumer(&broker, "g", &settings), consumer(&broker, "g", &settings));
    a.subscribe(["t"], ()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 1).await;
    b.subscribe(["t"], ()).await.unwrap();
    poll_until(&mut b, "assigned", |b| b.assignment().len() == 1).await;
    let fenced = tokio::time::timeout(LONG, async {
        loop {
            if let Err(error) = a.poll(TICK).await {
                return error;
            }
        }
    });
    let error = fenced.await.unwrap();
    assert!(matches!(error, Error::Fenced(_)), "{error}");
    assert!(matches!(a.poll(TICK).await, Err(Error::Fenced(_))), "it stays so");
    a.close().await.unwrap();
    b.poll(TICK).await.unwrap();
    assert_eq!(b.assignment().len(), 1);
}

#[tokio::test]
async fn a_topic_that_may_not_be_read_is_reported_by_poll_once() {
    let broker = broker(&[("t", 1), ("secret", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let proxy = Proxy::start(&broker.bootstrap_servers()).unwrap();
    let refusing = Action::Edit(Arc::new(|response| {
        if let Response::Metadata(metadata) = response {
            for topic in metadata.topics.iter_mut().filter(|topic| topic.name.as_deref() == Some("secret")) {
                topic.error_code = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
                topic.partitions.clear();
            }
        }
    }));
    let _refused = proxy.on(ApiKey::Metadata, usize::MAX, refusing);
    let mut a = consumer(&broker, "g", &[("bootstrap.servers", proxy.bootstrap_servers())]);
    a.subscribe(["t", "secret"], ()).await.unwrap();
    let (mut seen, mut errors) = (0, Vec::new());
    let all = tokio::time::timeout(LONG, async {
        while seen < 3 || errors.is_empty() {
            match a.poll(TICK).await {
                Ok(records) => seen += records.len(),
                Err(error) => errors.push(error),
            }
        }
    });
    all.await.unwrap();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].code(), Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
    assert!(errors[0].to_string().contains("`secret`"), "{}", errors[0]);
}

#[tokio::test]
async fn a_seek_is_not_held_up_by_the_long_poll_of_others() {
    let broker = broker(&[("t", 2)]).await;
    plain(&broker).produce("t", 0, 5).await.unwrap();
    let mut a = consumer(&broker, "g", &[("fetch.max.wait.ms", "60000")]);
    a.assign([("t", 0), ("t", 1)]).unwrap();
    read(&mut a, 5).await;
    assert!(a.poll(Duration::from_millis(50)).await.unwrap().is_empty());
    a.seek(&partition("t", 0), 3).unwrap();
    assert_eq!(read(&mut a, 2).await.len(), 2);
    plain(&broker).produce("t", 0, 1).await.unwrap();
    assert_eq!(read(&mut a, 1).await.len(), 1);
}
