//! What to read: subscribing, unsubscribing, assigning by hand.

use super::Consumer;
use crate::{Error, listener::RebalanceListener};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tontine_group::TopicPartition;

/// Names of topics, in whatever form they are at hand: an array, a `Vec`, a set, of `&str`, `String` or `Arc<str>`.
pub trait Topics {
    /// The names, each once.
    fn into_topics(self) -> BTreeSet<Arc<str>>;
}

impl<T, S> Topics for T
where
    T: IntoIterator<Item = S>,
    S: AsRef<str>,
{
    fn into_topics(self) -> BTreeSet<Arc<str>> {
        self.into_iter().map(|name| Arc::from(name.as_ref())).collect()
    }
}

impl Consumer {
    /// Shares these topics with the group, from the next poll on; replaces what was subscribed. No topics at all is
    /// [`Consumer::unsubscribe`]. `()` is the listener that does nothing.
    pub async fn subscribe(
        &mut self,
        topics: impl Topics,
        listener: impl RebalanceListener + 'static,
    ) -> Result<(), Error> {
        let topics = topics.into_topics();
        self.front.desk.check_group()?;
        if topics.is_empty() {
            return self.unsubscribe().await;
        }
        self.front.desk.subscribe(topics)?;
        self.listener = Some(Box::new(listener));
        self.front.flush();
        Ok(())
    }

    /// Changes the topics and keeps the listener.
    pub async fn subscribe_topics(&mut self, topics: impl Topics) -> Result<(), Error> {
        let topics = topics.into_topics();
        self.front.desk.check_group()?;
        if topics.is_empty() {
            return self.unsubscribe().await;
        }
        self.front.desk.subscribe(topics)?;
        self.front.flush();
        Ok(())
    }

    /// Shares every topic whose whole name matches a regular expression with the group, new ones as they appear. The
    /// expression is one of RE2, as Kafka's coordinator reads it, whichever protocol the group speaks.
    pub async fn subscribe_pattern(
        &mut self,
        pattern: &str,
        listener: impl RebalanceListener + 'static,
    ) -> Result<(), Error> {
        self.front.desk.subscribe_pattern(pattern)?;
        self.listener = Some(Box::new(listener));
        self.front.flush();
        Ok(())
    }

    /// Replaces the listener, from the next poll on.
    pub fn set_listener(&mut self, listener: impl RebalanceListener + 'static) {
        self.listener = Some(Box::new(listener));
    }

    /// Gives up subscription and assignment, and leaves the group. The listener hears of what is given up; nothing is
    /// committed, even with auto-commit on.
    pub async fn unsubscribe(&mut self) -> Result<(), Error> {
        self.front.desk.check_open()?;
        let timeout = self.front.default_timeout;
        let result = self.leave("the consumer unsubscribed", false, timeout).await;
        self.listener = None;
        result
    }

    /// Leaves the group and lets go of everything; callbacks run on the way, at the end of a consumer no longer than the
    /// timeout. The first error of a callback is returned.
    pub(super) async fn leave(
        &mut self,
        reason: &str,
        forever: bool,
        timeout: Duration,
    ) -> Result<(), Error> {
        let mut first_error = Ok(());
        if self.front.desk.is_in_group() || self.front.desk.is_leaving() {
            self.front.desk.leave(reason, forever, timeout);
            let deadline = forever.then(|| self.front.now() + timeout);
            loop {
                self.front.exchange();
                if let Some(turn) = self.front.desk.next_callback() {
                    let result = self.turn_while_leaving(turn, deadline).await;
                    let late = matches!(result, Err(Error::Timeout { .. }));
                    first_error = first_error.and(result);
                    if late {
                        break;
                    }
                    continue;
                }
                self.front.flush();
                if self.front.desk.has_left() {
                    break;
                }
                self.front.wait(None).await?;
            }
        }
        self.front.desk.finish_leaving();
        self.front.flush();
        first_error
    }

    /// Reads exactly these partitions, without sharing them with anybody; replaces what was assigned. Those that were
    /// assigned before go on where they are.
    pub fn assign(
        &mut self,
        partitions: impl IntoIterator<Item = impl Into<TopicPartition>>,
    ) -> Result<(), Error> {
        let now = self.front.now();
        let result = self.front.desk.assign(now, partitions.into_iter().map(Into::into).collect());
        self.front.flush();
        result
    }
}
