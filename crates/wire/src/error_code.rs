//! Kafka's error codes: one table says what each is called and whether trying again can help.
//!
//! Mirrors `org.apache.kafka.common.protocol.Errors` and the classes of its exceptions.

use std::fmt;

/// A code in a broker's answer. Codes that this table does not know are kept as they are.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

macro_rules! error_codes {
    ($($name:ident = $code:literal $(, $flag:ident)*;)*) => {
        #[allow(missing_docs)]
        impl ErrorCode {
            $(pub const $name: Self = Self($code);)*
        }

        /// Every code of the table.
        pub const ALL: &[ErrorCode] = &[$(ErrorCode::$name,)*];

        impl ErrorCode {
            /// The name as Kafka spells it, when the code is known.
            pub fn name(self) -> Option<&'static str> {
                match self.0 { $($code => Some(stringify!($name)),)* _ => None }
            }

            fn flags(self) -> &'static [&'static str] {
                match self.0 { $($code => &[$(stringify!($flag)),*],)* _ => &[] }
            }
        }
    };
}

impl ErrorCode {
    /// Whether this is no error at all.
    pub fn is_ok(self) -> bool {
        self == Self::NONE
    }

    /// Whether the code is an error.
    pub fn is_err(self) -> bool {
        !self.is_ok()
    }

