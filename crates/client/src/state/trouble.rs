//! What nobody is told by an answer, since nothing has failed: brokers that cannot be reached, topics that do not exist.
//!
//! A poll that finds no records is no error, so a wrong address would look like a quiet topic. Each cause is told once, as
//! a warning, until metadata arrives again. A consumer that has never reached any broker fails a poll each time
//! `default.api.timeout.ms` has passed: that is a wrong address more often than an outage. One that has, goes on trying
//! in silence after its warning, as Kafka's client does. What became of topics is in `topics`.

use super::{ConsumerState, Tell};
use crate::Error;
use std::{collections::BTreeSet, sync::Arc};
use tontine_group::Instant;

/// More causes than this are not told apart.
const MOST_CAUSES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// A broker has answered before.
    has_been_well: bool,
    told: BTreeSet<Arc<str>>,
    /// When the poll is due to fail.
    fails_at: Option<Instant>,
}

impl ConsumerState {
    /// Looks whether there is something new to tell.
    pub(super) fn look_for_trouble(&mut self) {
        let Some(why) = self.cluster.trouble() else {
            let has_been_well = self.trouble.has_been_well || !self.cluster.metadata().brokers().is_empty();
            self.trouble = Trouble { has_been_well, ..Trouble::default() };
            return;
        };
        if self.trouble.told.len() < MOST_CAUSES && self.trouble.told.insert(why.clone()) {
            self.tell(Tell::Warned(format!("looking for a broker that answers: {why}").into()));
        }
        if !self.trouble.has_been_well {
            self.fail_when_due(why);
        }
    }

    fn fail_when_due(&mut self, why: Arc<str>) {
        let after = self.settings.default_api_timeout;
        let fails_at = *self.trouble.fails_at.get_or_insert(self.now + after);
        if fails_at > self.now {
            return;
        }
        self.trouble.fails_at = Some(self.now + after);
        let what = "finding a broker among bootstrap.servers".to_owned();
        self.tell(Tell::Failed { error: Error::Timeout { what, after, why: Some(why) }, fatal: false });
    }

    pub(super) fn trouble_wake(&self) -> Option<Instant> {
        self.trouble.fails_at
    }
}
