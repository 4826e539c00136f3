//! Simulates groups of Kafka consumers and an embedded broker in one thread and in virtual time.
//!
//! Everything is drawn from one seed, and the same seed gives the same run. The machines are those of production: only
//! sockets and clocks are replaced. A run has a time of trouble, then nothing bad happens any more and the group has to
//! come to rest; invariants watch all the time.
//!
//! Some runs have brokers with a disk (`disk`): their process is killed, their machine loses power, also in the middle of a
//! write, and the disk is full, slow, or does not sync; what was acknowledged has to be there again. Some have transactional
//! producers (`producers`) and members that read only what is committed. More than half have neither. What they do is drawn
//! apart from everything else.
//!
//! That this crate builds is the proof that wire, group and the state machines of client and broker need no runtime.

mod app;
mod brokers;
mod client;
mod consumers;
pub mod cuts;
pub mod disk;
pub mod fact;
pub mod fate;
mod hidden;
mod holders;
pub mod invariants;
pub mod lie;
mod network;
pub mod orders;
mod phases;
pub mod producers;
pub mod random;
pub mod report;
mod scan;
pub mod script;
pub mod shrink;
mod trouble;
pub mod workload;
mod world;

use cuts::Cuts;
pub use fact::{Fact, Life};
use lie::{Lie, Slip};
pub use report::{Counts, Failure};
use std::time::Duration;
use tontine_group::Instant;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run's seed.
    pub seed: u64,
    /// Everything that happened.
    pub history: Vec<(Instant, Fact)>,
    /// How often what happened.
    pub counts: Counts,
    /// How long the run took in its own time.
    pub time: Duration,
    /// How many troubles there were to be.
    pub troubles: u64,
    /// How long trouble lasted, in milliseconds.
    pub trouble_ms: u64,
    /// How many members there were at first.
    pub members: u64,
    /// Whether the brokers kept things on a disk.
    pub on_disk: bool,
    /// Whether somebody wrote in transactions.
    pub has_transactions: bool,
    /// What did not hold.
    pub failure: Option<Failure>,
}

/// Runs one history.
pub fn run(seed: u64) -> Outcome {
    replay(seed, &Cuts::default(), false)
}

/// Runs one history without what is cut out of it; with requests and answers in its timeline, when they are asked for.
pub fn replay(seed: u64, cuts: &Cuts, requests: bool) -> Outcome {
    let mut world = world::World::new(seed, cuts, None);
    world.verbose = requests;
    world.live(seed, cuts)
}

/// Runs one history with members that err.
pub fn run_with_slip(seed: u64, slip: Slip) -> Outcome {
    let mut world = world::World::new(seed, &Cuts::default(), None);
    world.slip = Some(slip);
    world.live(seed, &Cuts::default())
}

/// Runs one history with brokers that lie.
pub fn run_with_lie(seed: u64, cuts: &Cuts, lie: Box<dyn Lie>) -> Outcome {
    world::World::new(seed, cuts, Some(lie)).live(seed, cuts)
}