    /// `Ok` for [`ErrorCode::NONE`], the code itself otherwise.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_ok() { Ok(()) } else { Err(self) }
    }

    /// Whether the same request may succeed later (`RetriableException`).
    pub fn is_retriable(self) -> bool {
        self.flags().contains(&"retriable")
    }

    /// Whether fresh metadata is needed before the next try (`InvalidMetadataException`).
    pub fn needs_metadata(self) -> bool {
        self.flags().contains(&"metadata")
    }

    /// Whether the coordinator has to be looked up again before the next try.
    pub fn needs_coordinator(self) -> bool {
        matches!(self, Self::NOT_COORDINATOR | Self::COORDINATOR_NOT_AVAILABLE)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ErrorCode {}

error_codes! {
    UNKNOWN_SERVER_ERROR = -1;
    NONE = 0;
    OFFSET_OUT_OF_RANGE = 1;
    CORRUPT_MESSAGE = 2, retriable;
    UNKNOWN_TOPIC_OR_PARTITION = 3, retriable, metadata;
    INVALID_FETCH_SIZE = 4;
    LEADER_NOT_AVAILABLE = 5, retriable, metadata;
    NOT_LEADER_OR_FOLLOWER = 6, retriable, metadata;
    REQUEST_TIMED_OUT = 7, retriable;
    BROKER_NOT_AVAILABLE = 8;
    REPLICA_NOT_AVAILABLE = 9, retriable, metadata;
    MESSAGE_TOO_LARGE = 10;
    STALE_CONTROLLER_EPOCH = 11;
    OFFSET_METADATA_TOO_LARGE = 12;
    NETWORK_EXCEPTION = 13, retriable, metadata;
    COORDINATOR_LOAD_IN_PROGRESS = 14, retriable;
    COORDINATOR_NOT_AVAILABLE = 15, retriable;
    NOT_COORDINATOR = 16, retriable;
    INVALID_TOPIC_EXCEPTION = 17;
    RECORD_LIST_TOO_LARGE = 18;
    NOT_ENOUGH_REPLICAS = 19, retriable;
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, retriable;
    INVALID_REQUIRED_ACKS = 21;
    ILLEGAL_GENERATION = 22;
    INCONSISTENT_GROUP_PROTOCOL = 23;
    INVALID_GROUP_ID = 24;
    UNKNOWN_MEMBER_ID = 25;
    INVALID_SESSION_TIMEOUT = 26;
    REBALANCE_IN_PROGRESS = 27;
    INVALID_COMMIT_OFFSET_SIZE = 28;
    TOPIC_AUTHORIZATION_FAILED = 29;
    GROUP_AUTHORIZATION_FAILED = 30;
    CLUSTER_AUTHORIZATION_FAILED = 31;
    INVALID_TIMESTAMP = 32;
    UNSUPPORTED_SASL_MECHANISM = 33;
    ILLEGAL_SASL_STATE = 34;
    UNSUPPORTED_VERSION = 35;
    TOPIC_ALREADY_EXISTS = 36;
    INVALID_PARTITIONS = 37;
    INVALID_REPLICATION_FACTOR = 38;
    INVALID_REPLICA_ASSIGNMENT = 39;
    INVALID_CONFIG = 40;
    NOT_CONTROLLER = 41, retriable;
    INVALID_REQUEST = 42;
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43;
    POLICY_VIOLATION = 44;
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45;
    DUPLICATE_SEQUENCE_NUMBER = 46;
    INVALID_PRODUCER_EPOCH = 47;
    INVALID_TXN_STATE = 48;
    INVALID_PRODUCER_ID_MAPPING = 49;
    INVALID_TRANSACTION_TIMEOUT = 50;
    CONCURRENT_TRANSACTIONS = 51, retriable;
    TRANSACTION_COORDINATOR_FENCED = 52;
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53;
    SECURITY_DISABLED = 54;
    OPERATION_NOT_ATTEMPTED = 55;
    KAFKA_STORAGE_ERROR = 56, retriable, metadata;
    LOG_DIR_NOT_FOUND = 57;
    SASL_AUTHENTICATION_FAILED = 58;
    UNKNOWN_PRODUCER_ID = 59;
    REASSIGNMENT_IN_PROGRESS = 60;
    DELEGATION_TOKEN_AUTH_DISABLED = 61;
    DELEGATION_TOKEN_NOT_FOUND = 62;
    DELEGATION_TOKEN_OWNER_MISMATCH = 63;
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64;
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65;
    DELEGATION_TOKEN_EXPIRED = 66;
    INVALID_PRINCIPAL_TYPE = 67;
    NON_EMPTY_GROUP = 68;
    GROUP_ID_NOT_FOUND = 69;
    FETCH_SESSION_ID_NOT_FOUND = 70, retriable;
    INVALID_FETCH_SESSION_EPOCH = 71, retriable;
    LISTENER_NOT_FOUND = 72, retriable, metadata;
    TOPIC_DELETION_DISABLED = 73;
    FENCED_LEADER_EPOCH = 74, retriable, metadata;
    UNKNOWN_LEADER_EPOCH = 75, retriable;
    UNSUPPORTED_COMPRESSION_TYPE = 76;
    STALE_BROKER_EPOCH = 77;
    OFFSET_NOT_AVAILABLE = 78, retriable;
    MEMBER_ID_REQUIRED = 79;
    PREFERRED_LEADER_NOT_AVAILABLE = 80, retriable, metadata;
    GROUP_MAX_SIZE_REACHED = 81;
    FENCED_INSTANCE_ID = 82;
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, retriable, metadata;
    ELECTION_NOT_NEEDED = 84, retriable, metadata;
    NO_REASSIGNMENT_IN_PROGRESS = 85;
    GROUP_SUBSCRIBED_TO_TOPIC = 86;
    INVALID_RECORD = 87;
    UNSTABLE_OFFSET_COMMIT = 88, retriable;
    THROTTLING_QUOTA_EXCEEDED = 89, retriable;
    PRODUCER_FENCED = 90;
    RESOURCE_NOT_FOUND = 91;
    DUPLICATE_RESOURCE = 92;
    UNACCEPTABLE_CREDENTIAL = 93;
    INCONSISTENT_VOTER_SET = 94;
    INVALID_UPDATE_VERSION = 95;
    FEATURE_UPDATE_FAILED = 96;
    PRINCIPAL_DESERIALIZATION_FAILURE = 97;
    SNAPSHOT_NOT_FOUND = 98;
    POSITION_OUT_OF_RANGE = 99;
    UNKNOWN_TOPIC_ID = 100, retriable, metadata;
    DUPLICATE_BROKER_REGISTRATION = 101;
    BROKER_ID_NOT_REGISTERED = 102;
    INCONSISTENT_TOPIC_ID = 103, retriable, metadata;
    INCONSISTENT_CLUSTER_ID = 104;
    TRANSACTIONAL_ID_NOT_FOUND = 105;
    FETCH_SESSION_TOPIC_ID_ERROR = 106, retriable;
    INELIGIBLE_REPLICA = 107;
    NEW_LEADER_ELECTED = 108;
    OFFSET_MOVED_TO_TIERED_STORAGE = 109;
    FENCED_MEMBER_EPOCH = 110;
    UNRELEASED_INSTANCE_ID = 111;
    UNSUPPORTED_ASSIGNOR = 112;
    STALE_MEMBER_EPOCH = 113;
    MISMATCHED_ENDPOINT_TYPE = 114;
    UNSUPPORTED_ENDPOINT_TYPE = 115;
    UNKNOWN_CONTROLLER_ID = 116;
    UNKNOWN_SUBSCRIPTION_ID = 117;
    TELEMETRY_TOO_LARGE = 118;
    INVALID_REGISTRATION = 119;
    TRANSACTION_ABORTABLE = 120;
    INVALID_RECORD_STATE = 121;
    SHARE_SESSION_NOT_FOUND = 122, retriable;
    INVALID_SHARE_SESSION_EPOCH = 123, retriable;
    FENCED_STATE_EPOCH = 124;
    INVALID_VOTER_KEY = 125;
    DUPLICATE_VOTER = 126;
    VOTER_NOT_FOUND = 127;
    INVALID_REGULAR_EXPRESSION = 128;
    REBOOTSTRAP_REQUIRED = 129;
    STREAMS_INVALID_TOPOLOGY = 130;
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131;
    STREAMS_TOPOLOGY_FENCED = 132;
    SHARE_SESSION_LIMIT_REACHED = 133, retriable;
    GROUP_DELETION_FAILED = 134;
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135;
    CONTROLLER_ID_NOT_REGISTERED = 136;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_codes_have_names_and_unknown_ones_keep_their_number() {
        assert_eq!(ErrorCode(27), ErrorCode::REBALANCE_IN_PROGRESS);
        assert_eq!(ErrorCode::REBALANCE_IN_PROGRESS.to_string(), "REBALANCE_IN_PROGRESS");
        assert_eq!(ErrorCode(999).to_string(), "error code 999");
    }

    #[test]
    fn what_refreshes_metadata_is_retriable() {
        for code in ALL {
            assert!(!code.needs_metadata() || code.is_retriable(), "{code}");
        }
        assert!(ErrorCode::NOT_COORDINATOR.is_retriable());
        assert!(!ErrorCode::ILLEGAL_GENERATION.is_retriable());
    }
}
