//! Reads an expression as RE2/J reads it, which Kafka matches topics with, and writes it for the matcher that is here.
//!
//! The two are close relatives, but not the same: `\Q..\E`, `a{` and octal characters mean something there and are errors
//! here, `a**` the other way round, `&&` within brackets means an intersection here and two characters there. So every
//! construct is read here, what RE2/J refuses is refused with its words, and what is written needs no interpretation:
//! sets, groups, alternatives and repetitions. Captures, greed and the flags about lines are left out, since they make no
//! difference to the question whether a topic's name as a whole is meant. Mirrors `Parser` of RE2/J 1.8.

use super::{
    class::{Set, Unicode},
    cursor::Cursor,
};
use std::collections::BTreeSet;

/// How often RE2/J allows something to be repeated by a number.
const MOST: u32 = 1000;

/// What RE2/J says of an expression that is none.
pub(super) type Refused = &'static str;

pub(super) const BAD_RANGE: Refused = "invalid character class range";
pub(super) const BAD_ESCAPE: Refused = "invalid escape sequence";
pub(super) const NO_BRACKET: Refused = "missing closing ]";
pub(super) const TRAILING: Refused = "trailing backslash at end of expression";
const BAD_NAME: Refused = "invalid named capture";
const SAME_NAME: Refused = "duplicate capture group name";
const BAD_FLAGS: Refused = "invalid or unsupported Perl syntax";
const BAD_REPEAT: Refused = "invalid repeat count";
const NESTED_REPEAT: Refused = "invalid nested repetition operator";
const NOTHING_TO_REPEAT: Refused = "missing argument to repetition operator";
const NO_PAREN: Refused = "missing closing )";
/// RE2/J takes this for a fault of its own.
const NO_OPENING: Refused = "regexp/syntax: internal error";

/// The expression for the matcher.
pub(super) fn translate(expression: &str) -> Result<String, Refused> {
    let mut translator = Translator::new(expression);
    while translator.cursor.more() {
        translator.step()?;
    }
    if translator.groups.is_empty() { Ok(translator.out) } else { Err(NO_PAREN) }
}

/// An open group.
struct Group {
    at: usize,
    fold: bool,
}

struct Translator<'a> {
    cursor: Cursor<'a>,
    out: String,
    groups: Vec<Group>,
    names: BTreeSet<&'a str>,
    unicode: Unicode,
    /// Whether case does not matter.
    fold: bool,
    /// Where what a repetition would repeat begins.
    operand: Option<usize>,
    /// The last thing was a repetition, or a brace that looked like one.
    repeated: bool,
    /// What would be repeated is a repetition.
    is_repetition: bool,
}

impl<'a> Translator<'a> {
    fn new(expression: &'a str) -> Self {
        Self {
            cursor: Cursor::new(expression),
            out: String::new(),
            groups: Vec::new(),
            names: BTreeSet::new(),
            unicode: Unicode::default(),
            fold: false,
            operand: None,
            repeated: false,
            is_repetition: false,
        }
    }

    fn step(&mut self) -> Result<(), Refused> {
        let repeated = std::mem::take(&mut self.repeated);
        if self.cursor.eat("(?") {
            return self.flags();
        }
        match self.cursor.next() {
            Some('(') => self.open(),
            Some(')') => self.close()?,
            Some('|') => {
                self.out.push('|');
                self.operand = None;
            }
            Some('^') => self.atom(r"\A"),
            Some('$') => self.atom(r"\z"),
            Some('.') => self.set(Set::ALL),
            Some('[') => {
                let set = self.cursor.class(self.fold, &mut self.unicode)?;
                self.set(set);
            }
            Some('*') => self.repeat(0, None, repeated)?,
            Some('+') => self.repeat(1, None, repeated)?,
            Some('?') => self.repeat(0, Some(1), repeated)?,
            Some('{') => self.brace(repeated)?,
            Some('\\') => self.escape()?,
            Some(other) => self.literal(u32::from(other)),
            None => {}
        }
        Ok(())
    }

