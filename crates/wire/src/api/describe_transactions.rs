//! DescribeTransactions, API 65: describes transactions.

use crate::ErrorCode;

message! {
    /// Describes transactions.
    DescribeTransactionsRequest versions 0..=0, flexible 0, {
        transactional_ids: Vec<String> [0..];
    }
}

message! {
    /// Answers [`DescribeTransactionsRequest`].
    DescribeTransactionsResponse versions 0..=0, flexible 0, {
        throttle_time_ms: i32 [0..];
        transaction_states: Vec<TransactionState> [0..];
    }
}

fields! {
    /// Part of [`DescribeTransactionsResponse`].
    TransactionState {
        error_code: ErrorCode [0..];
        transactional_id: String [0..];
        transaction_state: String [0..];
        transaction_timeout_ms: i32 [0..];
        transaction_start_time_ms: i64 [0..];
        producer_id: i64 [0..];
        producer_epoch: i16 [0..];
        topics: Vec<TopicData> [0..];
    }
}

fields! {
    /// Part of [`DescribeTransactionsResponse`].
    TopicData {
        topic: String [0..];
        partitions: Vec<i32> [0..];
    }
}
