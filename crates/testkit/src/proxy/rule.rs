//! Rules: what happens to the next requests of an API.

use crate::{Failure, wait};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tontine_wire::ErrorCode;
use tontine_wire::api::{ApiKey, Request, Response};

/// What a rule does to a request.
#[derive(Clone)]
pub enum Action {
    /// Holds the request back, and with it everything after it on the connection, until the rule lets go.
    HoldRequest,
    /// Passes the request on and holds its answer back.
    HoldAnswer,
    /// Swallows the request: the broker never sees it and nothing is answered.
    Swallow,
    /// Passes the request on and swallows the answer.
    SwallowAnswer,
    /// Closes the connection instead of passing the request on.
    Disconnect,
    /// Passes the request on and closes the connection instead of passing the answer back.
    DisconnectAnswer,
    /// Answers in the broker's place, with this code wherever the answer has a place for it.
    AnswerCode(ErrorCode),
    /// Answers in the broker's place.
    Answer(Arc<dyn Fn(&Request) -> Response + Send + Sync>),
    /// Changes the broker's answer on its way back.
    Edit(Arc<dyn Fn(&mut Response) + Send + Sync>),
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HoldRequest => "HoldRequest",
            Self::HoldAnswer => "HoldAnswer",
            Self::Swallow => "Swallow",
            Self::SwallowAnswer => "SwallowAnswer",
            Self::Disconnect => "Disconnect",
            Self::DisconnectAnswer => "DisconnectAnswer",
            Self::AnswerCode(_) => "AnswerCode",
            Self::Answer(_) => "Answer",
            Self::Edit(_) => "Edit",
        })
    }
}

/// A rule that was given. When it is dropped it acts no more and lets go of what it holds.
#[derive(Debug)]
#[must_use = "a rule that is dropped acts no more"]
pub struct Rule {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    key: ApiKey,
    action: Action,
    left: Mutex<usize>,
    met: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Rule {
    /// Waits until the rule has acted on this many requests.
    pub async fn met(&self, times: usize, deadline: Duration) -> Result<(), Failure> {
        let mut met = self.shared.met.subscribe();
        let what = format!("{} requests of {} meet {:?}", times, self.shared.key.name(), self.shared.action);
        wait::within(&what, deadline, async {
            // The sender lives in `self`.
            let _ = met.wait_for(|count| *count >= times).await;
        })
        .await
    }

    /// How many requests the rule has acted on.
    pub fn count(&self) -> usize {
        *self.shared.met.borrow()
    }

    /// Lets go of what is held.
    pub fn release(&self) {
        self.shared.open.send_replace(true);
    }
}

impl Drop for Rule {
    fn drop(&mut self) {
        *self.shared.left.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.release();
    }
}

impl Shared {
    pub(super) fn action(&self) -> &Action {
        &self.action
    }

    /// Counts a request that the rule acts on, if it still acts.
    fn take(&self, key: ApiKey) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if self.key != key || *left == 0 {
            return false;
        }
        *left -= 1;
        self.met.send_modify(|count| *count += 1);
        true
    }

    /// Waits until the rule lets go.
    pub(super) async fn until_released(&self) {
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

/// All rules, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Rules(Mutex<Vec<Arc<Shared>>>);

impl Rules {
    pub(super) fn add(&self, key: ApiKey, times: usize, action: Action) -> Rule {
        let shared = Arc::new(Shared {
            key,
            action,
            left: Mutex::new(times),
            met: watch::Sender::new(0),
            open: watch::Sender::new(false),
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(shared.clone());
        Rule { shared }
    }

    /// The rule that acts on a request of this API.
    pub(super) fn take(&self, key: ApiKey) -> Option<Arc<Shared>> {
        let rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rules.iter().find(|rule| rule.take(key)).cloned()
    }
}
