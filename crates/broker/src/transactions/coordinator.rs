//! Transactions by id: who may do what next, and what is to be stored before it happens.
//!
//! Pure: every question takes the state and the time and answers with the state that has to be stored; only
//! [`Transactions::apply`] changes anything, live as in a replay. Who writes marks into partitions is decided elsewhere.
//! Mirrors `TransactionCoordinator` and `TransactionMetadata`, as clients without transaction version 2 use them.

use std::collections::{BTreeMap, BTreeSet};
use tontine_wire::ErrorCode;

/// A partition by topic and number.
pub(crate) type Place = (String, i32);

/// Where a transaction stands. The numbers are those of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// None was begun.
    Empty,
    /// It has partitions.
    Ongoing,
    /// It is decided that it counts; the marks are being written.
    PrepareCommit,
    /// It is decided that it does not count; the marks are being written.
    PrepareAbort,
    /// All marks are written.
    CompleteCommit,
    /// All marks are written.
    CompleteAbort,
}

impl Status {
    const ALL: [(i8, Self, &'static str); 6] = [
        (0, Self::Empty, "Empty"),
        (1, Self::Ongoing, "Ongoing"),
        (2, Self::PrepareCommit, "PrepareCommit"),
        (3, Self::PrepareAbort, "PrepareAbort"),
        (4, Self::CompleteCommit, "CompleteCommit"),
        (5, Self::CompleteAbort, "CompleteAbort"),
    ];

    pub(crate) fn of_number(number: i8) -> Option<Self> {
        Self::ALL.iter().find(|(known, ..)| *known == number).map(|(_, status, _)| *status)
    }

    pub(crate) fn number(self) -> i8 {
        Self::ALL.iter().find(|(_, status, _)| *status == self).map_or(0, |(number, ..)| *number)
    }

    /// As admin tools show it.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, status, _)| *status == self).map_or("", |(.., name)| name)
    }

    /// Whether the status has this name.
    pub(crate) fn is_known(name: &str) -> bool {
        Self::ALL.iter().any(|(.., known)| *known == name)
    }

    /// What marks are being written for it.
    pub(crate) fn deciding(self) -> Option<bool> {
        match self {
            Self::PrepareCommit => Some(true),
            Self::PrepareAbort => Some(false),
            Self::Empty | Self::Ongoing | Self::CompleteCommit | Self::CompleteAbort => None,
        }
    }
}

/// What is known of one transactional id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transaction {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) timeout_ms: i32,
    pub(crate) status: Status,
    pub(crate) places: BTreeSet<Place>,
    /// When it was begun; -1 when none is.
    pub(crate) started_ms: i64,
    pub(crate) updated_ms: i64,
}

impl Transaction {
    fn moved(&self, status: Status, now_ms: i64) -> Self {
        Self { status, updated_ms: now_ms, ..self.clone() }
    }

    /// Aborted, and its producer shut out by a newer epoch.
    fn fenced(&self, now_ms: i64) -> Self {
        Self { epoch: self.epoch.saturating_add(1), ..self.moved(Status::PrepareAbort, now_ms) }
    }

    fn ends_ms(&self) -> i64 {
        self.started_ms.saturating_add(i64::from(self.timeout_ms))
    }
}

/// What a producer that starts gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Init {
    /// Its identity, once this is stored.
    Ready(Transaction),
    /// What an earlier one left open has to be aborted first.
    AbortFirst(Transaction),
}

/// All transactional ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transactions {
    by_id: BTreeMap<String, Transaction>,
}

/// The last epoch of a producer id that is given out; the one behind it is for shutting out the last producer.
const LAST_EPOCH: i16 = i16::MAX - 1;

impl Transactions {
    pub(crate) fn get(&self, id: &str) -> Option<&Transaction> {
        self.by_id.get(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Transaction)> {
        self.by_id.iter()
    }

    /// Takes in what was stored.
    pub(crate) fn apply(&mut self, id: &str, stored: Option<Transaction>) {
        match stored {
            Some(transaction) => self.by_id.insert(id.to_owned(), transaction),
            None => self.by_id.remove(id),
        };
    }

    /// A producer starts, or goes on after an error with the identity that it had. `fresh` is a producer id that nobody has.
    pub(crate) fn init(
        &self,
        id: &str,
        timeout_ms: i32,
        had: Option<(i64, i16)>,
        fresh: i64,
        now_ms: i64,
    ) -> Result<Init, ErrorCode> {
        let new = |producer_id, epoch| Transaction {
            producer_id,
            epoch,
            timeout_ms,
            status: Status::Empty,
            places: BTreeSet::new(),
            started_ms: -1,
            updated_ms: now_ms,
        };
        let Some(known) = self.by_id.get(id) else {
            return if had.is_some() {
                Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING)
            } else {
                Ok(Init::Ready(new(fresh, 0)))
            };
        };
        if had.is_some_and(|had| had != (known.producer_id, known.epoch)) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        match known.status {
            Status::PrepareCommit | Status::PrepareAbort => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            Status::Ongoing => Ok(Init::AbortFirst(known.fenced(now_ms))),
            Status::Empty | Status::CompleteCommit | Status::CompleteAbort => {
                Ok(Init::Ready(if known.epoch >= LAST_EPOCH {
                    new(fresh, 0)
                } else {
                    new(known.producer_id, known.epoch + 1)
                }))
            }
        }
    }

