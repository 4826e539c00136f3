//! Java's clients, the tools of Apache Kafka and Kafka Streams, from Maven Central in the version of [`crate::apache`].

use super::{Missing, Program, clients, crc_of, run};
use crate::apache::{self, Jars, KAFKA_VERSION, java_arguments};
use crate::{Failure, failure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The scenarios of Java; the name of one is the argument.
pub fn java() -> Result<Program, Missing> {
    static READY: OnceLock<Result<Program, Missing>> = OnceLock::new();
    READY.get_or_init(ready).clone()
}

fn ready() -> Result<Program, Missing> {
    if let Some(reason) = apache::unavailable() {
        return Err(reason.to_owned());
    }
    prepare().map_err(|e| format!("Java's clients cannot be had: {e}"))
}

fn prepare() -> Result<Program, Failure> {
    let jars = Jars::resolve()?;
    let streams = jars.once("streams", fetch_streams)?;
    let libraries = format!("{}:{}/*", jars.class_path(), streams.display());
    let name = format!("interop-{:08x}", crc_of(&clients("java"))?);
    let classes = jars.once(&name, |_, folder| compile(folder, &libraries))?;
    let mut arguments = java_arguments(&jars)?;
    arguments.push("Interop".to_owned());
    let environment = vec![("CLASSPATH", format!("{}:{libraries}", classes.display()))];
    Ok(Program { name: "Java", program: "java".to_owned(), arguments, environment })
}

/// Streams itself: what it needs besides is among Apache Kafka's jars, but for a store on disk, which is large and not used.
fn fetch_streams(jars: &Jars, folder: &Path) -> Result<(), Failure> {
    let pom = jars.home().join("streams.xml");
    let text = format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n<modelVersion>4.0.0</modelVersion>\n\
         <groupId>tontine</groupId><artifactId>streams-for-tests</artifactId><version>1</version>\n\
         <packaging>pom</packaging>\n<dependencies><dependency><groupId>org.apache.kafka</groupId>\
         <artifactId>kafka-streams</artifactId><version>{KAFKA_VERSION}</version><exclusions><exclusion>\
         <groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency></dependencies>\n</project>\n"
    );
    std::fs::write(&pom, text).map_err(|e| failure!("cannot write {}: {e}", pom.display()))?;
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-f"]).arg(&pom);
    run(maven.arg(format!("-DoutputDirectory={}", folder.display()))).map(drop)
}

fn compile(folder: &Path, libraries: &str) -> Result<(), Failure> {
    let sources = clients("java");
    let unreadable = |e: std::io::Error| failure!("cannot read {}: {e}", sources.display());
    let files = std::fs::read_dir(&sources)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>, _>>())
        .map_err(unreadable)?;
    run(Command::new("javac").arg("-d").arg(folder).args(files).env("CLASSPATH", libraries)).map(drop)
}
