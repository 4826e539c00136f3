//! Sets of characters, cut down to ASCII: no topic name has another character, and a set of 128 bits takes the room of a
//! letter in a compiled expression, where all letters of Unicode would take a thousand times that.

use std::collections::BTreeMap;

/// The last of ASCII.
const LAST: u32 = 0x7f;
/// The two characters beyond ASCII that are an ASCII letter to whoever does not look at the case, and that letter.
const FOLDED: [(u32, u32); 2] = [(0x17f, 's' as u32), (0x212a, 'k' as u32)];

/// ASCII characters, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u128);

impl Set {
    pub(super) const ALL: Self = Self(u128::MAX);
    const DIGITS: Self = Self::between(b'0', b'9');
    const LOWER: Self = Self::between(b'a', b'z');
    const UPPER: Self = Self::between(b'A', b'Z');
    const GRAPH: Self = Self::between(b'!', b'~');
    const LETTERS: Self = Self::LOWER.or(Self::UPPER);
    const ALNUM: Self = Self::LETTERS.or(Self::DIGITS);
    const WORD: Self = Self::ALNUM.or(Self::between(b'_', b'_'));
    const BLANK: Self = Self::between(b' ', b' ').or(Self::between(b'\t', b'\t'));

    const fn between(low: u8, high: u8) -> Self {
        Self((u128::MAX >> (127 - high)) & (u128::MAX << low))
    }

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn inverted(self) -> Self {
        Self(!self.0)
    }

    /// What lies between two code points.
    pub(super) fn range(low: u32, high: u32) -> Self {
        let ascii = (low..=high.min(LAST)).filter_map(|code| u8::try_from(code).ok());
        ascii.fold(Self::default(), |set, code| set.or(Self::between(code, code)))
    }

    /// The same for whoever does not look at the case.
    pub(super) fn folded_range(low: u32, high: u32) -> Self {
        let others = FOLDED.iter().filter(|(code, _)| (low..=high).contains(code));
        others.fold(Self::range(low, high), |set, (_, letter)| set.or(Self::range(*letter, *letter))).folded()
    }

    /// With each letter in both cases.
    pub(super) fn folded(self) -> Self {
        let (lower, upper) = (self.0 & Self::LOWER.0, self.0 & Self::UPPER.0);
        Self(self.0 | lower >> 32 | upper << 32)
    }

    /// `\d`, `\s`, `\w` and their opposites, which mean ASCII in RE2.
    pub(super) fn perl(letter: char) -> Option<Self> {
        let space = || Self::BLANK.or(Self::range(0x0a, 0x0a)).or(Self::range(0x0c, 0x0d));
        let set = match letter.to_ascii_lowercase() {
            'd' => Self::DIGITS,
            's' => space(),
            'w' => Self::WORD,
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() { set.inverted() } else { set })
    }

    /// `alpha` of `[[:alpha:]]`, and `^alpha`.
    pub(super) fn posix(name: &str, fold: bool) -> Option<Self> {
        let set = match name.trim_start_matches('^') {
            "alnum" => Self::ALNUM,
            "alpha" => Self::LETTERS,
            "ascii" => Self::ALL,
            "blank" => Self::BLANK,
            "cntrl" => Self::range(0, 0x1f).or(Self::range(LAST, LAST)),
            "digit" => Self::DIGITS,
            "graph" => Self::GRAPH,
            "lower" => Self::LOWER,
            "print" => Self::range(0x20, 0x7e),
            "punct" => Self::GRAPH.without(Self::ALNUM),
            "space" => Self::range(0x09, 0x0d).or(Self::range(0x20, 0x20)),
            "upper" => Self::UPPER,
            "word" => Self::WORD,
            "xdigit" => Self::DIGITS.or(Self::range(0x41, 0x46)).or(Self::range(0x61, 0x66)),
            _ => return None,
        };
        let set = if fold { set.folded() } else { set };
        match name.strip_prefix('^') {
            None => Some(set),
            Some(rest) => (!rest.starts_with('^')).then_some(set.inverted()),
        }
    }

    /// How it is written for the matcher.
    pub(super) fn write(self, out: &mut String) {
        let has = |code: u32| self.0 >> code & 1 == 1;
        if self == Self::default() {
            // There is no shorter way to say "nothing".
            return out.push_str(r"[^\x00-\x{10FFFF}]");
        }
        out.push('[');
        let mut code = 0;
        while code <= LAST {
            if has(code) {
                let low = code;
                while code < LAST && has(code + 1) {
                    code += 1;
                }
                out.push_str(&format!(r"\x{low:02X}-\x{code:02X}"));
            }
            code += 1;
        }
        out.push(']');
    }
}

/// Categories and scripts of Unicode, each looked up once.
#[derive(Debug, Default)]
pub(super) struct Unicode(BTreeMap<String, Option<Set>>);

impl Unicode {
    /// What a category or script has in ASCII; `None` when there is none of that name.
    pub(super) fn named(&mut self, name: &str) -> Option<Set> {
        if let Some(known) = self.0.get(name) {
            return *known;
        }
        let found = look_up(name);
        self.0.insert(name.to_owned(), found);
        found
    }
}

fn look_up(name: &str) -> Option<Set> {
    // RE2 knows them as Unicode writes them, and by no other name.
    let written = name.starts_with(|c: char| c.is_ascii_uppercase());
    if !written || name.contains(|c: char| !c.is_ascii_alphabetic() && c != '_') {
        return None;
    }
    let class = regex::Regex::new(&format!(r"\p{{{name}}}")).ok()?;
    let ascii = (0..=0x7f_u8).filter(|code| class.is_match(char::from(*code).encode_utf8(&mut [0; 4])));
    Some(ascii.fold(Set::default(), |set, code| set.or(Set::between(code, code))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(set: Set) -> String {
        (0..=0x7f_u8).filter(|code| set.0 >> code & 1 == 1).map(char::from).collect()
    }

    #[test]
    fn sets_have_what_their_names_say() {
        assert_eq!(members(Set::DIGITS), "0123456789");
        assert_eq!(members(Set::range('a' as u32, 'c' as u32).folded()), "ABCabc");
        assert_eq!(members(Set::folded_range(0x212a, 0x212a)), "Kk");
        assert_eq!(members(Set::posix("punct", false).unwrap()), "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");
        assert_eq!(members(Unicode::default().named("Lu").unwrap()), "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        assert_eq!(members(Unicode::default().named("Han").unwrap()), "");
        assert_eq!(Unicode::default().named("lu"), None);
        assert_eq!(Set::posix("^^alpha", false), None);
    }
}
