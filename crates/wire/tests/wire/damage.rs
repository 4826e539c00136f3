//! Damaged messages: cut off, changed, and with tags that nobody knows.

use crate::vectors::{Message, Random, messages};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeSet;
use tontine_wire::DecodeError;
use tontine_wire::api::ApiKey;
use tontine_wire::api::api_versions::ApiVersionsResponse;

#[test]
fn a_message_cut_off_at_any_byte_is_an_error() {
    for line in messages() {
        for end in 0..line.bytes.len() {
            let result = line.decode(line.bytes.slice(..end));
            assert!(result.is_err(), "{} of {} bytes is accepted at {end}", line.title(), line.bytes.len());
        }
    }
}

#[test]
fn bytes_behind_a_message_are_an_error() {
    for line in messages() {
        let longer: Bytes = line.bytes.iter().copied().chain([0]).collect();
        assert_eq!(line.decode(longer), Err(DecodeError::TrailingBytes(1)), "{}", line.title());
    }
}

/// One of the things that go wrong with bytes.
pub(crate) fn damaged(bytes: &[u8], random: &mut Random) -> Bytes {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let Some(last) = bytes.len().checked_sub(1) else { break };
        let place = random.below(last + 1);
        match random.below(6) {
            0 => bytes[place] ^= 1 << random.below(8),
            1 => bytes[place] = [0x00, 0x7f, 0x80, 0xff][random.below(4)],
            2 => bytes[place..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
            3 => {
                bytes[place..].iter_mut().take(4).zip([0x7f, 0xff, 0xff, 0xff]).for_each(|(b, new)| *b = new)
            }
            4 => bytes.insert(place, random.below(256) as u8),
            _ => drop(bytes.remove(place)),
        }
    }
    bytes.into()
}

#[test]
fn a_changed_message_is_an_error_or_another_message_and_never_a_panic() {
    let mut random = Random(4);
    let mut accepted = 0;
    for line in messages() {
        for _ in 0..60 {
            let Ok(message) = line.decode(damaged(&line.bytes, &mut random)) else { continue };
            accepted += 1;
            let again = message.encode(line.version);
            // Fields compare by their bytes: a NaN is not equal to itself.
            let read =
                line.decode(again.clone()).unwrap_or_else(|e| panic!("{}: {e}: {message:?}", line.title()));
            assert_eq!(read.encode(line.version), again, "{}", line.title());
        }
    }
    assert!(accepted > 1_000, "only {accepted} were accepted: the damage is too great to test anything");
}

/// Whether the message is still the same with two more tags at the end; it must have none of its own there.
fn ignores_tags(message: &Message, version: i16) -> bool {
    let bytes = message.encode(version);
    let Some((0, rest)) = bytes.split_last().map(|(last, rest)| (*last, rest)) else { return false };
    let mut tagged = BytesMut::from(rest);
    tagged.put_slice(&[2, 100, 3]);
    tagged.put_slice(b"abc");
    tagged.put_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0]);
    let (key, is_request) = match message {
        Message::Request(request) => (request.key(), true),
        Message::Response(response) => (response.key(), false),
    };
    Message::decode(key, version, is_request, tagged.freeze()).as_ref() == Ok(message)
}

#[test]
fn tags_that_nobody_knows_are_stepped_over() {
    // The lines with a message of this kind all have tags of its own at the end.
    let api_versions = Message::Response(ApiVersionsResponse::default().into());
    let mut seen = BTreeSet::new();
    seen.extend(ignores_tags(&api_versions, 4).then_some((ApiKey::ApiVersions, false)));
    for line in messages().iter().filter(|line| line.key.is_flexible(line.version)) {
        let message = line.decode(line.bytes.clone()).unwrap();
        seen.extend(ignores_tags(&message, line.version).then_some((line.key, line.is_request)));
    }
    let flexible = ApiKey::ALL.iter().filter(|key| key.is_flexible(*key.versions().end()));
    for key in flexible {
        for is_request in [true, false] {
            assert!(seen.contains(&(*key, is_request)), "{} (request: {is_request})", key.name());
        }
    }
}

#[test]
fn a_count_that_is_larger_than_the_message_is_refused_before_anything_is_allocated() {
    use tontine_wire::api::offset_commit::OffsetCommitRequest;
    use tontine_wire::codec::Message as _;
    let request = OffsetCommitRequest { group_id: "g".into(), ..Default::default() };
    for count in [1i32, 1_000, i32::MAX] {
        let mut bytes = request.to_bytes(2).to_vec();
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&count.to_be_bytes());
        assert_eq!(OffsetCommitRequest::decode(bytes.into(), 2), Err(DecodeError::Truncated), "{count}");
    }
}

#[test]
fn a_flood_of_empty_values_is_refused() {
    use tontine_wire::api::describe_groups::DescribeGroupsRequest;
    use tontine_wire::codec::{Message as _, Writer, put_uvarint};
    let flood = |count: usize| {
        let mut bytes = Writer::new();
        put_uvarint(&mut bytes, count as u32 + 1);
        bytes.extend_from_slice(&vec![1; count]);
        bytes.extend_from_slice(&[0, 0]);
        DescribeGroupsRequest::decode(bytes.into_bytes(), 5)
    };
    assert_eq!(flood(1_000).unwrap().groups.len(), 1_000);
    assert_eq!(flood(1_000_000), Err(DecodeError::TooManyValues));
}
