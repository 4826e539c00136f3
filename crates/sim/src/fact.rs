//! What happened in a run, as far as an observer outside of every machine can see it. Invariants and reports read these.

use crate::{disk::Loss, workload::Protocol};
use std::{collections::BTreeSet, fmt, time::Duration};
use tontine::{TopicPartition, state::StepKind};
use tontine_broker::disk::Outage;

/// One life of a consumer. A member that comes back is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life(pub u32);

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A consumer was built and subscribed.
    Started(Life, Protocol, Option<String>),
    /// Its process is gone, without a word.
    Crashed(Life),
    /// It closed, or left and may come back: nothing is its own any more.
    Left(Life),
    /// The coordinator knows it by this name.
    Named(Life, String),
    /// A callback begins.
    Began(Life, StepKind, Vec<TopicPartition>),
    /// A callback has returned.
    Returned(Life, StepKind, Vec<TopicPartition>),
    /// Records of one partition were handed out by a poll: from this offset up to, and without, that one.
    Delivered(Life, TopicPartition, i64, i64),
    /// What a callback hands over is of topics that are gone by then: the coordinator dealt it by the ids of these.
    Outdated(Life, Vec<TopicPartition>),
    /// Records came, from this offset up to that one, of a topic that had been deleted by then.
    Stale(Life, TopicPartition, i64, i64),
    /// Records came that nobody wrote there.
    Garbled(Life, TopicPartition, String),
    /// The application goes on at another offset.
    Sought(Life, TopicPartition, i64),
    /// Whom the coordinator counts as members. Known only where it matters: when two hold one partition.
    Members(BTreeSet<String>),
    /// The coordinator accepted a commit of the member with this name.
    Committed(String, TopicPartition, i64),
    /// A call of a consumer failed.
    Failed(Life, String),
    /// A request of the group's has arrived, or its answer has been sent; only when that was asked for.
    Said(Life, String),
    /// The group changed its state.
    Group(String),
    /// Something was done to the world.
    Done(String),
    /// A topic is gone.
    Deleted(String),
    /// The brokers are gone, and this may be missing when they come back.
    Dark(Outage, Loss),
    /// Records of a partition are in its log up to here, and whoever wrote them was told so.
    Written(TopicPartition, i64),
    /// What the disk has kept of a partition.
    Kept {
        /// Which one.
        what: TopicPartition,
        /// Where its log ends.
        end: i64,
        /// What the group has committed in it.
        committed: Option<i64>,
        /// Its leader's epoch, before and now, if it had a leader.
        epochs: (Option<i32>, Option<i32>),
    },
    /// The disk has kept nothing of a partition that there was.
    Gone(TopicPartition),
    /// It reads only what is committed.
    Careful(Life),
    /// Records of a transaction lie here, from this offset up to that one.
    Undecided(TopicPartition, i64, i64),
    /// They are committed, or aborted.
    Decided(TopicPartition, i64, i64, bool),
    /// Their producer was told so, or knows it.
    Promised(TopicPartition, i64, i64, bool),
    /// A mark lies here, which is no record.
    Mark(TopicPartition, i64),
    /// A producer that was replaced has done something that counts.
    Outlived(String),
    /// What is committed for the group of a transactional producer.
    Offsets {
        /// Whose.
        who: String,
        /// What it may be.
        possible: BTreeSet<Option<i64>>,
        /// What it is.
        found: Option<i64>,
    },
    /// Nothing bad happens from now on.
    Healed,
    /// The group had come to rest and everything was delivered.
    Settled(Duration),
    /// It had not within the time it has for that.
    Unsettled(String),
    /// What was asked of the brokers while nothing happened.
    Rested {
        /// How many consumers there were.
        members: usize,
        /// How many requests came.
        requests: u64,
        /// How many of them joined or synced.
        joins: u64,
        /// How long that took.
        time: Duration,
    },
    /// Where a member stands in a partition, and where its log ends, when everything has been handed out.
    Position(Life, TopicPartition, i64, i64),
    /// What is kept for a member at rest.
    Keeps {
        /// Whose.
        who: Life,
        /// Its connections.
        connections: usize,
        /// What its machine has said and it has not heard.
        unheard: usize,
        /// How many brokers there are.
        nodes: usize,
    },
    /// When a member at rest wants to be woken, and when it has to be at the latest.
    Wakes(Life, Option<Duration>, Duration),
    /// The group as a coordinator has it that has just read its log, and as the one before had it.
    Replayed {
        /// As it was before.
        live: String,
        /// As it was read.
        read: String,
    },
    /// What members wrote down does not fit together.
    Unfit(String),
    /// More happened at one point in time than can be right.
    Storm(String),
    /// Offsets of a log at the end of the run.
    Log(TopicPartition, i64, i64),
    /// The run is over.
    End,
}

