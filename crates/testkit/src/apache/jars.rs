//! The jars of Apache Kafka and of its tools, resolved by Maven into a cache below `target/`, once for all test binaries.
//!
//! The cache also keeps a formatted storage directory (formatting costs one JVM, copying costs nothing) and the compiled
//! Java members.

use crate::cache::{Shelf, cache_dir};
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

    /// Makes the folder `name` with `make` unless it is there: see [`Shelf::once`].
    pub(crate) fn once(
        &self,
        name: &str,
        make: impl FnOnce(&Self, &Path) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        Shelf::at(&self.home)?.once(name, |folder| make(self, folder))
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
