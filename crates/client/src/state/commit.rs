//! Commits, one after the other.
//!
//! A commit is sent when the one before it has ended, so none overtakes another; those that nobody waits for and that
//! have piled up meanwhile go out together (`bundle`). A commit that somebody waits for is
//! retried while that can help and time is left; one that nobody waits for is not: a later one says more. Offsets of a
//! topic that is gone are refused at once instead of being retried, so they never hold up a rebalance.
//!
//! A cooperative member goes on reading while the group rebalances, so its commits go on as well. For the moment in which
//! the coordinator takes none (between the two answers of a join) they are held and sent under the new generation, if
//! their partitions are still in the same ownership then. Kafka's client refuses them with `RebalanceInProgressException`.
//! Commits on a timer are not held: the next one says more. An offset of a partition that this member does not hold is
//! never sent, since whoever holds it may have committed further.
//!
//! Mirrors `CommitRequestManager`.

use super::{
    Answer, CallId, CommitKind, ConsumerState, Flight, membership::refusal_error, topic_ids::TopicIds,
};
use crate::{
    Error,
    cluster::{Lane, SendError, Target},
    offsets::OffsetAndMetadata,
};
use std::{collections::VecDeque, time::Duration};
use tontine_group::{
    Instant, TopicPartition,
    assignor::RebalanceProtocol::Cooperative,
    ids::Membership,
    member::{CommitRefusal, GroupProtocol, MemberState},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        Response,
        offset_commit::{
            OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
        },
    },
};

/// How long a commit that met a rebalance waits before it tries again, when no answer to a join comes before. The
/// application waits for it, and its partitions with it, so this is short.
const HELD_PAUSE: Duration = Duration::from_millis(5);

/// How long a member that leaves waits at most for the end of a round that holds its last commit up. A round usually
/// ends within a heartbeat interval of its slowest member; nobody who closes a consumer wants to wait for a slower one.
const LEAVER_PATIENCE: Duration = Duration::from_secs(5);

/// The commits that have not ended, in their order.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pub(super) queue: VecDeque<Commit>,
    /// The first of the queue has been sent, under this membership.
    pub(super) sent: Option<Option<Membership>>,
    /// How many of the queue have been sent with it.
    pub(super) bundled: usize,
    /// The topics that it named by id.
    pub(super) ids: TopicIds,
    retry_at: Option<Instant>,
    attempts: u32,
}

#[derive(Debug)]
pub(super) struct Commit {
    pub(super) call: CallId,
    pub(super) offsets: Vec<(TopicPartition, OffsetAndMetadata)>,
    pub(super) kind: CommitKind,
    pub(super) deadline: Instant,
    pub(super) timeout: Duration,
    /// The membership when the application asked.
    asked_under: Option<Membership>,
    /// How many memberships had ended then: it must not go out under a later one.
    ended: u64,
    /// The ownership of each partition then; `None`: it was not owned.
    owned: Vec<Option<u64>>,
    /// The topic that each was read of, zero if that is not known; `None`: one that is gone.
    pub(super) topics: Vec<Option<Uuid>>,
    /// A rebalance has held it up.
    held: bool,
}

impl Commits {
    pub(super) fn wake(&self) -> Option<Instant> {
        let first = self.queue.front()?;
        match (&self.sent, self.retry_at) {
            (Some(_), _) => self.first_deadline_under_way(),
            (None, None) => Some(first.deadline),
            (None, Some(at)) => Some(at.min(first.deadline)),
        }
    }