    fn atom(&mut self, text: &str) {
        self.operand = Some(self.out.len());
        self.is_repetition = false;
        self.out.push_str(text);
    }

    fn set(&mut self, set: Set) {
        self.atom("");
        set.write(&mut self.out);
    }

    fn literal(&mut self, code: u32) {
        self.set(if self.fold { Set::folded_range(code, code) } else { Set::range(code, code) });
    }

    fn open(&mut self) {
        self.groups.push(Group { at: self.out.len(), fold: self.fold });
        self.out.push_str("(?:");
        self.operand = None;
    }

    fn close(&mut self) -> Result<(), Refused> {
        let group = self.groups.pop().ok_or(NO_OPENING)?;
        self.out.push(')');
        self.fold = group.fold;
        self.operand = Some(group.at);
        self.is_repetition = false;
        Ok(())
    }

    /// What follows `(?`: a name, or flags for the rest of this group or for one of their own.
    fn flags(&mut self) -> Result<(), Refused> {
        if self.cursor.eat("P<") || self.cursor.eat("<") {
            return self.named();
        }
        let (mut fold, mut on, mut saw) = (self.fold, true, false);
        loop {
            match self.cursor.next() {
                Some('i') => (fold, saw) = (on, true),
                Some('m' | 's' | 'U') => saw = true,
                Some('-') if on => (on, saw) = (false, false),
                Some(':') if on || saw => {
                    self.open();
                    break;
                }
                Some(')') if on || saw => break,
                Some(_) | None => return Err(BAD_FLAGS),
            }
        }
        self.fold = fold;
        Ok(())
    }

    fn named(&mut self) -> Result<(), Refused> {
        let name = self.cursor.until(">").ok_or(BAD_NAME)?;
        if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            return Err(BAD_NAME);
        }
        if !self.names.insert(name) {
            return Err(SAME_NAME);
        }
        self.open();
        Ok(())
    }

    /// A brace that is not the beginning of a count is a brace.
    fn brace(&mut self, repeated: bool) -> Result<(), Refused> {
        let before = self.cursor;
        match self.cursor.count() {
            Some((least, most)) => {
                if least > MOST || most.is_some_and(|most| most > MOST || most < least) {
                    return Err(BAD_REPEAT);
                }
                self.repeat(least, most, repeated)
            }
            None => {
                self.cursor = before;
                self.literal(u32::from('{'));
                self.repeated = true;
                Ok(())
            }
        }
    }

    fn repeat(&mut self, least: u32, most: Option<u32>, repeated: bool) -> Result<(), Refused> {
        self.cursor.eat("?");
        if repeated {
            return Err(NESTED_REPEAT);
        }
        let operand = self.operand.ok_or(NOTHING_TO_REPEAT)?;
        if self.is_repetition {
            // Flags may stand between two repetitions.
            self.out.insert_str(operand, "(?:");
            self.out.push(')');
        }
        match most {
            Some(most) => self.out.push_str(&format!("{{{least},{most}}}")),
            None => self.out.push_str(&format!("{{{least},}}")),
        }
        (self.repeated, self.is_repetition) = (true, true);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Refused> {
        let before = self.cursor;
        match self.cursor.next() {
            Some('A') => self.atom(r"\A"),
            Some('z') => self.atom(r"\z"),
            Some('b') => self.atom(r"\b"),
            Some('B') => self.atom(r"\B"),
            Some('Q') => {
                let quoted = self.cursor.until(r"\E").unwrap_or_else(|| self.cursor.rest());
                quoted.chars().for_each(|c| self.literal(u32::from(c)));
            }
            Some(sort @ ('p' | 'P')) => {
                let set = self.cursor.unicode(sort, self.fold, &mut self.unicode)?;
                self.set(set);
            }
            Some(letter) => match Set::perl(letter) {
                Some(set) => self.set(set),
                None => {
                    self.cursor = before;
                    let code = self.cursor.escaped()?;
                    self.literal(code);
                }
            },
            None => return Err(TRAILING),
        }
        Ok(())
    }
}
