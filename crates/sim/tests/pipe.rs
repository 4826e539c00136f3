//! The program's report may be read only in part.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

use std::{
    io::Read,
    process::{Command, Stdio},
};

#[test]
fn a_reader_that_has_enough_ends_the_program_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tontine-sim"))
        .args(["--seed", "0", "--full"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe is closed before much has come, like that of `head`.
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(told, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
