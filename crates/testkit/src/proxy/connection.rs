//! One connection through the proxy: requests one way, answers the other, in order.

use super::rule::{Action, Shared as Rule};
use super::{Shared, rewrite};
use crate::{Failure, failure};
use bytes::{BufMut as _, Bytes, BytesMut};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tontine_wire::api::{ApiKey, Response};
use tontine_wire::frame::{correlation_id, decode_request, decode_response, encode_response, split_frame};
use tontine_wire::header::RequestStart;

const FRAME_LIMIT: usize = 64 << 20;

/// What the client will be sent next.
enum Next {
    /// The broker's next answer, after a rule has had its say.
    FromBroker { start: RequestStart, rule: Option<Arc<Rule>> },
    /// An answer of the proxy's own: a whole frame.
    Own(Bytes),
}

/// The way of requests and answers.
pub(super) struct Connection {
    shared: Arc<Shared>,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Runs until either side closes, or a rule does.
    pub(super) async fn run(self, client: TcpStream, broker: TcpStream) {
        let (client_in, client_out) = client.into_split();
        let (broker_in, broker_out) = broker.into_split();
        let (next, order) = mpsc::unbounded_channel();
        tokio::select! {
            _ = self.requests(client_in, broker_out, next) => {}
            _ = self.answers(broker_in, client_out, order) => {}
        }
    }

    async fn requests(
        &self,
        mut client: OwnedReadHalf,
        mut broker: OwnedWriteHalf,
        next: mpsc::UnboundedSender<Next>,
    ) -> Result<(), Failure> {
        let mut received = BytesMut::new();
        loop {
            let frame = self.frame(&mut client, &mut received).await?;
            let start = request_start(&frame)?;
            let rule = ApiKey::from_code(start.key).ok().and_then(|key| self.shared.rules.take(key));
            match rule.as_ref().map(|rule| rule.action()) {
                Some(Action::Swallow) => continue,
                Some(Action::Disconnect) => return Err(failure!("a rule disconnects")),
                Some(Action::HoldRequest) => {
                    if let Some(rule) = &rule {
                        rule.until_released().await;
                    }
                }
                Some(Action::Answer(_) | Action::AnswerCode(_)) => {
                    if let Some(own) = rule.as_ref().map(|rule| own_answer(rule.action(), &frame)) {
                        next.send(Next::Own(own?)).map_err(|_| failure!("closed"))?;
                    }
                    continue;
                }
                _ => {}
            }
            next.send(Next::FromBroker { start, rule }).map_err(|_| failure!("closed"))?;
            write_frame(&mut broker, &frame).await?;
        }
    }

    async fn answers(
        &self,
        mut broker: OwnedReadHalf,
        mut client: OwnedWriteHalf,
        mut order: mpsc::UnboundedReceiver<Next>,
    ) -> Result<(), Failure> {
        let mut received = BytesMut::new();
        while let Some(next) = order.recv().await {
            let (start, rule) = match next {
                Next::Own(frame) => {
                    client.write_all(&frame).await.map_err(|e| failure!("{e}"))?;
                    continue;
                }
                Next::FromBroker { start, rule } => (start, rule),
            };
            let frame = self.frame(&mut broker, &mut received).await?;
            let action = rule.as_ref().map(|rule| rule.action());
            match action {
                Some(Action::SwallowAnswer) => continue,
                Some(Action::DisconnectAnswer) => return Err(failure!("a rule disconnects")),
                Some(Action::HoldAnswer) => {
                    if let Some(rule) = &rule {
                        rule.until_released().await;
                    }
                }
                _ => {}
            }
            let frame = self.on_its_way_back(start, frame, action)?;
            write_frame(&mut client, &frame).await?;
        }
        Ok(())
    }

    /// The answer with the proxy's own addresses, and edited when a rule says so.
    fn on_its_way_back(
        &self,
        start: RequestStart,
        frame: Bytes,
        action: Option<&Action>,
    ) -> Result<Bytes, Failure> {
        let Ok(key) = ApiKey::from_code(start.key) else { return Ok(frame) };
        if !rewrite::has_addresses(key) && !matches!(action, Some(Action::Edit(_))) {
            return Ok(frame);
        }
        let id = correlation_id(&frame).map_err(|e| failure!("{e}"))?;
        // An answer in a version that is not known (ApiVersions of an old broker) goes through as it is.
        let Ok(mut response) = decode_response(key, start.version, frame.clone()) else { return Ok(frame) };
        if let Some(Action::Edit(edit)) = action {
            edit(&mut response);
        }
        self.readdress(&mut response)?;
        let whole = encode_response(start.version, id, &response);
        Ok(whole.slice(4..))
    }

    fn readdress(&self, response: &mut Response) -> Result<(), Failure> {
        for address in rewrite::addresses(response) {
            self.shared.port_for(&address)?;
        }
        let ports = self.shared.ports();
        rewrite::readdress(response, &ports);
        Ok(())
    }

    async fn frame(&self, from: &mut OwnedReadHalf, received: &mut BytesMut) -> Result<Bytes, Failure> {
        loop {
            let frame = split_frame(received, FRAME_LIMIT).map_err(|e| failure!("{e}"))?;
            if let Some(frame) = frame {
                let mut flowing = self.shared.flowing.subscribe();
                flowing.wait_for(|flows| *flows).await.map_err(|_| failure!("closed"))?;
                return Ok(frame);
            }
            match from.read_buf(received).await {
                Ok(0) | Err(_) => return Err(failure!("closed")),
                Ok(_) => {}
            }
        }
    }
}

fn request_start(frame: &Bytes) -> Result<RequestStart, Failure> {
    let mut reader = tontine_wire::codec::Reader::new(frame.clone());
    RequestStart::get(&mut reader).map_err(|e| failure!("{e}"))
}

fn own_answer(action: &Action, frame: &Bytes) -> Result<Bytes, Failure> {
    let (header, request) = decode_request(frame.clone()).map_err(|e| failure!("{e}"))?;
    let response = match action {
        Action::Answer(answer) => answer(&request),
        Action::AnswerCode(code) => rewrite::refusal(&request, *code)
            .ok_or_else(|| failure!("the proxy cannot refuse {}", header.key.name()))?,
        other => return Err(failure!("{other:?} answers nothing")),
    };
    Ok(encode_response(header.version, header.correlation_id, &response))
}

async fn write_frame(to: &mut OwnedWriteHalf, frame: &Bytes) -> Result<(), Failure> {
    let mut whole = BytesMut::with_capacity(frame.len() + 4);
    whole.put_i32(frame.len() as i32);
    whole.extend_from_slice(frame);
    to.write_all(&whole).await.map_err(|e| failure!("{e}"))
}
