//! The audit for tests against a cluster: embedded or Apache Kafka, in one process or in many.

use std::{fs, io, path::PathBuf};
use tontine::audit::Audit;

/// A folder for audit logs, and the proof that they fit together.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// let run = tontine_test::AuditedRun::new()?;
/// // For each member, in this process or another: Consumer::builder().set("audit.log", run.log("a")) ..
/// # let _ = run.log("a");
/// // When the members are closed:
/// run.check();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AuditedRun {
    folder: tempfile::TempDir,
}

impl AuditedRun {
    /// A folder of its own, which goes when this is dropped.
    pub fn new() -> io::Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    /// `audit.log` of one member.
    pub fn log(&self, member: &str) -> String {
        self.path(member).display().to_string()
    }

    fn path(&self, member: &str) -> PathBuf {
        self.folder.path().join(format!("{member}.audit"))
    }

    /// Puts the logs together.
    ///
    /// # Panics
    ///
    /// With a sentence for each thing that does not fit, or when a log cannot be read.
    pub fn check(&self) {
        let mut audit = Audit::default();
        for (name, text) in self.read() {
            if let Err(why) = audit.read(&name, &text) {
                panic!("{why}");
            }
        }
        let verdict = audit.judge();
        assert!(verdict.is_clean(), "{verdict}");
    }

    /// How many lines the members have written.
    pub fn lines(&self) -> usize {
        self.read().iter().map(|(_, text)| text.lines().count()).sum()
    }

    fn read(&self) -> Vec<(String, String)> {
        let files = fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        let mut logs: Vec<_> = files
            .map(|file| {
                let name = file.file_name().to_string_lossy().into_owned();
                match fs::read_to_string(file.path()) {
                    Ok(text) => (name, text),
                    Err(error) => panic!("{name}: {error}"),
                }
            })
            .collect();
        logs.sort();
        logs
    }
}
