//! Tests of what an application does with a Kafka consumer group.
//!
//! [`GroupTest`] runs members and brokers in one thread and in virtual time: the production machines of tontine, with
//! nothing replaced but sockets and clocks. A session that expires costs milliseconds, and the same test takes the same
//! course every time. Members are killed, stalled and expelled at a word; an audit is on from the beginning and ends the
//! test with a sentence when two members had one partition, a commit came after the partition was given up, or a record
//! was skipped.
//!
//! ```
//! use std::{cell::RefCell, collections::BTreeSet, rc::Rc};
//! use tontine_test::{GroupTest, Member};
//!
//! let mut test = GroupTest::new().topic("orders", 4).start();
//! let billed = Rc::new(RefCell::new(BTreeSet::new()));
//! // What your application does with a record; this one must see each order at least once.
//! let bill = |billed: &Rc<RefCell<BTreeSet<String>>>| {
//!     let billed = billed.clone();
//!     Member::new().handler(move |record| {
//!         let order = String::from_utf8_lossy(record.value().unwrap_or_default()).into_owned();
//!         billed.borrow_mut().insert(order);
//!     })
//! };
//! let a = test.member(bill(&billed));
//! let b = test.member(bill(&billed));
//! test.until_stable();
//! for order in 0..100 {
//!     test.write("orders", format!("order {order}"));
//! }
//! test.kill(a);
//! test.deliver_all();
//! assert_eq!(billed.borrow().len(), 100);
//! assert_eq!(test.assignment(b).len(), 4);
//! ```
//!
//! A test against a cluster of its own, embedded or real, has the same audit through [`AuditedRun`].

#![allow(clippy::panic, reason = "a test that does not hold ends by a panic")]

mod audited;
mod group;
mod member;

pub use audited::AuditedRun;
pub use group::{GroupTest, GroupTestBuilder};
pub use member::{Member, MemberId};
pub use tontine_sim::workload::Commits;
