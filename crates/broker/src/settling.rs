//! Answers that wait until something is durable, and the syncs that they wait for.
//!
//! While a request is served, the logs that it changed are noted. Where a policy wants it, the answer is held until each
//! of them has synced the change. A log has one sync on its way at a time; what is appended meanwhile shares the next one.
//! Mirrors what `DelayedProduce` and `CoordinatorRuntime`'s deferred events do for replication.

use crate::log::Appended;
use crate::state::{BrokerOutput, BrokerState, Closing};
use crate::work::{Done, LogKey, Task, Work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tontine_group::Instant;
use tontine_group::coordinator::{AppendId, Ticket};
use tontine_wire::api::Response;
use tontine_wire::{ErrorCode, Uuid};

/// The changes of logs that something needs.
pub(crate) type Needs = BTreeMap<LogKey, u64>;

/// What happens when everything that was needed is durable, or cannot become so.
#[derive(Debug)]
pub(crate) enum Then {
    /// A request is answered; with the refusal when it failed.
    Answer { ticket: Ticket, response: Response, refusal: Option<Response> },
    /// A coordinator of groups goes on.
    Group { shard: i32, incarnation: u64, id: AppendId },
    /// A transaction is decided: its marks are written.
    Prepared(String),
    /// The marks of a transaction are there: it is complete.
    Marked(String),
    /// Something is done that must not be done before.
    HandOut(Task),
}

#[derive(Debug)]
struct Held {
    left: usize,
    error: Option<ErrorCode>,
    then: Then,
}

#[derive(Debug)]
enum Waiter {
    /// One of the things that something held needs.
    Held(u64),
    /// So many bytes of records that may be read then.
    Records(usize),
}

/// What waits for syncs.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// What the request that is being served has changed.
    pub(crate) unsettled: Needs,
    held: BTreeMap<u64, Held>,
    next: u64,
    waiting: BTreeMap<LogKey, VecDeque<(u64, Waiter)>>,
    wanted: BTreeSet<LogKey>,
    in_flight: BTreeSet<LogKey>,
}

impl Settling {
    /// A log is to be synced soon.
    pub(crate) fn want(&mut self, key: LogKey) {
        self.wanted.insert(key);
    }

    fn wait(&mut self, key: LogKey, change: u64, waiter: Waiter) {
        self.waiting.entry(key).or_default().push_back((change, waiter));
    }

    /// What has waited for changes up to this one.
    fn ready(&mut self, key: LogKey, durable: u64) -> Vec<Waiter> {
        let Some(queue) = self.waiting.get_mut(&key) else { return Vec::new() };
        let count = queue.partition_point(|(change, _)| *change <= durable);
        let ready = queue.drain(..count).map(|(_, waiter)| waiter).collect();
        if queue.is_empty() {
            self.waiting.remove(&key);
        }
        ready
    }

    /// One of its needs is met, or cannot be; what happens when it was the last.
    fn met(&mut self, id: u64, error: Option<ErrorCode>) -> Option<(Then, Option<ErrorCode>)> {
        let held = self.held.get_mut(&id)?;
        held.left -= 1;
        held.error = held.error.or(error);
        if held.left > 0 {
            return None;
        }
        self.held.remove(&id).map(|held| (held.then, held.error))
    }
}

impl BrokerState {
    /// A log was changed, and whoever caused it waits for that to be durable.
    pub(crate) fn changed(&mut self, key: LogKey, change: u64) {
        self.settling.unsettled.insert(key, change);
        self.settling.want(key);
    }

    /// Records came to a partition. They can be read at once, or when this change is durable.
    pub(crate) fn records_came(&mut self, now: Instant, (topic, index): (Uuid, i32), appended: Appended) {
        let (key, bytes) = (LogKey::Partition(topic, index), appended.bytes);
        if let Some(stored) = self.unstored_partition(topic, index) {
            self.changed(LogKey::Journal, stored);
        }
        if appended.sync_soon {
            self.settling.want(key);
        }
        match appended.pending {
            None if bytes > 0 => self.appended(now, (topic, index), bytes),
            None => {}
            Some(change) => {
                self.settling.wait(key, change, Waiter::Records(bytes));
                self.changed(key, change);
            }
        }
    }

