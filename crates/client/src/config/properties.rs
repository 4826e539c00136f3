//! Reads `.properties` files as `java.util.Properties` does: comments, continued lines, `\` escapes.

use crate::Error;

/// The pairs of a `.properties` text, in its order.
pub fn properties(text: &str) -> Result<Vec<(String, String)>, Error> {
    logical_lines(text).map(|(number, line)| pair(&line).map_err(|why| bad_line(number, why))).collect()
}

fn bad_line(number: usize, why: &str) -> Error {
    Error::configuration(format!("line {number} of the properties: {why}"))
}

/// Lines without comments and blanks, with the lines that a `\` continues put together, and their numbers.
fn logical_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut lines = text
        .split('\n')
        .map(|l| l.trim_end_matches('\r').trim_start_matches([' ', '\t', '\x0c']))
        .enumerate();
    std::iter::from_fn(move || {
        let (number, first) = lines.find(|(_, l)| !l.is_empty() && !l.starts_with(['#', '!']))?;
        let mut line = first.to_owned();
        while is_continued(&line) {
            line.pop();
            match lines.next() {
                Some((_, next)) => line.push_str(next),
                None => break,
            }
        }
        Some((number + 1, line))
    })
}

fn is_continued(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

fn pair(line: &str) -> Result<(String, String), &'static str> {
    let mut escaped = false;
    let ends = |c: char| {
        let here = !escaped && matches!(c, '=' | ':' | ' ' | '\t' | '\x0c');
        escaped = !escaped && c == '\\';
        here
    };
    let (key, rest) = line.split_at(line.find(ends).unwrap_or(line.len()));
    let blank = [' ', '\t', '\x0c'];
    let rest = rest.trim_start_matches(blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(blank);
    Ok((unescape(key)?, unescape(rest)?))
}

fn unescape(text: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(text.len());
    let mut units = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' { chars.next() } else { None }.map_or(Plain(c), Escaped);
        if let Escaped('u') = c {
            units.push(unicode(&mut chars)?);
            continue;
        }
        flush(&mut units, &mut out)?;
        out.push(match c {
            Escaped('t') => '\t',
            Escaped('n') => '\n',
            Escaped('r') => '\r',
            Escaped('f') => '\x0c',
            Escaped(c) | Plain(c) => c,
        });
    }
    flush(&mut units, &mut out)?;
    Ok(out)
}

enum Letter {
    Plain(char),
    Escaped(char),
}
use Letter::{Escaped, Plain};

fn unicode(chars: &mut std::str::Chars<'_>) -> Result<u16, &'static str> {
    let digits: String = chars.take(4).collect();
    let right = digits.len() == 4 && digits.chars().all(|c| c.is_ascii_hexdigit());
    u16::from_str_radix(&digits, 16).ok().filter(|_| right).ok_or("`\\u` needs four hexadecimal digits")
}

/// Java's escapes are UTF-16: two of them may be one letter.
fn flush(units: &mut Vec<u16>, out: &mut String) -> Result<(), &'static str> {
    out.push_str(&String::from_utf16(units).map_err(|_| "`\\u` escapes that are no letter")?);
    units.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        properties(text).unwrap()
    }

    fn one(text: &str) -> (String, String) {
        let mut all = read(text);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn keys_end_at_an_equals_sign_a_colon_or_a_blank() {
        let expected = ("group.id".to_owned(), "billing".to_owned());
        for text in [
            "group.id=billing",
            "group.id: billing",
            "group.id billing",
            "  group.id \t=  billing",
            "group.id=billing\r\n",
        ] {
            assert_eq!(one(text), expected, "{text:?}");
        }
        assert_eq!(one("a=b=c").1, "b=c");
        assert_eq!(one("a"), ("a".to_owned(), String::new()));
        assert_eq!(one("a=b ").1, "b ");
    }

    #[test]
    fn comments_and_blank_lines_are_no_settings() {
        assert_eq!(read("# a=1\n! b=2\n\n   \n  # c=3\n"), []);
        assert_eq!(one("a=1 # not a comment").1, "1 # not a comment");
    }

    #[test]
    fn a_backslash_continues_a_line() {
        assert_eq!(one("servers=a:1,\\\n    b:2,\\\n    c:3").1, "a:1,b:2,c:3");
        assert_eq!(one("path=C:\\\\").1, "C:\\");
        assert_eq!(one("a=b\\").1, "b");
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(
            one(r"a\=b\:c\ d=x\ty\u00e4\ud83d\ude00\q"),
            ("a=b:c d".to_owned(), "x\ty\u{e4}\u{1f600}q".to_owned())
        );
        let error = properties("a=1\nb=\\u12").unwrap_err().to_string();
        assert_eq!(error, "line 2 of the properties: `\\u` needs four hexadecimal digits");
        assert!(properties(r"a=\ud83d").is_err());
    }
}
