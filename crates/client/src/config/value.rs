//! How values of settings are read from text, checked against their range and shown.

use std::{fmt, time::Duration};

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Whatever its type can be.
    Any,
    /// A text that is not blank, when it is set.
    NotBlank,
    /// A number, or a time in milliseconds, from here to there.
    Numbers(i64, i64),
}

impl Range {
    /// Numbers from here on.
    pub const fn from(low: i64) -> Self {
        Self::Numbers(low, i32::MAX as i64)
    }

    fn holds(self, number: i64) -> Result<(), String> {
        match self {
            Self::Numbers(low, _) if number < low => Err(format!("{number} is out of range: {self}")),
            Self::Numbers(_, high) if number > high => {
                Err(format!("{number} is out of range: at most {high}"))
            }
            Self::Any | Self::NotBlank | Self::Numbers(..) => Ok(()),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDEST: i64 = i32::MAX as i64;
        match self {
            Self::Any => Ok(()),
            Self::NotBlank => f.write_str("not blank"),
            Self::Numbers(low, WIDEST | i64::MAX) => write!(f, "at least {low}"),
            Self::Numbers(low, high) => write!(f, "{low} to {high}"),
        }
    }
}

/// The type of a setting.
pub trait Value: Sized {
    /// Reads the text of a configuration file.
    fn parse(text: &str) -> Result<Self, String>;
    /// Whether the value is in range.
    fn check(&self, range: Range) -> Result<(), String>;
    /// The text that [`Value::parse`] reads.
    fn show(&self) -> String;
    /// What values of the type look like, for the documentation.
    fn kind() -> &'static str;
}

/// What may be given to a typed setter for a setting of type `T`.
pub trait IntoSetting<T> {
    /// The setting.
    fn into_setting(self) -> T;
}

impl<T> IntoSetting<T> for T {
    fn into_setting(self) -> T {
        self
    }
}

impl IntoSetting<String> for &str {
    fn into_setting(self) -> String {
        self.to_owned()
    }
}

impl IntoSetting<Option<String>> for &str {
    fn into_setting(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl IntoSetting<Option<String>> for String {
    fn into_setting(self) -> Option<String> {
        Some(self)
    }
}

impl IntoSetting<Vec<String>> for &str {
    fn into_setting(self) -> Vec<String> {
        split(self)
    }
}

impl IntoSetting<Vec<String>> for String {
    fn into_setting(self) -> Vec<String> {
        split(&self)
    }
}

impl<const N: usize> IntoSetting<Vec<String>> for [&str; N] {
    fn into_setting(self) -> Vec<String> {
        self.into_iter().map(str::to_owned).collect()
    }
}

impl IntoSetting<Vec<String>> for &[&str] {
    fn into_setting(self) -> Vec<String> {
        self.iter().map(|&s| s.to_owned()).collect()
    }
}

fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

impl Value for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        let ms: i64 =
            text.trim().parse().map_err(|_| format!("`{text}` is not a time: it must be milliseconds"))?;
        // Negative times are out of every range; the range's own message is better than one about the type.
        u64::try_from(ms).map(Self::from_millis).map_err(|_| format!("{ms} is out of range: at least 0"))
    }
    fn check(&self, range: Range) -> Result<(), String> {
        range.holds(i64::try_from(self.as_millis()).unwrap_or(i64::MAX))
    }
    fn show(&self) -> String {
        self.as_millis().to_string()
    }
    fn kind() -> &'static str {
        "milliseconds"
    }
}

macro_rules! number_values {
    ($($t:ty),*) => { $(
        impl Value for $t {
            fn parse(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|_| format!("`{text}` is not a whole number from {} to {}", <$t>::MIN, <$t>::MAX))
            }
            fn check(&self, range: Range) -> Result<(), String> {
                range.holds(i64::from(*self))
            }
            fn show(&self) -> String {
                self.to_string()
            }
            fn kind() -> &'static str {
                "whole number"
            }
        }
    )* };
}

number_values!(i16, i32, i64);

impl Value for bool {
    fn parse(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("`{text}` is neither true nor false")),
        }
    }
    fn check(&self, _: Range) -> Result<(), String> {
        Ok(())
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn kind() -> &'static str {
        "true, false"
    }
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
    fn check(&self, range: Range) -> Result<(), String> {
        if range == Range::NotBlank && self.trim().is_empty() {
            return Err("it must not be blank".to_owned());
        }
        Ok(())
    }
    fn show(&self) -> String {
        self.clone()
    }
    fn kind() -> &'static str {
        "text"
    }
}

impl Value for Option<String> {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Some(text.to_owned()))
    }
    fn check(&self, range: Range) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), |s| s.check(range))
    }
    fn show(&self) -> String {
        self.clone().unwrap_or_default()
    }
    fn kind() -> &'static str {
        "text"
    }
}

impl Value for Vec<String> {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(split(text))
    }
    fn check(&self, _: Range) -> Result<(), String> {
        match self.iter().enumerate().find(|(i, s)| self[..*i].contains(s)) {
            Some((_, twice)) => Err(format!("`{twice}` is named twice")),
            None => Ok(()),
        }
    }
    fn show(&self) -> String {
        self.join(",")
    }
    fn kind() -> &'static str {
        "list"
    }
}
