//! Frames: a length of four bytes, then a request or an answer.

use crate::api::{ApiKey, Request, Response};
use crate::codec::{DecodeError, Pieces, Reader, Wire, Writer};
use crate::header::{RequestHeader, RequestStart, put_response_header, skip_response_tags};
use bytes::{Buf, Bytes, BytesMut};

/// Below this, a copy costs less than another piece.
const SHARED_FROM: usize = 2 << 10;

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

fn frame(mut out: Writer, write: impl FnOnce(&mut Writer)) -> Writer {
    out.reserve(128);
    out.extend_from_slice(&[0; 4]);
    write(&mut out);
    let size = (out.len() - 4) as i32;
    out.overwrite_start(size.to_be_bytes());
    out
}

/// A request as a frame, its length included.
pub fn encode_request(header: &RequestHeader, request: &Request) -> Bytes {
    let write = |out: &mut Writer| {
        header.put(out);
        request.encode(header.version, out);
    };
    frame(Writer::new(), write).into_bytes()
}

fn response_frame(out: Writer, version: i16, correlation_id: i32, response: &Response) -> Writer {
    frame(out, |out| {
        put_response_header(out, response.key(), version, correlation_id);
        response.encode(version, out);
    })
}

/// An answer as a frame, its length included.
pub fn encode_response(version: i16, correlation_id: i32, response: &Response) -> Bytes {
    response_frame(Writer::new(), version, correlation_id, response).into_bytes()
}

/// An answer as a frame, its length included; records of many bytes are handed on, not copied.
pub fn encode_response_in_pieces(version: i16, correlation_id: i32, response: &Response) -> Pieces {
    response_frame(Writer::sharing(SHARED_FROM), version, correlation_id, response).into_pieces()
}

/// Reads a request out of a frame without its length.
///
/// Bytes behind the request are ignored, as Kafka does: librdkafka 2.16 asks for the metadata of all topics with three
/// bytes too many.
pub fn decode_request(frame: Bytes) -> Result<(RequestHeader, Request), DecodeError> {
    let mut reader = Reader::new(frame);
    let start = RequestStart::get(&mut reader)?;
    let header = RequestHeader::get_rest(start, &mut reader)?;
    let request = Request::get(header.key, header.version, &mut reader)?;
    Ok((header, request))
}

/// The correlation id of an answer: the first four bytes of its frame.
pub fn correlation_id(frame: &Bytes) -> Result<i32, DecodeError> {
    i32::get(&mut Reader::new(frame.clone()), 0, false)
}

/// Reads an answer out of a frame without its length, given what was asked.
///
/// A broker that does not know the version of an ApiVersions request answers in version 0, so that is tried as well.
pub fn decode_response(key: ApiKey, version: i16, frame: Bytes) -> Result<Response, DecodeError> {
    let mut reader = Reader::new(frame);
    i32::get(&mut reader, 0, false)?;
    skip_response_tags(key, version, &mut reader)?;
    let body = reader.rest();
    match Response::decode(key, version, body.clone()) {
        Err(error) if key == ApiKey::ApiVersions => Response::decode(key, 0, body).map_err(|_| error),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::api::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};
    use crate::api::heartbeat::HeartbeatRequest;

    fn header(key: ApiKey, version: i16) -> RequestHeader {
        RequestHeader { key, version, correlation_id: 7, client_id: Some("me".to_owned()) }
    }

    #[test]
    fn a_request_comes_out_of_its_frame_as_it_went_in() {
        for version in ApiKey::Heartbeat.versions() {
            let header = header(ApiKey::Heartbeat, version);
            let request = Request::from(HeartbeatRequest { group_id: "g".to_owned(), ..Default::default() });
            let mut buffer = BytesMut::from(&encode_request(&header, &request)[..]);
            let frame = split_frame(&mut buffer, 1_000).unwrap().unwrap();
            assert!(buffer.is_empty());
            assert_eq!(decode_request(frame), Ok((header, request)));
        }
    }

    #[test]
    fn a_frame_arrives_byte_by_byte() {
        let request = Request::from(ApiVersionsRequest::default());
        let bytes = encode_request(&header(ApiKey::ApiVersions, 3), &request);
        let mut buffer = BytesMut::new();
        for (i, byte) in bytes.iter().enumerate() {
            assert_eq!(split_frame(&mut buffer, 1_000), Ok(None), "after {i} bytes");
            buffer.extend_from_slice(&[*byte]);
        }
        assert_eq!(split_frame(&mut buffer, 1_000).unwrap().map(|frame| frame.len()), Some(bytes.len() - 4));
    }

    #[test]
    fn a_web_server_is_recognised_by_its_first_bytes() {
        let mut buffer = BytesMut::from(&b"HTTP/1.1 400 Bad Request"[..]);
        let error = split_frame(&mut buffer, 100 << 20).unwrap_err();
        assert!(error.to_string().contains("web server"), "{error}");
        assert!(split_frame(&mut BytesMut::from(&[0xff; 8][..]), 100 << 20).is_err());
    }

    #[test]
    fn an_older_brokers_answer_to_api_versions_is_read() {
        let answer = ApiVersionsResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            api_keys: vec![ApiVersion { api_key: 18, min_version: 0, max_version: 2 }],
            ..Default::default()
        };
        let frame = encode_response(0, 7, &answer.clone().into()).slice(4..);
        for version in ApiKey::ApiVersions.versions() {
            assert_eq!(
                decode_response(ApiKey::ApiVersions, version, frame.clone()),
                Ok(answer.clone().into())
            );
        }
    }
}
