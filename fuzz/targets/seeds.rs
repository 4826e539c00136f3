//! Writes what the fuzzer starts from: right bytes, which it then damages.

use bytes::Bytes;
use std::{fs, io, path::Path};
use tontine_wire::{
    api::fetch::{AbortedTransaction, FetchResponse, FetchableTopicResponse, PartitionData},
    codec::Message,
    records::{BatchBuilder, Compression},
};

fn batch(compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    for n in 0..3 {
        let header = ("header", Some(&b"value"[..]));
        builder.append(n, Some(b"key"), Some(&[7; 40]), [header]).expect("a small record fits");
    }
    builder.build(5)
}

fn answer(version: i16) -> Vec<u8> {
    let partition = PartitionData {
        high_watermark: 9,
        aborted_transactions: Some(vec![AbortedTransaction { producer_id: 4, first_offset: 5 }]),
        records: Some(batch(Compression::None)),
        ..PartitionData::default()
    };
    let topic = FetchableTopicResponse { partitions: vec![partition], ..FetchableTopicResponse::default() };
    let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
    [&[(version - 4) as u8][..], &response.to_bytes(version)].concat()
}

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in ["records", "fetch_response"] {
        fs::create_dir_all(corpus.join(target))?;
    }
    for compression in Compression::ALL {
        fs::write(corpus.join("records").join(compression.name()), batch(compression))?;
    }
    for version in 4..=18 {
        fs::write(corpus.join("fetch_response").join(format!("version-{version}")), answer(version))?;
    }
    Ok(())
}
