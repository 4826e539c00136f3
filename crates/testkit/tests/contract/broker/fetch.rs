//! Fetch and what finds offsets: values, limits, waiting, epochs.

use super::requests::{Bench, batch, batch_at, connect, offsets, shape};
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq};
use tontine_wire::ErrorCode;
use tontine_wire::Uuid;
use tontine_wire::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use tontine_wire::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "broker::fetch", one: [
        a_fetch_answers_whole_batches_and_where_the_log_ends,
        errors_are_told_per_partition,
        limits_are_soft_for_the_first_partition_with_records_only,
        a_fetch_waits_for_records,
        epochs_are_compared,
        offsets_are_found_by_time_start_end_and_largest_timestamp,
        deleted_records_are_out_of_range,
    ]);
}

async fn a_fetch_answers_whole_batches_and_where_the_log_ends(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    bench.produce(0, batch(&["a", "b"])).await?;
    bench.produce(0, batch(&["c"])).await?;
    let all = bench.fetch(0, 0).await?;
    ensure_eq!(offsets(&all), [0, 1, 2], "from the start");
    ensure_eq!((all.high_watermark, all.last_stable_offset, all.log_start_offset), (3, 3, 0), "the offsets");
    ensure_eq!((all.preferred_read_replica, all.aborted_transactions), (-1, None), "what else it says");
    ensure_eq!(offsets(&bench.fetch(0, 1).await?), [0, 1, 2], "from within a batch");
    ensure_eq!(offsets(&bench.fetch(0, 2).await?), [2], "from the last batch");
    let end = bench.fetch(0, 3).await?;
    ensure_eq!(end.records.map(|records| records.len()), Some(0), "at the end");
    Ok(())
}

async fn errors_are_told_per_partition(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    let far = bench.fetch(0, 1).await?;
    ensure_eq!(far.error_code, ErrorCode::OFFSET_OUT_OF_RANGE, "behind the end");
    ensure_eq!(
        (far.high_watermark, far.last_stable_offset, far.log_start_offset),
        (-1, -1, -1),
        "its offsets"
    );
    ensure_eq!(far.records.map(|records| records.len()), Some(0), "its records");
    ensure_eq!(bench.fetch(0, -1).await?.error_code, ErrorCode::OFFSET_OUT_OF_RANGE, "before the start");
    ensure_eq!(
        bench.fetch(3, 0).await?.error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        "an unknown partition"
    );
    let mut by_id = bench.fetch_request(&[(0, 0)]);
    by_id.topics[0].topic.clear();
    by_id.topics[0].topic_id = Uuid::from_u128(77);
    let answer = bench.conn.call(13, by_id).await?;
    ensure_eq!(answer.error_code, ErrorCode::NONE, "the answer as a whole");
    ensure_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID, "an unknown id");
    bench.topic = cluster.unique("nowhere");
    ensure_eq!(
        bench.fetch(0, 0).await?.error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        "an unknown topic"
    );
    Ok(())
}

async fn limits_are_soft_for_the_first_partition_with_records_only(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 2).await?;
    let large = "x".repeat(1000);
    for partition in [0, 0, 1] {
        bench.produce(partition, batch(&[&large])).await?;
    }
    let mut request = bench.fetch_request(&[(0, 0), (1, 0)]);
    request.max_bytes = 10;
    ensure_eq!(shape(&bench.conn.call(12, request.clone()).await?), [(0, 1), (1, 0)], "less than a batch");
    request.max_bytes = 1 << 20;
    request.topics[0].partitions[0].partition_max_bytes = 1;
    ensure_eq!(shape(&bench.conn.call(12, request).await?), [(0, 1), (1, 1)], "a small limit of a partition");
    Ok(())
}

async fn a_fetch_waits_for_records(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 2).await?;
    let mut request = bench.fetch_request(&[(0, 0), (1, 0)]);
    request.max_wait_ms = 100;
    ensure_eq!(shape(&bench.conn.call(12, request.clone()).await?), [(0, 0), (1, 0)], "after the wait");
    request.max_wait_ms = 15_000;
    let mut waiting = connect(&cluster).await?;
    let pending = waiting.send(12, request).await?;
    ensure!(
        !waiting.is_answered_within(Duration::from_millis(200)).await?,
        "it was answered without records"
    );
    bench.produce(1, batch(&["x"])).await?;
    ensure_eq!(shape(&waiting.receive(pending).await?), [(0, 0), (1, 1)], "when a record came");
    Ok(())
}

