//! Small values that messages are made of.

use std::{fmt, str::FromStr};

/// A 16-byte identifier of a topic, a member or a directory, written as Kafka writes it: 22 characters of URL-safe base64.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// The identifier that means "none".
    pub const ZERO: Self = Self([0; 16]);

    /// The identifier with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The identifier with these 128 bits; the highest come first on the wire.
    pub const fn from_u128(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }

    /// The bytes as they go over the wire.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Whether this is [`Uuid::ZERO`].
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        let mut text = [0u8; 22];
        for (i, c) in text.iter_mut().enumerate() {
            let shift = 122 - 6 * i as i32;
            let sextet = if shift >= 0 { bits >> shift } else { bits << -shift } & 63;
            *c = ALPHABET[sextet as usize];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 22 characters of URL-safe base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Kafka uuid: it must be 22 characters of URL-safe base64")]
pub struct ParseUuidError(String);

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseUuidError(text.chars().take(40).collect());
        let text_bytes = text.trim_end_matches('=').as_bytes();
        if text_bytes.len() != 22 {
            return Err(wrong());
        }
        let mut bits = 0u128;
        for (i, c) in text_bytes.iter().enumerate() {
            let value = ALPHABET.iter().position(|a| a == c).ok_or_else(wrong)? as u128;
            let shift = 122 - 6 * i as i32;
            bits |= if shift >= 0 { value << shift } else { value >> -shift };
        }
        Ok(Self(bits.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_survives_its_text_form() {
        for bits in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
            let id = Uuid::from_u128(bits);
            assert_eq!(id.to_string().len(), 22);
            assert_eq!(id.to_string().parse::<Uuid>().unwrap(), id);
        }
        assert!("short".parse::<Uuid>().is_err());
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
    }
}
