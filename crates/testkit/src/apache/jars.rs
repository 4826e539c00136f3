//! The jars of Apache Kafka and of its tools, resolved by Maven into a cache below `target/`, once for all test binaries.
//!
//! The cache also keeps a formatted storage directory (formatting costs one JVM, copying costs nothing) and the compiled
//! Java members.

use crate::{Failure, failure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version of Apache Kafka that the tests run against.
pub const KAFKA_VERSION: &str = "4.4.0";
const LOG4J_VERSION: &str = "2.25.1";

/// The resolved jars and what is kept beside them.
#[derive(Debug, Clone)]
pub struct Jars {
    home: PathBuf,
}

impl Jars {
    /// Resolves the jars, or finds them in the cache. Test binaries that run at the same time wait for each other.
    pub fn resolve() -> Result<Self, Failure> {
        let home = cache_dir().join("apache-kafka").join(KAFKA_VERSION);
        fs::create_dir_all(&home).map_err(|e| failure!("cannot create {}: {e}", home.display()))?;
        let jars = Self { home };
        jars.once("libs", Self::copy_dependencies)?;
        Ok(jars)
    }

    /// Where everything of this version is kept.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The class path, for the variable `CLASSPATH`: java expands the star itself.
    pub fn class_path(&self) -> String {
        format!("{}/*", self.home.join("libs").display())
    }

    /// The class path with the compiled Java members of this project before the jars.
    pub fn class_path_with(&self, classes: &Path) -> String {
        format!("{}:{}", classes.display(), self.class_path())
    }

    /// Makes the folder `name` with `make` unless it is there. It is made under another name first, so that a half-made
    /// one is never taken for a whole one, and under a lock, since Maven must not run twice over one local repository.
    pub(crate) fn once(
        &self,
        name: &str,
        make: impl FnOnce(&Self, &Path) -> Result<(), Failure>,
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
        make(self, &making)?;
        fs::rename(&making, &done).map_err(|e| failure!("cannot rename {}: {e}", making.display()))?;
        Ok(done)
    }

    fn copy_dependencies(&self, into: &Path) -> Result<(), Failure> {
        let pom = self.home.join("pom.xml");
        fs::write(&pom, pom_text()).map_err(|e| failure!("cannot write {}: {e}", pom.display()))?;
        let output = Command::new("mvn")
            .args(["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"])
            .arg(format!("-DoutputDirectory={}", into.display()))
            .arg("-f")
            .arg(&pom)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failure!("cannot run mvn: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stdout);
        Err(failure!("mvn could not resolve Apache Kafka {KAFKA_VERSION}: {}", said.trim()))
    }
}

fn pom_text() -> String {
    let row = |group: &str, artifact: &str, version: &str| {
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>\n"
        )
    };
    let rows = [
        row("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
        row("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
        row("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
        row("org.apache.logging.log4j", "log4j-core", LOG4J_VERSION),
    ];
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n<modelVersion>4.0.0</modelVersion>\n\
         <groupId>tontine</groupId><artifactId>apache-kafka-for-tests</artifactId><version>1</version>\n\
         <packaging>pom</packaging>\n<dependencies>\n{}</dependencies>\n</project>\n",
        rows.concat()
    )
}

/// The build's target folder: test binaries live in `<target>/<profile>/deps`.
pub fn cache_dir() -> PathBuf {
    let binary = std::env::current_exe().unwrap_or_default();
    let deps = binary.ancestors().find(|folder| folder.ends_with("deps"));
    let target = deps.and_then(Path::parent).and_then(Path::parent);
    target.map_or_else(|| std::env::temp_dir().join("tontine-tests"), Path::to_path_buf)
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
