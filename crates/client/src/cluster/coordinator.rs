//! The lookup of a group's coordinator: asked when somebody needs it, retried with pauses, forgotten when it fails.
//!
//! Mirrors `CoordinatorRequestManager` and `AbstractCoordinator.ensureCoordinatorReady`.

use super::{
    ClusterSettings, Ticket,
    backoff::{Jitter, backoff},
};
use std::sync::Arc;
use tontine_group::Instant;
use tontine_wire::{
    ErrorCode,
    api::{Request, find_coordinator as wire},
};

#[derive(Debug, Default)]
pub(super) struct Lookup {
    pub(super) node: Option<i32>,
    pub(super) under_way: Option<Ticket>,
    /// Somebody asked for it outside of a request.
    pub(super) wished: bool,
    pub(super) attempts: u32,
    pub(super) not_before: Instant,
    pub(super) last_error: Option<Arc<str>>,
}

/// Where a group's coordinator is.
pub(super) struct Found {
    pub(super) node: i32,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Lookup {
    /// Sets the pause before the next attempt.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        why: Arc<str>,
        settings: &ClusterSettings,
        jitter: &mut Jitter,
    ) {
        self.last_error = Some(why);
        self.attempts = self.attempts.saturating_add(1);
        self.not_before =
            now + backoff(settings.retry_backoff, settings.retry_backoff_max, self.attempts, jitter);
    }

    pub(super) fn found(&mut self, node: i32) {
        *self = Self { node: Some(node), ..Self::default() };
    }
}

/// The request, with the fields of all its versions.
pub(super) fn request(group: &str) -> Request {
    let coordinator_keys = vec![group.to_owned()];
    wire::FindCoordinatorRequest { key: group.to_owned(), key_type: 0, coordinator_keys }.into()
}

/// Reads the answer of any version; the error comes with what the broker says about it.
pub(super) fn read(answer: wire::FindCoordinatorResponse) -> Result<Found, (ErrorCode, Option<Arc<str>>)> {
    // Version 4 and later answer for several keys, and the fields of before are empty.
    let one = answer.coordinators.into_iter().next().unwrap_or(wire::Coordinator {
        key: String::new(),
        node_id: answer.node_id,
        host: answer.host,
        port: answer.port,
        error_code: answer.error_code,
        error_message: answer.error_message,
    });
    if one.error_code.is_err() {
        return Err((one.error_code, one.error_message.map(Into::into)));
    }
    match u16::try_from(one.port) {
        Ok(port) if one.node_id >= 0 && !one.host.is_empty() => {
            Ok(Found { node: one.node_id, host: one.host, port })
        }
        _ => Err((ErrorCode::COORDINATOR_NOT_AVAILABLE, None)),
    }
}