async fn epochs_are_compared(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    bench.produce(0, batch(&["a", "b"])).await?;
    let with = |bench: &Bench, current: i32, last: i32| {
        let mut request = bench.fetch_request(&[(0, 1)]);
        request.topics[0].partitions[0].current_leader_epoch = current;
        request.topics[0].partitions[0].last_fetched_epoch = last;
        request
    };
    let request = with(&bench, 5, -1);
    let newer = bench.conn.call(12, request).await?.responses.remove(0).partitions.remove(0);
    ensure_eq!(newer.error_code, ErrorCode::UNKNOWN_LEADER_EPOCH, "an epoch of the future");
    let request = with(&bench, 0, 0);
    let same = bench.conn.call(12, request).await?.responses.remove(0).partitions.remove(0);
    ensure_eq!((same.error_code, same.diverging_epoch.epoch), (ErrorCode::NONE, -1), "the epoch there is");
    let ask = |current_leader_epoch, leader_epoch| OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: vec![OffsetForLeaderTopic {
            topic: bench.topic.clone(),
            partitions: vec![OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch }],
        }],
    };
    for (current, epoch, expected) in [
        (-1, 0, (ErrorCode::NONE, 0, 2)),
        (0, 7, (ErrorCode::NONE, -1, -1)),
        (9, 0, (ErrorCode::UNKNOWN_LEADER_EPOCH, -1, -1)),
    ] {
        let answer = bench.conn.call(4, ask(current, epoch)).await?.topics.remove(0).partitions.remove(0);
        let what = format!("the end of epoch {epoch}, asked in epoch {current}");
        ensure_eq!((answer.error_code, answer.leader_epoch, answer.end_offset), expected, "{what}");
    }
    Ok(())
}

async fn offsets_are_found_by_time_start_end_and_largest_timestamp(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    let empty = bench.offset_at(7, -3).await?;
    ensure_eq!((empty.error_code, empty.offset, empty.timestamp), (ErrorCode::NONE, -1, -1), "nothing there");
    for time in [1000, 3000, 2000] {
        bench.produce(0, batch_at(time, &["a", "b"])).await?;
    }
    for (version, asked, expected) in [
        (7, -2, (0, 0, -1)),
        (7, -1, (0, 6, -1)),
        (7, 0, (0, 0, 1000)),
        (7, 1001, (0, 1, 1001)),
        (7, 1002, (0, 2, 3000)),
        (7, 9000, (0, -1, -1)),
        (7, -3, (0, 3, 3001)),
        (8, -4, (0, 0, -1)),
        (9, -5, (0, -1, -1)),
    ] {
        let found = bench.offset_at(version, asked).await?;
        let what = format!("what was asked with {asked}");
        ensure_eq!((found.error_code.0, found.offset, found.timestamp), expected, "{what}");
    }
    ensure_eq!(bench.offset_at(7, -1).await?.leader_epoch, 0, "the epoch of the end");
    Ok(())
}

async fn deleted_records_are_out_of_range(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    bench.produce(0, batch(&["a", "b", "c"])).await?;
    bench.produce(0, batch(&["d"])).await?;
    let topic = bench.topic.clone();
    let delete = |offset| DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: topic.clone(),
            partitions: vec![DeleteRecordsPartition { partition_index: 0, offset }],
        }],
        timeout_ms: 5000,
    };
    for (offset, expected) in [
        (5, (ErrorCode::OFFSET_OUT_OF_RANGE, -1)),
        (2, (ErrorCode::NONE, 2)),
        (1, (ErrorCode::NONE, 2)),
        (-1, (ErrorCode::NONE, 4)),
    ] {
        let answer = bench.conn.call(2, delete(offset)).await?.topics.remove(0).partitions.remove(0);
        let what = format!("deleting up to {offset}");
        ensure_eq!((answer.error_code, answer.low_watermark), expected, "{what}");
    }
    ensure_eq!(bench.fetch(0, 3).await?.error_code, ErrorCode::OFFSET_OUT_OF_RANGE, "a deleted record");
    ensure_eq!(bench.fetch(0, 4).await?.log_start_offset, 4, "the start of the log");
    ensure_eq!(bench.offset_at(7, -2).await?.offset, 4, "the earliest offset");
    Ok(())
}
