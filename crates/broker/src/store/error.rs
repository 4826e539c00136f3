//! Why a data directory cannot be used.

use crate::disk::Disk;
use crate::log::OpenError;
use std::io;
use tontine_wire::ErrorCode;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system does not do what it is asked.
    #[error("cannot use {path}: {source}{}", hint(source))]
    Io {
        /// The file or directory.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody else has it.
    #[error("{path} is used by another broker: stop it, or choose another data directory")]
    Locked {
        /// The directory.
        path: String,
    },
    /// A newer version wrote it.
    #[error(
        "{path} was written by a newer version: its format is {found}, and this version reads {known}. Use the newer version, or choose another data directory"
    )]
    Newer {
        /// The file that says so.
        path: String,
        /// Its format.
        found: u32,
        /// The newest format that can be read.
        known: u32,
    },
    /// It belongs to another program.
    #[error("{path} is not one of ours (Apache Kafka's, perhaps): choose another data directory")]
    Foreign {
        /// The file that says so.
        path: String,
    },
    /// A file does not hold what was written.
    #[error("{path} is damaged at byte {position}: {why}. {remedy}")]
    Damaged {
        /// The file.
        path: String,
        /// Where.
        position: u64,
        /// What is wrong.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The metadata could not be written; what happened was noted.
    #[error("cannot write the metadata: {0}")]
    Refused(ErrorCode),
}

const REMEDY: &str = "Nothing was changed. Restore the file from a backup; or, to go on without what is behind that place, \
move the file away or cut it there by hand, and start again";

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " (the data directory must be writable: change its permissions, or choose another one)"
        }
        io::ErrorKind::StorageFull => " (make room on the disk)",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            " (a data directory must be a directory)"
        }
        _ => "",
    }
}

impl StoreError {
    pub(super) fn io(disk: &dyn Disk, path: &str, source: io::Error) -> Self {
        Self::Io { path: disk.shown(path), source }
    }

    pub(super) fn refused(code: ErrorCode) -> Self {
        Self::Refused(code)
    }

    pub(super) fn damaged(path: String, position: u64, why: impl Into<String>) -> Self {
        Self::Damaged { path, position, why: why.into(), remedy: REMEDY }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io { path, source } => Self::Io { path, source },
            OpenError::Damaged { path, position, why } => Self::damaged(path, position, why),
        }
    }
}
