//! Addresses that are wrong, dead or silent, and brokers that are none: each is a clear error in bounded time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says so when it fails")]

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tontine::{Admin, Producer, ProducerRecord};
use tontine_broker::Broker;

/// A listener that answers whatever it is told with these bytes; without bytes it is silent.
async fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 1024];
                while stream.read(&mut asked).await.is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(bytes).await;
                }
            });
        }
    });
    address
}

/// A port at which nobody listens.
async fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

fn admin(servers: &str) -> Admin {
    Admin::builder().bootstrap_servers(servers).build().unwrap().with_timeout(Duration::from_secs(2))
}

async fn error_at(address: &str) -> String {
    let asked = admin(address);
    let result = tokio::time::timeout(Duration::from_secs(10), asked.describe_cluster());
    result.await.expect("the timeout of the operation is kept").unwrap_err().to_string()
}

#[tokio::test]
async fn a_web_server_is_recognised_as_one() {
    let error = error_at(&answering(b"HTTP/1.1 400 Bad Request\r\n\r\n").await).await;
    assert!(error.contains("this is a web server"), "{error}");
}

#[tokio::test]
async fn a_tls_port_is_recognised_as_one() {
    let error = error_at(&answering(&[0x15, 3, 3, 0, 2, 2, 70]).await).await;
    assert!(error.contains("this is TLS"), "{error}");
}

#[tokio::test]
async fn rubbish_in_frames_is_a_clear_error() {
    let address = answering(&[0, 0, 0, 8, 0, 0, 0, 0, 1, 2, 3, 4]).await;
    let error = error_at(&address).await;
    assert!(error.contains("makes no sense") || error.contains("refuses to say"), "{error}");
    assert!(error.contains(&address), "{error}");
}

#[tokio::test]
async fn frames_of_impossible_lengths_are_refused_unread() {
    for (bytes, saying) in
        [(&[0x7f, 0xff, 0xff, 0xff, 0], "2147483647 bytes"), (&[0xff, 0xff, 0xff, 0xff, 0], "-1 bytes")]
    {
        let address = answering(bytes).await;
        let error = error_at(&address).await;
        assert!(error.contains(saying) && error.contains(&address), "{error}");
    }
}

#[tokio::test]
async fn a_frame_that_is_cut_off_is_a_lost_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(&[0, 0, 0, 100, 1, 2, 3]).await;
        }
    });
    let error = error_at(&address).await;
    assert!(error.contains(&address), "{error}");
}

#[tokio::test]
async fn a_refused_connection_says_so_and_where() {
    let address = dead().await;
    let error = error_at(&address).await;
    assert!(error.contains(&format!("could not connect to {address}: connection refused")), "{error}");
}

#[tokio::test]
async fn a_listener_that_is_silent_says_so_and_where() {
    let address = answering(b"").await;
    let error = error_at(&address).await;
    assert!(error.contains(&address) && error.contains("does not answer as a broker does"), "{error}");
}

#[tokio::test]
async fn a_name_that_nobody_knows_says_so() {
    let error = error_at("no-such-host.invalid:9092").await;
    assert!(error.contains("cannot be resolved"), "{error}");
}

#[tokio::test]
async fn one_living_server_among_dead_and_silent_ones_is_enough() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let mut servers = vec![dead().await, answering(b"").await, dead().await, answering(b"HTTP/1.1").await];
    servers.push(broker.bootstrap_servers());
    let asked = admin(&servers.join(","));
    assert_eq!(asked.describe_cluster().await.unwrap().brokers.len(), 1);
}

#[tokio::test]
async fn a_dropped_producer_still_delivers_and_then_closes_its_connections() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let servers = broker.bootstrap_servers();
    let producer =
        Producer::builder().bootstrap_servers(servers.as_str()).set("linger.ms", "200").build().unwrap();
    let delivery = producer.send(ProducerRecord::to("t").value("v")).await.unwrap();
    drop(producer);
    assert_eq!(delivery.await.unwrap().offset, Some(0));
    let gone = async || (broker.connections() == 0).then_some(());
    tontine_testkit::wait::until("the connections are closed", Duration::from_secs(10), gone).await.unwrap();
}

#[tokio::test]
async fn operations_of_an_admin_follow_the_cluster_while_nodes_go_and_come() {
    let broker = Broker::builder().topic("t", 3).nodes(3).start().await.unwrap();
    let asked = Admin::builder().bootstrap_servers(broker.bootstrap_servers()).build().unwrap();
    for node in broker.nodes() {
        assert_eq!(asked.describe_topic("t").await.unwrap().partitions.len(), 3);
        broker.stop_node(node).await.unwrap();
        let ends = (0..3).map(|p| (("t", p).into(), tontine::admin::OffsetSpec::Latest));
        for (tp, found) in asked.list_offsets(ends).await.unwrap() {
            assert_eq!(found.unwrap().offset, Some(0), "{tp}");
        }
        broker.start_node(node).await.unwrap();
    }
}
