//! `group`: list, describe, delete.

use super::rig::*;
use serde_json::json;
use tokio::io::BufReader;

#[tokio::test]
async fn a_group_is_listed_described_with_its_lag_and_deleted() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    broker.run(&["produce", "-t", "orders", "-n", "40"]).await.ok();
    let read = ["consume", "-t", "orders", "-g", "billing", "--from", "earliest", "-e"];
    broker.run(&read).await.ok();
    broker.feed(&["produce", "-t", "orders"], "one more\n").await.ok();

    let listed = broker.run(&["group", "list"]).await.ok();
    let row = listed.lines().nth(1).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["billing", "classic", "consumer", "Empty"]);
    let listed = broker.run(&["group", "list", "--format", "json"]).await.json();
    assert_eq!(listed[0]["group"], "billing");
    assert_eq!(listed[0]["state"], "Empty");

    let described = broker.run(&["group", "describe", "billing", "--format", "json"]).await.json();
    let lag: i64 =
        described[0]["partitions"].as_array().unwrap().iter().map(|p| p["lag"].as_i64().unwrap()).sum();
    assert_eq!(lag, 1, "{described}");
    let described = broker.run(&["group", "describe", "billing"]).await.ok();
    assert!(described.starts_with("group billing: Empty, 0 members\nGROUP"), "{described}");

    broker.run(&["group", "delete", "billing"]).await.ok();
    assert_eq!(broker.run(&["group", "list", "--format", "json"]).await.json(), json!([]));
}

#[tokio::test]
async fn a_living_group_shows_who_owns_what_and_cannot_be_deleted() {
    let broker = Broker::start(&["--topic", "orders:2"]).await;
    broker.feed(&["produce", "-t", "orders"], "1\n").await.ok();
    let read = ["consume", "-t", "orders", "-g", "billing", "--from", "earliest", "-X", "client.id=me"];
    let mut member = broker.command(&read).spawn().unwrap();
    line(&mut BufReader::new(member.stdout.take().unwrap())).await;
    let described = broker.run(&["group", "describe", "billing", "--format", "json"]).await.json();
    assert_eq!(described[0]["state"], "Stable");
    assert_eq!(described[0]["members"][0]["client_id"], "me");
    assert_eq!(described[0]["members"][0]["assignment"], json!(["orders-0", "orders-1"]));
    let described = broker.run(&["group", "describe", "billing"]).await.ok();
    assert!(described.contains("group billing: Stable, 1 members, assignor range"), "{described}");
    broker.run(&["group", "delete", "billing"]).await.failed(1, "NON_EMPTY_GROUP");
}

#[tokio::test]
async fn a_group_that_nobody_knows_is_an_error() {
    let broker = Broker::start(&[]).await;
    broker.run(&["group", "describe", "nope"]).await.failed(1, "GROUP_ID_NOT_FOUND");
    broker.run(&["group", "delete", "nope"]).await.failed(1, "GROUP_ID_NOT_FOUND");
}

#[tokio::test]
async fn a_group_of_the_consumer_protocol_shows_epochs_and_targets() {
    let broker = Broker::start(&["--topic", "orders:2"]).await;
    broker.feed(&["produce", "-t", "orders"], "1\n").await.ok();
    let read = ["consume", "-t", "orders", "-g", "billing", "--from", "earliest", "--protocol", "consumer"];
    let mut member = broker.command(&read).spawn().unwrap();
    line(&mut BufReader::new(member.stdout.take().unwrap())).await;
    let listed = broker.run(&["group", "list"]).await.ok();
    let row = listed.lines().nth(1).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["billing", "consumer", "consumer", "Stable"]);
    let shown = broker.run(&["group", "show", "billing", "--format", "json"]).await.json();
    assert_eq!((&shown[0]["epoch"], &shown[0]["waiting"]), (&shown[0]["target_epoch"], &json!([])));
    let member = &shown[0]["members"][0];
    assert_eq!((&member["assignment"], &member["protocol"]), (&member["target"], &json!("consumer")));
    let shown = broker.run(&["group", "show", "billing"]).await.ok();
    assert!(shown.contains("group billing: Stable, 1 members, assignor uniform, epoch "), "{shown}");
    assert!(shown.contains("orders-0,orders-1  orders-0,orders-1"), "{shown}");
}

#[tokio::test]
async fn audit_logs_of_several_members_are_put_together() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let line = |at: u32, member: &str, rest: &str| {
        format!(
            "{{\"at\":{at},{rest},\"group\":\"g\",\"topic\":\"t\",\"partition\":0,\"member\":\"{member}\",\"epoch\":1}}\n"
        )
    };
    let assigned = "\"event\":\"assigned\"";
    let released =
        "\"event\":\"released\",\"from\":1,\"why\":\"revoked\",\"first\":0,\"last\":9,\"sought\":0";
    let a = file("a", &(line(1, "a", assigned) + &line(50, "a", released)));
    let b = file("b", &line(51, "b", assigned));
    let clean = run(&["group", "audit", &a, &b]).await.ok();
    assert!(clean.contains("2 ownerships") && clean.contains("no overlap"), "{clean}");
    let early = file("early", &line(40, "c", assigned));
    let overlap = run(&["group", "audit", &a, &early]).await;
    assert_eq!(overlap.code, Some(1), "{overlap:?}");
    assert!(overlap.stdout.contains("t-0: c got it 10 ms before a had given it up"), "{overlap:?}");
    run(&["group", "audit", "--clock-skew", "20", &a, &early]).await.ok();
    run(&["group", "audit", &file("odd", "rubbish\n\n")]).await.failed(1, "odd:1");
    run(&["group", "audit", "/nowhere"]).await.failed(1, "/nowhere");
}