    /// The change of the metadata on which a partition hangs, while it is not durable.
    pub(crate) fn unstored_partition(&self, topic: Uuid, index: i32) -> Option<u64> {
        // Mostly there is nothing to wait for.
        self.store.as_ref()?.pending()?;
        let name = self.topics.name_of(topic)?;
        let partition = self.topics.get(name)?.partition(index)?;
        self.unstored(partition.stored).ok().flatten()
    }

    /// Does something when these changes are durable.
    pub(crate) fn when_durable(&mut self, now: Instant, mut needs: Needs, then: Then) {
        if let Some(change) = self.store.as_ref().and_then(|store| store.pending()) {
            // What is kept of a topic is worth nothing without the topic.
            needs.insert(LogKey::Journal, change);
        }
        let mut error = None;
        needs.retain(|key, change| match self.log(*key) {
            Some(log) if log.is_broken() => {
                error = Some(ErrorCode::KAFKA_STORAGE_ERROR);
                false
            }
            Some(log) => log.durable() < *change,
            None => false,
        });
        if needs.is_empty() || error.is_some() {
            return self.go_on(now, then, error);
        }
        self.settling.next += 1;
        let id = self.settling.next;
        self.settling.held.insert(id, Held { left: needs.len(), error, then });
        for (key, change) in needs {
            self.settling.wait(key, change, Waiter::Held(id));
            self.settling.want(key);
        }
    }

    fn go_on(&mut self, now: Instant, then: Then, error: Option<ErrorCode>) {
        match then {
            Then::Answer { ticket, response, refusal } => match (error, refusal) {
                (None, _) => self.answer_ticket(ticket, response),
                (Some(_), Some(refusal)) => self.answer_ticket(ticket, refusal),
                (Some(code), None) => self.close_ticket(now, ticket, Closing::NotStored(code)),
            },
            Then::Group { shard, incarnation, id } => {
                self.group_appended(now, shard, incarnation, id, error.map_or(Ok(()), Err));
            }
            Then::Prepared(id) => self.transaction_prepared(now, &id, error),
            Then::Marked(id) => self.transaction_marked(now, &id, error),
            Then::HandOut(task) => {
                if error.is_none() {
                    self.hand_out(task);
                }
            }
        }
    }

    /// The next piece of work that somebody waits for.
    pub(crate) fn next_work(&mut self) -> Option<BrokerOutput> {
        if self.settling.wanted.is_empty() {
            return None;
        }
        let free: Vec<LogKey> = self.settling.wanted.difference(&self.settling.in_flight).copied().collect();
        for key in free {
            self.settling.wanted.remove(&key);
            if let Some(flushing) = self.log_mut(key).and_then(|log| log.begin_flush()) {
                self.settling.in_flight.insert(key);
                return Some(BrokerOutput::Work(Work(Task::Flush(key, flushing))));
            }
            if self.settling.waiting.contains_key(&key) {
                // There is nothing to sync, or nothing can be synced any more.
                return Some(BrokerOutput::Work(Work(Task::Settle(key))));
            }
        }
        None
    }

