use super::*;

/// A request with this header; the body as bytes.
fn ask(key: i16, version: i16, flexible: bool, body: &[u8]) -> Result<Unserved, DecodeError> {
    let mut frame = [&key.to_be_bytes()[..], &version.to_be_bytes(), &[0, 0, 0, 7, 0, 2], b"me"].concat();
    if flexible {
        frame.push(0);
    }
    frame.extend_from_slice(body);
    answer(frame.into())
}

/// The answer's body, behind its length and the correlation id 7.
fn body(answered: Result<Unserved, DecodeError>) -> Vec<u8> {
    let Ok(Unserved::Answer(frame)) = answered else { panic!("{answered:?}") };
    let size = u32::from_be_bytes(*frame.first_chunk().unwrap());
    assert_eq!(size as usize, frame.len() - 4);
    assert_eq!(frame[4..8], [0, 0, 0, 7]);
    frame[8..].to_vec()
}

#[test]
fn one_error_for_everything_stands_where_each_version_has_it() {
    // DescribeAcls: throttle, error, no text, no resources; in version 2 with tags.
    assert_eq!(body(ask(29, 1, false, b"whatever")), [0, 0, 0, 0, 0, 35, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(body(ask(29, 2, true, b"")), [0, 0, 0, 0, 0, 0, 35, 0, 1, 0]);
    // AlterPartitionReassignments has a flag before the error from version 1 on.
    assert_eq!(body(ask(45, 0, true, b"")), [0, 0, 0, 0, 0, 0, 35, 0, 1, 0]);
    assert_eq!(body(ask(45, 1, true, b"")), [0, 0, 0, 0, 0, 0, 0, 35, 0, 1, 0]);
}

#[test]
fn each_thing_that_was_asked_for_gets_an_error_of_its_own() {
    // CreateAcls, version 1: two permissions of topic "t" for "u" from "*".
    let one = [2, 0, 1, b't', 3, 0, 1, b'u', 0, 1, b'*', 3, 3];
    let two = [&[0, 0, 0, 2][..], &one, &one].concat();
    let refused = [0, 35, 0xff, 0xff];
    assert_eq!(body(ask(30, 1, false, &two)), [&[0, 0, 0, 0, 0, 0, 0, 2][..], &refused, &refused].concat());
    // AlterUserScramCredentials: the password of "a" is to go, that of "b" to come.
    let users = [2, 2, b'a', 1, 0, 2, 2, b'b', 1, 0, 0, 16, 0, 3, 8, 9, 3, 8, 9, 0, 0];
    let answered = [0, 0, 0, 0, 0, 3, 2, b'a', 0, 35, 0, 0, 2, b'b', 0, 35, 0, 0, 0];
    assert_eq!(body(ask(51, 0, true, &users)), answered);
}

#[test]
fn an_old_producer_learns_its_error_and_one_that_wants_no_answer_gets_none() {
    let topic = [&[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 3][..], b"old"].concat();
    let with_acks = |acks: i16| [&acks.to_be_bytes()[..], &[0, 0, 1, 0], &topic].concat();
    let answered = [&[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 4, 0, 35][..], &[0xff; 8]].concat();
    assert_eq!(body(ask(0, 0, false, &with_acks(-1))), answered);
    let in_version_2 = [&answered[..], &[0xff; 8], &[0; 4]].concat();
    assert_eq!(body(ask(0, 2, false, &with_acks(1))), in_version_2);
    assert_eq!(ask(0, 1, false, &with_acks(0)), Ok(Unserved::Silence));
}

#[test]
fn what_kafka_does_not_have_is_unknown_and_half_a_request_is_an_error() {
    assert_eq!(ask(999, 0, false, b""), Ok(Unserved::Unknown));
    assert_eq!(ask(0, 99, true, b""), Ok(Unserved::Unknown));
    assert_eq!(ask(29, 9, true, b""), Ok(Unserved::Unknown));
    assert_eq!(ask(30, 1, false, &[0, 0, 0, 2, 2]), Err(DecodeError::Truncated));
    assert_eq!(ask(30, 1, false, &[0x80, 0, 0, 0]), Err(DecodeError::BadLength));
}

#[test]
fn a_request_that_would_make_a_huge_answer_has_none() {
    // ShareGroupDescribe of a million groups without a name.
    let groups = [&[0xc1, 0x84, 0x3d][..], &[1; 1_000_000]].concat();
    assert_eq!(ask(77, 1, true, &groups), Err(DecodeError::TooManyValues));
}

#[test]
fn no_version_has_two_rows_and_none_is_one_that_the_wire_speaks() {
    for (at, row) in ROWS.iter().enumerate() {
        let later = ROWS[at + 1..].iter().filter(|other| other.key == row.key);
        assert_eq!(later.count(), 0, "API {}", row.key);
        if let Ok(key) = tontine_wire::api::ApiKey::from_code(row.key) {
            assert!(*row.versions.end() < *key.versions().start(), "{key:?}");
        }
    }
}
