//! The log on a disk that goes away: at each single operation of a workload, with what may be left of it.

use super::*;
use crate::disk::{Disk, Outage, SimulatedDisk};
use std::collections::BTreeMap;
use std::sync::Arc;
use tontine_wire::records::{BatchBuilder, Compression};

const DIR: &str = "orders-0";

struct Dice(u64);

impl Dice {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn layout(flush: Flush) -> Layout {
    Layout { segment_bytes: 700, segment_ms: i64::MAX, index_interval: 100, flush }
}

fn batch(producer: i64, sequence: i32, records: &[(String, String)]) -> RecordBatch {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.producer(producer, 0, sequence);
    for (key, value) in records {
        builder.append(1000, Some(key.as_bytes()), Some(value.as_bytes()), []).unwrap();
    }
    RecordBatch::parse(&mut builder.build(0)).unwrap().unwrap()
}

/// What was acknowledged.
#[derive(Default)]
struct Model {
    records: BTreeMap<i64, (String, String)>,
    start: i64,
    end: i64,
    compacted: bool,
    /// What was on its way when the disk went: it may be there or not.
    pending_start: i64,
    /// Acknowledged before this offset and durable by the policy.
    flushed: i64,
}

/// A change, and what is answered for when it is durable.
type Unanswered = (u64, Box<dyn FnOnce(&mut Model)>);

struct Run {
    log: Log,
    model: Model,
    dice: Dice,
    disk: SimulatedDisk,
    sequences: BTreeMap<i64, i32>,
    compaction: Option<Compaction>,
    flushing: Option<Flushing>,
    unanswered: Vec<Unanswered>,
}

impl Run {
    fn begin(disk: &SimulatedDisk, seed: u64, flush: Flush) -> Self {
        let handle: Arc<dyn Disk> = Arc::new(disk.clone());
        let storage = OnDisk::new(handle, DIR.into(), layout(flush), Notes::default());
        let log = Log::new(Box::new(storage), 0);
        let (compaction, flushing, unanswered) = (None, None, Vec::new());
        let (disk, sequences) = (disk.clone(), BTreeMap::new());
        let (model, dice) = (Model::default(), Dice(seed));
        Self { log, model, dice, disk, sequences, compaction, flushing, unanswered }
    }

    /// One step of the workload; an error is the disk's. Syncs and compactions are begun, done and taken in at
    /// different steps, and other things happen in between.
    fn step(&mut self, number: u64) -> Result<(), ErrorCode> {
        match self.dice.below(24) {
            0 => {
                let offset = self.model.start + (self.model.end - self.model.start) / 2;
                self.delete_before(offset);
            }
            1 => {
                let size = self.log.size();
                let change = self.log.retain(Some(size / 2), None)?;
                self.deleted(self.log.start(), change);
            }
            2 | 3 => self.go_on_compacting()?,
            // Nobody does that while a sync is on its way.
            4 if self.flushing.is_none() => {
                self.log.flush()?;
                self.model.flushed = self.model.end;
                self.answer();
            }
            5 => self.log.roll()?,
            6 => self.remove_rubbish()?,
            7..=11 => self.flush_a_step()?,
            _ => self.append(number)?,
        }
        Ok(())
    }

    fn delete_before(&mut self, offset: i64) {
        let change = self.log.delete_before(offset);
        self.deleted(offset, change);
    }

    fn deleted(&mut self, offset: i64, change: Option<u64>) {
        self.model.pending_start = self.model.pending_start.max(offset);
        if let Some(change) = change {
            let answered = move |model: &mut Model| model.start = model.start.max(offset);
            self.unanswered.push((change, Box::new(answered)));
        }
    }

    /// A sync is begun, or one that was begun is done.
    fn flush_a_step(&mut self) -> Result<(), ErrorCode> {
        match self.flushing.take() {
            None => self.flushing = self.log.begin_flush(),
            Some(flushing) => {
                let result = flushing.run();
                self.log.end_flush(&flushing, result)?;
                self.answer();
            }
        }
        Ok(())
    }

    fn answer(&mut self) {
        let durable = self.log.durable();
        let (ready, waiting) =
            std::mem::take(&mut self.unanswered).into_iter().partition(|(change, _)| *change <= durable);
        self.unanswered = waiting;
        let ready: Vec<Unanswered> = ready;
        ready.into_iter().for_each(|(_, answer)| answer(&mut self.model));
    }

