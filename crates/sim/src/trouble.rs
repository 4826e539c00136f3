//! What is done to the world: members come, go and fail, connections, nodes, leaders and topics change.

use crate::{
    client::{Client, Wish, unix_ms},
    fact::{Fact, Life},
    fate::{Fate, Gate},
    network::Way,
    workload::{Profile, Trouble},
    world::{GROUP, Happening, Stream, TOPICS, World},
};
use std::time::Duration;
use tontine::TopicPartition;
use tontine_wire::{
    api::{
        ApiKey,
        create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic},
        produce::{PartitionProduceData, ProduceRequest, TopicProduceData},
    },
    records::{BatchBuilder, Compression},
};

/// What gates are for.
const GATES: [ApiKey; 12] = [
    ApiKey::JoinGroup,
    ApiKey::SyncGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::ListOffsets,
    ApiKey::Fetch,
    ApiKey::FindCoordinator,
    ApiKey::Metadata,
    ApiKey::OffsetForLeaderEpoch,
];

impl World {
    /// One more trouble, and when the next one comes.
    pub(crate) fn trouble(&mut self) {
        if self.healed {
            return;
        }
        let number = self.troubles;
        self.troubles += 1;
        let next = self.by_chance_of(Stream::Trouble(number), |world| {
            let next = world.random.millis(0, 2 * world.plan.pace);
            if let Some(kind) = world.random.pick(&world.plan.troubles.clone())
                && !world.leaves_out(number)
                && world.may_happen(kind)
            {
                world.counts.count(format!("trouble: {kind:?}"));
                world.make(kind);
            }
            next
        });
        self.schedule(self.now + next, Happening::Trouble);
    }

    fn make(&mut self, kind: Trouble) {
        match kind {
            Trouble::Join => self.start(),
            Trouble::Close => self.wish(Wish::Close),
            Trouble::Resubscribe => self.wish(Wish::Resubscribe),
            Trouble::Slow => self.wish(Wish::Slow),
            Trouble::Pause => self.wish(Wish::Pause),
            Trouble::Seek => self.wish(Wish::Seek),
            Trouble::Crash => self.crash(),
            Trouble::Freeze => self.freeze(),
            Trouble::Callback => self.spoil_callback(),
            Trouble::Cut => self.cut(),
            Trouble::Stall => self.stall(),
            Trouble::HalfOpen => self.half_open(),
            Trouble::Stop => self.stop(),
            Trouble::BlackHole => self.black_hole(),
            Trouble::Leader => self.move_leader(),
            Trouble::Coordinator => self.move_coordinator(),
            Trouble::Partitions => self.add_partitions(),
            Trouble::Create => self.create_some(),
            Trouble::Delete => drop(self.delete_some()),
            Trouble::Recreate => self.recreate_some(),
            Trouble::Gate => self.gate(),
            Trouble::Throttle => self.slow_everybody_down(),
            Trouble::Kill => self.kill_brokers(),
            Trouble::PowerCut => self.cut_power(),
            Trouble::Torn => self.tear(),
            Trouble::FullDisk => self.fill_disk(),
            Trouble::SlowDisk => self.slow_disk(),
            Trouble::BadSync => self.spoil_sync(),
        }
    }

    /// A consumer starts, if there is room for one.
    pub(crate) fn start(&mut self) {
        if self.clients.len() >= self.plan.most_members {
            return;
        }
        let profile = self.by_chance_of(Stream::Member(Life(self.next_life + 1)), |world| {
            let plan = world.plan.clone();
            plan.profile(&mut world.random)
        });
        self.start_as(profile);
    }

    /// A consumer of this kind starts.
    pub(crate) fn start_as(&mut self, profile: Profile) -> Life {
        self.next_life += 1;
        let life = Life(self.next_life);
        let bootstrap: Vec<_> = (1..=self.plan.nodes).map(|id| format!("n{id}:9092")).collect();
        let random = self.root.fork(Stream::Member(life).tag());
        let instance = profile.instance.clone();
        match Client::new(life, profile, &self.plan, &bootstrap.join(","), self.now, random) {
            Err(error) => self.failure = Some(("settings are accepted", error.to_string())),
            Ok(mut client) => {
                self.counts.count(format!("members: {}", client.profile.protocol.name()));
                self.record(Fact::Started(life, client.profile.protocol, instance));
                if client.profile.read_committed {
                    self.counts.count("members that read what is committed only");
                    self.record(Fact::Careful(life));
                }
                let at = self.now;
                self.wake_app(&mut client, at);
                self.clients.insert(life, Box::new(client));
            }
        }
        life
    }

