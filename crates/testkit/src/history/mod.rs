//! What happened in a test, in one order: the record that every promise is checked against.
//!
//! Members write into it from the application's side: what their callbacks were given, which records they were handed,
//! which commits they asked for and how those ended. Nothing comes from the library's own books. Members of other
//! processes (Java) write with the time that they read themselves; the record is sorted by time when it is read.
//!
//! [`Ownership`] is the reading that most checks need: who held which partition from when to when.

mod event;
mod ownership;
mod reading;
mod recorder;

pub use event::{Callback, CommitResult, End, Event, What};
pub use ownership::{Ownership, OwnershipEnd, ownerships};
pub use reading::{callbacks, delivered, shapes};
pub use recorder::{History, MemberLog};
