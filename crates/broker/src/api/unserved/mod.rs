//! The answer `UNSUPPORTED_VERSION` to what is not spoken here: APIs of Kafka that have no file in the wire, and old
//! versions of those that have.
//!
//! Such a request cannot be decoded, but where the error stands in its answer is known: [`rows`] says it for each API, and
//! [`walk`] goes through the request by it. Clients look at ApiVersions first and do not ask; this is for those that do. Apache
//! Kafka closes the connection. What Kafka does not have either has no answer that anybody could read.

mod rows;
mod walk;

use bytes::Bytes;
use rows::ROWS;
use tontine_wire::DecodeError;
use tontine_wire::codec::{Reader, Wire as _};
use tontine_wire::header::RequestStart;
use walk::{Answered, Walk};

/// What there is to say to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// This frame, its length included.
    Answer(Bytes),
    /// Nothing: the client wants no answer.
    Silence,
    /// Nothing: the form of the answer is not known.
    Unknown,
}

/// Answers a request that is not spoken here.
pub(crate) fn answer(frame: Bytes) -> Result<Unserved, DecodeError> {
    let mut reader = Reader::new(frame);
    let start = RequestStart::get(&mut reader)?;
    let found = ROWS.iter().find(|row| row.key == start.key && row.versions.contains(&start.version));
    let Some(row) = found else { return Ok(Unserved::Unknown) };
    let flexible = start.version >= row.flexible;
    Option::<String>::get(&mut reader, 0, false)?;
    if flexible {
        reader.skip_tags()?;
    }
    let mut walk = Walk::new(reader, start.version, flexible);
    match walk.answer(start.correlation_id, row.steps)? {
        Answered::Frame(frame) => Ok(Unserved::Answer(frame)),
        Answered::Unwanted => Ok(Unserved::Silence),
    }
}

#[cfg(test)]
mod tests;
