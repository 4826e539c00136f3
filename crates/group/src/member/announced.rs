//! What the client has been told, so that it is told again only when it is something else.

use super::{Due, Event, MemberError, outbox::Outbox};

#[derive(Debug, Default)]
pub(crate) struct Announced {
    due: Option<Due>,
    error: Option<MemberError>,
}

impl Announced {
    /// Which callback is due; `None`: none any more.
    pub(crate) fn due(&mut self, due: Option<Due>, outbox: &mut Outbox) {
        if due != self.due {
            self.due.clone_from(&due);
            outbox.extend_event(due.map(Event::CallbackDue));
        }
    }

    /// Has the next poll return this, once.
    pub(crate) fn error(&mut self, error: MemberError, outbox: &mut Outbox) {
        if self.error.as_ref() != Some(&error) {
            self.error = Some(error.clone());
            outbox.event(Event::Error(error));
        }
    }

    /// The application polls: the same error may be told again.
    pub(crate) fn polled(&mut self) {
        self.error = None;
    }
}
