//! The application's side of a consumer: what to do next in `poll`, as a plain struct.
//!
//! The actor ([`crate::state`]) owns connections, membership and fetches; the desk owns what the application sees: its
//! subscription, its assignment, its positions, and the records that wait for it. It is told what the actor says with
//! [`Desk::hear`], asked what to do with [`Desk::next`], and drained of what to tell the actor with [`Desk::commands`]. It
//! never waits and knows no runtime: the async front runs it in the application's task, a simulator runs it in virtual
//! time. Because `next` moves positions only when it returns records, a poll that is dropped while it waits has not
//! moved anything.
//!
//! Mirrors the application thread's part of `AsyncKafkaConsumer` and `ConsumerCoordinator`.

mod auto_commit;
mod calls;
mod credit;
mod held;
mod interest;
mod reader;
mod rebalance;
mod seek;
#[cfg(test)]
mod tests;

pub(crate) use held::Held;
pub(crate) use interest::Interest;
pub(crate) use reader::Rules;

use crate::{
    Error,
    audit::{Ledger, LedgerSettings},
    fetch::buffer,
    history::History,
    lease::{Delivery, Incarnation},
    offsets::OffsetAndMetadata,
    records::Records,
    state::{Answer, Ask, CallId, Command, ConsumerSettings, Event, StepKind, Tell},
};
use auto_commit::AutoCommit;
use credit::Credits;
use rebalance::Rebalance;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tontine_group::{Instant, TopicPartition, ids::Membership, time::soonest};

/// What the desk needs to know of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct DeskSettings {
    pub(crate) has_group: bool,
    pub(crate) max_poll_records: usize,
    pub(crate) max_poll_interval: Duration,
    /// `auto.commit.interval.ms`, when `enable.auto.commit` is on.
    pub(crate) auto_commit: Option<Duration>,
    pub(crate) retry_backoff: Duration,
    pub(crate) rules: Rules,
    /// `fetch.queue.bytes`, and `max.partition.fetch.bytes`.
    pub(crate) queue_bytes: usize,
    pub(crate) partition_max_bytes: usize,
    /// What is written down, if anything is.
    pub(crate) audit: Option<LedgerSettings>,
}

/// What to do next in a poll.
#[derive(Debug)]
pub enum Turn {
    /// Return these.
    Records(Records),
    /// Run the listener, then say so with [`Desk::callback_done`].
    Callback(StepKind, Vec<TopicPartition>),
    /// A commit that the application did not wait for has ended: tell it.
    CommitEnded(CallId, Result<(), Error>),
    /// Return this.
    Failed(Error),
    /// Nothing until the actor says something, or until this time.
    Wait(Option<Instant>),
}

/// The application's side of a consumer.
#[derive(Debug)]
pub struct Desk {
    settings: DeskSettings,
    interest: Interest,
    held: BTreeMap<TopicPartition, Held>,
    /// Partitions that have something to hand out, the next one first.
    line: VecDeque<TopicPartition>,
    rebalance: Rebalance,
    auto_commit: AutoCommit,
    calls: calls::Calls,
    asks: Vec<Ask>,
    credits: Credits,
    errors: VecDeque<Error>,
    fatal: Option<Error>,
    membership: Option<Membership>,
    history: History,
    last_poll_told: Option<Instant>,
    manual_count: u64,
    closed: bool,
    ledger: Option<Ledger>,
}

impl Desk {
    /// A desk with nothing on it yet.
    pub fn new(settings: &ConsumerSettings) -> Self {
        let settings = settings.desk.clone();
        let auto_commit = AutoCommit::new(settings.auto_commit, settings.retry_backoff);
        let ledger = settings.audit.clone().map(Ledger::new);
        Self {
            ledger,
            settings,
            interest: Interest::Nothing,
            held: BTreeMap::new(),
            line: VecDeque::new(),
            rebalance: Rebalance::default(),
            auto_commit,
            calls: calls::Calls::default(),
            asks: Vec::new(),
            credits: Credits::default(),
            errors: VecDeque::new(),
            fatal: None,
            membership: None,
            history: History::default(),
            last_poll_told: None,
            manual_count: 0,
            closed: false,
        }
    }

