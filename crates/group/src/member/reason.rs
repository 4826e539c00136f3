//! The reason that goes out with joins and leaves (KIP-800), so that other people's brokers log it.

use crate::Cause;

/// Kafka's brokers and clients cut reasons at this many characters.
const LONGEST: usize = 255;

/// The reason as text: the cause in its stable form, or the application's own words as they are.
pub(crate) fn of_cause(cause: &Cause) -> String {
    match cause {
        Cause::Requested { reason } => cut(reason),
        other => cut(&other.to_string()),
    }
}

/// At most as many characters as Kafka takes.
pub(crate) fn cut(reason: &str) -> String {
    reason.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_reason_is_the_cause_in_its_stable_form() {
        assert_eq!(
            of_cause(&Cause::PollDeadline { silent: Duration::from_secs(300) }),
            "no poll for 300000 ms"
        );
        assert_eq!(of_cause(&Cause::Requested { reason: "because".into() }), "because");
    }

    #[test]
    fn a_reason_never_has_more_than_255_characters() {
        assert_eq!(cut(&"ü".repeat(1000)).chars().count(), 255);
    }
}
