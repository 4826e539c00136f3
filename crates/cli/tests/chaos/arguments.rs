//! What can be said on the command line.

use std::fmt;

const USAGE: &str =
    "usage: chaos [--seconds N] [--seed N] [--protocol classic|consumer] [--broker kafka|embedded]";

/// What is run.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    pub seconds: u64,
    pub seed: u64,
    pub protocol: String,
    pub on_kafka: bool,
}

impl Arguments {
    /// Reads them; `cargo` adds some of its own, which are left alone.
    pub fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |t| t.as_secs() % 1_000_000);
        let mut parsed = Self { seconds: 600, seed, protocol: "classic".to_owned(), on_kafka: true };
        while let Some(flag) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"));
            match flag.as_str() {
                "--seconds" => parsed.seconds = number(&value()?)?,
                "--seed" => parsed.seed = number(&value()?)?,
                "--protocol" => parsed.protocol = one_of(value()?, &["classic", "consumer"])?,
                "--broker" => parsed.on_kafka = one_of(value()?, &["kafka", "embedded"])? == "kafka",
                _ => return Err(format!("{flag} is not known\n{USAGE}")),
            }
        }
        Ok(parsed)
    }

    fn broker(&self) -> &'static str {
        if self.on_kafka { "kafka" } else { "embedded" }
    }

    /// What runs the same once more; times differ, troubles do not.
    pub fn command(&self) -> String {
        let Self { seconds, seed, protocol, .. } = self;
        let broker = self.broker();
        format!(
            "cargo test -p tontine-cli --test chaos -- --seconds {seconds} --seed {seed} --protocol {protocol} --broker {broker}"
        )
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, seed, protocol, .. } = self;
        write!(f, "chaos: {seconds} s, protocol {protocol}, broker {}, seed {seed}", self.broker())
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number\n{USAGE}"))
}

fn one_of(text: String, known: &[&str]) -> Result<String, String> {
    if known.contains(&text.as_str()) { Ok(text) } else { Err(format!("`{text}`: one of {known:?}")) }
}