    fn of_producer(&self, id: &str, producer_id: i64, epoch: i16) -> Result<&Transaction, ErrorCode> {
        let known = self.by_id.get(id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        if known.producer_id != producer_id {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        if known.epoch != epoch {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        Ok(known)
    }

    /// Partitions join a transaction, which is begun with the first; `None` when they are in it already.
    pub(crate) fn add(
        &self,
        id: &str,
        producer: (i64, i16),
        places: &BTreeSet<Place>,
        now_ms: i64,
    ) -> Result<Option<Transaction>, ErrorCode> {
        let known = self.of_producer(id, producer.0, producer.1)?;
        match known.status {
            Status::PrepareCommit | Status::PrepareAbort => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            Status::Ongoing if places.is_subset(&known.places) => Ok(None),
            Status::Ongoing => {
                let places = known.places.union(places).cloned().collect();
                Ok(Some(Transaction { places, ..known.moved(Status::Ongoing, now_ms) }))
            }
            Status::Empty | Status::CompleteCommit | Status::CompleteAbort => Ok(Some(Transaction {
                places: places.clone(),
                started_ms: now_ms,
                ..known.moved(Status::Ongoing, now_ms)
            })),
        }
    }

    /// A producer ends its transaction; `None` when it was ended in this way already.
    pub(crate) fn end(
        &self,
        id: &str,
        producer: (i64, i16),
        commit: bool,
        now_ms: i64,
    ) -> Result<Option<Transaction>, ErrorCode> {
        let known = self.of_producer(id, producer.0, producer.1)?;
        match (known.status, commit) {
            (Status::Ongoing, true) => Ok(Some(known.moved(Status::PrepareCommit, now_ms))),
            (Status::Ongoing, false) => Ok(Some(known.moved(Status::PrepareAbort, now_ms))),
            (Status::CompleteCommit, true) | (Status::CompleteAbort, false) => Ok(None),
            (Status::PrepareCommit, true) | (Status::PrepareAbort, false) => {
                Err(ErrorCode::CONCURRENT_TRANSACTIONS)
            }
            (Status::Empty, _)
            | (Status::CompleteCommit | Status::PrepareCommit, false)
            | (Status::CompleteAbort | Status::PrepareAbort, true) => Err(ErrorCode::INVALID_TXN_STATE),
        }
    }

    /// All marks of a transaction are written.
    pub(crate) fn completed(&self, id: &str, now_ms: i64) -> Option<Transaction> {
        let known = self.by_id.get(id)?;
        let status = if known.status.deciding()? { Status::CompleteCommit } else { Status::CompleteAbort };
        Some(Transaction { places: BTreeSet::new(), started_ms: -1, ..known.moved(status, now_ms) })
    }

    /// Whether a producer may write to a partition now: only into a transaction that knows of it, or its records would
    /// stay undecided for ever.
    pub(crate) fn may_write(&self, id: &str, producer: (i64, i16), place: &Place) -> Result<(), ErrorCode> {
        let known = self.of_producer(id, producer.0, producer.1).map_err(|code| match code {
            ErrorCode::PRODUCER_FENCED => ErrorCode::INVALID_PRODUCER_EPOCH,
            other => other,
        })?;
        let open = known.status == Status::Ongoing && known.places.contains(place);
        if open { Ok(()) } else { Err(ErrorCode::INVALID_TXN_STATE) }
    }

    /// Transactions that took longer than their producers said, as they are to be stored.
    pub(crate) fn timed_out(&self, now_ms: i64) -> Vec<(String, Transaction)> {
        let late = |known: &Transaction| known.status == Status::Ongoing && known.ends_ms() <= now_ms;
        let late = self.by_id.iter().filter(|(_, known)| late(known));
        late.map(|(id, known)| (id.clone(), known.fenced(now_ms))).collect()
    }

    /// Transactions whose marks are not all written yet.
    pub(crate) fn undecided(&self) -> Vec<String> {
        let marked = self.by_id.iter().filter(|(_, known)| known.status.deciding().is_some());
        marked.map(|(id, _)| id.clone()).collect()
    }

    /// Ids that nobody has used for this long.
    pub(crate) fn expired(&self, now_ms: i64, after_ms: i64) -> Vec<String> {
        let idle = |known: &Transaction| {
            matches!(known.status, Status::Empty | Status::CompleteCommit | Status::CompleteAbort)
                && now_ms.saturating_sub(known.updated_ms) >= after_ms
        };
        self.by_id.iter().filter(|(_, known)| idle(known)).map(|(id, _)| id.clone()).collect()
    }

    /// When the next transaction times out.
    pub(crate) fn next_timeout_ms(&self) -> Option<i64> {
        let open = self.by_id.values().filter(|known| known.status == Status::Ongoing);
        open.map(Transaction::ends_ms).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(partitions: &[i32]) -> BTreeSet<Place> {
        partitions.iter().map(|partition| ("orders".to_owned(), *partition)).collect()
    }

    fn started() -> Transactions {
        let mut all = Transactions::default();
        let Ok(Init::Ready(first)) = all.init("pay", 1000, None, 7, 0) else { panic!() };
        all.apply("pay", Some(first));
        all
    }

    fn step(all: &mut Transactions, next: Result<Option<Transaction>, ErrorCode>) {
        all.apply("pay", Some(next.unwrap().unwrap()));
    }

    #[test]
    fn a_transaction_goes_its_way_from_empty_to_complete_and_again() {
        let mut all = started();
        for round in 0..2 {
            let next = all.add("pay", (7, 0), &places(&[0, 1]), 10 + round);
            step(&mut all, next);
            assert_eq!(all.add("pay", (7, 0), &places(&[1]), 11), Ok(None), "in it already");
            let next = all.end("pay", (7, 0), true, 20);
            step(&mut all, next);
            assert_eq!(all.add("pay", (7, 0), &places(&[0]), 21), Err(ErrorCode::CONCURRENT_TRANSACTIONS));
            assert_eq!(all.init("pay", 1000, None, 9, 21), Err(ErrorCode::CONCURRENT_TRANSACTIONS));
            assert_eq!(all.undecided(), ["pay"]);
            let done = all.completed("pay", 30);
            all.apply("pay", done);
            assert_eq!(all.end("pay", (7, 0), true, 31), Ok(None), "asked again");
            assert_eq!(all.end("pay", (7, 0), false, 31), Err(ErrorCode::INVALID_TXN_STATE));
        }
    }

    #[test]
    fn a_producer_that_starts_shuts_out_the_one_before() {
        let mut all = started();
        let next = all.add("pay", (7, 0), &places(&[0]), 10);
        step(&mut all, next);
        let Ok(Init::AbortFirst(aborting)) = all.init("pay", 1000, None, 9, 20) else { panic!() };
        assert_eq!((aborting.status, aborting.epoch), (Status::PrepareAbort, 1));
        all.apply("pay", Some(aborting));
        assert_eq!(all.end("pay", (7, 0), true, 21), Err(ErrorCode::PRODUCER_FENCED));
        let done = all.completed("pay", 22);
        all.apply("pay", done);
        let Ok(Init::Ready(ready)) = all.init("pay", 1000, None, 9, 23) else { panic!() };
        assert_eq!((ready.producer_id, ready.epoch), (7, 2));
    }

    #[test]
    fn nobody_writes_outside_of_a_transaction() {
        let mut all = started();
        let orders = |partition| ("orders".to_owned(), partition);
        assert_eq!(all.may_write("pay", (7, 0), &orders(0)), Err(ErrorCode::INVALID_TXN_STATE));
        let next = all.add("pay", (7, 0), &places(&[0]), 10);
        step(&mut all, next);
        assert_eq!(all.may_write("pay", (7, 0), &orders(0)), Ok(()));
        assert_eq!(all.may_write("pay", (7, 0), &orders(1)), Err(ErrorCode::INVALID_TXN_STATE));
        assert_eq!(all.may_write("pay", (7, 1), &orders(0)), Err(ErrorCode::INVALID_PRODUCER_EPOCH));
        assert_eq!(all.may_write("pay", (8, 0), &orders(0)), Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING));
    }

    #[test]
    fn a_transaction_that_takes_too_long_is_aborted_and_its_producer_shut_out() {
        let mut all = started();
        let next = all.add("pay", (7, 0), &places(&[0]), 10);
        step(&mut all, next);
        assert_eq!(all.next_timeout_ms(), Some(1010));
        assert_eq!(all.timed_out(1009), []);
        let late = all.timed_out(1010);
        assert_eq!((late[0].1.status, late[0].1.epoch), (Status::PrepareAbort, 1));
    }

    #[test]
    fn an_identity_that_is_used_up_is_followed_by_a_new_one_and_idle_ones_go() {
        let mut all = started();
        let mut used = all.get("pay").unwrap().clone();
        used.epoch = LAST_EPOCH;
        all.apply("pay", Some(used));
        let Ok(Init::Ready(ready)) = all.init("pay", 1000, None, 9, 23) else { panic!() };
        assert_eq!((ready.producer_id, ready.epoch), (9, 0));
        assert_eq!(all.init("pay", 1000, Some((7, 3)), 9, 23), Err(ErrorCode::PRODUCER_FENCED));
        assert_eq!(all.expired(99, 100), [""; 0]);
        assert_eq!(all.expired(100, 100), ["pay"]);
    }
}
