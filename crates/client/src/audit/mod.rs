//! The ownership audit: what each member wrote down about its partitions, and the proof that it fits together.
//!
//! With `audit.log=PATH` a consumer appends one line of JSON for each partition that it is assigned, for each offset that it
//! asks to commit and that is committed, and for each partition that it gives up or loses. The lines of all members of a group, from as many processes
//! and machines as there are, are put together by [`Audit`], which says where two members had one partition, where a
//! commit came after the partition was given up, and where records were handed out to nobody.
//!
//! `ledger` writes down, `line` is the format, `verdict` is the proof. Nothing here opens a file.

mod ledger;
mod line;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use ledger::{Ledger, LedgerSettings};
pub use line::{Entry, Event, Why};
pub use verdict::{Audit, Problem, Verdict};
