//! The client's side of the group protocols: one membership as a state machine.
//!
//! [`Member`] is the one face of it; behind it is `classic` or `consumer`, as `group.protocol` says. It decides when to
//! join, sync, heartbeat and leave, which callbacks are due, and what an error means. It does not decide which topics match
//! a pattern, when to commit, or over which connection something goes. Mirrors `ConsumerCoordinator` and
//! `AbstractCoordinator`, and `ConsumerMembershipManager`.
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

mod announced;
mod backoff;
mod callback;
mod classic;
mod config;
mod consumer;
mod heart;
mod leader;
mod outbox;
mod output;
mod parting;
mod reach;
mod reason;
mod watch;

pub use callback::{Callback, Due, Granted, Occasion, Revocation};
pub use config::{GroupProtocol, MemberConfig};
pub use leader::{Plan, Planning};
pub use output::{
    CommitRefusal, Deadline, Event, MemberError, Output, SendError, Ticket, Transition, Warning, Why,
};

use crate::{Cause, Instant, TopicPartition, assignor::RebalanceProtocol, ids::Membership, topics::Topics};
use classic::Classic;
use consumer::{Consumer, Successor};
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
    /// Consumer protocol: what is owned is not what the coordinator says yet; callbacks are due.
    Reconciling,
    /// Consumer protocol: callbacks are through; the coordinator is to hear of it.
    Acknowledging,
    /// On the way out.
    Leaving,
    /// Consumer protocol: the coordinator refuses the member. Final.
    Failed,
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
    protocol: Protocol,
}

#[derive(Debug)]
enum Protocol {
    Classic(Box<Classic>),
    Consumer(Box<Consumer>),
}

/// Does the same with whichever protocol it is.
macro_rules! either {
    ($protocol:expr, $member:ident => $does:expr) => {
        match $protocol {
            Protocol::Classic($member) => $does,
            Protocol::Consumer($member) => $does,
        }
    };
}

impl Member {
    /// A member that has not subscribed to anything yet. The seed drives its jitter.
    pub fn new(config: MemberConfig, seed: u64) -> Self {
        let protocol = match config.protocol {
            GroupProtocol::Classic => Protocol::Classic(Box::new(Classic::new(config, seed))),
            GroupProtocol::Consumer | GroupProtocol::ConsumerOrClassic => {
                Protocol::Consumer(Box::new(Consumer::new(config, seed)))
            }
        };
        Self { protocol }
    }

    // Commands.

    /// Subscribes to exactly these topics from now on. No topics at all is [`Member::unsubscribe`].
    pub fn subscribe(&mut self, now: Instant, topics: BTreeSet<Arc<str>>) {
        either!(&mut self.protocol, member => member.subscribe(now, topics));
    }

    /// Has the coordinator find the topics: all whose whole name matches this regular expression (RE2). Only with the
    /// consumer protocol; with the classic one patterns are the client's to resolve, into a [`Member::subscribe`].
    pub fn subscribe_matching(&mut self, now: Instant, regex: &str) {
        match &mut self.protocol {
            Protocol::Classic(_) => {}
            Protocol::Consumer(member) => member.subscribe_matching(now, regex),
        }
    }

    /// Gives up subscription and assignment, and leaves. [`Event::Left`] follows when callbacks and leave are through.
    pub fn unsubscribe(&mut self, now: Instant) {
        either!(&mut self.protocol, member => member.unsubscribe(now));
    }

    /// Leaves for good: the last callbacks become due, then LeaveGroup goes out (not for static members), then
    /// [`Event::Left`] comes. It also comes when the coordinator does not answer for `request.timeout.ms`.
    pub fn leave(&mut self, now: Instant, reason: &str) {
        self.leave_with(now, reason, MembershipOperation::Default);
    }

    /// [`Member::leave`], saying whether to remain in the group.
    pub fn leave_with(&mut self, now: Instant, reason: &str, operation: MembershipOperation) {
        match &mut self.protocol {
            Protocol::Classic(member) => member.leave(now, reason, operation),
            // There is no place for a reason in this protocol.
            Protocol::Consumer(member) => member.leave(now, operation),
        }
    }

