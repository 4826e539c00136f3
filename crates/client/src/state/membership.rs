//! The consumer's membership: what the member wants done, and which callbacks the application has to run.
//!
//! When to join, heartbeat and leave is decided in `tontine_group::member`. Here its requests get a connection, its
//! callbacks a partner on the application's side.

use super::{Answer, CallId, ConsumerState, Flight, Step, StepId, StepKind, Tell, Wanted};
use crate::{
    Error,
    cluster::{Lane, SendError, Target},
    history::Happening,
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tontine_group::{
    Instant,
    ids::Membership,
    member::{
        self, Callback, CommitRefusal, Due, GroupProtocol, Member, MemberConfig, MemberError,
        MembershipOperation, Output, Revocation,
    },
};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Response},
};

/// How long commits hold up the end of a revocation: longer than a commit takes, and short for a partition that moves.
const COMMIT_GRACE: Duration = Duration::from_millis(100);

/// The consumer's group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: Arc<str>,
    pub(super) member: Member,
    /// What is subscribed; `None` while nothing is.
    pub(super) wanted: Option<Wanted>,
    /// What a pattern stands for, as the application has been told.
    pub(super) matched: Option<BTreeSet<Arc<str>>>,
    /// The topics the member needs to know of.
    pub(super) needed: BTreeSet<Arc<str>>,
    /// The callback that runs.
    running: Option<(StepId, Callback)>,
    /// A revocation that the application is done with, and until when it waits for commits.
    parting: Option<(Revocation, Instant)>,
    steps: u64,
    told_due: Option<Due>,
    told_membership: Option<Membership>,
    /// How many times a membership has ended so far.
    pub(super) ended: u64,
    wake: Option<Instant>,
    /// Calls that wait until the group is left, and until when.
    leaving: Vec<(CallId, Instant)>,
    /// The member was told to leave and has not said that it has.
    pub(super) is_leaving: bool,
}

impl Group {
    pub(super) fn new(config: MemberConfig, seed: u64) -> Self {
        Self {
            id: config.group_id.as_str().into(),
            member: Member::new(config, seed),
            wanted: None,
            matched: None,
            needed: BTreeSet::new(),
            running: None,
            parting: None,
            steps: 0,
            told_due: None,
            told_membership: None,
            ended: 0,
            wake: None,
            leaving: Vec::new(),
            is_leaving: false,
        }
    }

    fn owes_callback(&self) -> bool {
        self.running.is_some() || self.parting.is_some() || self.member.due_callback().is_some()
    }
}

impl ConsumerState {
    pub(super) fn subscribe(&mut self, wanted: Wanted) {
        let now = self.now;
        let Some(group) = &mut self.group else { return };
        match &wanted {
            Wanted::Names(topics) => group.member.subscribe(now, topics.clone()),
            Wanted::Pattern { written, .. } => group.member.subscribe_matching(now, written),
        }
        group.is_leaving = false;
        group.wanted = Some(wanted);
        group.matched = None;
        self.resolve_pattern();
    }

    pub(super) fn polled(&mut self) {
        let now = self.now;
        if let Some(group) = self.group.as_mut().filter(|group| group.wanted.is_some()) {
            group.member.poll(now);
            // A lookup that was refused for good may succeed by now.
            self.cluster.find_coordinator(now, &group.id);
        }
    }

    pub(super) fn rejoin(&mut self, reason: &str) {
        let now = self.now;
        if let Some(group) = &mut self.group {
            group.member.request_rejoin(now, reason);
        }
    }

    pub(super) fn leave(&mut self, call: CallId, reason: &str, forever: bool, timeout: Duration) {
        let now = self.now;
        let Some(group) = self.group.as_mut().filter(|group| group.wanted.is_some() || group.is_leaving)
        else {
            return self.answer(call, Ok(Answer::Done));
        };
        group.leaving.push((call, now + timeout));
        if std::mem::replace(&mut group.is_leaving, true) {
            return;
        }
        group.wanted = None;
        if forever {
            group.member.leave_with(now, reason, MembershipOperation::Default);
        } else {
            group.member.unsubscribe(now);
        }
    }