    /// Takes in what came of work that was handed out.
    pub fn handle_done(&mut self, now: Instant, done: Done) {
        if self.closed {
            return;
        }
        match done.task {
            Task::Settle(key) => self.settle(now, key),
            Task::Flush(key, flushing) => {
                self.settling.in_flight.remove(&key);
                if let Some(log) = self.log_mut(key) {
                    // What went wrong is said, and the log refuses what comes.
                    let _ = log.end_flush(&flushing, done.result);
                }
                self.settle(now, key);
                if key == LogKey::Journal && self.log(key).is_some_and(|journal| journal.is_broken()) {
                    self.forget_unstored(now);
                }
                if self.settling.waiting.contains_key(&key) {
                    self.settling.want(key);
                }
            }
            Task::Compact(key, compaction) => {
                let Some(log) = self.log_mut(key) else { return };
                let rest = log.go_on_compacting(*compaction, done.result);
                self.sweep(key);
                if let Some(rest) = rest {
                    self.hand_out(Task::Compact(key, Box::new(rest)));
                }
            }
            Task::Remove { disk, dir, .. } => {
                self.say_failed("remove old records from", &disk.shown(&dir), done.result)
            }
            Task::Replace { disk, path, .. } => self.say_failed("write to", &disk.shown(path), done.result),
        }
    }

    fn say_failed(&self, what: &str, path: &str, result: std::io::Result<()>) {
        if let (Err(error), Some(store)) = (result, &self.store) {
            store.notes().say(format!("cannot {what} {path}: {error}"));
        }
    }

    /// Everything that waited for what is durable now goes on; all of it, when nothing can become durable any more.
    fn settle(&mut self, now: Instant, key: LogKey) {
        let (durable, error) = match self.log(key) {
            Some(log) if !log.is_broken() => (log.durable(), None),
            Some(_) => (u64::MAX, Some(ErrorCode::KAFKA_STORAGE_ERROR)),
            None => (u64::MAX, Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
        };
        for waiter in self.settling.ready(key, durable) {
            match waiter {
                Waiter::Records(bytes) => {
                    if let (LogKey::Partition(topic, index), None) = (key, error) {
                        self.appended(now, (topic, index), bytes);
                    }
                }
                Waiter::Held(id) => {
                    if let Some((then, error)) = self.settling.met(id, error) {
                        self.go_on(now, then, error);
                    }
                }
            }
        }
    }

    /// Nothing of these logs becomes durable any more: they are gone.
    pub(crate) fn settle_gone(&mut self, now: Instant, topic: Uuid) {
        let of_topic = |key: &&LogKey| matches!(key, LogKey::Partition(id, _) if *id == topic);
        let gone: Vec<LogKey> = self.settling.waiting.keys().filter(of_topic).copied().collect();
        for key in gone {
            self.settle(now, key);
        }
    }

    /// Hands out work that nobody waits for.
    pub(crate) fn hand_out(&mut self, task: Task) {
        self.outputs.push_back(BrokerOutput::Work(Work(task)));
    }

    /// Hands out the removal of what a log does not need any more.
    pub(crate) fn sweep(&mut self, key: LogKey) {
        let Some(files) = self.log_mut(key).map(|log| log.take_rubbish()).filter(|files| !files.is_empty())
        else {
            return;
        };
        let Some(disk) = self.store.as_ref().map(|store| store.disk()) else { return };
        let dir = files.first().and_then(|file| file.rsplit_once('/')).map_or("", |(dir, _)| dir).to_owned();
        self.hand_out(Task::Remove { disk, dir, files, dirs: Vec::new() });
    }

    /// Compacts a log when it has grown.
    pub(crate) fn compact_if_grown(&mut self, key: LogKey, oldest_tombstone: i64) {
        let stop = self.chores.stop.clone();
        let compaction = self.log_mut(key).and_then(|log| log.compact_if_grown(oldest_tombstone, &stop));
        if let Some(compaction) = compaction {
            self.hand_out(Task::Compact(key, Box::new(compaction)));
        }
    }

    /// Runs all work that is waiting to be handed out here and now, for drivers that have nobody else to serve.
    pub fn work_off(&mut self, now: Instant) {
        loop {
            let at = self.outputs.iter().position(|output| matches!(output, BrokerOutput::Work(_)));
            let work = at.and_then(|at| self.outputs.remove(at)).or_else(|| self.next_work());
            match work {
                Some(BrokerOutput::Work(work)) => self.handle_done(now, work.run()),
                _ => return,
            }
        }
    }
}
