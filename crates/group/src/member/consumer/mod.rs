//! The consumer protocol (KIP-848): one request, ConsumerGroupHeartbeat, does everything, and the coordinator deals the
//! partitions.
//!
//! Here are the data of a membership, the commands and the routing of answers. What a heartbeat says is in `request`, what
//! its answer means in `answer`; when the next step is taken in `drive`; which callback is due, and what follows from its
//! end, in `reconcile`; how a membership ends in `end` and `leave`; what a refused commit means in `commit`. Mirrors
//! `ConsumerMembershipManager`, `AbstractMembershipManager` and `ConsumerHeartbeatRequestManager`.

mod answer;
mod commit;
mod drive;
mod end;
mod holdings;
mod leave;
mod reconcile;
mod request;
mod state;

use super::{
    Event, GroupProtocol, MemberConfig, MemberError, MemberState, MembershipOperation, Output, SendError,
    Ticket, Transition,
    announced::Announced,
    backoff::{Backoff, Jitter},
    heart::Heart,
    outbox::Outbox,
    reach::Reach,
};
use crate::{Cause, Instant, TopicPartition, ids::Membership, topics::Topics};
use holdings::{Holdings, Names, Places};
use leave::Farewell;
use request::Wish;
use state::{Reconciling, State};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tontine_wire::{Uuid, api::Response};

/// How often heartbeats go out until the coordinator has said how often it wants them: Kafka's default.
const FIRST_INTERVAL: Duration = Duration::from_secs(5);

/// One membership of a group that speaks the consumer protocol.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) config: MemberConfig,
    state: State,
    /// Made here, and the same for the whole life of the member.
    member_id: String,
    /// `None` outside of the group.
    epoch: Option<i32>,
    /// A heartbeat that joins has gone out, and nothing since has shown that this is over: the coordinator may count on
    /// this member.
    may_be_member: bool,
    wish: Wish,
    /// What the coordinator knows that is wanted; `None` when it has to be told everything.
    said: Option<Wish>,
    /// A regular expression was wanted at some time, so that it has to be said that there is none.
    has_used_regex: bool,
    /// The next heartbeat names the partitions.
    report: bool,
    /// The next heartbeat goes out as soon as none is under way.
    speak: bool,
    held: Holdings,
    /// The latest assignment.
    told: Places,
    topics: Topics,
    names: Names,
    /// Assigned waits until then for the names of topics.
    names_until: Option<Instant>,
    /// When to ask again for the names of topics that are still missing.
    ask_names_at: Option<Instant>,
    names_backoff: Backoff,
    /// Whether a callback has begun and its token is not back yet.
    running: bool,
    /// Why to join, once that is possible.
    rejoin: Option<Cause>,
    last_cause: Option<Cause>,
    interest: BTreeSet<Arc<str>>,
    reach: Reach,
    /// Whether the application has polled since it subscribed or was thrown out for not polling.
    may_join: bool,
    last_poll: Instant,
    jitter: Jitter,
    heart: Heart,
    farewell: Option<Farewell>,
    /// Not to be joined again before: a coordinator that expels the member each time must not keep both busy.
    rejoin_at: Instant,
    rejoin_backoff: Backoff,
    /// The coordinator says that a former self of this static member still has the instance id.
    unreleased: Option<Unreleased>,
    /// A twin has the instance id.
    fenced: bool,
    /// The broker does not speak the protocol.
    unsupported: bool,
    announced: Announced,
    outbox: Outbox,
}

