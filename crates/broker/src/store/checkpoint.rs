//! Up to where each log was durable: after an unclean end only what is behind has to be doubted.
//!
//! The file and its format are Kafka's `recovery-point-offset-checkpoint`. A file that cannot be read is one that says
//! nothing. Mirrors `OffsetCheckpointFile`.

use super::StoreError;
use crate::disk::{Disk, replace};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

const FILE: &str = "recovery-point-offset-checkpoint";

/// What the file says.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    flushed: BTreeMap<(String, i32), i64>,
}

impl Checkpoint {
    pub(super) fn read(disk: &dyn Disk) -> Result<Self, StoreError> {
        let bytes = disk.read(FILE).map_err(|error| StoreError::io(disk, FILE, error))?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let mut lines = text.lines();
        let (version, count) = (lines.next(), lines.next().and_then(|line| line.parse::<usize>().ok()));
        let flushed: BTreeMap<_, _> = lines.filter_map(entry).collect();
        let whole = version == Some("0") && count == Some(flushed.len());
        Ok(Self { flushed: if whole { flushed } else { BTreeMap::new() } })
    }

    /// Everything before this offset was durable.
    pub(super) fn flushed(&self, topic: &str, index: i32) -> i64 {
        self.flushed.get(&(topic.to_owned(), index)).copied().unwrap_or(0)
    }

    pub(super) fn write<'t>(
        &mut self,
        disk: &dyn Disk,
        flushed: impl Iterator<Item = (&'t str, i32, i64)>,
    ) -> io::Result<()> {
        let known = flushed.filter(|(.., offset)| *offset > 0);
        let flushed = known.map(|(topic, index, offset)| ((topic.to_owned(), index), offset)).collect();
        if self.flushed == flushed {
            return Ok(());
        }
        self.flushed = flushed;
        self.store(disk)
    }

    fn store(&self, disk: &dyn Disk) -> io::Result<()> {
        let mut text = format!("0\n{}\n", self.flushed.len());
        for ((topic, index), offset) in &self.flushed {
            let _ = writeln!(text, "{topic} {index} {offset}");
        }
        replace(disk, FILE, text.as_bytes(), true)
    }

    /// A topic of this name may come again with other records.
    pub(super) fn forget(&mut self, disk: &dyn Disk, topic: &str) {
        let before = self.flushed.len();
        self.flushed.retain(|(known, _), _| known != topic);
        if self.flushed.len() < before {
            // The logs are removed next; should they come back, they are only read with more doubt than is needed.
            let _ = self.store(disk);
        }
    }
}

fn entry(line: &str) -> Option<((String, i32), i64)> {
    let mut words = line.split(' ');
    let (topic, index, offset) = (words.next()?, words.next()?, words.next()?);
    Some(((topic.to_owned(), index.parse().ok()?), offset.parse().ok()?))
}
