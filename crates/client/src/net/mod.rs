//! The only room that knows sockets, tasks and clocks: it runs a pure [`Machine`](crate::machine::Machine).
//!
//! Each client has a thread of its own with a small runtime on it. Heartbeats must go out whatever the application does;
//! on the application's runtime a task that blocks its thread would hold them up.

mod clock;
mod connection;
mod driver;
mod inlet;
mod mark;
mod wall_clock;

pub use clock::Clock;
pub use driver::{Handle, spawn};
pub use tokio::sync::{mpsc, oneshot};
pub(crate) use wall_clock::unix_ms;

/// What the driver needs to know about sockets.
#[derive(Clone, Debug)]
pub struct NetSettings {
    /// The name of the client's thread.
    pub name: String,
    /// `send.buffer.bytes`; `None` leaves it to the system.
    pub send_buffer: Option<u32>,
    /// `receive.buffer.bytes`; `None` leaves it to the system.
    pub receive_buffer: Option<u32>,
    /// The largest frame that is accepted. Below what the first bytes of TLS and HTTP look like as a length, so that
    /// those are recognised.
    pub frame_limit: usize,
}

impl Default for NetSettings {
    fn default() -> Self {
        Self { name: "tontine".to_owned(), send_buffer: None, receive_buffer: None, frame_limit: 256 << 20 }
    }
}
