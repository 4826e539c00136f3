//! One entry of an audit log, and how it is written: a flat JSON object on a line of its own.

use std::{collections::BTreeMap, fmt, fmt::Write};
use tontine_group::TopicPartition;

/// One thing that a member wrote down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in milliseconds since 1970 by the member's own clock.
    pub at: i64,
    /// The group.
    pub group: String,
    /// The member's id.
    pub member: String,
    /// The generation or member epoch, as the member knew it when this happened.
    pub epoch: i32,
    /// The partition.
    pub partition: TopicPartition,
    /// What happened.
    pub event: Event,
}

/// What happened to a partition at one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its assigned callback has returned.
    Assigned {
        /// The member's `group.instance.id`.
        instance: Option<String>,
        /// See [`Event::Released`].
        in_rounds: bool,
    },
    /// This offset is asked to be committed. If the process dies now, nobody knows whether it was.
    Asked {
        /// The offset: that of the next record to read.
        offset: i64,
    },
    /// The coordinator stored this offset; the entry's time is that at which the commit was asked for.
    Committed {
        /// The offset: that of the next record to read.
        offset: i64,
    },
    /// The position was moved otherwise than by handing out: by the application, or because the log was cut off.
    Sought,
    /// It is the member's no longer.
    Released {
        /// Since when it was, in milliseconds since 1970.
        from: i64,
        /// How it ended.
        why: Why,
        /// Where handing out began; `None`: nothing was handed out.
        first: Option<i64>,
        /// The last offset before the position.
        last: Option<i64>,
        /// What was committed last.
        committed: Option<i64>,
        /// The position was moved meanwhile: it says nothing about what was skipped.
        sought: bool,
        /// Epochs are generations of the whole group (the classic protocol): two members had the partition by right only
        /// if they had it in the same one.
        in_rounds: bool,
        /// When the coordinator had last confirmed the membership, in milliseconds since 1970.
        confirmed: Option<i64>,
    },
}

/// How an ownership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Given up in good order, after its revoked callback.
    Revoked,
    /// The membership was over before: somebody else may have had it by then.
    Lost,
    /// Let go without a callback, as when closing took too long.
    Left,
}

impl Why {
    const ALL: [Self; 3] = [Self::Revoked, Self::Lost, Self::Left];

    fn word(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Lost => "lost",
            Self::Left => "left",
        }
    }
}

impl Entry {
    /// The line, without its end.
    pub fn line(&self) -> String {
        let mut line = String::from("{");
        let event = match &self.event {
            Event::Assigned { .. } => "assigned",
            Event::Asked { .. } => "asked",
            Event::Committed { .. } => "committed",
            Event::Sought => "sought",
            Event::Released { .. } => "released",
        };
        number(&mut line, "at", Some(self.at));
        text(&mut line, "event", event);
        text(&mut line, "group", &self.group);
        text(&mut line, "topic", &self.partition.topic);
        number(&mut line, "partition", Some(self.partition.partition.into()));
        text(&mut line, "member", &self.member);
        number(&mut line, "epoch", Some(self.epoch.into()));
        match &self.event {
            Event::Sought => {}
            Event::Assigned { instance, in_rounds } => {
                if let Some(instance) = instance {
                    text(&mut line, "instance", instance);
                }
                number(&mut line, "rounds", Some(i64::from(*in_rounds)));
            }
            Event::Asked { offset } | Event::Committed { offset } => {
                number(&mut line, "offset", Some(*offset));
            }
            Event::Released { from, why, first, last, committed, sought, in_rounds, confirmed } => {
                number(&mut line, "from", Some(*from));
                number(&mut line, "to", Some(self.at));
                text(&mut line, "why", why.word());
                number(&mut line, "first", *first);
                number(&mut line, "last", *last);
                number(&mut line, "committed", *committed);
                number(&mut line, "sought", Some(i64::from(*sought)));
                number(&mut line, "rounds", Some(i64::from(*in_rounds)));
                number(&mut line, "confirmed", *confirmed);
            }
        }
        line.push('}');
        line
    }

