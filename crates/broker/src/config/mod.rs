//! Configuration of broker and topics: the tables are in [`rows`], what they say is read here.
//!
//! Every key of Kafka's is accepted, so that a `server.properties` loads as it is: keys that mean something here are
//! obeyed, the others are reported as having no effect, and a key that Kafka does not have is refused. Mirrors
//! `KafkaConfig` and `LogConfig`.

mod bounds;
mod given;
mod group;
mod kind;
mod known;
#[cfg(test)]
mod page;
pub mod rows;
mod settings;

pub use group::GroupConfig;
pub use kind::Kind;
pub use rows::Row;
pub use settings::{Settings, TopicSettings};
pub(crate) use settings::{broker_default, topic_value};

use given::Given;

/// A setting that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Nobody knows the key.
    #[error("unknown configuration key `{key}`: {}", hint(.nearest))]
    UnknownKey {
        /// What was given.
        key: String,
        /// The most similar key there is; `None` when none is similar.
        nearest: Option<&'static str>,
    },
    /// The value is not allowed.
    #[error("`{value}` is not a value for `{key}`: {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        why: String,
    },
}

/// What setting a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Effect {
    /// The key is obeyed.
    Obeyed,
    /// Kafka has the key; here it changes nothing.
    None,
}

/// Settings of the broker: what was given, on top of the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerConfig {
    given: Given,
}

impl BrokerConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<Effect, ConfigError> {
        let Some(row) = row(rows::BROKER, key) else { return without_effect(key) };
        self.given.set(row, value)?;
        Ok(Effect::Obeyed)
    }

    /// Goes back to the default.
    pub fn unset(&mut self, key: &str) {
        self.given.unset(key);
    }

    /// What was given for this key.
    pub fn given(&self, key: &str) -> Option<&str> {
        self.given.get(key)
    }

    /// The value in force; `None` where neither a value nor a default exists.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.given(key).or_else(|| row(rows::BROKER, key)?.default)
    }

    /// The values in force, typed.
    pub fn settings(&self) -> Settings {
        Settings::of(self)
    }
}

/// Settings of one topic, on top of the broker's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicConfig {
    given: Given,
}

impl TopicConfig {
    /// Sets one key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        self.given.set_in(rows::TOPIC, key, value)
    }

    /// Goes back to the broker's value.
    pub fn unset(&mut self, key: &str) {
        self.given.unset(key);
    }

    /// What was given for this key.
    pub fn given(&self, key: &str) -> Option<&str> {
        self.given.get(key)
    }

    /// All that was given.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given.iter()
    }

    /// The values in force, typed.
    pub fn settings(&self, broker: &BrokerConfig) -> TopicSettings {
        TopicSettings::of(self, broker)
    }
}

/// The row of a key.
pub(crate) fn row(rows: &'static [Row], key: &str) -> Option<&'static Row> {
    rows.binary_search_by(|row| row.key.cmp(key)).ok().map(|at| &rows[at])
}

fn check(row: &'static Row, value: &str) -> Result<(), ConfigError> {
    let wrong = |why| ConfigError::Value { key: row.key, value: value.chars().take(80).collect(), why };
    row.kind.check(value).map_err(wrong)?;
    if row.key.ends_with("cleanup.policy")
        && !value.split(',').all(|p| matches!(p.trim(), "delete" | "compact" | ""))
    {
        return Err(wrong("it must be `delete`, `compact` or `delete,compact`".into()));
    }
    match row.key {
        "group.consumer.assignors" => drop(settings::assignors(value).map_err(wrong)?),
        "group.coordinator.rebalance.protocols" => settings::check_protocols(value).map_err(wrong)?,
        _ => {}
    }
    Ok(())
}

fn without_effect(key: &str) -> Result<Effect, ConfigError> {
    if known::KNOWN.binary_search(&key).is_ok() || is_listener_key(key) {
        return Ok(Effect::None);
    }
    Err(ConfigError::UnknownKey {
        key: key.chars().take(120).collect(),
        nearest: nearest(key, rows::BROKER, known::KNOWN),
    })
}

/// Kafka lets many keys be set for one listener only: `listener.name.internal.ssl.keystore.location`.
fn is_listener_key(key: &str) -> bool {
    key.starts_with("listener.name.")
}

fn hint(nearest: &Option<&'static str>) -> String {
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "docs/BROKER.md lists them all".to_owned(),
    }
}