    /// A compaction is begun, or the next part of it is written and swapped in.
    fn go_on_compacting(&mut self) -> Result<(), ErrorCode> {
        self.model.compacted = true;
        let Some(mut compaction) = self.compaction.take() else {
            self.compaction = self.log.compact(i64::MIN, Arc::default());
            return if self.log.is_broken() { Err(ErrorCode::KAFKA_STORAGE_ERROR) } else { Ok(()) };
        };
        let result = compaction.run();
        let failed = result.is_err();
        self.compaction = self.log.go_on_compacting(compaction, result);
        if failed || self.log.is_broken() { Err(ErrorCode::KAFKA_STORAGE_ERROR) } else { Ok(()) }
    }

    fn remove_rubbish(&mut self) -> Result<(), ErrorCode> {
        let disk = &self.disk;
        let removed = self.log.take_rubbish().iter().try_for_each(|file| {
            disk.sync_dir(DIR)?;
            disk.remove_file(file)
        });
        removed.map_err(|_| ErrorCode::KAFKA_STORAGE_ERROR)
    }

    fn append(&mut self, number: u64) -> Result<(), ErrorCode> {
        let producer = self.dice.below(3) as i64 - 1;
        let count = 1 + self.dice.below(3);
        let records: Vec<_> = (0..count)
            .map(|at| {
                (format!("key{}", self.dice.below(6)), format!("value {number} {at} {}", "x".repeat(30)))
            })
            .collect();
        let sequence = self.sequences.get(&producer).copied().unwrap_or(0);
        let sequence = if producer < 0 { -1 } else { sequence };
        let appended = self.log.append(batch(producer, sequence, &records), 0, None, 1000)?;
        if producer >= 0 {
            self.sequences.insert(producer, sequence + count as i32);
        }
        let end = self.log.end();
        assert!(appended.pending.is_none() || self.log.high_watermark() < end, "read before it is durable");
        let answered = move |model: &mut Model| {
            model.records.extend((appended.base_offset..).zip(records));
            model.end = end;
        };
        match appended.pending {
            Some(change) => self.unanswered.push((change, Box::new(answered))),
            None => answered(&mut self.model),
        }
        Ok(())
    }

    /// Waits for everything that waits.
    fn settle(&mut self) {
        while self.compaction.is_some() {
            self.go_on_compacting().unwrap();
        }
        if self.flushing.is_some() {
            self.flush_a_step().unwrap();
        }
        self.log.flush().unwrap();
        self.answer();
    }
}

fn reopen(disk: &SimulatedDisk, flush: Flush) -> (Log, Vec<String>) {
    let (disk, notes): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Notes::default());
    let last_end = LastEnd::Unclean { flushed: 0 };
    let opened = open(&disk, DIR, layout(flush), &notes, last_end, Damage::CutBack).unwrap();
    (Log::reopened(opened, 0), notes.take())
}

fn records(log: &Log) -> BTreeMap<i64, (String, String)> {
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
    let mut found = BTreeMap::new();
    for batch in log.batches() {
        for record in batch.records().unwrap().iter() {
            let record = record.unwrap();
            if record.offset() >= log.start() {
                found.insert(record.offset(), (text(record.key()), text(record.value())));
            }
        }
    }
    found
}

/// Whatever is there is what was written, and nothing acknowledged before `promised` is missing.
fn check(log: &Log, model: &Model, promised: i64, place: &str) {
    let found = records(log);
    for (offset, record) in &found {
        if let Some(written) = model.records.get(offset) {
            assert_eq!(record, written, "{place}: offset {offset}");
        }
    }
    assert!(log.end() >= promised, "{place}: it ends at {} instead of {promised}", log.end());
    let latest: BTreeMap<_, _> = found.iter().map(|(offset, (key, _))| (key, *offset)).collect();
    let first = model.start.max(model.pending_start);
    for (offset, (key, _)) in model.records.range(first.min(promised)..promised) {
        let superseded = model.compacted && latest.get(key).is_some_and(|newest| newest > offset);
        assert!(found.contains_key(offset) || superseded, "{place}: offset {offset} is lost");
    }
    if promised == model.end {
        assert!(log.start() >= model.start, "{place}: deleted records are back");
    }
}

/// What the log says of its producers is what its records say.
fn check_producers(log: &Log, place: &str) {
    let mut replayed = Producers::default();
    log.batches_from(0.max(log.start())).for_each(|batch| replayed.note(&batch, batch.max_timestamp()));
    for (id, producer) in log.producers().iter() {
        let Some((_, same)) = replayed.iter().find(|(known, _)| *known == id) else { continue };
        assert_eq!(producer.last(), same.last(), "{place}: producer {id}");
    }
}

