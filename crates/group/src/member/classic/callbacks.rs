//! Which callback is due in which state, and what its end changes. The argument sets and the order are Kafka's:
//! revoked strictly before assigned, assigned exactly once per round, lost never with nothing.

use super::{Classic, State};
use crate::{
    Cause, Instant, TopicPartition,
    assignor::RebalanceProtocol,
    member::{Callback, Due, Granted, Occasion, Revocation},
    rebalance::eager,
};

use super::state::Joining;

impl Classic {
    /// The callback that would begin now.
    pub(in crate::member) fn due_callback(&self) -> Option<Due> {
        if self.running {
            return None;
        }
        match &self.state {
            State::Unjoined => lost(self.owned.iter().cloned().collect()),
            State::Preparing => self.due_before_join(),
            State::Applying(applying) => {
                let gone: Vec<_> = self.owned.difference(&applying.target).cloned().collect();
                if gone.is_empty() {
                    let added = applying.target.difference(&self.owned).cloned().collect();
                    return Some(Due::Assign { added });
                }
                Some(Due::Revoke { partitions: gone, occasion: Occasion::AfterSync })
            }
            State::Leaving(leaving) if leaving.orderly => {
                let partitions: Vec<_> = self.owned.iter().cloned().collect();
                let occasion = Occasion::Leaving;
                (!partitions.is_empty()).then_some(Due::Revoke { partitions, occasion })
            }
            State::Leaving(_) => lost(self.owned.iter().cloned().collect()),
            State::Joining(_) | State::Syncing(_) | State::Stable | State::Fenced => None,
        }
    }

    fn due_before_join(&self) -> Option<Due> {
        let occasion = Occasion::BeforeJoin;
        match self.protocol {
            RebalanceProtocol::Eager => {
                Some(Due::Revoke { partitions: eager::given_up_before_join(&self.owned), occasion })
            }
            RebalanceProtocol::Cooperative => {
                let partitions = self.dropped();
                (!partitions.is_empty()).then_some(Due::Revoke { partitions, occasion })
            }
        }
    }

    /// What is owned of topics that are not subscribed to any more.
    pub(super) fn dropped(&self) -> Vec<TopicPartition> {
        self.owned.iter().filter(|tp| !self.subscription.contains(&tp.topic)).cloned().collect()
    }

    pub(in crate::member) fn begin_callback(&mut self, now: Instant) -> Option<Callback> {
        let callback = self.due_callback()?.begin(|added| self.grant(added));
        if let State::Applying(applying) = &mut self.state {
            applying.begun = true;
        }
        self.running = true;
        self.advance(now);
        Some(callback)
    }

    /// The new partitions are part of the assignment while the listener is told of them.
    fn grant(&mut self, added: Vec<TopicPartition>) -> Granted {
        if let State::Applying(applying) = &self.state {
            self.owned.clone_from(&applying.target);
        }
        Granted { added, all: self.owned.iter().cloned().collect() }
    }

    pub(in crate::member) fn revoke_done(&mut self, now: Instant, revocation: Revocation) {
        self.running = false;
        for tp in &revocation.partitions {
            self.owned.remove(tp);
        }
        match (&mut self.state, revocation.occasion) {
            (State::Preparing, Some(Occasion::BeforeJoin)) if self.owned.is_empty() => {
                self.go(State::Joining(Joining::new(now)), None);
            }
            (State::Applying(applying), Some(Occasion::AfterSync)) => applying.gave_up = true,
            (State::Preparing | State::Applying(_), _)
            | (
                State::Unjoined
                | State::Joining(_)
                | State::Syncing(_)
                | State::Stable
                | State::Leaving(_)
                | State::Fenced,
                _,
            ) => {}
        }
        self.advance(now);
    }

    pub(in crate::member) fn assign_done(&mut self, now: Instant, granted: Granted) {
        self.running = false;
        drop(granted);
        if let State::Applying(applying) = &self.state {
            let gave_up = applying.gave_up;
            self.go(State::Stable, None);
            self.recheck = true;
            if gave_up {
                // Whoever gets what was given up gets it in the next round, so that round starts at once.
                self.rejoin = Some(Cause::SecondPhase);
            }
        }
        self.advance(now);
    }

    /// The state stays, so assigned is due again: with nothing new, since the partitions are owned already.
    pub(in crate::member) fn assign_failed(&mut self, now: Instant, granted: Granted) {
        self.running = false;
        drop(granted);
        self.advance(now);
    }
}

fn lost(partitions: Vec<TopicPartition>) -> Option<Due> {
    (!partitions.is_empty()).then_some(Due::Lost { partitions })
}
