//! AddOffsetsToTxn, API 25: adds a group's offsets to a transaction.

use crate::ErrorCode;

message! {
    /// Adds a group's offsets to a transaction.
    AddOffsetsToTxnRequest versions 0..=4, flexible 3, {
        transactional_id: String [0..];
        producer_id: i64 [0..];
        producer_epoch: i16 [0..];
        group_id: String [0..];
    }
}

message! {
    /// Answers [`AddOffsetsToTxnRequest`].
    AddOffsetsToTxnResponse versions 0..=4, flexible 3, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [0..];
    }
}
