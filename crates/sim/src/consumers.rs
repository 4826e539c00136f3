//! The consumers' side of the world: what arrives goes into a consumer's machine, and what the machine wants is carried out:
//! connections, bytes, timers, and a word to its application.

use crate::{
    client::Client,
    fact::Life,
    lie::Slip,
    network::{Link, Way},
    world::{Happening, Stream, World},
};
use bytes::Bytes;
use std::time::Duration;
use tontine::{
    cluster::ConnId as ClientConn,
    machine::{Machine, MachineOutput},
};
use tontine_broker::ConnId;
use tontine_group::Instant;
use tontine_wire::frame;

impl World {
    fn with(&mut self, life: Life, input: impl FnOnce(&mut Self, &mut Client)) {
        if let Some(mut client) = self.clients.remove(&life) {
            input(self, &mut client);
            self.pump(&mut client);
            self.clients.insert(life, client);
        }
    }

    pub(crate) fn connected(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.client_gone && !link.dead) else {
            return;
        };
        let (life, conn, node) = (link.life, link.conn, link.node);
        if !self.broker.nodes().get(&node).is_some_and(|node| node.up) {
            return self.refused(id, "connection refused");
        }
        (link.accepted, link.opening) = (true, false);
        self.broker.handle_connected(self.broker_now(), ConnId(id), node, "10.0.0.1");
        self.with(life, |world, client| client.state.handle_connected(client.clock(world.now), conn));
    }

    pub(crate) fn refused(&mut self, id: u64, why: &str) {
        let Some(link) = self.links.get(&id).filter(|link| !link.dead) else { return };
        let (life, conn, gone) = (link.life, link.conn, link.client_gone);
        self.drop_link(id);
        if gone {
            return;
        }
        self.with(life, |world, client| {
            client.links.remove(&conn);
            client.state.handle_disconnected(client.clock(world.now), conn, why.to_owned());
        });
    }

    /// Neither side has a connection of this number any more.
    pub(crate) fn drop_link(&mut self, id: u64) {
        self.commits.remove(&id);
        self.fates.remove(&id);
        if self.links.remove(&id).is_some_and(|link| link.accepted) {
            self.broker.handle_disconnected(self.broker_now(), ConnId(id));
            self.pump_broker();
        }
    }

    pub(crate) fn arrived_down(&mut self, id: u64, bytes: &Bytes) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.client_gone && !link.dead) else {
            return;
        };
        link.to_client.extend_from_slice(bytes);
        let (life, conn, mut frames) = (link.life, link.conn, Vec::new());
        while let Ok(Some(frame)) = frame::split_frame(&mut link.to_client, 1 << 26) {
            frames.push(frame);
        }
        for frame in frames {
            self.with(life, |world, client| {
                if client.links.contains_key(&conn) {
                    client.state.handle_frame(client.clock(world.now), conn, frame);
                }
            });
        }
    }

    pub(crate) fn hung_up(&mut self, id: u64) {
        if self.links.get(&id).is_some_and(|link| !link.dead) {
            self.drop_link(id);
        }
    }

    pub(crate) fn timer(&mut self, life: Life) {
        let now = self.now;
        if self.clients.get(&life).and_then(|client| client.timer).is_some_and(|at| at <= now) {
            self.with(life, |world, client| {
                client.timer = None;
                client.state.handle_timeout(client.clock(world.now));
            });
        }
    }

    /// Carries out what a consumer's machine wants.
    pub(crate) fn pump(&mut self, client: &mut Client) {
        let mut said = false;
        loop {
            match client.state.poll_output() {
                MachineOutput::Connect { conn, host, .. } => self.connect(client, conn, &host),
                MachineOutput::Write { conn, bytes } => self.write(client, conn, bytes),
                MachineOutput::Close { conn } => self.close(client, conn),
                MachineOutput::Plan(planning) => {
                    client.state.handle_plan(client.clock(self.now), planning.run());
                }
                MachineOutput::Event(event) => {
                    client.inbox.push_back(event);
                    said = true;
                }
                MachineOutput::Wait(at) => {
                    let at = at.map(|at| client.when(at).max(self.now + Duration::from_micros(50)));
                    self.wake_machine(client, at);
                    break;
                }
                MachineOutput::Stop => {
                    self.machine_stopped(client);
                    break;
                }
            }
        }
        if said && client.is_listening() {
            let at = self.now + Duration::from_micros(client.random.below(200));
            self.wake_app(client, at);
        }
    }

    fn wake_machine(&mut self, client: &mut Client, at: Option<Instant>) {
        let forgets = self.healed && self.slip == Some(Slip::ForgetsTimers);
        let Some(at) = at.filter(|_| !forgets) else {
            client.timer = None;
            return;
        };
        if client.timer.is_none_or(|set| set > at) {
            self.schedule(at, Happening::Timer(client.life));
        }
        client.timer = Some(at);
        // A timer that was set for an earlier time comes early and finds nothing due: then the later one is set.
        if !self.has_timer(client.life, at) {
            self.schedule(at, Happening::Timer(client.life));
        }
    }

    fn has_timer(&self, life: Life, at: Instant) -> bool {
        let same = self.queue.range((at, 0)..=(at, u64::MAX));
        same.into_iter().any(|(_, what)| matches!(what, Happening::Timer(other) if *other == life))
    }

    /// Lets the application go on at this time, or earlier if it is to go on earlier.
    pub(crate) fn wake_app(&mut self, client: &mut Client, at: Instant) {
        if client.app_at.is_none_or(|set| set > at) {
            client.app_at = Some(at);
            self.schedule(at, Happening::App(client.life));
        }
    }

    fn connect(&mut self, client: &mut Client, conn: ClientConn, host: &str) {
        self.next_link += 1;
        let id = self.next_link;
        let node = host.trim_start_matches('n').parse().unwrap_or(0);
        let random = self.root.fork(Stream::Link(client.life, conn).tag());
        let mut link = Link::new(client.life, conn, node, self.plan.delay, random);
        link.dead = client.cut_off_until > self.now;
        let at = link.arrival(self.now, Way::Down);
        self.links.insert(id, link);
        client.links.insert(conn, id);
        let up = self.broker.nodes().get(&node).is_some_and(|node| node.up);
        self.schedule(at, if up { Happening::Connected(id) } else { Happening::Refused(id) });
    }

    fn write(&mut self, client: &Client, conn: ClientConn, bytes: Bytes) {
        let Some(id) = client.links.get(&conn).copied() else { return };
        let Some(pieces) = self.links.get_mut(&id).map(|link| link.pieces(bytes)) else { return };
        for piece in pieces {
            let Some(link) = self.links.get_mut(&id) else { return };
            link.swallows |= link.dead;
            if link.dead {
                return;
            }
            let at = link.arrival(self.now, Way::Up);
            self.schedule(at, Happening::Arrives(id, Way::Up, piece));
        }
    }

    pub(crate) fn close(&mut self, client: &mut Client, conn: ClientConn) {
        let Some(id) = client.links.remove(&conn) else { return };
        let Some(link) = self.links.get_mut(&id) else { return };
        link.client_gone = true;
        if link.is_late(self.now) {
            // What is under way on a connection that was given up is lost with it.
            return self.drop_link(id);
        }
        let at = link.arrival(self.now, Way::Up);
        self.schedule(at, Happening::HungUp(id));
    }
}
