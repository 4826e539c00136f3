//! What is done with bytes of which nothing is known. The fuzzer (`fuzz/`) and the tests with damaged bytes both run these,
//! so that what one finds can be tried with the other.
//!
//! A target panics when a promise is broken: what was read and written again is the same, offsets grow, a run has as many
//! records as it says.

use bytes::Bytes;
use tontine_wire::{
    api::fetch::FetchResponse,
    codec::Message,
    records::{Checksum, RecordBatch, RecordRef},
};

/// The most that a batch may unpack to here.
pub(crate) const LIMIT: usize = 1 << 20;

/// Bytes as the records of one partition; how many records were read. Checksums are not looked at: hardly any of these
/// bytes would get past them.
pub(crate) fn records(data: &[u8]) -> usize {
    let mut rest = Bytes::copy_from_slice(data);
    let mut count = 0;
    while let Ok(Some(batch)) = RecordBatch::parse_with(&mut rest, Checksum::Ignore) {
        count += batch_records(&batch);
    }
    count
}

/// Bytes as an answer to a fetch, the first one being its version; how many records were read.
pub(crate) fn fetch_response(data: &[u8]) -> usize {
    let Some((version, body)) = data.split_first() else { return 0 };
    let version = i16::from(*version % 15) + 4;
    let Ok(response) = FetchResponse::decode(Bytes::copy_from_slice(body), version) else { return 0 };
    let again = response.to_bytes(version);
    assert_eq!(FetchResponse::decode(again, version).as_ref(), Ok(&response), "version {version}");
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.filter_map(|partition| partition.records.as_ref()).map(|bytes| records(bytes)).sum()
}

fn batch_records(batch: &RecordBatch) -> usize {
    let Ok(mut records) = batch.records_within(LIMIT) else { return 0 };
    let mut before = batch.base_offset() - 1;
    let mut count = 0;
    for record in records.iter().map_while(Result::ok) {
        assert!(record.offset() > before && record.offset() <= batch.last_offset());
        before = record.offset();
        look_at(&record);
        count += 1;
    }
    while let Ok(run) = records.split_front(3) {
        assert_eq!(run.iter().inspect(look_at).count(), run.len());
        if run.is_empty() {
            break;
        }
    }
    count
}

fn look_at(record: &RecordRef<'_>) {
    let owned = record.to_record();
    assert_eq!((owned.key(), owned.value()), (record.key(), record.value()));
    let headers = record.headers();
    assert_eq!(headers.count(), headers.len(), "all headers that were counted are there");
    assert!(record.headers().eq(owned.headers()));
}
