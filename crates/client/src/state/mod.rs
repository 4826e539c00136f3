//! The consumer's machine: connections, membership, positions and fetches of one consumer, in one struct.
//!
//! Pure: it embeds a [`Cluster`] and a [`Member`](tontine_group::member::Member) and is driven as a [`Machine`]. The
//! application's side is [`crate::desk`]; the two exchange [`Command`]s and [`Event`]s. Each file of this room owns one
//! concern and adds its part to [`ConsumerState`]: `membership` (joining, callbacks), `assignment` (which partitions are
//! there), `positions` (where they start), `fetching` (what brokers answer), `commit`, `committed`, `lookup`, `topics`
//! (patterns, recreated topics) and `close`.
//!
//! Mirrors `ConsumerNetworkThread`, `ApplicationEventProcessor` and the request managers of `AsyncKafkaConsumer`.

mod assignment;
mod bundle;
mod close;
mod command;
mod commit;
mod committed;
mod fetching;
mod lookup;
mod membership;
mod positions;
mod settings;
#[cfg(test)]
mod tests;
mod topic_ids;
mod topics;
mod trouble;
mod validation;

pub(crate) use command::{Answer, Ask, CommitKind, SeekTarget, Step, StepId, Tell, Wanted};
pub use command::{CallId, Command, Event, StepKind};
pub use settings::ConsumerSettings;

use crate::{
    Error,
    cluster::{Cluster, ClusterOutput, ConnId, SendError, Ticket, TopicsOfInterest},
    fetch::plan::Fetches,
    lease::{Delivery, Incarnation},
    machine::{Machine, MachineOutput},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tontine_group::{
    Instant, TopicPartition,
    member::{GroupProtocol, Plan, Planning},
    time::soonest,
};
use tontine_wire::{ErrorCode, Uuid, api::Response};

/// A request that is under way, and what its answer is for.
#[derive(Debug)]
enum Flight {
    /// The membership's.
    Member(tontine_group::member::Ticket),
    /// A fetch from this broker.
    Fetch(i32),
    /// A fetch aside from this broker.
    Aside(i32),
    /// The commit at the head of the queue.
    Commit,
    /// Committed offsets.
    Committed(committed::Flight),
    /// Places in logs.
    Lookup(lookup::Flight),
    /// Whether positions lie in a leader's log.
    Validation(validation::Asked),
}

/// One consumer without its application and its sockets.
#[derive(Debug)]
pub struct ConsumerState {
    settings: ConsumerSettings,
    cluster: Cluster,
    group: Option<membership::Group>,
    fetches: Fetches,
    commits: commit::Commits,
    committed: committed::Calls,
    lookups: lookup::Lookups,
    flights: BTreeMap<Ticket, Flight>,
    tells: VecDeque<Tell>,
    /// What the driver has to work out elsewhere.
    plannings: VecDeque<Planning>,
    closing: Option<close::Closing>,
    interest: TopicsOfInterest,
    /// Subscribed topics that cannot be read, as the application has been told.
    bad_topics: BTreeMap<Arc<str>, ErrorCode>,
    trouble: trouble::Trouble,
    /// Which topics matter may have changed.
    interest_is_stale: bool,
    /// The time of the latest input.
    now: Instant,
    incarnations: u64,
    /// Nothing has come since there was nothing left to do.
    is_settled: bool,
}

impl ConsumerState {
    /// A consumer that has nothing to do yet. `seed` drives jitter and the choice of brokers.
    pub fn new(settings: ConsumerSettings, seed: u64) -> Self {
        let group = settings.member.clone().map(|config| membership::Group::new(config, seed));
        Self {
            cluster: Cluster::new(settings.cluster.clone(), seed),
            group,
            fetches: Fetches::new(settings.fetch.clone()),
            commits: commit::Commits::default(),
            committed: committed::Calls::default(),
            lookups: lookup::Lookups::default(),
            flights: BTreeMap::new(),
            tells: VecDeque::new(),
            plannings: VecDeque::new(),
            closing: None,
            interest: TopicsOfInterest::default(),
            bad_topics: BTreeMap::new(),
            trouble: trouble::Trouble::default(),
            interest_is_stale: true,
            now: Instant::ZERO,
            incarnations: 0,
            is_settled: false,
            settings,
        }
    }

    /// Whether it is a member of its group, as far as it knows; its application may not have heard yet that it is not.
    pub fn is_member(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.member.membership().is_some())
    }

    /// The topic of a partition that the coordinator dealt by the topic's id; with the classic protocol it deals by names.
    pub fn dealt_topic(&self, partition: &TopicPartition) -> Option<Uuid> {
        let by_id =
            self.group.as_ref().is_some_and(|group| group.member.protocol() == GroupProtocol::Consumer);
        let dealt = self.fetches.partitions.get(partition).filter(|_| by_id)?;
        Some(dealt.topic_id).filter(|id| !id.is_zero())
    }

    fn tell(&mut self, tell: Tell) {
        self.tells.push_back(tell);
    }

    fn answer(&mut self, call: CallId, answer: Result<Answer, Error>) {
        self.tell(Tell::Answer { call, answer });
    }

    fn deliver(&mut self, name: &TopicPartition, incarnation: Incarnation, delivery: Delivery) {
        self.tell(Tell::Delivery { partition: name.clone(), incarnation, delivery });
    }

    fn next_incarnation(&mut self) -> Incarnation {
        self.incarnations += 1;
        Incarnation::granted(self.incarnations)
    }

    fn asked(&mut self, ask: Ask) {
        let is_frequent = matches!(ask, Ask::Poll | Ask::Credit { .. } | Ask::Commit { .. });
        self.interest_is_stale |= !is_frequent;
        match ask {
            Ask::Subscribe(wanted) => self.subscribe(wanted),
            Ask::Leave { call, reason, forever, timeout } => self.leave(call, &reason, forever, timeout),
            Ask::Assign(partitions) => self.assign_by_hand(partitions),
            Ask::Poll => self.polled(),
            Ask::Credit { partition, incarnation, bytes } => self.credit(&partition, incarnation, bytes),
            Ask::Seek { partition, incarnation, target } => self.seek(&partition, incarnation, &target),
            Ask::Pause { partitions, paused } => self.pause(&partitions, paused),
            Ask::Begin => self.begin_step(),
            Ask::StepDone { step, failed } => self.step_done(step, failed),
            Ask::Commit { call, offsets, kind, timeout, seen } => {
                self.commit(call, offsets, kind, timeout, &seen);
            }
            Ask::Committed { call, partitions, timeout } => self.ask_committed(call, partitions, timeout),
            Ask::Lookup { call, spots, timeout } => self.ask_lookup(call, spots, timeout),
            Ask::PartitionsOf { call, topic, timeout } => self.ask_partitions(call, topic, timeout),
            Ask::Rejoin { reason } => self.rejoin(&reason),
            Ask::Close { timeout } => self.close(timeout),
        }
    }

    /// Does everything that has become possible, until nothing is left to do but wait.
    fn run(&mut self) -> Option<MachineOutput<Event>> {
        loop {
            match self.cluster.poll_output() {
                ClusterOutput::Connect { conn, host, port } => {
                    return Some(MachineOutput::Connect { conn, host, port });
                }
                ClusterOutput::Write { conn, bytes } => return Some(MachineOutput::Write { conn, bytes }),
                ClusterOutput::Close { conn } => return Some(MachineOutput::Close { conn }),
                ClusterOutput::Response { ticket, result } => self.responded(ticket, result),
                ClusterOutput::MetadataChanged => self.metadata_changed(),
                ClusterOutput::CoordinatorFound { .. } => self.coordinator_is_known(true),
                ClusterOutput::CoordinatorLost { .. } => self.coordinator_is_known(false),
                ClusterOutput::CoordinatorRefused { error, .. } => self.coordinator_refused(error),
                ClusterOutput::Wait(_) => {
                    if !self.step() && !self.cluster.has_output() {
                        return None;
                    }
                }
            }
        }
    }

    /// One round of our own work; whether there was any.
    fn step(&mut self) -> bool {
        let worked = self.run_member() | self.part();
        self.update_interest();
        let sent = self.flights.len();
        self.send_commits();
        self.send_committed();
        self.send_lookups();
        self.send_validations();
        self.fetches.look_for_seeking();
        self.send_fetches();
        self.look_for_trouble();
        self.finish_closing();
        worked || self.flights.len() != sent
    }

    fn responded(&mut self, ticket: Ticket, result: Result<Response, SendError>) {
        match self.flights.remove(&ticket) {
            None => {}
            Some(Flight::Member(ticket)) => self.member_responded(ticket, result),
            Some(Flight::Fetch(node)) => self.fetch_responded(node, ticket, result),
            Some(Flight::Aside(node)) => self.aside_responded(node, result),
            Some(Flight::Commit) => self.commit_responded(result),
            Some(Flight::Committed(flight)) => self.committed_responded(flight, result),
            Some(Flight::Validation(asked)) => self.validation_responded(asked, result),
            Some(Flight::Lookup(flight)) => self.lookup_responded(flight, result),
        }
    }

    /// Something has come: there may be work again.
    fn begin_turn(&mut self, now: Instant) {
        self.now = now;
        self.is_settled = false;
    }

    fn wake_at(&self) -> Option<Instant> {
        [
            self.cluster.wake(),
            self.member_wake(),
            self.fetches.wake_at(),
            self.commits.wake(),
            self.committed.wake(),
            self.lookups.wake(),
            self.trouble_wake(),
            self.closing_wake(),
        ]
        .into_iter()
        .fold(None, soonest)
    }
}

