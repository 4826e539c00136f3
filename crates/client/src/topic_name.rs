//! What can be the name of a topic. Mirrors Kafka's `Topic.validate`.

use crate::Error;

/// Refuses what no broker takes for a topic, before anybody waits for it to appear.
pub(crate) fn check_topic(name: &str) -> Result<(), Error> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 249 || matches!(name, "." | "..") || !name.chars().all(is_legal) {
        return Err(Error::misuse(format!(
            "`{name}` cannot be a topic: names have 1 to 249 ASCII letters, digits, `.`, `_` and `-`"
        )));
    }
    Ok(())
}
