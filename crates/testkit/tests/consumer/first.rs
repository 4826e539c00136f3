//! The first things anybody does.

use super::rig::*;

#[tokio::test]
async fn a_lone_member_reads_everything_and_commits() {
    let broker = broker(&[("orders", 3)]).await;
    plain(&broker).fill("orders", 3, 40).await.unwrap();
    let mut consumer = consumer(&broker, "billing", &[]);
    let log = Log::default();
    consumer.subscribe(["orders"], log.clone()).await.unwrap();
    let seen = read(&mut consumer, 120).await;
    for number in 0..3 {
        let mine = partition("orders", number);
        let offsets: Vec<_> = seen.iter().filter(|(p, _)| *p == mine).map(|(_, offset)| *offset).collect();
        assert_eq!(offsets, (0..40).collect::<Vec<_>>(), "{mine}");
    }
    consumer.commit_sync().await.unwrap();
    assert_eq!(
        plain(&broker).committed_in("billing", "orders").await.unwrap(),
        [(0, 40), (1, 40), (2, 40)].into()
    );
    assert_eq!(log.lines(), ["A(orders-0 orders-1 orders-2)"]);
    consumer.close().await.unwrap();
    assert_eq!(log.lines(), ["A(orders-0 orders-1 orders-2)", "R(orders-0 orders-1 orders-2)"]);
}
