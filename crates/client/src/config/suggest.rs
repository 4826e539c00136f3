//! Keys that are no row: left alone when they are known to mean nothing here, refused with the nearest row otherwise.

use crate::Error;

/// `Ok` when the key is known but has no meaning here.
pub(super) fn accept_ignored(
    key: &str,
    _value: &str,
    ignored: &[&[&str]],
    known: impl Iterator<Item = &'static str>,
) -> Result<(), Error> {
    if is_ignored(key, ignored) {
        return Ok(());
    }
    Err(Error::configuration(match nearest(key, known) {
        Some(near) => format!("`{key}` is not a setting: did you mean `{near}`?"),
        None => format!("`{key}` is not a setting: docs/CONFIG.md lists them all"),
    }))
}

/// Whether the key is one of those that are known to mean nothing here.
pub(super) fn is_ignored(key: &str, ignored: &[&[&str]]) -> bool {
    let matches = |name: &&str| if name.ends_with('.') { key.starts_with(*name) } else { key == *name };
    ignored.iter().flat_map(|list| list.iter()).any(matches)
}

/// The known key that the fewest edits lead to, unless they are so many that it is another word.
pub(crate) fn nearest<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let key: String = key.trim().to_ascii_lowercase().replace(['_', '-'], ".");
    known
        .map(|k| (distance(&key, k), k))
        .min()
        .filter(|(d, k)| *d <= k.len().max(key.len()) / 3)
        .map(|(_, k)| k)
}

/// How many letters have to be added, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found_through_other_spellings() {
        let known = ["session.timeout.ms", "group.id", "max.poll.records"];
        let near = |key| nearest(key, known.into_iter());
        assert_eq!(near("session_timeout_ms"), Some("session.timeout.ms"));
        assert_eq!(near("groupid"), Some("group.id"));
        assert_eq!(near("poll.max.records"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
