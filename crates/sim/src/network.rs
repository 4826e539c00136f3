//! Connections as streams of bytes: what is sent arrives later, in pieces, in order, or not at all.
//!
//! Each connection has a delay of its own, so there is no order across connections. A *stalled* connection delivers later;
//! a *dead* one swallows everything and tells neither side (half-open). The world owns the queue of what arrives when;
//! here is decided what that is.

use crate::{fact::Life, random::Random};
use bytes::{Bytes, BytesMut};
use std::{collections::VecDeque, time::Duration};
use tontine::cluster::ConnId as ClientConn;
use tontine_broker::NodeId;
use tontine_group::Instant;

/// A connection between a consumer and a node. Its number is also the broker's name for it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) life: Life,
    pub(crate) conn: ClientConn,
    pub(crate) node: NodeId,
    /// The broker knows it.
    pub(crate) accepted: bool,
    /// The client waits for it to open.
    pub(crate) opening: bool,
    /// The client has closed it, or was told that it is closed.
    pub(crate) client_gone: bool,
    pub(crate) dead: bool,
    /// The client has sent something that will never be answered: the connection, or the node, was dead to it.
    pub(crate) swallows: bool,
    pub(crate) stalled_until: Instant,
    /// The broker works on a request of it.
    pub(crate) busy: bool,
    /// Requests that wait for that.
    pub(crate) queue: VecDeque<Bytes>,
    pub(crate) to_broker: BytesMut,
    pub(crate) to_client: BytesMut,
    random: Random,
    delay: Duration,
    last_up: Instant,
    last_down: Instant,
}

/// How much the time that bytes take differs, in microseconds.
const JITTER: u64 = 300;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the broker.
    Up,
    /// To the consumer.
    Down,
}

impl Link {
    pub(crate) fn new(life: Life, conn: ClientConn, node: NodeId, most_ms: u64, mut random: Random) -> Self {
        let delay = Duration::from_micros(random.between(50, 1_000 * most_ms));
        Self {
            random,
            life,
            conn,
            node,
            accepted: false,
            opening: true,
            client_gone: false,
            dead: false,
            swallows: false,
            stalled_until: Instant::ZERO,
            busy: false,
            queue: VecDeque::new(),
            to_broker: BytesMut::new(),
            to_client: BytesMut::new(),
            delay,
            last_up: Instant::ZERO,
            last_down: Instant::ZERO,
        }
    }

    /// Whether the client waits for something that never comes: an answer, or that a dead connection opens.
    pub(crate) fn is_doomed(&self) -> bool {
        !self.client_gone && (self.swallows || self.dead && self.opening)
    }

    /// Whether the client's bytes take longer than usual, so that they are lost when it gives the connection up. (A broker
    /// that got them after all, later than those of the next connection, would do old things after new ones. No client can
    /// prevent that.)
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.stalled_until > now || self.last_up > now + self.delay + Duration::from_micros(JITTER)
    }

    /// When something that is sent now arrives: after everything before it.
    pub(crate) fn arrival(&mut self, now: Instant, way: Way) -> Instant {
        let jitter = Duration::from_micros(self.random.below(JITTER));
        let at = now.max(self.stalled_until) + self.delay + jitter;
        let last = match way {
            Way::Up => &mut self.last_up,
            Way::Down => &mut self.last_down,
        };
        *last = at.max(*last);
        *last
    }

    /// What is sent this way arrives after this time at the earliest, and what is sent the other way as ever.
    pub(crate) fn delay_from_now(&mut self, until: Instant, way: Way) {
        let last = match way {
            Way::Up => &mut self.last_up,
            Way::Down => &mut self.last_down,
        };
        *last = until.max(*last);
    }

    /// Cuts bytes into the pieces in which they arrive: mostly one, sometimes two.
    pub(crate) fn pieces(&mut self, mut bytes: Bytes) -> Vec<Bytes> {
        if bytes.len() < 2 || !self.random.percent(10) {
            return vec![bytes];
        }
        let at = usize::try_from(self.random.between(1, bytes.len() as u64 - 1)).unwrap_or(1);
        let head = bytes.split_to(at);
        vec![head, bytes]
    }
}
