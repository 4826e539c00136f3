//! What applications do, step by step: poll, work, commit, handle callbacks, pause, seek, unsubscribe, close.
//!
//! A step runs when the application has something to do or the machine said something. Between polls an application hears
//! nothing, as in production: events wait in its inbox.

use crate::{
    client::{After, Client, Doing, Wish},
    fact::{Fact, Life},
    lie::Slip,
    producers::value_of,
    workload::Commits,
    world::{GROUP, PATTERN, World},
};
use std::{collections::BTreeSet, time::Duration};
use tontine::{
    Error, OffsetAndMetadata, Record, Records, TopicPartition, desk::Turn, machine::Machine, state::StepKind,
};
use tontine_group::{Instant, coordinator::GroupView};

/// What a call may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What closing may take.
const CLOSE: Duration = Duration::from_secs(5);

/// Whether an application can go on at once.
enum Step {
    On,
    Rest,
}

impl World {
    /// An application has something to do.
    pub(crate) fn app(&mut self, life: Life) {
        let now = self.now;
        if self.clients.get(&life).and_then(|client| client.app_at).is_none_or(|at| at > now) {
            return;
        }
        let Some(mut client) = self.clients.remove(&life) else { return };
        client.app_at = None;
        std::mem::swap(&mut self.random, &mut client.random);
        while self.failure.is_none()
            && let Step::On = self.step(&mut client)
        {}
        self.flush(&mut client);
        std::mem::swap(&mut self.random, &mut client.random);
        if !matches!(client.doing, Doing::Gone) {
            self.clients.insert(life, client);
        }
    }

    fn flush(&mut self, client: &mut Client) {
        for entry in client.desk.audit_entries() {
            // The logs do not say which topic of a name is meant.
            // Of what the brokers lost nobody is told: it is read and committed again, by whoever has it then.
            let rewound =
                self.storage.as_ref().is_some_and(|storage| storage.rewound.contains(&entry.partition));
            if self.birth(&entry.partition.topic) == 1 && !rewound {
                self.audit.add(client.life.to_string(), entry);
            }
        }
        let commands: Vec<_> = client.desk.commands().collect();
        // The machine has nothing new to say when it was told nothing.
        if commands.is_empty() {
            return;
        }
        for command in commands {
            client.state.handle_command(client.clock(self.now), command);
        }
        self.pump(client);
    }

    fn exchange(&mut self, client: &mut Client) {
        self.flush(client);
        while let Some(event) = client.inbox.pop_front() {
            client.desk.hear(client.clock(self.now), event);
            self.flush(client);
        }
        self.learn_name(client);
    }

    fn learn_name(&mut self, client: &mut Client) {
        let name = client.desk.membership().map(|membership| membership.member_id.clone());
        if name.is_some() && name != client.named {
            client.named.clone_from(&name);
            self.record(Fact::Named(client.life, name.unwrap_or_default()));
        }
    }

    fn step(&mut self, client: &mut Client) -> Step {
        match std::mem::replace(&mut client.doing, Doing::Gone) {
            Doing::Working { until } if until > self.now => {
                client.doing = Doing::Working { until };
                self.rest(client, until)
            }
            Doing::Working { .. } => self.begin(client),
            Doing::Polling { until } => self.poll(client, until),
            Doing::Callback { .. } if self.failure.is_some() => Step::Rest,
            doing @ Doing::Callback { .. } => self.callback(client, doing),
            Doing::Committing { call } => {
                self.exchange(client);
                match client.desk.take_commit(call) {
                    None => {
                        client.doing = Doing::Committing { call };
                        self.listen(client, None)
                    }
                    Some(result) => {
                        self.told(client, result);
                        client.doing = Doing::Working { until: self.now };
                        Step::On
                    }
                }
            }
            Doing::LastCommit { call } => {
                self.exchange(client);
                match client.desk.take_commit(call) {
                    None => {
                        client.doing = Doing::LastCommit { call };
                        self.listen(client, None)
                    }
                    Some(result) => {
                        self.told(client, result);
                        self.leave(client, true)
                    }
                }
            }
            Doing::Leaving { forever, deadline } => self.leaving(client, forever, deadline),
            Doing::Ending => {
                client.doing = Doing::Ending;
                Step::Rest
            }
            Doing::Gone => Step::Rest,
        }
    }

