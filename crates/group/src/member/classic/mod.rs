//! The classic protocol, eager and cooperative: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
//!
//! Here are the data of a membership, the commands and the routing of answers. What each answer means is in `join`, `sync`,
//! `beat` and `leave`; when the next step is taken in `drive`; which callback is due in `callbacks`; how a membership ends in
//! `end`. Mirrors `AbstractCoordinator` and `ConsumerCoordinator`, without their second thread.

mod audit;
mod beat;
mod callbacks;
mod commit;
mod drive;
mod end;
mod follow;
mod join;
mod leave;
mod state;
mod sync;

use super::{
    Event, MemberConfig, MemberError, MemberState, MembershipOperation, Output, SendError, Ticket,
    Transition,
    announced::Announced,
    backoff::{Backoff, Jitter},
    heart::Heart,
    leader::Plan,
    outbox::Outbox,
    parting::Parting,
    reach::Reach,
    watch::Watch,
};
use crate::{Cause, Instant, TopicPartition, assignor::RebalanceProtocol, ids::Membership, topics::Topics};
use audit::Audit;
use leave::LateJoin;
use state::{Joining, State, SyncStep, Syncing};
use std::{collections::BTreeSet, sync::Arc};
use tontine_wire::api::Response;

/// What the coordinator knows the member by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Identity {
    /// Empty until the coordinator has given one.
    member_id: String,
    /// `None` outside of a generation.
    generation: Option<i32>,
}

/// The latest assignment, for assignors that remember it in their user data, even after it was lost.
#[derive(Debug)]
struct Remembered {
    partitions: Vec<TopicPartition>,
    generation: i32,
}

/// One membership of a classic group.
#[derive(Debug)]
pub(super) struct Classic {
    config: MemberConfig,
    protocol: RebalanceProtocol,
    state: State,
    identity: Identity,
    subscription: BTreeSet<Arc<str>>,
    /// The subscription that the latest JoinGroup carried.
    joined_as: BTreeSet<Arc<str>>,
    /// Rounds in a row that brought topics which were not subscribed to.
    mismatches: u32,
    owned: BTreeSet<TopicPartition>,
    remembered: Remembered,
    /// Whether a callback has begun and its token is not back yet.
    running: bool,
    /// Why to join (again), once that is possible.
    rejoin: Option<Cause>,
    last_cause: Option<Cause>,
    /// Set while this member leads the group.
    watch: Option<Watch>,
    /// Whether subscription or metadata may have changed since the assignment was checked against them.
    recheck: bool,
    /// After the return of a static member: whether everything has an owner.
    audit: Audit,
    topics: Topics,
    /// The topics that [`Output::RefreshTopics`] named last.
    interest: BTreeSet<Arc<str>>,
    reach: Reach,
    /// Whether the application has polled since it subscribed or was thrown out for not polling.
    may_join: bool,
    last_poll: Instant,
    /// No JoinGroup or SyncGroup before this point in time.
    retry_at: Instant,
    backoff: Backoff,
    jitter: Jitter,
    heart: Heart,
    partings: Vec<Parting>,
    /// The JoinGroup that is on its way, whatever became of this member since it was sent.
    join_sent: Option<Ticket>,
    /// Joins that were on their way when their member left.
    late_joins: Vec<LateJoin>,
    commits_in_flight: usize,
    /// Fenced by a twin: nothing is ever sent again.
    fenced: bool,
    announced: Announced,
    outbox: Outbox,
}

impl Classic {
    /// A member that has not subscribed to anything yet.
    pub(super) fn new(config: MemberConfig, seed: u64) -> Self {
        Self::with_outbox(config, seed, Outbox::default())
    }

