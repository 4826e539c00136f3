//! `roundrobin`: all partitions in order, dealt in a circle to those who want them.
//!
//! Balanced only where all members want the same topics. Mirrors `RoundRobinAssignor`.

use super::{
    Assignor, MemberSubscription,
    layout::{Layout, NOBODY},
};
use crate::{Assignment, topics::Topics};

/// The assignor `roundrobin`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl Assignor for RoundRobin {
    fn name(&self) -> &str {
        "roundrobin"
    }

    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        let layout = Layout::new(topics, members);
        let mut owners = vec![NOBODY; layout.partitions];
        if layout.alike {
            let circle = layout.members.len() as u32;
            for (turn, owner) in (0..circle).cycle().zip(&mut owners) {
                *owner = turn;
            }
        } else {
            deal_to_subscribers(&layout, &mut owners);
        }
        layout.assignment(&owners)
    }
}

/// The circle goes on where it stopped; members that do not want the topic are passed over.
fn deal_to_subscribers(layout: &Layout<'_>, owners: &mut [u32]) {
    let subscribers = layout.subscribers();
    let mut turn = 0;
    for (row, topic) in layout.rows.iter().enumerate() {
        let circle = subscribers.of(row);
        let mut at = circle.partition_point(|rank| *rank < turn);
        for owner in &mut owners[topic.range()] {
            at %= circle.len();
            *owner = circle[at];
            turn = circle[at] + 1;
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignor::examples::{assigned, member};

    #[test]
    fn two_members_and_two_topics_of_three_alternate() {
        let topics = Topics::new().with("t0", 3).with("t1", 3);
        let members = [member("C0", &["t0", "t1"]), member("C1", &["t0", "t1"])];
        let got = assigned(&RoundRobin, &topics, &members);
        assert_eq!(got, ["C0: t0-0 t0-2 t1-1", "C1: t0-1 t1-0 t1-2"]);
    }

    #[test]
    fn members_that_do_not_want_a_topic_are_passed_over() {
        let topics = Topics::new().with("t0", 1).with("t1", 2).with("t2", 3);
        let members = [member("C0", &["t0"]), member("C1", &["t0", "t1"]), member("C2", &["t0", "t1", "t2"])];
        let got = assigned(&RoundRobin, &topics, &members);
        assert_eq!(got, ["C0: t0-0", "C1: t1-0", "C2: t1-1 t2-0 t2-1 t2-2"]);
    }

    #[test]
    fn static_members_keep_their_partitions_when_their_member_ids_change() {
        let topics = Topics::new().with("t0", 2).with("t1", 4);
        let mut members = vec![member("b", &["t0", "t1"]), member("a", &["t0", "t1"])];
        members[0].instance_id = Some("i1".into());
        members[1].instance_id = Some("i2".into());
        let before = RoundRobin.assign(&topics, &members);
        members[0].member_id = "zz".into();
        assert_eq!(before, RoundRobin.assign(&topics, &members));
    }
}
