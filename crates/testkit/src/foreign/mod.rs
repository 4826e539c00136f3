//! Programs in `clients/`, written with the Kafka clients of others: what they need on this machine, and how they start.
//!
//! A client is fetched through its language's registry in the version named here, once, into the cache. A tool that is
//! missing, or a registry that cannot be reached, is a [`Missing`]: such a test is skipped by name, or fails in CI.

mod golang;
mod java;
mod member;
mod python;
mod rust;

pub use golang::golang;
pub use java::java;
pub use member::ForeignMember;
pub use python::{CONFLUENT_KAFKA_VERSION, LibrdkafkaSettings, python};
pub use rust::rust;

use crate::{Failure, failure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a program of a client starts; its arguments follow.
#[derive(Debug, Clone)]
pub struct Program {
    /// What it is called in messages.
    pub name: &'static str,
    /// The first word of its command line.
    pub program: String,
    /// The words before a test's own.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(&'static str, String)>,
}

/// Why a program cannot run here.
pub type Missing = String;

/// A folder below `clients/`.
fn clients(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("clients").join(folder)
}

/// Runs a command to its end; its words are the error when it fails.
fn run(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| failure!("cannot run {name}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(failure!("{name} failed: {} {}", text(&output.stdout), text(&output.stderr)))
}

/// A small hash of a text, to see that it has changed (FNV-1a).
pub(crate) fn crc(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A number that changes with the files of a folder; folders in it do not count.
fn crc_of(folder: &Path) -> Result<u32, Failure> {
    let unreadable = |e: std::io::Error| failure!("cannot read {}: {e}", folder.display());
    let mut files = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(unreadable)?;
    files.retain(|file| file.is_file());
    files.sort();
    let texts: Result<Vec<String>, _> = files.iter().map(std::fs::read_to_string).collect();
    Ok(crc(&texts.map_err(unreadable)?.concat()))
}
