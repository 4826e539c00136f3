//! The broker on real sockets, with frames made by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tontine_broker::{Broker, StartError, Verdict};
use tontine_wire::api::api_versions::ApiVersionsRequest;
use tontine_wire::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use tontine_wire::api::metadata::MetadataRequest;
use tontine_wire::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use tontine_wire::api::{Call, Request};
use tontine_wire::frame;
use tontine_wire::header::RequestHeader;
use tontine_wire::records::{BatchBuilder, Compression};

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

struct Client {
    stream: TcpStream,
    buffer: BytesMut,
    sent: i32,
}

fn encoded(correlation_id: i32, version: i16, request: impl Into<Request>) -> Bytes {
    let request = request.into();
    let header = RequestHeader { key: request.key(), version, correlation_id, client_id: None };
    frame::encode_request(&header, &request)
}

impl Client {
    async fn connect(address: &str) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), buffer: BytesMut::new(), sent: 0 }
    }

    async fn to(broker: &Broker) -> Self {
        Self::connect(&broker.bootstrap_servers()).await
    }

    async fn send(&mut self, version: i16, request: impl Into<Request>) {
        self.sent += 1;
        self.stream.write_all(&encoded(self.sent, version, request)).await.unwrap();
    }

    /// The next frame; `None` when the broker closed the connection.
    async fn receive(&mut self) -> Option<Bytes> {
        let read = async {
            loop {
                if let Some(frame) = frame::split_frame(&mut self.buffer, usize::MAX).unwrap() {
                    return Some(frame);
                }
                match self.stream.read_buf(&mut self.buffer).await {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        };
        timeout(PATIENCE, read).await.expect("an answer or the end in time")
    }

    async fn ask<C: Call>(&mut self, version: i16, request: C) -> C::Response {
        self.send(version, request).await;
        let frame = self.receive().await.expect("an answer");
        assert_eq!(frame::correlation_id(&frame).unwrap(), self.sent);
        let response = frame::decode_response(C::KEY, version, frame).unwrap();
        C::Response::try_from(response)
            .unwrap_or_else(|other| panic!("an answer to something else: {other:?}"))
    }
}

/// Waits until something is so; fails when it never is.
async fn until(mut condition: impl FnMut() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, poll).await.expect("the condition holds in time");
}

fn fetch(max_wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic: "t".into(), partitions: vec![partition], ..Default::default() };
    FetchRequest { max_wait_ms, min_bytes: 1, max_bytes: 1 << 20, topics: vec![topic], ..Default::default() }
}

fn produce(acks: i16, value: &[u8]) -> ProduceRequest {
    let mut batch = BatchBuilder::new(Compression::None);
    batch.append(1000, None, Some(value), []).unwrap();
    let partition_data = vec![PartitionProduceData { index: 0, records: Some(batch.build(0)) }];
    let topic = TopicProduceData { name: "t".into(), partition_data, ..Default::default() };
    ProduceRequest { acks, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() }
}

#[tokio::test]
async fn several_brokers_live_in_one_process_and_stop() {
    let one = Broker::builder().topic("t", 2).start().await.unwrap();
    let other = Broker::builder().topic("u", 1).start().await.unwrap();
    for (broker, topic) in [(&one, "t"), (&other, "u")] {
        let mut client = Client::to(broker).await;
        let metadata = client.ask(12, MetadataRequest { topics: None, ..Default::default() }).await;
        assert_eq!(metadata.topics[0].name.as_deref(), Some(topic));
    }
    let address = one.bootstrap_servers();
    let mut client = Client::connect(&address).await;
    one.stop().await;
    assert_eq!(client.receive().await, None);
    assert!(TcpStream::connect(&address).await.is_err());
    let again = Broker::builder().listen(&address).start().await.unwrap();
    assert_eq!(again.bootstrap_servers(), address);
}

#[tokio::test]
async fn what_keeps_a_broker_from_starting_says_what_to_do() {
    let running = Broker::builder().start().await.unwrap();
    let taken = Broker::builder().listen(running.bootstrap_servers()).start().await.unwrap_err();
    assert!(taken.to_string().contains("choose another port"), "{taken}");
    let key = Broker::builder().config("num.partition", "3").start().await.unwrap_err();
    assert!(key.to_string().contains("did you mean `num.partitions`"), "{key}");
    let interval = Broker::builder().config("group.consumer.heartbeat.interval.ms", "100").start().await;
    let interval = interval.unwrap_err().to_string();
    assert!(interval.contains("`group.consumer.min.heartbeat.interval.ms`, which is 5000"), "{interval}");
    let topic = Broker::builder().topic("a b", 1).start().await.unwrap_err();
    assert!(matches!(topic, StartError::Topic { .. }), "{topic}");
    let address = Broker::builder().listen("nowhere").start().await.unwrap_err();
    assert!(address.to_string().contains("host:port"), "{address}");
}

#[tokio::test]
async fn requests_are_answered_in_order_however_the_bytes_arrive() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let mut client = Client::to(&broker).await;
    let mut bytes = BytesMut::new();
    for id in 1..=5 {
        bytes.extend_from_slice(&encoded(id, 3, ApiVersionsRequest::default()));
    }
    for part in bytes.chunks(7) {
        client.stream.write_all(part).await.unwrap();
        client.stream.flush().await.unwrap();
    }
    for id in 1..=5 {
        let answer = client.receive().await.unwrap();
        assert_eq!(frame::correlation_id(&answer).unwrap(), id);
    }
}

