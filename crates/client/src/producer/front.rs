//! The async side of a producer.

use super::{Command, Event, ProducerRecord, RecordMetadata, Sender};
use crate::{
    Error,
    config::ProducerBuilder,
    net::{self, Clock, Handle, oneshot},
};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What travels with a record: who waits for it, and the memory it takes.
struct Token {
    reply: oneshot::Sender<Result<RecordMetadata, Error>>,
    _memory: OwnedSemaphorePermit,
}

/// Sends records. Cheap to clone; clones share everything. When the last one is dropped, what was sent is still
/// delivered in the background; [`Producer::close`] waits for it.
#[derive(Clone)]
pub struct Producer {
    handle: Handle<Command<Token, oneshot::Sender<()>>>,
    memory: Arc<Semaphore>,
    most: usize,
    largest: usize,
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}

/// The fate of a record, in time. Dropping it does not take the record back.
#[derive(Debug)]
#[must_use = "the record is sent all the same, but whether it arrived is only known from here"]
pub struct Delivery(oneshot::Receiver<Result<RecordMetadata, Error>>);

impl Future for Delivery {
    type Output = Result<RecordMetadata, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = std::task::ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(result.unwrap_or(Err(Error::Closed("the producer"))))
    }
}

impl ProducerBuilder {
    /// The producer. Nothing is sent before the first record.
    pub fn build(self) -> Result<Producer, Error> {
        let mut config = self.checked()?;
        if config.client_id.is_empty() {
            "producer".clone_into(&mut config.client_id);
        }
        let settings = config.net_settings();
        let bytes = usize::try_from(config.buffer_memory).unwrap_or(0).min(Semaphore::MAX_PERMITS);
        let most = bytes.clamp(1, u32::MAX as usize);
        let largest = usize::try_from(config.max_request_size).unwrap_or(0);
        let on_event = |event| match event {
            // Whoever sent it may not want to know.
            Event::Delivered(Token { reply, .. }, result) => drop(reply.send(result)),
            Event::Flushed(reply) => drop(oneshot::Sender::send(reply, ())),
        };
        let handle = net::spawn(Sender::new(config, Clock::seed())?, settings, on_event)?;
        Ok(Producer { handle, memory: Arc::new(Semaphore::new(most)), most, largest })
    }
}

impl Producer {
    /// Starts with Kafka's defaults.
    pub fn builder() -> ProducerBuilder {
        ProducerBuilder::default()
    }

    /// Hands a record over, and waits only while `buffer.memory` is used up. What it gives back tells where the record
    /// was stored, or why it was not.
    ///
    /// Records of one partition are stored in the order in which `send` was called.
    pub async fn send(&self, record: ProducerRecord) -> Result<Delivery, Error> {
        let size = record.size();
        if size > self.largest {
            return Err(Error::misuse(format!(
                "the record for topic `{}` takes {size} bytes, more than the {} of max.request.size",
                record.topic, self.largest
            )));
        }
        if record.topic.trim().is_empty() {
            return Err(Error::misuse("the record's topic has no name"));
        }
        let permits = u32::try_from(size.min(self.most)).unwrap_or(u32::MAX);
        let memory = self.memory.clone().acquire_many_owned(permits).await;
        let (reply, delivery) = oneshot::channel();
        let token = Token { reply, _memory: memory.map_err(|_| Error::Closed("the producer"))? };
        let timestamp = record.timestamp.unwrap_or_else(net::unix_ms);
        self.handle
            .send(Command::Send { record, timestamp, token })
            .map_err(|_| Error::Closed("the producer"))?;
        Ok(Delivery(delivery))
    }

    /// Sends everything without lingering, and waits until each record that was handed over before has its fate.
    pub async fn flush(&self) -> Result<(), Error> {
        let (reply, done) = oneshot::channel();
        self.handle.send(Command::Flush(reply)).map_err(|_| Error::Closed("the producer"))?;
        done.await.map_err(|_| Error::Closed("the producer"))
    }

    /// Flushes, then ends. Takes `delivery.timeout.ms` at most; clones of this producer stay usable.
    pub async fn close(self) -> Result<(), Error> {
        self.flush().await
    }
}
