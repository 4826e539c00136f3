//! The state behind one lock, and the way from its outputs to the tasks of the connections.
//!
//! A connection's task calls the state itself: most requests are answered without waking anybody. The lock is never held
//! across an await, nor while the disk is waited for: what the state hands out as work runs on threads of its own. One
//! task keeps time.

use super::buffers::Buffers;
use super::connection::Event;
use crate::cluster::NodeId;
use crate::state::{BrokerOutput, BrokerState, Closing, ConnId};
use crate::work::Work;
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tontine_group::Instant;

/// What happens next on a connection that handed in a request.
#[derive(Debug)]
pub(super) enum Next {
    /// This is the outcome.
    Now(Event),
    /// It comes later.
    Later(oneshot::Receiver<Event>),
    /// The connection is closed.
    Closed,
}

#[derive(Debug)]
struct Entry {
    task: AbortHandle,
    waiter: Option<oneshot::Sender<Event>>,
    last_request: Instant,
}

#[derive(Debug)]
struct Inner {
    state: BrokerState,
    connections: HashMap<ConnId, Entry>,
    /// When the timer will call; `None` is never.
    scheduled: Option<Instant>,
}

/// Stands for an answer that is being written.
#[derive(Debug)]
pub(super) struct Outgoing<'s>(&'s Shared, usize);

impl Drop for Outgoing<'_> {
    fn drop(&mut self) {
        self.0.outgoing.fetch_sub(self.1, Ordering::AcqRel);
    }
}

/// Stands for a request that came and whose answer has not gone out yet.
#[derive(Debug)]
pub(super) struct Busy<'s>(&'s Shared);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// How much work is under way, and how much has ended.
#[derive(Debug, Default)]
struct Tally {
    count: usize,
    ended: u64,
}

/// Work that is under way. Also work that is never run, because its runtime ended, is over when this is dropped.
#[derive(Debug)]
struct UnderWay(Arc<Shared>);

impl UnderWay {
    fn begin(shared: Arc<Shared>) -> Self {
        locked(&shared.under_way).count += 1;
        Self(shared)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut tally = locked(&self.0.under_way);
        (tally.count, tally.ended) = (tally.count - 1, tally.ended + 1);
        drop(tally);
        self.0.all_done.notify_all();
    }
}

/// A panic elsewhere does not make what is locked worse than it is: go on with it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State, connections and clock of a running broker.
#[derive(Debug)]
pub(super) struct Shared {
    me: Weak<Self>,
    runtime: Handle,
    under_way: Mutex<Tally>,
    all_done: Condvar,
    said: Mutex<BTreeSet<String>>,
    inner: Mutex<Inner>,
    origin: tokio::time::Instant,
    next_conn: AtomicU64,
    sooner: Notify,
    in_flight: AtomicU64,
    idle: Notify,
    /// How many bytes of answers are being written.
    outgoing: AtomicUsize,
    buffers: Buffers,
}

/// How long a broker that stops waits for answers to go out: a client that does not read must not keep it.
const FAREWELL: Duration = Duration::from_secs(2);

/// How much memory answers may take that clients have not read yet; beyond it fetches get one batch at a time.
const ANSWER_ROOM: usize = 64 << 20;

/// How many different things are said once: a client that makes mistakes must not fill memory or a log.
const MOST_SAID: usize = 100;