#[tokio::test]
async fn a_parked_request_holds_back_those_behind_it_until_records_come() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let mut consumer = Client::to(&broker).await;
    consumer.send(11, fetch(600_000)).await;
    consumer.send(3, ApiVersionsRequest::default()).await;
    until(|| broker.parked_fetches() == 1).await;
    let mut producer = Client::to(&broker).await;
    producer.ask(9, produce(-1, b"x")).await;
    for id in 1..=2 {
        let answer = consumer.receive().await.unwrap();
        assert_eq!(frame::correlation_id(&answer).unwrap(), id);
    }
}

#[tokio::test]
async fn a_long_poll_ends_at_its_deadline() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let mut consumer = Client::to(&broker).await;
    let answer = consumer.ask(11, fetch(20)).await;
    assert_eq!(answer.responses[0].partitions[0].records, Some(Bytes::new()));
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_parked_request_along() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let mut consumer = Client::to(&broker).await;
    consumer.send(11, fetch(600_000)).await;
    until(|| broker.parked_fetches() == 1).await;
    drop(consumer);
    until(|| broker.parked_fetches() == 0 && broker.connections() == 0).await;
}

#[tokio::test]
async fn rubbish_and_frames_that_are_too_large_close_the_connection() {
    let broker = Broker::builder().config("socket.request.max.bytes", "1000").start().await.unwrap();
    for rubbish in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc],
        &[0x00, 0x00, 0x03, 0xe9],
        &[0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0, 4, 1, 2, 3, 4],
    ] {
        let mut client = Client::to(&broker).await;
        client.stream.write_all(rubbish).await.unwrap();
        assert_eq!(client.receive().await, None, "{rubbish:?}");
    }
    until(|| broker.connections() == 0).await;
    let mut client = Client::to(&broker).await;
    client.ask(3, ApiVersionsRequest::default()).await;
}

#[tokio::test]
async fn a_producer_without_acks_gets_no_answer() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let mut client = Client::to(&broker).await;
    client.send(9, produce(0, b"x")).await;
    client.ask(3, ApiVersionsRequest::default()).await;
    assert_eq!(broker.log_end_offset("t", 0), Some(1));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_served_any_further() {
    let broker = Broker::builder().topic("t", 1).start().await.unwrap();
    let mut client = Client::to(&broker).await;
    client.ask(9, produce(-1, &vec![b'x'; 900_000])).await;
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    broker.intercept(move |_, _, request| {
        if matches!(request, Request::Fetch(_)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Verdict::Pass
    });
    for _ in 0..1000 {
        client.send(11, fetch(0)).await;
    }
    // Another client is served all the while, and the first one is not far ahead of what it read.
    let mut other = Client::to(&broker).await;
    for _ in 0..20 {
        other.ask(3, ApiVersionsRequest::default()).await;
    }
    assert!(served.load(Ordering::Relaxed) < 100, "{served:?} answers of 900 kB were made for nobody");
    for id in 2..50 {
        let answer = client.receive().await.unwrap();
        assert_eq!(frame::correlation_id(&answer).unwrap(), id);
    }
}

#[tokio::test]
async fn a_stopped_node_refuses_connections_and_comes_back_on_its_port() {
    let broker = Broker::builder().nodes(3).topic("t", 3).start().await.unwrap();
    let address = broker.address(2).unwrap();
    let mut client = Client::connect(&address).await;
    client.ask(3, ApiVersionsRequest::default()).await;
    broker.stop_node(2).await.unwrap();
    assert_eq!(client.receive().await, None);
    assert!(TcpStream::connect(&address).await.is_err());
    assert_eq!(broker.leader("t", 1), Some((3, 1)));
    broker.start_node(2).await.unwrap();
    broker.elect_preferred_leaders();
    assert_eq!(broker.leader("t", 1), Some((2, 2)));
    let mut client = Client::connect(&address).await;
    client.ask(3, ApiVersionsRequest::default()).await;
    broker.disconnect_all(2);
    assert_eq!(client.receive().await, None);
}

#[tokio::test]
async fn idle_connections_are_closed_when_they_have_been_silent_for_long() {
    let broker =
        Broker::builder().topic("t", 1).config("connections.max.idle.ms", "200").start().await.unwrap();
    let mut idle = Client::to(&broker).await;
    let mut waiting = Client::to(&broker).await;
    waiting.send(11, fetch(1500)).await;
    assert_eq!(idle.receive().await, None);
    assert!(waiting.receive().await.is_some(), "a parked request is not silence");
}

#[tokio::test]
async fn hundreds_of_connections_are_served_and_forgotten() {
    let broker = Broker::builder().start().await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..400 {
        clients.push(Client::to(&broker).await);
    }
    for client in &mut clients {
        client.ask(3, ApiVersionsRequest::default()).await;
    }
    assert_eq!(broker.connections(), 400);
    drop(clients);
    until(|| broker.connections() == 0).await;
}

#[tokio::test]
async fn more_connections_than_allowed_are_closed_at_once() {
    let broker = Broker::builder().config("max.connections", "1").start().await.unwrap();
    let mut first = Client::to(&broker).await;
    first.ask(3, ApiVersionsRequest::default()).await;
    let mut second = Client::to(&broker).await;
    assert_eq!(second.receive().await, None);
}
