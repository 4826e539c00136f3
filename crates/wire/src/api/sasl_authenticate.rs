//! SaslAuthenticate, API 36: exchanges SASL tokens.

use crate::ErrorCode;
use bytes::Bytes;

message! {
    /// Exchanges SASL tokens.
    SaslAuthenticateRequest versions 0..=2, flexible 2, {
        auth_bytes: Bytes [0..];
    }
}

message! {
    /// Answers [`SaslAuthenticateRequest`].
    SaslAuthenticateResponse versions 0..=2, flexible 2, {
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
        auth_bytes: Bytes [0..];
        session_lifetime_ms: i64 [1..];
    }
}
