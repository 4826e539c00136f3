//! A machine that sends requests for somebody else: one command, one answer. What to ask, and whether to try again, is
//! decided by whoever sends the commands.
//!
//! Pure, as every machine. `R` is what an answer is handed back with: a channel in the async front, a number in tests.

use crate::{
    cluster::{Cluster, ClusterOutput, ConnId, Lane, SendError, Target, Ticket},
    machine::{Machine, MachineOutput},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tontine_group::{Instant, time::soonest};
use tontine_wire::api::{Request, Response};

/// Sends requests and hands the answers back.
#[derive(Debug)]
pub struct Requester<R> {
    cluster: Cluster,
    under_way: BTreeMap<Ticket, R>,
    pauses: BTreeMap<(Instant, u64), R>,
    next_pause: u64,
    events: VecDeque<(R, Answer)>,
    abandoned: bool,
}

/// What a [`Requester`] is asked.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all that is asked is to send a request")]
pub enum Ask<R> {
    /// Send a request.
    Send {
        /// Comes back with the answer.
        reply: R,
        /// Whom to.
        target: Target,
        /// What.
        request: Request,
        /// In no higher version than this.
        at_most: i16,
        /// How long the answer may take.
        timeout: Duration,
    },
    /// Answer after this long.
    Pause {
        /// Comes back afterwards.
        reply: R,
        /// How long.
        time: Duration,
    },
    /// What is known of leaders and brokers is out of date.
    Refresh,
    /// What is known of a group's coordinator is out of date.
    CoordinatorMoved(Arc<str>),
}

/// What a [`Requester`] answers.
#[derive(Debug)]
pub enum Answer {
    /// The broker's answer, or why there is none.
    Response(Result<Response, SendError>),
    /// The pause is over.
    Paused,
}

impl<R> Requester<R> {
    /// A requester for this cluster.
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            under_way: BTreeMap::new(),
            pauses: BTreeMap::new(),
            next_pause: 0,
            events: VecDeque::new(),
            abandoned: false,
        }
    }
}

impl<R: Send + 'static> Machine for Requester<R> {
    type Command = Ask<R>;
    type Event = (R, Answer);

    fn handle_command(&mut self, now: Instant, command: Ask<R>) {
        match command {
            Ask::Send { reply, target, request, at_most, timeout } => {
                let ticket = self.cluster.send_at_most(now, target, Lane::Other, request, timeout, at_most);
                self.under_way.insert(ticket, reply);
            }
            Ask::Pause { reply, time } => {
                self.next_pause += 1;
                self.pauses.insert((now + time, self.next_pause), reply);
            }
            Ask::Refresh => self.cluster.refresh_metadata(now),
            Ask::CoordinatorMoved(group) => self.cluster.coordinator_lost(now, &group),
        }
    }

    fn handle_abandoned(&mut self, _now: Instant) {
        self.abandoned = true;
    }

    fn handle_connected(&mut self, now: Instant, conn: ConnId) {
        self.cluster.handle_connected(now, conn);
    }

    fn handle_disconnected(&mut self, now: Instant, conn: ConnId, why: String) {
        self.cluster.handle_disconnected(now, conn, &why);
    }

    fn handle_frame(&mut self, now: Instant, conn: ConnId, frame: Bytes) {
        self.cluster.handle_frame(now, conn, frame);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(pause) = self.pauses.first_entry().filter(|p| p.key().0 <= now) {
            self.events.push_back((pause.remove(), Answer::Paused));
        }
        self.cluster.handle_timeout(now);
    }

    fn poll_output(&mut self) -> MachineOutput<Self::Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return MachineOutput::Event(event);
            }
            match self.cluster.poll_output() {
                ClusterOutput::Connect { conn, host, port } => {
                    return MachineOutput::Connect { conn, host, port };
                }
                ClusterOutput::Write { conn, bytes } => return MachineOutput::Write { conn, bytes },
                ClusterOutput::Close { conn } => return MachineOutput::Close { conn },
                ClusterOutput::Response { ticket, result } => {
                    if let Some(reply) = self.under_way.remove(&ticket) {
                        return MachineOutput::Event((reply, Answer::Response(result)));
                    }
                }
                ClusterOutput::MetadataChanged
                | ClusterOutput::CoordinatorFound { .. }
                | ClusterOutput::CoordinatorLost { .. }
                | ClusterOutput::CoordinatorRefused { .. } => {}
                ClusterOutput::Wait(_) if self.abandoned => return MachineOutput::Stop,
                ClusterOutput::Wait(until) => {
                    let pause = self.pauses.first_key_value().map(|((at, _), _)| *at);
                    return MachineOutput::Wait(soonest(until, pause));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ClusterSettings;
    use tontine_wire::api::list_groups::ListGroupsRequest;

    fn wait<R: Send + 'static>(
        requester: &mut Requester<R>,
    ) -> (Vec<MachineOutput<(R, Answer)>>, Option<Instant>) {
        let mut outputs = Vec::new();
        loop {
            match requester.poll_output() {
                MachineOutput::Wait(until) => return (outputs, until),
                MachineOutput::Stop => return (outputs, None),
                output => outputs.push(output),
            }
        }
    }

    #[test]
    fn every_command_has_its_answer_and_an_abandoned_requester_stops() {
        let bootstrap = vec![("one".to_owned(), 1)];
        let cluster = Cluster::new(ClusterSettings { bootstrap, ..ClusterSettings::default() }, 1);
        let mut requester = Requester::new(cluster);
        let request = ListGroupsRequest::default().into();
        let timeout = Duration::from_millis(900);
        requester.handle_command(Instant::ZERO, Ask::Pause { reply: 'p', time: Duration::from_millis(20) });
        let send = Ask::Send { reply: 's', target: Target::Any, request, at_most: i16::MAX, timeout };
        requester.handle_command(Instant::ZERO, send);
        let mut answers = Vec::new();
        for _ in 0..10_000 {
            let (outputs, until) = wait(&mut requester);
            answers.extend(outputs.into_iter().filter_map(|o| match o {
                MachineOutput::Event((reply, answer)) => Some((reply, answer)),
                _ => None,
            }));
            if answers.len() == 2 {
                break;
            }
            requester.handle_timeout(until.expect("something is still to come"));
        }
        assert!(matches!(&answers[0], ('p', Answer::Paused)));
        assert!(matches!(&answers[1], ('s', Answer::Response(Err(SendError::TimedOut { .. })))));
        requester.handle_abandoned(Instant::ZERO);
        assert!(wait(&mut requester).1.is_none());
    }
}