    /// Lets the member do what it wants; whether it wanted anything.
    pub(super) fn run_member(&mut self) -> bool {
        let mut worked = false;
        loop {
            let Some(group) = &mut self.group else { return worked };
            match group.member.poll_output() {
                Output::Send { ticket, request, timeout } => {
                    let lane = match request.key() {
                        ApiKey::JoinGroup | ApiKey::SyncGroup => Lane::Join,
                        _ => Lane::Group,
                    };
                    let timeout = timeout.unwrap_or(self.settings.request_timeout);
                    let target = Target::Coordinator(group.id.clone());
                    let sent = self.cluster.send(self.now, target, lane, request, timeout);
                    self.flights.insert(sent, Flight::Member(ticket));
                }
                Output::FindCoordinator => {
                    self.cluster.coordinator_lost(self.now, &group.id);
                    self.cluster.find_coordinator(self.now, &group.id);
                }
                Output::RefreshTopics { topics } => {
                    let is_consumer = group.member.protocol() == GroupProtocol::Consumer;
                    group.needed = topics;
                    self.interest_is_stale = true;
                    self.update_interest();
                    // A member of the consumer protocol asks when it was assigned what has no name yet, and again after
                    // pauses that grow. How long a topic has been waited for until then says nothing about that.
                    if is_consumer {
                        self.cluster.refresh_metadata_at_once(self.now);
                    } else {
                        self.cluster.refresh_metadata(self.now);
                    }
                }
                Output::Plan(planning) => self.plannings.push_back(planning),
                Output::Event(event) => self.member_event(event),
                Output::Wait(deadline) => {
                    group.wake = deadline.map(|deadline| deadline.at);
                    self.tell_membership();
                    return worked;
                }
            }
            worked = true;
        }
    }

    fn member_event(&mut self, event: member::Event) {
        match event {
            // What is due is read off the member when it has nothing more to say.
            member::Event::CallbackDue(_) => {}
            member::Event::Error(error) => {
                let fatal = error.is_fatal();
                self.tell(Tell::Failed { error: member_error(error), fatal });
            }
            member::Event::Warned(warning) => self.tell(Tell::Warned(warning.to_string().into())),
            member::Event::Left => self.left(),
            member::Event::Transition(transition) => {
                self.tell(Tell::Happened(Happening::Transition(transition)))
            }
        }
    }

    fn left(&mut self) {
        let Some(group) = &mut self.group else { return };
        group.is_leaving = false;
        let calls = std::mem::take(&mut group.leaving);
        for (call, _) in calls {
            self.answer(call, Ok(Answer::Done));
        }
    }

    /// Tells the application's side what changed: the membership, and which callback is due.
    fn tell_membership(&mut self) {
        let Some(group) = &mut self.group else { return };
        let membership = group.member.membership();
        let due = group.member.due_callback();
        let membership_changed = membership != group.told_membership;
        let due_changed = due != group.told_due;
        if !membership_changed && !due_changed {
            return;
        }
        group.ended += u64::from(membership.is_none() && group.told_membership.is_some());
        group.told_membership.clone_from(&membership);
        group.told_due.clone_from(&due);
        if membership_changed {
            self.hurry_held_commit();
            self.tell(Tell::Membership(membership));
        }
        if due_changed {
            self.mark_leaving(due.as_ref());
            self.tell(Tell::Due(due));
        }
    }