/// The known key that the fewest changes lead to, unless they are so many that it is another word.
fn nearest(key: &str, rows: &'static [Row], others: &[&'static str]) -> Option<&'static str> {
    let known = rows.iter().map(|row| row.key).chain(others.iter().copied());
    let (changes, nearest) = known.map(|candidate| (distance(key, candidate), candidate)).min()?;
    (changes <= nearest.len().max(key.len()) / 3).then_some(nearest)
}

/// How many characters have to change (Levenshtein), with the longer text cut: nobody gains from precision there.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(80).collect(), b.chars().take(80).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_their_defaults_allowed() {
        for rows in [rows::BROKER, rows::GROUP, rows::TOPIC] {
            assert!(rows.is_sorted_by_key(|row| row.key));
            for row in rows {
                if let Some(default) = row.default {
                    assert_eq!(row.kind.check(default), Ok(()), "{}", row.key);
                }
            }
        }
        assert!(known::KNOWN.is_sorted());
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_one() {
        let error = BrokerConfig::new().set("num.partition", "3").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown configuration key `num.partition`: did you mean `num.partitions`?"
        );
    }

    #[test]
    fn a_key_that_resembles_none_gets_no_suggestion() {
        let error = BrokerConfig::new().set("foo", "bar").unwrap_err().to_string();
        assert!(
            error.starts_with("unknown configuration key `foo`") && !error.contains("did you mean"),
            "{error}"
        );
        assert_eq!(nearest("", rows::BROKER, &[]), None);
    }

    #[test]
    fn a_key_without_effect_is_accepted_and_said_to_have_none() {
        let mut config = BrokerConfig::new();
        assert_eq!(config.set("num.io.threads", "8"), Ok(Effect::None));
        assert_eq!(config.set("listener.name.internal.ssl.keystore.location", "x"), Ok(Effect::None));
        assert_eq!(config.set("num.partitions", "8"), Ok(Effect::Obeyed));
        assert_eq!(config.settings().num_partitions, 8);
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        let error = BrokerConfig::new().set("num.partitions", "0").unwrap_err().to_string();
        assert_eq!(error, "`0` is not a value for `num.partitions`: it must lie between 1 and 2147483647");
    }

    #[test]
    fn assignors_and_protocols_that_do_not_exist_are_refused_by_name() {
        let set = |key, value| BrokerConfig::new().set(key, value).map_err(|error| error.to_string());
        let assignors = "group.consumer.assignors";
        let error = set(assignors, "uniform,sticky").unwrap_err();
        assert!(error.contains("`sticky` is no assignor of the broker"), "{error}");
        assert!(set(assignors, "").is_err());
        assert_eq!(set(assignors, "range"), Ok(Effect::Obeyed));
        let protocols = "group.coordinator.rebalance.protocols";
        assert!(set(protocols, "classic,next").unwrap_err().contains("`next`"));
        assert!(set(protocols, "consumer").unwrap_err().contains("cannot be switched off"));
        assert_eq!(set(protocols, "classic, consumer, share, streams"), Ok(Effect::Obeyed));
        let mut config = BrokerConfig::new();
        assert!(config.settings().group_consumer_protocol);
        let _ = config.set(protocols, "classic").unwrap();
        assert!(!config.settings().group_consumer_protocol);
    }

    #[test]
    fn a_topic_takes_its_defaults_from_the_broker() {
        let mut broker = BrokerConfig::new();
        assert_eq!(broker.set("log.retention.hours", "1"), Ok(Effect::Obeyed));
        let mut topic = TopicConfig::default();
        assert_eq!(topic.settings(&broker).retention_ms, Some(3_600_000));
        topic.set("retention.ms", "-1").unwrap();
        assert_eq!(topic.settings(&broker).retention_ms, None);
    }
}