fn crash_at_each_operation(flush: Flush, outage: Outage, seeds: std::ops::Range<u64>) -> u64 {
    let mut points = 0;
    for seed in seeds {
        let mut operation = 1;
        loop {
            let disk = SimulatedDisk::new(seed * 31 + operation);
            disk.fail_at(operation);
            let mut run = Run::begin(&disk, seed, flush);
            let ended = (0..60).map(|number| run.step(number)).find(Result::is_err);
            let finished = disk.operations() < operation;
            if finished {
                break;
            }
            let place = format!("seed {seed} operation {operation}");
            assert!(ended.is_some() || disk.operations() >= operation, "{place}");
            let promised = match (outage, flush) {
                (Outage::Process, _) | (_, Flush::ALWAYS) => run.model.end,
                _ => run.model.flushed,
            };
            let (log, notes) = reopen(&disk.after(outage), flush);
            check(&log, &run.model, promised, &format!("{place} {notes:?}"));
            if !run.model.compacted {
                check_producers(&log, &place);
            }
            points += 1;
            operation += 1;
        }
    }
    points
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged_whatever_the_policy() {
    let never = Flush { records: None, millis: None };
    let points = crash_at_each_operation(never, Outage::Process, 0..3);
    assert!(points > 300, "{points}");
}

#[test]
fn a_machine_without_power_loses_nothing_that_was_synced_before_the_answer() {
    let points = crash_at_each_operation(Flush::ALWAYS, Outage::Machine, 0..5);
    assert!(points > 1000, "{points}");
}

#[test]
fn a_machine_without_power_loses_nothing_that_was_flushed_and_never_serves_anything_else_than_what_was_written()
 {
    let never = Flush { records: None, millis: Some(1000) };
    let points = crash_at_each_operation(never, Outage::Machine, 20..23);
    assert!(points > 300, "{points}");
}

#[test]
fn a_log_that_was_closed_is_found_as_it_was() {
    for seed in 0..20 {
        let disk = SimulatedDisk::new(seed);
        let flush = Flush { records: None, millis: None };
        let mut run = Run::begin(&disk, seed, flush);
        (0..60).for_each(|number| run.step(number).unwrap());
        run.settle();
        run.log.close().unwrap();
        let handle: Arc<dyn Disk> = Arc::new(disk.after(Outage::Machine));
        let notes = Notes::default();
        let opened = open(&handle, DIR, layout(flush), &notes, LastEnd::Clean, Damage::CutBack).unwrap();
        let log = Log::reopened(opened, 0);
        assert_eq!(notes.take(), [""; 0]);
        assert_eq!((log.start(), log.end()), (run.log.start(), run.log.end()), "seed {seed}");
        assert_eq!(records(&log), records(&run.log), "seed {seed}");
        let state = |log: &Log| snapshot::write(&log.epochs, &log.producers);
        assert_eq!(state(&log), state(&run.log), "seed {seed}");
    }
}

fn written() -> (SimulatedDisk, Run) {
    let disk = SimulatedDisk::new(1);
    let mut run = Run::begin(&disk, 1, Flush::ALWAYS);
    (0..30).for_each(|number| run.append(number).unwrap());
    run.settle();
    (disk, run)
}

#[test]
fn a_torn_end_is_cut_with_a_line_that_names_file_and_offset() {
    let (disk, run) = written();
    let file = disk.files().into_iter().rfind(|file| file.ends_with(".log")).unwrap();
    disk.damage(&file, |bytes| bytes.truncate(bytes.len() - 1));
    let (log, notes) = reopen(&disk.after(Outage::Process), Flush::ALWAYS);
    assert!(log.end() < run.log.end());
    let line = notes.iter().find(|note| note.contains("cut back")).unwrap();
    assert!(line.contains(&file) && line.contains(&format!("offset {}", log.end())), "{line}");
}

#[test]
fn damage_in_the_middle_keeps_what_was_behind_it_under_another_name() {
    let (disk, _) = written();
    let file = disk.files().into_iter().find(|file| file.ends_with(".log")).unwrap();
    disk.damage(&file, |bytes| bytes[100] ^= 1);
    let after = disk.after(Outage::Process);
    let (log, notes) = reopen(&after, Flush::ALWAYS);
    assert_eq!(log.end(), 0);
    assert!(after.files().iter().any(|name| name.contains(".cut")), "{:?} {notes:?}", after.files());
}

#[test]
fn damage_to_what_was_durable_is_refused_with_file_and_place_and_changes_nothing() {
    let (disk, run) = written();
    let file = disk.files().into_iter().rfind(|file| file.ends_with(".log")).unwrap();
    disk.damage(&file, |bytes| bytes[100] ^= 1);
    let before = disk.files();
    let handle: Arc<dyn Disk> = Arc::new(disk.clone());
    let last_end = LastEnd::Unclean { flushed: run.log.end() };
    let refused = open(&handle, DIR, layout(Flush::ALWAYS), &Notes::default(), last_end, Damage::CutBack);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains(&file) && text.contains("at byte 0"), "{text}");
    assert_eq!(disk.files(), before);
}

