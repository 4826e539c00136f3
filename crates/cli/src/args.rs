//! What can be typed: commands, options and their defaults.

use crate::{bench::args::BenchCommand, names};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Run, see and explain Kafka consumer groups, on any cluster or on an embedded broker.
#[derive(Debug, Parser)]
#[command(name = "tontine", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch consumers share partitions, join, leave, crash and come back; ends with a verdict
    ///
    /// It runs on an embedded broker, or, when -b, the environment, -X or --config names one, on a cluster: there it has a
    /// topic and a group of its own, and deletes both at the end, also when it is interrupted.
    Demo(DemoArgs),
    /// A member of the demo's group, as a process of its own
    #[command(hide = true)]
    DemoMember(DemoMemberArgs),
    /// Run the embedded broker
    Broker(BrokerArgs),
    /// Create, list, describe, alter and delete topics
    #[command(subcommand)]
    Topic(TopicCommand),
    /// Write records, one for each line of standard input or a given number of them
    ///
    /// An interrupt ends the reading; what was read by then is still written, and counted.
    Produce(ProduceArgs),
    /// Read records, alone or in a group
    Consume(ConsumeArgs),
    /// List, describe and delete groups
    #[command(subcommand)]
    Group(GroupCommand),
    /// Measure: fill a topic, read it, watch a rebalance; one JSON line each
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// Which cluster, and how to talk to it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Connection {
    /// Brokers to start from, as host:port[,host:port..]
    #[arg(
        short = 'b',
        long,
        alias = "bootstrap-servers",
        value_name = "HOST:PORT",
        env = "TONTINE_BOOTSTRAP_SERVER"
    )]
    pub(crate) bootstrap_server: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// Client settings, from the most general to the most particular: file, then -X.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Settings {
    /// A file of client settings, key=value
    #[arg(long, alias = "command-config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A client setting, may be repeated
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// How records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    /// topic, partition, offset, key and value in columns
    #[default]
    Text,
    /// One JSON object a record
    Json,
    /// The value alone
    Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    /// The first record there is
    Earliest,
    /// Records that come from now on
    #[default]
    Latest,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// The group protocol: consumer (KIP-848) needs Apache Kafka 4.0 or the embedded broker; consumer,classic takes the
    /// classic one where a broker does not have it
    #[arg(long, default_value = "classic", value_parser = ["classic", "consumer", "consumer,classic"])]
    pub(crate) protocol: String,
    /// The assignor of the classic protocol; cooperative-sticky when it is left out
    #[arg(long)]
    pub(crate) assignor: Option<String>,
    /// How many members the group has at its largest
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=26))]
    pub(crate) members: u32,
    /// How many partitions the topic has at the beginning
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) partitions: u32,
    /// Records a second, over all partitions
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub(crate) rate: u32,
    /// How long it takes, about
    #[arg(long, default_value_t = 18, value_parser = clap::value_parser!(u32).range(5..=3600))]
    pub(crate) seconds: u32,
    /// How the result is written; json prints one object at the end
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// What the demo tells a member's process.
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoMemberArgs {
    /// The member's number
    #[arg(long)]
    pub(crate) id: usize,
    /// The topic to read
    #[arg(long)]
    pub(crate) topic: String,
    /// When the demo began, in microseconds after 1970
    #[arg(long)]
    pub(crate) began_us: u64,
    /// A consumer setting, may be repeated
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct BrokerArgs {
    /// Where to listen; port 0 takes a free one. Without it `listeners` counts, else 127.0.0.1:9092
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// A topic to create, may be repeated
    #[arg(long = "topic", alias = "seed-topic", value_name = "NAME:PARTITIONS", value_parser = topic_spec)]
    pub(crate) topics: Vec<(String, u32)>,
    /// A file of broker settings as Apache Kafka has it (server.properties)
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
    /// A broker setting, may be repeated; it counts before the file's
    #[arg(long = "config", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) settings: Vec<(String, String)>,
    /// Print the settings in force, key=value, and end
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Keep topics, records and groups in this directory; without it everything is in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// How many nodes the in-process test cluster has
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) nodes: u32,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Create a topic
    Create {
        /// The topic
        #[arg(value_parser = names::topic)]
        topic: String,
        /// How many partitions it has
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        partitions: u32,
        /// How many replicas a partition has; the broker's default when it is left out
        #[arg(long, value_parser = clap::value_parser!(i16).range(1..))]
        replication_factor: Option<i16>,
        /// A topic setting, may be repeated
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
        settings: Vec<(String, String)>,
        #[command(flatten)]
        connection: Connection,
    },
    /// List topics
    List {
        /// Topics whose names begin with __ as well
        #[arg(long)]
        internal: bool,
        /// How the result is written
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        connection: Connection,
    },
    /// Describe topics: partitions, leaders, replicas, offsets
    Describe {
        /// The topics
        #[arg(required = true, value_parser = names::topic)]
        topics: Vec<String>,
        /// How the result is written
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        connection: Connection,
    },
    /// Add partitions or change settings
    Alter {
        /// The topic
        #[arg(value_parser = names::topic)]
        topic: String,
        /// How many partitions it has afterwards, in all
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        partitions: Option<u32>,
        /// A topic setting, may be repeated
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
        settings: Vec<(String, String)>,
        #[command(flatten)]
        connection: Connection,
    },
    /// Delete topics and all their records
    Delete {
        /// The topics
        #[arg(required = true, value_parser = names::topic)]
        topics: Vec<String>,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ProduceArgs {
    /// The topic
    #[arg(short, long, value_parser = names::topic)]
    pub(crate) topic: String,
    /// Write this many generated records instead of reading standard input
    #[arg(short, long)]
    pub(crate) number: Option<u64>,
    /// Bytes of a generated record's value
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) size: u32,
    /// What separates the key from the value in a line; without it lines are values
    #[arg(short = 'K', long)]
    pub(crate) key_separator: Option<String>,
    /// none, gzip, snappy, lz4 or zstd
    #[arg(short = 'z', long, default_value = "none")]
    pub(crate) compression: String,
    /// all, 1 or 0
    #[arg(long, default_value = "all")]
    pub(crate) acks: String,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// The topic, may be repeated
    #[arg(short, long, required = true, value_parser = names::topic)]
    pub(crate) topic: Vec<String>,
    /// The group to read in; without it all partitions are read and nothing is committed
    #[arg(short, long, value_parser = names::group)]
    pub(crate) group: Option<String>,
    /// The group protocol, classic when it is left out: consumer (KIP-848) needs Apache Kafka 4.0 or the embedded broker;
    /// consumer,classic takes the classic one where a broker does not have it
    #[arg(long, value_parser = ["classic", "consumer", "consumer,classic"])]
    pub(crate) protocol: Option<String>,
    /// The assignors of the classic protocol, most wanted first
    #[arg(long)]
    pub(crate) assignor: Option<String>,
    /// Where to begin when nothing is committed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) from: From,
    /// Stop after this many records
    #[arg(short = 'n', long, alias = "max-records")]
    pub(crate) max_messages: Option<u64>,
    /// Stop when the ends that the partitions had at the start are reached
    #[arg(short = 'e', long)]
    pub(crate) exit_at_end: bool,
    /// How records are written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RecordFormat,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List groups
    List {
        /// How the result is written
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        connection: Connection,
    },
    /// Describe groups: state, members, who owns what, offsets and lag
    #[command(alias = "show")]
    Describe {
        /// The groups
        #[arg(required = true, value_parser = names::group)]
        groups: Vec<String>,
        /// How the result is written
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        connection: Connection,
    },
    /// Put the audit logs of a group's members together and prove: no overlap, no gap, no commit after a release
    Audit {
        /// Files that consumers wrote with audit.log=FILE
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// How much the clocks of the members' machines may differ, in milliseconds
        #[arg(long, value_name = "MS", default_value_t = 0)]
        clock_skew: u32,
    },
    /// Delete groups and their offsets
    Delete {
        /// The groups
        #[arg(required = true, value_parser = names::group)]
        groups: Vec<String>,
        #[command(flatten)]
        connection: Connection,
    },
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("`{text}` is not key=value")),
    }
}

fn topic_spec(text: &str) -> Result<(String, u32), String> {
    let (name, partitions) = text.rsplit_once(':').unwrap_or((text, "1"));
    match partitions.parse() {
        Ok(n) if (1..=100_000).contains(&n) => Ok((names::topic(name)?, n)),
        _ => Err(format!("`{text}` is not name:partitions with 1 to 100000 partitions")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_argument_says_what_it_is() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let (name, of) = (argument.get_id(), command.get_name());
                assert!(argument.get_help().is_some(), "{of}: {name} has no help");
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn topics_are_given_as_name_and_partitions() {
        assert_eq!(topic_spec("orders:8"), Ok(("orders".to_owned(), 8)));
        assert_eq!(topic_spec("orders"), Ok(("orders".to_owned(), 1)));
        assert!(topic_spec("orders:0").is_err());
        assert!(topic_spec("orders:many").is_err());
    }
}
