//! A hook for tests: it sees every request before the broker does and may answer, hold or drop it.

use crate::cluster::NodeId;
use std::fmt;
use tontine_wire::ErrorCode;
use tontine_wire::api::{Request, Response};
use tontine_wire::header::RequestHeader;

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The broker answers it.
    Pass,
    /// It is refused with this error, wherever the API has room for one.
    Refuse(ErrorCode),
    /// This is the answer.
    Answer(Box<Response>),
    /// It waits until [`crate::BrokerState::release_held`], and is served then.
    Hold,
    /// It is never answered; the connection stays open.
    Swallow,
    /// The connection is cut.
    Disconnect,
}

/// A hook for [`crate::BrokerState::set_intercept`].
pub type Hook = dyn FnMut(NodeId, &RequestHeader, &Request) -> Verdict + Send;

/// The hook that is set, if any. It runs while the broker's state is locked: it must not call the broker.
#[derive(Default)]
pub(crate) struct Intercept {
    hook: Option<Box<Hook>>,
}

impl Intercept {
    pub(crate) fn set(&mut self, hook: Option<Box<Hook>>) {
        self.hook = hook;
    }

    pub(crate) fn judge(&mut self, node: NodeId, header: &RequestHeader, request: &Request) -> Verdict {
        self.hook.as_mut().map_or(Verdict::Pass, |hook| hook(node, header, request))
    }
}

impl fmt::Debug for Intercept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Intercept {{ set: {} }}", self.hook.is_some())
    }
}
