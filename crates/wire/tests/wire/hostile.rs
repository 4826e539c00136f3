//! The fuzzer's targets with bytes that are nearly right: the same in every run, and as many as a test may take.

use crate::{damage::damaged, targets, vectors::Random};
use bytes::Bytes;
use tontine_wire::{
    api::fetch::{AbortedTransaction, FetchResponse, FetchableTopicResponse, PartitionData},
    codec::Message,
    records::{BatchBuilder, Compression},
};

/// A few batches, one with each compression, with headers and with nulls.
pub(crate) fn batches() -> Bytes {
    let batch = |compression: &Compression| {
        let mut builder = BatchBuilder::new(*compression);
        builder
            .append(1, Some(b"key"), Some(&[7; 40]), [("header", Some(&b"value"[..])), ("", None)])
            .unwrap();
        builder.skip_offsets(2);
        builder.append(2, None, None, []).unwrap();
        builder.build(5)
    };
    Compression::ALL.iter().flat_map(batch).collect()
}

/// An answer with two partitions, as a version byte and the message.
pub(crate) fn answer(version: i16) -> Vec<u8> {
    let aborted = AbortedTransaction { producer_id: 4, first_offset: 5 };
    let partition = |partition_index| PartitionData {
        partition_index,
        high_watermark: 9,
        aborted_transactions: Some(vec![aborted.clone()]),
        records: Some(batches()),
        ..PartitionData::default()
    };
    let topic = FetchableTopicResponse {
        topic: if version < 13 { "t".into() } else { String::new() },
        partitions: vec![partition(0), partition(1)],
        ..FetchableTopicResponse::default()
    };
    let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
    [&[(version - 4) as u8][..], &response.to_bytes(version)].concat()
}

#[test]
fn the_targets_read_what_is_right() {
    assert_eq!(targets::records(&batches()), 2 * Compression::ALL.len());
    for version in 4..=18 {
        assert_eq!(targets::fetch_response(&answer(version)), 4 * Compression::ALL.len(), "{version}");
    }
}

#[test]
fn records_that_are_damaged_anywhere_are_an_error_or_other_records() {
    let (whole, mut random) = (batches(), Random(11));
    for place in 0..whole.len() {
        for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[place] = value;
            targets::records(&bytes);
        }
        targets::records(&whole[..place]);
    }
    for _ in 0..20_000 {
        targets::records(&damaged(&whole, &mut random));
    }
}

#[test]
fn answers_to_fetches_that_are_damaged_are_an_error_or_other_answers() {
    let mut random = Random(12);
    for version in 4..=18 {
        let whole = answer(version);
        for _ in 0..1_000 {
            targets::fetch_response(&damaged(&whole, &mut random));
        }
    }
}
