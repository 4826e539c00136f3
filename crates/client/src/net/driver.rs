//! Runs a machine: one thread that owns it, its connections and its timer.

use super::{
    Clock, NetSettings,
    connection::{self, NetEvent},
    mpsc,
};
use crate::{
    Error,
    cluster::ConnId,
    machine::{Machine, MachineOutput},
};
use bytes::Bytes;
use std::{collections::BTreeMap, future::pending, time::Duration};
use tokio::{
    task::{AbortHandle, JoinError, JoinSet},
    time::{sleep_until, timeout},
};
use tontine_group::{Instant, member::Plan};

/// How many frames may wait for the machine before reading stops.
const FRAMES_WAITING: usize = 64;
/// How much is taken in before the machine is asked what to do.
const INPUTS_AT_ONCE: usize = 64;
/// How long a closed connection may take to get its last bytes out.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// The application's side of a running machine. When the last clone is dropped, which never blocks, the machine does its
/// last work and ends.
#[derive(Debug)]
pub struct Handle<C> {
    commands: mpsc::UnboundedSender<C>,
    clock: Clock,
}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self { commands: self.commands.clone(), clock: self.clock }
    }
}

impl<C> Handle<C> {
    /// Hands a command over; gives it back when the machine has ended.
    pub fn send(&self, command: C) -> Result<(), C> {
        self.commands.send(command).map_err(|refused| refused.0)
    }

    /// Whether the machine has ended.
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// Completes when the machine has ended.
    pub async fn closed(&self) {
        self.commands.closed().await;
    }

    /// Now, as the machine counts.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
}

