//! Our consumers as members of a group, each behind a proxy of its own, so that one can be frozen or killed as a process can.
//!
//! A member polls until it is told otherwise, and writes everything that its application sees into the [`History`].
//! [`Plan`] says what its application does: when it commits, and what its callbacks do.

mod listener;
mod plan;
mod run;

pub use plan::{Commit, In, Plan};

use crate::history::{CommitResult, End, History, What};
use crate::proxy::Proxy;
use crate::{Failure, wait};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tontine::Consumer;

/// How long a member may take to do what it is told.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a closure for [`Member::with`] returns.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something to do with the consumer between two polls.
type Task = Box<dyn for<'a> FnOnce(&'a mut Consumer) -> Doing<'a, ()> + Send>;

/// What a member is told.
enum Order {
    /// Poll, or do not.
    Poll(bool),
    /// Do this with the consumer.
    Do(Task),
    /// Commit what was consumed.
    Commit(oneshot::Sender<CommitResult>),
    /// Close the consumer and end.
    Close(oneshot::Sender<Result<(), String>>),
}

/// A member of a group; killed when dropped.
#[derive(Debug)]
pub struct Member {
    name: Arc<str>,
    history: History,
    orders: mpsc::UnboundedSender<Order>,
    proxy: Proxy,
    task: JoinHandle<()>,
    ended: bool,
}

impl Member {
    /// Starts a member: it subscribes and polls.
    pub fn start(history: &History, name: &str, plan: Plan) -> Result<Self, Failure> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let proxy = Proxy::start(plan.servers())?;
        let plan = plan.set("bootstrap.servers", proxy.bootstrap_servers());
        let task = tokio::spawn(run::member(history.member(name), plan, inbox));
        Ok(Self { name: name.into(), history: history.clone(), orders, proxy, task, ended: false })
    }

    /// The member's name in the history.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The proxy between this member and the brokers.
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    fn tell(&self, order: Order) -> Result<(), Failure> {
        self.orders.send(order).map_err(|_| self.history.failure(&format!("{} is gone", self.name)))
    }

    async fn answer<T>(&self, what: &str, answer: oneshot::Receiver<T>) -> Result<T, Failure> {
        let what = format!("{} {what}", self.name);
        match wait::within(&what, DEADLINE, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(self.history.failure(&format!("{what}: the member is gone"))),
            Err(late) => Err(self.history.failure(&late.0)),
        }
    }

    /// Does something with the consumer between two polls, and returns what comes of it.
    pub async fn with<T, F>(&self, act: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Consumer) -> Doing<'a, T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task: Task = Box::new(move |consumer| {
            let doing = act(consumer);
            Box::pin(async move {
                let _ = reply.send(doing.await);
            })
        });
        self.tell(Order::Do(task))?;
        self.answer("does what it is told", answer).await
    }

    /// [`Member::with`] for something that can fail.
    pub async fn attempt<T, F>(&self, what: &str, act: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Consumer) -> Doing<'a, Result<T, tontine::Error>> + Send + 'static,
    {
        let done = self.with(act).await?;
        done.map_err(|e| self.history.failure(&format!("{} cannot {what}: {e}", self.name)))
    }

    /// Stops polling after the poll that runs; heartbeats go on.
    pub async fn stop_polling(&self) -> Result<(), Failure> {
        self.tell(Order::Poll(false))?;
        self.with(|_| Box::pin(async {})).await
    }

    /// Polls again.
    pub fn go_on_polling(&self) -> Result<(), Failure> {
        self.tell(Order::Poll(true))
    }

    /// Commits what was consumed and waits for the end of that.
    pub async fn commit(&self) -> Result<CommitResult, Failure> {
        let (reply, answer) = oneshot::channel();
        self.tell(Order::Commit(reply))?;
        self.answer("commits", answer).await
    }

    /// Subscribes to these topics instead, with the same listener.
    pub async fn subscribe(&self, topics: &[&str]) -> Result<(), Failure> {
        let topics: Vec<String> = topics.iter().map(ToString::to_string).collect();
        self.attempt("subscribe", |consumer| Box::pin(async move { consumer.subscribe_topics(topics).await }))
            .await
    }

    /// Gives up the subscription, and polls no more.
    pub async fn unsubscribe(&self) -> Result<(), Failure> {
        self.stop_polling().await?;
        self.attempt("unsubscribe", |consumer| Box::pin(consumer.unsubscribe())).await
    }

    /// Closes the consumer. The result is that of `close`; the member's end is in the history when this returns.
    pub async fn close(mut self) -> Result<Result<(), String>, Failure> {
        let (reply, answer) = oneshot::channel();
        self.tell(Order::Close(reply))?;
        let closed = self.answer("closes", answer).await?;
        self.ended = true;
        Ok(closed)
    }

    /// Kills the member: no callback, no leave, connections gone.
    pub fn kill(self) {
        drop(self);
    }

    /// Stops the member where it stands: it does not poll, and nothing it sends arrives; connections stay open.
    pub async fn freeze(&self) -> Result<(), Failure> {
        self.stop_polling().await?;
        self.proxy.stall();
        self.history.write(&self.name, What::Note("frozen".into()));
        Ok(())
    }

    /// Lets a frozen member go on; it still has to be told to poll.
    pub fn thaw(&self) {
        self.history.write(&self.name, What::Note("goes on".into()));
        self.proxy.flow();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if !self.ended {
            // The network goes first, so that the consumer, which says goodbye when it is dropped, is not heard.
            self.proxy.shut();
            self.task.abort();
            self.history.write(&self.name, What::Ended(End::Killed));
        }
    }
}
