//! Frames: a length of four bytes, then a request or an answer.

use crate::api::{ApiKey, Request, Response};
use crate::codec::{DecodeError, Reader, Wire};
use crate::header::{RequestHeader, RequestStart, put_response_header, skip_response_tags};
use bytes::{Buf, Bytes, BytesMut};

/// A frame whose length cannot be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is negative.
    #[error("a frame says it is {0} bytes long: the other side does not speak Kafka's protocol")]
    Negative(i32),
    /// The frame is larger than allowed. Text of another protocol looks like this as well.
    #[error("a frame says it is {size} bytes long, more than the {limit} allowed: {hint}")]
    TooLarge {
        /// What the frame says.
        size: usize,
        /// What is allowed.
        limit: usize,
        /// What it may be instead.
        hint: &'static str,
    },
}

/// Takes the next whole frame off `buffer`, without its length; `None` when more bytes have to arrive.
///
/// Nothing is allocated by the length: the caller's buffer grows by what was really received.
pub fn split_frame(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(head) = buffer.first_chunk::<4>() else { return Ok(None) };
    let size = i32::from_be_bytes(*head);
    let Ok(size_bytes) = usize::try_from(size) else { return Err(FrameError::Negative(size)) };
    if size_bytes > limit {
        return Err(FrameError::TooLarge { size: size_bytes, limit, hint: hint(head) });
    }
    if buffer.len() < 4 + size_bytes {
        return Ok(None);
    }
    buffer.advance(4);
    Ok(Some(buffer.split_to(size_bytes).freeze()))
}

fn hint(head: &[u8; 4]) -> &'static str {
    match head {
        b"HTTP" | b"GET " | b"POST" | b"PUT " | b"HEAD" => {
            "this is a web server or a web client, not a Kafka one"
        }
        [0x16, 0x03, ..] | [0x15, 0x03, ..] => "this is TLS, and the port or the client is set to plain text",
        _ => "the other side may not speak Kafka's protocol",
    }
}

fn frame(write: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::with_capacity(128);
    out.extend_from_slice(&[0; 4]);
    write(&mut out);
    let size = (out.len() - 4) as i32;
    out[..4].copy_from_slice(&size.to_be_bytes());
    out.freeze()
}

/// A request as a frame, its length included.
pub fn encode_request(header: &RequestHeader, request: &Request) -> Bytes {
    frame(|out| {
        header.put(out);
        request.encode(header.version, out);
    })
}

/// An answer as a frame, its length included.
pub fn encode_response(version: i16, correlation_id: i32, response: &Response) -> Bytes {
    frame(|out| {
        put_response_header(out, response.key(), version, correlation_id);
        response.encode(version, out);
    })
}

/// Reads a request out of a frame without its length.
pub fn decode_request(frame: Bytes) -> Result<(RequestHeader, Request), DecodeError> {
    let mut reader = Reader::new(frame);
    let start = RequestStart::get(&mut reader)?;
    let header = RequestHeader::get_rest(start, &mut reader)?;
    let request = Request::get(header.key, header.version, &mut reader)?;
    reader.finish()?;
    Ok((header, request))
}

/// The correlation id of an answer: the first four bytes of its frame.
pub fn correlation_id(frame: &Bytes) -> Result<i32, DecodeError> {
    i32::get(&mut Reader::new(frame.clone()), 0, false)
}

/// Reads an answer out of a frame without its length, given what was asked.
pub fn decode_response(key: ApiKey, version: i16, frame: Bytes) -> Result<Response, DecodeError> {
    let mut reader = Reader::new(frame);
    i32::get(&mut reader, 0, false)?;
    skip_response_tags(key, version, &mut reader)?;
    Response::decode(key, version, reader.rest())
}