    /// Waits for this time.
    fn rest(&mut self, client: &mut Client, until: Instant) -> Step {
        self.wake_app(client, until);
        Step::Rest
    }

    /// Waits until the machine says something, or for this time. It may have said something by now.
    fn listen(&mut self, client: &mut Client, until: Option<Instant>) -> Step {
        if !client.inbox.is_empty() {
            return Step::On;
        }
        until.map_or(Step::Rest, |at| self.rest(client, at))
    }

    pub(crate) fn told(&mut self, client: &Client, result: Result<(), Error>) {
        if let Err(error) = result {
            self.counts.count(format!("errors: {}", class(&error)));
            self.record(Fact::Failed(client.life, error.to_string()));
        }
    }

    /// The application is free: it does what it was told to, or polls.
    fn begin(&mut self, client: &mut Client) -> Step {
        let wish = std::mem::take(&mut client.wish);
        match wish {
            Wish::Close => return self.begin_close(client),
            Wish::Resubscribe => return self.leave(client, false),
            Wish::Slow => {
                let longer = Duration::from_millis(self.plan.max_poll) + self.random.millis(100, 4_000);
                client.doing = Doing::Working { until: self.now + longer };
                return Step::On;
            }
            Wish::Pause => self.pause(client),
            Wish::Seek => self.seek(client),
            Wish::Nothing => {}
        }
        if let Some(time) = self.obey(client) {
            client.doing = Doing::Working { until: self.now + time };
            return Step::On;
        }
        if self.healed && !self.foreign_records && !client.desk.paused().is_empty() {
            let paused = client.desk.paused();
            let result = client.desk.set_paused(&paused, false);
            self.told(client, result);
        }
        self.exchange(client);
        if !client.subscribed {
            client.subscribed = true;
            let result = if client.profile.pattern {
                client.desk.subscribe_pattern(PATTERN)
            } else {
                client.desk.subscribe(self.wanted.clone())
            };
            self.told(client, result);
        }
        let result = client.desk.begin_poll(client.clock(self.now));
        self.told(client, result);
        let wait = if self.healed { 500 } else { client.profile.poll };
        client.doing = Doing::Polling { until: self.now + Duration::from_millis(wait) };
        client.polls += 1;
        Step::On
    }

    fn pause(&mut self, client: &mut Client) {
        let paused = client.desk.paused();
        let all: Vec<_> = client.desk.assignment().into_iter().collect();
        let Some(name) = self.random.pick(&all) else { return };
        let pause = !paused.contains(&name);
        self.counts.count(if pause { "partitions paused" } else { "partitions resumed" });
        let result = client.desk.set_paused(&[name].into(), pause);
        self.told(client, result);
    }

    /// Goes back a little in a partition that it has read from.
    fn seek(&mut self, client: &mut Client) {
        let mut consumed = client.desk.consumed();
        // In a topic that came again the old place means nothing.
        consumed.retain(|(name, _)| self.topics.contains(&*name.topic) && self.birth(&name.topic) == 1);
        let Some((name, at)) = self.random.pick(&consumed) else { return };
        let to = (at.offset - i64::try_from(self.random.below(20)).unwrap_or(0)).max(0);
        if client.desk.seek(&name, &OffsetAndMetadata::new(to)).is_ok() {
            self.counts.count("seeks");
            self.record(Fact::Sought(client.life, name, to));
        }
    }

