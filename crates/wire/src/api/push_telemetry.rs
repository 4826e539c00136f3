//! PushTelemetry, API 72: sends metrics to a broker.

use crate::{ErrorCode, Uuid};
use bytes::Bytes;

message! {
    /// Sends metrics to a broker.
    PushTelemetryRequest versions 0..=0, flexible 0, {
        client_instance_id: Uuid [0..];
        subscription_id: i32 [0..];
        terminating: bool [0..];
        compression_type: i8 [0..];
        metrics: Bytes [0..];
    }
}

message! {
    /// Answers [`PushTelemetryRequest`].
    PushTelemetryResponse versions 0..=0, flexible 0, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [0..];
    }
}