    fn some_client(&mut self) -> Option<Life> {
        let lives: Vec<_> =
            self.clients.values().filter(|client| !client.is_leaving()).map(|client| client.life).collect();
        self.random.pick(&lives)
    }

    fn wish(&mut self, wish: Wish) {
        if let Some(life) = self.some_client()
            && let Some(client) = self.clients.get_mut(&life)
        {
            client.wish = wish;
            self.record(Fact::Done(format!("{life} is told: {wish:?}")));
        }
    }

    fn crash(&mut self) {
        let Some(life) = self.some_client() else { return };
        self.kill(life);
        // Like under a supervisor: somebody takes its place, or nobody does.
        if self.random.percent(60) {
            self.start();
        }
    }

    pub(crate) fn kill(&mut self, life: Life) {
        let Some(client) = self.clients.remove(&life) else { return };
        self.record(Fact::Crashed(life));
        for id in client.links.values() {
            if let Some(link) = self.links.get_mut(id) {
                link.client_gone = true;
                let at = link.arrival(self.now, Way::Up);
                self.schedule(at, Happening::HungUp(*id));
            }
        }
    }

    fn freeze(&mut self) {
        let Some(life) = self.some_client() else { return };
        let long = self.random.millis(100, self.plan.session * 3 / 2);
        let until = self.now + long;
        if let Some(client) = self.clients.get_mut(&life) {
            client.frozen_until = until.max(client.frozen_until);
        }
        self.record(Fact::Done(format!("{life} stands still for {} ms", long.as_millis())));
    }

    fn spoil_callback(&mut self) {
        let Some(life) = self.some_client() else { return };
        let bad = (self.random.millis(0, self.plan.max_poll * 3 / 2), self.random.percent(50));
        if let Some(client) = self.clients.get_mut(&life) {
            client.bad_callback = Some(bad);
        }
    }

    fn some_link(&mut self) -> Option<u64> {
        let live = self.links.iter().filter(|(_, link)| !link.client_gone && !link.dead && link.accepted);
        let ids: Vec<_> = live.map(|(id, _)| *id).collect();
        self.random.pick(&ids)
    }

    fn cut(&mut self) {
        let Some(id) = self.some_link() else { return };
        let Some(link) = self.links.get(&id) else { return };
        let what = format!("a connection of {} to node {} is lost", link.life, link.node);
        self.record(Fact::Done(what));
        self.schedule(self.now, Happening::Closed(id));
    }

    fn stall(&mut self) {
        let Some(id) = self.some_link() else { return };
        let long = self.random.millis(50, 6_000);
        let Some(link) = self.links.get_mut(&id) else { return };
        link.stalled_until = self.now + long;
        let (life, node) = (link.life, link.node);
        self.record(Fact::Done(format!(
            "a connection of {life} to node {node} stalls for {} ms",
            long.as_millis()
        )));
    }

    fn half_open(&mut self) {
        let Some(life) = self.some_client() else { return };
        let long = self.random.millis(500, self.plan.session * 3 / 2);
        if let Some(client) = self.clients.get_mut(&life) {
            client.cut_off_until = self.now + long;
        }
        self.links.values_mut().filter(|link| link.life == life).for_each(|link| link.dead = true);
        self.record(Fact::Done(format!("{life} is cut off for {} ms, unnoticed", long.as_millis())));
    }

    fn some_node(&mut self, up: bool) -> Option<i32> {
        let nodes: Vec<_> =
            self.broker.nodes().iter().filter(|(_, node)| node.up == up).map(|(id, _)| *id).collect();
        self.random.pick(&nodes)
    }

    fn stop(&mut self) {
        let Some(node) = self.some_node(true) else { return };
        self.record(Fact::Done(format!("node {node} is stopped")));
        let _ = self.broker.stop_node(self.broker_now(), node);
        self.pump_broker();
        let back = self.random.millis(500, 10_000);
        self.schedule(self.now + back, Happening::Restart(node));
    }

