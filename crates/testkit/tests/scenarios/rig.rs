//! A broker that writes down what it is asked, and members whose every callback, record and commit goes into one history.
//!
//! A test polls its members itself, one after the other, so it decides who moves when. Whoever needs a network of its own
//! sits behind a proxy.

use std::{
    collections::BTreeMap,
    future::Future as _,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};
use tontine::{
    Assigned, Consumer, Error, ListenerResult, Lost, RebalanceListener, Records, Revoked, TopicPartition,
};
use tontine_broker::{Broker, Builder, Verdict};
use tontine_testkit::{
    history::{Callback, CommitResult, End, History, MemberLog, What},
    invariants::Evidence,
    plain::PlainClient,
    proxy::Proxy,
    wait,
};
use tontine_wire::api::{
    ApiKey, Request,
    leave_group::{LeaveGroupRequest, MemberIdentity},
};

pub const GROUP: &str = "g";
/// Long enough for anything that ends at all.
pub const LONG: Duration = Duration::from_secs(10);
/// How long one member is polled before it is the next one's turn.
pub const STEP: Duration = Duration::from_millis(5);

pub type Setting = (&'static str, &'static str);
pub const EAGER: Setting = ("partition.assignment.strategy", "range");
pub const COOPERATIVE: Setting = ("partition.assignment.strategy", "cooperative-sticky");
pub const AUTO_COMMIT: Setting = ("enable.auto.commit", "true");
pub const CONSUMER: Setting = ("group.protocol", "consumer");
/// What holds for groups of the classic protocol, whichever way they rebalance.
pub const BOTH: [Setting; 2] = [EAGER, COOPERATIVE];
/// What holds for both protocols.
pub const ALL: [Setting; 3] = [EAGER, COOPERATIVE, CONSUMER];

pub struct Stage {
    pub broker: Broker,
    pub history: History,
    wire: Arc<Mutex<Vec<(String, Request)>>>,
    topics: Vec<String>,
}

impl Stage {
    pub async fn new(topics: &[(&str, i32)]) -> Self {
        Self::of_nodes(1, topics).await
    }

    pub async fn of_nodes(nodes: usize, topics: &[(&str, i32)]) -> Self {
        Self::built(Broker::builder().nodes(nodes), topics).await
    }

    pub async fn configured(topics: &[(&str, i32)], settings: &[Setting]) -> Self {
        let set = |builder: Builder, (key, value): &Setting| builder.config(key, value);
        Self::started(settings.iter().fold(Self::hurried(Broker::builder()), set), topics).await
    }

    pub async fn built(builder: Builder, topics: &[(&str, i32)]) -> Self {
        Self::started(Self::hurried(builder), topics).await
    }

    fn hurried(builder: Builder) -> Builder {
        builder
            .config("group.min.session.timeout.ms", "100")
            .config("group.consumer.min.session.timeout.ms", "100")
            .config("group.consumer.session.timeout.ms", "3000")
            .config("group.consumer.min.heartbeat.interval.ms", "10")
            .config("group.consumer.heartbeat.interval.ms", "50")
    }

    async fn started(mut builder: Builder, topics: &[(&str, i32)]) -> Self {
        for (name, partitions) in topics {
            builder = builder.topic(*name, *partitions);
        }
        let broker = builder.start().await.unwrap();
        let wire: Arc<Mutex<Vec<(String, Request)>>> = Arc::default();
        let seen = wire.clone();
        broker.intercept(move |_, header, request| {
            if !matches!(header.key, ApiKey::Fetch | ApiKey::Metadata | ApiKey::ApiVersions) {
                let client = header.client_id.clone().unwrap_or_default();
                seen.lock().unwrap().push((client, request.clone()));
            }
            Verdict::Pass
        });
        let topics = topics.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { broker, history: History::new(), wire, topics }
    }

    pub fn plain(&self) -> PlainClient {
        PlainClient::new(&self.broker.bootstrap_servers())
    }

    pub async fn produce(&self, topic: &str, partition: i32, count: usize) {
        self.plain().produce(topic, partition, count).await.unwrap();
    }

    /// What one client asked the broker, the noise left out.
    pub fn asked_by(&self, client: &str) -> Vec<Request> {
        let wire = self.wire.lock().unwrap();
        wire.iter().filter(|(who, _)| who == client).map(|(_, request)| request.clone()).collect()
    }

