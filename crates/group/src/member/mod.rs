//! The client's side of the group protocols: one membership as a state machine.
//!
//! [`Member`] is the one face of it; `classic` is what is behind it. It decides when to join, sync, heartbeat and leave,
//! which callbacks are due, and what an error means. It does not decide which topics match a pattern, when to commit, or
//! over which connection something goes. Mirrors `ConsumerCoordinator` and `AbstractCoordinator`.
//!
//! # How to drive it
//!
//! * Call a command or an input, then drain [`Member::poll_output`] until it answers [`Output::Wait`].
//! * Callbacks: [`Event::CallbackDue`] says that one is due and what it will be about. Stop delivery of what goes away; when
//!   the application is inside poll, unsubscribe or close, commit if wanted, then [`Member::begin_callback`], run the
//!   listener, and give the token back with [`Member::revoke_done`] or [`Member::assign_done`]. Ask again until it answers
//!   `None`: several callbacks may follow one another. Until the token is back heartbeats go on and their answers are acted
//!   on, but the rebalance waits.
//! * What is due can change until it is begun: a revocation becomes a loss when the membership ends meanwhile.
//! * `assignment()` still holds the partitions while they are revoked or lost, and already holds them while they are
//!   assigned.

mod backoff;
mod callback;
mod classic;
mod config;
mod heart;
mod leader;
mod outbox;
mod output;
mod parting;
mod reason;
mod watch;

pub use callback::{Callback, Due, Granted, Occasion, Revocation};
pub use config::MemberConfig;
pub use leader::{Plan, Planning};
pub use output::{CommitRefusal, Deadline, Event, MemberError, Output, SendError, Ticket, Transition, Why};

use crate::{Cause, Instant, TopicPartition, assignor::RebalanceProtocol, ids::Membership, topics::Topics};
use classic::Classic;
use std::{collections::BTreeSet, fmt, sync::Arc};
use tontine_wire::{ErrorCode, api::Response};

/// Where a membership stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberState {
    /// Not a member, and not about to become one before the next poll, or before a loss was told.
    Unjoined,
    /// A revocation is due before the join.
    Preparing,
    /// JoinGroup is under way, perhaps waiting for the coordinator or for a backoff.
    Joining,
    /// The group has come together; its assignment is under way.
    Syncing,
    /// The assignment is here; callbacks are due.
    Applying,
    /// A member at rest.
    Stable,
    /// On the way out.
    Leaving,
    /// Another member with the same instance id took over. Final.
    Fenced,
}

