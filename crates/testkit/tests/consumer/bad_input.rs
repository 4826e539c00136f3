//! What the application gets wrong, and what a broker or a disk gets wrong under it: a clear error, nothing lost.

use super::rig::*;
use bytes::Bytes;
use std::sync::Arc;
use tontine::{Consumer, Error};
use tontine_testkit::proxy::{Action, Proxy};
use tontine_wire::api::{ApiKey, Response};

fn said(error: &Error, words: &[&str]) {
    let error = error.to_string();
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
}

#[tokio::test]
async fn settings_that_are_wrong_are_refused_when_the_consumer_is_built() {
    let wrong = |key: &str, value: &str, words: &[&str]| {
        let consumer =
            Consumer::builder().set("bootstrap.servers", "127.0.0.1:9092").group_id("g").set(key, value);
        let error = consumer.build().unwrap_err();
        assert!(matches!(error, Error::Configuration(_)), "{error:?}");
        said(&error, words);
    };
    wrong("grup.id", "g", &["grup.id", "did you mean `group.id`"]);
    wrong("group.id", "", &["group.id"]);
    wrong("group.id", "  ", &["group.id"]);
    wrong("max.poll.records", "0", &["max.poll.records", "at least 1"]);
    wrong("session.timeout.ms", "3000000000", &["session.timeout.ms", "at most 2147483647"]);
    wrong("session.timeout.ms", "soon", &["session.timeout.ms", "soon"]);
    wrong("auto.offset.reset", "erliest", &["auto.offset.reset", "earliest"]);
    wrong("partition.assignment.strategy", "rnage", &["rnage"]);
    wrong("bootstrap.servers", "nowhere", &["bootstrap.servers", "nowhere"]);
}

#[tokio::test]
async fn names_and_patterns_that_cannot_be_are_refused_at_once() {
    let mut a = Consumer::builder().bootstrap_servers("127.0.0.1:1").group_id("g").build().unwrap();
    let long = "x".repeat(250);
    for topic in ["", " ", "a b", "..", "ä", long.as_str()] {
        let error = a.subscribe(["good", topic], ()).await.unwrap_err();
        assert!(matches!(error, Error::Misuse(_)), "{error:?}");
        assert!(matches!(a.assign([(topic, 0)]), Err(Error::Misuse(_))), "`{topic}`");
        assert!(matches!(a.partitions_for(topic).await, Err(Error::Misuse(_))), "`{topic}`");
    }
    for pattern in ["", "(", "a)|(b", "[z-a]"] {
        let error = a.subscribe_pattern(pattern, ()).await.unwrap_err();
        assert!(matches!(error, Error::Misuse(_)), "{error:?}");
    }
    assert!(a.subscription().is_empty());
    a.subscribe(["orders"], ()).await.unwrap();
}

#[tokio::test]
async fn a_partition_that_does_not_exist_is_named_when_the_time_is_over() {
    let broker = broker(&[("t", 1)]).await;
    let settings = [("default.api.timeout.ms", "500"), ("allow.auto.create.topics", "false")];
    let mut a = consumer(&broker, "g", &settings);
    said(&a.end_offsets(&[partition("t", 99)]).await.unwrap_err(), &["t-99 does not exist"]);
    said(&a.end_offsets(&[partition("nowhere", 0)]).await.unwrap_err(), &["no broker knows the topic"]);
}

/// Turns the last byte of the batch that begins at this offset around, as a bad disk might.
fn damage(records: &Bytes, at: i64) -> Bytes {
    let mut bytes = records.to_vec();
    let mut start = 0;
    while let Some(head) = bytes.get(start..start + 12) {
        let base = i64::from_be_bytes(head[..8].try_into().unwrap());
        let length = i32::from_be_bytes(head[8..].try_into().unwrap());
        let end = start + 12 + usize::try_from(length).unwrap();
        if base == at && end <= bytes.len() {
            bytes[end - 1] ^= 0xff;
        }
        start = end;
    }
    bytes.into()
}

#[tokio::test]
async fn a_damaged_batch_is_named_keeps_the_position_and_can_be_skipped() {
    let broker = broker(&[("t", 1)]).await;
    for _ in 0..3 {
        plain(&broker).fill("t", 1, 5).await.unwrap();
    }
    let proxy = Proxy::start(&broker.bootstrap_servers()).unwrap();
    let damaging = Action::Edit(Arc::new(|response| {
        if let Response::Fetch(fetch) = response {
            for partition in fetch.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.records = partition.records.as_ref().map(|records| damage(records, 5));
            }
        }
    }));
    let _rule = proxy.on(ApiKey::Fetch, usize::MAX, damaging);
    let mut a = Consumer::builder()
        .bootstrap_servers(proxy.bootstrap_servers())
        .set("auto.offset.reset", "earliest")
        .build()
        .unwrap();
    let t = partition("t", 0);
    a.assign([t.clone()]).unwrap();
    assert_eq!(read(&mut a, 5).await.len(), 5, "what comes before it is good");
    for _ in 0..2 {
        let failed = tokio::time::timeout(LONG, async {
            loop {
                match a.poll(TICK).await {
                    Ok(records) => assert!(records.is_empty(), "{records:?}"),
                    Err(error) => return error,
                }
            }
        });
        let error = failed.await.expect("it is reported, and again");
        assert!(matches!(error, Error::Malformed(_)), "{error:?}");
        said(&error, &["t-0", "5"]);
        assert_eq!(a.position(&t).await.unwrap(), 5, "the position stays");
    }
    a.seek(&t, 10).unwrap();
    let rest: Vec<i64> = read(&mut a, 5).await.into_iter().map(|(_, offset)| offset).collect();
    assert_eq!(rest, [10, 11, 12, 13, 14]);
}