/// Starts a thread that runs `machine` until it stops. `on_event` is called on that thread and must not block.
pub fn spawn<M: Machine>(
    machine: M,
    settings: NetSettings,
    on_event: impl FnMut(M::Event) + Send + 'static,
) -> Result<Handle<M::Command>, Error> {
    let clock = Clock::start();
    let (commands, inbox) = mpsc::unbounded_channel();
    let failed = |what: &str, error: std::io::Error| Error::misuse(format!("cannot start {what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("a runtime for the network", error))?;
    std::thread::Builder::new()
        .name(settings.name.chars().filter(|c| *c != '\0').collect())
        .spawn(move || {
            runtime.block_on(Driver::new(machine, settings, on_event, clock, inbox).run());
            runtime.shutdown_background();
        })
        .map_err(|error| failed("a thread for the network", error))?;
    Ok(Handle { commands, clock })
}

struct Driver<M: Machine, F> {
    machine: M,
    settings: NetSettings,
    on_event: F,
    /// What the machine said and nobody has been told yet.
    said: Vec<M::Event>,
    clock: Clock,
    inbox: mpsc::UnboundedReceiver<M::Command>,
    abandoned: bool,
    events: mpsc::Receiver<NetEvent>,
    events_in: mpsc::Sender<NetEvent>,
    connections: BTreeMap<ConnId, Link>,
    tasks: JoinSet<()>,
    /// Assignors at work, on threads of their own.
    plans: JoinSet<Plan>,
}

struct Link {
    writes: mpsc::UnboundedSender<Bytes>,
    task: AbortHandle,
    connected: bool,
}

/// What the machine said last.
enum Rest {
    Until(Option<Instant>),
    Stop,
}

impl<M: Machine, F: FnMut(M::Event)> Driver<M, F> {
    fn new(
        machine: M,
        settings: NetSettings,
        on_event: F,
        clock: Clock,
        inbox: mpsc::UnboundedReceiver<M::Command>,
    ) -> Self {
        let (events_in, events) = mpsc::channel(FRAMES_WAITING);
        Self {
            machine,
            settings,
            on_event,
            said: Vec::new(),
            clock,
            inbox,
            abandoned: false,
            events,
            events_in,
            connections: BTreeMap::new(),
            tasks: JoinSet::new(),
            plans: JoinSet::new(),
        }
    }

    async fn run(mut self) {
        while let Rest::Until(wake) = self.drain() {
            let timer = async {
                match wake {
                    Some(at) => sleep_until(self.clock.timer(at)).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                command = self.inbox.recv(), if !self.abandoned => self.take_command(command),
                Some(event) = self.events.recv() => self.take_event(event),
                Some(plan) = self.plans.join_next() => self.take_plan(plan),
                () = timer => self.machine.handle_timeout(self.clock.now()),
            }
            self.take_what_is_there();
        }
        self.connections.clear();
        self.inbox.close();
        let flushed = async { while self.tasks.join_next().await.is_some() {} };
        // Whoever does not take our last bytes in time is not waited for.
        let _ = timeout(LAST_BYTES, flushed).await;
    }

    /// Takes in more before the machine is asked: requests that belong together then go out together.
    fn take_what_is_there(&mut self) {
        for _ in 0..INPUTS_AT_ONCE {
            if let Ok(event) = self.events.try_recv() {
                self.take_event(event);
            } else if let Ok(command) = self.inbox.try_recv() {
                self.take_command(Some(command));
            } else {
                break;
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    fn take_command(&mut self, command: Option<M::Command>) {
        let now = self.clock.now();
        match command {
            Some(command) => self.machine.handle_command(now, command),
            None => {
                self.abandoned = true;
                self.machine.handle_abandoned(now);
            }
        }
    }

    /// A planning does not panic, and is cancelled only when the runtime goes away.
    fn take_plan(&mut self, plan: Result<Plan, JoinError>) {
        if let Ok(plan) = plan {
            self.machine.handle_plan(self.clock.now(), plan);
        }
    }

    fn take_event(&mut self, event: NetEvent) {
        let now = self.clock.now();
        match event {
            NetEvent::Connected(conn) => {
                if let Some(link) = self.connections.get_mut(&conn) {
                    tracing::debug!(client = self.settings.name, conn = conn.0, "connected");
                    link.connected = true;
                    self.machine.handle_connected(now, conn);
                }
            }
            NetEvent::Frame(conn, frame) => {
                if self.connections.contains_key(&conn) {
                    self.machine.handle_frame(now, conn, frame);
                }
            }
            NetEvent::Disconnected(conn, why) => {
                if self.connections.remove(&conn).is_some() {
                    tracing::debug!(client = self.settings.name, conn = conn.0, why, "disconnected");
                    self.machine.handle_disconnected(now, conn, why);
                }
            }
        }
    }

    /// Does what the machine says. Its events are handed over together, at the end: whoever waits for them would otherwise
    /// be woken for the first, and again for each of the next.
    fn drain(&mut self) -> Rest {
        let rest = self.carry_out();
        self.said.drain(..).for_each(&mut self.on_event);
        rest
    }

    fn carry_out(&mut self) -> Rest {
        loop {
            match self.machine.poll_output() {
                MachineOutput::Connect { conn, host, port } => self.connect(conn, host, port),
                MachineOutput::Write { conn, bytes } => {
                    if let Some(link) = self.connections.get(&conn) {
                        // A task that has ended reports the loss on its own.
                        let _ = link.writes.send(bytes);
                    }
                }
                MachineOutput::Close { conn } => self.close(conn),
                MachineOutput::Plan(planning) => {
                    self.plans.spawn_blocking(move || planning.run());
                }
                MachineOutput::Event(event) => self.said.push(event),
                MachineOutput::Wait(until) => return Rest::Until(until),
                MachineOutput::Stop => return Rest::Stop,
            }
        }
    }

    fn connect(&mut self, conn: ConnId, host: String, port: u16) {
        tracing::debug!(client = self.settings.name, conn = conn.0, host, port, "connecting");
        let (writes, queue) = mpsc::unbounded_channel();
        let run = connection::run(conn, host, port, self.settings.clone(), self.events_in.clone(), queue);
        let task = self.tasks.spawn(run);
        self.connections.insert(conn, Link { writes, task, connected: false });
    }

    fn close(&mut self, conn: ConnId) {
        let Some(Link { writes, task, connected }) = self.connections.remove(&conn) else { return };
        if !connected {
            return task.abort();
        }
        // The task ends by itself once what was given to it is written, since nothing can follow any more.
        drop(writes);
        self.tasks.spawn(async move {
            tokio::time::sleep(LAST_BYTES).await;
            task.abort();
        });
    }
}
