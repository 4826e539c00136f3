//! Whose directory it is, which format it has, and whether the last run ended in good order.

use super::StoreError;
use crate::disk::{Disk, replace};
use std::any::Any;

/// The format that this version writes, and the newest one it reads.
const FORMAT: u32 = 1;
const LOCK: &str = ".lock";
const CLEAN: &str = ".clean-shutdown";
const META: &str = "meta.properties";
const FORMAT_KEY: &str = "tontine.format";

fn io<T>(disk: &dyn Disk, path: &str, result: std::io::Result<T>) -> Result<T, StoreError> {
    result.map_err(|error| StoreError::io(disk, path, error))
}

/// Makes the directory and takes it for this process.
pub(super) fn lock(disk: &dyn Disk) -> Result<Box<dyn Any + Send + Sync>, StoreError> {
    io(disk, "", disk.create_dir(""))?;
    io(disk, LOCK, disk.lock(LOCK))?.ok_or_else(|| StoreError::Locked { path: disk.shown("") })
}

/// The id of the cluster; `None` for a directory that is new.
pub(super) fn read(disk: &dyn Disk) -> Result<Option<String>, StoreError> {
    let Some(bytes) = io(disk, META, disk.read(META))? else {
        return match io(disk, "", disk.list(""))?.iter().find(|entry| entry.name == super::journal::DIR) {
            Some(_) => Err(StoreError::damaged(disk.shown(META), 0, "the file is missing")),
            None => Ok(None),
        };
    };
    let text = String::from_utf8_lossy(&bytes);
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    let path = || disk.shown(META);
    let Some(format) = value(FORMAT_KEY) else { return Err(StoreError::Foreign { path: path() }) };
    let format: u32 =
        format.parse().map_err(|_| StoreError::damaged(path(), 0, format!("`{FORMAT_KEY}` is no number")))?;
    if format > FORMAT {
        return Err(StoreError::Newer { path: path(), found: format, known: FORMAT });
    }
    value("cluster.id").map(Some).ok_or_else(|| StoreError::damaged(path(), 0, "there is no `cluster.id`"))
}

/// Makes a directory one of ours.
pub(super) fn write(disk: &dyn Disk, cluster_id: &str) -> Result<(), StoreError> {
    let text = format!("version=1\ncluster.id={cluster_id}\n{FORMAT_KEY}={FORMAT}\n");
    io(disk, META, replace(disk, META, text.as_bytes(), true))
}

/// Whether the last run closed everything.
pub(super) fn ended_cleanly(disk: &dyn Disk) -> Result<bool, StoreError> {
    Ok(io(disk, CLEAN, disk.read(CLEAN))?.is_some())
}

/// From now on an end that is not announced is not a clean one.
pub(super) fn begin(disk: &dyn Disk) -> Result<(), StoreError> {
    if ended_cleanly(disk)? {
        io(disk, CLEAN, disk.remove_file(CLEAN))?;
        io(disk, "", disk.sync_dir(""))?;
    }
    Ok(())
}

/// Everything was closed.
pub(super) fn end(disk: &dyn Disk) -> Result<(), StoreError> {
    io(disk, CLEAN, replace(disk, CLEAN, b"everything was closed\n", true))
}
