//! The application of a member: the loop that polls, does what it is told, and writes down what it sees.

use super::Order;
use super::listener::Recorder;
use super::plan::{Commit, Plan};
use crate::history::{CommitResult, End, MemberLog, What};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tontine::{Consumer, Error, Records, TopicPartition};

/// Long, since orders interrupt a poll: it can be dropped at any time.
const POLL: Duration = Duration::from_secs(5);

/// What was handed out and not given up: partition to the next offset.
#[derive(Debug, Default)]
pub(super) struct Consumed(Mutex<BTreeMap<TopicPartition, i64>>);

impl Consumed {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> BTreeMap<TopicPartition, i64> {
        self.locked().clone()
    }

    pub(super) fn forget(&self, partitions: &[TopicPartition]) {
        self.locked().retain(|partition, _| !partitions.contains(partition));
    }
}

/// How the end of a commit is written down.
pub(super) fn commit_result(result: Result<(), Error>) -> CommitResult {
    match result {
        Ok(()) => CommitResult::Stored,
        Err(error @ (Error::Timeout { .. } | Error::Disconnected(_))) => {
            CommitResult::Unknown(error.to_string())
        }
        Err(error) => CommitResult::Refused(error.to_string()),
    }
}

/// Runs a member to its end.
pub(super) async fn member(log: MemberLog, plan: Plan, inbox: mpsc::UnboundedReceiver<Order>) {
    match Application::start(log.clone(), plan).await {
        Ok(application) => application.run(inbox).await,
        Err(error) => log.write(What::Failed(format!("cannot start: {error}"))),
    }
}

struct Application {
    log: MemberLog,
    consumer: Consumer,
    consumed: Arc<Consumed>,
    commit: Commit,
    polling: bool,
}

impl Application {
    async fn start(log: MemberLog, plan: Plan) -> Result<Self, Error> {
        let mut builder = Consumer::builder();
        for (key, value) in &plan.settings {
            builder = builder.set(key, value);
        }
        let mut consumer = builder.build()?;
        let consumed = Arc::new(Consumed::default());
        let recorder =
            Recorder { log: log.clone(), todo: plan.todo, commit: plan.commit, consumed: consumed.clone() };
        match &plan.pattern {
            Some(pattern) => consumer.subscribe_pattern(pattern, recorder).await?,
            None => consumer.subscribe(plan.topics, recorder).await?,
        }
        Ok(Self { log, consumer, consumed, commit: plan.commit, polling: true })
    }

    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                biased;
                order = inbox.recv() => match order {
                    Some(Order::Close(reply)) => {
                        let closed = self.consumer.close().await.map_err(|e| e.to_string());
                        self.log.ended(End::Closed);
                        let _ = reply.send(closed);
                        return;
                    }
                    Some(order) => self.obey(order).await,
                    None => return,
                },
                polled = self.consumer.poll(POLL), if self.polling => self.polled(polled).await,
            }
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Poll(polling) => self.polling = polling,
            Order::Do(task) => task(&mut self.consumer).await,
            Order::Commit(reply) => {
                let _ = reply.send(self.commit_now().await);
            }
            Order::Close(_) => {}
        }
    }

    async fn polled(&mut self, polled: Result<Records, Error>) {
        match polled {
            Ok(records) if records.is_empty() => {}
            Ok(records) => {
                self.deliver(&records);
                if self.commit.is_each_poll() {
                    self.commit_now().await;
                }
            }
            Err(error) => {
                let over = matches!(error, Error::Fenced(_) | Error::Closed(_));
                self.log.write(What::Failed(error.to_string()));
                // A fatal error is all that further polls would return.
                self.polling &= !over;
            }
        }
    }

    fn deliver(&self, records: &Records) {
        for part in records.partitions() {
            let offsets: Vec<i64> = part.iter().map(|record| record.offset()).collect();
            let next = part.next_offset().offset;
            self.log.delivered(part.partition().clone(), offsets);
            self.consumed.locked().insert(part.partition().clone(), next);
        }
    }

    async fn commit_now(&mut self) -> CommitResult {
        let offsets = self.consumed.all();
        self.log.commit_sent(offsets.clone());
        let result = commit_result(self.consumer.commit_sync().await);
        self.log.commit_ended(offsets, result.clone());
        result
    }
}