impl Shared {
    pub(super) fn new(state: BrokerState) -> Arc<Self> {
        let inner = Inner { state, connections: HashMap::new(), scheduled: Some(Instant::ZERO) };
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            runtime: Handle::current(),
            under_way: Mutex::default(),
            all_done: Condvar::new(),
            said: Mutex::default(),
            inner: Mutex::new(inner),
            origin: tokio::time::Instant::now(),
            next_conn: AtomicU64::new(0),
            sooner: Notify::new(),
            in_flight: AtomicU64::new(0),
            idle: Notify::new(),
            outgoing: AtomicUsize::new(0),
            buffers: Buffers::default(),
        })
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_origin(self.origin.elapsed())
    }

    /// Says something that an operator should know, the first time that it happens.
    pub(super) fn say_once(&self, what: String) {
        let mut said = locked(&self.said);
        if said.len() < MOST_SAID && !said.contains(&what) {
            tracing::warn!("{what}");
            said.insert(what);
        }
    }

    /// Memory that connections read into.
    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// A request is on its way until what comes back is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        Busy(self)
    }

    /// So many bytes of an answer are being written until what comes back is dropped.
    pub(super) fn outgoing(&self, bytes: usize) -> Outgoing<'_> {
        self.outgoing.fetch_add(bytes, Ordering::AcqRel);
        Outgoing(self, bytes)
    }

    /// Answers what waits, tells members to look for another coordinator, and lets the answers go out.
    pub(super) async fn finish(&self) {
        self.with(BrokerState::wind_down);
        let all_out = async {
            loop {
                let idle = self.idle.notified();
                if self.in_flight.load(Ordering::Acquire) == 0 {
                    return;
                }
                idle.await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, all_out).await;
    }

    /// Closes the data directory.
    pub(super) fn close_store(&self) {
        self.wait_for_work();
        let now = self.now();
        let mut inner = self.lock();
        if inner.state.shut_down(now).is_err() {
            tracing::warn!("the data directory could not be closed in good order: the next start checks it");
        }
        self.tell(&mut inner);
    }

    fn tell(&self, inner: &mut Inner) {
        for note in inner.state.take_notes() {
            tracing::warn!("{note}");
        }
    }

    /// Nobody else may use the data directory while something is still written to it.
    fn wait_for_work(&self) {
        self.look(BrokerState::hurry);
        let mut under_way = locked(&self.under_way);
        while under_way.count > 0 {
            under_way = self.all_done.wait(under_way).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs work where it keeps nobody waiting.
    fn hand_out(&self, work: Work) {
        let Some(me) = self.me.upgrade() else { return };
        let under_way = UnderWay::begin(me);
        self.runtime.spawn_blocking(move || {
            let done = work.run();
            under_way.0.with(|state, now| state.handle_done(now, done));
        });
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        locked(&self.inner)
    }

    /// Does something with the state, and waits until the metadata that it changed is durable. Whether it is.
    pub(super) fn with_durable<R>(&self, act: impl FnOnce(&mut BrokerState, Instant) -> R) -> (R, bool) {
        let result = self.with(act);
        loop {
            let before = locked(&self.under_way).ended;
            if !self.look(BrokerState::metadata_is_pending) {
                return (result, true);
            }
            let mut under_way = locked(&self.under_way);
            if under_way.count == 0 && under_way.ended == before {
                // It failed, or there is nobody who would do it.
                drop(under_way);
                return (result, self.with(|state, now| state.flush_metadata(now)));
            }
            while under_way.ended == before {
                under_way = self.all_done.wait(under_way).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Does something with the state and carries out what comes of it.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut BrokerState, Instant) -> R) -> R {
        let now = self.now();
        let mut inner = self.lock();
        let result = act(&mut inner.state, now);
        self.drain(&mut inner, None);
        result
    }

    /// Looks at the state.
    pub(super) fn look<R>(&self, look: impl FnOnce(&BrokerState) -> R) -> R {
        look(&self.lock().state)
    }

    /// Takes in a connection whose task `spawn` starts; `None` when there are too many.
    pub(super) fn connect(
        &self,
        node: NodeId,
        host: String,
        spawn: impl FnOnce(ConnId) -> AbortHandle,
    ) -> Option<ConnId> {
        let now = self.now();
        let mut inner = self.lock();
        if inner.connections.len() >= inner.state.settings().max_connections || !inner.state.is_up(node) {
            return None;
        }
        let conn = ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed));
        inner.state.handle_connected(now, conn, node, host);
        // The lock is held until the entry is there: the task cannot hand in a request before.
        let task = spawn(conn);
        inner.connections.insert(conn, Entry { task, waiter: None, last_request: now });
        Some(conn)
    }

    /// A connection is gone.
    pub(super) fn disconnected(&self, conn: ConnId) {
        let now = self.now();
        let mut inner = self.lock();
        if inner.connections.remove(&conn).is_some() {
            inner.state.handle_disconnected(now, conn);
            self.drain(&mut inner, None);
        }
    }

    /// Hands in a request.
    pub(super) fn request(&self, conn: ConnId, frame: Bytes) -> Next {
        let now = self.now();
        let mut inner = self.lock();
        let outgoing = self.outgoing.load(Ordering::Acquire);
        inner.state.set_answer_room(ANSWER_ROOM.saturating_sub(outgoing));
        inner.state.handle_frame(now, conn, frame);
        let outcome = self.drain(&mut inner, Some(conn));
        let Some(entry) = inner.connections.get_mut(&conn) else { return Next::Closed };
        entry.last_request = now;
        match outcome {
            Some(event) => Next::Now(event),
            None => {
                let (sender, receiver) = oneshot::channel();
                entry.waiter = Some(sender);
                Next::Later(receiver)
            }
        }
    }

    /// Carries out what the state wants; what is for `mine` is handed back.
    fn drain(&self, inner: &mut Inner, mine: Option<ConnId>) -> Option<Event> {
        let mut outcome = None;
        loop {
            let (conn, event) = match inner.state.poll_output() {
                BrokerOutput::Reply { conn, version, correlation_id, response } => {
                    (conn, Event::Reply { version, correlation_id, response: Box::new(response) })
                }
                BrokerOutput::Frame { conn, frame } => (conn, Event::Frame(frame)),
                BrokerOutput::Silent { conn } => (conn, Event::Silent),
                BrokerOutput::Disconnect { conn, why } => {
                    tracing::debug!(conn = conn.0, %why, "closing a connection");
                    if let Closing::UnknownApi { .. } = why {
                        self.say_once(format!("a connection is closed: {why}"));
                    }
                    if let Some(entry) = inner.connections.remove(&conn) {
                        entry.task.abort();
                    }
                    continue;
                }
                BrokerOutput::Transition(transition) => {
                    tracing::debug!(
                        group = %transition.group, from = %transition.from, to = %transition.to,
                        generation = transition.generation, cause = %transition.cause, "group"
                    );
                    continue;
                }
                BrokerOutput::Work(work) => {
                    self.hand_out(work);
                    continue;
                }
                BrokerOutput::Wait(deadline) => {
                    self.tell(inner);
                    self.schedule(inner, deadline);
                    return outcome;
                }
            };
            if mine == Some(conn) {
                outcome = Some(event);
            } else if let Some(waiter) =
                inner.connections.get_mut(&conn).and_then(|entry| entry.waiter.take())
            {
                // A task that went away meanwhile needs no answer.
                let _ = waiter.send(event);
            }
        }
    }

    fn schedule(&self, inner: &mut Inner, deadline: Option<Instant>) {
        if let Some(at) = deadline
            && inner.scheduled.is_none_or(|scheduled| at < scheduled)
        {
            inner.scheduled = Some(at);
            self.sooner.notify_one();
        }
    }

    /// Calls the state whenever its time has come; never returns.
    pub(super) async fn keep_time(self: Arc<Self>) {
        loop {
            let scheduled = self.lock().scheduled;
            match scheduled {
                None => self.sooner.notified().await,
                Some(at) => {
                    // Far away is not forever: a time that the clock cannot name would be a panic.
                    let due = tokio::time::sleep((at - self.now()).min(Duration::from_secs(3600)));
                    tokio::select! {
                        () = due => self.time_out(),
                        () = self.sooner.notified() => {}
                    }
                }
            }
        }
    }

    fn time_out(&self) {
        let now = self.now();
        let mut inner = self.lock();
        inner.scheduled = None;
        // Called early, the state does nothing and says again when it wants to be called.
        inner.state.handle_timeout(now);
        self.drain(&mut inner, None);
    }

    /// Closes connections that have been silent for too long (`connections.max.idle.ms`); never returns.
    pub(super) async fn close_idle(self: Arc<Self>) {
        let Some(idle) = self.look(|state| state.settings().connections_max_idle) else { return };
        let period = (idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(60));
        loop {
            tokio::time::sleep(period).await;
            let now = self.now();
            let mut inner = self.lock();
            let silent = |entry: &Entry| entry.waiter.is_none() && now - entry.last_request > idle;
            let gone: Vec<ConnId> =
                inner.connections.iter().filter(|(_, entry)| silent(entry)).map(|(conn, _)| *conn).collect();
            for conn in gone {
                if let Some(entry) = inner.connections.remove(&conn) {
                    entry.task.abort();
                    inner.state.handle_disconnected(now, conn);
                }
            }
            self.drain(&mut inner, None);
        }
    }

    /// Ends the tasks of all connections.
    pub(super) fn close_all(&self) {
        for (_, entry) in self.lock().connections.drain() {
            entry.task.abort();
        }
    }

    /// How many connections there are.
    pub(super) fn connections(&self) -> usize {
        self.lock().connections.len()
    }
}
