//! ListTransactions, API 66: lists transactions.

use crate::ErrorCode;

message! {
    /// Lists transactions.
    ListTransactionsRequest versions 0..=2, flexible 0, {
        state_filters: Vec<String> [0..];
        producer_id_filters: Vec<i64> [0..];
        duration_filter: i64 [1..] = -1;
        transactional_id_pattern: Option<String> [2..];
    }
}

message! {
    /// Answers [`ListTransactionsRequest`].
    ListTransactionsResponse versions 0..=2, flexible 0, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [0..];
        unknown_state_filters: Vec<String> [0..];
        transaction_states: Vec<TransactionState> [0..];
    }
}

fields! {
    /// Part of [`ListTransactionsResponse`].
    TransactionState {
        transactional_id: String [0..];
        producer_id: i64 [0..];
        transaction_state: String [0..];
    }
}
