//! Produce: what is accepted, what is refused, and batches that are sent twice.

use super::requests::{Bench, batch};
use bytes::Bytes;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure_eq};
use tontine_wire::ErrorCode;
use tontine_wire::records::{BatchBuilder, Compression};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "broker::produce", one: [
        what_no_consumer_could_read_is_refused,
        places_that_do_not_exist_are_refused,
        a_batch_that_is_sent_again_is_answered_and_not_appended_again,
        timestamps_that_are_far_off_are_refused,
    ]);
}

async fn what_no_consumer_could_read_is_refused(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    let good = batch(&["a"]);
    let mut damaged = good.to_vec();
    if let Some(last) = damaged.last_mut() {
        *last ^= 1;
    }
    let answer = bench.produce(0, damaged.into()).await?;
    ensure_eq!(answer.error_code, ErrorCode::CORRUPT_MESSAGE, "a damaged batch");
    ensure_eq!(answer.base_offset, -1, "its offset");
    let two = [&good[..], &good[..]].concat();
    let answer = bench.produce(0, two.into()).await?;
    ensure_eq!(answer.error_code, ErrorCode::INVALID_RECORD, "two batches");
    let answer = bench.produce(0, Bytes::new()).await?;
    ensure_eq!(answer.error_code, ErrorCode::INVALID_RECORD, "no batch");
    let mut control = BatchBuilder::new(Compression::None);
    control.control(true);
    control.append(1000, Some(&[0, 0, 0, 1]), None, []).map_err(|e| e.to_string())?;
    let answer = bench.produce(0, control.build(0)).await?;
    ensure_eq!(answer.error_code, ErrorCode::INVALID_RECORD, "a control batch");
    let answer = bench.produce(0, good).await?;
    ensure_eq!((answer.error_code, answer.base_offset), (ErrorCode::NONE, 0), "a good batch");
    ensure_eq!((answer.log_append_time_ms, answer.log_start_offset), (-1, 0), "what else it says");
    Ok(())
}

async fn places_that_do_not_exist_are_refused(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    let answer = bench.produce(7, batch(&["a"])).await?;
    ensure_eq!(answer.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "an unknown partition");
    let answer = bench.produce_with(3, 0, batch(&["a"])).await?;
    ensure_eq!(answer.error_code, ErrorCode::INVALID_REQUIRED_ACKS, "acks of 3");
    bench.topic = cluster.unique("nowhere");
    let answer = bench.produce(0, batch(&["a"])).await?;
    ensure_eq!(answer.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "an unknown topic");
    Ok(())
}

fn numbered(producer: i64, epoch: i16, sequence: i32) -> Result<Bytes, String> {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.producer(producer, epoch, sequence);
    builder.append(1_600_000_000_000, None, Some(b"v"), []).map_err(|error| error.to_string())?;
    Ok(builder.build(0))
}

async fn a_batch_that_is_sent_again_is_answered_and_not_appended_again(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    let (id, epoch) = bench.producer_id().await?;
    ensure_eq!(epoch, 0, "the epoch of a new producer");
    for (epoch, sequence, expected) in [
        (0, 0, (ErrorCode::NONE, 0)),
        (0, 1, (ErrorCode::NONE, 1)),
        (0, 0, (ErrorCode::NONE, 0)),
        (0, 3, (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)),
        (1, 1, (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)),
        (1, 0, (ErrorCode::NONE, 2)),
        (0, 2, (ErrorCode::INVALID_PRODUCER_EPOCH, -1)),
    ] {
        let answer = bench.produce(0, numbered(id, epoch, sequence)?).await?;
        let what = format!("epoch {epoch}, number {sequence}");
        ensure_eq!((answer.error_code, answer.base_offset), expected, "{what}");
    }
    ensure_eq!(bench.offset_at(7, -1).await?.offset, 3, "the end of the log");
    Ok(())
}

async fn timestamps_that_are_far_off_are_refused(cluster: Cluster) -> Outcome {
    let mut bench = Bench::new(&cluster, 1).await?;
    let answer = bench.produce(0, super::requests::batch_at(4_000_000_000_000, &["a", "b"])).await?;
    ensure_eq!(answer.error_code, ErrorCode::INVALID_TIMESTAMP, "a record from the future");
    ensure_eq!(answer.record_errors.iter().map(|e| e.batch_index).collect::<Vec<_>>(), [0, 1], "the records");
    let answer = bench.produce(0, super::requests::batch_at(1, &["a"])).await?;
    ensure_eq!(answer.error_code, ErrorCode::NONE, "a record from 1970");
    Ok(())
}
