//! One client: a real member, the application that runs its callbacks, and its connection.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};
use tontine_group::{
    Instant, TopicPartition,
    member::{Callback, Event, GroupProtocol, Member, MemberConfig, Output, SendError, Ticket},
    topics::Topics,
};
use tontine_wire::api::{Request, Response};

pub(crate) struct Client {
    pub(crate) member: Member,
    /// Neither dead nor closed.
    pub(crate) alive: bool,
    /// What the application may read from.
    pub(crate) uses: BTreeSet<TopicPartition>,
    callback: Option<Callback>,
    /// On the way to the coordinator, in order: there is one connection.
    pub(crate) requests: VecDeque<(Ticket, Request)>,
    /// Sent over a connection that broke, and perhaps still to arrive there: nobody waits for the answer.
    pub(crate) stray: Option<Request>,
    /// On the way back.
    pub(crate) answers: VecDeque<(Ticket, Response)>,
    /// Sent and not answered.
    waiting: Vec<Ticket>,
    pub(crate) wake: Option<Instant>,
    looks_for_coordinator: bool,
}

impl Client {
    pub(crate) fn new(index: usize, seed: u64) -> Self {
        let config = MemberConfig {
            group_id: "g".into(),
            client_id: format!("c{index}"),
            session_timeout: super::world::SESSION,
            rebalance_timeout: Duration::from_secs(10),
            max_poll_interval: Duration::from_secs(10),
            request_timeout: Duration::from_secs(5),
            protocol: GroupProtocol::Consumer,
            ..MemberConfig::default()
        };
        Self {
            member: Member::new(config, seed),
            alive: true,
            uses: BTreeSet::new(),
            callback: None,
            requests: VecDeque::new(),
            stray: None,
            answers: VecDeque::new(),
            waiting: Vec::new(),
            wake: None,
            looks_for_coordinator: false,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        let calm = self.callback.is_none() && self.member.due_callback().is_none();
        calm && self.waiting.is_empty() && !self.looks_for_coordinator
    }

    /// Takes what the member says.
    pub(crate) fn drain(&mut self, now: Instant, topics: &Topics) {
        while self.alive {
            match self.member.poll_output() {
                Output::Send { ticket, request, .. } => {
                    self.waiting.push(ticket);
                    self.requests.push_back((ticket, request));
                }
                Output::FindCoordinator => self.looks_for_coordinator = true,
                Output::RefreshTopics { .. } => self.member.handle_topics(now, topics),
                Output::Event(Event::Left) => {
                    assert!(self.uses.is_empty(), "left with partitions");
                    self.stop();
                }
                Output::Event(Event::Error(error)) => panic!("{error}"),
                Output::Plan(_) => panic!("nobody leads a group of this protocol"),
                Output::Event(Event::CallbackDue(_) | Event::Transition(_) | Event::Warned(_)) => {}
                Output::Wait(deadline) => {
                    self.wake = deadline.map(|deadline| deadline.at.max(now));
                    return;
                }
            }
        }
    }

    /// The coordinator is found, if it was looked for.
    pub(crate) fn find(&mut self, now: Instant) {
        if std::mem::take(&mut self.looks_for_coordinator) {
            self.member.handle_coordinator(now, true);
        }
    }

    /// The application polls: a callback begins, or ends. `fails`: with an error.
    pub(crate) fn turn(&mut self, now: Instant, fails: bool) {
        match self.callback.take() {
            Some(Callback::Revoke(gone) | Callback::Lost(gone)) => {
                self.uses.retain(|partition| !gone.partitions().contains(partition));
                self.member.revoke_done(now, gone);
            }
            Some(Callback::Assign(granted)) if fails => self.member.assign_failed(now, granted),
            Some(Callback::Assign(granted)) => self.member.assign_done(now, granted),
            None => {
                self.member.poll(now);
                self.callback = self.member.begin_callback(now);
                if let Some(Callback::Assign(granted)) = &self.callback {
                    self.uses.extend(granted.added().iter().cloned());
                }
            }
        }
    }

    /// An answer arrives.
    pub(crate) fn hear(&mut self, now: Instant) -> bool {
        let Some((ticket, response)) = self.answers.pop_front() else { return false };
        self.waiting.retain(|waiting| *waiting != ticket);
        self.member.handle_response(now, ticket, Ok(response));
        true
    }

    /// The connection breaks. What was on its way is lost, or arrives later for nobody.
    pub(crate) fn break_off(&mut self, now: Instant, error: SendError, arrives_later: bool) {
        let sent = self.requests.drain(..).next();
        if arrives_later {
            self.stray = sent.map(|(_, request)| request).or(self.stray.take());
        }
        self.answers.clear();
        for ticket in std::mem::take(&mut self.waiting) {
            self.member.handle_response(now, ticket, Err(error));
        }
    }

    /// Its process is gone.
    pub(crate) fn stop(&mut self) {
        self.alive = false;
        self.uses.clear();
        (self.callback, self.wake) = (None, None);
        self.answers.clear();
        self.waiting.clear();
        // A farewell that is on its way may arrive.
        self.stray = self.requests.drain(..).next().map(|(_, request)| request);
    }
}
