//! A disk in memory that can fail: at any operation, in the middle of a write, or because it is full.
//!
//! After an outage of the process everything that was written is there, the last write perhaps in part. After an outage
//! of the machine, writes that were not synced may be there, in part or not at all, in any combination; changes of names
//! are lost from the end, as with a journaling file system. The seed decides, so every run can be repeated.

use super::{Disk, DiskFile, Entry};
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// What goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// The process only.
    Process,
    /// The machine: what was not synced is at risk.
    Machine,
}

#[derive(Debug, Clone)]
enum Change {
    Write { position: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Debug, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

type Names = BTreeMap<String, usize>;

#[derive(Default)]
struct Inner {
    inodes: Vec<Inode>,
    names: Names,
    /// The names after each change that is not durable yet, oldest first.
    unsynced_names: Vec<Names>,
    durable_names: Names,
    dirs: std::collections::BTreeSet<String>,
    random: u64,
    operations: u64,
    fails_at: Option<u64>,
    dead: bool,
    capacity: Option<usize>,
    sync_fails: bool,
    locked: bool,
}

/// A disk in memory.
#[derive(Clone)]
pub struct SimulatedDisk {
    inner: Arc<Mutex<Inner>>,
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::SetLen(len) => bytes.resize(*len, 0),
        Change::Write { position, bytes: written } => {
            let end = position + written.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            if let Some(room) = bytes.get_mut(*position..end) {
                room.copy_from_slice(written);
            }
        }
    }
}

impl Inner {
    fn random(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if below == 0 { 0 } else { (self.random >> 33) as usize % below }
    }

    /// Counts an operation that changes something; `true` when it is the one that does not get through.
    fn fails(&mut self) -> io::Result<bool> {
        if self.dead {
            return Err(io::Error::other("the disk is gone"));
        }
        self.operations += 1;
        if self.fails_at == Some(self.operations) {
            self.dead = true;
            return Ok(true);
        }
        Ok(false)
    }

    fn whole(&mut self) -> io::Result<()> {
        if self.fails()? { Err(io::Error::other("the disk went away")) } else { Ok(()) }
    }

    fn used(&self) -> usize {
        self.names.values().filter_map(|inode| self.inodes.get(*inode)).map(|inode| inode.now.len()).sum()
    }

    fn renamed(&mut self, change: impl FnOnce(&mut Names)) {
        change(&mut self.names);
        self.unsynced_names.push(self.names.clone());
    }

