//! What is counted, and what must hold of it.

use crate::{Outcome, source::Places};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tontine::audit::{Audit, Verdict};

/// Clocks of one machine agree; what one process notices, it writes down a little later.
const TOLERANCE_MS: u32 = 50;

/// What has happened so far.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    delivered: Places,
    elsewhere: Places,
    deliveries: u64,
    committed: BTreeMap<i32, i64>,
    looks: u64,
    backwards: Vec<String>,
    troubles: BTreeMap<&'static str, u64>,
    notes: Vec<String>,
}

impl Tally {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn delivered(&self, partition: i32, offset: i64) {
        let mut counts = self.counts();
        counts.deliveries += 1;
        counts.delivered.insert((partition, offset));
    }

    /// What others have read, all of it again each time.
    pub fn delivered_elsewhere(&self, places: Places) {
        self.counts().elsewhere = places;
    }

    /// What is committed, as it was seen just now.
    pub fn committed(&self, offsets: impl Iterator<Item = (i32, i64)>) {
        let mut counts = self.counts();
        counts.looks += 1;
        for (partition, offset) in offsets {
            let before = counts.committed.insert(partition, offset).unwrap_or(0);
            if offset < before {
                counts.backwards.push(format!("partition {partition} went from {before} to {offset}"));
            }
        }
    }

    pub fn trouble(&self, what: &'static str) {
        *self.counts().troubles.entry(what).or_default() += 1;
    }

    pub fn note(&self, what: String) {
        self.counts().notes.push(what);
    }

    pub fn report(&self) -> String {
        let counts = self.counts();
        let mut report = String::new();
        for (what, count) in &counts.troubles {
            let _ = writeln!(report, "{count:>8}  {what}");
        }
        let again = counts.deliveries - counts.delivered.len() as u64;
        let _ = writeln!(report, "{:>8}  records delivered", counts.delivered.len());
        let _ = writeln!(report, "{again:>8}  of them once more");
        let _ = writeln!(report, "{:>8}  records delivered to Java members", counts.elsewhere.len());
        let _ = write!(report, "{:>8}  looks at what is committed", counts.looks);
        for note in &counts.notes {
            let _ = write!(report, "\n          {note}");
        }
        report
    }

    /// Everything acknowledged was delivered, and no commit went backwards.
    pub fn check(&self, acknowledged: &Places) -> Outcome {
        let counts = self.counts();
        let missing: Vec<_> = acknowledged
            .difference(&counts.delivered)
            .filter(|place| !counts.elsewhere.contains(place))
            .collect();
        if let Some(first) = missing.first() {
            return Err(format!(
                "{} of {} acknowledged records were never delivered, the first (partition, offset) {first:?}",
                missing.len(),
                acknowledged.len()
            )
            .into());
        }
        match counts.backwards.first() {
            Some(first) => Err(format!("{} commits went backwards: {first}", counts.backwards.len()).into()),
            None => Ok(()),
        }
    }
}

/// What the audit logs of our members say together.
pub struct Ownership(Verdict);

pub fn audit(dir: &Path, group: &str) -> Outcome<Ownership> {
    let mut audit = Audit::new(TOLERANCE_MS);
    let files = std::fs::read_dir(dir).map_err(|e| format!("no audit logs: {e}"))?;
    for file in files.flatten() {
        let text = std::fs::read_to_string(file.path()).map_err(|e| format!("{:?}: {e}", file.path()))?;
        audit.read(&file.file_name().to_string_lossy(), &text)?;
    }
    let verdict = audit.judge();
    if verdict.ownerships == 0 {
        return Err(format!("no member of {group} wrote an audit log").into());
    }
    Ok(Ownership(verdict))
}

impl Ownership {
    pub fn counts(&self) -> String {
        let Verdict { ownerships, unfinished, commits, .. } = &self.0;
        format!(
            "{ownerships:>8}  ownerships in the audit logs\n{unfinished:>8}  of them without an end: killed\n{commits:>8}  commits in them"
        )
    }

    /// No two owners, and no commit after the end. What a Java member has read is in nobody's log: that everything was
    /// read is checked otherwise.
    pub fn check(&self) -> Outcome {
        let problems: Vec<_> =
            self.0.problems.iter().filter(|problem| !problem.what.contains("handed out to nobody")).collect();
        match problems.first() {
            Some(first) => Err(format!("{} problems in the audit logs: {first:?}", problems.len()).into()),
            None => Ok(()),
        }
    }
}
