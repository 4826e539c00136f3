//! Keys and values of `__transaction_state`, in Kafka's own formats.
//!
//! A key starts with an int16 that is its version, and so does a value; the tables below are what follows that number.

message! {
    /// The key: a transactional id.
    TransactionLogKey versions 0..=0, flexible i16::MAX, {
        transactional_id: String [0..=0];
    }
}

message! {
    /// The value: where the transaction of this id stands.
    TransactionLogValue versions 0..=0, flexible i16::MAX, {
        producer_id: i64 [0..];
        producer_epoch: i16 [0..];
        transaction_timeout_ms: i32 [0..];
        transaction_status: i8 [0..];
        transaction_partitions: Option<Vec<TransactionPartitions>> [0..];
        transaction_last_update_timestamp_ms: i64 [0..];
        transaction_start_timestamp_ms: i64 [0..];
    }
}

fields! {
    /// Part of [`TransactionLogValue`].
    TransactionPartitions {
        topic: String [0..];
        partition_ids: Vec<i32> [0..];
    }
}
