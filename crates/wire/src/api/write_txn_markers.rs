//! WriteTxnMarkers, API 27: writes the end of transactions into partitions.

use crate::ErrorCode;

message! {
    /// Writes the end of transactions into partitions.
    WriteTxnMarkersRequest versions 1..=2, flexible 1, {
        markers: Vec<WritableTxnMarker> [0..];
    }
}

fields! {
    /// Part of [`WriteTxnMarkersRequest`].
    WritableTxnMarker {
        producer_id: i64 [0..];
        producer_epoch: i16 [0..];
        transaction_result: bool [0..];
        topics: Vec<WritableTxnMarkerTopic> [0..];
        coordinator_epoch: i32 [0..];
        transaction_version: i8 [2..];
    }
}

fields! {
    /// Part of [`WriteTxnMarkersRequest`].
    WritableTxnMarkerTopic {
        name: String [0..];
        partition_indexes: Vec<i32> [0..];
    }
}

message! {
    /// Answers [`WriteTxnMarkersRequest`].
    WriteTxnMarkersResponse versions 1..=2, flexible 1, {
        markers: Vec<WritableTxnMarkerResult> [0..];
    }
}

fields! {
    /// Part of [`WriteTxnMarkersResponse`].
    WritableTxnMarkerResult {
        producer_id: i64 [0..];
        topics: Vec<WritableTxnMarkerTopicResult> [0..];
    }
}

fields! {
    /// Part of [`WriteTxnMarkersResponse`].
    WritableTxnMarkerTopicResult {
        name: String [0..];
        partitions: Vec<WritableTxnMarkerPartitionResult> [0..];
    }
}

fields! {
    /// Part of [`WriteTxnMarkersResponse`].
    WritableTxnMarkerPartitionResult {
        partition_index: i32 [0..];
        error_code: ErrorCode [0..];
    }
}
