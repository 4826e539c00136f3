//! What a script does to requests, nodes, leaders and members, beyond the coming and going of members.

use super::Script;
use crate::{
    Fact, Life,
    fate::{Fate, Gate},
    orders::Order,
    world::{GROUP, Happening},
};
use std::time::Duration;
use tontine::TopicPartition;
use tontine_wire::api::{
    ApiKey,
    leave_group::{LeaveGroupRequest, MemberIdentity},
};

impl Script {
    /// The next request of this kind, of this member or of anybody, has this fate. Several are met in this order.
    pub fn meets(&mut self, whose: impl Into<Option<Life>>, key: ApiKey, fate: Fate) {
        let whose = whose.into();
        let who = whose.map_or_else(|| "anybody".to_owned(), |life| life.to_string());
        self.world.record(Fact::Done(format!("the next {key:?} of {who} is to be: {fate:?}")));
        self.world.gates.push(Gate { key, whose, fate });
    }

    /// What was to be done to requests that have not come.
    pub fn unmet(&self) -> Vec<String> {
        self.world.gates.iter().map(|gate| format!("{gate:?}")).collect()
    }

    /// Requests that have not come are left alone.
    pub fn meets_no_more(&mut self) {
        self.world.gates.clear();
    }

    /// The application does this as soon as it is between two polls.
    pub fn tell(&mut self, life: Life, order: Order) {
        self.world.order(life, order);
    }

    /// The member's next callback takes this long, and fails or not.
    pub fn next_callback(&mut self, life: Life, takes: Duration, fails: bool) {
        if let Some(client) = self.world.clients.get_mut(&life) {
            client.bad_callback = Some((takes, fails));
        }
    }

    /// The member unsubscribes, and subscribes again a little later.
    pub fn resubscribe(&mut self, life: Life) {
        self.wish(life, crate::client::Wish::Resubscribe);
    }

    /// All connections of the member are dead for this long, and neither side knows.
    pub fn cut_off(&mut self, life: Life, time: Duration) {
        if let Some(client) = self.world.clients.get_mut(&life) {
            client.cut_off_until = self.world.now + time;
        }
        self.world.links.values_mut().filter(|link| link.life == life).for_each(|link| link.dead = true);
        let ms = time.as_millis();
        self.world.record(Fact::Done(format!("{life} is cut off for {ms} ms, unnoticed")));
    }

    /// An administrator takes the member out of its group. Whether the coordinator did it.
    pub fn expel(&mut self, life: Life) -> bool {
        let name = self.world.clients.get(&life).and_then(|client| client.named.clone());
        let (Some(member_id), Some(node)) = (name, self.world.broker.coordinator_of(GROUP)) else {
            return false;
        };
        self.world.record(Fact::Done(format!("{life} is put out of the group")));
        let members = vec![MemberIdentity { member_id, ..MemberIdentity::default() }];
        let request =
            LeaveGroupRequest { group_id: GROUP.to_owned(), members, ..LeaveGroupRequest::default() };
        self.world.ask(node, 5, request).is_some()
    }

    /// The node stops, and is started again after this time.
    pub fn stop_node(&mut self, node: i32, time: Duration) {
        self.world.record(Fact::Done(format!("node {node} is stopped for {} ms", time.as_millis())));
        let _ = self.world.broker.stop_node(self.world.broker_now(), node);
        self.world.pump_broker();
        let back = self.world.now + time;
        self.world.schedule(back, Happening::Restart(node));
    }

    /// The node takes everything and answers nothing for this long.
    pub fn black_hole(&mut self, node: i32, time: Duration) {
        let _ = self.world.broker.set_black_hole(node, true);
        self.world.record(Fact::Done(format!("node {node} answers nothing for {} ms", time.as_millis())));
        let back = self.world.now + time;
        self.world.schedule(back, Happening::Sees(node));
    }

    /// Another node leads the partition.
    pub fn move_leader(&mut self, name: &TopicPartition) {
        let now = self.leader(name);
        let other = self.world.broker.nodes().keys().copied().find(|id| Some(*id) != now);
        let Some(node) = other else { return };
        if self.world.broker.move_leader(self.world.broker_now(), &name.topic, name.partition, node).is_ok() {
            self.world.record(Fact::Done(format!("node {node} leads {name}")));
        }
        self.world.pump_broker();
    }

    /// The node that leads a partition.
    pub fn leader(&self, name: &TopicPartition) -> Option<i32> {
        self.world.broker.leader(&name.topic, name.partition).map(|(node, _)| node)
    }

    /// The group's coordinator.
    pub fn coordinator(&self) -> Option<i32> {
        self.world.broker.coordinator_of(GROUP)
    }
}