impl Machine for ConsumerState {
    type Command = Command;
    type Event = Event;

    fn handle_command(&mut self, now: Instant, Command(ask): Command) {
        self.begin_turn(now);
        self.asked(ask);
    }

    fn handle_abandoned(&mut self, now: Instant) {
        self.begin_turn(now);
        self.abandon();
    }

    fn handle_connected(&mut self, now: Instant, conn: ConnId) {
        self.begin_turn(now);
        self.cluster.handle_connected(now, conn);
    }

    fn handle_disconnected(&mut self, now: Instant, conn: ConnId, why: String) {
        self.begin_turn(now);
        self.cluster.handle_disconnected(now, conn, &why);
    }

    fn handle_frame(&mut self, now: Instant, conn: ConnId, frame: Bytes) {
        self.begin_turn(now);
        self.cluster.handle_frame(now, conn, frame);
    }

    fn handle_plan(&mut self, now: Instant, plan: Plan) {
        self.begin_turn(now);
        if let Some(group) = &mut self.group {
            group.member.handle_plan(now, plan);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.begin_turn(now);
        if self.cluster.wake().is_some_and(|at| at <= now) {
            self.cluster.handle_timeout(now);
        }
        self.member_timeout();
        self.fetches.time_passed(now);
        self.expire();
    }

    fn poll_output(&mut self) -> MachineOutput<Event> {
        if !self.is_settled {
            if let Some(output) = self.run() {
                return output;
            }
            self.is_settled = true;
        }
        if let Some(planning) = self.plannings.pop_front() {
            return MachineOutput::Plan(planning);
        }
        if let Some(tell) = self.tells.pop_front() {
            return MachineOutput::Event(Event(tell));
        }
        if self.is_finished() {
            return MachineOutput::Stop;
        }
        MachineOutput::Wait(self.wake_at())
    }
}
