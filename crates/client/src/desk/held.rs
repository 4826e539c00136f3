//! One partition on the application's side: what is queued, and how far the application has been handed records.
//!
//! Decides what of a queue may be handed out next, and moves the position by exactly that.

use super::reader::{Reader, Rules};
use crate::{
    Error,
    fetch::position::Position,
    lease::{Delivery, Incarnation, LogEnd},
    records::Run,
};
use std::collections::VecDeque;
use tontine_group::TopicPartition;

/// One partition that is assigned, or about to be.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) incarnation: Incarnation,
    /// The listener has heard, or is hearing, that it is assigned.
    pub(crate) announced: bool,
    /// It is being given up, or its callback has not returned yet: nothing is handed out.
    pub(crate) frozen: bool,
    /// Its assigned callback has failed: nothing is handed out before one has succeeded.
    pub(crate) unheard: bool,
    /// The application paused it.
    pub(crate) paused: bool,
    /// Its topic is still subscribed.
    pub(crate) wanted: bool,
    /// The offset of the next record to hand out; `None` until it is known.
    pub(crate) position: Option<Position>,
    pub(crate) end: Option<LogEnd>,
    /// It stands in the line of partitions that have something to hand out.
    pub(crate) in_line: bool,
    queue: VecDeque<Delivery>,
    reader: Option<Reader>,
}

impl Held {
    pub(crate) fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            announced: false,
            frozen: true,
            unheard: false,
            paused: false,
            wanted: true,
            position: None,
            end: None,
            in_line: false,
            queue: VecDeque::new(),
            reader: None,
        }
    }

    /// One that the application assigned itself: no callback comes first.
    pub(crate) fn by_hand(incarnation: Incarnation) -> Self {
        Self { announced: true, frozen: false, ..Self::new(incarnation) }
    }

    /// Whether anything may be handed out now.
    pub(crate) fn is_open(&self) -> bool {
        self.announced && !self.frozen && !self.unheard && !self.paused && self.wanted
    }

    /// Whether anything waits.
    pub(crate) fn has_more(&self) -> bool {
        self.reader.is_some() || !self.queue.is_empty()
    }

    /// Takes something into the queue. A position with nothing before it counts at once.
    pub(crate) fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Jump(position) if !self.has_more() => self.position = Some(position),
            other => self.queue.push_back(other),
        }
    }

    /// Starts reading elsewhere: what is queued is void.
    pub(crate) fn restart(&mut self, incarnation: Incarnation, position: Option<Position>) {
        self.incarnation = incarnation;
        self.position = position;
        self.queue.clear();
        self.reader = None;
    }

    /// The error that stands in the way, when it is next.
    pub(crate) fn failure(&self) -> Option<&Error> {
        match (&self.reader, self.queue.front()) {
            (None, Some(Delivery::Failed(error))) => Some(error),
            _ => None,
        }
    }

    /// Hands out at most `most` records of one chunk, and adds to `credit` the bytes that left the queue. The position
    /// moves by what is handed out; at an error it stays.
    pub(crate) fn take(
        &mut self,
        name: &TopicPartition,
        most: usize,
        rules: Rules,
        credit: &mut usize,
        runs: &mut Vec<Run>,
    ) -> Result<usize, Error> {
        let mut taken = 0;
        while taken == 0 {
            if let Some((reader, position)) = self.reader.as_mut().zip(self.position.as_mut()) {
                taken += reader.take(name, position, most, runs)?;
                if reader.is_done() {
                    self.reader = None;
                }
                continue;
            }
            match self.queue.front() {
                None => break,
                Some(Delivery::Jump(position)) => self.position = Some(*position),
                Some(Delivery::Failed(error)) => return Err(error.clone()),
                Some(Delivery::Chunk(chunk)) => {
                    *credit += chunk.records.len();
                    self.reader = Some(Reader::new(chunk.clone(), rules));
                }
            }
            self.queue.pop_front();
        }
        Ok(taken)
    }
}
