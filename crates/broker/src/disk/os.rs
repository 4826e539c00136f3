//! A directory of the machine.
//!
//! Files are opened when they are used and closed again when too many are open: a broker with thousands of partitions
//! must live with the 1,024 that a process usually may have open.

use super::spare::Spare;
use super::{Disk, DiskFile, Entry};
use bytes::Bytes;
use std::any::Any;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How many files are kept open.
const MOST_OPEN: usize = 400;

/// A directory of the machine.
#[derive(Debug)]
pub struct OsDisk {
    root: PathBuf,
    open: Arc<Mutex<VecDeque<Weak<OsFile>>>>,
    spare: Spare,
}

impl OsDisk {
    /// This directory, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), open: Arc::default(), spare: Spare::default() }
    }

    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

impl Disk for OsDisk {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.at(path))
    }

    fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        let found = match fs::read_dir(self.at(path)) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        for entry in found {
            let entry = entry?;
            // A name that is no text is none of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let about = entry.metadata()?;
            let is_dir = about.is_dir();
            entries.push(Entry { name, len: if is_dir { 0 } else { about.len() }, is_dir });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = Arc::new(OsFile {
            path: self.at(path),
            file: Mutex::new(None),
            open: self.open.clone(),
            spare: self.spare.clone(),
            me: Mutex::default(),
        });
        *locked(&file.me) = Arc::downgrade(&file);
        file.file(true)?;
        Ok(file)
    }

    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.at(path)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        missing_is_fine(fs::remove_file(self.at(path)))
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        missing_is_fine(fs::remove_dir_all(self.at(path)))
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        sync_directory(&self.at(path))
    }

    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let held = lock_file(&self.at(path))?;
        Ok(held.map(|file| Box::new(file) as Box<dyn Any + Send + Sync>))
    }

    fn shown(&self, path: &str) -> String {
        self.at(path).display().to_string()
    }
}

fn missing_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Windows keeps names in its journal; there is nothing to ask for.
#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A file that nobody else may open is a lock.
#[cfg(windows)]
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt;
    const SHARING_VIOLATION: i32 = 32;
    match OpenOptions::new().create(true).truncate(false).write(true).share_mode(0).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file that is opened when it is used.
#[derive(Debug)]
struct OsFile {
    path: PathBuf,
    file: Mutex<Option<Arc<File>>>,
    open: Arc<Mutex<VecDeque<Weak<OsFile>>>>,
    spare: Spare,
    me: Mutex<Weak<OsFile>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OsFile {
    fn file(&self, create: bool) -> io::Result<Arc<File>> {
        if let Some(file) = &*locked(&self.file) {
            return Ok(file.clone());
        }
        let opened =
            OpenOptions::new().read(true).write(true).create(create).truncate(false).open(&self.path)?;
        let opened = Arc::new(opened);
        *locked(&self.file) = Some(opened.clone());
        self.make_room();
        Ok(opened)
    }

    /// Closes the file that was opened first when there are too many. Whoever is using it keeps it until done.
    fn make_room(&self) {
        let mut open = locked(&self.open);
        open.push_back(locked(&self.me).clone());
        while open.len() > MOST_OPEN {
            if let Some(oldest) = open.pop_front().and_then(|file| file.upgrade()) {
                locked(&oldest.file).take();
            }
        }
    }
}

impl DiskFile for OsFile {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let file = self.file(false)?;
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match read_some(&file, position + done as u64, rest) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn read_bytes(&self, position: u64, len: usize) -> io::Result<Bytes> {
        self.spare.filled(len, |buffer| self.read_at(position, buffer))
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.file(false)?;
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match write_some(&file, position + done as u64, rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file(false)?.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file(false)?.sync_data()
    }
}

#[cfg(unix)]
fn read_some(file: &File, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, position)
}

#[cfg(unix)]
fn write_some(file: &File, position: u64, bytes: &[u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, position)
}

#[cfg(windows)]
fn read_some(file: &File, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, position)
}

#[cfg(windows)]
fn write_some(file: &File, position: u64, bytes: &[u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, position)
}
