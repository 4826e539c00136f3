//! What the consumer and the contexts of its callbacks stand on: the desk, the line to the actor, and waiting.
//!
//! Everything that waits here can be dropped at any point: answers and events stay where they are, and nothing has
//! moved.

use super::audit_log::AuditLog;
use crate::{
    Error,
    desk::{Desk, Turn},
    net::{Handle, mpsc, oneshot},
    state::{Answer, Ask, CallId, Command, Event, Tell},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time};
use tontine_group::{Instant, time::soonest};

/// What runs when a commit that nobody waited for has ended.
pub(super) type OnCommit = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Whom to tell how a commit ended; `None` when nothing will end any more.
type Futures = Option<BTreeMap<CallId, oneshot::Sender<Result<(), Error>>>>;

/// Futures of commits, completed by the actor's thread: they end also when nobody polls the consumer.
#[derive(Clone, Debug)]
pub(super) struct CommitFutures(Arc<Mutex<Futures>>);

/// The actor's end of the futures: when the actor is gone, however it ended, no future waits for it any more.
pub(super) struct CommitEnds(CommitFutures);

impl CommitEnds {
    pub(super) fn see(&self, event: &Event) {
        self.0.see(event);
    }
}

impl Drop for CommitEnds {
    fn drop(&mut self) {
        if let Ok(mut waiting) = self.0.0.lock() {
            *waiting = None;
        }
    }
}

impl CommitFutures {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(BTreeMap::new()))))
    }

    pub(super) fn ends(&self) -> CommitEnds {
        CommitEnds(self.clone())
    }

    /// An event passes by; the end of a commit completes its future.
    fn see(&self, Event(tell): &Event) {
        let Tell::Answer { call, answer } = tell else { return };
        let Ok(mut waiting) = self.0.lock() else { return };
        if let Some(future) = waiting.as_mut().and_then(|waiting| waiting.remove(call)) {
            // Nobody listening is fine.
            let _ = future.send(answer.clone().map(|_| ()));
        }
    }

    fn add(&self, call: CallId) -> oneshot::Receiver<Result<(), Error>> {
        let (sender, receiver) = oneshot::channel();
        if let Ok(mut waiting) = self.0.lock()
            && let Some(waiting) = waiting.as_mut()
        {
            waiting.insert(call, sender);
        }
        receiver
    }
}

/// A pending `wakeup`.
#[derive(Debug, Default)]
pub(super) struct Wakeup {
    pending: AtomicBool,
    notify: Notify,
}

impl Wakeup {
    pub(super) fn wake(&self) {
        self.pending.store(true, Ordering::SeqCst);
        self.notify.notify_one();
    }

    fn take(&self) -> Result<(), Error> {
        if self.pending.swap(false, Ordering::SeqCst) { Err(Error::Woken) } else { Ok(()) }
    }
}

/// See the module.
pub(crate) struct Front {
    pub(crate) desk: Desk,
    pub(super) actor: Handle<Command>,
    pub(super) events: mpsc::UnboundedReceiver<Event>,
    pub(super) futures: CommitFutures,
    pub(super) wakeup: Arc<Wakeup>,
    pub(super) on_commit: BTreeMap<CallId, OnCommit>,
    pub(super) origin: time::Instant,
    pub(super) default_timeout: Duration,
    pub(super) group_id: Option<Arc<str>>,
    pub(super) audit: Option<AuditLog>,
}

impl Front {
    /// The time as the desk counts it.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_origin(self.origin.elapsed())
    }

    /// Hands over what the desk has to say, and takes what the actor has said.
    pub(crate) fn exchange(&mut self) {
        self.flush();
        let now = self.now();
        let mut heard = false;
        while let Ok(event) = self.events.try_recv() {
            self.take(now, event);
            heard = true;
        }
        if heard {
            self.flush();
        }
    }

    pub(crate) fn flush(&mut self) {
        if let Some(audit) = &mut self.audit {
            audit.append(&self.desk.audit_entries());
        }
        for command in self.desk.commands() {
            // An actor that has ended says so through the events.
            let _ = self.actor.send(command);
        }
    }

    fn take(&mut self, now: Instant, Event(tell): Event) {
        self.log(&tell);
        self.desk.handle(now, tell);
    }

    /// What an application is not told by a result.
    fn log(&self, tell: &Tell) {
        let group = self.group_id.as_deref().unwrap_or_default();
        match tell {
            Tell::Happened(happening) => tracing::debug!(group, "{happening}"),
            Tell::Warned(warning) => tracing::warn!(group, "{warning}"),
            Tell::Answer { call, answer: Err(error) } if self.desk.commits_by_itself(*call) => {
                tracing::warn!(group, "an auto-commit failed: {error}");
            }
            _ => {}
        }
    }

    /// Waits until the actor says something, or until this time.
    pub(super) async fn wait(&mut self, until: Option<Instant>) -> Result<(), Error> {
        let event = {
            let far = Duration::from_secs(3600);
            let at = until.unwrap_or_else(|| self.now() + far);
            let left = at.saturating_since(self.now()).min(far);
            tokio::select! {
                biased;
                event = self.events.recv() => Some(event),
                () = self.wakeup.notify.notified() => None,
                () = time::sleep(left) => None,
            }
        };
        match event {
            None => Ok(()),
            Some(Some(event)) => {
                self.take(self.now(), event);
                self.flush();
                Ok(())
            }
            Some(None) => {
                self.desk.set_closed();
                Err(Error::Closed("the consumer"))
            }
        }
    }

    /// Refuses to go on when somebody called `wakeup`.
    pub(super) fn check_woken(&self) -> Result<(), Error> {
        self.wakeup.take()
    }

    /// Asks the actor and waits for its answer. The actor keeps the time.
    pub(crate) async fn call(&mut self, ask: impl FnOnce(CallId) -> Ask) -> Result<Answer, Error> {
        self.desk.check_open()?;
        let call = self.desk.call(ask);
        self.answer_to(call, None).await
    }

    pub(super) async fn answer_to(&mut self, call: CallId, until: Option<Instant>) -> Result<Answer, Error> {
        loop {
            self.exchange();
            if let Some(answer) = self.desk.take_answer(call) {
                return answer;
            }
            self.check_woken()?;
            if until.is_some_and(|until| until <= self.now()) {
                let what = "the call".to_owned();
                return Err(Error::Timeout { what, after: Duration::ZERO, why: None });
            }
            self.wait(until).await?;
        }
    }

    /// Runs what waits for the end of a commit.
    pub(super) fn commit_ended(&mut self, call: CallId, result: Result<(), Error>) {
        if let Some(callback) = self.on_commit.remove(&call) {
            callback(result);
        }
    }

    /// Runs what waits for commits that have ended by now.
    pub(super) fn run_commit_callbacks(&mut self) {
        while let Some((call, result)) = self.desk.next_ended_commit() {
            self.commit_ended(call, result);
        }
    }

    pub(super) fn future_of(&self, call: CallId) -> oneshot::Receiver<Result<(), Error>> {
        self.futures.add(call)
    }

    /// The earlier of a deadline and what the desk wants.
    pub(super) fn earlier(deadline: Instant, at: Option<Instant>) -> Option<Instant> {
        soonest(Some(deadline), at)
    }

    pub(super) fn turn(&mut self) -> Turn {
        let now = self.now();
        let turn = self.desk.next(now);
        self.flush();
        turn
    }
}