    /// The offsets that one client asked to commit, in order. A topic that goes by its id is the only one there is.
    pub fn commits_by(&self, client: &str) -> Vec<(TopicPartition, i64)> {
        let mut commits = Vec::new();
        for request in self.asked_by(client) {
            let Request::OffsetCommit(request) = request else { continue };
            for topic in request.topics {
                let name = if topic.name.is_empty() { self.only_topic() } else { &topic.name };
                let of = |p: i32| TopicPartition::new(name, p);
                commits.extend(topic.partitions.iter().map(|p| (of(p.partition_index), p.committed_offset)));
            }
        }
        commits
    }

    fn only_topic(&self) -> &str {
        assert_eq!(self.topics.len(), 1, "which topic is meant cannot be told");
        &self.topics[0]
    }

    pub fn count(&self, client: &str, kind: fn(&Request) -> bool) -> usize {
        self.asked_by(client).iter().filter(|request| kind(request)).count()
    }

    pub fn committed(&self, topic: &str, partition: i32) -> Option<i64> {
        self.broker.committed_offsets(GROUP).get(&TopicPartition::new(topic, partition)).copied()
    }

    /// A member of the group, connected to the broker itself.
    pub fn seat(&self, name: &str, settings: &[Setting]) -> Seat {
        Seat::new(self, name, self.broker.bootstrap_servers(), None, settings)
    }

    /// A member with a network of its own.
    pub fn behind_proxy(&self, name: &str, settings: &[Setting]) -> Seat {
        let proxy = Proxy::start(&self.broker.bootstrap_servers()).unwrap();
        Seat::new(self, name, proxy.bootstrap_servers().to_owned(), Some(proxy), settings)
    }

    /// Puts a member out of the group, as an administrator does. It is not told.
    pub async fn expel(&self, name: &str) {
        let group = self.broker.group(GROUP).unwrap();
        let gone = group.members.iter().filter(|member| member.client_id == name);
        let members =
            gone.map(|member| MemberIdentity { member_id: member.id.to_string(), ..Default::default() });
        let request =
            LeaveGroupRequest { group_id: GROUP.into(), members: members.collect(), ..Default::default() };
        assert_eq!(request.members.len(), 1, "{name} is a member");
        let mut connection = self.plain().coordinator(GROUP, "administrator").await.unwrap();
        self.history.write(&name.into(), What::Expelled);
        let answer = connection.call(5, request).await.unwrap();
        assert!(answer.error_code.is_ok() && answer.members[0].error_code.is_ok(), "{answer:?}");
    }

    /// Waits until the broker is in a state.
    pub async fn until(&self, what: &str, condition: impl Fn(&Broker) -> bool) {
        wait::until(what, LONG, async || condition(&self.broker).then_some(())).await.unwrap();
    }

    /// Checks what every consumer group promises.
    pub fn check(&self) {
        Evidence::of(&self.history).check().unwrap();
    }

    /// Checks it for members that also commit on their own.
    pub fn check_with_auto_commit(&self) {
        Evidence::of(&self.history).with_auto_commit().check().unwrap();
    }

    pub fn calls(&self, member: &str) -> Vec<String> {
        self.history.callbacks(member)
    }
}

/// One member, and what it was handed.
pub struct Seat {
    pub consumer: Consumer,
    pub proxy: Option<Proxy>,
    pub log: MemberLog,
    pub got: Vec<(TopicPartition, i64)>,
}

impl Seat {
    fn new(stage: &Stage, name: &str, servers: String, proxy: Option<Proxy>, settings: &[Setting]) -> Self {
        let mut builder = Consumer::builder();
        let own: Vec<(&str, String)> = vec![
            ("bootstrap.servers", servers),
            ("group.id", GROUP.into()),
            ("client.id", name.into()),
            ("auto.offset.reset", "earliest".into()),
            ("enable.auto.commit", "false".into()),
            ("session.timeout.ms", "3000".into()),
            ("heartbeat.interval.ms", "50".into()),
            ("retry.backoff.ms", "10".into()),
            ("retry.backoff.max.ms", "50".into()),
            ("fetch.max.wait.ms", "50".into()),
        ];
        let classic = !settings.contains(&CONSUMER);
        for (key, value) in
            own.into_iter().chain(settings.iter().map(|(key, value)| (*key, value.to_string())))
        {
            // With the consumer protocol these are the coordinator's.
            if classic || !matches!(key, "session.timeout.ms" | "heartbeat.interval.ms") {
                builder = builder.set(key, value);
            }
        }
        let consumer = builder.build().unwrap();
        Self { consumer, proxy, log: stage.history.member(name), got: Vec::new() }
    }

