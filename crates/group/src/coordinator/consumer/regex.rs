//! Subscriptions by regular expression: the topics that a pattern means, without Kafka's own.

use super::validate::Refusal;
use crate::{pattern::TopicPattern, topics::Topics};
use std::collections::BTreeSet;
use tontine_wire::ErrorCode;

/// Topics of Kafka itself, which no expression means.
const INTERNAL: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// The topics that an expression means now.
pub(super) fn resolve(expression: &str, topics: &Topics) -> Result<BTreeSet<String>, Refusal> {
    let pattern = TopicPattern::new(expression).map_err(|why| {
        let message =
            format!("SubscribedTopicRegex `{expression}` is not a valid regular expression: {why}.");
        Refusal::new(ErrorCode::INVALID_REGULAR_EXPRESSION, message)
    })?;
    let matching = topics.iter().map(|(name, _)| &**name).filter(|name| pattern.matches(name));
    Ok(matching.filter(|name| !INTERNAL.contains(name)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_means_the_topics_it_matches_except_those_of_kafka_itself() {
        let topics = Topics::new().with("a", 1).with("ab", 1).with("__consumer_offsets", 1).with("__mine", 1);
        let names = |regex| resolve(regex, &topics).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(names("a"), ["a"]);
        assert_eq!(names(".*"), ["__mine", "a", "ab"]);
        assert!(names("x").is_empty());
    }

    #[test]
    fn what_is_no_expression_is_refused_in_kafkas_words() {
        let refusal = resolve("a)|(b", &Topics::new()).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::INVALID_REGULAR_EXPRESSION);
        let refusal = resolve("[", &Topics::new()).unwrap_err();
        let expected = "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ].";
        assert_eq!(refusal.message, expected);
    }
}