    /// One that goes on with the numbering of requests of another.
    pub(super) fn with_outbox(config: MemberConfig, seed: u64, outbox: Outbox) -> Self {
        let backoff = Backoff::new(config.retry_backoff, config.retry_backoff_max);
        let heart = Heart::new(
            config.heartbeat_interval,
            config.session_timeout,
            config.request_timeout,
            backoff.clone(),
        );
        Self {
            protocol: config.rebalance_protocol(),
            config,
            state: State::Unjoined,
            identity: Identity::default(),
            subscription: BTreeSet::new(),
            joined_as: BTreeSet::new(),
            mismatches: 0,
            owned: BTreeSet::new(),
            remembered: Remembered { partitions: Vec::new(), generation: -1 },
            running: false,
            rejoin: None,
            last_cause: None,
            watch: None,
            recheck: false,
            audit: Audit::Idle,
            topics: Topics::new(),
            interest: BTreeSet::new(),
            reach: Reach::default(),
            may_join: false,
            last_poll: Instant::ZERO,
            retry_at: Instant::ZERO,
            backoff,
            jitter: Jitter::new(seed),
            heart,
            partings: Vec::new(),
            join_sent: None,
            late_joins: Vec::new(),
            commits_in_flight: 0,
            fenced: false,
            announced: Announced::default(),
            outbox,
        }
    }

    // Commands.

    pub(super) fn subscribe(&mut self, now: Instant, topics: BTreeSet<Arc<str>>) {
        if topics.is_empty() {
            return self.unsubscribe(now);
        }
        if self.subscription.is_empty() && matches!(self.state, State::Unjoined) {
            self.may_join = false;
        }
        self.subscription = topics;
        self.recheck = true;
        self.tell_interest();
        self.advance(now);
    }

    pub(super) fn unsubscribe(&mut self, now: Instant) {
        let reason = "the consumer unsubscribed from all topics";
        self.leave(now, reason, MembershipOperation::Default);
    }

    pub(super) fn poll(&mut self, now: Instant) {
        self.last_poll = now;
        self.may_join = true;
        self.announced.polled();
        if let State::Joining(joining) = &mut self.state {
            joining.await_poll = false;
        }
        self.advance(now);
    }

    pub(super) fn request_rejoin(&mut self, now: Instant, cause: Cause) {
        if matches!(self.state, State::Stable) {
            self.want_rejoin(cause);
        }
        self.advance(now);
    }

    pub(super) fn set_commits_in_flight(&mut self, now: Instant, commits: usize) {
        self.commits_in_flight = commits;
        self.advance(now);
    }

