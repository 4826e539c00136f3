//! Whether this machine can run Apache Kafka: a JDK of 17 or later, and Maven.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

const OLDEST_JAVA: u32 = 17;

/// Why Apache Kafka cannot be run here; `None` when it can.
pub fn unavailable() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON.get_or_init(find_reason).as_deref()
}

fn find_reason() -> Option<String> {
    match java_version() {
        None => return Some(format!("no java on the PATH; Apache Kafka needs a JDK {OLDEST_JAVA} or later")),
        Some(version) if version < OLDEST_JAVA => {
            return Some(format!("java is version {version}; Apache Kafka needs {OLDEST_JAVA} or later"));
        }
        Some(_) => {}
    }
    for tool in ["javac", "mvn", "sh"] {
        if !is_on_path(tool) {
            return Some(format!("no {tool} on the PATH; the Apache Kafka tests need a JDK and Maven"));
        }
    }
    None
}

fn java_version() -> Option<u32> {
    let output = Command::new("java").arg("-version").stdin(Stdio::null()).output().ok()?;
    parse_java_version(&String::from_utf8_lossy(&output.stderr))
}

/// Reads `openjdk version "17.0.15" 2025-04-15`, and `"1.8.0_292"` as 8.
fn parse_java_version(text: &str) -> Option<u32> {
    let quoted = text.split('"').nth(1)?;
    let mut parts = quoted.split(|c: char| !c.is_ascii_digit());
    let first = parts.next()?.parse().ok()?;
    if first == 1 { parts.next()?.parse().ok() } else { Some(first) }
}

fn is_on_path(tool: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_old_and_new_javas_are_read() {
        assert_eq!(parse_java_version("openjdk version \"17.0.15\" 2025-04-15"), Some(17));
        assert_eq!(parse_java_version("openjdk version \"25\" 2025-09-16"), Some(25));
        assert_eq!(parse_java_version("java version \"1.8.0_292\""), Some(8));
        assert_eq!(parse_java_version("no such thing"), None);
    }
}
