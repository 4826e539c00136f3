//! One connection: opening, negotiating, and then the requests under way on it, which are answered in their order.
//!
//! Decides what an answer belongs to, and when bytes make no sense. Does not decide what is sent where.

use super::{
    Lane, Ticket,
    nodes::NodeKey,
    throttle::throttle,
    versions::{self, Versions},
};
use bytes::Bytes;
use std::{collections::VecDeque, time::Duration};
use tontine_group::Instant;
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request, Response},
    frame,
    header::RequestHeader,
};

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) node: NodeKey,
    pub(super) lane: Lane,
    pub(super) phase: Phase,
    /// Opened because any broker would do: given up when another one answers first.
    pub(super) speculative: bool,
    /// Closed as soon as nothing is under way on it.
    pub(super) retiring: bool,
    pub(super) opened: Instant,
    /// The broker wants to hear nothing before.
    pub(super) muted_until: Instant,
    last_used: Instant,
    in_flight: VecDeque<InFlight>,
    next_correlation: i32,
}

#[derive(Debug)]
pub(super) enum Phase {
    Connecting { until: Instant },
    Negotiating { until: Instant, version: i16 },
    Ready(Versions),
}

/// A request that has been sent.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) ticket: Option<Ticket>,
    correlation: i32,
    key: ApiKey,
    version: i16,
    sent: Instant,
    expires: Instant,
}

impl Connection {
    pub(super) fn new(now: Instant, node: NodeKey, lane: Lane, setup: Duration) -> Self {
        Self {
            node,
            lane,
            phase: Phase::Connecting { until: now + setup },
            speculative: false,
            retiring: false,
            opened: now,
            muted_until: Instant::ZERO,
            last_used: now,
            in_flight: VecDeque::new(),
            next_correlation: 0,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    pub(super) fn is_connecting(&self) -> bool {
        matches!(self.phase, Phase::Connecting { .. })
    }

    pub(super) fn load(&self) -> usize {
        self.in_flight.len()
    }

    /// When the oldest request under way was sent.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        self.in_flight.front().map(|r| r.sent)
    }

    /// The next moment at which something is over: the attempt, the oldest request, or the patience with an idle one.
    pub(super) fn deadline(&self, max_idle: Duration) -> Instant {
        match &self.phase {
            Phase::Connecting { until } | Phase::Negotiating { until, .. } => *until,
            Phase::Ready(_) => {
                self.in_flight.iter().map(|r| r.expires).min().unwrap_or(self.last_used + max_idle)
            }
        }
    }

    /// Asks for the broker's versions: the first thing that is said on a connection.
    pub(super) fn start_negotiating(
        &mut self,
        now: Instant,
        timeout: Duration,
        client_id: &str,
        version: i16,
    ) -> Bytes {
        self.phase = Phase::Negotiating { until: now + timeout, version };
        self.last_used = now;
        let correlation = self.correlation();
        encode(&versions::request(), version, correlation, client_id)
    }

    fn correlation(&mut self) -> i32 {
        let correlation = self.next_correlation;
        self.next_correlation = correlation.wrapping_add(1) & i32::MAX;
        correlation
    }

    /// Takes the answer about versions. `Ok(Some(version))` asks again in that version.
    pub(super) fn negotiate(&mut self, asked: i16, frame: Bytes) -> Result<Option<i16>, String> {
        self.check_correlation(&frame, self.next_correlation.wrapping_sub(1) & i32::MAX)?;
        // A broker that does not know the version says so in version 0, whatever was asked.
        let refused =
            versions::starts_with(frame.get(4..).unwrap_or_default(), ErrorCode::UNSUPPORTED_VERSION);
        let version = if refused { 0 } else { asked };
        let answer = frame::decode_response(ApiKey::ApiVersions, version, frame)
            .map_err(|e| rubbish(ApiKey::ApiVersions, &e))?;
        let Response::ApiVersions(answer) = answer else {
            return Err("it answered something else".to_owned());
        };
        match answer.error_code {
            ErrorCode::NONE => {
                self.phase = Phase::Ready(Versions::new(&answer));
                Ok(None)
            }
            ErrorCode::UNSUPPORTED_VERSION if asked > 0 => {
                Ok(Some(versions::second_try(&answer).min(asked - 1)))
            }
            code => Err(format!("it refuses to say which versions it speaks: {code}")),
        }
    }

    /// Encodes a request and remembers what its answer is for.
    pub(super) fn write(
        &mut self,
        now: Instant,
        ticket: Ticket,
        request: &Request,
        version: i16,
        expires: Instant,
        client_id: &str,
    ) -> Bytes {
        let correlation = self.correlation();
        self.last_used = now;
        let key = request.key();
        if expects_answer(request) {
            let ticket = Some(ticket);
            self.in_flight.push_back(InFlight { ticket, correlation, key, version, sent: now, expires });
        }
        encode(request, version, correlation, client_id)
    }

    /// Matches an answer with the oldest request under way; an error when it is rubbish.
    pub(super) fn take_answer(
        &mut self,
        now: Instant,
        frame: Bytes,
    ) -> Result<(Option<Ticket>, Response), String> {
        let Some(oldest) = self.in_flight.front() else {
            return Err("it answered although nothing was asked".to_owned());
        };
        self.check_correlation(&frame, oldest.correlation)?;
        let response =
            frame::decode_response(oldest.key, oldest.version, frame).map_err(|e| rubbish(oldest.key, &e))?;
        let ticket = oldest.ticket;
        self.in_flight.pop_front();
        self.last_used = now;
        self.muted_until = now + throttle(&response);
        Ok((ticket, response))
    }

    fn check_correlation(&self, frame: &Bytes, expected: i32) -> Result<(), String> {
        match frame::correlation_id(frame) {
            Ok(id) if id == expected => Ok(()),
            Ok(id) => Err(format!("it answered request {id} where the answer to {expected} is due")),
            Err(error) => Err(format!("its answer has no header: {error}")),
        }
    }

    /// Nobody waits for this answer any more; it will still come.
    pub(super) fn abandon(&mut self, ticket: Ticket) {
        if let Some(request) = self.in_flight.iter_mut().find(|r| r.ticket == Some(ticket)) {
            request.ticket = None;
        }
    }

    /// What was under way, oldest first.
    pub(super) fn into_tickets(self) -> impl Iterator<Item = Ticket> {
        self.in_flight.into_iter().filter_map(|r| r.ticket)
    }
}

/// A produce with acks=0 is the one request that is never answered.
pub(super) fn expects_answer(request: &Request) -> bool {
    !matches!(request, Request::Produce(p) if p.acks == 0)
}

fn encode(request: &Request, version: i16, correlation_id: i32, client_id: &str) -> Bytes {
    let client_id = Some(client_id.to_owned());
    frame::encode_request(&RequestHeader { key: request.key(), version, correlation_id, client_id }, request)
}

fn rubbish(key: ApiKey, error: &tontine_wire::DecodeError) -> String {
    format!("its answer to {} makes no sense: {error}", key.name())
}
