//! Which values a key allows, and what is said about one that is not allowed.

/// The kind of value of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number of 32 bits.
    Int {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A whole number of 64 bits.
    Long {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A number between 0 and 1.
    Double,
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text,
    /// Texts separated by commas.
    List,
    /// One of these.
    OneOf(&'static [&'static str]),
}

impl Kind {
    /// Why `value` is not allowed; `Ok` when it is.
    pub fn check(self, value: &str) -> Result<(), String> {
        match self {
            Self::Int { min, max } | Self::Long { min, max } => match value.trim().parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(()),
                Ok(_) => Err(format!("it must lie between {min} and {max}")),
                Err(_) => Err("it must be a whole number".into()),
            },
            Self::Double => match value.trim().parse::<f64>() {
                Ok(number) if (0.0..=1.0).contains(&number) => Ok(()),
                _ => Err("it must be a number between 0 and 1".into()),
            },
            Self::Bool => match value.trim() {
                "true" | "false" => Ok(()),
                _ => Err("it must be `true` or `false`".into()),
            },
            Self::OneOf(choices) if !choices.contains(&value.trim()) => {
                Err(format!("it must be one of {}", choices.join(", ")))
            }
            Self::OneOf(_) | Self::Text | Self::List => Ok(()),
        }
    }

    /// The number that DescribeConfigs gives this type.
    pub fn wire_type(self) -> i8 {
        match self {
            Self::Bool => 1,
            Self::Text | Self::OneOf(_) => 2,
            Self::Int { .. } => 3,
            Self::Long { .. } => 5,
            Self::Double => 6,
            Self::List => 7,
        }
    }
}