    pub fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().unwrap()
    }

    pub fn told(&self) -> Told {
        Told(self.log.clone())
    }

    /// Subscribes with a listener that only writes down what it is told.
    pub async fn subscribe(mut self, topics: &[&str]) -> Self {
        let told = self.told();
        self.consumer.subscribe(topics, told).await.unwrap();
        self
    }

    pub async fn subscribe_with(
        mut self,
        topics: &[&str],
        listener: impl RebalanceListener + 'static,
    ) -> Self {
        self.consumer.subscribe(topics, listener).await.unwrap();
        self
    }

    pub async fn try_poll(&mut self) -> Result<usize, Error> {
        let polled = self.consumer.poll(STEP).await;
        match polled {
            Ok(records) => Ok(self.take(&records)),
            Err(error) => {
                self.log.write(tontine_testkit::history::What::Failed(error.to_string()));
                Err(error)
            }
        }
    }

    pub fn take(&mut self, records: &Records) -> usize {
        let mut by_partition: BTreeMap<TopicPartition, Vec<i64>> = BTreeMap::new();
        for record in records {
            by_partition.entry(record.topic_partition().clone()).or_default().push(record.offset());
            self.got.push((record.topic_partition().clone(), record.offset()));
        }
        for (partition, offsets) in by_partition {
            self.log.delivered(partition, offsets);
        }
        records.len()
    }

    pub async fn poll(&mut self) -> usize {
        match self.try_poll().await {
            Ok(count) => count,
            Err(error) => {
                panic!("{}: {error}\n{}\n{}", self.log.name(), self.log.history().tail(), self.story())
            }
        }
    }

    /// Polls until there is an error, and returns it.
    pub async fn poll_until_error(&mut self) -> Error {
        let polled = async {
            loop {
                if let Err(error) = self.try_poll().await {
                    return error;
                }
            }
        };
        tokio::time::timeout(LONG, polled).await.expect("a poll fails")
    }

    /// Commits what polls returned, and writes it down.
    pub async fn commit(&mut self) -> Result<(), Error> {
        let mut offsets = BTreeMap::new();
        for partition in self.consumer.assignment() {
            if let Ok(position) = self.consumer.position_with(&partition, Duration::ZERO).await {
                offsets.insert(partition, position);
            }
        }
        self.log.commit_sent(offsets.clone());
        let result = self.consumer.commit_sync().await;
        let ended = match &result {
            Ok(()) => CommitResult::Stored,
            Err(error) => CommitResult::Refused(error.to_string()),
        };
        self.log.commit_ended(offsets, ended);
        result
    }

    pub async fn close(mut self) {
        if let Err(error) = self.consumer.close_with(LONG / 2).await {
            panic!("{}: {error}\n{}\n{}", self.log.name(), self.log.history().tail(), self.story());
        }
        self.log.ended(End::Closed);
    }

    pub fn owns(&self) -> Vec<i32> {
        self.consumer.assignment().iter().map(|tp| tp.partition()).collect()
    }

    /// The latest that happened to the membership, for whoever reads a failure.
    fn story(&self) -> String {
        let history = self.consumer.history();
        let latest = history.since(history.count().saturating_sub(12));
        latest.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// The offsets of one partition that polls returned.
    pub fn offsets(&self, partition: &TopicPartition) -> Vec<i64> {
        self.got.iter().filter(|(name, _)| name == partition).map(|(_, offset)| *offset).collect()
    }
}

/// Polls members in turn until the condition holds.
pub async fn drive(what: &str, seats: &mut [&mut Seat], mut done: impl FnMut(&[&mut Seat]) -> bool) {
    let driven = async {
        while !done(seats) {
            for seat in seats.iter_mut() {
                seat.poll().await;
            }
        }
    };
    if tokio::time::timeout(LONG, driven).await.is_err() {
        let stands = |seat: &&mut Seat| format!("{}: {}\n", seat.log.name(), seat.story());
        let stories: String = seats.iter().map(stands).collect();
        panic!("{what}: never came about\n{}\n{stories}", seats[0].log.history().tail());
    }
}