    fn poll(&mut self, client: &mut Client, until: Instant) -> Step {
        self.exchange(client);
        let turn = client.desk.next(client.clock(self.now));
        self.flush(client);
        match turn {
            Turn::Records(records) => self.handed_out(client, &records),
            Turn::Callback(kind, partitions) => self.call(client, kind, partitions, After::Poll(until)),
            Turn::CommitEnded(_, result) => {
                self.told(client, result);
                client.doing = Doing::Polling { until };
                Step::On
            }
            Turn::Failed(error) => {
                let fenced = matches!(error, Error::Fenced(_));
                self.told(client, Err(error));
                if fenced {
                    self.counts.count("static members fenced");
                    return self.begin_close(client);
                }
                client.doing = Doing::Working { until: self.now + Duration::from_millis(20) };
                Step::On
            }
            Turn::Wait(_) if self.now >= until => {
                client.doing = Doing::Working { until: self.now + Duration::from_micros(10) };
                Step::On
            }
            Turn::Wait(at) => {
                let at = at.map_or(until, |at| client.when(at).min(until));
                client.doing = Doing::Polling { until };
                self.listen(client, Some(at.max(self.now + Duration::from_micros(10))))
            }
        }
    }

    fn handed_out(&mut self, client: &mut Client, records: &Records) -> Step {
        for run in records.partitions() {
            // What is handed out without a break, and of which topic of that name.
            let mut pieces: Vec<(u32, i64, i64)> = Vec::new();
            for record in run.iter() {
                if let Some(handler) = &mut client.handler {
                    handler(&record);
                }
                let Some(birth) = self.birth_of(run.partition(), &record) else {
                    let why = format!("offset {} holds {:?}", record.offset(), record.value());
                    self.record(Fact::Garbled(client.life, run.partition().clone(), why));
                    continue;
                };
                match pieces.last_mut() {
                    Some((same, _, next)) if *same == birth && *next == record.offset() => *next += 1,
                    _ => pieces.push((birth, record.offset(), record.offset() + 1)),
                }
            }
            for (birth, first, next) in pieces {
                self.handed_out_piece(client, run.partition(), birth, first, next);
            }
        }
        self.work(client)
    }

    fn handed_out_piece(
        &mut self,
        client: &Client,
        what: &TopicPartition,
        birth: u32,
        first: i64,
        next: i64,
    ) {
        self.counts.add("records handed out", u64::try_from(next - first).unwrap_or(0));
        if birth != self.birth(&what.topic) || !self.topics.contains(&*what.topic) {
            // It was fetched before the topic was deleted.
            self.counts.count("records handed out of topics that are gone");
            return self.record(Fact::Stale(client.life, what.clone(), first, next));
        }
        self.scan(what);
        self.name_members(client, what);
        self.record(Fact::Delivered(client.life, what.clone(), first, next));
        if self.slip == Some(Slip::HandsOutTwice) {
            self.record(Fact::Delivered(client.life, what.clone(), first, next));
        }
    }

    /// Of which topic of that name a record is; nothing when nobody wrote it there.
    fn birth_of(&self, partition: &TopicPartition, record: &Record<'_>) -> Option<u32> {
        let now = self.birth(&partition.topic);
        if self.foreign_records {
            return Some(now);
        }
        if self.plan.transactions.is_some()
            && record.value().is_some_and(|value| value.starts_with(value_of(partition).as_bytes()))
        {
            return Some(now);
        }
        let holds = |birth: &u32| {
            record.value() == Some(self.value_at(partition, *birth, record.offset()).as_bytes())
        };
        (1..=now).rev().find(holds)
    }

