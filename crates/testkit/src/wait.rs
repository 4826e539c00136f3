//! Waiting, the one place where tests wait: for a condition, with a deadline, and with words for what did not come.
//!
//! A condition that has a notification of its own (a history, a channel) waits for that; everything else is asked again
//! after a short interval. No test sleeps for a fixed time in the hope that something has happened by then.

use crate::{Failure, failure};
use std::{future::Future, time::Duration};

/// How long to wait before a condition without a notification is asked again.
const INTERVAL: Duration = Duration::from_millis(10);

/// Asks `condition` until it answers with something; fails with `what` when `deadline` passes first.
pub async fn until<T, F, Fut>(what: &str, deadline: Duration, mut condition: F) -> Result<T, Failure>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let asked = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::time::timeout(deadline, asked).await.map_err(|_| failure!("waited {deadline:?} in vain: {what}"))
}

/// Waits for a future; fails with `what` when `deadline` passes first.
pub async fn within<T>(
    what: &str,
    deadline: Duration,
    future: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::time::timeout(deadline, future).await.map_err(|_| failure!("waited {deadline:?} in vain: {what}"))
}

/// Lets `span` pass, to see that something does *not* happen meanwhile. The name says in a test why time has to pass.
pub async fn while_nothing_happens(span: Duration) {
    tokio::time::sleep(span).await;
}
