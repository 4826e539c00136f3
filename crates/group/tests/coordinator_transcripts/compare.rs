//! Comparing a line that happened with the line that was seen. `$name` stands for something that only the coordinator
//! knows: it is bound where it is met first and must be the same from then on. The order in lists does not matter.

use regex::Regex;
use std::{collections::BTreeMap, sync::LazyLock};

#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Puts what is known in the place of names.
    pub(crate) fn fill(&self, line: &str) -> String {
        if !line.contains('$') {
            return line.to_owned();
        }
        static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$(\w+)").unwrap());
        let value = |c: &regex::Captures<'_>| self.0.get(&c[1]).cloned().unwrap_or_else(|| c[0].to_owned());
        NAME.replace_all(line, value).into_owned()
    }

    /// Whether `actual` is what `expected` says. Binds the names that are met for the first time.
    pub(crate) fn matches(&mut self, expected: &str, actual: &str) -> bool {
        let (expected, actual) = (words(expected), words(actual));
        expected.len() == actual.len()
            && expected.iter().zip(&actual).all(|(expected, actual)| self.word_matches(expected, actual))
    }

    fn word_matches(&mut self, expected: &str, actual: &str) -> bool {
        let (Some(expected), Some(actual)) = (items(expected), items(actual)) else {
            return self.text_matches(expected, actual);
        };
        let mut rest = actual;
        let all = expected.iter().all(|item| {
            let found = rest.iter().position(|actual| self.text_matches(item, actual));
            found.map(|i| rest.remove(i)).is_some()
        });
        all && rest.is_empty()
    }

    fn text_matches(&mut self, expected: &str, actual: &str) -> bool {
        let expected = self.fill(expected);
        if !expected.contains('$') {
            return expected == actual;
        }
        let pattern = regex::escape(&expected);
        let pattern =
            Regex::new(r"\\\$(\w+)").unwrap().replace_all(&pattern, "(?P<$1>[^;/= \\]]+)").into_owned();
        let pattern = Regex::new(&format!("^{pattern}$")).unwrap();
        let Some(captures) = pattern.captures(actual) else { return false };
        for name in pattern.capture_names().flatten() {
            self.0.insert(name.to_owned(), captures[name].to_owned());
        }
        true
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// The items of `key=[a;b]`, the key first.
fn items(word: &str) -> Option<Vec<&str>> {
    let (key, list) = word.split_once("=[")?;
    let mut items = vec![key];
    items.extend(list.strip_suffix(']')?.split(';').filter(|item| !item.is_empty()));
    Some(items)
}
