//! Settings of one consumer group: what may be set, and between which bounds. Mirrors `GroupConfig`.

use super::{BrokerConfig, ConfigError, given::Given, rows};
use std::time::Duration;
use tontine_group::coordinator::GroupSettings;

/// Settings of one consumer group, on top of the broker's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupConfig {
    given: Given,
}

impl GroupConfig {
    /// Sets one key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        self.given.set_in(rows::GROUP, key, value)
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

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Checks what was given against the bounds that the broker sets. An error is the sentence for the answer.
    pub fn check(&self, broker: &BrokerConfig) -> Result<(), String> {
        for (key, value) in self.given.iter() {
            let (_, bare) = key.split_once("consumer.").unwrap_or(("", key));
            for (bound, wrong, sentence) in [
                ("min", i64::lt as fn(&i64, &i64) -> bool, "greater than or equal to"),
                ("max", i64::gt, "less than or equal to"),
            ] {
                let bound_key = format!("group.consumer.{bound}.{bare}");
                if let (Ok(value), Some(limit)) = (value.parse(), number(broker.value(&bound_key)))
                    && wrong(&value, &limit)
                {
                    return Err(format!("{key} must be {sentence} {bound_key}"));
                }
            }
        }
        let in_force = |key: &str| {
            number(self.given(key)).or_else(|| number(broker.value(&rows::group_broker_key(key))))
        };
        if in_force("consumer.session.timeout.ms") <= in_force("consumer.heartbeat.interval.ms") {
            return Err(
                "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms".into()
            );
        }
        Ok(())
    }

    /// The values that were given, typed.
    pub fn settings(&self) -> GroupSettings {
        let millis = |key| {
            let number = number(self.given(key))?;
            Some(Duration::from_millis(number.unsigned_abs()))
        };
        GroupSettings {
            session_timeout: millis("consumer.session.timeout.ms"),
            heartbeat_interval: millis("consumer.heartbeat.interval.ms"),
            assignment_interval: millis("consumer.assignment.interval.ms"),
        }
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(settings: &[(&str, &str)], broker: &[(&str, &str)]) -> Result<(), String> {
        let (mut group, mut config) = (GroupConfig::default(), BrokerConfig::new());
        settings.iter().for_each(|(key, value)| group.set(key, value).unwrap());
        for (key, value) in broker {
            let _ = config.set(key, value).unwrap();
        }
        group.check(&config)
    }

    #[test]
    fn a_group_stays_between_the_bounds_of_the_broker() {
        let interval = "consumer.heartbeat.interval.ms";
        let min = [("group.consumer.min.heartbeat.interval.ms", "100")];
        assert_eq!(checked(&[(interval, "200")], &min), Ok(()));
        assert_eq!(
            checked(&[(interval, "99")], &min).unwrap_err(),
            "consumer.heartbeat.interval.ms must be greater than or equal to group.consumer.min.heartbeat.interval.ms"
        );
        assert_eq!(
            checked(&[(interval, "15001")], &[]).unwrap_err(),
            "consumer.heartbeat.interval.ms must be less than or equal to group.consumer.max.heartbeat.interval.ms"
        );
        let session = ("consumer.session.timeout.ms", "5000");
        assert_eq!(
            checked(&[session], &[("group.consumer.min.session.timeout.ms", "1000")]).unwrap_err(),
            "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
        );
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(GroupConfig::default().set("consumer.size", "1").is_err());
    }
}
