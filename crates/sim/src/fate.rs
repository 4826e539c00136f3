//! What a script does to the next request of some kind: it is held up, refused, or never answered, or its answer is late or
//! lost. Drawn runs hold requests up, and no more.

use crate::{fact::Life, network::Way, world::World};
use bytes::Bytes;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tontine_broker::Verdict;
use tontine_wire::{ErrorCode, api::ApiKey, codec::Reader, header::RequestStart};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reaches the broker this much later.
    Held(Duration),
    /// It is answered with this error, and not carried out.
    Refused(ErrorCode),
    /// It is never answered, and not carried out.
    Swallowed,
    /// It is carried out at once, and answered this much later.
    AnsweredLate(Duration),
    /// It is carried out, and its connection lost before the answer comes.
    AnswerLost,
}

/// The next request of this kind, of this member or of anybody, has this fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate {
    pub(crate) key: ApiKey,
    pub(crate) whose: Option<Life>,
    pub(crate) fate: Fate,
}

/// What the broker does with the request that it gets now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge(Arc<Mutex<Option<Verdict>>>);

impl Judge {
    fn decide(&self, verdict: Verdict) {
        if let Ok(mut next) = self.0.lock() {
            *next = Some(verdict);
        }
    }
}

impl World {
    /// Lets the brokers ask what becomes of a request.
    pub(crate) fn listen_to_the_judge(&mut self) {
        let next = self.judge.0.clone();
        let verdict = move || next.lock().ok().and_then(|mut next| next.take()).unwrap_or(Verdict::Pass);
        self.broker.set_intercept(Some(Box::new(move |_, _, _| verdict())));
    }

    /// What becomes of a request, if there is a gate for its kind. Each gate is for one.
    pub(crate) fn fate_of(&mut self, id: u64, frame: &Bytes) -> Option<Fate> {
        if self.gates.is_empty() {
            return None;
        }
        let start = RequestStart::get(&mut Reader::new(frame.clone())).ok()?;
        let who = self.links.get(&id)?.life;
        let meets = |gate: &Gate| gate.key as i16 == start.key && gate.whose.is_none_or(|whose| whose == who);
        let at = self.gates.iter().position(meets)?;
        Some(self.gates.remove(at).fate)
    }

    /// What is done to a request that goes to the broker all the same.
    pub(crate) fn mark(&mut self, id: u64, fate: Fate) {
        match fate {
            Fate::Held(_) => {}
            Fate::Refused(code) => self.judge.decide(Verdict::Refuse(code)),
            Fate::Swallowed => {
                self.judge.decide(Verdict::Swallow);
                if let Some(link) = self.links.get_mut(&id) {
                    link.swallows = true;
                }
            }
            Fate::AnsweredLate(_) | Fate::AnswerLost => drop(self.fates.insert(id, fate)),
        }
    }

    /// Whether the answer that is sent on a connection now goes out at all. It may be late.
    pub(crate) fn lets_answer(&mut self, id: u64) -> bool {
        match self.fates.remove(&id) {
            Some(Fate::AnsweredLate(time)) => {
                let until = self.now + time;
                if let Some(link) = self.links.get_mut(&id) {
                    link.delay_from_now(until, Way::Down);
                }
                true
            }
            Some(Fate::AnswerLost) => {
                self.disconnect(id, "the answer is lost");
                false
            }
            _ => true,
        }
    }
}
