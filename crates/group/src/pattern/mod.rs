//! Patterns of topic names: a regular expression that the whole name has to match, and that means to everybody what it
//! means to RE2/J, which Kafka's coordinator uses. So a subscription means the same whether the client resolves it or the
//! coordinator, and whose coordinator that is.
//!
//! `translate` reads an expression as RE2/J does, with the pieces of `cursor` and the sets of `class`. What it means is
//! found by the regex crate, in linear time and bounded memory.

mod class;
mod cursor;
mod translate;

/// How much memory a compiled expression may take: what anybody needs, and not what an attacker likes.
const SIZE_LIMIT: usize = 1 << 20;

/// A pattern that can be compared with names.
#[derive(Clone, Debug)]
pub struct TopicPattern(regex::Regex);

/// Why an expression is no pattern, in the words of RE2/J.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(&'static str);

impl TopicPattern {
    /// Reads an expression.
    pub fn new(expression: &str) -> Result<Self, PatternError> {
        let whole = translate::translate(expression).map_err(PatternError)?;
        let whole = regex::RegexBuilder::new(&format!(r"\A(?:{whole})\z")).size_limit(SIZE_LIMIT).build();
        // All that can be wrong by now is how much it is.
        whole.map(Self).map_err(|_| PatternError("it is too large"))
    }

    /// Whether a name matches as a whole.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expressions, and what RE2/J 1.8 makes of each: the names it means, or what it says against it.
    const AS_RE2J: &str = include_str!("as_re2j.txt");

    #[test]
    fn every_expression_means_what_it_means_to_kafka() {
        let mut lines = AS_RE2J.lines();
        let names: Vec<&str> = lines.next().unwrap().split(' ').collect();
        for line in lines {
            let (expression, expected) = line.split_once('\t').unwrap();
            let found = match TopicPattern::new(expression) {
                Ok(pattern) => {
                    let matching = names.iter().filter(|name| pattern.matches(name));
                    matching.fold("means".to_owned(), |found, name| found + " " + name)
                }
                Err(why) => format!("refused {why}"),
            };
            assert_eq!(found, expected, "{expression}");
        }
    }

    #[test]
    fn an_expression_that_takes_too_much_is_refused() {
        let nested = format!("{}{}", "(".repeat(3_000), ")".repeat(3_000));
        for expression in ["(?:(?:a{1000}){1000}){1000}", &"(".repeat(30_000), &nested] {
            assert!(TopicPattern::new(expression).is_err());
        }
        assert!(TopicPattern::new(r"\pL{1,249}").is_ok() && TopicPattern::new("[^.]{1,1000}").is_ok());
    }
}