    pub(crate) fn restart(&mut self, node: i32) {
        // Without power no node runs; with it all do.
        if !self.is_dark() && !self.broker.nodes().get(&node).is_some_and(|node| node.up) {
            self.record(Fact::Done(format!("node {node} is back")));
            let _ = self.broker.start_node(self.broker_now(), node);
            self.pump_broker();
        }
    }

    fn black_hole(&mut self) {
        let Some(node) = self.some_node(true) else { return };
        let long = self.random.millis(200, 10_000);
        let _ = self.broker.set_black_hole(node, true);
        self.record(Fact::Done(format!("node {node} answers nothing for {} ms", long.as_millis())));
        self.schedule(self.now + long, Happening::Sees(node));
    }

    fn some_partition(&mut self) -> Option<TopicPartition> {
        let all = self.partitions();
        self.random.pick(&all)
    }

    /// Every partition that exists.
    pub(crate) fn partitions(&self) -> Vec<TopicPartition> {
        let count = |topic: &String| i32::try_from(self.broker.partitions(topic).unwrap_or(0)).unwrap_or(0);
        let of = |topic: &String| {
            let name = topic.clone();
            (0..count(topic)).map(move |index| TopicPartition::new(name.as_str(), index))
        };
        self.topics.iter().flat_map(of).collect()
    }

    fn move_leader(&mut self) {
        let (Some(name), Some(node)) = (self.some_partition(), self.some_node(true)) else { return };
        if self.broker.move_leader(self.broker_now(), &name.topic, name.partition, node).is_ok() {
            self.record(Fact::Done(format!("node {node} leads {name}")));
        }
        self.pump_broker();
    }

    fn move_coordinator(&mut self) {
        let Some(node) = self.some_node(true) else { return };
        self.coordinate_at(node);
    }

    pub(crate) fn coordinate_at(&mut self, node: i32) {
        if self.broker.move_coordinator(self.broker_now(), GROUP, node).is_ok() {
            self.record(Fact::Done(format!("node {node} is the coordinator")));
        }
        self.pump_broker();
    }

    fn add_partitions(&mut self) {
        let Some(name) = self.some_partition() else { return };
        let have = self.broker.partitions(&name.topic).unwrap_or(0);
        if have < 12 {
            self.grow(&name.topic, i32::try_from(have).unwrap_or(0) + 1);
        }
    }

    pub(crate) fn grow(&mut self, topic: &str, count: i32) {
        let Some(node) = self.some_node(true) else { return };
        let name = topic;
        let topic =
            CreatePartitionsTopic { name: name.to_owned(), count, ..CreatePartitionsTopic::default() };
        let request = CreatePartitionsRequest {
            topics: vec![topic],
            timeout_ms: 1_000,
            ..CreatePartitionsRequest::default()
        };
        self.record(Fact::Done(format!("{name} is to have {count} partitions")));
        self.ask(node, 2, request);
    }

    fn create_some(&mut self) {
        let missing: Vec<_> = TOPICS.into_iter().filter(|name| !self.topics.contains(*name)).collect();
        if let Some(name) = self.random.pick(&missing) {
            let partitions = i32::try_from(self.random.between(1, 4)).unwrap_or(1);
            self.create(name, partitions);
        }
    }

    /// The first topic stays, so that there is always something to read.
    fn delete_some(&mut self) -> Option<String> {
        let others: Vec<_> = self.topics.iter().filter(|name| *name != "t0").cloned().collect();
        let name = self.random.pick(&others)?;
        self.forget(&name);
        Some(name)
    }

    /// A topic is deleted.
    pub(crate) fn forget(&mut self, name: &str) {
        if self.broker.delete_topic(self.broker_now(), name).is_ok() {
            self.topics.remove(name);
            self.topic_ids.remove(name);
            self.record(Fact::Deleted(name.to_owned()));
        }
        self.pump_broker();
    }

    fn recreate_some(&mut self) {
        match self.delete_some() {
            Some(name) => {
                let partitions = i32::try_from(self.random.between(1, 4)).unwrap_or(1);
                self.create(&name, partitions);
            }
            None => self.create_some(),
        }
    }