impl Consumer {
    /// A member that has not subscribed to anything yet.
    pub(super) fn new(config: MemberConfig, seed: u64) -> Self {
        let backoff = Backoff::new(config.retry_backoff, config.retry_backoff_max);
        let heart =
            Heart::new(FIRST_INTERVAL, config.session_timeout, config.request_timeout, backoff.clone());
        let mut jitter = Jitter::new(seed);
        Self {
            member_id: member_id(&mut jitter),
            config,
            state: State::Unjoined,
            epoch: None,
            may_be_member: false,
            wish: Wish::default(),
            said: None,
            has_used_regex: false,
            report: false,
            speak: false,
            held: Holdings::default(),
            told: Places::default(),
            topics: Topics::new(),
            names: Names::default(),
            names_until: None,
            ask_names_at: None,
            names_backoff: backoff.clone(),
            running: false,
            rejoin: None,
            last_cause: None,
            interest: BTreeSet::new(),
            reach: Reach::default(),
            may_join: false,
            last_poll: Instant::ZERO,
            jitter,
            heart,
            farewell: None,
            rejoin_at: Instant::ZERO,
            rejoin_backoff: backoff.clone(),
            unreleased: None,
            fenced: false,
            unsupported: false,
            announced: Announced::default(),
            outbox: Outbox::default(),
        }
    }

    // Commands.

    pub(super) fn subscribe(&mut self, now: Instant, topics: BTreeSet<Arc<str>>) {
        if topics.is_empty() {
            return self.unsubscribe(now);
        }
        self.wish_for(now, Wish { topics, regex: None });
    }

    pub(super) fn subscribe_matching(&mut self, now: Instant, regex: &str) {
        self.wish_for(now, Wish { topics: BTreeSet::new(), regex: Some(regex.to_owned()) });
    }

    fn wish_for(&mut self, now: Instant, wish: Wish) {
        if self.wish.is_empty() && matches!(self.state, State::Unjoined) {
            self.may_join = false;
        }
        self.speak |= self.wish != wish;
        self.wish = wish;
        self.tell_interest();
        self.advance(now);
    }

    pub(super) fn unsubscribe(&mut self, now: Instant) {
        self.leave(now, MembershipOperation::Default);
    }

    pub(super) fn poll(&mut self, now: Instant) {
        self.last_poll = now;
        self.may_join = true;
        self.announced.polled();
        self.advance(now);
    }

    /// There is no such request in this protocol. What is possible is to say everything again, at once.
    pub(super) fn request_rejoin(&mut self, now: Instant) {
        self.said = None;
        self.speak = true;
        self.advance(now);
    }

