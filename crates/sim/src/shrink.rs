//! Makes a failing history shorter, as long as the same invariant still fails: troubles, members and time that do not matter
//! are left out, so that what is left tells the cause.

use crate::{Outcome, cuts::Cuts, replay};

/// The shortest failing history that was found.
struct Shrinking<'a> {
    seed: u64,
    invariant: &'static str,
    best: (Cuts, Outcome),
    runs: usize,
    attempt: &'a mut dyn FnMut(u64, &Cuts) -> Outcome,
}

/// Shortens a failing history with so many attempts at most. What comes back fails in the same way, and says with its failure
/// what was left out.
pub fn shrink(failing: Outcome, runs: usize) -> Outcome {
    shrink_with(failing, runs, &mut |seed, cuts| replay(seed, cuts, false))
}

/// As [`shrink`], with runs of one's own.
pub fn shrink_with(failing: Outcome, runs: usize, attempt: &mut dyn FnMut(u64, &Cuts) -> Outcome) -> Outcome {
    let Some(failure) = &failing.failure else { return failing };
    let (invariant, cuts) = (failure.invariant, failure.cuts.clone());
    let mut shrinking = Shrinking { seed: failing.seed, invariant, best: (cuts, failing), runs, attempt };
    loop {
        let before = shrinking.best.0.clone();
        shrinking.take_away_the_disk();
        shrinking.take_away_the_producers();
        shrinking.shorten_trouble();
        shrinking.drop_troubles();
        shrinking.drop_members();
        shrinking.write_less();
        if shrinking.best.0 == before || shrinking.runs == 0 {
            return shrinking.best.1;
        }
    }
}

impl Shrinking<'_> {
    /// Whether the same invariant still fails with these cuts: then they are the best so far.
    fn still_fails(&mut self, cuts: Cuts) -> bool {
        if self.runs == 0 || cuts == self.best.0 {
            return false;
        }
        self.runs -= 1;
        let outcome = (self.attempt)(self.seed, &cuts);
        let fails = outcome.failure.as_ref().is_some_and(|failure| failure.invariant == self.invariant);
        if fails {
            self.best = (cuts, outcome);
        }
        fails
    }

    fn take_away_the_disk(&mut self) {
        if self.best.1.on_disk {
            self.still_fails(Cuts { no_disk: true, ..self.best.0.clone() });
        }
    }

    fn take_away_the_producers(&mut self) {
        if self.best.1.has_transactions {
            self.still_fails(Cuts { no_transactions: true, ..self.best.0.clone() });
        }
    }

    /// Heals earlier, and earlier yet.
    fn shorten_trouble(&mut self) {
        let longest = self.best.0.trouble_ms.unwrap_or(self.best.1.trouble_ms);
        for part in [0, 1, 2, 4, 6, 7] {
            let cuts = Cuts { trouble_ms: Some(longest * part / 8), ..self.best.0.clone() };
            if self.still_fails(cuts) {
                return;
            }
        }
    }

    /// Leaves out all troubles, halves, quarters, and so on to each alone.
    fn drop_troubles(&mut self) {
        let kept = |best: &(Cuts, Outcome)| {
            (0..best.1.troubles).filter(|number| !best.0.troubles.contains(number)).collect::<Vec<_>>()
        };
        let mut size = kept(&self.best).len();
        while size > 0 && self.runs > 0 {
            // The later ones first: those after the failure cannot matter.
            for chunk in kept(&self.best).rchunks(size) {
                let mut cuts = self.best.0.clone();
                cuts.troubles.extend(chunk);
                self.still_fails(cuts);
            }
            size /= 2;
        }
    }

    fn drop_members(&mut self) {
        let members = self.best.0.members.unwrap_or(self.best.1.members);
        for fewer in 1..members {
            if self.still_fails(Cuts { members: Some(fewer), ..self.best.0.clone() }) {
                return;
            }
        }
    }

    fn write_less(&mut self) {
        for ms in [5_000, 1_000] {
            if self.best.0.produce_ms.is_none_or(|now| now < ms)
                && self.still_fails(Cuts { produce_ms: Some(ms), ..self.best.0.clone() })
            {
                return;
            }
        }
    }
}
