//! Settings that are one of a few words.

use super::value::{Range, Value};
use std::time::Duration;

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal $(| $other:literal)*,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl Value for $name {
            fn parse(text: &str) -> Result<Self, String> {
                match text.trim().to_ascii_lowercase().as_str() {
                    $($word $(| $other)* => Ok(Self::$variant),)*
                    _ => Err(format!("`{text}` is not one of {}", Self::kind())),
                }
            }
            fn check(&self, _: Range) -> Result<(), String> {
                Ok(())
            }
            fn show(&self) -> String {
                match self { $(Self::$variant => $word.to_owned(),)* }
            }
            fn kind() -> &'static str {
                const WORDS: &str = concat!($($word, ", ",)*);
                WORDS.trim_end_matches(", ")
            }
        }
    };
}

choice! {
    /// Which of Kafka's two group protocols a member speaks.
    GroupProtocol {
        /// Members join rounds, and one of them deals the partitions.
        Classic = "classic",
        /// Members send heartbeats, and the coordinator deals the partitions.
        Consumer = "consumer",
        /// The consumer protocol where the broker has it, the classic one elsewhere. Kafka has no such value.
        ConsumerOrClassic = "consumer,classic",
    }
}

choice! {
    /// Which records of transactions are delivered.
    IsolationLevel {
        /// All of them.
        ReadUncommitted = "read_uncommitted",
        /// Only those whose transaction was committed.
        ReadCommitted = "read_committed",
    }
}

choice! {
    /// How many brokers have to have a record before it counts as sent.
    Acks {
        /// None; nothing is answered.
        None = "0",
        /// The leader.
        Leader = "1",
        /// All that are in sync.
        All = "all" | "-1",
    }
}

choice! {
    /// How batches of records are compressed.
    CompressionType {
        /// Not at all.
        None = "none",
        /// gzip.
        Gzip = "gzip",
        /// Snappy.
        Snappy = "snappy",
        /// LZ4.
        Lz4 = "lz4",
        /// Zstandard.
        Zstd = "zstd",
    }
}

/// Where a partition starts that has no committed offset, or whose offset does not exist any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoOffsetReset {
    /// At the oldest record.
    Earliest,
    /// Behind the newest record.
    Latest,
    /// Nowhere: it is an error.
    None,
    /// At the first record that is not older than this.
    ByDuration(Duration),
}

impl Value for AutoOffsetReset {
    fn parse(text: &str) -> Result<Self, String> {
        let word = text.trim().to_ascii_lowercase();
        match word.as_str() {
            "earliest" | "smallest" | "beginning" => Ok(Self::Earliest),
            "latest" | "largest" | "end" => Ok(Self::Latest),
            "none" | "error" => Ok(Self::None),
            _ => match word.strip_prefix("by_duration:").map(iso_duration) {
                Some(Some(d)) => Ok(Self::ByDuration(d)),
                Some(None) => {
                    Err(format!("`{text}` does not hold an ISO-8601 duration such as by_duration:PT1H30M"))
                }
                None => Err(format!("`{text}` is not one of {}", Self::kind())),
            },
        }
    }
    fn check(&self, _: Range) -> Result<(), String> {
        Ok(())
    }
    fn show(&self) -> String {
        match self {
            Self::Earliest => "earliest".to_owned(),
            Self::Latest => "latest".to_owned(),
            Self::None => "none".to_owned(),
            Self::ByDuration(d) => {
                let fraction = d.as_millis() % 1000;
                let point = if fraction == 0 { String::new() } else { format!(".{fraction:03}") };
                format!("by_duration:PT{}{point}S", d.as_secs())
            }
        }
    }
    fn kind() -> &'static str {
        "earliest, latest, none, by_duration:<ISO-8601 duration>"
    }
}

/// `P1DT2H3M4.5S` in lower case, as `java.time.Duration` reads it, without negative parts.
fn iso_duration(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('p')?;
    let (days, time) = text.split_once('t').unwrap_or((text, ""));
    if text.ends_with('t') || (days.is_empty() && time.is_empty()) {
        return None;
    }
    let mut seconds = 0f64;
    for (mut part, units) in
        [(days, &[('d', 86_400.0)][..]), (time, &[('h', 3_600.0), ('m', 60.0), ('s', 1.0)][..])]
    {
        for &(unit, factor) in units {
            if let Some((number, rest)) = part.split_once(unit) {
                let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
                seconds += factor * number.parse::<f64>().ok().filter(|_| plain)?;
                part = rest;
            }
        }
        if !part.is_empty() {
            return None;
        }
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_java_reads_them() {
        let seconds = |text| match AutoOffsetReset::parse(text) {
            Ok(AutoOffsetReset::ByDuration(d)) => Some(d.as_secs_f64()),
            _ => None,
        };
        assert_eq!(seconds("by_duration:PT1H"), Some(3600.0));
        assert_eq!(seconds("by_duration:P1DT0.5S"), Some(86_400.5));
        assert_eq!(seconds("by_duration:PT0S"), Some(0.0));
        for wrong in [
            "by_duration:",
            "by_duration:P",
            "by_duration:PT",
            "by_duration:PT-1S",
            "by_duration:1h",
            "by_duration:PTS",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
        let half = AutoOffsetReset::ByDuration(Duration::from_millis(1_500));
        assert_eq!(AutoOffsetReset::parse(&half.show()), Ok(half));
    }

    #[test]
    fn a_word_that_is_none_of_the_choices_names_them() {
        let error = IsolationLevel::parse("serializable").unwrap_err();
        assert_eq!(error, "`serializable` is not one of read_uncommitted, read_committed");
    }
}