    /// The application polls: it is alive, and may join. While a poll waits, say so again at least each time that a
    /// [`Why::PollInterval`] deadline comes; do not while a callback runs.
    pub fn poll(&mut self, now: Instant) {
        either!(&mut self.protocol, member => member.poll(now));
    }

    /// Rejoins for the application's reason. Does nothing while a rebalance is going on.
    pub fn request_rejoin(&mut self, now: Instant, reason: &str) {
        match &mut self.protocol {
            Protocol::Classic(member) => {
                member.request_rejoin(now, Cause::Requested { reason: reason.to_owned() });
            }
            Protocol::Consumer(member) => member.request_rejoin(now),
        }
    }

    /// Says how many commits are unanswered. A join waits for them a little while, so that it does not make them fail.
    pub fn set_commits_in_flight(&mut self, now: Instant, commits: usize) {
        match &mut self.protocol {
            Protocol::Classic(member) => member.set_commits_in_flight(now, commits),
            Protocol::Consumer(_) => {}
        }
    }

    /// The broker does not have the consumer protocol: whatever was wanted is wanted of the classic one.
    fn go_on_with_classic(&mut self, now: Instant, successor: Successor) {
        let Successor { config, seed, outbox, subscription, topics, polled_at } = successor;
        let mut member = Box::new(Classic::with_outbox(config, seed, outbox));
        member.handle_coordinator(now, true);
        member.handle_topics(now, &topics);
        if subscription.is_empty() {
            member.ask_metadata();
        } else {
            member.subscribe(now, subscription);
        }
        if let Some(at) = polled_at {
            member.poll(at);
        }
        self.protocol = Protocol::Classic(member);
        self.handle_timeout(now);
    }

    // Inputs.

    /// The answer to a request, or that there is none. Answers to requests that do not matter any more are ignored.
    pub fn handle_response(&mut self, now: Instant, ticket: Ticket, result: Result<Response, SendError>) {
        either!(&mut self.protocol, member => member.handle_response(now, ticket, result));
        if let Protocol::Consumer(member) = &mut self.protocol
            && let Some(successor) = member.gives_way()
        {
            self.go_on_with_classic(now, successor);
        }
    }

    /// Metadata came in.
    pub fn handle_topics(&mut self, now: Instant, topics: &Topics) {
        either!(&mut self.protocol, member => member.handle_topics(now, topics));
    }

    /// The coordinator is known, or not any more. Its loss alone does not end a membership.
    pub fn handle_coordinator(&mut self, now: Instant, known: bool) {
        either!(&mut self.protocol, member => member.handle_coordinator(now, known));
    }

    /// The partitions were dealt, as [`Output::Plan`] asked for. A plan that comes too late does nothing.
    pub fn handle_plan(&mut self, now: Instant, plan: Plan) {
        match &mut self.protocol {
            Protocol::Classic(member) => member.handle_plan(now, plan),
            Protocol::Consumer(_) => {}
        }
    }

