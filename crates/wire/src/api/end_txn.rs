//! EndTxn, API 26: commits or aborts a transaction.

use crate::ErrorCode;

message! {
    /// Commits or aborts a transaction.
    EndTxnRequest versions 0..=5, flexible 3, {
        transactional_id: String [0..];
        producer_id: i64 [0..];
        producer_epoch: i16 [0..];
        committed: bool [0..];
    }
}

message! {
    /// Answers [`EndTxnRequest`].
    EndTxnResponse versions 0..=5, flexible 3, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [0..];
        producer_id: i64 [5..] = -1;
        producer_epoch: i16 [5..] = -1;
    }
}
