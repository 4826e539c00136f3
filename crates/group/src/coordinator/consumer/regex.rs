//! Subscriptions by regular expression: a full match of topic names in RE2's syntax, without Kafka's own topics.

use super::validate::Refusal;
use crate::topics::Topics;
use std::collections::BTreeSet;
use tontine_wire::ErrorCode;

/// Topics of Kafka itself, which no expression means.
const INTERNAL: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// How much memory a compiled expression may take: what anybody needs, and not what an attacker likes.
const SIZE_LIMIT: usize = 1 << 20;

/// The topics that an expression means now.
pub(super) fn resolve(expression: &str, topics: &Topics) -> Result<BTreeSet<String>, Refusal> {
    let whole = format!("^(?:{expression})$");
    let compiled = regex::RegexBuilder::new(&whole).size_limit(SIZE_LIMIT).build();
    // The expression alone must be one, so that `a)|(b` is not.
    let compiled = regex::RegexBuilder::new(expression).size_limit(SIZE_LIMIT).build().and(compiled);
    let compiled = compiled.map_err(|error| invalid(expression, &error))?;
    let matching = topics.iter().map(|(name, _)| &**name).filter(|name| compiled.is_match(name));
    Ok(matching.filter(|name| !INTERNAL.contains(name)).map(str::to_owned).collect())
}

fn invalid(expression: &str, error: &regex::Error) -> Refusal {
    let reason = error.to_string();
    let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let message = format!("SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}.");
    Refusal::new(ErrorCode::INVALID_REGULAR_EXPRESSION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics() -> Topics {
        Topics::new().with("a", 1).with("ab", 1).with("b", 1).with("__consumer_offsets", 1)
    }

    #[test]
    fn an_expression_means_the_topics_it_matches_as_a_whole() {
        let names = |regex| resolve(regex, &topics()).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(names("a"), ["a"]);
        assert_eq!(names("a|b"), ["a", "b"]);
        assert_eq!(names(".*"), ["a", "ab", "b"]);
        assert!(names("x").is_empty());
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for regex in ["[", "(", "(?=t)t2", "a)|(b", "(a{1000}){1000}"] {
            let refusal = resolve(regex, &topics()).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::INVALID_REGULAR_EXPRESSION, "{regex}");
        }
    }
}
