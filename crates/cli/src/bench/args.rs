//! What can be typed behind `tontine bench`.

use crate::{args::Connection, names};
use clap::{Args, Subcommand};

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Fill a topic with generated records, the same ones every time
    Load(LoadArgs),
    /// Read a number of records in a group; prints one JSON line with what a record cost
    Consume(ConsumeArgs),
    /// Read for a while; prints one JSON line with what a member saw of rebalances and silences
    Gap(GapArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// The topic; it is created when it does not exist
    #[arg(short, long, value_parser = names::topic)]
    pub(crate) topic: String,
    /// How many partitions it has when it is created
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) partitions: u32,
    /// How many records are written
    #[arg(short = 'n', long)]
    pub(crate) records: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) size: u32,
    /// none, gzip, snappy, lz4 or zstd
    #[arg(short = 'z', long, default_value = "none")]
    pub(crate) compression: String,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// The topic
    #[arg(short, long, value_parser = names::topic)]
    pub(crate) topic: String,
    /// The group; it should be a new one, so that everything is read
    #[arg(short, long, value_parser = names::group)]
    pub(crate) group: String,
    /// Stop after this many records
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// The group protocol: classic, or consumer (KIP-848)
    #[arg(long, default_value = "classic", value_parser = ["classic", "consumer"])]
    pub(crate) protocol: String,
    /// What the line calls the settings that were given with -X
    #[arg(long, default_value = "default")]
    pub(crate) mode: String,
    /// Give up when no record comes for this many seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) patience: u64,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct GapArgs {
    /// The topic
    #[arg(short, long, value_parser = names::topic)]
    pub(crate) topic: String,
    /// The group
    #[arg(short, long, value_parser = names::group)]
    pub(crate) group: String,
    /// How long it reads; an interrupt ends it sooner
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// The group protocol: classic, or consumer (KIP-848)
    #[arg(long, default_value = "classic", value_parser = ["classic", "consumer"])]
    pub(crate) protocol: String,
    /// The name of this member in its line
    #[arg(long, default_value = "member")]
    pub(crate) member: String,
    #[command(flatten)]
    pub(crate) connection: Connection,
}
