//! One connection: a task that opens it, cuts what arrives into frames, and writes what is given to it.

use super::{NetSettings, inlet::Inlet, mark::Mark, mpsc};
use crate::cluster::ConnId;
use bytes::{Buf, Bytes};
use std::{collections::VecDeque, io, io::IoSlice, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream, tcp::ReadHalf, tcp::WriteHalf},
    task::JoinSet,
    time::timeout,
};

/// The next address of a name is tried after this long, and the first that answers is taken.
const STAGGER: Duration = Duration::from_millis(200);
/// A connection on which nothing comes for this long gives back what it keeps for more.
const QUIET: Duration = Duration::from_secs(2);
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
    let (mut inlet, mut mark) = (Inlet::default(), Mark::default());
    loop {
        match inlet.next_frame(limit) {
            Ok(Some(frame)) => {
                if events.send(NetEvent::Frame(conn, frame)).await.is_err() {
                    return "closed".to_owned();
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => return error.to_string(),
        }
        mark.await_bytes(read.as_ref(), inlet.missing());
        match read_some(&mut read, &mut inlet).await {
            Ok(0) => return "it was closed by the other side".to_owned(),
            Ok(_) => {}
            Err(error) => return words(&error),
        }
    }
}

async fn read_some(read: &mut ReadHalf<'_>, inlet: &mut Inlet) -> io::Result<usize> {
    if inlet.keeps_any() {
        if let Ok(result) = timeout(QUIET, read.read_buf(&mut inlet.room())).await {
            return result;
        }
        inlet.rest();
    }
    read.read_buf(&mut inlet.room()).await
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
