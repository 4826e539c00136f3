//! The crates rskafka and rdkafka, built from crates.io in the versions of `clients/rust/Cargo.lock`, outside of this workspace.

use super::{Missing, Program, clients, crc_of, run};
use crate::cache::{Shelf, cache_dir};
use crate::{Failure, failure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The scenarios of the crates; the name of one is the argument.
pub fn rust() -> Result<Program, Missing> {
    static READY: OnceLock<Result<PathBuf, Missing>> = OnceLock::new();
    let folder = READY.get_or_init(built).clone()?;
    let program = folder.join("interop").display().to_string();
    Ok(Program { name: "Rust", program, arguments: Vec::new(), environment: Vec::new() })
}

fn built() -> Result<PathBuf, Missing> {
    for tool in ["make", "cc", "c++"] {
        run(Command::new(tool).arg("--version"))
            .map_err(|_| format!("no {tool} on the PATH; the crate rdkafka builds librdkafka with it"))?;
    }
    let made = sources().and_then(|hash| {
        Shelf::named("clients/rust")?.once(&format!("interop-{hash:08x}"), |folder| {
            let target = cache_dir().join("clients/rust/target");
            let mut build = Command::new(env!("CARGO"));
            // The compiler beside this cargo: rskafka's sources name another one, which may not be there.
            build.env("RUSTC", Path::new(env!("CARGO")).with_file_name("rustc"));
            build.args(["build", "--quiet", "--locked"]).current_dir(clients("rust"));
            run(build.env("CARGO_TARGET_DIR", &target))?;
            std::fs::copy(target.join("debug/interop"), folder.join("interop"))
                .map_err(|e| failure!("the program is not there: {e}"))?;
            Ok(())
        })
    });
    made.map_err(|e| format!("rskafka and rdkafka cannot be built: {e}"))
}

/// A number that changes with the program and with the versions of what it uses.
fn sources() -> Result<u32, Failure> {
    let folder = clients("rust");
    Ok(crc_of(&folder)? ^ crc_of(&folder.join("src"))?)
}
