//! Where the demo runs: an embedded broker of its own, or somebody's cluster, on which nothing of the demo is to stay.

use super::board::Clock;
use crate::args::DemoArgs;
use crate::commands::settings::{self, Kind};
use crate::failure::Failure;
use crate::output::say;
use std::time::Duration;
use tontine::{Admin, Error, admin::NewTopic};
use tontine_broker::Broker;

/// How long the group may take to become empty: members that were killed are missed after their session.
const PATIENCE: Duration = Duration::from_secs(30);

/// The cluster that the demo runs on, and the topic and the group that are its own; they have one name.
pub(super) struct Cluster {
    embedded: Option<Broker>,
    pub(super) bootstrap: String,
    pub(super) topic: String,
    pub(super) admin: Admin,
    topic_is_there: Existence,
}

/// What is known about the demo's topic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existence {
    No,
    /// It was asked for, and nobody answered.
    Perhaps,
    Yes,
}

impl Cluster {
    /// Nothing is sent to a cluster yet.
    pub(super) async fn open(args: &DemoArgs) -> Result<Self, Failure> {
        if !args.connection.names_a_cluster()? {
            let broker = embedded().await?;
            let bootstrap = broker.bootstrap_servers();
            let admin = Admin::builder().set("bootstrap.servers", &bootstrap).build()?;
            let (embedded, topic) = (Some(broker), "orders".to_owned());
            return Ok(Self { embedded, bootstrap, topic, admin, topic_is_there: Existence::No });
        }
        let given = settings::given(&args.connection, Kind::Admin)?;
        let is_bootstrap = |key: &str| matches!(key, "bootstrap.servers" | "metadata.broker.list");
        let bootstrap = given.into_iter().rev().find(|(key, _)| is_bootstrap(key)).map(|(_, value)| value);
        let bootstrap = bootstrap.unwrap_or_default();
        // A name that no earlier run has used: topics and groups outlive their deletion for a moment.
        let topic = format!("tontine-demo-{:x}", Clock::start().unix_us() / 1000);
        let admin = settings::admin(&args.connection)?;
        say(&format!("on {bootstrap}, with a topic and a group {topic}, which are deleted at the end"));
        Ok(Self { embedded: None, bootstrap, topic, admin, topic_is_there: Existence::No })
    }

    /// Creates the demo's topic.
    pub(super) async fn create_topic(&mut self, partitions: i32) -> Result<(), Error> {
        self.topic_is_there = Existence::Perhaps;
        let created = self.admin.create_topic(NewTopic::new(&self.topic, partitions)).await;
        self.topic_is_there = match created {
            Ok(_) => Existence::Yes,
            Err(Error::Broker { .. }) => Existence::No,
            Err(_) => Existence::Perhaps,
        };
        created.map(drop)
    }

    /// What to do when it could not be cleaned up.
    pub(super) fn what_is_left(&self) -> String {
        let name = &self.topic;
        match self.embedded {
            Some(_) => "interrupted".to_owned(),
            None => format!(
                "the demo's own may still be on the cluster: `tontine topic delete {name}` and `tontine group delete \
                 {name}`, with the same -b, remove it"
            ),
        }
    }

    /// Deletes what is the demo's own.
    pub(super) async fn close(self) -> Result<(), Failure> {
        let left = self.what_is_left();
        if let Some(broker) = self.embedded {
            broker.stop().await;
            return Ok(());
        }
        match self.topic_is_there {
            Existence::No => return Ok(()),
            // The demo ends with what went wrong then. A cluster that does not answer is not waited for once more.
            Existence::Perhaps => {
                let admin = self.admin.with_timeout(Duration::from_secs(3));
                let _ = admin.delete_topic(&self.topic).await;
                return Ok(());
            }
            Existence::Yes => {}
        }
        let (topic, group) = tokio::join!(self.admin.delete_topic(&self.topic), self.delete_group());
        let failed = |error: Error| Failure::Failed(format!("could not clean up: {error}; {left}"));
        topic.and(group).map_err(failed)
    }

    /// Deletes the group as soon as nobody is in it.
    async fn delete_group(&self) -> Result<(), Error> {
        let delete = async {
            loop {
                match self.admin.delete_group(&self.topic).await {
                    Err(Error::Broker { code, .. }) if code.name() == Some("NON_EMPTY_GROUP") => {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                    // Nobody ever joined, or it went with its topic.
                    Err(Error::Broker { code, .. }) if code.name() == Some("GROUP_ID_NOT_FOUND") => {
                        return Ok(());
                    }
                    ended => return ended,
                }
            }
        };
        let late = |_| Error::Timeout { what: "deleting the group".to_owned(), after: PATIENCE, why: None };
        tokio::time::timeout(PATIENCE, delete).await.map_err(late)?
    }
}

/// A broker whose members may have short sessions, so that a killed one is missed soon.
async fn embedded() -> Result<Broker, Failure> {
    let settings = [
        ("group.min.session.timeout.ms", "1000"),
        ("group.consumer.min.session.timeout.ms", "1000"),
        ("group.consumer.session.timeout.ms", "2000"),
        ("group.consumer.min.heartbeat.interval.ms", "100"),
        ("group.consumer.heartbeat.interval.ms", "300"),
    ];
    let builder = Broker::builder();
    let builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.config(key, value));
    let failed = |error| Failure::Failed(format!("could not start the embedded broker: {error}"));
    builder.start().await.map_err(failed)
}
