//! The pieces of an expression that are read the same way wherever they stand: characters that are written in a roundabout
//! way, counts, brackets.

use super::{
    class::{Set, Unicode},
    translate::{BAD_ESCAPE, BAD_RANGE, NO_BRACKET, Refused, TRAILING},
};

/// The last code point.
const LAST: u32 = 0x10_ffff;

/// What is still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    pub(super) fn new(expression: &'a str) -> Self {
        Self(expression)
    }

    pub(super) fn more(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut rest = self.0.chars();
        let next = rest.next();
        self.0 = rest.as_str();
        next
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// What stands before the next such text, which is read as well.
    pub(super) fn until(&mut self, end: &str) -> Option<&'a str> {
        let (before, rest) = self.0.split_once(end)?;
        self.0 = rest;
        Some(before)
    }

    pub(super) fn rest(&mut self) -> &'a str {
        std::mem::take(&mut self.0)
    }

    fn next_if(&mut self, matches: impl Fn(char) -> bool) -> Option<char> {
        let next = self.0.chars().next().filter(|c| matches(*c))?;
        self.next();
        Some(next)
    }

    /// What follows the opening brace of a count: the least and, if there is one, the most. `None` when it is no count.
    pub(super) fn count(&mut self) -> Option<(u32, Option<u32>)> {
        let least = self.number()?;
        let most = match self.eat(",") {
            false => Some(least),
            true if self.0.starts_with('}') => None,
            true => Some(self.number()?),
        };
        self.eat("}").then_some((least, most))
    }

    /// A number without leading zeros.
    fn number(&mut self) -> Option<u32> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        let well_formed = !digits.is_empty() && (digits.len() == 1 || !digits.starts_with('0'));
        // One that does not fit is too large, whatever it is.
        well_formed.then(|| digits.parse().unwrap_or(u32::MAX))
    }

    /// The character that follows a backslash, or that what follows it stands for.
    pub(super) fn escaped(&mut self) -> Result<u32, Refused> {
        let octal = |c: char| c.is_digit(8);
        match self.next().ok_or(TRAILING)? {
            // It would refer back to a group.
            '1'..='7' if !self.0.starts_with(octal) => Err(BAD_ESCAPE),
            first @ '0'..='7' => {
                let mut code = first.to_digit(8).unwrap_or(0);
                for _ in 1..3 {
                    let Some(digit) = self.next_if(octal) else { break };
                    code = code * 8 + digit.to_digit(8).unwrap_or(0);
                }
                Ok(code)
            }
            'x' => self.hexadecimal().ok_or(BAD_ESCAPE),
            'a' => Ok(0x07),
            'f' => Ok(0x0c),
            'n' => Ok(0x0a),
            'r' => Ok(0x0d),
            't' => Ok(0x09),
            'v' => Ok(0x0b),
            other if other.is_ascii_alphanumeric() => Err(BAD_ESCAPE),
            other => Ok(u32::from(other)),
        }
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let digits = if self.eat("{") {
            self.until("}")?
        } else {
            let (digits, rest) = self.0.split_at_checked(2)?;
            self.0 = rest;
            digits
        };
        let well_formed = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
        let significant = digits.trim_start_matches('0');
        let code = if significant.is_empty() { Some(0) } else { u32::from_str_radix(significant, 16).ok() };
        code.filter(|code| well_formed && *code <= LAST)
    }

    /// What follows `\p` or `\P`: a letter, or a name in braces.
    pub(super) fn unicode(&mut self, sort: char, fold: bool, unicode: &mut Unicode) -> Result<Set, Refused> {
        let name = if self.eat("{") {
            self.until("}").ok_or(BAD_RANGE)?
        } else {
            let length = self.0.chars().next().ok_or(BAD_RANGE)?.len_utf8();
            let (name, rest) = self.0.split_at_checked(length).ok_or(BAD_RANGE)?;
            self.0 = rest;
            name
        };
        let other = name.strip_prefix('^');
        let set = unicode.named(other.unwrap_or(name)).ok_or(BAD_RANGE)?;
        let set = if fold { set.folded() } else { set };
        Ok(if (sort == 'P') == other.is_some() { set } else { set.inverted() })
    }

    /// What follows an opening bracket, up to the closing one.
    pub(super) fn class(&mut self, fold: bool, unicode: &mut Unicode) -> Result<Set, Refused> {
        let inverted = self.eat("^");
        let mut set = Set::default();
        let mut first = true;
        while first || !self.eat("]") {
            first = false;
            let part = self.part_of_class(fold, unicode)?;
            set.add(part);
        }
        Ok(if inverted { set.inverted() } else { set })
    }

    fn part_of_class(&mut self, fold: bool, unicode: &mut Unicode) -> Result<Set, Refused> {
        let mut ahead = *self;
        if ahead.eat("[:")
            && let Some(name) = ahead.until(":]")
        {
            *self = ahead;
            return Set::posix(name, fold).ok_or(BAD_RANGE);
        }
        ahead = *self;
        if ahead.eat("\\") {
            match ahead.next() {
                Some(sort @ ('p' | 'P')) => {
                    *self = ahead;
                    return self.unicode(sort, fold, unicode);
                }
                letter => {
                    if let Some(set) = letter.and_then(Set::perl) {
                        *self = ahead;
                        return Ok(set);
                    }
                }
            }
        }
        self.range(fold)
    }

    fn range(&mut self, fold: bool) -> Result<Set, Refused> {
        let low = self.of_class()?;
        let high = if self.0.starts_with('-') && !self.0.starts_with("-]") {
            self.next();
            self.of_class()?
        } else {
            low
        };
        if high < low {
            return Err(BAD_RANGE);
        }
        Ok(if fold { Set::folded_range(low, high) } else { Set::range(low, high) })
    }

    fn of_class(&mut self) -> Result<u32, Refused> {
        match self.next().ok_or(NO_BRACKET)? {
            '\\' => self.escaped(),
            other => Ok(u32::from(other)),
        }
    }
}
