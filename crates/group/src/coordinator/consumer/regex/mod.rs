//! Subscriptions by regular expression: a full match of topic names as RE2/J finds it, without Kafka's own topics.
//!
//! `translate` reads an expression as RE2/J does, with the pieces of `cursor` and the sets of `class`. What it means is
//! found by the regex crate, in linear time and bounded memory.

mod class;
mod cursor;
mod translate;

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
    let whole = translate::translate(expression).map_err(|reason| invalid(expression, reason))?;
    let compiled = regex::RegexBuilder::new(&format!(r"\A(?:{whole})\z")).size_limit(SIZE_LIMIT).build();
    // All that can be wrong by now is how much it is.
    let compiled = compiled.map_err(|_| invalid(expression, "it is too large"))?;
    let matching = topics.iter().map(|(name, _)| &**name).filter(|name| compiled.is_match(name));
    Ok(matching.filter(|name| !INTERNAL.contains(name)).map(str::to_owned).collect())
}

fn invalid(expression: &str, reason: &str) -> Refusal {
    let message = format!("SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}.");
    Refusal::new(ErrorCode::INVALID_REGULAR_EXPRESSION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expressions, and what RE2/J 1.8 makes of each: the names it means, or what it says against it.
    const AS_RE2J: &str = include_str!("as_re2j.txt");

    fn meant(regex: &str, names: &[&str]) -> Result<String, String> {
        let topics = names.iter().fold(Topics::new(), |topics, name| topics.with(*name, 1));
        let found = resolve(regex, &topics).map_err(|refusal| {
            assert_eq!(refusal.code, ErrorCode::INVALID_REGULAR_EXPRESSION, "{regex}");
            refusal.message
        })?;
        Ok(names.iter().filter(|name| found.contains(**name)).copied().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn every_expression_means_what_it_means_to_kafka() {
        let mut lines = AS_RE2J.lines();
        let names: Vec<&str> = lines.next().unwrap().split(' ').collect();
        for line in lines {
            let (regex, expected) = line.split_once('\t').unwrap();
            let expected = match expected.split_once(' ').unwrap_or((expected, "")) {
                ("means", names) => Ok(names.to_owned()),
                (_, why) => {
                    Err(format!("SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}."))
                }
            };
            assert_eq!(meant(regex, &names), expected, "{regex}");
        }
    }

    #[test]
    fn topics_of_kafka_itself_are_meant_by_no_expression() {
        assert_eq!(meant(".*", &["a", "__consumer_offsets", "__mine"]).unwrap(), "a __mine");
    }

    #[test]
    fn an_expression_that_takes_too_much_is_refused() {
        for regex in [
            "(?:(?:a{1000}){1000}){1000}",
            &"(".repeat(30_000),
            &format!("{}{}", "(".repeat(3000), ")".repeat(3000)),
        ] {
            assert!(meant(regex, &["a"]).is_err());
        }
        assert!(meant(r"\pL{1,249}", &["a"]).is_ok() && meant("[^.]{1,1000}", &["a"]).is_ok());
    }
}
