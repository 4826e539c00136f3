//! SaslHandshake, API 17: chooses a SASL mechanism.

use crate::ErrorCode;

message! {
    /// Chooses a SASL mechanism.
    SaslHandshakeRequest versions 0..=1, flexible i16::MAX, {
        mechanism: String [0..];
    }
}

message! {
    /// Answers [`SaslHandshakeRequest`].
    SaslHandshakeResponse versions 0..=1, flexible i16::MAX, {
        error_code: ErrorCode [0..];
        mechanisms: Vec<String> [0..];
    }
}