#[test]
fn a_full_disk_refuses_what_does_not_fit_and_goes_on_when_there_is_room() {
    let (disk, mut run) = written();
    let (end, before) = (run.log.end(), records(&run.log));
    disk.set_capacity(Some(disk.used() + 50));
    assert_eq!(run.append(100), Err(ErrorCode::KAFKA_STORAGE_ERROR));
    assert_eq!((run.log.end(), records(&run.log)), (end, before));
    disk.set_capacity(None);
    run.append(101).unwrap();
    run.settle();
    let (log, _) = reopen(&disk.after(Outage::Machine), Flush::ALWAYS);
    assert_eq!(records(&log), records(&run.log));
}

#[test]
fn after_a_sync_that_failed_nothing_is_written_any_more() {
    let (disk, mut run) = written();
    disk.set_sync_fails(true);
    let end = run.log.end();
    run.append(100).unwrap();
    assert_eq!(run.log.flush(), Err(ErrorCode::KAFKA_STORAGE_ERROR));
    disk.set_sync_fails(false);
    assert_eq!(run.append(101), Err(ErrorCode::KAFKA_STORAGE_ERROR));
    assert_eq!(run.log.high_watermark(), end, "what was never answered for is not read");
    assert!(!run.log.read(end - 1, 1, true).unwrap().is_empty(), "what is there can be read");
}

#[test]
fn times_are_found_across_segments_and_after_a_restart() {
    let disk = SimulatedDisk::new(1);
    let mut run = Run::begin(&disk, 1, Flush::ALWAYS);
    for number in 0..50i64 {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.append(1000 + number * 10, Some(b"k"), Some(&[b'v'; 40]), []).unwrap();
        let batch = RecordBatch::parse(&mut builder.build(0)).unwrap().unwrap();
        run.log.append(batch, 0, None, 1000).unwrap();
    }
    run.log.close().unwrap();
    let (log, _) = reopen(&disk.after(Outage::Process), Flush::ALWAYS);
    for log in [&run.log, &log] {
        for number in 0..50i64 {
            let found = log.offset_at_time(1000 + number * 10 - 5).unwrap().unwrap();
            assert_eq!((found.offset, found.timestamp), (number, 1000 + number * 10));
            let read = log.read(number, 1, true).unwrap();
            assert_eq!(parsed(read).unwrap().base_offset(), number);
        }
        assert_eq!(log.offset_at_time(2000).unwrap(), None);
        assert_eq!(log.offset_of_largest_time().unwrap().unwrap().offset, 49);
    }
}

#[test]
fn no_segment_stands_behind_one_that_lost_its_end_whatever_the_policy() {
    for flush in [Flush { records: None, millis: None }, Flush { records: None, millis: Some(1000) }] {
        for operation in 1.. {
            let disk = SimulatedDisk::new(operation);
            disk.fail_at(operation);
            let mut run = Run::begin(&disk, operation, flush);
            let _ = (0..40).try_for_each(|number| run.append(number));
            if disk.operations() < operation {
                assert!(operation > 50, "{operation}");
                break;
            }
            let (log, _) = reopen(&disk.after(Outage::Machine), flush);
            let offsets: Vec<i64> = records(&log).into_keys().collect();
            let whole: Vec<i64> = (log.start()..log.end()).collect();
            assert_eq!(offsets, whole, "operation {operation}");
        }
    }
}

#[test]
fn a_segment_that_is_nearly_full_is_synced_before_it_has_to_be() {
    let disk = SimulatedDisk::new(1);
    let mut run = Run::begin(&disk, 1, Flush { records: None, millis: None });
    let text = |at: i32| (format!("key{at}"), "x".repeat(30));
    let wanted =
        (0..20).find(|at| run.log.append(batch(-1, -1, &[text(*at)]), 0, None, 1000).unwrap().sync_soon);
    assert!(wanted.is_some_and(|at| at > 2), "{wanted:?}");
    let flushing = run.log.begin_flush().unwrap();
    let result = flushing.run();
    run.log.end_flush(&flushing, result).unwrap();
    assert_eq!(run.log.flushed(), Some(run.log.end()));
    assert!(run.log.begin_flush().is_none(), "once is enough");
}