    fn write(&mut self, inode: usize, position: usize, bytes: &[u8]) -> io::Result<()> {
        let torn = self.fails()?;
        let mut kept = bytes.len();
        let grows = {
            let len = self.inodes.get(inode).map_or(0, |inode| inode.now.len());
            (position + bytes.len()).saturating_sub(len)
        };
        let room = self.capacity.map(|capacity| capacity.saturating_sub(self.used()));
        let full = room.is_some_and(|room| grows > room);
        if full {
            kept = kept.saturating_sub(grows - room.unwrap_or(0));
        }
        if torn {
            kept = self.random(kept + 1);
        }
        let change = Change::Write { position, bytes: bytes.get(..kept).unwrap_or_default().to_vec() };
        if let Some(inode) = self.inodes.get_mut(inode) {
            apply(&mut inode.now, &change);
            inode.unsynced.push(change);
        }
        match (torn, full) {
            (true, _) => Err(io::Error::other("the disk went away in the middle of a write")),
            (_, true) => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn lose_power(&mut self) {
        let kept = self.random(self.unsynced_names.len() + 1);
        let names = match kept.checked_sub(1).and_then(|at| self.unsynced_names.get(at)) {
            Some(names) => names.clone(),
            None => self.durable_names.clone(),
        };
        self.names = names;
        for at in 0..self.inodes.len() {
            let Some(inode) = self.inodes.get_mut(at) else { continue };
            let (mut bytes, changes) = (inode.durable.clone(), std::mem::take(&mut inode.unsynced));
            for mut change in changes {
                let fate = self.random(3);
                if fate == 0 {
                    continue;
                }
                if let (1, Change::Write { bytes, .. }) = (fate, &mut change) {
                    let len = self.random(bytes.len() + 1);
                    bytes.truncate(len);
                }
                apply(&mut bytes, &change);
            }
            if let Some(inode) = self.inodes.get_mut(at) {
                (inode.now, inode.durable) = (bytes.clone(), bytes);
            }
        }
    }
}

impl SimulatedDisk {
    /// An empty disk. The seed decides what an outage leaves.
    pub fn new(seed: u64) -> Self {
        let inner = Inner { random: seed, ..Inner::default() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many operations changed something so far.
    pub fn operations(&self) -> u64 {
        self.inner().operations
    }

    /// The operation with this number gets through in part at most, and none after it.
    pub fn fail_at(&self, operation: u64) {
        self.inner().fails_at = Some(operation);
    }

    /// Limits the room for files.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.inner().capacity = bytes;
    }

    /// Makes every sync fail, or ends that.
    pub fn set_sync_fails(&self, fails: bool) {
        self.inner().sync_fails = fails;
    }

    /// How many bytes there are.
    pub fn used(&self) -> usize {
        self.inner().used()
    }

    /// Whether there is anything that an outage of the machine may cost.
    pub fn unsynced(&self) -> bool {
        let inner = self.inner();
        !inner.unsynced_names.is_empty() || inner.inodes.iter().any(|inode| !inode.unsynced.is_empty())
    }

    /// The names of all files.
    pub fn files(&self) -> Vec<String> {
        self.inner().names.keys().cloned().collect()
    }

    /// Changes a file behind everybody's back.
    pub fn damage(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut inner = self.inner();
        if let Some(at) = inner.names.get(path).copied()
            && let Some(inode) = inner.inodes.get_mut(at)
        {
            change(&mut inode.now);
            inode.durable = inode.now.clone();
            inode.unsynced.clear();
        }
    }

    /// The outage, and what is there afterwards. Nobody may use the old disk any more.
    pub fn after(&self, outage: Outage) -> Self {
        let mut inner = self.inner();
        if outage == Outage::Machine {
            inner.lose_power();
        }
        let inodes = inner.inodes.iter().map(|inode| Inode {
            now: inode.now.clone(),
            durable: inode.now.clone(),
            unsynced: Vec::new(),
        });
        let next = Inner {
            inodes: inodes.collect(),
            names: inner.names.clone(),
            durable_names: inner.names.clone(),
            dirs: inner.names.keys().filter_map(|name| Some(name.rsplit_once('/')?.0.to_owned())).collect(),
            random: inner.random,
            ..Inner::default()
        };
        Self { inner: Arc::new(Mutex::new(next)) }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedDisk").field("files", &self.files()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct SimulatedFile {
    inner: Arc<Mutex<Inner>>,
    inode: usize,
}

#[derive(Debug)]
struct Lock(Arc<Mutex<Inner>>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).locked = false;
    }
}

impl Disk for SimulatedDisk {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.dirs.contains(path) {
            return Ok(());
        }
        inner.whole()?;
        inner.dirs.insert(path.to_owned());
        Ok(())
    }

    fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        let inner = self.inner();
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for (name, inode) in &inner.names {
            let Some(rest) = name.strip_prefix(&prefix) else { continue };
            let entry = match rest.split_once('/') {
                Some((dir, _)) => Entry { name: dir.to_owned(), len: 0, is_dir: true },
                None => Entry {
                    name: rest.to_owned(),
                    len: inner.inodes.get(*inode).map_or(0, |inode| inode.now.len() as u64),
                    is_dir: false,
                },
            };
            entries.insert(entry.name.clone(), entry);
        }
        Ok(entries.into_values().collect())
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.inner();
        let known = inner.names.get(path).copied();
        let inode = match known {
            Some(inode) => inode,
            None => {
                let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
                if !dir.is_empty() && !inner.dirs.contains(dir) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                inner.whole()?;
                inner.inodes.push(Inode::default());
                let inode = inner.inodes.len() - 1;
                inner.renamed(|names| {
                    names.insert(path.to_owned(), inode);
                });
                inode
            }
        };
        Ok(Arc::new(SimulatedFile { inner: self.inner.clone(), inode }))
    }

    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let inner = self.inner();
        let inode = inner.names.get(path).and_then(|inode| inner.inodes.get(*inode));
        Ok(inode.map(|inode| inode.now.clone()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.whole()?;
        let within = format!("{from}/");
        if inner.dirs.remove(from) {
            inner.dirs.insert(to.to_owned());
        }
        inner.renamed(|names| {
            if let Some(inode) = names.remove(from) {
                names.insert(to.to_owned(), inode);
            }
            let moved: Vec<String> = names.keys().filter(|name| name.starts_with(&within)).cloned().collect();
            for name in moved {
                if let (Some(inode), Some(rest)) = (names.remove(&name), name.strip_prefix(&within)) {
                    names.insert(format!("{to}/{rest}"), inode);
                }
            }
        });
        Ok(())
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if !inner.names.contains_key(path) {
            return Ok(());
        }
        inner.whole()?;
        inner.renamed(|names| {
            names.remove(path);
        });
        Ok(())
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.whole()?;
        let within = format!("{path}/");
        inner.renamed(|names| names.retain(|name, _| !name.starts_with(&within)));
        inner.dirs.remove(path);
        Ok(())
    }

    fn sync_dir(&self, _path: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.whole()?;
        if inner.sync_fails {
            return Err(io::Error::other("the sync failed"));
        }
        inner.durable_names = inner.names.clone();
        inner.unsynced_names.clear();
        Ok(())
    }

    fn lock(&self, _path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let mut inner = self.inner();
        if inner.locked {
            return Ok(None);
        }
        inner.locked = true;
        Ok(Some(Box::new(Lock(self.inner.clone()))))
    }

    fn shown(&self, path: &str) -> String {
        path.to_owned()
    }
}

impl SimulatedFile {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let inner = self.inner();
        let bytes = inner.inodes.get(self.inode).map_or(&[][..], |inode| &inode.now);
        let rest = bytes.get(position as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner().write(self.inode, position as usize, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        inner.whole()?;
        if let Some(inode) = inner.inodes.get_mut(self.inode) {
            let change = Change::SetLen(len as usize);
            apply(&mut inode.now, &change);
            inode.unsynced.push(change);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.whole()?;
        if inner.sync_fails {
            return Err(io::Error::other("the sync failed"));
        }
        if let Some(inode) = inner.inodes.get_mut(self.inode) {
            let Inode { durable, unsynced, .. } = inode;
            unsynced.drain(..).for_each(|change| apply(durable, &change));
        }
        Ok(())
    }
}
