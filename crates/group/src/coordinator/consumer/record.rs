//! Records of consumer groups: types 3 to 8 and 16, each with its key and its value, or without one as a tombstone.

use crate::coordinator::record::read_value;
use bytes::Bytes;
use tontine_wire::{
    DecodeError,
    codec::{Message, Reader},
    group_records::*,
};

macro_rules! consumer_records {
    ($($(#[$meta:meta])* $kind:literal $name:ident $key:ident $value:ident $group:ident;)*) => {
        /// A record of a consumer group.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ConsumerRecord { $($(#[$meta])* $name($key, Option<$value>),)* }

        impl ConsumerRecord {
            pub(in crate::coordinator) fn encode(&self) -> (Bytes, Option<Bytes>) {
                match self {
                    $(Self::$name(key, value) => {
                        (key.to_numbered_bytes($kind, 0), value.as_ref().map(|value| value.to_numbered_bytes(0, 0)))
                    })*
                }
            }

            /// Reads what follows the type; `None` when the type is none of these.
            pub(in crate::coordinator) fn decode(
                kind: i16,
                key: Reader,
                value: Option<Bytes>,
            ) -> Result<Option<Self>, DecodeError> {
                match kind {
                    $($kind => {
                        let key = Message::decode(key.rest(), 0)?;
                        Ok(Some(Self::$name(key, value.map(read_value).transpose()?)))
                    })*
                    _ => Ok(None),
                }
            }

            /// Whether it ends something.
            pub(in crate::coordinator) fn is_tombstone(&self) -> bool {
                match self { $(Self::$name(_, value) => value.is_none(),)* }
            }

            pub(in crate::coordinator) fn group(&self) -> &str {
                match self { $(Self::$name(key, _) => &key.$group,)* }
            }
        }
    };
}

consumer_records! {
    /// The group's epoch and what it knows of its topics.
    3 Group ConsumerGroupMetadataKey ConsumerGroupMetadataValue group_id;
    /// What a member wants.
    5 Member ConsumerGroupMemberMetadataKey ConsumerGroupMemberMetadataValue group_id;
    /// The epoch of the target assignment.
    6 TargetEpoch ConsumerGroupTargetAssignmentMetadataKey ConsumerGroupTargetAssignmentMetadataValue group_id;
    /// What a member is to have.
    7 Target ConsumerGroupTargetAssignmentMemberKey ConsumerGroupTargetAssignmentMemberValue group_id;
    /// What a member has.
    8 Current ConsumerGroupCurrentMemberAssignmentKey ConsumerGroupCurrentMemberAssignmentValue group_id;
    /// Which topics a regular expression means.
    16 Regex ConsumerGroupRegularExpressionKey ConsumerGroupRegularExpressionValue group_id;
}
