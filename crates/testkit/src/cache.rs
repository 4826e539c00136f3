//! What tests fetch or build once and keep below `target/`: jars, compiled members, the clients that others wrote.

use crate::{Failure, failure};
use std::fs;
use std::path::{Path, PathBuf};

/// The build's target folder: test binaries live in `<target>/<profile>/deps`.
pub fn cache_dir() -> PathBuf {
    let binary = std::env::current_exe().unwrap_or_default();
    let deps = binary.ancestors().find(|folder| folder.ends_with("deps"));
    let target = deps.and_then(Path::parent).and_then(Path::parent);
    target.map_or_else(|| std::env::temp_dir().join("tontine-tests"), Path::to_path_buf)
}

/// A folder of things that are made once for all test binaries.
#[derive(Debug, Clone)]
pub struct Shelf {
    home: PathBuf,
}

impl Shelf {
    /// The shelf in the folder `home`, which is created.
    pub fn at(home: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(home).map_err(|e| failure!("cannot create {}: {e}", home.display()))?;
        Ok(Self { home: home.to_owned() })
    }

    /// The shelf of this name in the cache.
    pub fn named(name: &str) -> Result<Self, Failure> {
        Self::at(&cache_dir().join(name))
    }

    /// Makes the folder `name` with `make` unless it is there. It is made under another name first, so that a half-made
    /// one is never taken for a whole one, and under a lock, since neither Maven nor pip may run twice over one folder.
    pub fn once(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        let done = self.home.join(name);
        if done.is_dir() {
            return Ok(done);
        }
        let _lock = lock::FolderLock::take(&self.home.join("lock"))?;
        if done.is_dir() {
            return Ok(done);
        }
        let making = self.home.join(format!("{name}.making"));
        let _ = fs::remove_dir_all(&making);
        fs::create_dir_all(&making).map_err(|e| failure!("cannot create {}: {e}", making.display()))?;
        make(&making)?;
        fs::rename(&making, &done).map_err(|e| failure!("cannot rename {}: {e}", making.display()))?;
        Ok(done)
    }
}

mod lock {
    //! A lock between processes that needs nothing but a shell tool: `flock` holds it for as long as its pipe is open.

    use crate::{Failure, failure};
    use std::io::Read as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    /// Held until dropped, or until this process ends.
    pub(super) struct FolderLock(Child);

    impl FolderLock {
        /// Waits until the lock is free and takes it.
        pub(super) fn take(path: &Path) -> Result<Self, Failure> {
            let mut child = Command::new("flock")
                .arg(path)
                .args(["sh", "-c", "echo; read -r _"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|e| failure!("cannot run flock (of util-linux): {e}"))?;
            let mut held = [0];
            let ready = child.stdout.as_mut().map(|out| out.read_exact(&mut held));
            match ready {
                Some(Ok(())) => Ok(Self(child)),
                _ => Err(failure!("cannot lock {}", path.display())),
            }
        }
    }

    impl Drop for FolderLock {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }
}