impl fmt::Display for MemberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Whether leaving the consumer behind takes the member out of the group (`CloseOptions.GroupMembershipOperation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MembershipOperation {
    /// Dynamic members leave, static members remain.
    #[default]
    Default,
    /// Leave, static or not.
    LeaveGroup,
    /// Remain until the session expires, static or not.
    RemainInGroup,
}

/// One membership of one group.
#[derive(Debug)]
pub struct Member {
    classic: Classic,
}

impl Member {
    /// A member that has not subscribed to anything yet. The seed drives its jitter.
    pub fn new(config: MemberConfig, seed: u64) -> Self {
        Self { classic: Classic::new(config, seed) }
    }

    // Commands.

    /// Subscribes to exactly these topics from now on. No topics at all is [`Member::unsubscribe`].
    pub fn subscribe(&mut self, now: Instant, topics: BTreeSet<Arc<str>>) {
        self.classic.subscribe(now, topics);
    }

    /// Gives up subscription and assignment, and leaves. [`Event::Left`] follows when callbacks and leave are through.
    pub fn unsubscribe(&mut self, now: Instant) {
        self.classic.unsubscribe(now);
    }

    /// Leaves for good: the last callbacks become due, then LeaveGroup goes out (not for static members), then
    /// [`Event::Left`] comes. It also comes when the coordinator does not answer for `request.timeout.ms`.
    pub fn leave(&mut self, now: Instant, reason: &str) {
        self.leave_with(now, reason, MembershipOperation::Default);
    }

    /// [`Member::leave`], saying whether to remain in the group.
    pub fn leave_with(&mut self, now: Instant, reason: &str, operation: MembershipOperation) {
        self.classic.leave(now, reason, operation);
    }

    /// The application polls: it is alive, and may join. While a poll waits, say so again at least each time that a
    /// [`Why::PollInterval`] deadline comes; do not while a callback runs.
    pub fn poll(&mut self, now: Instant) {
        self.classic.poll(now);
    }

    /// Rejoins for the application's reason. Does nothing while a rebalance is going on.
    pub fn request_rejoin(&mut self, now: Instant, reason: &str) {
        self.classic.request_rejoin(now, Cause::Requested { reason: reason.to_owned() });
    }

    /// Says how many commits are unanswered. A join waits for them a little while, so that it does not make them fail.
    pub fn set_commits_in_flight(&mut self, now: Instant, commits: usize) {
        self.classic.set_commits_in_flight(now, commits);
    }

    // Inputs.

    /// The answer to a request, or that there is none. Answers to requests that do not matter any more are ignored.
    pub fn handle_response(&mut self, now: Instant, ticket: Ticket, result: Result<Response, SendError>) {
        self.classic.handle_response(now, ticket, result);
    }

    /// Metadata came in.
    pub fn handle_topics(&mut self, now: Instant, topics: &Topics) {
        self.classic.handle_topics(now, topics);
    }

    /// The coordinator is known, or not any more. Its loss alone does not end a membership.
    pub fn handle_coordinator(&mut self, now: Instant, known: bool) {
        self.classic.handle_coordinator(now, known);
    }

    /// The partitions were dealt, as [`Output::Plan`] asked for. A plan that comes too late does nothing.
    pub fn handle_plan(&mut self, now: Instant, plan: Plan) {
        self.classic.handle_plan(now, plan);
    }

    /// Time passed. Calling it early does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.classic.handle_timeout(now);
    }

    /// A commit sent under `membership` was refused with `code`: what to tell the application. Acts on the membership
    /// only while it is the current one and no join is in flight, because then the join will tell. `None`: the code is
    /// not about the group.
    pub fn handle_commit_error(
        &mut self,
        now: Instant,
        membership: &Membership,
        code: ErrorCode,
    ) -> Option<CommitRefusal> {
        self.classic.handle_commit_error(now, membership, code)
    }

    // Callbacks.

    /// The callback that would begin now. `None` when none is due or one is running.
    pub fn due_callback(&self) -> Option<Due> {
        self.classic.due_callback()
    }

    /// Begins the callback that is due. Call it right before the listener, after the commit that goes before a revocation:
    /// that commit may show that the partitions are lost.
    pub fn begin_callback(&mut self, now: Instant) -> Option<Callback> {
        self.classic.begin_callback(now)
    }

    /// The listener returned from revoked or lost, with or without an error.
    pub fn revoke_done(&mut self, now: Instant, revocation: Revocation) {
        self.classic.revoke_done(now, revocation);
    }

    /// The listener returned from assigned.
    pub fn assign_done(&mut self, now: Instant, granted: Granted) {
        self.classic.assign_done(now, granted);
    }

    /// The listener returned an error from assigned: it will be called again, with no new partitions, as Kafka does.
    pub fn assign_failed(&mut self, now: Instant, granted: Granted) {
        self.classic.assign_failed(now, granted);
    }

    // Output and getters.

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Output {
        self.classic.poll_output()
    }

    /// Where the membership stands.
    pub fn state(&self) -> MemberState {
        self.classic.state()
    }

    /// What commits and offset fetches go out under. `None` outside of the group.
    pub fn membership(&self) -> Option<Membership> {
        self.classic.membership()
    }

    /// The member id, also before the first generation; empty when the coordinator has not given one.
    pub fn member_id(&self) -> &str {
        self.classic.member_id()
    }

    /// What the application owns, as callbacks have told it.
    pub fn assignment(&self) -> &BTreeSet<TopicPartition> {
        self.classic.assignment()
    }

    /// What the member subscribes to.
    pub fn subscription(&self) -> &BTreeSet<Arc<str>> {
        self.classic.subscription()
    }

    /// Whether a commit may go out now, and under which membership.
    ///
    /// Eager: not between JoinGroup and SyncGroup's answer, as in Kafka. Cooperative: kept partitions keep flowing, so
    /// their commits go on while JoinGroup is parked (the coordinator accepts the old generation until the group has come
    /// together) and are refused only between the two answers, when the coordinator would refuse them too. A commit that
    /// loses the race is refused with [`CommitRefusal::RebalanceInProgress`]: send it again, for what is still owned,
    /// under the membership that this function answers afterwards.
    pub fn may_commit(&self) -> Result<Membership, CommitRefusal> {
        self.classic.may_commit()
    }

    /// Whether this member is on its way out and still takes the answers of the round that it had joined before, so that
    /// a last commit that is refused now may be taken under the generation that it brings.
    pub fn follows_a_round(&self) -> bool {
        self.classic.follows_a_round()
    }

    /// How this member rebalances.
    pub fn rebalance_protocol(&self) -> RebalanceProtocol {
        self.classic.rebalance_protocol()
    }

    /// By when the application must poll. `None` while nobody waits for it.
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.classic.poll_deadline()
    }

    /// Why the latest rebalance began or the membership ended.
    pub fn last_cause(&self) -> Option<&Cause> {
        self.classic.last_cause()
    }

    /// Whether this member leads the group: it computes the assignment and watches partition counts.
    pub fn is_leader(&self) -> bool {
        self.classic.is_leader()
    }
}
