//! The listener of a member: writes down what it is told, and does what the plan says.

use super::plan::{Commit, In, Todo};
use super::run::{Consumed, commit_result};
use crate::history::{Callback, MemberLog, What};
use std::sync::Arc;
use tontine::{Assigned, ListenerResult, Lost, RebalanceListener, Revoked, TopicPartition};

/// The listener; clones write into the same history.
#[derive(Clone)]
pub(super) struct Recorder {
    pub(super) log: MemberLog,
    pub(super) todo: Todo,
    pub(super) commit: Commit,
    pub(super) consumed: Arc<Consumed>,
}

/// What a callback sees of the consumer around it.
struct Seen {
    generation: Option<i32>,
    /// How many partitions are assigned.
    assignment: usize,
}

impl Recorder {
    fn called(&self, callback: Callback, partitions: &[TopicPartition], seen: &Seen) {
        if let Some(generation) = seen.generation {
            self.log.write(What::Note(format!("generation {generation}")));
        }
        self.log.write(What::Note(format!("assignment {}", seen.assignment)));
        self.log.called(callback, partitions.to_vec());
    }

    async fn linger(&self, what: Option<&In>) -> ListenerResult {
        match what {
            Some(In::Fail(message)) => Err(message.clone().into()),
            Some(In::Wait(gate)) => {
                // A test that has dropped the other side does not want to wait any more.
                let _ = gate.clone().wait_for(|open| *open).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn assigned(&self, cx: &mut Assigned<'_>) -> ListenerResult {
        let what = self.todo.take(Callback::Assigned);
        match &what {
            Some(In::Seek(offset)) => {
                for partition in cx.partitions().to_vec() {
                    cx.seek(&partition, *offset)?;
                    self.log.write(What::Sought(partition.clone(), *offset));
                    let position = cx.position(&partition).await?;
                    self.log.write(What::Note(format!("position {position}")));
                }
            }
            Some(In::Commit) => {
                let offsets = self.consumed.all();
                self.log.commit_sent(offsets.clone());
                let result = commit_result(cx.commit_sync().await);
                self.log.commit_ended(offsets, result);
            }
            _ => {}
        }
        self.linger(what.as_ref()).await
    }

    async fn commit(&self, cx: &mut Revoked<'_>) -> ListenerResult {
        let offsets = self.consumed.all();
        self.log.commit_sent(offsets.clone());
        let result = cx.commit_sync().await;
        self.log.commit_ended(offsets, commit_result(result.clone()));
        Ok(result?)
    }

    async fn revoked(&self, cx: &mut Revoked<'_>, callback: Callback) -> ListenerResult {
        let what = self.todo.take(callback);
        if let Some(In::WakeAndCommit(waker)) = &what {
            waker.wake();
            self.commit(cx).await?;
        }
        if matches!(what, Some(In::Commit)) || (self.commit.is_in_revoked() && callback == Callback::Revoked)
        {
            // How it ended is in the history; a test that wants the callback to fail says so.
            let _ = self.commit(cx).await;
        }
        self.consumed.forget(cx.partitions());
        self.linger(what.as_ref()).await
    }
}

impl RebalanceListener for Recorder {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        let generation = cx.group_metadata().ok().and_then(|m| m.generation);
        let seen = Seen { generation, assignment: cx.assignment().len() };
        self.called(Callback::Assigned, cx.partitions(), &seen);
        let result = self.assigned(cx).await;
        self.log.returned(Callback::Assigned);
        result
    }

    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        let callback = if cx.is_lost() { Callback::Lost } else { Callback::Revoked };
        let generation = cx.group_metadata().ok().and_then(|m| m.generation);
        let seen = Seen { generation, assignment: cx.assignment().len() };
        self.called(callback, cx.partitions(), &seen);
        let result = self.revoked(cx, callback).await;
        self.log.returned(callback);
        result
    }

    /// The default, said aloud: lost is revoked with a context that refuses to commit.
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.on_partitions_revoked(&mut cx.as_revoked()).await
    }
}
