//! What the log asks of a disk, so that the code that decides can be tested without one.
//!
//! Paths are relative to the data directory and written with `/`. Nothing here knows what a log is. [`OsDisk`] is a
//! directory of the machine, [`SimulatedDisk`] one in memory that can lose power at any moment.

mod os;
mod simulated;
mod spare;

pub use os::OsDisk;
pub use simulated::{Outage, SimulatedDisk};

use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A file or directory in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// How many bytes it has; 0 for a directory.
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// A place for files.
///
/// What was written survives the end of the process. It survives the end of the machine once [`DiskFile::sync`] said
/// so, and a new name, a rename and a removal once [`Disk::sync_dir`] of the directory did.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Makes a directory and those above it, where they are missing.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// What is in a directory, in the order of the names. A directory that is missing is empty.
    fn list(&self, path: &str) -> io::Result<Vec<Entry>>;
    /// A file to read and write, which is made when it is missing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// A whole file; `None` when it is missing.
    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>>;
    /// Renames a file or a directory; a file that has the new name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. One that is missing is removed already.
    fn remove_file(&self, path: &str) -> io::Result<()>;
    /// Removes a directory with the files in it. One that is missing is removed already.
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    /// Makes what happened to the names in a directory durable.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
    /// Locks the whole disk by this file; `None` when another process has it. Dropping what comes back unlocks.
    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
    /// How to name a path to a person.
    fn shown(&self, path: &str) -> String;
}

/// An open file.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Fills `buffer` from this position on; fewer bytes come only at the end of the file.
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// So many bytes from this position on; fewer come only at the end of the file.
    fn read_bytes(&self, position: u64, len: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; len];
        let count = self.read_at(position, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes.into())
    }
    /// Writes all of `bytes` at this position.
    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file, or lengthens it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
}

/// Replaces a small file as a whole: after a crash there is the old one or the new one.
pub(crate) fn replace(disk: &dyn Disk, path: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
    let fresh = format!("{path}.tmp");
    disk.remove_file(&fresh)?;
    let file = disk.open(&fresh)?;
    file.write_at(0, bytes)?;
    if sync {
        file.sync()?;
    }
    disk.rename(&fresh, path)?;
    if sync {
        disk.sync_dir(path.rsplit_once('/').map_or("", |(dir, _)| dir))?;
    }
    Ok(())
}