    /// Who is a member matters when two hold one partition.
    ///
    /// A static member of a classic group that does not rejoin in time stays a member until its session expires (KIP-345;
    /// Kafka's `completeClassicGroupJoin` removes only dynamic ones), while others get its partitions: it does not count
    /// once the group has gone on without it, whichever of the two is the one left behind. Its generation would not tell:
    /// the number of one that a coordinator had not stored before it failed is used again.
    fn name_members(&mut self, who: &Client, what: &TopicPartition) {
        if self.holders.of(what).all(|holder| holder == who.life) {
            return;
        }
        self.counts.count("overlaps looked into");
        let Some(group) = self.group() else { return };
        // A static member that is away keeps its place, but not what it had still to let go.
        let present = group.members.iter().filter(|member| !member.away);
        let mut members: BTreeSet<_> = present.map(|member| member.id.to_string()).collect();
        let everybody = self.clients.values().map(|client| &**client).chain([who]);
        let statics = everybody.filter(|other| other.profile.instance.is_some());
        for name in statics.filter_map(|other| other.named.as_ref()) {
            if self.joined.get(name).is_some_and(|round| *round != self.rounds) {
                members.remove(name);
            }
        }
        // Who has left is no member, as for not polling, even if its application has not heard of it yet: a join that was
        // under way may come after the leave and make a member of it that nobody is.
        let others = self.holders.of(what).filter(|holder| *holder != who.life);
        for other in others.filter_map(|holder| self.clients.get(&holder)) {
            if !other.state.is_member()
                && let Some(name) = &other.named
            {
                members.remove(name);
            }
        }
        self.record(Fact::Members(members));
    }

    /// The group as its coordinator sees it.
    pub(crate) fn group(&self) -> Option<GroupView> {
        self.broker.groups().into_iter().find(|group| &*group.id == GROUP)
    }

    /// Works on records, then commits in its own way.
    fn work(&mut self, client: &mut Client) -> Step {
        let work = if self.healed { client.profile.work.min(1) } else { client.profile.work };
        client.doing = Doing::Working { until: self.now + self.random.millis(0, work) };
        let commits = match client.profile.commits {
            Commits::Auto | Commits::Never => false,
            // A member that waits for a commit after each record may be slower than what is written: it catches up in the end.
            Commits::Sync if self.healed && !self.foreign_records => client.polls.is_multiple_of(16),
            Commits::Sync | Commits::Async => true,
            Commits::Seldom => client.polls.is_multiple_of(8),
        };
        let mut offsets = client.desk.consumed();
        if self.slip == Some(Slip::CommitsAhead) {
            offsets.iter_mut().for_each(|(_, at)| at.offset += 1);
        }
        if !commits || offsets.is_empty() {
            return Step::On;
        }
        if client.profile.commits == Commits::Async {
            client.desk.commit_later(offsets, TIMEOUT);
        } else {
            let call = client.desk.commit(offsets, TIMEOUT);
            client.doing = Doing::Committing { call };
        }
        self.flush(client);
        Step::On
    }

    /// A member of the consumer protocol has partitions by the ids of topics, and may hear late that one is gone.
    fn look_for_outdated(&mut self, client: &Client, partitions: &[TopicPartition]) {
        let is_gone = |name: &&TopicPartition| {
            let dealt = client.state.dealt_topic(name);
            dealt.is_some_and(|id| self.topic_ids.get(&*name.topic) != Some(&id))
        };
        let gone: Vec<_> = partitions.iter().filter(is_gone).cloned().collect();
        if !gone.is_empty() {
            self.record(Fact::Outdated(client.life, gone));
        }
    }

    fn call(
        &mut self,
        client: &mut Client,
        kind: StepKind,
        partitions: Vec<TopicPartition>,
        then: After,
    ) -> Step {
        self.counts.count(format!("callbacks: {kind:?}"));
        self.learn_name(client);
        if !self.keeps_quiet(kind) {
            self.record(Fact::Began(client.life, kind, partitions.clone()));
        }
        if kind == StepKind::Assigned {
            self.look_for_outdated(client, &partitions);
        }
        if let Some(listener) = &mut client.listener {
            listener(kind, &partitions);
        }
        let (mut length, mut fails) = (self.random.millis(0, client.profile.callback), false);
        if let Some(bad) = client.bad_callback.take().filter(|_| !self.healed || self.foreign_records) {
            (length, fails) = bad;
            self.counts.count("callbacks that fail or take long");
        }
        let mut until = self.now + length;
        if let After::Leave { forever: true, deadline } = then {
            until = until.min(deadline.max(self.now));
        }
        let closes = matches!(then, After::Leave { forever: true, .. });
        let commits = client.profile.commits_on_revoke && kind == StepKind::Revoked && !closes;
        let offsets = client.desk.consumed();
        let commit = (commits && !offsets.is_empty()).then(|| client.desk.commit(offsets, TIMEOUT));
        if commit.is_some() {
            self.counts.count("commits in revoked");
        }
        client.doing = Doing::Callback { kind, partitions, until, commit, fails, then };
        Step::On
    }

