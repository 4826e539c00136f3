//! The log of the metadata: one record for each thing that is to be known at the next start, the newest one counts.

use super::{StoreError, StoredTopic, topic_record};
use crate::disk::Disk;
use crate::log::{self, DURABLE, Damage, Flush, LastEnd, Layout, Log, Notes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tontine_wire::ErrorCode;
use tontine_wire::records::{BatchBuilder, Compression, RecordBatch};

/// Its directory. No partition's can have this name: those end with a number.
pub(super) const DIR: &str = "metadata";
/// How often the directory was opened after an unclean end.
pub(super) const STARTS: &str = "starts";
/// The first producer id that was not given out.
pub(super) const PRODUCER_IDS: &str = "producer-ids";
const TOPIC: &str = "topic ";
const SETTING: &str = "setting ";
const GROUP: &str = "group ";

const LAYOUT: Layout =
    Layout { segment_bytes: 16 << 20, segment_ms: i64::MAX, index_interval: 4096, flush: Flush::ALWAYS };

pub(super) fn topic_key(name: &str) -> String {
    format!("{TOPIC}{name}")
}

pub(super) fn setting_key(key: &str) -> String {
    format!("{SETTING}{key}")
}

pub(super) fn group_key(group: &str) -> String {
    format!("{GROUP}{group}")
}

/// Keys and values as lines of text.
pub(super) fn lines<'a>(configs: impl Iterator<Item = (&'static str, &'a str)>) -> String {
    configs.map(|(key, value)| format!("{key} {}\n", value.replace(['\n', '\r'], " "))).collect()
}

/// What the records say.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) topics: BTreeMap<String, StoredTopic>,
    /// Topics that were deleted and did not come again.
    pub(super) deleted: BTreeSet<String>,
    pub(super) settings: BTreeMap<String, String>,
    /// By group.
    pub(super) groups: BTreeMap<String, Vec<(String, String)>>,
    pub(super) starts: i32,
    pub(super) producer_ids: i64,
}

#[derive(Debug)]
pub(super) struct Journal {
    log: Log,
}

impl Journal {
    pub(super) fn open(
        disk: &Arc<dyn Disk>,
        last_end: LastEnd,
        notes: &Notes,
    ) -> Result<(Self, Content), StoreError> {
        let opened = log::open(disk, DIR, LAYOUT, notes, last_end, Damage::Refuse)?;
        let log = Log::reopened(opened, 0);
        let mut content = Content::default();
        for batch in log.batches() {
            read(&mut content, &batch).map_err(|why| {
                let place = format!("{}, offset {}", disk.shown(DIR), batch.base_offset());
                StoreError::damaged(place, 0, why)
            })?;
        }
        Ok((Self { log }, content))
    }

    pub(super) fn put(&mut self, key: &str, value: &str, now_ms: i64) -> Result<(), ErrorCode> {
        self.append(key, Some(value.as_bytes()), now_ms)
    }

    pub(super) fn delete(&mut self, key: &str, now_ms: i64) -> Result<(), ErrorCode> {
        self.append(key, None, now_ms)
    }

    fn append(&mut self, key: &str, value: Option<&[u8]>, now_ms: i64) -> Result<(), ErrorCode> {
        let mut builder = BatchBuilder::new(Compression::None);
        let durable = self.log.flushed().unwrap_or_default().to_string();
        let told = std::iter::once((DURABLE, Some(durable.as_bytes())));
        let built = builder.append(now_ms, Some(key.as_bytes()), value, told);
        built.map_err(|_| ErrorCode::MESSAGE_TOO_LARGE)?;
        let batch = RecordBatch::parse(&mut builder.build(0)).ok().flatten();
        let batch = batch.ok_or(ErrorCode::MESSAGE_TOO_LARGE)?;
        self.log.append(batch, 0, None, now_ms).map(|_| ())
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    pub(super) fn close(&mut self) -> Result<(), ErrorCode> {
        self.log.close()
    }
}

fn read(content: &mut Content, batch: &RecordBatch) -> Result<(), String> {
    let records = batch.records().map_err(|error| error.to_string())?;
    for record in records.iter() {
        let record = record.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let key = record.key().map(text).unwrap_or_default();
        take(content, &key, record.value().map(text))?;
    }
    Ok(())
}

/// Records of a kind that is not known are stepped over.
fn take(content: &mut Content, key: &str, value: Option<String>) -> Result<(), String> {
    let number =
        |value: &Option<String>| value.as_deref().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    if let Some(name) = key.strip_prefix(TOPIC) {
        match value {
            None => {
                content.topics.remove(name);
                content.deleted.insert(name.to_owned());
            }
            Some(value) => {
                let topic = topic_record::decode(name, &value);
                let topic = topic.ok_or_else(|| format!("the record of topic `{name}` cannot be read"))?;
                content.deleted.remove(name);
                content.topics.insert(name.to_owned(), topic);
            }
        }
    } else if let Some(key) = key.strip_prefix(SETTING) {
        match value {
            Some(value) => content.settings.insert(key.to_owned(), value),
            None => content.settings.remove(key),
        };
    } else if let Some(group) = key.strip_prefix(GROUP) {
        match value {
            Some(value) => {
                let line = |line: &str| line.split_once(' ').map(|(key, value)| (key.into(), value.into()));
                content.groups.insert(group.to_owned(), value.lines().filter_map(line).collect());
            }
            None => drop(content.groups.remove(group)),
        }
    } else if key == STARTS {
        content.starts = i32::try_from(number(&value)).unwrap_or(i32::MAX);
    } else if key == PRODUCER_IDS {
        content.producer_ids = number(&value);
    }
    Ok(())
}
