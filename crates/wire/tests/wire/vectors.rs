//! The lines of `data/messages.tsv`: every message in every version, written by another encoder.
//!
//! The file was made by a small interpreter of Kafka's JSON message schemas (Apache Kafka 4.4) which shares nothing with
//! this crate. A line has the API, the version, request or response, random bytes, and the fields they stand for.

use bytes::Bytes;
use std::fmt;
use tontine_wire::DecodeError;
use tontine_wire::api::{ApiKey, Request, Response};
use tontine_wire::codec::{Reader, Writer};

/// A message that was read, of either side.
#[derive(Clone, PartialEq)]
pub(crate) enum Message {
    Request(Request),
    Response(Response),
}

impl Message {
    /// Reads a whole message.
    pub(crate) fn decode(
        key: ApiKey,
        version: i16,
        is_request: bool,
        bytes: Bytes,
    ) -> Result<Self, DecodeError> {
        if !is_request {
            return Response::decode(key, version, bytes).map(Self::Response);
        }
        let mut reader = Reader::new(bytes);
        let request = Request::get(key, version, &mut reader)?;
        reader.finish()?;
        Ok(Self::Request(request))
    }

    /// Writes it.
    pub(crate) fn encode(&self, version: i16) -> Bytes {
        let mut out = Writer::new();
        match self {
            Self::Request(message) => message.encode(version, &mut out),
            Self::Response(message) => message.encode(version, &mut out),
        }
        out.into_bytes()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(message) => message.fmt(f),
            Self::Response(message) => message.fmt(f),
        }
    }
}

/// A line of the file.
pub(crate) struct Line {
    pub(crate) key: ApiKey,
    pub(crate) version: i16,
    pub(crate) is_request: bool,
    pub(crate) bytes: Bytes,
    pub(crate) fields: &'static str,
}

impl Line {
    fn parse(line: &'static str) -> Option<Self> {
        let mut parts = line.split('\t');
        let name = parts.next()?;
        Some(Self {
            key: ApiKey::ALL.iter().copied().find(|key| key.name() == name)?,
            version: parts.next()?.parse().ok()?,
            is_request: parts.next()? == "request",
            bytes: unhex(parts.next()?),
            fields: parts.next()?,
        })
    }

    /// What the line is about, for messages of failed tests.
    pub(crate) fn title(&self) -> String {
        let side = if self.is_request { "request" } else { "response" };
        format!("{} v{} {side}", self.key.name(), self.version)
    }

    /// Reads bytes as a message of this line's kind.
    pub(crate) fn decode(&self, bytes: Bytes) -> Result<Message, DecodeError> {
        Message::decode(self.key, self.version, self.is_request, bytes)
    }
}

/// All lines.
pub(crate) fn messages() -> Vec<Line> {
    let lines = include_str!("data/messages.tsv").lines();
    lines.map(|line| Line::parse(line).unwrap_or_else(|| panic!("not a line: {line}"))).collect()
}

/// Bytes from their hexadecimal form.
pub(crate) fn unhex(text: &str) -> Bytes {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// The debug form of a message without the names of its structs and enums, and with error codes as numbers.
pub(crate) fn fields_of(message: &impl fmt::Debug) -> String {
    let text = format!("{message:?}").replace("error code ", "").replace(": NONE", ": 0");
    let mut out = String::new();
    for (i, part) in text.split('{').enumerate() {
        if i > 0 {
            out.truncate(out.trim_end_matches(|c: char| c == ' ' || c.is_alphanumeric()).len());
            if out.ends_with([':', ',']) {
                out.push(' ');
            }
            out.push('{');
        }
        out.push_str(part);
    }
    out.trim_start_matches(|c| c != '{').trim_end_matches(')').to_owned()
}

/// Fails with the first few of what went wrong.
pub(crate) fn assert_none_wrong(wrong: &[String], of: usize) {
    let few = wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {of} are wrong, the first are:\n{few}", wrong.len());
}

/// Random numbers that are the same in every run (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}