    fn keeps_quiet(&self, kind: StepKind) -> bool {
        kind == StepKind::Revoked && self.slip == Some(Slip::ForgetsRevoked)
    }

    fn callback(&mut self, client: &mut Client, doing: Doing) -> Step {
        let Doing::Callback { kind, partitions, until, commit, fails, then } = doing else {
            return Step::Rest;
        };
        if let Some(call) = commit {
            self.exchange(client);
            let ended = client.desk.take_commit(call);
            let commit = ended.is_none().then_some(call);
            client.doing = Doing::Callback { kind, partitions, until, commit, fails, then };
            return match ended {
                None => self.listen(client, None),
                Some(result) => {
                    self.told(client, result);
                    Step::On
                }
            };
        }
        if until > self.now {
            client.doing = Doing::Callback { kind, partitions, until, commit, fails, then };
            return self.rest(client, until);
        }
        self.exchange(client);
        if !self.keeps_quiet(kind) {
            self.record(Fact::Returned(client.life, kind, partitions));
        }
        client.desk.callback_done(client.clock(self.now), fails);
        self.flush(client);
        client.doing = match then {
            After::Poll(_) if fails => Doing::Working { until: self.now },
            After::Poll(until) => Doing::Polling { until },
            After::Leave { forever, deadline } => Doing::Leaving { forever, deadline },
        };
        Step::On
    }

    fn begin_close(&mut self, client: &mut Client) -> Step {
        if client.desk.commits_at_close() {
            let offsets = client.desk.consumed();
            let call = client.desk.commit(offsets, CLOSE);
            client.doing = Doing::LastCommit { call };
            return Step::On;
        }
        self.leave(client, true)
    }

    fn leave(&mut self, client: &mut Client, forever: bool) -> Step {
        let timeout = if forever { CLOSE } else { TIMEOUT };
        if client.desk.is_in_group() {
            client.desk.leave("the simulation wants it", forever, timeout);
        }
        client.doing = Doing::Leaving { forever, deadline: self.now + timeout };
        Step::On
    }

    fn leaving(&mut self, client: &mut Client, forever: bool, deadline: Instant) -> Step {
        self.exchange(client);
        match client.desk.next_callback() {
            Some(Turn::Callback(kind, partitions)) => {
                return self.call(client, kind, partitions, After::Leave { forever, deadline });
            }
            Some(_) => {
                client.doing = Doing::Leaving { forever, deadline };
                return Step::On;
            }
            None => {}
        }
        self.flush(client);
        if client.desk.is_in_group() && !client.desk.has_left() {
            client.doing = Doing::Leaving { forever, deadline };
            return self.listen(client, None);
        }
        client.desk.finish_leaving();
        client.subscribed = false;
        self.record(Fact::Left(client.life));
        if forever {
            client.desk.close(CLOSE);
            client.doing = Doing::Ending;
        } else {
            client.doing = Doing::Working { until: self.now + self.random.millis(0, 500) };
        }
        self.flush(client);
        match client.doing {
            Doing::Gone => Step::Rest,
            _ => Step::On,
        }
    }

    /// The machine has done its last work.
    pub(crate) fn machine_stopped(&mut self, client: &mut Client) {
        for conn in client.links.keys().copied().collect::<Vec<_>>() {
            self.close(client, conn);
        }
        client.timer = None;
        client.doing = Doing::Gone;
        self.wake_app(client, self.now);
    }
}

/// The kind of an error, without names and numbers.
fn class(error: &Error) -> String {
    match error.code() {
        Some(code) => format!("the broker answered {code}"),
        None => {
            let text = format!("{error:?}");
            text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
        }
    }
}
