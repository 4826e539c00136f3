//! Whether a position still lies in the log of a new leader (KIP-320).
//!
//! When a partition has a later leader epoch than the last record that was read, the leader is asked where the log of that
//! record's epoch ends. Behind that point the logs differ: what was read from there on is gone, an unclean election has
//! replaced it. Reading then goes on where they part, or, without a reset policy, the application is told.
//!
//! Mirrors `OffsetForLeaderEpochClient` and `SubscriptionState.maybeCompleteValidation`.

use super::{ConsumerState, Flight, Tell};
use crate::{
    Error,
    cluster::{Lane, SendError, Target},
    config::AutoOffsetReset,
    fetch::{partition::Phase, position::Position},
    lease::{Delivery, Incarnation},
};
use std::collections::BTreeMap;
use tontine_group::TopicPartition;
use tontine_wire::{
    ErrorCode,
    api::{
        Response,
        offset_for_leader_epoch::{
            EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
            OffsetForLeaderPartition, OffsetForLeaderTopic,
        },
    },
};

/// What a broker is asked about.
pub(super) type Asked = BTreeMap<TopicPartition, (Incarnation, Position)>;

impl ConsumerState {
    /// Holds a partition back until its position is known to lie in its leader's log, when there is reason to doubt it.
    pub(super) fn doubt(&mut self, name: &TopicPartition) {
        let now = self.cluster.metadata().partition(name).and_then(|known| known.leader_epoch);
        let Some(partition) = self.fetches.partitions.get_mut(name) else { return };
        let Phase::Fetching(position) = partition.phase else { return };
        let is_later = position.epoch.zip(now).is_some_and(|(read, now)| now > read);
        if is_later && partition.validated != now {
            partition.phase = Phase::Doubtful(position);
            self.fetches.seeking = true;
        }
    }

    pub(super) fn doubt_all(&mut self) {
        let names: Vec<_> = self.fetches.partitions.keys().cloned().collect();
        for name in names {
            self.doubt(&name);
        }
    }

    pub(super) fn send_validations(&mut self) {
        let mut requests = BTreeMap::<i32, Asked>::new();
        for name in self.fetches.due(self.now, |phase| matches!(phase, Phase::Doubtful(_))) {
            let leader = self.cluster.metadata().leader(&name);
            let Some(partition) = self.fetches.partitions.get_mut(&name) else { continue };
            let Phase::Doubtful(position) = partition.phase else { continue };
            match leader {
                Some(node) => {
                    partition.phase = Phase::AskedDoubtful(position);
                    requests.entry(node).or_default().insert(name, (partition.incarnation, position));
                }
                None => {
                    self.leader_failed(&name);
                    self.cluster.refresh_metadata(self.now);
                }
            }
        }
        for (node, asked) in requests {
            let request = self.validation_request(&asked);
            let timeout = self.settings.request_timeout;
            let ticket =
                self.cluster.send(self.now, Target::Node(node), Lane::Other, request.into(), timeout);
            self.flights.insert(ticket, Flight::Validation(asked));
        }
    }

    fn validation_request(&self, asked: &Asked) -> OffsetForLeaderEpochRequest {
        let mut topics: Vec<OffsetForLeaderTopic> = Vec::new();
        for (name, (_, position)) in asked {
            let known = self.cluster.metadata().partition(name).and_then(|p| p.leader_epoch);
            let partition = OffsetForLeaderPartition {
                partition: name.partition,
                current_leader_epoch: known.unwrap_or(-1),
                leader_epoch: position.epoch.unwrap_or(-1),
            };
            match topics.last_mut().filter(|topic| *topic.topic == *name.topic) {
                Some(topic) => topic.partitions.push(partition),
                None => topics.push(OffsetForLeaderTopic {
                    topic: name.topic.to_string(),
                    partitions: vec![partition],
                }),
            }
        }
        OffsetForLeaderEpochRequest { replica_id: -1, topics }
    }

    pub(super) fn validation_responded(&mut self, mut asked: Asked, result: Result<Response, SendError>) {
        match result {
            Ok(response) => {
                let topics =
                    OffsetForLeaderEpochResponse::try_from(response).map(|r| r.topics).unwrap_or_default();
                for topic in topics {
                    for end in topic.partitions {
                        let name = TopicPartition::new(topic.topic.as_str(), end.partition);
                        if let Some((incarnation, position)) = asked.remove(&name) {
                            self.validated(&name, incarnation, position, &end);
                        }
                    }
                }
            }
            // An old broker cannot say: the position is taken as it is.
            Err(SendError::Unsupported { .. } | SendError::TooOld { .. }) => {
                for (name, (incarnation, position)) in std::mem::take(&mut asked) {
                    self.trust(&name, incarnation, position);
                }
            }
            Err(_) => {}
        }
        for (name, (incarnation, position)) in asked {
            self.still_doubtful(&name, incarnation, position);
        }
    }

    fn validated(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
        position: Position,
        end: &EpochEndOffset,
    ) {
        match end.error_code {
            ErrorCode::NONE => {}
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                let error = Error::broker(end.error_code, format!("checking the position in {name}"), None);
                self.tell(Tell::Failed { error, fatal: false });
                return self.still_doubtful(name, incarnation, position);
            }
            _ => return self.still_doubtful(name, incarnation, position),
        }
        if end.end_offset >= position.offset && end.leader_epoch >= 0 {
            return self.trust(name, incarnation, position);
        }
        let parts_at = (end.end_offset >= 0 && end.leader_epoch >= 0).then_some(end.end_offset);
        self.diverged(name, incarnation, position, parts_at);
    }

    /// The position lies in the leader's log.
    fn trust(&mut self, name: &TopicPartition, incarnation: Incarnation, position: Position) {
        let epoch = self.cluster.metadata().partition(name).and_then(|known| known.leader_epoch);
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        partition.phase = Phase::Fetching(position);
        partition.validated = epoch;
        partition.worked();
        self.fetches.stale = true;
    }

    fn still_doubtful(&mut self, name: &TopicPartition, incarnation: Incarnation, position: Position) {
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        partition.phase = Phase::Doubtful(position);
        self.leader_failed(name);
        self.cluster.refresh_metadata(self.now);
    }

    /// The logs differ from `parts_at` on; `None`: nobody knows from where on.
    fn diverged(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
        position: Position,
        parts_at: Option<i64>,
    ) {
        let error = Error::Truncated { partition: name.clone(), offset: position.offset, parts_at };
        let has_policy = self.settings.reset != AutoOffsetReset::None;
        match parts_at {
            Some(at) if has_policy => {
                let Some(partition) = self.partition_as(name, incarnation) else { return };
                // The application's side knows how far it has read, and seeks from there.
                partition.phase = Phase::Stuck;
                self.tell(Tell::Truncated { partition: name.clone(), incarnation, at });
            }
            None if has_policy => self.reset(name, incarnation, error),
            _ => {
                let Some(partition) = self.partition_as(name, incarnation) else { return };
                partition.phase = Phase::Stuck;
                self.deliver(name, incarnation, Delivery::Failed(error));
            }
        }
    }
}