    /// Whether one of them is about one of these partitions.
    pub(super) fn concern(&self, partitions: &[TopicPartition]) -> bool {
        let mut all = self.queue.iter().flat_map(|commit| &commit.offsets);
        all.any(|(name, _)| partitions.contains(name))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl ConsumerState {
    pub(super) fn commit(
        &mut self,
        call: CallId,
        offsets: Vec<(TopicPartition, OffsetAndMetadata)>,
        kind: CommitKind,
        timeout: Duration,
        seen: &[Option<u64>],
    ) {
        let deadline = self.now + timeout;
        let asked_under = self.group.as_ref().and_then(|group| group.member.membership());
        let ended = self.memberships_ended();
        let owned = offsets.iter().map(|(name, _)| self.ownership(name)).collect();
        let seen = seen.iter().copied().chain(std::iter::repeat(None));
        let topics = offsets.iter().zip(seen).map(|((name, _), seen)| self.topic_read(name, seen)).collect();
        let held = false;
        self.commits.queue.push_back(Commit {
            call,
            offsets,
            kind,
            deadline,
            timeout,
            asked_under,
            ended,
            owned,
            topics,
            held,
        });
        self.count_commits();
    }

    /// A join waits a little for commits that are under way.
    pub(super) fn count_commits(&mut self) {
        if let Some(group) = &mut self.group {
            group.member.set_commits_in_flight(self.now, self.commits.queue.len());
        }
    }

    pub(super) fn send_commits(&mut self) {
        while self.commits.sent.is_none() && self.commits.retry_at.is_none_or(|at| at <= self.now) {
            let Some(first) = self.commits.queue.front() else { return };
            if first.offsets.is_empty() {
                self.end_commit(Ok(Answer::Done));
                continue;
            }
            match self.verdict(first) {
                Verdict::Send(membership) => self.send_commit(membership),
                Verdict::Hold => return self.hold_commit(),
                Verdict::Refuse(error) => self.end_commit(Err(error)),
            }
        }
    }

    pub(super) fn verdict(&self, commit: &Commit) -> Verdict {
        let membership = match self.commit_membership() {
            Ok(Some(membership)) => membership,
            // What a member handed out is not committed by an outsider: nobody would notice that it is out of date.
            Ok(None) if commit.asked_under.is_some() => {
                return Verdict::Refuse(refusal_error(CommitRefusal::NotAMember));
            }
            Ok(None) => return Verdict::Send(None),
            Err(Error::RebalanceInProgress) if self.outlives_the_round(commit, None) => return Verdict::Hold,
            Err(error) => return Verdict::Refuse(error),
        };
        if commit.ended != self.memberships_ended() {
            return Verdict::Refuse(refusal_error(CommitRefusal::NotAMember));
        }
        let strange = commit.offsets.iter().zip(&commit.owned).find(|(_, owned)| owned.is_none());
        if let Some(((name, _), _)) = strange {
            return Verdict::Refuse(not_owned(name));
        }
        if let Some(name) = self.began_anew(commit) {
            // The topic was deleted and came again: what was read of the old one is no place in the new one.
            let about = format!("committing the offset of {name}");
            return Verdict::Refuse(Error::broker(ErrorCode::UNKNOWN_TOPIC_ID, about, None));
        }
        let moved_on = commit.asked_under.as_ref() != Some(&membership) || self.may_be_anothers_already();
        let has_less = moved_on && !self.is_still_owned(commit);
        if has_less || (commit.kind == CommitKind::OnTimer && self.is_in_a_round()) {
            return Verdict::Refuse(Error::RebalanceInProgress);
        }
        Verdict::Send(Some(membership))
    }

    /// Whether what was let go of may be somebody else's while the membership stays the same.
    fn may_be_anothers_already(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.member.protocol() == GroupProtocol::Consumer)
    }

    fn memberships_ended(&self) -> u64 {
        self.group.as_ref().map_or(0, |group| group.ended)
    }

    fn ownership(&self, name: &TopicPartition) -> Option<u64> {
        self.fetches.partitions.get(name).map(|partition| partition.incarnation.ownership)
    }

    /// Which topic an application reads that knows the partition by this ownership. When it was deleted and came again the
    /// partition has another one, and the application need not have heard of that yet.
    fn topic_read(&self, name: &TopicPartition, seen: Option<u64>) -> Option<Uuid> {
        match self.fetches.partitions.get(name) {
            Some(partition) if seen.is_some_and(|seen| seen != partition.incarnation.ownership) => None,
            Some(partition) => Some(partition.topic_id),
            None => Some(Uuid::ZERO),
        }
    }

    fn is_still_owned(&self, commit: &Commit) -> bool {
        let mut all = commit.offsets.iter().zip(&commit.owned);
        all.all(|((name, _), owned)| owned.is_some() && self.ownership(name) == *owned)
    }

    /// A partition that is read from its beginning since the commit was asked for, under the same membership, or since the
    /// application last heard of it.
    fn began_anew<'a>(&self, commit: &'a Commit) -> Option<&'a TopicPartition> {
        let gone = commit.offsets.iter().zip(&commit.topics).find(|(_, topic)| topic.is_none());
        if let Some(((name, _), _)) = gone {
            return Some(name);
        }
        if self.group.as_ref().and_then(|group| group.member.membership()) != commit.asked_under {
            return None;
        }
        let mut all = commit.offsets.iter().zip(&commit.owned);
        let anew =
            all.find(|((name, _), owned)| self.ownership(name).is_some_and(|now| Some(now) != **owned));
        anew.map(|((name, _), _)| name)
    }

    fn is_in_a_round(&self) -> bool {
        let state = self.group.as_ref().map(|group| group.member.state());
        matches!(state, Some(MemberState::Joining | MemberState::Syncing))
    }

    /// Whether a commit that met a rebalance waits for its end, which needs nothing of the application: that may be
    /// waiting for this very commit. What is still owned is still owned then. A member that is leaving waits only for
    /// a round that it had joined before, any other may be waiting for it; if that round is over by now, a refusal of the
    /// old generation says nothing about the new one.
    fn outlives_the_round(&self, commit: &Commit, sent_under: Option<&Membership>) -> bool {
        let goes_on = self.group.as_ref().is_some_and(|group| {
            let member = &group.member;
            let is_past = || sent_under.is_some() && member.membership().as_ref() != sent_under;
            let is_open = member.state() != MemberState::Leaving || member.follows_a_round() || is_past();
            member.rebalance_protocol() == Cooperative && is_open
        });
        goes_on
            && commit.kind != CommitKind::OnTimer
            && commit.ended == self.memberships_ended()
            && self.is_still_owned(commit)
    }

    /// Leaves the first commit where it is until the rebalance is over.
    fn hold_commit(&mut self) {
        let patience = self.leaver_patience();
        let Some(first) = self.commits.queue.front_mut() else { return };
        first.held = true;
        // Held again, it has no more time than before: the earlier deadline stands.
        if let Some(patience) = patience {
            first.deadline = first.deadline.min(self.now + patience);
        }
    }

    /// A member that waits for the answer to its join does not beat: when the answer is lost, it has to have left before
    /// its session is over, or the others wait for it longer than they would without this.
    fn leaver_patience(&self) -> Option<Duration> {
        let session = self.settings.member.as_ref().map(|member| member.session_timeout)?;
        let is_leaving =
            self.group.as_ref().is_some_and(|group| group.member.state() == MemberState::Leaving);
        is_leaving.then_some(LEAVER_PATIENCE.min(session / 2))
    }

    fn send_commit(&mut self, membership: Option<Membership>) {
        let many = self.bundle(membership.as_ref());
        let Some(group) = &self.group else { return };
        let (offsets, deadline) = self.commits.put_together(many);
        // As they were when it was asked: since then the partitions may have been given up, and the topics have come again.
        let read = self.commits.topics_read(many);
        let ids = self.topic_ids(offsets.iter().map(|(name, _)| name), &read);
        let request = request(&group.id, membership.as_ref(), &offsets, &ids);
        let highest = ids.highest_version();
        let left = deadline.saturating_since(self.now).min(self.settings.request_timeout);
        let target = Target::Coordinator(group.id.clone());
        let ticket = self.cluster.send_at_most(self.now, target, Lane::Group, request.into(), left, highest);
        self.flights.insert(ticket, Flight::Commit);
        self.commits.sent = Some(membership);
        self.commits.ids = ids;
        self.commits.bundled = many.saturating_sub(1);
        self.commits.retry_at = None;
    }

    /// The first commit has ended, and what was sent with it.
    fn end_commit(&mut self, answer: Result<Answer, Error>) {
        let many = 1 + std::mem::take(&mut self.commits.bundled);
        self.commits.sent = None;
        self.commits.retry_at = None;
        self.commits.attempts = 0;
        for commit in self.commits.take_first(many) {
            self.answer(commit.call, answer.clone());
        }
        self.count_commits();
    }

    pub(super) fn fail_commits(&mut self, error: &Error) {
        while !self.commits.is_empty() {
            self.end_commit(Err(error.clone()));
        }
    }

    pub(super) fn commit_responded(&mut self, result: Result<Response, SendError>) {
        let Some(membership) = self.commits.sent.take() else { return };
        match result.map(OffsetCommitResponse::try_from) {
            Ok(Ok(response)) => match first_error(&response, &self.commits.ids) {
                None => self.end_commit(Ok(Answer::Done)),
                Some((name, code)) => {
                    self.end_unharmed(&response);
                    self.commit_refused(membership, &name, code);
                }
            },
            Ok(Err(_)) => {
                self.end_commit(Err(Error::Malformed("another answer than to a commit came".into())))
            }
            Err(error @ (SendError::Disconnected { .. } | SendError::TimedOut { .. })) => {
                self.try_commit_again(Error::from(error));
            }
            Err(error) => self.end_commit(Err(error.into())),
        }
    }

    fn commit_refused(&mut self, membership: Option<Membership>, name: &TopicPartition, code: ErrorCode) {
        let error = Error::broker(code, format!("committing the offset of {name}"), None);
        match code {
            ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                if let Some(group) = &self.group {
                    self.cluster.coordinator_lost(self.now, &group.id);
                }
                self.try_commit_again(error);
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::REQUEST_TIMED_OUT => {
                self.try_commit_again(error)
            }
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID if self.is_known(name) => {
                // The coordinator may only be a little behind; if the topic is gone, fresh metadata will say so.
                self.cluster.refresh_metadata(self.now);
                self.try_commit_again(error);
            }
            _ => {
                let refusal = membership.as_ref().zip(self.group.as_mut()).and_then(|(membership, group)| {
                    group.member.handle_commit_error(self.now, membership, code)
                });
                // Whoever hears that the commit was refused has to know by then what it means for the assignment.
                self.run_member();
                let first = self.commits.queue.front();
                if refusal == Some(CommitRefusal::RebalanceInProgress)
                    && first.is_some_and(|first| self.outlives_the_round(first, membership.as_ref()))
                {
                    self.hold_commit();
                    self.commits.bundled = 0;
                    self.commits.retry_at = Some(self.now + self.held_pause());
                    return;
                }
                self.end_commit(Err(refusal.map_or(error, refusal_error)));
            }
        }
    }

    /// Whether the topic that was meant is still there, as far as can be seen.
    fn is_known(&self, name: &TopicPartition) -> bool {
        let metadata = self.cluster.metadata();
        let meant = self.commits.ids.get(&name.topic);
        let is_same =
            || meant.is_zero() || metadata.topic(&name.topic).is_some_and(|topic| topic.id == meant);
        metadata.partition(name).is_some() && is_same() && self.commits.attempts < 5
    }

    /// With the consumer protocol the next epoch comes with the answer to a heartbeat, and the commit is sent as soon as it
    /// is known.
    fn held_pause(&self) -> Duration {
        let protocol = self.group.as_ref().map(|group| group.member.protocol());
        match protocol {
            Some(GroupProtocol::Consumer) => self.settings.retry_backoff,
            Some(GroupProtocol::Classic | GroupProtocol::ConsumerOrClassic) | None => HELD_PAUSE,
        }
    }

    /// The membership is another one by now: a commit that waited for that goes out.
    pub(super) fn hurry_held_commit(&mut self) {
        if self.commits.queue.front().is_some_and(|first| first.held) && self.commits.retry_at.is_some() {
            self.commits.retry_at = Some(self.now);
        }
    }

    fn try_commit_again(&mut self, error: Error) {
        let Some(first) = self.commits.queue.front() else { return };
        let pause = self.settings.retry_backoff.saturating_mul(1 << self.commits.attempts.min(10));
        let at = self.now + pause.min(self.settings.retry_backoff_max);
        if first.kind != CommitKind::Awaited {
            return self.end_commit(Err(error));
        }
        if at >= first.deadline {
            let why = Some(error.to_string().into());
            let error = Error::Timeout { what: "the commit".to_owned(), after: first.timeout, why };
            return self.end_commit(Err(error));
        }
        self.commits.attempts += 1;
        self.commits.retry_at = Some(at);
    }

    /// Commits whose time is over, sent or not.
    pub(super) fn expire_commits(&mut self) {
        self.expire_bundled();
        while let Some(first) = self.commits.queue.front().filter(|first| first.deadline <= self.now) {
            if self.commits.sent.is_some() {
                // Its answer, or the lack of one, comes from the cluster, which knows the same deadline.
                return;
            }
            let timeout = Error::Timeout { what: "the commit".to_owned(), after: first.timeout, why: None };
            let error = if first.held { Error::RebalanceInProgress } else { timeout };
            self.end_commit(Err(error));
        }
    }
}