    // Inputs.

    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        ticket: Ticket,
        result: Result<Response, SendError>,
    ) {
        self.late_join_answered(now, ticket, result.as_ref().ok());
        if let Some(sent_under) = self.heart.answered(ticket) {
            self.heartbeat_answered(now, &sent_under, result);
        } else if let Some(index) = self.partings.iter().position(|p| p.ticket == Some(ticket)) {
            self.leave_answered(now, index, result);
        } else if self.audit.is_sent_as(ticket) {
            self.audited(now, result);
        } else {
            self.round_answered(now, ticket, result);
        }
        self.advance(now);
    }

    /// The answer to a request of the current round; every other one has been given up and does not matter.
    fn round_answered(&mut self, now: Instant, ticket: Ticket, result: Result<Response, SendError>) {
        match &mut self.state {
            State::Joining(Joining { request: request @ Some(_), .. }) if *request == Some(ticket) => {
                *request = None;
                self.join_answered(now, result);
            }
            State::Syncing(Syncing { step, .. }) => {
                let SyncStep::Sent { ticket: sent, plan } = step else { return };
                if *sent == ticket {
                    *step = SyncStep::Ready { plan: std::mem::take(plan) };
                    self.sync_answered(now, result);
                }
            }
            State::Leaving(leaving) if leaving.awaited == Some(ticket) => {
                leaving.awaited = None;
                self.awaited_join_answered(result);
            }
            State::Leaving(leaving) if leaving.round.is_some() => {
                self.followed_round_answered(now, ticket, result)
            }
            State::Unjoined
            | State::Preparing
            | State::Joining(_)
            | State::Applying(_)
            | State::Stable
            | State::Leaving(_)
            | State::Fenced => {}
        }
    }

    pub(super) fn handle_topics(&mut self, now: Instant, topics: &Topics) {
        if self.topics != *topics {
            self.topics = topics.clone();
            self.recheck = true;
        }
        self.take_metadata();
        self.advance(now);
    }

    pub(super) fn handle_plan(&mut self, now: Instant, plan: Plan) {
        if let Some(Syncing { step, assignor }) = self.state.syncing_mut()
            && let SyncStep::Dealing { ticket } = step
            && *ticket == plan.ticket
        {
            match plan.shares {
                Ok(plan) => *step = SyncStep::Ready { plan },
                Err(message) => {
                    let error = MemberError::AssignorPanicked { assignor: assignor.clone(), message };
                    self.planning_failed(now, error);
                }
            }
        }
        self.advance(now);
    }

    pub(super) fn handle_coordinator(&mut self, now: Instant, known: bool) {
        if !known {
            self.lose_coordinator();
        } else if self.reach.found() {
            self.heart.found(now);
        }
        self.advance(now);
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
        Some(Membership {
            member_id: self.identity.member_id.clone(),
            generation: self.identity.generation?,
            instance_id: self.config.instance_id.clone(),
        })
    }

    pub(super) fn confirmed(&self) -> Instant {
        self.heart.confirmed()
    }

    pub(super) fn member_id(&self) -> &str {
        &self.identity.member_id
    }

    pub(super) fn assignment(&self) -> &BTreeSet<TopicPartition> {
        &self.owned
    }

    pub(super) fn subscription(&self) -> &BTreeSet<Arc<str>> {
        &self.subscription
    }

    pub(super) fn rebalance_protocol(&self) -> RebalanceProtocol {
        self.protocol
    }

    pub(super) fn poll_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Unjoined | State::Leaving(_) | State::Fenced => None,
            State::Preparing | State::Joining(_) | State::Syncing(_) | State::Applying(_) | State::Stable => {
                Some(self.last_poll + self.config.max_poll_interval)
            }
        }
    }

    pub(super) fn last_cause(&self) -> Option<&Cause> {
        self.last_cause.as_ref()
    }

    pub(super) fn is_leader(&self) -> bool {
        self.watch.is_some()
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
            let (to, generation) = (self.state.name(), self.identity.generation);
            self.outbox.event(Event::Transition(Transition { from, to, cause, generation }));
        }
    }

    /// Wants another round; the first reason is the one that counts.
    fn want_rejoin(&mut self, cause: Cause) {
        self.rejoin.get_or_insert(cause);
    }

    /// Has the next poll return this, once.
    fn report(&mut self, error: MemberError) {
        self.announced.error(error, &mut self.outbox);
    }

    /// Whether requests can go out; if not, the coordinator is looked up.
    fn has_coordinator(&mut self) -> bool {
        self.reach.known_or_ask(&mut self.outbox)
    }

    /// The coordinator does not answer, or is another one by now. The membership stays; requests of the round that it has
    /// not answered go out again, to whoever is found.
    fn lose_coordinator(&mut self) {
        if !self.reach.lost() {
            return;
        }
        match &mut self.state {
            State::Joining(joining) => joining.request = None,
            State::Syncing(syncing) => syncing.unsend(),
            State::Leaving(leaving) => leaving.coordinator_lost(),
            State::Unjoined | State::Preparing | State::Applying(_) | State::Stable | State::Fenced => {}
        }
    }

    pub(super) fn ask_metadata(&mut self) {
        self.outbox.push(Output::RefreshTopics { topics: self.interest.clone() });
    }

    /// Names the topics whose metadata matter from now on, if they are others than before.
    fn tell_interest(&mut self) -> bool {
        let mut topics = self.subscription.clone();
        if let Some(watch) = &self.watch {
            topics.extend(watch.topics().iter().cloned());
        }
        let changed = topics != self.interest;
        if changed {
            self.interest.clone_from(&topics);
            self.outbox.push(Output::RefreshTopics { topics });
        }
        changed
    }
}
