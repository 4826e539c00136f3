//! Calls brokers and tries again while that makes sense: only after errors that may pass, with growing pauses, until the
//! operation's time is over.

use crate::{
    Error,
    cluster::{
        Cluster, Target,
        backoff::{Jitter, backoff},
    },
    config::AdminConfig,
    net::{self, Clock, Handle, oneshot},
    requester::{Answer, Ask, Requester},
};
use std::{sync::Arc, time::Duration};
use tontine_group::Instant;
use tontine_wire::{ErrorCode, api::Call};

type Reply = oneshot::Sender<Answer>;

/// The async side of a [`Requester`].
#[derive(Clone, Debug)]
pub(super) struct Caller {
    handle: Handle<Ask<Reply>>,
    config: Arc<AdminConfig>,
    /// How long one operation may take.
    pub(super) timeout: Duration,
}

/// One operation: what it is called in errors, and until when it may go on.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    what: String,
    deadline: Instant,
}

impl Caller {
    pub(super) fn start(config: AdminConfig) -> Result<Self, Error> {
        let cluster = Cluster::new(config.cluster_settings()?, Clock::seed());
        let on_event = |(reply, answer): (Reply, Answer)| {
            // Whoever asked may have stopped waiting.
            let _ = reply.send(answer);
        };
        let handle = net::spawn(Requester::new(cluster), config.net_settings(), on_event)?;
        Ok(Self { handle, timeout: config.default_api_timeout, config: Arc::new(config) })
    }

    pub(super) fn operation(&self, what: impl Into<String>) -> Operation {
        Operation { what: what.into(), deadline: self.handle.now() + self.timeout }
    }

    async fn ask(&self, ask: impl FnOnce(Reply) -> Ask<Reply>) -> Result<Answer, Error> {
        let (reply, answer) = oneshot::channel();
        self.handle.send(ask(reply)).map_err(|_| Error::Closed("the admin"))?;
        answer.await.map_err(|_| Error::Closed("the admin"))
    }

    /// Sends one request, once.
    pub(super) async fn call<C: Call>(
        &self,
        op: &Operation,
        target: Target,
        request: C,
    ) -> Result<C::Response, Error> {
        self.call_at_most(op, target, request, i16::MAX).await
    }

    /// Sends one request, once, in no higher version than this.
    pub(super) async fn call_at_most<C: Call>(
        &self,
        op: &Operation,
        target: Target,
        request: C,
        at_most: i16,
    ) -> Result<C::Response, Error> {
        let left = op.deadline - self.handle.now();
        // A silent broker must not use up the whole time when another one could answer.
        let timeout = left.min(self.config.request_timeout);
        let request = request.into();
        match self.ask(|reply| Ask::Send { reply, target, request, at_most, timeout }).await? {
            Answer::Response(result) => C::Response::try_from(result?).map_err(|other| {
                Error::Malformed(format!("a broker answered with {}", other.key().name()).into())
            }),
            Answer::Paused => Err(Error::Closed("the admin")),
        }
    }

    /// Runs `attempt` until it succeeds, fails for good, or the time is over.
    pub(super) async fn retry<T, Attempt: Future<Output = Result<T, Error>>>(
        &self,
        op: &Operation,
        attempt: impl Fn() -> Attempt,
    ) -> Result<T, Error> {
        let mut jitter = Jitter::new(Clock::seed());
        for failures in 1.. {
            let error = match attempt().await {
                Err(error) if error.is_retriable() => error,
                result => return result,
            };
            self.learn(&error);
            let pause =
                backoff(self.config.retry_backoff, self.config.retry_backoff_max, failures, &mut jitter);
            if self.handle.now() + pause >= op.deadline {
                return Err(self.out_of_time(op, error));
            }
            self.ask(|reply| Ask::Pause { reply, time: pause }).await?;
        }
        Err(Error::Closed("the admin"))
    }

    fn out_of_time(&self, op: &Operation, last: Error) -> Error {
        let why = match last {
            Error::Timeout { why, .. } => why,
            error => Some(error.to_string().into()),
        };
        Error::Timeout { what: op.what.clone(), after: self.timeout, why }
    }

    /// What an error says about leaders.
    fn learn(&self, error: &Error) {
        let moved = |code: ErrorCode| code.needs_metadata() || code == ErrorCode::NOT_CONTROLLER;
        if error.code().is_some_and(moved) {
            // A requester that has ended says so at the next request.
            let _ = self.handle.send(Ask::Refresh);
        }
    }

    /// Turns an answer of a coordinator into a result, and forgets the coordinator when it says that it is none.
    pub(super) fn coordinated(&self, group: &Arc<str>, code: ErrorCode, context: &str) -> Result<(), Error> {
        if code.needs_coordinator() {
            let _ = self.handle.send(Ask::CoordinatorMoved(group.clone()));
        }
        checked(code, context, None)
    }

    pub(super) fn request_timeout_ms(&self) -> i32 {
        i32::try_from(self.config.request_timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

/// An error code as a result.
pub(super) fn checked(code: ErrorCode, context: &str, message: Option<String>) -> Result<(), Error> {
    code.into_result().map_err(|code| Error::broker(code, context, message))
}
