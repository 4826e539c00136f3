//! Failures in words, and counts of what happened.

use crate::{cuts::Cuts, fact::Fact};
use std::{borrow::Cow, collections::BTreeMap, fmt};
use tontine_group::Instant;

/// Why a run failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The run's seed.
    pub seed: u64,
    /// What was left out of the history.
    pub cuts: Cuts,
    /// The invariant that does not hold.
    pub invariant: &'static str,
    /// What is wrong.
    pub why: String,
    /// Everything that happened until then.
    pub history: Vec<(Instant, Fact)>,
}

/// How much of a timeline is shown.
const SHOWN: usize = 150;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: \"{}\" does not hold: {}", self.seed, self.invariant, self.why)?;
        if !self.cuts.is_empty() {
            writeln!(
                f,
                "this is the shortest history found in which it does not; the whole one: --seed {}",
                self.seed
            )?;
        }
        self.timeline(f, "--full shows them")?;
        write!(f, "replay: cargo run --release -p tontine-sim -- --seed {}{}", self.seed, self.cuts)
    }
}

impl Failure {
    /// As a test tells it: there is no command that replays it but the test itself.
    pub fn in_a_test(&self) -> impl fmt::Display + '_ {
        struct InATest<'a>(&'a Failure);
        impl fmt::Display for InATest<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                writeln!(f, "\"{}\" does not hold: {}", self.0.invariant, self.0.why)?;
                self.0.timeline(f, "the last ones matter most")
            }
        }
        InATest(self)
    }

    /// The last entries, without what only invariants read.
    fn timeline(&self, f: &mut fmt::Formatter<'_>, hint: &str) -> fmt::Result {
        let told: Vec<_> = self
            .history
            .iter()
            .filter(|(_, fact)| {
                !matches!(fact, Fact::Members(_) | Fact::Written(..) | Fact::Mark(..) | Fact::Undecided(..))
            })
            .collect();
        let skipped = told.len().saturating_sub(SHOWN);
        if skipped > 0 {
            writeln!(f, "  ({skipped} earlier entries are left out; {hint})")?;
        }
        told.into_iter().skip(skipped).try_for_each(|entry| writeln!(f, "{}", line(entry)))
    }
}

/// One entry of a timeline.
pub fn line((at, fact): &(Instant, Fact)) -> String {
    format!("{:>9.3} s  {fact}", at.since_origin().as_secs_f64())
}

/// How often what happened, over many runs.
#[derive(Clone, Debug, Default)]
pub struct Counts(pub BTreeMap<Cow<'static, str>, u64>);

impl Counts {
    /// One more of this.
    pub fn count(&mut self, what: impl Into<Cow<'static, str>>) {
        self.add(what, 1);
    }

    /// This many more of this.
    pub fn add(&mut self, what: impl Into<Cow<'static, str>>, many: u64) {
        *self.0.entry(what.into()).or_default() += many;
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        for (what, many) in &other.0 {
            self.add(what.clone(), *many);
        }
    }

    /// How often this happened.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, many)| writeln!(f, "{many:>12}  {what}"))
    }
}