    // Inputs.

    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        ticket: Ticket,
        result: Result<Response, SendError>,
    ) {
        if let Some(sent_under) = self.heart.answered(ticket) {
            self.heartbeat_answered(now, &sent_under, result);
        } else if self.farewell.as_ref().is_some_and(|farewell| farewell.is_sent_as(ticket)) {
            self.farewell_answered(now, result);
        }
        self.advance(now);
    }

    pub(super) fn handle_topics(&mut self, now: Instant, topics: &Topics) {
        if self.topics != *topics {
            self.topics = topics.clone();
            self.names = Names::of(topics);
        }
        self.take_names(now);
        self.advance(now);
    }

    pub(super) fn handle_coordinator(&mut self, now: Instant, known: bool) {
        if !known {
            self.lose_coordinator();
        } else if self.reach.found() {
            self.meet_coordinator(now);
        }
        self.advance(now);
    }

    /// Whoever is the coordinator now may not have heard what was said last.
    fn meet_coordinator(&mut self, now: Instant) {
        if self.heart.is_waiting() {
            self.said = None;
        }
        self.heart.found(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.poll_deadline().is_some_and(|deadline| now >= deadline) {
            self.poll_deadline_missed(now);
        }
        if self.is_beating() && self.reach.is_known() && self.heart.session_expired(now) {
            self.lose_coordinator();
        }
        self.advance(now);
    }

    // Output and getters.

    pub(super) fn poll_output(&mut self) -> Output {
        self.outbox.pop().unwrap_or_else(|| Output::Wait(self.next_deadline()))
    }

    pub(super) fn state(&self) -> MemberState {
        self.state.name()
    }

    pub(super) fn membership(&self) -> Option<Membership> {
        self.epoch.map(|epoch| self.membership_at(epoch))
    }

    fn membership_at(&self, epoch: i32) -> Membership {
        Membership {
            member_id: self.member_id.clone(),
            generation: epoch,
            instance_id: self.config.instance_id.clone(),
        }
    }

    pub(super) fn confirmed(&self) -> Instant {
        self.heart.confirmed()
    }

    pub(super) fn member_id(&self) -> &str {
        &self.member_id
    }

    pub(super) fn assignment(&self) -> &BTreeSet<TopicPartition> {
        self.held.names()
    }

    pub(super) fn subscription(&self) -> &BTreeSet<Arc<str>> {
        &self.wish.topics
    }

    pub(super) fn poll_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Unjoined | State::Leaving(_) | State::Failed => None,
            State::Joining | State::Reconciling(_) | State::Acknowledging | State::Stable => {
                Some(self.last_poll + self.config.max_poll_interval)
            }
        }
    }

    pub(super) fn last_cause(&self) -> Option<&Cause> {
        self.last_cause.as_ref()
    }

    // What the parts have in common.

    /// Changes the state and tells of it.
    fn go(&mut self, to: State, cause: Option<Cause>) {
        let from = self.state.name();
        self.state = to;
        if cause.is_some() {
            self.last_cause.clone_from(&cause);
        }
        if from != self.state.name() {
            let (to, generation) = (self.state.name(), self.epoch);
            self.outbox.event(Event::Transition(Transition { from, to, cause, generation }));
        }
    }

    /// What is needed to go on with the other protocol, when the broker does not have this one and that is allowed.
    pub(super) fn gives_way(&mut self) -> Option<Successor> {
        if !self.unsupported || self.config.protocol != GroupProtocol::ConsumerOrClassic {
            return None;
        }
        Some(Successor {
            config: self.config.clone(),
            seed: self.jitter.bits(),
            outbox: std::mem::take(&mut self.outbox),
            subscription: std::mem::take(&mut self.wish.topics),
            topics: std::mem::take(&mut self.topics),
            polled_at: self.may_join.then_some(self.last_poll),
        })
    }

    /// Has the next poll return this, once.
    fn report_error(&mut self, error: MemberError) {
        self.announced.error(error, &mut self.outbox);
    }

    /// Whether requests can go out; if not, the coordinator is looked up.
    fn has_coordinator(&mut self) -> bool {
        self.reach.known_or_ask(&mut self.outbox)
    }

    /// The coordinator does not answer, or is another one by now. The membership stays.
    fn lose_coordinator(&mut self) {
        self.reach.lost();
    }

    /// Names the topics whose metadata matter from now on, if they are others than before.
    fn tell_interest(&mut self) {
        if self.wish.topics != self.interest {
            self.interest.clone_from(&self.wish.topics);
            self.ask_metadata();
        }
    }

    fn ask_metadata(&mut self) {
        self.outbox.push(Output::RefreshTopics { topics: self.interest.clone() });
    }
}

/// A wait for an instance id.
#[derive(Debug)]
struct Unreleased {
    since: Instant,
    /// When to say so again.
    warn_at: Instant,
}

/// What a membership of the classic protocol begins with when it takes the place of one that found no coordinator for the
/// consumer protocol.
pub(super) struct Successor {
    pub(super) config: MemberConfig,
    pub(super) seed: u64,
    pub(super) outbox: Outbox,
    pub(super) subscription: BTreeSet<Arc<str>>,
    pub(super) topics: Topics,
    pub(super) polled_at: Option<Instant>,
}

/// A random id as Kafka's clients make them, which never begins with a dash.
fn member_id(jitter: &mut Jitter) -> String {
    loop {
        let bits = (u128::from(jitter.bits()) << 64) | u128::from(jitter.bits());
        let id = Uuid::from_u128(bits).to_string();
        if !id.starts_with('-') {
            return id;
        }
    }
}