    /// Reads a line.
    pub fn parse(line: &str) -> Result<Self, String> {
        let fields = Fields::parse(line)?;
        let partition = i32::try_from(fields.number("partition")?).map_err(|_| wrong("partition"))?;
        let event = match fields.text("event")? {
            "assigned" => Event::Assigned {
                instance: fields.text("instance").ok().map(str::to_owned),
                in_rounds: fields.number("rounds").is_ok_and(|rounds| rounds != 0),
            },
            "sought" => Event::Sought,
            "asked" => Event::Asked { offset: fields.number("offset")? },
            "committed" => Event::Committed { offset: fields.number("offset")? },
            "released" => {
                let word = fields.text("why")?;
                Event::Released {
                    from: fields.number("from")?,
                    why: Why::ALL.into_iter().find(|why| why.word() == word).ok_or_else(|| wrong("why"))?,
                    first: fields.number("first").ok(),
                    last: fields.number("last").ok(),
                    committed: fields.number("committed").ok(),
                    sought: fields.number("sought").is_ok_and(|sought| sought != 0),
                    in_rounds: fields.number("rounds").is_ok_and(|rounds| rounds != 0),
                    confirmed: fields.number("confirmed").ok(),
                }
            }
            other => return Err(format!("`{other}` is no event of an audit log")),
        };
        Ok(Self {
            at: fields.number("at")?,
            group: fields.text("group")?.to_owned(),
            member: fields.text("member")?.to_owned(),
            epoch: i32::try_from(fields.number("epoch")?).map_err(|_| wrong("epoch"))?,
            partition: TopicPartition::new(fields.text("topic")?, partition),
            event,
        })
    }
}

fn begin(line: &mut String, key: &str) {
    if line.len() > 1 {
        line.push(',');
    }
    // Writing to a string cannot fail.
    let _ = write!(line, "\"{key}\":");
}

fn number(line: &mut String, key: &str, value: Option<i64>) {
    begin(line, key);
    let _ = match value {
        Some(value) => write!(line, "{value}"),
        None => write!(line, "null"),
    };
}

fn text(line: &mut String, key: &str, value: &str) {
    begin(line, key);
    line.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    line.push('"');
}

fn wrong(key: &str) -> String {
    format!("`{key}` is missing or makes no sense")
}

enum Value {
    Number(i64),
    Text(String),
    Null,
}

/// The fields of a flat object: strings, whole numbers and nulls.
struct Fields(BTreeMap<String, Value>);

impl Fields {
    fn parse(line: &str) -> Result<Self, String> {
        let mut rest = line.trim().strip_prefix('{').ok_or("it is no JSON object")?.trim_start();
        let mut fields = BTreeMap::new();
        while !rest.starts_with('}') {
            let (key, after) = string(rest)?;
            let after = after.trim_start().strip_prefix(':').ok_or("a colon is missing")?.trim_start();
            let (value, after) = value(after)?;
            fields.insert(key, value);
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(more) => more.trim_start(),
                None if after.starts_with('}') => after,
                None => return Err("it ends in the middle".to_owned()),
            };
        }
        Ok(Self(fields))
    }

    fn number(&self, key: &str) -> Result<i64, String> {
        match self.0.get(key) {
            Some(Value::Number(number)) => Ok(*number),
            Some(Value::Text(_) | Value::Null) | None => Err(wrong(key)),
        }
    }

    fn text(&self, key: &str) -> Result<&str, String> {
        match self.0.get(key) {
            Some(Value::Text(text)) => Ok(text),
            Some(Value::Number(_) | Value::Null) | None => Err(wrong(key)),
        }
    }
}

fn value(rest: &str) -> Result<(Value, &str), String> {
    if rest.starts_with('"') {
        let (text, rest) = string(rest)?;
        return Ok((Value::Text(text), rest));
    }
    if let Some(rest) = rest.strip_prefix("null") {
        return Ok((Value::Null, rest));
    }
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    let number = digits.parse().map_err(|_| format!("`{digits}` is no whole number"))?;
    Ok((Value::Number(number), rest))
}

fn string(rest: &str) -> Result<(String, &str), String> {
    let rest = rest.strip_prefix('"').ok_or("a quotation mark is missing")?;
    let mut text = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((text, rest.get(at + 1..).unwrap_or_default())),
            '\\' => match chars.next() {
                Some((at, 'u')) => {
                    let digits = rest.get(at + 1..at + 5).unwrap_or_default();
                    let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                    text.push(code.ok_or("an escape makes no sense")?);
                    chars.nth(3);
                }
                Some((_, c)) => text.push(c),
                None => break,
            },
            c => text.push(c),
        }
    }
    Err("it ends in the middle".to_owned())
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}
