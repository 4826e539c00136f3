//! `topic`: create, list, describe, alter, delete.

use super::settings::{self, Kind};
use crate::args::{Connection, Format, TopicCommand};
use crate::output::{Table, print, say};
use serde_json::json;
use std::process::ExitCode;
use tontine::{
    Admin, Error, TopicPartition,
    admin::{ConfigChange, ConfigResource, Each, NewTopic, OffsetSpec},
    cluster::TopicMetadata,
};

/// Runs one of the commands.
pub(crate) async fn run(command: TopicCommand) -> Result<ExitCode, Error> {
    match command {
        TopicCommand::Create { topic, partitions, replication_factor, settings, connection } => {
            let mut new = NewTopic::new(&topic, partitions as i32);
            new.replication_factor = replication_factor;
            new.configs = settings.into_iter().collect();
            admin(&connection)?.create_topic(new).await?;
            say(&format!("created {topic} with {partitions} partitions"));
            Ok(ExitCode::SUCCESS)
        }
        TopicCommand::List { internal, format, connection } => {
            list(&admin(&connection)?, internal, format).await
        }
        TopicCommand::Describe { topics, format, connection } => {
            describe(&admin(&connection)?, topics, format).await
        }
        TopicCommand::Alter { topic, partitions, settings, connection } => {
            alter(&admin(&connection)?, &topic, partitions, settings).await
        }
        TopicCommand::Delete { topics, connection } => {
            let each = admin(&connection)?.delete_topics(topics).await?;
            Ok(report(each, "deleted"))
        }
    }
}

/// An admin with the settings of the command.
pub(crate) fn admin(connection: &Connection) -> Result<Admin, Error> {
    settings::say_what_has_no_effect(connection, &[Kind::Admin]);
    settings::admin(connection)
}

/// Says for each thing whether it worked; the exit code is 1 when one did not.
pub(crate) fn report<T>(each: Each<String, T>, done: &str) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (name, result) in each {
        match result {
            Ok(_) => say(&format!("{done} {name}")),
            Err(error) => {
                say(&format!("tontine: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

async fn list(admin: &Admin, internal: bool, format: Format) -> Result<ExitCode, Error> {
    let mut topics = admin.list_topics().await?;
    topics.retain(|topic| internal || !topic.is_internal);
    match format {
        Format::Json => {
            let one = |t: &tontine::admin::TopicListing| json!({"topic": t.name, "id": t.id.to_string(), "partitions": t.partitions, "internal": t.is_internal});
            print(&format!("{}\n", json!(topics.iter().map(one).collect::<Vec<_>>())));
        }
        Format::Text => {
            let mut table = Table::new(["TOPIC", "PARTITIONS", "ID"]);
            topics
                .iter()
                .for_each(|t| table.row([t.name.clone(), t.partitions.to_string(), t.id.to_string()]));
            print(&table.render());
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn describe(admin: &Admin, topics: Vec<String>, format: Format) -> Result<ExitCode, Error> {
    let mut table = Table::new([
        "TOPIC",
        "PARTITION",
        "LEADER",
        "LEADER-EPOCH",
        "REPLICAS",
        "ISR",
        "LOG-START-OFFSET",
        "LOG-END-OFFSET",
    ]);
    let mut objects = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for described in admin.describe_topics(topics).await?.into_values() {
        match described {
            Ok(topic) => {
                let ends = Ends::of(admin, &topic).await?;
                rows(&mut table, &topic, &ends);
                objects.push(object(&topic, &ends));
            }
            Err(error) => {
                say(&format!("tontine: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    match format {
        Format::Json => print(&format!("{}\n", json!(objects))),
        Format::Text => print(&table.render()),
    };
    Ok(code)
}

/// The first and the next offset of each partition, where its leader answers.
struct Ends {
    start: Each<TopicPartition, tontine::admin::ListedOffset>,
    end: Each<TopicPartition, tontine::admin::ListedOffset>,
}

impl Ends {
    async fn of(admin: &Admin, topic: &TopicMetadata) -> Result<Self, Error> {
        let led = topic.partitions.iter().filter(|(_, p)| p.leader.is_some());
        let partitions: Vec<_> = led.map(|(n, _)| TopicPartition::new(topic.name.clone(), *n)).collect();
        let ask =
            async |spec: OffsetSpec| admin.list_offsets(partitions.iter().map(|p| (p.clone(), spec))).await;
        Ok(Self { start: ask(OffsetSpec::Earliest).await?, end: ask(OffsetSpec::Latest).await? })
    }

    fn at(
        offsets: &Each<TopicPartition, tontine::admin::ListedOffset>,
        partition: &TopicPartition,
    ) -> Option<i64> {
        offsets.get(partition)?.as_ref().ok()?.offset
    }
}

fn rows(table: &mut Table, topic: &TopicMetadata, ends: &Ends) {
    let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
    let list = |nodes: &[i32]| nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    for (n, p) in &topic.partitions {
        let partition = TopicPartition::new(topic.name.clone(), *n);
        table.row([
            topic.name.to_string(),
            n.to_string(),
            number(p.leader.map(i64::from)),
            number(p.leader_epoch.map(i64::from)),
            list(&p.replicas),
            list(&p.isr),
            number(Ends::at(&ends.start, &partition)),
            number(Ends::at(&ends.end, &partition)),
        ]);
    }
}

fn object(topic: &TopicMetadata, ends: &Ends) -> serde_json::Value {
    let partition = |(n, p): (&i32, &tontine::cluster::PartitionMetadata)| {
        let partition = TopicPartition::new(topic.name.clone(), *n);
        json!({
            "partition": n, "leader": p.leader, "leader_epoch": p.leader_epoch, "replicas": p.replicas, "isr": p.isr,
            "log_start_offset": Ends::at(&ends.start, &partition),
            "log_end_offset": Ends::at(&ends.end, &partition),
        })
    };
    let partitions: Vec<_> = topic.partitions.iter().map(partition).collect();
    json!({"topic": *topic.name, "id": topic.id.to_string(), "partitions": partitions})
}

async fn alter(
    admin: &Admin,
    topic: &str,
    partitions: Option<u32>,
    settings: Vec<(String, String)>,
) -> Result<ExitCode, Error> {
    if partitions.is_none() && settings.is_empty() {
        return Err(Error::misuse("nothing to alter: give --partitions, --set key=value, or both"));
    }
    if let Some(total) = partitions {
        admin.create_partitions(topic, total as i32).await?;
        say(&format!("{topic} has {total} partitions"));
    }
    if !settings.is_empty() {
        let resource = ConfigResource::Topic(topic.to_owned());
        let count = settings.len();
        let changes = settings.into_iter().map(|(key, value)| ConfigChange::Set(key, value));
        admin.alter_configs(&resource, changes).await?;
        say(&format!("{topic}: {count} settings changed"));
    }
    Ok(ExitCode::SUCCESS)
}
