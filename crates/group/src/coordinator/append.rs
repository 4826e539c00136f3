//! Appends that are on their way to the log, and what waits for them.
//!
//! They end in the order in which they began: the outcome of a later one is kept until all earlier ones are known, so
//! that the state in memory follows the order of the log.

use super::{
    classic::Replaced,
    output::{AppendId, Ticket},
    record::Record,
};
use crate::cause::Cause;
use std::{collections::BTreeMap, sync::Arc};
use tontine_wire::{ErrorCode, api::Response};

/// What else has to happen when an append has ended, besides applying its records and sending its replies.
#[derive(Debug, Default)]
pub(super) enum After {
    /// Nothing.
    #[default]
    Nothing,
    /// The group exists, or does not.
    Created(Arc<str>),
    /// The assignment of this generation is stored: members get it.
    Synced { group: Arc<str>, generation: i32 },
    /// A static member has a new id.
    Replaced(Arc<str>, Box<Replaced>),
    /// A consumer group is another than before.
    Moved { group: Arc<str>, cause: Cause },
    /// A consumer group is a classic one now, for this cause.
    Downgraded { group: Arc<str>, cause: Cause },
    /// These groups are gone.
    Deleted(Vec<Arc<str>>),
}

/// One append on its way.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) records: Vec<Record>,
    pub(super) replies: Vec<(Ticket, Response)>,
    pub(super) after: After,
    result: Option<Result<(), ErrorCode>>,
}

/// All appends on their way, in order.
#[derive(Debug, Default)]
pub(super) struct Appends {
    next: u64,
    in_flight: BTreeMap<AppendId, InFlight>,
}

impl Appends {
    pub(super) fn begin(
        &mut self,
        records: Vec<Record>,
        replies: Vec<(Ticket, Response)>,
        after: After,
    ) -> AppendId {
        let id = AppendId(self.next);
        self.next += 1;
        self.in_flight.insert(id, InFlight { records, replies, after, result: None });
        id
    }

    /// Notes how an append went. The first answer counts.
    pub(super) fn end(&mut self, id: AppendId, result: Result<(), ErrorCode>) {
        if let Some(append) = self.in_flight.get_mut(&id) {
            append.result.get_or_insert(result);
        }
    }

    /// Takes out the oldest append if its outcome is known.
    pub(super) fn take_ended(&mut self) -> Option<(InFlight, Result<(), ErrorCode>)> {
        let first = self.in_flight.first_entry()?;
        let result = first.get().result?;
        Some((first.remove(), result))
    }

    /// Lets a reply wait for an append, too; gives it back when the append has ended.
    pub(super) fn hold(&mut self, id: AppendId, reply: (Ticket, Response)) -> Option<(Ticket, Response)> {
        match self.in_flight.get_mut(&id) {
            Some(append) => {
                append.replies.push(reply);
                None
            }
            None => Some(reply),
        }
    }

    /// Whether nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether something about this group is on its way.
    pub(super) fn touch(&self, group: &str) -> bool {
        self.of(group).next().is_some()
    }

    /// Whether something about this group is on its way that only a consumer group has.
    pub(super) fn touch_consumer(&self, group: &str) -> bool {
        self.of(group).any(|record| matches!(record, Record::Consumer(_)))
    }

    /// Whether something about this group is on its way that only a classic group has.
    pub(super) fn touch_classic(&self, group: &str) -> bool {
        self.of(group).any(|record| matches!(record, Record::GroupMetadata(..)))
    }

    fn of(&self, group: &str) -> impl Iterator<Item = &Record> {
        let records = self.in_flight.values().flat_map(|append| &append.records);
        records.filter(move |record| record.group() == group)
    }

    /// Nobody waits for this reply any more.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        for append in self.in_flight.values_mut() {
            append.replies.retain(|(held, _)| *held != ticket);
        }
    }

    /// Takes out everything, however it will go.
    pub(super) fn abandon(&mut self) -> Vec<InFlight> {
        std::mem::take(&mut self.in_flight).into_values().collect()
    }
}

/// The error a client gets for an error of the log: one that makes it try again where that can help.
/// Mirrors `CoordinatorOperationExceptionHelper` and the mapping of the coordinator's runtime.
pub(super) fn response_error(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        | ErrorCode::NOT_ENOUGH_REPLICAS
        | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
        | ErrorCode::REQUEST_TIMED_OUT => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::KAFKA_STORAGE_ERROR => ErrorCode::NOT_COORDINATOR,
        ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE | ErrorCode::INVALID_FETCH_SIZE => {
            ErrorCode::UNKNOWN_SERVER_ERROR
        }
        ErrorCode::NETWORK_EXCEPTION => ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_end_in_the_order_in_which_they_began() {
        let mut appends = Appends::default();
        let [a, b, c] = std::array::from_fn(|_| appends.begin(Vec::new(), Vec::new(), After::Nothing));
        appends.end(c, Ok(()));
        appends.end(b, Err(ErrorCode::REQUEST_TIMED_OUT));
        assert!(appends.take_ended().is_none());
        appends.end(a, Ok(()));
        let results: Vec<_> = std::iter::from_fn(|| appends.take_ended().map(|(_, result)| result)).collect();
        assert_eq!(results, [Ok(()), Err(ErrorCode::REQUEST_TIMED_OUT), Ok(())]);
    }

    #[test]
    fn the_first_outcome_counts_and_strangers_do_not() {
        let mut appends = Appends::default();
        let id = appends.begin(Vec::new(), Vec::new(), After::Nothing);
        appends.end(AppendId(7), Ok(()));
        assert!(appends.take_ended().is_none());
        appends.end(id, Ok(()));
        appends.end(id, Err(ErrorCode::REQUEST_TIMED_OUT));
        assert_eq!(appends.take_ended().map(|(_, result)| result), Some(Ok(())));
    }

    #[test]
    fn errors_of_the_log_tell_clients_whether_to_look_for_another_coordinator() {
        for (log, client) in [
            (ErrorCode::NOT_ENOUGH_REPLICAS, ErrorCode::COORDINATOR_NOT_AVAILABLE),
            (ErrorCode::KAFKA_STORAGE_ERROR, ErrorCode::NOT_COORDINATOR),
            (ErrorCode::MESSAGE_TOO_LARGE, ErrorCode::UNKNOWN_SERVER_ERROR),
            (ErrorCode::NETWORK_EXCEPTION, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            (ErrorCode::POLICY_VIOLATION, ErrorCode::POLICY_VIOLATION),
        ] {
            assert_eq!(response_error(log), client);
        }
    }
}
