//! A cluster among brokers that refuse, fall silent, forget, lie and move, all drawn from one seed: every request gets
//! exactly one result, in time, and once the brokers behave again everything works.

use super::*;
use crate::cluster::backoff::Jitter;

struct Swarm {
    world: World,
    chance: Jitter,
    /// How likely mischief is, in percent.
    mischief: usize,
    hosts: BTreeMap<ConnId, String>,
    moves: u16,
    deadlines: BTreeMap<Ticket, Instant>,
    answered: usize,
}

impl Swarm {
    fn new(seed: u64) -> Self {
        let bootstrap = vec![("one".to_owned(), 1), ("two".to_owned(), 2), ("dead".to_owned(), 3)];
        let settings =
            ClusterSettings { bootstrap, max_idle: Duration::from_secs(20), ..ClusterSettings::default() };
        Self {
            world: World::with(settings, seed),
            chance: Jitter::new(seed),
            mischief: 30,
            hosts: BTreeMap::new(),
            moves: 0,
            deadlines: BTreeMap::new(),
            answered: 0,
        }
    }

    fn mischief(&mut self) -> bool {
        self.chance.below(100) < self.mischief
    }

    fn metadata(&self) -> wire::MetadataResponse {
        let mut answer = two_brokers(1 + i32::from(self.moves % 2), i32::from(self.moves));
        answer.brokers[1].port = 2 + i32::from(self.moves / 3);
        answer
    }

    /// Brokers do what they do with whatever was asked of them.
    fn react(&mut self) {
        for (conn, host, _) in std::mem::take(&mut self.world.opened) {
            self.hosts.insert(conn, host.clone());
            match self.chance.below(3) {
                _ if host == "dead" => self.world.refused(conn),
                0 if self.mischief > 0 => self.world.refused(conn),
                1 if self.mischief > 0 => {} // swallowed
                _ => self.world.connected(conn),
            }
        }
        for (conn, header, request) in std::mem::take(&mut self.world.asked) {
            if self.mischief() {
                match self.chance.below(4) {
                    0 => self.world.bytes(conn, &[0xff; 9]),
                    1 => self.world.refused(conn),
                    2 => self.world.answer(conn, header.version, header.correlation_id + 1, everything()),
                    _ => {} // never answered
                }
                continue;
            }
            let response = self.respond(&request);
            self.world.answer(conn, header.version, header.correlation_id, response);
        }
    }

    fn respond(&mut self, request: &Request) -> Response {
        let lost = self.mischief();
        match request {
            Request::ApiVersions(_) => everything().into(),
            Request::Metadata(_) => self.metadata().into(),
            Request::FindCoordinator(_) if lost => {
                coordinator(-1, "", ErrorCode::COORDINATOR_NOT_AVAILABLE).into()
            }
            Request::FindCoordinator(_) => coordinator(1, "one", ErrorCode::NONE).into(),
            Request::Heartbeat(_) => heartbeat::HeartbeatResponse::default().into(),
            other => panic!("{other:?}"),
        }
    }

    fn command(&mut self) {
        let target = match self.chance.below(5) {
            0 => Target::Any,
            1 => Target::Controller,
            2 => Target::Node(self.chance.below(4) as i32),
            3 => Target::Coordinator("g".into()),
            _ => return self.other_command(),
        };
        let lane = [Lane::Fetch, Lane::Group, Lane::Join, Lane::Other][self.chance.below(4)];
        let timeout = ms(1 + self.chance.below(40_000) as u64);
        let now = self.world.now;
        let ticket = self.world.cluster.send(now, target, lane, heartbeat().into(), timeout);
        self.deadlines.insert(ticket, now + timeout);
    }

    fn other_command(&mut self) {
        let now = self.world.now;
        match self.chance.below(6) {
            0 => self.world.cluster.refresh_metadata(now),
            1 => self.world.cluster.coordinator_lost(now, "g"),
            2 => self.world.cluster.find_coordinator(now, &"g".into()),
            3 => self.world.cluster.set_topics(now, names(&["t"])),
            4 => self.world.cluster.set_topics(now, TopicsOfInterest::All),
            _ => self.moves += 1,
        }
        if let Some(ticket) = self.deadlines.keys().next().copied().filter(|_| self.chance.below(10) == 0) {
            self.deadlines.remove(&ticket);
            self.world.cluster.cancel(now, ticket);
        }
    }

    fn check(&mut self) {
        for (ticket, _) in self.world.results() {
            assert!(self.deadlines.remove(&ticket).is_some(), "{ticket:?} has two results, or was cancelled");
            self.answered += 1;
        }
        let late = self.deadlines.iter().find(|(_, at)| **at < self.world.now);
        assert!(late.is_none(), "{late:?} has no result in time");
        self.world.told.clear();
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            if self.chance.below(3) == 0 {
                self.command();
            }
            let time = ms(self.chance.below(400) as u64);
            self.world.pass(time);
            self.react();
            self.check();
        }
    }
}

#[test]
fn every_request_has_one_result_in_time_whatever_brokers_do() {
    for seed in 0..12 {
        let mut swarm = Swarm::new(seed);
        swarm.run(1_500);
        assert!(swarm.answered > 100, "seed {seed}");
        swarm.mischief = 0;
        // What was never answered is waited for until request.timeout.ms.
        for _ in 0..4_500 {
            swarm.world.pass(ms(10));
            swarm.react();
            swarm.check();
        }
        for target in [
            Target::Any,
            Target::Controller,
            Target::Node(1),
            Target::Node(2),
            Target::Coordinator("g".into()),
        ] {
            let ticket = swarm.world.send(target.clone(), heartbeat(), ms(10_000));
            let mut result = None;
            for _ in 0..300 {
                swarm.react();
                swarm.world.pass(ms(10));
                result = result.or_else(|| swarm.world.results().into_iter().find(|(t, _)| *t == ticket));
            }
            assert!(matches!(result, Some((_, Ok(_)))), "seed {seed}, {target:?}: {result:?}");
        }
    }
}