/// Has the first of the members ask for another round, and polls until that is over.
pub async fn another_round(stage: &Stage, seats: &mut [&mut Seat]) {
    let name = seats[0].log.name().clone();
    let told = stage.calls(&name).len();
    seats[0].consumer.enforce_rebalance("a test").unwrap();
    drive("the round is over", seats, |_| {
        let calls = stage.calls(&name);
        calls.len() > told && calls.last().is_some_and(|call| call.starts_with('A'))
    })
    .await;
}

/// Has a member join again: by another round, or, where there are none, by putting it out of the group.
pub async fn join_again(stage: &Stage, seat: &mut Seat, protocol: Setting) {
    if protocol != CONSUMER {
        return another_round(stage, &mut [seat]).await;
    }
    let name = seat.log.name().clone();
    let told = stage.calls(&name).len();
    stage.expel(&name).await;
    drive("it is back", &mut [seat], |_| {
        let calls = stage.calls(&name);
        calls.len() > told && calls.last().is_some_and(|call| call.starts_with('A'))
    })
    .await;
}

/// A condition that holds after so many turns.
pub fn turns(count: usize) -> impl FnMut(&[&mut Seat]) -> bool {
    let mut left = count;
    move |_| {
        left = left.saturating_sub(1);
        left == 0
    }
}

/// Polls many members at the same time until the condition holds.
pub async fn drive_crowd(what: &str, seats: &mut [&mut Seat], mut done: impl FnMut(&[&mut Seat]) -> bool) {
    let driven = async {
        while !done(seats) {
            let mut polls: Vec<_> = seats.iter_mut().map(|seat| Box::pin(seat.poll())).collect();
            std::future::poll_fn(|cx| {
                polls.retain_mut(|poll| poll.as_mut().poll(cx).is_pending());
                if polls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    };
    if tokio::time::timeout(2 * LONG, driven).await.is_err() {
        panic!("{what}: never came about\n{}", seats[0].log.history().tail());
    }
}

/// Polls members until each owns this many partitions.
pub async fn settle(seats: &mut [&mut Seat], counts: &[usize]) {
    drive(&format!("partitions are shared {counts:?}"), seats, |seats| {
        seats.iter().zip(counts).all(|(seat, count)| {
            let own = seat.log.history().owned_by(seat.log.name());
            own.len() == *count && seat.consumer.assignment() == own
        })
    })
    .await;
}

pub fn tp(topic: &str, number: i32) -> TopicPartition {
    TopicPartition::new(topic, number)
}

pub fn is_join(request: &Request) -> bool {
    matches!(request, Request::JoinGroup(_))
}

/// A listener that writes down what it is told.
#[derive(Clone)]
pub struct Told(pub MemberLog);

impl Told {
    pub fn begin(&self, callback: Callback, partitions: &[TopicPartition]) {
        self.0.called(callback, partitions.to_vec());
    }

    pub fn end(&self, callback: Callback) {
        self.0.returned(callback);
    }

    fn all(&self, callback: Callback, partitions: &[TopicPartition]) -> ListenerResult {
        self.begin(callback, partitions);
        self.end(callback);
        Ok(())
    }
}

impl RebalanceListener for Told {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.all(Callback::Assigned, cx.partitions())
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.all(Callback::Revoked, cx.partitions())
    }
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.all(Callback::Lost, cx.partitions())
    }
}

/// Writes down what it is told, and commits in revoked. That a commit was refused is in the history: a member that leaves
/// in the middle of a round may be too late.
pub struct Committing(pub Told);

impl RebalanceListener for Committing {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.0.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.0.begin(Callback::Revoked, cx.partitions());
        let mut offsets = BTreeMap::new();
        for partition in cx.partitions().to_vec() {
            offsets.insert(partition.clone(), cx.position(&partition).await?);
        }
        self.0.0.commit_sent(offsets.clone());
        let result = cx.commit_sync().await;
        let ended = match &result {
            Ok(()) => CommitResult::Stored,
            Err(error) => CommitResult::Refused(error.to_string()),
        };
        self.0.0.commit_ended(offsets, ended);
        self.0.end(Callback::Revoked);
        Ok(())
    }
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.0.on_partitions_lost(cx).await
    }
}