/// What becomes of the first commit now.
pub(super) enum Verdict {
    Send(Option<Membership>),
    Hold,
    Refuse(Error),
}

fn not_owned(name: &TopicPartition) -> Error {
    let message = format!(
        "{name} is not assigned to this member: its offset was not sent, since another member may have committed further"
    );
    Error::Lost(message.into())
}

fn request(
    group: &str,
    membership: Option<&Membership>,
    offsets: &[(TopicPartition, OffsetAndMetadata)],
    ids: &TopicIds,
) -> OffsetCommitRequest {
    let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
    for (name, at) in offsets {
        let partition = OffsetCommitRequestPartition {
            partition_index: name.partition,
            committed_offset: at.offset,
            committed_leader_epoch: at.leader_epoch.unwrap_or(-1),
            committed_metadata: Some(at.metadata.clone()),
        };
        match topics.last_mut().filter(|topic| *topic.name == *name.topic) {
            Some(topic) => topic.partitions.push(partition),
            None => topics.push(OffsetCommitRequestTopic {
                name: name.topic.to_string(),
                topic_id: ids.get(&name.topic),
                partitions: vec![partition],
            }),
        }
    }
    OffsetCommitRequest {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: membership.map_or(-1, |m| m.generation),
        member_id: membership.map_or_else(String::new, |m| m.member_id.clone()),
        group_instance_id: membership.and_then(|m| m.instance_id.clone()),
        topics,
        ..OffsetCommitRequest::default()
    }
}

/// The error to act upon: one that is about the whole group, or else the first.
fn first_error(response: &OffsetCommitResponse, ids: &TopicIds) -> Option<(TopicPartition, ErrorCode)> {
    let all = response.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|p| {
            (TopicPartition::new(ids.name(&topic.name, topic.topic_id), p.partition_index), p.error_code)
        })
    });
    let mut errors = all.filter(|(_, code)| code.is_err());
    let first = errors.next()?;
    let about_topic =
        |code: ErrorCode| matches!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID);
    if about_topic(first.1) {
        errors.find(|(_, code)| !about_topic(*code)).or(Some(first))
    } else {
        Some(first)
    }
}