fn list(partitions: &[TopicPartition]) -> String {
    if partitions.is_empty() {
        return "nothing".into();
    }
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(who, protocol, None) => write!(f, "{who} starts, {}", protocol.name()),
            Self::Started(who, protocol, Some(instance)) => {
                write!(f, "{who} starts as static member {instance}, {}", protocol.name())
            }
            Self::Crashed(who) => write!(f, "{who} crashes"),
            Self::Left(who) => write!(f, "{who} has left"),
            Self::Named(who, name) => write!(f, "{who} is {name}"),
            Self::Began(who, kind, what) => write!(f, "{who} hears {kind:?} {}", list(what)),
            Self::Returned(who, kind, what) => write!(f, "{who} has handled {kind:?} {}", list(what)),
            Self::Delivered(who, what, from, to) => write!(f, "{who} gets {what} {from}..{to}"),
            Self::Stale(who, what, from, to) => {
                write!(f, "{who} gets {what} {from}..{to}, of a topic that is gone")
            }
            Self::Outdated(who, what) => write!(f, "{who} got {} of topics that are gone", list(what)),
            Self::Garbled(who, what, why) => write!(f, "{who} gets garbled records of {what}: {why}"),
            Self::Sought(who, what, to) => write!(f, "{who} seeks to {to} in {what}"),
            Self::Members(names) => write!(f, "the coordinator's members are {names:?}"),
            Self::Committed(who, what, to) => write!(f, "the coordinator stores {to} for {what}, from {who}"),
            Self::Failed(who, why) => write!(f, "{who} is told: {why}"),
            Self::Said(who, what) => write!(f, "  {who} {what}"),
            Self::Group(what) => write!(f, "the group: {what}"),
            Self::Done(what) => write!(f, "* {what}"),
            Self::Deleted(topic) => write!(f, "* topic {topic} is deleted"),
            Self::Dark(Outage::Process, _) => f.write_str("* the brokers' process is killed"),
            Self::Dark(Outage::Machine, Loss::Nothing) => f.write_str("* the brokers' machine loses power"),
            Self::Dark(Outage::Machine, Loss::Recent(time)) => {
                write!(f, "* the brokers' machine loses power, and perhaps the last {} ms", time.as_millis())
            }
            Self::Dark(Outage::Machine, Loss::Anything) => {
                f.write_str("* the brokers' machine loses power, and whatever it likes")
            }
            Self::Written(what, to) => write!(f, "{what} is written up to {to}"),
            Self::Kept { what, end, committed: Some(offset), .. } => {
                write!(f, "{what} ends at {end} on the disk, and {offset} is committed")
            }
            Self::Kept { what, end, committed: None, .. } => write!(f, "{what} ends at {end} on the disk"),
            Self::Gone(what) => write!(f, "{what} is not on the disk any more"),
            Self::Careful(who) => write!(f, "{who} reads what is committed only"),
            Self::Undecided(what, from, to) => write!(f, "{what} {from}..{to} belong to a transaction"),
            Self::Decided(what, from, to, committed) => {
                write!(f, "{what} {from}..{to} are {}", if *committed { "committed" } else { "aborted" })
            }
            Self::Promised(what, from, to, committed) => {
                let how = if *committed { "committed" } else { "aborted" };
                write!(f, "the producer of {what} {from}..{to} knows that they are {how}")
            }
            Self::Mark(what, at) => write!(f, "{what} has a mark at {at}"),
            Self::Outlived(what) => f.write_str(what),
            Self::Offsets { who, found, .. } => write!(f, "{found:?} is committed with {who}"),
            Self::Healed => f.write_str("* nothing bad happens from now on"),
            Self::Settled(after) => write!(f, "settled after {} ms", after.as_millis()),
            Self::Unsettled(why) => write!(f, "not settled: {why}"),
            Self::Rested { members, requests, joins, time } => {
                let seconds = time.as_secs_f64();
                write!(f, "at rest: {members} members, {requests} requests, {joins} joins in {seconds:.1} s")
            }
            Self::Position(who, what, at, end) => write!(f, "{who} is at {at} of {end} in {what}"),
            Self::Keeps { who, connections, unheard, .. } => {
                write!(f, "{who} has {connections} connections and has not heard {unheard} things")
            }
            Self::Wakes(who, Some(after), _) => write!(f, "{who} wakes after {} ms", after.as_millis()),
            Self::Wakes(who, None, _) => write!(f, "{who} never wakes by itself"),
            Self::Replayed { live, read } if live == read => {
                f.write_str("the log holds what the coordinator has")
            }
            Self::Replayed { .. } => f.write_str("the log does not hold what the coordinator has"),
            Self::Unfit(what) => write!(f, "the members' own logs: {what}"),
            Self::Storm(what) => write!(f, "storm: {what}"),
            Self::Log(what, from, to) => write!(f, "{what} holds {from}..{to}"),
            Self::End => f.write_str("the end"),
        }
    }
}
