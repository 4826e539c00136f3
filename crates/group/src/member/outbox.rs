//! What waits to be drained, and the numbering of requests.

use super::{Event, Output, Ticket};
use std::{collections::VecDeque, time::Duration};
use tontine_wire::api::Request;

/// Outputs in the order in which they were decided.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Output>,
    tickets: u64,
}

impl Outbox {
    /// A ticket that nothing else has.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, request: impl Into<Request>, timeout: Option<Duration>) -> Ticket {
        let ticket = self.ticket();
        self.waiting.push_back(Output::Send { ticket, request: request.into(), timeout });
        ticket
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.waiting.push_back(Output::Event(event));
    }

    pub(crate) fn extend_event(&mut self, event: Option<Event>) {
        self.waiting.extend(event.map(Output::Event));
    }

    pub(crate) fn push(&mut self, output: Output) {
        self.waiting.push_back(output);
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.waiting.pop_front()
    }
}
