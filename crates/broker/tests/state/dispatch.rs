//! What is done with the bytes of requests of which nothing is known. The fuzzer (`fuzz/`) and the test with damaged
//! requests both run this, so that what one finds can be tried with the other.
//!
//! It panics when a promise is broken: an answer is one that can be read, and a request is answered, waits, or ends its
//! connection.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tontine_broker::disk::SimulatedDisk;
use tontine_broker::{BrokerConfig, BrokerOutput, BrokerState, ConnId, NewTopic, Node};
use tontine_group::Instant;
use tontine_wire::api::ApiKey;
use tontine_wire::frame;

/// A topic that is there, with a name as the vectors have them.
const TOPICS: [&str; 2] = ["t", "x"];

struct Broker {
    state: BrokerState,
    now: Instant,
    /// What was asked on a connection and has not been answered.
    asked: BTreeMap<ConnId, (i16, i16)>,
    next: u64,
}

impl Broker {
    fn new(with_disk: bool) -> Self {
        let nodes = (1..=2).map(|id| (id, Node::new("localhost", 9000))).collect();
        let mut config = BrokerConfig::new();
        for (key, value) in
            [("offsets.topic.num.partitions", "2"), ("transaction.state.log.num.partitions", "2")]
        {
            let _ = config.set(key, value);
        }
        let mut state = match with_disk {
            true => {
                let _ = config.set("log.flush.interval.messages", "1");
                let disk = Arc::new(SimulatedDisk::new(1));
                BrokerState::open(config, nodes, 7, 1_700_000_000_000, disk).expect("the disk is empty")
            }
            false => BrokerState::new(config, nodes, 7, 1_700_000_000_000),
        };
        for topic in TOPICS {
            state.create_topic(Instant::ZERO, &NewTopic::new(topic, 2)).expect("there is no such topic");
        }
        Self { state, now: Instant::ZERO, asked: BTreeMap::new(), next: 0 }
    }

    /// A connection that waits for nothing: of three numbers each has the same one until it is closed or busy.
    fn connection(&mut self, number: u8) -> ConnId {
        let conn = ConnId(self.next * 3 + u64::from(number % 3));
        if !self.asked.contains_key(&conn) {
            self.state.handle_connected(self.now, conn, 1 + i32::from(number % 2), "127.0.0.1");
            return conn;
        }
        self.next += 1;
        self.connection(number)
    }

    fn ask(&mut self, number: u8, bytes: Bytes) -> usize {
        let conn = self.connection(number);
        let number = |at: usize| Some(i16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        self.asked.insert(conn, (number(0).unwrap_or(0), number(2).unwrap_or(0)));
        self.state.handle_frame(self.now, conn, bytes.clone());
        let answers = self.drain();
        if self.asked.contains_key(&conn) {
            // It waits; in the end its client goes away.
            self.now += Duration::from_secs(40);
            self.state.handle_timeout(self.now);
            let late = self.drain();
            self.state.handle_disconnected(self.now, conn);
            return answers + late + self.drain();
        }
        answers
    }

    fn drain(&mut self) -> usize {
        let mut answers = 0;
        loop {
            match self.state.poll_output() {
                BrokerOutput::Reply { conn, version, correlation_id, response } => {
                    let asked = self.asked.remove(&conn).expect("an answer is to a question");
                    let bytes = frame::encode_response(version, correlation_id, &response).slice(4..);
                    let key = ApiKey::ALL.iter().find(|key| **key as i16 == asked.0);
                    let read = frame::decode_response(*key.expect("a known API"), version, bytes);
                    assert!(read.is_ok(), "{read:?} {response:?}");
                    answers += 1;
                }
                BrokerOutput::Frame { conn, frame } => {
                    self.asked.remove(&conn).expect("an answer is to a question");
                    let size = frame.first_chunk().map(|head| u32::from_be_bytes(*head) as usize);
                    assert_eq!(size, Some(frame.len() - 4), "{frame:?}");
                    answers += 1;
                }
                BrokerOutput::Disconnect { conn, .. } => {
                    self.asked.remove(&conn);
                }
                BrokerOutput::Silent { conn } => {
                    self.asked.remove(&conn);
                }
                BrokerOutput::Work(work) => self.state.handle_done(self.now, work.run()),
                BrokerOutput::Transition(_) => {}
                BrokerOutput::Wait(_) => return answers,
            }
        }
    }
}

/// Bytes as a conversation: one that says what for a broker, then pieces of two bytes of length, one for the connection,
/// and the request. How many answers came.
pub(crate) fn dispatch(data: &[u8]) -> usize {
    let Some((kind, mut rest)) = data.split_first() else { return 0 };
    let mut broker = Broker::new(kind % 2 == 1);
    let mut answers = 0;
    while let [high, low, number, tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
        let (request, more) = tail.split_at(len);
        answers += broker.ask(*number, Bytes::copy_from_slice(request));
        rest = more;
    }
    broker.now += Duration::from_secs(700);
    broker.state.handle_timeout(broker.now);
    answers + broker.drain()
}

/// A piece of a conversation.
#[allow(dead_code, reason = "the fuzzer only takes conversations apart")]
pub(crate) fn piece(number: u8, request: &[u8]) -> Vec<u8> {
    let len = u16::try_from(request.len()).expect("short");
    [&len.to_be_bytes()[..], &[number], request].concat()
}
