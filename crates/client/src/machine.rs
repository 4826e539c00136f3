//! What every pure machine of this crate looks like from outside, so that one driver can run any of them.
//!
//! A machine is fed with commands, bytes and the time, and is then drained with `poll_output` until it answers
//! [`MachineOutput::Wait`]. It never blocks, spawns, sleeps or reads a clock. The driver of `net` runs one with sockets,
//! the simulator runs many with a made-up network.

use crate::cluster::ConnId;
use bytes::Bytes;
use tontine_group::{
    Instant,
    member::{Plan, Planning},
};

/// A state machine that owns connections.
pub trait Machine: Send + 'static {
    /// What the application asks for.
    type Command: Send + 'static;
    /// What the application is told.
    type Event: Send + 'static;

    /// The application asks for something.
    fn handle_command(&mut self, now: Instant, command: Self::Command);
    /// The application let go of its handle: no command comes any more. The machine does its last work, then stops.
    fn handle_abandoned(&mut self, now: Instant);
    /// A connection that was asked for is open.
    fn handle_connected(&mut self, now: Instant, conn: ConnId);
    /// A connection could not be opened, or it was closed by the other side.
    fn handle_disconnected(&mut self, now: Instant, conn: ConnId, why: String);
    /// A whole frame has arrived, without its length.
    fn handle_frame(&mut self, now: Instant, conn: ConnId, frame: Bytes);
    /// What [`MachineOutput::Plan`] asked for is done. Only machines that ask get it.
    fn handle_plan(&mut self, now: Instant, plan: Plan) {
        let _ = (now, plan);
    }
    /// The time that `Wait` named has come. A call too early or too often does nothing.
    fn handle_timeout(&mut self, now: Instant);
    /// What to do next. Called until it answers `Wait` or `Stop`.
    fn poll_output(&mut self) -> MachineOutput<Self::Event>;
}

/// What a machine wants done.
#[derive(Debug)]
#[must_use]
pub enum MachineOutput<E> {
    /// Open a connection to the first address of this host that answers.
    Connect {
        /// What the connection is called from now on.
        conn: ConnId,
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Send these bytes.
    Write {
        /// Where to.
        conn: ConnId,
        /// One frame, its length included.
        bytes: Bytes,
    },
    /// Close the connection, or stop opening it. Nothing is reported about it any more.
    Close {
        /// Which.
        conn: ConnId,
    },
    /// Run this where it holds up nothing else, then bring the outcome to [`Machine::handle_plan`].
    Plan(Planning),
    /// Tell the application.
    Event(E),
    /// Nothing to do until something comes in, or until this time.
    Wait(Option<Instant>),
    /// The machine has done its last work: close everything and end.
    Stop,
}