    /// Time passed. Calling it early does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        either!(&mut self.protocol, member => member.handle_timeout(now));
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
        either!(&mut self.protocol, member => {
            let refusal = member.commit_refused(now, membership, code);
            member.advance(now);
            refusal
        })
    }

    // Callbacks.

    /// The callback that would begin now. `None` when none is due or one is running.
    pub fn due_callback(&self) -> Option<Due> {
        either!(&self.protocol, member => member.due_callback())
    }

    /// Begins the callback that is due. Call it right before the listener, after the commit that goes before a revocation:
    /// that commit may show that the partitions are lost.
    pub fn begin_callback(&mut self, now: Instant) -> Option<Callback> {
        either!(&mut self.protocol, member => member.begin_callback(now))
    }

    /// The listener returned from revoked or lost, with or without an error.
    pub fn revoke_done(&mut self, now: Instant, revocation: Revocation) {
        either!(&mut self.protocol, member => member.revoke_done(now, revocation));
    }

    /// The listener returned from assigned.
    pub fn assign_done(&mut self, now: Instant, granted: Granted) {
        either!(&mut self.protocol, member => member.assign_done(now, granted));
    }

    /// The listener returned an error from assigned: it will be called again, with no new partitions, as Kafka does.
    pub fn assign_failed(&mut self, now: Instant, granted: Granted) {
        either!(&mut self.protocol, member => member.assign_failed(now, granted));
    }

    // Output and getters.

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Output {
        either!(&mut self.protocol, member => member.poll_output())
    }

    /// Where the membership stands.
    pub fn state(&self) -> MemberState {
        either!(&self.protocol, member => member.state())
    }

    /// What commits and offset fetches go out under. `None` outside of the group.
    pub fn membership(&self) -> Option<Membership> {
        either!(&self.protocol, member => member.membership())
    }

    /// When the coordinator last said something that shows that this member is one. Means nothing outside of the group.
    pub fn confirmed(&self) -> Instant {
        either!(&self.protocol, member => member.confirmed())
    }

    /// The member id, also before the first generation; empty when the coordinator has not given one.
    pub fn member_id(&self) -> &str {
        either!(&self.protocol, member => member.member_id())
    }

    /// What the application owns, as callbacks have told it.
    pub fn assignment(&self) -> &BTreeSet<TopicPartition> {
        either!(&self.protocol, member => member.assignment())
    }

    /// What the member subscribes to.
    pub fn subscription(&self) -> &BTreeSet<Arc<str>> {
        either!(&self.protocol, member => member.subscription())
    }

    /// Whether a commit may go out now, and under which membership.
    ///
    /// Eager: not between JoinGroup and SyncGroup's answer, as in Kafka. Cooperative: kept partitions keep flowing, so
    /// their commits go on while JoinGroup is parked (the coordinator accepts the old generation until the group has come
    /// together) and are refused only between the two answers, when the coordinator would refuse them too. A commit that
    /// loses the race is refused with [`CommitRefusal::RebalanceInProgress`]: send it again, for what is still owned,
    /// under the membership that this function answers afterwards.
    pub fn may_commit(&self) -> Result<Membership, CommitRefusal> {
        either!(&self.protocol, member => member.may_commit())
    }

    /// Whether this member is on its way out and still takes the answers of the round that it had joined before (or, with
    /// the consumer protocol, those to its heartbeats), so that a last commit that is refused now may be taken under the
    /// generation that it brings.
    pub fn follows_a_round(&self) -> bool {
        match &self.protocol {
            Protocol::Classic(member) => member.follows_a_round(),
            Protocol::Consumer(member) => {
                member.state() == MemberState::Leaving && member.membership().is_some()
            }
        }
    }

    /// How this member rebalances.
    pub fn rebalance_protocol(&self) -> RebalanceProtocol {
        match &self.protocol {
            Protocol::Classic(member) => member.rebalance_protocol(),
            Protocol::Consumer(_) => RebalanceProtocol::Cooperative,
        }
    }

    /// Which protocol it speaks: `Classic` or `Consumer`. The former takes the place of the latter when a broker turns out
    /// not to have that and it is allowed; [`Output::RefreshTopics`] asks for metadata then.
    pub fn protocol(&self) -> GroupProtocol {
        match self.protocol {
            Protocol::Classic(_) => GroupProtocol::Classic,
            Protocol::Consumer(_) => GroupProtocol::Consumer,
        }
    }

    /// By when the application must poll. `None` while nobody waits for it.
    pub fn poll_deadline(&self) -> Option<Instant> {
        either!(&self.protocol, member => member.poll_deadline())
    }

    /// Why the latest rebalance began or the membership ended.
    pub fn last_cause(&self) -> Option<&Cause> {
        either!(&self.protocol, member => member.last_cause())
    }

    /// Whether this member leads the group: it computes the assignment and watches partition counts.
    pub fn is_leader(&self) -> bool {
        match &self.protocol {
            Protocol::Classic(member) => member.is_leader(),
            Protocol::Consumer(_) => false,
        }
    }
}
