//! One connection: a task that opens it, cuts what arrives into frames, and writes what is given to it.

use super::{NetSettings, mpsc};
use crate::cluster::ConnId;
use bytes::{Buf, Bytes, BytesMut};
use std::{collections::VecDeque, io, io::IoSlice, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream, tcp::ReadHalf, tcp::WriteHalf},
    task::JoinSet,
    time::timeout,
};
use tontine_wire::frame::split_frame;

/// The next address of a name is tried after this long, and the first that answers is taken.
const STAGGER: Duration = Duration::from_millis(200);
/// How much room is made for reading when nothing is known about what comes.
const ROOM: usize = 16 << 10;
/// The most room that is made for a frame before its bytes have arrived, unless such a frame has arrived before.
const UNTRUSTED_ROOM: usize = 128 << 10;
/// How many frames go to the system in one call.
const SLICES: usize = 32;

/// What happened on a connection.
#[derive(Debug)]
pub(super) enum NetEvent {
    Connected(ConnId),
    Frame(ConnId, Bytes),
    Disconnected(ConnId, String),
}

/// Runs the connection until it is lost, or until nobody can give it anything to write any more.
pub(super) async fn run(
    conn: ConnId,
    host: String,
    port: u16,
    settings: NetSettings,
    events: mpsc::Sender<NetEvent>,
    writes: mpsc::UnboundedReceiver<Bytes>,
) {
    let why = match connect(&host, port, &settings).await {
        Ok(stream) => {
            if events.send(NetEvent::Connected(conn)).await.is_err() {
                return;
            }
            talk(conn, stream, settings.frame_limit, &events, writes).await
        }
        Err(why) => why,
    };
    // The driver may have ended meanwhile, and then nobody wants to know.
    let _ = events.send(NetEvent::Disconnected(conn, why)).await;
}

async fn talk(
    conn: ConnId,
    mut stream: TcpStream,
    frame_limit: usize,
    events: &mpsc::Sender<NetEvent>,
    writes: mpsc::UnboundedReceiver<Bytes>,
) -> String {
    let (read, write) = stream.split();
    tokio::select! {
        why = read_frames(conn, read, frame_limit, events) => why,
        result = write_frames(write, writes) => match result {
            Ok(()) => "closed".to_owned(),
            Err(error) => words(&error),
        },
    }
}

async fn read_frames(
    conn: ConnId,
    mut read: ReadHalf<'_>,
    limit: usize,
    events: &mpsc::Sender<NetEvent>,
) -> String {
    let mut buffer = BytesMut::with_capacity(ROOM);
    let mut largest = 0;
    loop {
        match split_frame(&mut buffer, limit) {
            Ok(Some(frame)) => {
                largest = largest.max(frame.len());
                if events.send(NetEvent::Frame(conn, frame)).await.is_err() {
                    return "closed".to_owned();
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => return error.to_string(),
        }
        buffer.reserve(room(&buffer, largest));
        match read.read_buf(&mut buffer).await {
            Ok(0) => return "it was closed by the other side".to_owned(),
            Ok(_) => {}
            Err(error) => return words(&error),
        }
    }
}

/// How much room to make: for the rest of the frame, but what only a length promises is not believed at once. Room grows
/// with what has arrived, and a size that was seen before is believed.
fn room(buffer: &BytesMut, largest: usize) -> usize {
    let Some(head) = buffer.first_chunk::<4>() else { return ROOM };
    let frame = usize::try_from(i32::from_be_bytes(*head)).unwrap_or(0) + 4;
    let missing = frame.saturating_sub(buffer.len());
    missing.min(buffer.len().max(largest).max(UNTRUSTED_ROOM)).max(1)
}

async fn write_frames(
    mut write: WriteHalf<'_>,
    mut writes: mpsc::UnboundedReceiver<Bytes>,
) -> io::Result<()> {
    let mut queue = VecDeque::new();
    while let Some(first) = writes.recv().await {
        queue.push_back(first);
        while queue.len() < SLICES {
            match writes.try_recv() {
                Ok(next) => queue.push_back(next),
                Err(_) => break,
            }
        }
        write_all(&mut write, &mut queue).await?;
    }
    Ok(())
}

async fn write_all(write: &mut WriteHalf<'_>, queue: &mut VecDeque<Bytes>) -> io::Result<()> {
    while !queue.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES];
        for (slice, bytes) in slices.iter_mut().zip(queue.iter()) {
            *slice = IoSlice::new(bytes);
        }
        let used = queue.len().min(SLICES);
        let mut written = write.write_vectored(&slices[..used]).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(front) = queue.front_mut().filter(|f| written >= f.len()) {
            written -= front.len();
            queue.pop_front();
        }
        if let Some(front) = queue.front_mut() {
            front.advance(written);
        }
    }
    Ok(())
}

/// Opens a connection to the first address of this name that answers. Addresses are tried in their order, each a little
/// after the one before it.
async fn connect(host: &str, port: u16, settings: &NetSettings) -> Result<TcpStream, String> {
    let looked_up = tokio::net::lookup_host((host, port)).await;
    let addresses: Vec<SocketAddr> =
        looked_up.map_err(|e| format!("the name cannot be resolved: {e}"))?.collect();
    let mut attempts = JoinSet::new();
    let mut why = "the name has no address".to_owned();
    for address in addresses {
        attempts.spawn(connect_to(address, settings.clone()));
        match timeout(STAGGER, attempts.join_next()).await {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(error)))) => why = words(&error),
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = words(&error),
            Err(_) => {}
        }
    }
    Err(why)
}

async fn connect_to(address: SocketAddr, settings: NetSettings) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(size) = settings.send_buffer {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = settings.receive_buffer {
        socket.set_recv_buffer_size(size)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What went wrong, in lower-case words and without numbers of the system where the kind says it all.
fn words(error: &io::Error) -> String {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable};
    use io::ErrorKind::{NetworkUnreachable, TimedOut};
    match error.kind() {
        ConnectionRefused => "connection refused: no broker listens there".to_owned(),
        kind @ (BrokenPipe | ConnectionAborted | ConnectionReset | HostUnreachable | NetworkUnreachable
        | TimedOut) => kind.to_string(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_alone_makes_no_large_room() {
        let mut buffer = BytesMut::from(&[0x1f, 0, 0, 0][..]);
        assert_eq!(room(&buffer, 0), UNTRUSTED_ROOM);
        buffer.resize(1 << 20, 0);
        assert_eq!(room(&buffer, 0), 1 << 20, "room doubles with what has arrived");
        assert_eq!(room(&buffer, 4 << 20), 4 << 20, "a size that was seen before is believed");
        assert_eq!(room(&BytesMut::new(), 1 << 30), ROOM);
        assert_eq!(room(&BytesMut::from(&[0, 0, 0, 10, 1, 2][..]), 0), 8);
    }
}
