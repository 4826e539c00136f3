//! A member's subscription, read in place: the leader of a large group reads a million partitions of it at every
//! rebalance, and needs none of the names as a text of its own.
//!
//! Reads what [`crate::consumer_protocol::Subscription`] reads, and refuses what that refuses. Decides nothing.

use crate::DecodeError;

/// The partitions of a topic that a member owns, each as its big-endian bytes.
pub type OwnedTopic<'a> = (&'a str, &'a [[u8; 4]]);

/// A subscription within the bytes of a JoinGroup's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionView<'a> {
    /// The topics it wants.
    pub topics: Vec<&'a str>,
    /// What the member's own assignor sent along.
    pub user_data: Option<&'a [u8]>,
    /// What it owns, topic by topic.
    pub owned: Vec<OwnedTopic<'a>>,
    /// The generation in which it got that, -1 when it does not say.
    pub generation_id: i32,
    /// Its rack.
    pub rack_id: Option<&'a str>,
}

impl<'a> SubscriptionView<'a> {
    /// Reads a subscription, the version first. What newer versions add at the end is left alone.
    pub fn parse(metadata: &'a [u8]) -> Result<Self, DecodeError> {
        let mut bytes = Cursor(metadata);
        let version = i16::from_be_bytes(bytes.array()?);
        if version < 0 {
            return Err(DecodeError::UnsupportedVersion { key: -1, version });
        }
        let topics = bytes.list(Cursor::text)?;
        let user_data = bytes.bytes()?;
        let owned = if version >= 1 { bytes.list(Cursor::owned_topic)? } else { Vec::new() };
        let generation_id = if version >= 2 { i32::from_be_bytes(bytes.array()?) } else { -1 };
        let rack_id = if version >= 3 { bytes.optional_text()? } else { None };
        Ok(Self { topics, user_data, owned, generation_id, rack_id })
    }
}

/// What is left to be read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A count that is -1 for null.
    fn count(count: i32) -> Result<Option<usize>, DecodeError> {
        match usize::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) if count == -1 => Ok(None),
            Err(_) => Err(DecodeError::BadLength),
        }
    }

    fn bytes(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        Self::count(i32::from_be_bytes(self.array()?))?.map(|length| self.take(length)).transpose()
    }

    fn optional_text(&mut self) -> Result<Option<&'a str>, DecodeError> {
        let length = Self::count(i32::from(i16::from_be_bytes(self.array()?)))?;
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| DecodeError::BadText);
        length.map(|length| self.take(length).and_then(text)).transpose()
    }

    fn text(&mut self) -> Result<&'a str, DecodeError> {
        self.optional_text()?.ok_or(DecodeError::UnexpectedNull)
    }

    /// The vector grows with the items that are really there.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, DecodeError>) -> Result<Vec<T>, DecodeError> {
        let count = Self::count(i32::from_be_bytes(self.array()?))?.ok_or(DecodeError::UnexpectedNull)?;
        let mut items = Vec::with_capacity(count.min(self.0.len() / 8));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn owned_topic(&mut self) -> Result<OwnedTopic<'a>, DecodeError> {
        let topic = self.text()?;
        let count = Self::count(i32::from_be_bytes(self.array()?))?.ok_or(DecodeError::UnexpectedNull)?;
        let partitions = self.take(count.checked_mul(4).ok_or(DecodeError::Truncated)?)?;
        Ok((topic, partitions.as_chunks().0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer_protocol::{Subscription, TopicPartitions};
    use bytes::Bytes;

    fn full() -> Subscription {
        Subscription {
            topics: vec!["orders".into(), "payments".into()],
            user_data: Some(Bytes::from_static(b"sticky")),
            owned_partitions: vec![
                TopicPartitions { topic: "orders".into(), partitions: vec![0, 7] },
                TopicPartitions { topic: "payments".into(), partitions: vec![] },
            ],
            generation_id: 42,
            rack_id: Some("a".into()),
        }
    }

    /// The view as the other reader would have it.
    fn copied(view: SubscriptionView<'_>) -> Subscription {
        let owned = view.owned.into_iter().map(|(topic, partitions)| TopicPartitions {
            topic: topic.into(),
            partitions: partitions.iter().map(|bytes| i32::from_be_bytes(*bytes)).collect(),
        });
        Subscription {
            topics: view.topics.into_iter().map(Into::into).collect(),
            user_data: view.user_data.map(Bytes::copy_from_slice),
            owned_partitions: owned.collect(),
            generation_id: view.generation_id,
            rack_id: view.rack_id.map(Into::into),
        }
    }

    #[test]
    fn it_reads_every_version_as_the_copying_reader_does() {
        for version in 0..=3 {
            let bytes = full().to_metadata(version);
            let copying = Subscription::from_metadata(bytes.clone()).expect("readable");
            assert_eq!(
                copied(SubscriptionView::parse(&bytes).expect("readable")),
                copying,
                "version {version}"
            );
        }
        let mut newer = full().to_metadata(3).to_vec();
        newer[1] = 9;
        newer.extend_from_slice(b"something new");
        assert_eq!(copied(SubscriptionView::parse(&newer).expect("readable")), full());
    }

    #[test]
    fn it_refuses_what_the_copying_reader_refuses() {
        for version in 0..=3 {
            let bytes = full().to_metadata(version);
            for end in 0..bytes.len() {
                assert!(SubscriptionView::parse(&bytes[..end]).is_err(), "version {version} cut at {end}");
            }
            for at in 0..bytes.len() {
                let mut changed = bytes.to_vec();
                changed[at] ^= 0xff;
                let copying = Subscription::from_metadata(Bytes::from(changed.clone())).ok();
                assert_eq!(
                    SubscriptionView::parse(&changed).ok().map(copied),
                    copying,
                    "byte {at} of version {version}"
                );
            }
        }
    }
}
