//! franz-go, built from the Go module proxy in the versions of `clients/go/go.mod`.

use super::{Missing, Program, clients, crc_of, run};
use crate::cache::Shelf;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The oldest Go that builds it.
const OLDEST_GO: (u32, u32) = (1, 26);

/// The scenarios of franz-go; the name of one is the argument.
pub fn golang() -> Result<Program, Missing> {
    static READY: OnceLock<Result<PathBuf, Missing>> = OnceLock::new();
    let folder = READY.get_or_init(built).clone()?;
    Ok(Program {
        name: "franz-go",
        program: folder.join("interop").display().to_string(),
        arguments: Vec::new(),
        environment: Vec::new(),
    })
}

fn built() -> Result<PathBuf, Missing> {
    let said = run(Command::new("go").arg("version")).map_err(|e| format!("no go on the PATH ({e})"))?;
    let (major, minor) = OLDEST_GO;
    if version(&said).is_none_or(|found| found < OLDEST_GO) {
        return Err(format!("{said}; franz-go needs Go {major}.{minor} or later"));
    }
    let made = crc_of(&clients("go")).and_then(|hash| {
        Shelf::named("clients/go")?.once(&format!("interop-{hash:08x}"), |folder| {
            let mut build = Command::new("go");
            build
                .args(["build", "-mod=readonly", "-buildvcs=false", "-o"])
                .arg(folder.join("interop"))
                .arg(".");
            run(build.current_dir(clients("go"))).map(drop)
        })
    });
    made.map_err(|e| format!("franz-go cannot be built: {e}"))
}

/// Reads `go version go1.26.8 linux/amd64`.
fn version(text: &str) -> Option<(u32, u32)> {
    let word = text.split_whitespace().find_map(|word| word.strip_prefix("go1."))?;
    let minor: String = word.chars().take_while(char::is_ascii_digit).collect();
    Some((1, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        assert_eq!(version("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(version("go version go1.27rc1 linux/arm64"), Some((1, 27)));
        assert_eq!(version("go: command not found"), None);
    }
}
