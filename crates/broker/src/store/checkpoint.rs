//! Up to where each log was durable: after an unclean end only what is behind has to be doubted.
//!
//! The file is Kafka's `recovery-point-offset-checkpoint`; behind each offset it names the topic's id, because a topic may
//! have come again under the name with other records. A file that cannot be read is one that says nothing. Mirrors
//! `OffsetCheckpointFile`.

use super::StoreError;
use crate::disk::Disk;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tontine_wire::Uuid;

const FILE: &str = "recovery-point-offset-checkpoint";

#[derive(Debug, Clone, PartialEq, Eq)]
struct Point {
    offset: i64,
    /// Whose it is; none in a file of an earlier version.
    id: Option<Uuid>,
}

type Points = BTreeMap<(String, i32), Point>;

/// What the file says.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    points: Points,
}

impl Checkpoint {
    pub(super) fn read(disk: &dyn Disk) -> Result<Self, StoreError> {
        let bytes = disk.read(FILE).map_err(|error| StoreError::io(disk, FILE, error))?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let mut lines = text.lines();
        let (version, count) = (lines.next(), lines.next().and_then(|line| line.parse::<usize>().ok()));
        let points: Points = lines.filter_map(entry).collect();
        let whole = version == Some("0") && count == Some(points.len());
        Ok(Self { points: if whole { points } else { BTreeMap::new() } })
    }

    /// Everything before this offset was durable.
    pub(super) fn flushed(&self, topic: &str, id: Uuid, index: i32) -> i64 {
        let point = self.points.get(&(topic.to_owned(), index));
        point.filter(|point| point.id.is_none_or(|known| known == id)).map_or(0, |point| point.offset)
    }

    /// Takes in how far logs are durable; the file and its text when that is news.
    pub(super) fn update<'t>(
        &mut self,
        flushed: impl Iterator<Item = (&'t str, Uuid, i32, i64)>,
    ) -> Option<(&'static str, String)> {
        let known = flushed.filter(|(.., offset)| *offset > 0);
        let points = known
            .map(|(topic, id, index, offset)| ((topic.to_owned(), index), Point { offset, id: Some(id) }))
            .collect();
        if self.points == points {
            return None;
        }
        self.points = points;
        let mut text = format!("0\n{}\n", self.points.len());
        for ((topic, index), Point { offset, id }) in &self.points {
            let id = id.map(|id| format!(" {id}")).unwrap_or_default();
            let _ = writeln!(text, "{topic} {index} {offset}{id}");
        }
        Some((FILE, text))
    }
}

fn entry(line: &str) -> Option<((String, i32), Point)> {
    let mut words = line.split(' ');
    let (topic, index, offset) = (words.next()?, words.next()?, words.next()?);
    let id = words.next().map(str::parse).transpose().ok()?;
    Some(((topic.to_owned(), index.parse().ok()?), Point { offset: offset.parse().ok()?, id }))
}