    fn gate(&mut self) {
        if let Some(key) = self.random.pick(&GATES) {
            let time = self.random.millis(50, 6_000);
            self.gates.push(Gate { key, whose: None, fate: Fate::Held(time) });
            self.record(Fact::Done(format!(
                "the next {key:?} is to be held back for {} ms",
                time.as_millis()
            )));
        }
    }

    fn slow_everybody_down(&mut self) {
        let (long, each) = (self.random.millis(100, 5_000), self.random.between(20, 2_000));
        self.throttle = (self.now + long, i32::try_from(each).unwrap_or(0));
        self.record(Fact::Done(format!("for {} ms nodes ask for {each} ms of patience", long.as_millis())));
    }

    /// A record goes to some partition, and when the next one does.
    pub(crate) fn produce(&mut self) {
        if !self.producing {
            return;
        }
        self.produced += 1;
        let next = self.by_chance_of(Stream::Record(self.produced), |world| {
            // In the end everybody has to catch up.
            let pace = if world.healed { world.plan.produce.max(100) } else { world.plan.produce };
            let next = world.random.millis(0, 2 * pace);
            if let Some(name) = world.some_partition() {
                let many = world.random.between(1, 4);
                world.write_records(&name, many);
            }
            next
        });
        self.schedule(self.now + next, Happening::Produce);
    }

    /// Writes records that say where they are.
    pub(crate) fn write_records(&mut self, name: &TopicPartition, many: u64) {
        let Some((_, end)) = self.broker.log_offsets(&name.topic, name.partition) else { return };
        let values: Vec<_> = (end..)
            .take(usize::try_from(many).unwrap_or(1))
            .map(|offset| self.value_at(name, self.birth(&name.topic), offset))
            .collect();
        self.write_values(name, values.iter().map(|value| (None, value.as_bytes())));
    }

    /// Writes records; the offset of the first.
    pub(crate) fn write_values<'a>(
        &mut self,
        name: &TopicPartition,
        values: impl IntoIterator<Item = (Option<&'a [u8]>, &'a [u8])>,
    ) -> Option<i64> {
        let (node, _) = self.broker.leader(&name.topic, name.partition)?;
        let (_, end) = self.broker.log_offsets(&name.topic, name.partition)?;
        let mut builder = BatchBuilder::new(Compression::None);
        let ms = unix_ms(self.now);
        let mut many = 0;
        for (key, value) in values {
            builder.append(ms, key, Some(value), []).ok()?;
            many += 1;
        }
        let data = PartitionProduceData { index: name.partition, records: Some(builder.build(0)) };
        let topic = TopicProduceData {
            name: name.topic.to_string(),
            partition_data: vec![data],
            ..TopicProduceData::default()
        };
        let request = ProduceRequest {
            acks: 1,
            timeout_ms: 1_000,
            topic_data: vec![topic],
            ..ProduceRequest::default()
        };
        let answer = self.ask(node, 9, request)?;
        if !self.is_written(name, end, many, &answer) {
            return None;
        }
        self.counts.add("records written", many);
        Some(end)
    }

    /// Ends everything bad.
    pub(crate) fn heal(&mut self) {
        (self.healed, self.uneasy) = (true, self.now);
        self.record(Fact::Healed);
        self.heal_disk();
        for node in self.broker.nodes().keys().copied().collect::<Vec<_>>() {
            let _ = self.broker.set_black_hole(node, false);
            self.restart(node);
        }
        self.gates.clear();
        self.throttle.0 = self.now;
        for id in self.gated.clone() {
            self.open_gate(id);
        }
        for client in self.clients.values_mut() {
            client.cut_off_until = self.now;
            client.wish = Wish::Nothing;
        }
        self.links.values_mut().for_each(|link| link.stalled_until = link.stalled_until.min(self.now));
        if self.clients.values().all(|client| client.is_leaving()) {
            self.plan.most_members += self.clients.len();
            self.by_chance_of(Stream::Healing, Self::start);
        }
        // What is written now has to arrive, too.
        for name in self.partitions() {
            self.write_records(&name, 1);
        }
        self.schedule(self.now + Duration::from_millis(1), Happening::BrokerTimer);
    }
}
