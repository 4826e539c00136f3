//! A member of a consumer group whose answers are lost one after the other is never fenced, whatever happens in the group
//! meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;
use tontine_group::{
    Instant,
    coordinator::{ClientInfo, Coordinator, CoordinatorConfig, Output, Ticket},
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{Response, consumer_group_heartbeat::*},
};

const T: Uuid = Uuid::from_u128(1);

struct World {
    coordinator: Coordinator,
    topics: Topics,
    now: Instant,
    tickets: u64,
}

impl World {
    fn new() -> Self {
        let config = CoordinatorConfig {
            consumer_assignment_interval: Duration::ZERO,
            ..CoordinatorConfig::default()
        };
        let mut coordinator = Coordinator::new(config, 1);
        coordinator.loaded(Instant::ZERO);
        let mut topics = Topics::new();
        topics.insert("t", Topic { id: T, partitions: 6, racks: Vec::new() });
        Self { coordinator, topics, now: Instant::ZERO, tickets: 0 }
    }

    fn beat(&mut self, member: &str, epoch: i32, owned: Option<&[i32]>) -> ConsumerGroupHeartbeatResponse {
        let joins = epoch == 0;
        let topics = |partitions: &[i32]| match partitions {
            [] => Vec::new(),
            _ => vec![TopicPartitions { topic_id: T, partitions: partitions.to_vec() }],
        };
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".to_owned(),
            member_id: member.to_owned(),
            member_epoch: epoch,
            rebalance_timeout_ms: if joins { 60_000 } else { -1 },
            subscribed_topic_names: joins.then(|| vec!["t".to_owned()]),
            topic_partitions: if joins { Some(Vec::new()) } else { owned.map(topics) },
            ..Default::default()
        };
        let (ticket, client) = (Ticket(self.tickets), ClientInfo::default());
        self.tickets += 1;
        self.coordinator.handle_request(self.now, ticket, &client, 1, request.into(), &self.topics).unwrap();
        let mut answer = None;
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, .. } => self.coordinator.handle_appended(self.now, id, Ok(())),
                Output::Reply { response: Response::ConsumerGroupHeartbeat(response), .. } => {
                    answer = Some(response);
                }
                Output::Reply { .. } | Output::Transition(_) => {}
                Output::Wait(_) => return answer.expect("an answer"),
            }
        }
    }
}

fn partitions(answer: &ConsumerGroupHeartbeatResponse) -> Vec<i32> {
    let topics = answer.assignment.iter().flat_map(|assignment| &assignment.topic_partitions);
    topics.flat_map(|topic| topic.partitions.clone()).collect()
}

#[test]
fn two_answers_in_a_row_may_be_lost() {
    let mut world = World::new();
    assert_eq!(world.beat("a", 0, None).member_epoch, 2);
    world.beat("b", 0, None);
    let kept = partitions(&world.beat("a", 2, None));
    assert_eq!(kept.len(), 3);
    // It lets go; the answer with epoch 3 is lost, and somebody else joins.
    assert_eq!(world.beat("a", 2, Some(&kept)).member_epoch, 3);
    world.beat("c", 0, None);
    // It says the same again; the answer that takes another partition away is lost as well.
    let lost = world.beat("a", 2, Some(&kept));
    assert_eq!((lost.error_code, partitions(&lost).len()), (ErrorCode::NONE, 2));
    let heard = world.beat("a", 2, Some(&kept));
    assert_eq!((heard.error_code, heard.member_epoch), (ErrorCode::NONE, 3));
    let kept = partitions(&heard);
    assert_eq!(kept.len(), 2);
    assert_eq!(world.beat("a", 3, Some(&kept)).member_epoch, 4);
}

#[test]
fn a_join_that_comes_late_frees_nothing_that_its_member_uses() {
    let mut world = World::new();
    assert_eq!(world.beat("a", 0, None).member_epoch, 2);
    let joined = world.beat("b", 0, None).member_epoch;
    // Something had held it up while a second one was answered; nobody waits for its answer.
    world.beat("a", 0, None);
    assert_eq!(partitions(&world.beat("b", joined, Some(&[]))), [0; 0]);
    let kept = partitions(&world.beat("a", 2, None));
    assert_eq!(kept.len(), 3, "it hears of what it is to let go of");
    world.beat("a", 0, None);
    assert_eq!(partitions(&world.beat("b", joined, Some(&[]))), [0; 0]);
    // Whoever really joins again hears what it is to have, and lets go of the rest with its first word.
    let heard = world.beat("a", 0, None);
    assert_eq!((heard.error_code, partitions(&heard)), (ErrorCode::NONE, kept.clone()));
    assert_eq!(world.beat("a", heard.member_epoch, Some(&kept)).member_epoch, 3);
    assert_eq!(partitions(&world.beat("b", joined, Some(&[]))).len(), 3);
}
