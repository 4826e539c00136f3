//! Records of `__transaction_state`. Mirrors `TransactionLog`.

use super::coordinator::{Status, Transaction};
use bytes::Bytes;
use std::collections::BTreeMap;
use tontine_wire::codec::{Message, Reader, Wire};
use tontine_wire::transaction_records::{TransactionLogKey, TransactionLogValue, TransactionPartitions};

const VERSION: i16 = 0;

fn versioned<M: Message>(message: &M) -> Bytes {
    message.to_numbered_bytes(VERSION, VERSION)
}

fn read<M: Message>(bytes: Bytes) -> Option<M> {
    let mut reader = Reader::new(bytes);
    let version = i16::get(&mut reader, 0, false).ok()?;
    if version != VERSION { None } else { M::decode(reader.rest(), version).ok() }
}

pub(super) fn key(id: &str) -> Bytes {
    versioned(&TransactionLogKey { transactional_id: id.to_owned() })
}

pub(super) fn value(transaction: &Transaction) -> Bytes {
    let mut by_topic: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in &transaction.places {
        by_topic.entry(topic).or_default().push(*partition);
    }
    let partitions = by_topic.into_iter();
    let partitions = partitions
        .map(|(topic, partition_ids)| TransactionPartitions { topic: topic.to_owned(), partition_ids });
    versioned(&TransactionLogValue {
        producer_id: transaction.producer_id,
        producer_epoch: transaction.epoch,
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_status: transaction.status.number(),
        transaction_partitions: Some(partitions.collect()),
        transaction_last_update_timestamp_ms: transaction.updated_ms,
        transaction_start_timestamp_ms: transaction.started_ms,
    })
}

/// The id and what is known of it; `None` for what is not understood here.
pub(super) fn decode(key: Bytes, value: Option<Bytes>) -> Option<(String, Option<Transaction>)> {
    let id = read::<TransactionLogKey>(key)?.transactional_id;
    let Some(value) = value else { return Some((id, None)) };
    let value: TransactionLogValue = read(value)?;
    let places = value.transaction_partitions.unwrap_or_default().into_iter();
    let places = places.flat_map(|topic| {
        topic.partition_ids.into_iter().map(move |partition| (topic.topic.clone(), partition))
    });
    let transaction = Transaction {
        producer_id: value.producer_id,
        epoch: value.producer_epoch,
        timeout_ms: value.transaction_timeout_ms,
        status: Status::of_number(value.transaction_status)?,
        places: places.collect(),
        started_ms: value.transaction_start_timestamp_ms,
        updated_ms: value.transaction_last_update_timestamp_ms,
    };
    Some((id, Some(transaction)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_read_as_it_was_written() {
        let transaction = Transaction {
            producer_id: 7,
            epoch: 2,
            timeout_ms: 60_000,
            status: Status::PrepareAbort,
            places: [("a".to_owned(), 1), ("a".to_owned(), 2), ("b".to_owned(), 0)].into(),
            started_ms: 5,
            updated_ms: 9,
        };
        let stored = decode(key("pay"), Some(value(&transaction)));
        assert_eq!(stored, Some(("pay".to_owned(), Some(transaction))));
        assert_eq!(decode(key("pay"), None), Some(("pay".to_owned(), None)));
        assert_eq!(key("pay"), &b"\0\0\0\x03pay"[..]);
    }
}