    /// The application is ready: begins whatever is due now.
    pub(super) fn begin_step(&mut self) {
        let now = self.now;
        let Some(group) = &mut self.group else { return };
        // A callback whose poll was dropped is still the one that runs.
        let Some(callback) = group.member.begin_callback(now) else {
            return self.tell(Tell::Step(None));
        };
        group.steps += 1;
        let id = StepId(group.steps);
        let (membership, confirmed) = (group.member.membership(), group.member.confirmed());
        let (kind, names) = match &callback {
            Callback::Assign(granted) => (StepKind::Assigned, granted.added().to_vec()),
            Callback::Revoke(revocation) => (StepKind::Revoked, revocation.partitions().to_vec()),
            Callback::Lost(revocation) => (StepKind::Lost, revocation.partitions().to_vec()),
        };
        let cause = group.member.last_cause().cloned();
        let generation = membership.as_ref().map(|m| m.generation);
        group.running = Some((id, callback));
        group.told_due = None;
        let partitions = match kind {
            StepKind::Assigned => self.take_over(&names),
            StepKind::Revoked | StepKind::Lost => self.incarnations_of(&names),
        };
        self.tell(Tell::Happened(Happening::step(kind, names, generation, cause)));
        self.tell(Tell::Step(Some(Step { id, kind, partitions, membership, confirmed })));
    }

    pub(super) fn step_done(&mut self, step: StepId, failed: bool) {
        let now = self.now;
        let Some(group) = &mut self.group else { return };
        let Some((_, callback)) = group.running.take_if(|(id, _)| *id == step) else { return };
        match callback {
            Callback::Assign(granted) => {
                let added = granted.added().to_vec();
                if failed {
                    group.member.assign_failed(now, granted);
                } else {
                    group.member.assign_done(now, granted);
                }
                self.open(&added);
            }
            Callback::Revoke(revocation) | Callback::Lost(revocation) => {
                group.parting = Some((revocation, now + COMMIT_GRACE));
                let _ = self.part();
            }
        }
    }

    /// Ends a revocation, if it is time; whether it was. Who gets the partitions may begin to read them at once, at an epoch that is also this member's
    /// own, so that a commit which comes later would be taken and undo what that one has committed. So commits of them
    /// that are under way go first, for a little while. With the classic protocol the next join waits for them.
    pub(super) fn part(&mut self) -> bool {
        let now = self.now;
        let Some(group) = &mut self.group else { return false };
        let commits = &self.commits;
        let is_due = |(revocation, until): &mut (Revocation, Instant)| {
            let waits = group.member.protocol() == GroupProtocol::Consumer
                && !revocation.is_lost()
                && commits.concern(revocation.partitions());
            !waits || now >= *until
        };
        let Some((revocation, _)) = group.parting.take_if(is_due) else { return false };
        let gone = revocation.partitions().to_vec();
        group.member.revoke_done(now, revocation);
        self.let_go(&gone);
        true
    }

    /// Nobody is there to run callbacks any more: they count as done.
    pub(super) fn run_callbacks_alone(&mut self) {
        while let Some(group) = &mut self.group {
            if let Some((revocation, _)) = group.parting.take() {
                group.member.revoke_done(self.now, revocation);
                self.run_member();
                continue;
            }
            let running = group.running.take().map(|(_, callback)| callback);
            let Some(callback) = running.or_else(|| group.member.begin_callback(self.now)) else { return };
            match callback {
                Callback::Assign(granted) => group.member.assign_done(self.now, granted),
                Callback::Revoke(revocation) | Callback::Lost(revocation) => {
                    group.member.revoke_done(self.now, revocation);
                }
            }
            self.run_member();
        }
    }

    pub(super) fn member_responded(&mut self, ticket: member::Ticket, result: Result<Response, SendError>) {
        let now = self.now;
        let Some(group) = &mut self.group else { return };
        group.member.handle_response(now, ticket, result.map_err(|error| member_send_error(&error)));
    }

    pub(super) fn member_timeout(&mut self) {
        let now = self.now;
        let Some(group) = &mut self.group else { return };
        group.member.handle_timeout(now);
        self.give_up_leaving();
    }

