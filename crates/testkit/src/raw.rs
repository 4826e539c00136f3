//! A connection for tests that speak the protocol themselves: one request, one answer, the version chosen by the test.
//!
//! It knows nothing of retries, metadata or groups, so that a test sees what the broker really answers.

use crate::{Failure, failure, wait};
use bytes::BytesMut;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tontine_wire::api::{ApiKey, Call, Request, Response};
use tontine_wire::frame::{correlation_id, decode_response, encode_request, split_frame};
use tontine_wire::header::RequestHeader;

/// How long an answer may take, parked joins included.
const ANSWER: Duration = Duration::from_secs(60);
const FRAME_LIMIT: usize = 64 << 20;

/// A connection to one broker. Answers come in the order of the requests.
#[derive(Debug)]
pub struct RawConnection {
    stream: TcpStream,
    received: BytesMut,
    sent: i32,
    client_id: String,
}

/// A request whose answer has not been read yet.
#[derive(Debug)]
#[must_use = "the answer has to be read with `receive`"]
pub struct Pending<C> {
    correlation_id: i32,
    version: i16,
    call: std::marker::PhantomData<C>,
}

impl RawConnection {
    /// Connects to `address` (`host:port`) as the client `client_id`.
    pub async fn connect(address: &str, client_id: &str) -> Result<Self, Failure> {
        let stream =
            TcpStream::connect(address).await.map_err(|e| failure!("cannot connect to {address}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| failure!("cannot set TCP_NODELAY: {e}"))?;
        Ok(Self { stream, received: BytesMut::new(), sent: 0, client_id: client_id.to_owned() })
    }

    /// Sends a request in this version and waits for its answer.
    pub async fn call<C: Call>(&mut self, version: i16, request: C) -> Result<C::Response, Failure> {
        let pending = self.send(version, request).await?;
        self.receive(pending).await
    }

    /// Sends a request in this version; the answer is read later.
    pub async fn send<C: Call>(&mut self, version: i16, request: C) -> Result<Pending<C>, Failure> {
        self.sent += 1;
        let header = RequestHeader {
            key: C::KEY,
            version,
            correlation_id: self.sent,
            client_id: Some(self.client_id.clone()),
        };
        let request: Request = request.into();
        let frame = encode_request(&header, &request);
        self.stream.write_all(&frame).await.map_err(|e| failure!("cannot send {}: {e}", C::KEY.name()))?;
        Ok(Pending { correlation_id: self.sent, version, call: std::marker::PhantomData })
    }

    /// Reads the answer to the oldest request that was sent and not read.
    pub async fn receive<C: Call>(&mut self, pending: Pending<C>) -> Result<C::Response, Failure> {
        let name = C::KEY.name();
        let response = wait::within(
            &format!("the answer to {name}"),
            ANSWER,
            self.read(C::KEY, pending.version, pending.correlation_id),
        )
        .await??;
        C::Response::try_from(response)
            .map_err(|other| failure!("{name} was answered with {:?}", other.key()))
    }

    /// Whether an answer is there within `span`; for requests that are expected to be parked.
    pub async fn is_answered_within(&mut self, span: Duration) -> Result<bool, Failure> {
        let arrives = async {
            while self.received.len() < 4 {
                self.read_more(ApiKey::ApiVersions).await?;
            }
            Ok(true)
        };
        tokio::time::timeout(span, arrives).await.unwrap_or(Ok(false))
    }

    async fn read(&mut self, key: ApiKey, version: i16, expected: i32) -> Result<Response, Failure> {
        loop {
            let frame = split_frame(&mut self.received, FRAME_LIMIT).map_err(|e| failure!("{e}"))?;
            let Some(frame) = frame else {
                self.read_more(key).await?;
                continue;
            };
            let id = correlation_id(&frame).map_err(|e| failure!("{e}"))?;
            if id != expected {
                return Err(failure!("answer number {id} came where {expected} was expected"));
            }
            return decode_response(key, version, frame)
                .map_err(|e| failure!("cannot read the answer to {} v{version}: {e}", key.name()));
        }
    }

    async fn read_more(&mut self, key: ApiKey) -> Result<(), Failure> {
        match self.stream.read_buf(&mut self.received).await {
            Ok(0) => Err(failure!("the broker closed the connection instead of answering {}", key.name())),
            Ok(_) => Ok(()),
            Err(e) => Err(failure!("the connection broke while waiting for {}: {e}", key.name())),
        }
    }
}
