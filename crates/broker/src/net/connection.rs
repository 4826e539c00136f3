//! One connection: frames in, answers out, one request at a time.
//!
//! The next request is taken in only after the last answer was written. So a client that does not read holds no more
//! memory than one answer, which is the smaller the more of them do not read, and a parked request holds back those behind
//! it, as in Kafka.

use super::buffers::Buffers;
use super::shared::{Next, Shared};
use crate::state::ConnId;
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tontine_wire::api::Response;
use tontine_wire::codec::Pieces;
use tontine_wire::frame;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// A frame up to this size is copied: groups keep what members sent, and that must not hold on to a whole buffer.
const COPIED_UP_TO: usize = 8 << 10;

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Event {
    /// Send this.
    Reply { version: i16, correlation_id: i32, response: Box<Response> },
    /// Send this as it is.
    Frame(Bytes),
    /// There is no answer; go on.
    Silent,
}

/// Serves a connection until it ends.
pub(super) async fn serve(shared: Arc<Shared>, conn: ConnId, stream: TcpStream, limit: usize) {
    let mut connection = Connection { stream, buffer: BytesMut::new(), limit };
    if let Err(error) = connection.run(&shared, conn).await {
        tracing::debug!(conn = conn.0, %error, "a connection ended");
        if let Some(language) = other_language(&connection.buffer) {
            shared.say_once(language.to_owned());
        }
    }
    shared.disconnected(conn);
}

/// What a client takes this port for, when it is not a plain listener of Kafka's.
fn other_language(start: &[u8]) -> Option<&'static str> {
    const HTTP: [&[u8]; 6] = [b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"CONN"];
    if start.starts_with(&[0x16, 0x03]) {
        return Some("a client speaks TLS: there is no TLS here, set security.protocol=PLAINTEXT for it");
    }
    let http = HTTP.iter().any(|word| start.starts_with(word));
    http.then_some("a client speaks HTTP: this is the port of a Kafka broker")
}

struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
    limit: usize,
}

impl Connection {
    async fn run(&mut self, shared: &Shared, conn: ConnId) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        let buffers = shared.buffers();
        while let Some(frame) = self.next_frame(buffers).await? {
            let _busy = shared.busy();
            let memory = frame.clone();
            let event = match shared.request(conn, frame) {
                Next::Now(event) => event,
                Next::Later(mut receiver) => loop {
                    tokio::select! {
                        event = &mut receiver => match event {
                            Ok(event) => break event,
                            Err(_) => return Ok(()),
                        },
                        more = read_ahead(&mut self.stream, &mut self.buffer, buffers) => {
                            if more? == 0 {
                                return Ok(());
                            }
                        }
                    }
                },
                Next::Closed => return Ok(()),
            };
            buffers.give_back_frame(memory);
            match event {
                Event::Reply { version, correlation_id, response } => {
                    let pieces = frame::encode_response_in_pieces(version, correlation_id, &response);
                    drop(response);
                    let _outgoing = shared.outgoing(pieces.remaining());
                    self.write(pieces).await?;
                }
                Event::Frame(frame) => self.stream.write_all(&frame).await?,
                Event::Silent => {}
            }
        }
        Ok(())
    }

    async fn write(&mut self, mut pieces: Pieces) -> io::Result<()> {
        // Most answers are one piece, and a plain write is the cheaper one.
        if pieces.chunk().len() == pieces.remaining() {
            return self.stream.write_all(pieces.chunk()).await;
        }
        self.stream.write_all_buf(&mut pieces).await
    }

    /// The next frame; `None` at the end of the connection.
    async fn next_frame(&mut self, buffers: &Buffers) -> io::Result<Option<Bytes>> {
        loop {
            let frame = frame::split_frame(&mut self.buffer, self.limit)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?
                .map(
                    |frame| if frame.len() <= COPIED_UP_TO { Bytes::copy_from_slice(&frame) } else { frame },
                );
            // An idle connection holds no buffer, and a frame that was the last in its buffer is the only one to hold it.
            if self.buffer.is_empty() {
                buffers.give_back(std::mem::take(&mut self.buffer));
            }
            if frame.is_some() {
                return Ok(frame);
            }
            if read(&mut self.stream, &mut self.buffer, buffers).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Reads what comes next; 0 at the end. Nothing is allocated before something is there.
async fn read(stream: &mut TcpStream, buffer: &mut BytesMut, buffers: &Buffers) -> io::Result<usize> {
    stream.readable().await?;
    if buffer.is_empty() && buffer.capacity() == 0 {
        *buffer = buffers.take();
    }
    reserve(buffer);
    stream.read_buf(buffer).await
}

/// Makes room for what belongs to the frame at the front, but never for much more than was received already: the length
/// is only a claim.
fn reserve(buffer: &mut BytesMut) {
    let claimed = buffer.first_chunk::<4>().map_or(0, |head| u32::from_be_bytes(*head) as usize + 4);
    let missing = claimed.saturating_sub(buffer.len());
    buffer.reserve(missing.clamp(READ_BYTES, READ_BYTES.max(4 * buffer.len())));
}

/// Reads a bounded amount while a request is parked, to notice when the client goes away.
async fn read_ahead(stream: &mut TcpStream, buffer: &mut BytesMut, buffers: &Buffers) -> io::Result<usize> {
    if buffer.len() >= READ_BYTES {
        // Whoever sends this much without waiting is noticed when the parked request is done.
        std::future::pending::<()>().await;
    }
    read(stream, buffer, buffers).await
}

#[cfg(test)]
mod tests {
    use super::other_language;

    #[test]
    fn tls_and_http_are_recognised_and_requests_are_not_taken_for_them() {
        let hello = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01];
        assert!(other_language(&hello).is_some_and(|said| said.contains("PLAINTEXT")));
        assert!(other_language(b"GET / HTTP/1.1").is_some_and(|said| said.contains("HTTP")));
        assert_eq!(other_language(&[0, 0, 0, 20, 0, 18, 0, 3]), None);
        assert_eq!(other_language(&[]), None);
    }
}