    /// Waiting for the coordinator ends in time. Callbacks still come: whoever was told that partitions are its own is
    /// told that they are not any more.
    fn give_up_leaving(&mut self) {
        let now = self.now;
        let Some(group) = self.group.as_mut().filter(|group| !group.owes_callback()) else { return };
        let (late, waiting) =
            std::mem::take(&mut group.leaving).into_iter().partition(|(_, until)| *until <= now);
        group.leaving = waiting;
        let late: Vec<(CallId, Instant)> = late;
        for (call, _) in late {
            let what = "leaving the group".to_owned();
            self.answer(call, Err(Error::Timeout { what, after: Duration::ZERO, why: None }));
        }
    }

    pub(super) fn member_wake(&self) -> Option<Instant> {
        let group = self.group.as_ref()?;
        // While a callback is due or runs, its end is what is waited for.
        let leaving = group.leaving.iter().map(|(_, until)| *until).min().filter(|_| !group.owes_callback());
        let parting = group.parting.as_ref().map(|(_, until)| *until);
        let wake = tontine_group::time::soonest(group.wake, leaving);
        tontine_group::time::soonest(wake, parting)
    }

    pub(super) fn coordinator_is_known(&mut self, known: bool) {
        let now = self.now;
        let Some(group) = &mut self.group else { return };
        group.member.handle_coordinator(now, known);
        // Whoever joins over a connection of its own needs the other one a moment later.
        if let Some(node) = self.cluster.coordinator(&group.id) {
            self.cluster.prepare(now, node, Lane::Group);
        }
    }

    pub(super) fn coordinator_refused(&mut self, error: SendError) {
        let error = Error::from(error);
        self.tell(Tell::Failed { error: error.clone(), fatal: false });
        self.fail_commits(&error);
        self.fail_committed(&error);
        // The next poll looks again: the refusal may be lifted.
    }

    /// Under which membership a commit goes out: `None` in a group that the application is not a member of on purpose.
    pub(super) fn commit_membership(&self) -> Result<Option<Membership>, Error> {
        let Some(group) = &self.group else {
            return Err(Error::configuration("no group.id is set: it is needed to commit"));
        };
        // A member that leaves is no outsider yet, also when it has lost its membership on the way.
        if group.wanted.is_none()
            && !group.is_leaving
            && group.member.subscription().is_empty()
            && group.member.membership().is_none()
        {
            return Ok(None);
        }
        group.member.may_commit().map(Some).map_err(refusal_error)
    }
}

/// What the application hears when a commit cannot be made.
pub(super) fn refusal_error(refusal: CommitRefusal) -> Error {
    match refusal {
        CommitRefusal::RebalanceInProgress => Error::RebalanceInProgress,
        CommitRefusal::NotAMember => Error::Lost(refusal.to_string().into()),
        CommitRefusal::Fenced => Error::Fenced(refusal.to_string().into()),
    }
}

fn member_error(error: MemberError) -> Error {
    match error {
        MemberError::InstanceFenced { .. } | MemberError::InstanceInUse { .. } => {
            Error::Fenced(error.to_string().into())
        }
        MemberError::Refused { api, code } => Error::broker(code, api, None),
        MemberError::NothingInCommon { api, .. } => {
            Error::broker(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, api, Some(error.to_string()))
        }
        MemberError::Rejected { api, code, message } => {
            Error::broker(code, api, Some(message).filter(|message| !message.is_empty()))
        }
        MemberError::Unsupported { .. }
        | MemberError::ProtocolUnsupported
        | MemberError::RegexUnsupported => Error::Unsupported(error.to_string().into()),
        MemberError::AssignorPanicked { .. } => Error::Callback(Arc::new(error)),
        MemberError::Nonsense { .. } | MemberError::ForeignTopics { .. } => {
            Error::Malformed(error.to_string().into())
        }
    }
}

fn member_send_error(error: &SendError) -> member::SendError {
    match error {
        SendError::TimedOut { .. } => member::SendError::TimedOut,
        SendError::Unsupported { .. } => member::SendError::Unsupported,
        SendError::TooOld { .. } => member::SendError::TooOld,
        SendError::Disconnected { .. } | SendError::Malformed { .. } | SendError::Refused { .. } => {
            member::SendError::Disconnected
        }
    }
}