    /// What to tell the actor, in this order.
    pub fn commands(&mut self) -> impl Iterator<Item = Command> + '_ {
        self.audit_commits();
        let held = &self.held;
        self.asks.drain(..).map(|mut ask| {
            if let Ask::Commit { offsets, seen, .. } = &mut ask {
                let of = |name| held.get(name).map(|held| held.incarnation.ownership);
                *seen = offsets.iter().map(|(name, _)| of(name)).collect();
            }
            Command(ask)
        })
    }

    /// What is new for the audit log; nothing without `audit.log`. To be written before [`Desk::commands`] are carried
    /// out: a commit that the log does not know of might be stored.
    pub fn audit_entries(&mut self) -> Vec<crate::audit::Entry> {
        self.audit_commits();
        self.ledger.as_mut().map(Ledger::take).unwrap_or_default()
    }

    fn audit_commits(&mut self) {
        let Some(ledger) = &mut self.ledger else { return };
        for ask in &self.asks {
            if let Ask::Commit { call, offsets, .. } = ask {
                ledger.commit_asked(*call, offsets.iter().map(|(name, at)| (name.clone(), at.offset)));
            }
        }
    }

    /// The actor says something.
    pub fn hear(&mut self, now: Instant, Event(tell): Event) {
        self.handle(now, tell);
    }

    /// Refuses every call on a closed consumer.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closed { Err(Error::Closed("the consumer")) } else { Ok(()) }
    }

    /// No call is possible any more.
    pub(crate) fn set_closed(&mut self) {
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// A poll begins.
    pub fn begin_poll(&mut self, now: Instant) -> Result<(), Error> {
        self.check_open()?;
        if matches!(self.interest, Interest::Nothing) {
            return Err(Error::misuse(
                "the consumer reads nothing: subscribe to topics or assign partitions before polling",
            ));
        }
        if self.is_leaving() {
            return Err(Error::misuse(
                "the group is being left, an unsubscribe or close was dropped: call it to its end, or subscribe again",
            ));
        }
        self.tell_poll(now);
        Ok(())
    }

    /// How often the actor is told that the application polls. It adds this to `max.poll.interval.ms`, so that telling
    /// it seldom never makes it leave early.
    pub(crate) fn tell_every(max_poll_interval: Duration) -> Duration {
        (max_poll_interval / 20).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    fn tell_poll(&mut self, now: Instant) {
        let every = Self::tell_every(self.settings.max_poll_interval);
        if self.last_poll_told.is_none_or(|last| now.saturating_since(last) >= every) {
            self.last_poll_told = Some(now);
            self.asks.push(Ask::Poll);
        }
    }

    /// The actor has to hear of the next poll, however recent the last one was.
    fn tell_next_poll(&mut self) {
        self.last_poll_told = None;
    }

    /// What to do next in a poll.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self, now: Instant) -> Turn {
        self.tell_poll(now);
        self.tick(now);
        if let Some(error) = self.errors.pop_front().or_else(|| self.fatal_error()) {
            return Turn::Failed(error);
        }
        if let Some(turn) = self.next_callback() {
            return turn;
        }
        self.commit_on_time(now);
        match self.hand_out() {
            Err(error) => Turn::Failed(error),
            Ok(Some(records)) => Turn::Records(records),
            Ok(None) => Turn::Wait(self.wake_at(now)),
        }
    }

    fn tick(&mut self, now: Instant) {
        if let Some(ledger) = &mut self.ledger {
            ledger.tick(now);
        }
    }

    /// The part of [`Desk::next`] that also runs in `unsubscribe` and `close`.
    pub fn next_callback(&mut self) -> Option<Turn> {
        if let Some((call, result)) = self.calls.next_ended() {
            return Some(Turn::CommitEnded(call, result));
        }
        self.next_step()
    }

    /// A fatal error is reported by every poll, once the callbacks that it caused have run.
    fn fatal_error(&self) -> Option<Error> {
        self.fatal.clone().filter(|_| self.rebalance.is_idle())
    }

    fn wake_at(&self, now: Instant) -> Option<Instant> {
        let every = Self::tell_every(self.settings.max_poll_interval);
        let told = self.last_poll_told.unwrap_or(now) + every;
        // A commit that is due but not possible now is no reason to wake up: what makes it possible is.
        let commit = self.auto_commit.due().filter(|_| self.may_commit());
        soonest(Some(told), commit)
    }

    fn hand_out(&mut self) -> Result<Option<Records>, Error> {
        let mut left = self.settings.max_poll_records;
        let mut runs = Vec::new();
        let mut failed = None;
        while left > 0
            && failed.is_none()
            && let Some(name) = self.line.pop_front()
        {
            let Some(held) = self.held.get_mut(&name) else { continue };
            held.in_line = false;
            if !held.is_open() {
                continue;
            }
            let (mut credit, incarnation) = (0, held.incarnation);
            let before = held.position;
            let outcome = held.take(&name, left, self.settings.rules, &mut credit, &mut runs);
            if credit > 0 {
                self.credits.add(&name, incarnation, credit);
            }
            match outcome {
                Ok(count) => left = left.saturating_sub(count),
                Err(error) => failed = Some(error),
            }
            if let (Some(ledger), Some(to)) = (&mut self.ledger, held.position) {
                let from = before.unwrap_or(to);
                ledger.handed_out(&name, from.offset, to.offset);
            }
            Self::stand_in_line(&mut self.line, &name, held, left == 0);
        }
        self.tell_credits();
        match failed {
            Some(error) if runs.is_empty() => Err(self.with_alike(error)),
            _ if runs.is_empty() => Ok(None),
            _ => Ok(Some(Records::new(runs))),
        }
    }

    /// The actor is told when it matters to it.
    fn tell_credits(&mut self) {
        let DeskSettings { queue_bytes, partition_max_bytes, .. } = self.settings;
        let share = buffer::share(queue_bytes, self.held.len(), partition_max_bytes);
        if self.credits.matter(share, self.held.len(), self.line.is_empty()) {
            self.asks.extend(self.credits.take());
        }
    }

    /// Partitions without an offset to start from are reported together.
    fn with_alike(&self, error: Error) -> Error {
        let Error::NoOffset(_) = error else { return error };
        let alike = self.held.iter().filter(|(_, held)| matches!(held.failure(), Some(Error::NoOffset(_))));
        Error::NoOffset(alike.map(|(name, _)| name.clone()).collect())
    }

    /// A partition that was interrupted by `max.poll.records` goes on first the next time; others queue at the end.
    fn stand_in_line(
        line: &mut VecDeque<TopicPartition>,
        name: &TopicPartition,
        held: &mut Held,
        first: bool,
    ) {
        if held.in_line || !held.has_more() {
            return;
        }
        held.in_line = true;
        if first {
            line.push_front(name.clone());
        } else {
            line.push_back(name.clone());
        }
    }

    /// Whatever is open and has something stands in line.
    fn line_up(&mut self) {
        for (name, held) in &mut self.held {
            if held.is_open() {
                Self::stand_in_line(&mut self.line, name, held, false);
            }
        }
    }

    /// The actor says something.
    pub(crate) fn handle(&mut self, now: Instant, tell: Tell) {
        self.tick(now);
        match tell {
            Tell::Due(due) => self.set_due(due),
            Tell::Step(step) => self.begin_step(step),
            Tell::Delivery { partition, incarnation, delivery } => {
                self.deliver(&partition, incarnation, delivery)
            }
            Tell::LogEnd { partition, incarnation, end } => {
                if let Some(held) = self.held_as(&partition, incarnation) {
                    held.end = Some(end);
                }
            }
            Tell::Truncated { partition, incarnation, at } => self.truncated(&partition, incarnation, at),
            Tell::Restarted { partition, incarnation } => {
                self.audit_sought(&partition);
                if let Some(held) = self.held.get_mut(&partition) {
                    held.restart(incarnation, None);
                    held.end = None;
                }
            }
            Tell::Answer { call, answer } => self.answered(now, call, answer),
            Tell::Membership(membership) => self.membership = membership,
            Tell::Matched(topics) => self.interest.matched(topics),
            Tell::Warned(_) => {}
            Tell::Failed { error, fatal: true } => self.fatal = Some(error),
            Tell::Failed { error, fatal: false } => self.errors.push_back(error),
            Tell::Happened(happening) => self.history.push(happening),
        }
    }

    /// Whether this call is a commit that nobody asked for: what becomes of it is told to nobody.
    pub(crate) fn commits_by_itself(&self, call: CallId) -> bool {
        self.auto_commit.is_under_way(call) || self.rebalance.waits_for(call)
    }

    fn audit_sought(&mut self, partition: &TopicPartition) {
        if let Some(ledger) = &mut self.ledger {
            ledger.sought(partition);
        }
    }

    fn answered(&mut self, now: Instant, call: CallId, answer: Result<Answer, Error>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.call_ended(call, answer.is_ok());
        }
        if self.auto_commit.answered(now, call, &answer) {
            return;
        }
        match self.rebalance.answered(call) {
            Some(begin) => self.asks.push(begin),
            None => self.calls.answered(call, answer),
        }
    }

    fn held_as(&mut self, partition: &TopicPartition, incarnation: Incarnation) -> Option<&mut Held> {
        self.held.get_mut(partition).filter(|held| held.incarnation == incarnation)
    }

    fn deliver(&mut self, partition: &TopicPartition, incarnation: Incarnation, delivery: Delivery) {
        let Some(held) = self.held.get_mut(partition).filter(|held| held.incarnation == incarnation) else {
            return;
        };
        held.deliver(delivery);
        if held.is_open() {
            Self::stand_in_line(&mut self.line, partition, held, false);
        }
    }

    /// What has been handed out of each partition, as offsets to commit. Partitions without a position are left out.
    pub fn consumed(&self) -> Vec<(TopicPartition, OffsetAndMetadata)> {
        let held = self.held.iter().filter(|(_, held)| held.announced);
        held.filter_map(|(name, held)| {
            let position = held.position?;
            let offset =
                OffsetAndMetadata { leader_epoch: position.epoch, ..OffsetAndMetadata::new(position.offset) };
            Some((name.clone(), offset))
        })
        .collect()
    }

    /// What happened to the membership so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The membership as the application may see it.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }
}
