//! Settings that have to fit each other: what members of groups are asked for stays between the broker's own bounds. A
//! broker whose settings contradict each other does not start. Mirrors the checks of `GroupCoordinatorConfig`.

use super::{BrokerConfig, ConfigError};

/// Which of two settings must not be the larger one, and whether they may be equal.
const ORDERED: &[(&str, bool, &str)] = &[
    (MIN_HEARTBEAT, true, MAX_HEARTBEAT),
    (MIN_HEARTBEAT, true, HEARTBEAT),
    (HEARTBEAT, true, MAX_HEARTBEAT),
    (MIN_SESSION, true, MAX_SESSION),
    (MIN_SESSION, true, SESSION),
    (SESSION, true, MAX_SESSION),
    (HEARTBEAT, false, SESSION),
    (MIN_ASSIGNMENT, true, MAX_ASSIGNMENT),
    (MIN_ASSIGNMENT, true, ASSIGNMENT),
    (ASSIGNMENT, true, MAX_ASSIGNMENT),
    ("group.min.session.timeout.ms", true, "group.max.session.timeout.ms"),
];

const HEARTBEAT: &str = "group.consumer.heartbeat.interval.ms";
const MIN_HEARTBEAT: &str = "group.consumer.min.heartbeat.interval.ms";
const MAX_HEARTBEAT: &str = "group.consumer.max.heartbeat.interval.ms";
const SESSION: &str = "group.consumer.session.timeout.ms";
const MIN_SESSION: &str = "group.consumer.min.session.timeout.ms";
const MAX_SESSION: &str = "group.consumer.max.session.timeout.ms";
const ASSIGNMENT: &str = "group.consumer.assignment.interval.ms";
const MIN_ASSIGNMENT: &str = "group.consumer.min.assignment.interval.ms";
const MAX_ASSIGNMENT: &str = "group.consumer.max.assignment.interval.ms";

impl BrokerConfig {
    /// Whether the settings fit each other.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (low, may_equal, high) in ORDERED {
            let (Some(small), Some(large)) = (self.number(low), self.number(high)) else { continue };
            if small > large || (small == large && !may_equal) {
                return Err(self.contradiction(low, *may_equal, high));
            }
        }
        Ok(())
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.value(key)?.trim().parse().ok()
    }

    /// The one that was given is at fault; the other one is what to change as well.
    fn contradiction(&self, low: &'static str, may_equal: bool, high: &'static str) -> ConfigError {
        let high_is_at_fault = self.given(low).is_none() && self.given(high).is_some();
        let (key, other, relation) = match (high_is_at_fault, may_equal) {
            (true, true) => (high, low, "at least"),
            (true, false) => (high, low, "more than"),
            (false, true) => (low, high, "at most"),
            (false, false) => (low, high, "less than"),
        };
        let value = self.value(key).unwrap_or_default().to_owned();
        let limit = self.value(other).unwrap_or_default();
        let why = format!("it must be {relation} `{other}`, which is {limit}: change that one as well");
        ConfigError::Value { key, value, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(settings: &[(&str, &str)]) -> Result<(), String> {
        let mut config = BrokerConfig::new();
        for (key, value) in settings {
            let _ = config.set(key, value).unwrap();
        }
        config.check().map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_fit_each_other() {
        assert_eq!(checked(&[]), Ok(()));
    }

    #[test]
    fn a_value_beyond_a_bound_names_the_bound_and_what_to_do() {
        assert_eq!(
            checked(&[(HEARTBEAT, "300")]).unwrap_err(),
            "`300` is not a value for `group.consumer.heartbeat.interval.ms`: it must be at least \
             `group.consumer.min.heartbeat.interval.ms`, which is 5000: change that one as well"
        );
        assert_eq!(checked(&[(HEARTBEAT, "300"), (MIN_HEARTBEAT, "100")]), Ok(()));
        let wrong: &[&[(&str, &str)]] = &[
            &[(HEARTBEAT, "15001")],
            &[(MIN_HEARTBEAT, "15001"), (HEARTBEAT, "15000")],
            &[(SESSION, "44999")],
            &[(SESSION, "60001")],
            &[(MIN_SESSION, "60001")],
            &[(MAX_SESSION, "44000")],
            &[(HEARTBEAT, "45000"), (MAX_HEARTBEAT, "50000")],
            &[(ASSIGNMENT, "15001")],
            &[(MIN_ASSIGNMENT, "21")],
            &[("group.min.session.timeout.ms", "1800001")],
        ];
        for settings in wrong {
            let error = checked(settings).unwrap_err();
            assert!(error.contains("change that one as well"), "{settings:?}: {error}");
        }
    }

    #[test]
    fn a_setting_that_was_not_given_is_not_blamed() {
        let error = checked(&[(MAX_SESSION, "44000")]).unwrap_err();
        assert!(
            error.starts_with("`44000` is not a value for `group.consumer.max.session.timeout.ms`"),
            "{error}"
        );
        let error = checked(&[(MIN_HEARTBEAT, "6000")]).unwrap_err();
        assert!(error.starts_with("`6000` is not a value for `group.consumer.min.heartbeat"), "{error}");
    }
}
