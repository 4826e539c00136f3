//! The file behind `audit.log`. Each line goes to the system at once, so that what a process wrote before it was killed is
//! there. A file that cannot be written any more is reported once; reading records goes on.

use crate::{Error, audit::Entry};
use std::{fs::File, io::Write, path::PathBuf};

#[derive(Debug)]
pub(super) struct AuditLog {
    path: PathBuf,
    file: Option<File>,
}

impl AuditLog {
    pub(super) fn open(path: &str) -> Result<Self, Error> {
        let opened = File::options().create(true).append(true).open(path);
        let file = opened
            .map_err(|error| Error::configuration(format!("audit.log: cannot open `{path}`: {error}")))?;
        Ok(Self { path: path.into(), file: Some(file) })
    }

    pub(super) fn append(&mut self, entries: &[Entry]) {
        let Some(file) = self.file.as_mut().filter(|_| !entries.is_empty()) else { return };
        let mut lines = String::new();
        for entry in entries {
            lines += &entry.line();
            lines.push('\n');
        }
        if let Err(error) = file.write_all(lines.as_bytes()) {
            tracing::error!(path = %self.path.display(), %error, "the audit log ends here");
            self.file = None;
        }
    }
}
