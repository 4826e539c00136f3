//! The brokers' side of the world: requests go in one at a time for each connection, answers go out. What is committed is
//! observed here, when the answer says that it is stored.

use crate::{
    fact::Fact,
    fate::Fate,
    network::Way,
    world::{Happening, INSIDE, World},
};
use bytes::Bytes;
use std::time::Duration;
use tontine::TopicPartition;
use tontine_broker::{BrokerOutput, ConnId, NodeId};
use tontine_group::coordinator::GroupState;
use tontine_wire::{
    ErrorCode,
    api::{
        Request, Response,
        offset_commit::{OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse},
    },
    frame,
    header::RequestHeader,
};

impl World {
    /// Bytes have arrived at a node.
    pub(crate) fn arrived_up(&mut self, id: u64, bytes: &Bytes) {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.accepted && !link.dead) else { return };
        link.to_broker.extend_from_slice(bytes);
        while let Ok(Some(frame)) = frame::split_frame(&mut link.to_broker, 1 << 26) {
            link.queue.push_back(frame);
        }
        self.serve(id);
        self.pump_broker();
    }

    /// Hands the next request of a connection to the broker, when it has answered the one before.
    fn serve(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.busy) else { return };
        let Some(frame) = link.queue.pop_front() else { return };
        link.busy = true;
        match self.fate_of(id, &frame) {
            Some(Fate::Held(time)) => return self.hold_back(id, frame, time),
            Some(fate) => self.mark(id, fate),
            None => {}
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        // What a black hole has taken is not answered when it sees again either.
        link.swallows |= self.broker.nodes().get(&link.node).is_some_and(|node| node.black_hole);
        // What cannot be read is for the broker to judge.
        let Ok((header, request)) = frame::decode_request(frame.clone()) else {
            return self.broker.handle_frame(self.broker_now(), ConnId(id), frame);
        };
        self.look_at(id, &request);
        self.broker.handle_request(self.broker_now(), ConnId(id), header, request);
    }

    fn hold_back(&mut self, id: u64, frame: Bytes, time: Duration) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.queue.push_front(frame);
        let what = format!("a request of {} is held back for {} ms", link.life, time.as_millis());
        self.gated.insert(id);
        self.counts.count("requests held back");
        self.record(Fact::Done(what));
        self.schedule(self.now + time, Happening::Opens(id));
    }

    /// What was held back on a connection goes on.
    pub(crate) fn open_gate(&mut self, id: u64) {
        if self.gated.remove(&id)
            && let Some(link) = self.links.get_mut(&id)
        {
            link.busy = false;
            self.serve(id);
            self.pump_broker();
        }
    }

    fn look_at(&mut self, id: u64, request: &Request) {
        self.requests += 1;
        if self.verbose {
            self.say_request(id, request);
        }
        if self.foreign_records
            && let Some(life) = self.links.get(&id).map(|link| link.life)
        {
            *self.asked.entry((life, request.key() as i16)).or_default() += 1;
        }
        match request {
            Request::JoinGroup(_) | Request::SyncGroup(_) => self.joins += 1,
            Request::ConsumerGroupHeartbeat(heartbeat) => {
                self.joins += u64::from(heartbeat.member_epoch == 0)
            }
            Request::OffsetCommit(commit) => drop(self.commits.insert(id, commit.clone())),
            _ => {}
        }
    }

    /// Carries out what the brokers want, until they wait.
    pub(crate) fn pump_broker(&mut self) {
        loop {
            if self.is_torn() {
                return self.stop_in_the_middle();
            }
            match self.broker.poll_output() {
                BrokerOutput::Reply { conn, response, .. } if conn.0 >= INSIDE => {
                    self.inside = Some(response)
                }
                BrokerOutput::Reply { conn, version, correlation_id, response } => {
                    self.reply(conn.0, version, correlation_id, response);
                    self.serve(conn.0);
                }
                // The members of a simulation ask for nothing that is not spoken.
                BrokerOutput::Frame { conn, .. } | BrokerOutput::Silent { conn } => {
                    if let Some(link) = self.links.get_mut(&conn.0) {
                        link.busy = false;
                    }
                    self.serve(conn.0);
                }
                BrokerOutput::Work(work) => self.broker.handle_done(self.broker_now(), work.run()),
                BrokerOutput::Disconnect { conn, why } => self.disconnect(conn.0, &why.to_string()),
                BrokerOutput::Transition(change) => {
                    self.counts.count(format!("rebalance: {}", class(&change.cause)));
                    self.rounds += u64::from(change.to == GroupState::CompletingRebalance);
                    self.record(Fact::Group(format!(
                        "{:?} -> {:?}, generation {} ({})",
                        change.from, change.to, change.generation, change.cause
                    )));
                }
                BrokerOutput::Wait(at) => {
                    let at = at.map(|at| self.booted + at.since_origin());
                    if let Some(at) = at.filter(|at| self.broker_timer.is_none_or(|set| set > *at)) {
                        let at = at.max(self.now);
                        self.broker_timer = Some(at);
                        self.schedule(at, Happening::BrokerTimer);
                    }
                    return;
                }
            }
        }
    }

    fn reply(&mut self, id: u64, version: i16, correlation_id: i32, mut response: Response) {
        if let Some(lie) = &mut self.lie {
            lie.tell(&mut response);
        }
        if self.throttle.0 > self.now {
            slow_down(&mut response, self.throttle.1);
        }
        if self.verbose {
            self.say_answer(id, &response);
        }
        if let Response::JoinGroup(answer) = &response
            && answer.error_code.is_ok()
        {
            self.joined.insert(answer.member_id.clone(), self.rounds);
        }
        if let Response::OffsetCommit(answer) = &response
            && let Some(request) = self.commits.remove(&id)
        {
            self.committed(&request, answer);
        }
        let bytes = frame::encode_response(version, correlation_id, &response);
        if let Some(link) = self.links.get_mut(&id) {
            link.busy = false;
        }
        if !self.lets_answer(id) {
            return;
        }
        let Some(pieces) = self.links.get_mut(&id).map(|link| link.pieces(bytes)) else { return };
        for piece in pieces {
            let leaves = self.disk_is_done();
            let Some(link) = self.links.get_mut(&id).filter(|link| !link.dead) else { return };
            let at = link.arrival(leaves, Way::Down);
            self.schedule(at, Happening::Arrives(id, Way::Down, piece));
        }
    }

    /// Everything but fetches, which say what records say, goes into the timeline.
    fn say_request(&mut self, id: u64, request: &Request) {
        let Some(life) = self.links.get(&id).map(|link| link.life) else { return };
        if !matches!(request, Request::Fetch(_) | Request::ApiVersions(_)) {
            self.record(Fact::Said(life, format!("-> {request:?}")));
        }
    }

    fn say_answer(&mut self, id: u64, response: &Response) {
        let Some(life) = self.links.get(&id).map(|link| link.life) else { return };
        if !matches!(response, Response::Fetch(_) | Response::ApiVersions(_) | Response::Metadata(_)) {
            self.record(Fact::Said(life, format!("<- {response:?}")));
        }
    }

    /// The name of a topic in a commit, which may say its id alone.
    pub(crate) fn name_in(&self, topic: &OffsetCommitRequestTopic) -> String {
        match topic.name.is_empty() {
            true => self.topic_names.get(&topic.topic_id).cloned().unwrap_or_default(),
            false => topic.name.clone(),
        }
    }

    fn committed(&mut self, request: &OffsetCommitRequest, answer: &OffsetCommitResponse) {
        let mut refused = false;
        for (asked, answered) in request.topics.iter().zip(&answer.topics) {
            let name = self.name_in(asked);
            for (asked, answered) in asked.partitions.iter().zip(&answered.partitions) {
                if answered.error_code == ErrorCode::NONE {
                    self.counts.count("commits accepted");
                    let partition = TopicPartition::new(name.as_str(), asked.partition_index);
                    self.scan(&partition);
                    self.note_commit(&partition, asked.committed_offset);
                    self.record(Fact::Committed(
                        request.member_id.clone(),
                        partition,
                        asked.committed_offset,
                    ));
                } else {
                    self.counts.count(format!("commits refused: {}", answered.error_code));
                    // Whoever is refused as a member, or an old one, has nothing stored.
                    refused |= answered.error_code.is_retriable();
                }
            }
        }
        if refused {
            self.note_refusal(request);
        }
    }

    pub(crate) fn disconnect(&mut self, id: u64, why: &str) {
        let _ = why;
        self.commits.remove(&id);
        let Some(link) = self.links.get_mut(&id) else { return };
        link.accepted = false;
        if link.dead {
            return;
        }
        let at = link.arrival(self.now, Way::Down);
        self.schedule(at, Happening::Closed(id));
    }

    /// Asks a node directly, without a network; nothing when it does not answer at once.
    pub(crate) fn ask(
        &mut self,
        node: NodeId,
        version: i16,
        request: impl Into<Request>,
    ) -> Option<Response> {
        self.next_link += 1;
        let conn = ConnId(INSIDE + self.next_link);
        let request = request.into();
        let header = RequestHeader { key: request.key(), version, correlation_id: 1, client_id: None };
        self.inside = None;
        self.broker.handle_connected(self.broker_now(), conn, node, "10.0.0.2");
        self.broker.handle_request(self.broker_now(), conn, header, request);
        self.pump_broker();
        self.broker.handle_disconnected(self.broker_now(), conn);
        self.pump_broker();
        self.inside.take()
    }
}

/// Asks for patience.
fn slow_down(response: &mut Response, ms: i32) {
    match response {
        Response::Fetch(answer) => answer.throttle_time_ms = ms,
        Response::Metadata(answer) => answer.throttle_time_ms = ms,
        Response::OffsetCommit(answer) => answer.throttle_time_ms = ms,
        Response::OffsetFetch(answer) => answer.throttle_time_ms = ms,
        Response::ListOffsets(answer) => answer.throttle_time_ms = ms,
        Response::FindCoordinator(answer) => answer.throttle_time_ms = ms,
        Response::JoinGroup(answer) => answer.throttle_time_ms = ms,
        Response::SyncGroup(answer) => answer.throttle_time_ms = ms,
        Response::Heartbeat(answer) => answer.throttle_time_ms = ms,
        Response::LeaveGroup(answer) => answer.throttle_time_ms = ms,
        Response::ConsumerGroupHeartbeat(answer) => answer.throttle_time_ms = ms,
        _ => {}
    }
}

/// The kind of a cause, without names and numbers.
fn class(cause: &tontine_group::Cause) -> String {
    let text = format!("{cause:?}");
    text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}
