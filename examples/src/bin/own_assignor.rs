//! An assignor of one's own: members say how strong they are, and get partitions accordingly.
//!
//! One member of the group, its leader, runs the assignor; brokers know nothing of it. So every member has to offer it.
//!
//! ```sh
//! cargo run -p tontine-examples --bin own_assignor [HOST:PORT]
//! ```

use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tontine::{
    Assignment, Consumer, TopicPartition,
    assignor::{Assignor, MemberSubscription},
    topics::Topics,
};
use tontine_examples::{Playground, Result};

/// Deals each partition to the member that has the least for its weight.
#[derive(Debug)]
struct ByWeight {
    /// This member's own weight; the others tell theirs when they join.
    weight: u8,
}

impl Assignor for ByWeight {
    /// Members agree on an assignor by its name.
    fn name(&self) -> &str {
        "by-weight"
    }

    /// What goes along with this member's request to join, for the leader to read.
    fn user_data(&self, _owned: &[TopicPartition], _generation: i32) -> Option<Bytes> {
        Some(Bytes::from(vec![self.weight]))
    }

    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        // By id: members come in any order, and the same group must get the same answer.
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|member| &members[*member].member_id);
        let mut shares = vec![0u32; members.len()];
        let mut assignment = Assignment::new();
        for (name, topic) in topics.iter() {
            for partition in 0..topic.partitions {
                let wants = |member: &&usize| members[**member].topics.contains(name);
                // Compared after the partition has been added, so that the strongest gets the first one.
                let load = |member: &&usize| (shares[**member] + 1) * 1000 / weight(&members[**member]);
                if let Some(member) = order.iter().filter(wants).min_by_key(load) {
                    shares[*member] += 1;
                    assignment.assign(name, partition, *member);
                }
            }
        }
        assignment
    }
}

/// Members may tell anything: nothing at all, or zero.
fn weight(member: &MemberSubscription) -> u32 {
    let told = member.user_data.as_ref().and_then(|data| data.first().copied());
    u32::from(told.unwrap_or(1).max(1))
}

async fn member(playground: &Playground, weight: u8) -> Result<Consumer> {
    let mut consumer = Consumer::builder()
        .set("bootstrap.servers", &playground.servers)
        .group_id("weighing")
        .enable_auto_commit(false)
        // Offered alone. Name it in `partition.assignment.strategy` to offer others beside it; the group then votes.
        .assignor(Arc::new(ByWeight { weight }))
        // The others hear of a newcomer with their next heartbeat.
        .heartbeat_interval(Duration::from_millis(100))
        .build()?;
    consumer.subscribe([&playground.topic], ()).await?;
    Ok(consumer)
}

#[tokio::main]
async fn main() -> Result {
    let playground = Playground::open(8, 0).await?;
    let weights = [1, 1, 2];
    let mut members = Vec::new();
    for weight in weights {
        members.push(member(&playground, weight).await?);
    }
    let settled = async {
        let share = |members: &[Consumer]| members.iter().map(|m| m.assignment().len()).collect::<Vec<_>>();
        while share(&members) != [2, 2, 4] {
            for member in &mut members {
                member.poll(Duration::from_millis(10)).await?;
            }
        }
        Result::Ok(())
    };
    timeout(Duration::from_secs(60), settled).await??;
    for (member, weight) in members.iter().zip(weights) {
        let partitions: Vec<_> = member.assignment().iter().map(|p| p.partition()).collect();
        println!("weight {weight}: partitions {partitions:?}");
    }
    for mut member in members {
        member.close().await?;
    }
    println!("8 partitions were dealt by weight");
    playground.close().await
}
