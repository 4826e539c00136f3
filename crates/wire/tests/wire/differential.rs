//! The messages against the `kafka-protocol` crate, in every version that both know.

use crate::damage::damaged;
use crate::vectors::{Line, Random, assert_none_wrong, messages};
use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{ApiKey as TheirKey, RequestKind, ResponseKind};
use tontine_wire::ErrorCode;

fn their_key(line: &Line) -> Option<TheirKey> {
    let key = TheirKey::try_from(line.key as i16).ok()?;
    let versions = key.valid_versions();
    (versions.min <= line.version && line.version <= versions.max).then_some(key)
}

/// What the other crate writes after it has read these bytes.
fn through_theirs(key: TheirKey, line: &Line, bytes: &Bytes) -> Result<Bytes, String> {
    let mut input = bytes.clone();
    let mut out = BytesMut::new();
    if line.is_request {
        let message = RequestKind::decode(key, &mut input, line.version).map_err(|e| format!("{e:#}"))?;
        message.encode(&mut out, line.version).map_err(|e| format!("{e:#}"))?;
    } else {
        let message = ResponseKind::decode(key, &mut input, line.version).map_err(|e| format!("{e:#}"))?;
        message.encode(&mut out, line.version).map_err(|e| format!("{e:#}"))?;
    }
    if input.is_empty() { Ok(out.freeze()) } else { Err(format!("leaves {} bytes", input.len())) }
}

#[test]
fn the_other_crate_reads_what_is_written_here_and_the_other_way_round() {
    let lines = messages();
    let mut compared = 0;
    let mut wrong = Vec::new();
    for line in &lines {
        let Some(key) = their_key(line) else { continue };
        let ours = line.decode(line.bytes.clone()).unwrap();
        match through_theirs(key, line, &ours.encode(line.version)) {
            Err(why) if why.contains("version not supported") => continue,
            Err(why) => wrong.push(format!("{}: {why}", line.title())),
            Ok(theirs) if line.decode(theirs.clone()).as_ref() != Ok(&ours) => {
                wrong.push(format!("{}\n  ours   {:02x?}\n  theirs {theirs:02x?}", line.title(), line.bytes));
            }
            Ok(_) => {}
        }
        compared += 1;
    }
    assert_none_wrong(&wrong, compared);
    assert!(compared * 10 > lines.len() * 8, "only {compared} of {} were compared", lines.len());
}

#[test]
fn error_codes_have_the_names_and_the_retries_that_the_other_crate_knows() {
    let squeezed = |name: &str| name.replace('_', "").to_lowercase();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for code in -1..200 {
        let Some(theirs) =
            ResponseError::try_from_code(code).filter(|e| !matches!(e, ResponseError::Unknown(_)))
        else {
            continue;
        };
        compared += 1;
        let ours = ErrorCode(code);
        let name = ours.name().unwrap_or("nameless");
        if squeezed(name) != squeezed(&format!("{theirs:?}")) {
            wrong.push(format!("{code} is {name} here, {theirs:?} there"));
        }
        // A newer Kafka made this one retriable.
        let changed = ours == ErrorCode::CONCURRENT_TRANSACTIONS;
        if ours.is_retriable() != (theirs.is_retriable() || changed) {
            wrong.push(format!("{name} is retriable here: {}", ours.is_retriable()));
        }
    }
    assert_none_wrong(&wrong, compared);
}

#[test]
fn a_changed_message_that_is_accepted_here_means_the_same_to_the_other_crate() {
    let mut random = Random(9);
    let mut accepted = 0;
    let mut wrong = Vec::new();
    for line in messages() {
        let Some(key) = their_key(&line) else { continue };
        for _ in 0..100 {
            let bytes = damaged(&line.bytes, &mut random);
            let Ok(ours) = line.decode(bytes.clone()) else { continue };
            match through_theirs(key, &line, &bytes) {
                Err(why) if why.contains("version not supported") => continue,
                Ok(theirs) if line.decode(theirs.clone()).as_ref() == Ok(&ours) => {}
                other => wrong.push(format!("{}: {ours:?}\nthere {other:02x?}", line.title())),
            }
            accepted += 1;
        }
    }
    // Where they differ this crate does as Java: any byte but 0 is true, any negative byte is a null struct.
    assert!(
        wrong.len() <= 2 && accepted > 10_000,
        "{} of {accepted} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
