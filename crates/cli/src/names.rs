//! Names as they are typed: what no broker could accept is refused before anything is sent.

/// A topic's name, by Kafka's rule (`Topic.validate`).
pub(crate) fn topic(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let right = (1..=249).contains(&text.len()) && text.chars().all(allowed) && !matches!(text, "." | "..");
    if right {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` cannot be a topic: names have 1 to 249 ASCII letters, digits, `.`, `_` and `-`, and are not `.` or `..`"
    ))
}

/// A group's id: any text that is not blank.
pub(crate) fn group(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("group.id: it must not be blank".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_kafka_accepts_are_accepted_and_no_others() {
        for right in ["orders", "a.b_c-D9", "...", &"x".repeat(249)] {
            assert!(topic(right).is_ok(), "{right}");
        }
        for wrong in ["", ".", "..", "a b", "ü", &"x".repeat(250)] {
            assert!(topic(wrong).is_err(), "{wrong}");
        }
        assert!(group("g").is_ok() && group(" ").is_err() && group("").is_err());
    }
}
