//! Whether the coordinator is known. A member that does not know it asks for a lookup, once until it is found.

use super::{Output, outbox::Outbox};

#[derive(Debug, Default)]
pub(crate) struct Reach {
    known: bool,
    asked: bool,
}

impl Reach {
    /// Whether requests can go out.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether requests can go out; if not, the coordinator is looked up.
    pub(crate) fn known_or_ask(&mut self, outbox: &mut Outbox) -> bool {
        if !self.known && !self.asked {
            self.asked = true;
            outbox.push(Output::FindCoordinator);
        }
        self.known
    }

    /// It was found; whether that is news.
    pub(crate) fn found(&mut self) -> bool {
        if self.known {
            return false;
        }
        *self = Self { known: true, asked: false };
        true
    }

    /// It does not answer, or is another one by now; whether that is news.
    pub(crate) fn lost(&mut self) -> bool {
        if !self.known {
            return false;
        }
        *self = Self::default();
        true
    }
}
