//! Where the errors stand in the answers of APIs that are not spoken here, and in old versions of those that are. Each is
//! read as: what to take from the request, what to put into the answer, in the order of either.

use super::walk::Field::{Blob, Fixed, Text};
use super::walk::Step::{
    self, Acks, Code, Echo, Empty, EmptyText, Gather, Items, Null, Over, Past, Put, Since, Skip, Until,
    Values,
};
use std::ops::RangeInclusive;

/// One API in some of its versions.
pub(super) struct Row {
    pub(super) key: i16,
    pub(super) versions: RangeInclusive<i16>,
    pub(super) flexible: i16,
    pub(super) steps: &'static [Step],
}

const fn row(key: i16, first: i16, last: i16, flexible: i16, steps: &'static [Step]) -> Row {
    Row { key, versions: first..=last, flexible, steps }
}

const INFLEXIBLE: i16 = i16::MAX;

const I8: Step = Skip(Fixed(1));
const I16: Step = Skip(Fixed(2));
const I32: Step = Skip(Fixed(4));
const I64: Step = Skip(Fixed(8));
/// How long the client is held up: not at all.
const THROTTLE: Step = Put(&[0; 4]);
const ZERO: Step = Put(&[0; 4]);
const LONG_ZERO: Step = Put(&[0; 8]);
const NO_OFFSET: Step = Put(&[0xff; 8]);
const NO_EPOCH: Step = Put(&[0xff; 4]);
const NO_OPERATIONS: Step = Put(&[0x80, 0, 0, 0]);
const NO_STRUCT: Step = Put(&[0xff]);
const FALSE: Step = Put(&[0]);

/// One error for everything.
const THROTTLE_CODE: &[Step] = &[THROTTLE, Code];
const THROTTLE_CODE_TEXT: &[Step] = &[THROTTLE, Code, Null];
const THROTTLE_CODE_LIST: &[Step] = &[THROTTLE, Code, Empty];
const THROTTLE_CODE_TEXT_LIST: &[Step] = &[THROTTLE, Code, Null, Empty];
const CODE_LIST: &[Step] = &[Code, Empty];

pub(super) const ROWS: &[Row] = &[
    // Old versions, which Kafka 4 does not serve any more.
    row(0, 0, 2, INFLEXIBLE, PRODUCE),
    row(1, 0, 3, INFLEXIBLE, FETCH),
    row(2, 0, 0, INFLEXIBLE, LIST_OFFSETS),
    row(8, 0, 1, INFLEXIBLE, OFFSET_COMMIT),
    row(9, 0, 0, INFLEXIBLE, OFFSET_FETCH),
    row(19, 0, 1, INFLEXIBLE, CREATE_TOPICS),
    row(20, 0, 0, INFLEXIBLE, &[Gather(&[Values(&[Echo(Text), Code])])]),
    row(23, 0, 1, INFLEXIBLE, OFFSET_FOR_LEADER_EPOCH),
    row(27, 0, 0, INFLEXIBLE, WRITE_TXN_MARKERS),
    row(32, 0, 0, INFLEXIBLE, DESCRIBE_CONFIGS),
    // An answer of one directory, because there is no error besides.
    row(35, 0, 0, INFLEXIBLE, &[THROTTLE, Put(&[0, 0, 0, 1]), Code, EmptyText, Empty]),
    // Permissions.
    row(29, 0, 3, 2, THROTTLE_CODE_TEXT_LIST),
    row(30, 0, 3, 2, CREATE_ACLS),
    row(31, 0, 3, 2, DELETE_ACLS),
    row(38, 0, 3, 2, CREATE_DELEGATION_TOKEN),
    row(39, 0, 2, 2, &[Code, NO_OFFSET, THROTTLE]),
    row(40, 0, 2, 2, &[Code, NO_OFFSET, THROTTLE]),
    row(41, 0, 3, 2, &[Code, Empty, THROTTLE]),
    row(50, 0, 0, 0, THROTTLE_CODE_TEXT_LIST),
    row(51, 0, 0, 0, ALTER_USER_SCRAM_CREDENTIALS),
    // Quotas.
    row(48, 0, 1, 1, THROTTLE_CODE_TEXT_LIST),
    row(49, 0, 1, 1, ALTER_CLIENT_QUOTAS),
    // Replicas, features, brokers.
    row(34, 0, 2, 2, ALTER_REPLICA_LOG_DIRS),
    row(45, 0, 1, 0, &[THROTTLE, Since(1, &[FALSE]), Code, Null, Empty]),
    row(46, 0, 0, 0, THROTTLE_CODE_TEXT_LIST),
    row(57, 0, 2, 0, &[THROTTLE, Code, Null, Until(1, &[Empty])]),
    row(64, 0, 0, 0, THROTTLE_CODE_TEXT),
    row(94, 0, 0, 0, THROTTLE_CODE_TEXT),
    // The quorum, and what brokers tell each other.
    row(52, 0, 2, 0, CODE_LIST),
    row(53, 0, 1, 1, CODE_LIST),
    row(54, 0, 1, 1, CODE_LIST),
    row(55, 0, 2, 0, &[Code, Since(2, &[Null]), Empty, Since(2, &[Empty])]),
    row(56, 2, 3, 0, THROTTLE_CODE_LIST),
    row(58, 0, 0, 0, &[Null, Code]),
    row(59, 0, 1, 0, THROTTLE_CODE_LIST),
    row(62, 0, 4, 0, &[THROTTLE, Code, NO_OFFSET]),
    row(63, 0, 2, 0, &[THROTTLE, Code, FALSE, FALSE, FALSE]),
    row(67, 0, 0, 0, &[THROTTLE, Code, LONG_ZERO, ZERO]),
    row(70, 0, 0, 0, THROTTLE_CODE_TEXT),
    row(73, 0, 0, 0, THROTTLE_CODE_LIST),
    row(80, 0, 1, 0, THROTTLE_CODE_TEXT),
    row(81, 0, 0, 0, THROTTLE_CODE_TEXT),
    row(82, 0, 0, 0, THROTTLE_CODE),
    // Share groups.
    row(76, 1, 1, 0, &[THROTTLE, Code, Null, Null, ZERO, ZERO, NO_STRUCT]),
    row(77, 1, 1, 0, SHARE_GROUP_DESCRIBE),
    row(78, 1, 2, 0, &[THROTTLE, Code, Null, ZERO, Empty, Empty]),
    row(79, 1, 2, 0, &[THROTTLE, Code, Null, Since(2, &[ZERO]), Empty, Empty]),
    row(83, 0, 0, 0, INITIALIZE_SHARE_GROUP_STATE),
    row(84, 0, 0, 0, READ_SHARE_GROUP_STATE),
    row(85, 0, 1, 0, WRITE_SHARE_GROUP_STATE),
    row(86, 0, 0, 0, DELETE_SHARE_GROUP_STATE),
    row(87, 0, 1, 0, READ_SHARE_GROUP_STATE_SUMMARY),
    row(90, 0, 1, 0, DESCRIBE_SHARE_GROUP_OFFSETS),
    row(91, 0, 0, 0, THROTTLE_CODE_TEXT_LIST),
    row(92, 0, 0, 0, THROTTLE_CODE_TEXT_LIST),
    // Groups of Kafka Streams.
    row(88, 0, 1, 0, STREAMS_GROUP_HEARTBEAT),
    row(89, 0, 1, 0, STREAMS_GROUP_DESCRIBE),
    row(93, 0, 0, 0, THROTTLE_CODE_TEXT),
];

const PRODUCE: &[Step] = &[
    Acks,
    I32,
    Gather(&[Items(&[
        Echo(Text),
        Gather(&[Items(&[Echo(Fixed(4)), Skip(Blob), Code, NO_OFFSET, Since(2, &[NO_OFFSET])])]),
    ])]),
    Since(1, &[THROTTLE]),
];

const FETCH: &[Step] = &[
    Since(1, &[THROTTLE]),
    I32,
    I32,
    I32,
    Since(3, &[I32]),
    Gather(&[Items(&[Echo(Text), Gather(&[Items(&[Echo(Fixed(4)), I64, I32, Code, NO_OFFSET, Empty])])])]),
];

const LIST_OFFSETS: &[Step] =
    &[I32, Gather(&[Items(&[Echo(Text), Gather(&[Items(&[Echo(Fixed(4)), I64, I32, Code, Empty])])])])];

const OFFSET_COMMIT: &[Step] = &[
    Skip(Text),
    Since(1, &[I32, Skip(Text)]),
    Gather(&[Items(&[
        Echo(Text),
        Gather(&[Items(&[Echo(Fixed(4)), I64, Since(1, &[I64]), Skip(Text), Code])]),
    ])]),
];

const OFFSET_FETCH: &[Step] = &[
    Skip(Text),
    Gather(&[Items(&[Echo(Text), Gather(&[Values(&[Echo(Fixed(4)), NO_OFFSET, EmptyText, Code])])])]),
];

const CREATE_TOPICS: &[Step] = &[Gather(&[Items(&[
    Echo(Text),
    I32,
    I16,
    Over(&[I32, Past(Fixed(4))]),
    Over(&[Skip(Text), Skip(Text)]),
    Code,
    Since(1, &[Null]),
])])];

const OFFSET_FOR_LEADER_EPOCH: &[Step] = &[Gather(&[Items(&[
    Echo(Text),
    Gather(&[Items(&[Code, Echo(Fixed(4)), I32, Since(1, &[NO_EPOCH]), NO_OFFSET])]),
])])];

const WRITE_TXN_MARKERS: &[Step] = &[Gather(&[Items(&[
    Echo(Fixed(8)),
    I16,
    I8,
    Gather(&[Items(&[Echo(Text), Gather(&[Values(&[Echo(Fixed(4)), Code])])])]),
    I32,
])])];

const DESCRIBE_CONFIGS: &[Step] =
    &[THROTTLE, Gather(&[Items(&[Code, Null, Echo(Fixed(1)), Echo(Text), Past(Text), Empty])])];

const CREATE_ACLS: &[Step] = &[
    THROTTLE,
    Gather(&[Items(&[I8, Skip(Text), Since(1, &[I8]), Skip(Text), Skip(Text), I8, I8, Code, Null])]),
];

const DELETE_ACLS: &[Step] = &[
    THROTTLE,
    Gather(&[Items(&[I8, Skip(Text), Since(1, &[I8]), Skip(Text), Skip(Text), I8, I8, Code, Null, Empty])]),
];

const CREATE_DELEGATION_TOKEN: &[Step] = &[
    Code,
    EmptyText,
    EmptyText,
    Since(3, &[EmptyText, EmptyText]),
    NO_OFFSET,
    NO_OFFSET,
    NO_OFFSET,
    EmptyText,
    Empty,
    THROTTLE,
];

const ALTER_USER_SCRAM_CREDENTIALS: &[Step] = &[
    THROTTLE,
    Gather(&[
        Items(&[Echo(Text), I8, Code, Null]),
        Items(&[Echo(Text), I8, I32, Skip(Blob), Skip(Blob), Code, Null]),
    ]),
];

const ALTER_CLIENT_QUOTAS: &[Step] = &[
    THROTTLE,
    Gather(&[Items(&[
        Code,
        Null,
        Gather(&[Items(&[Echo(Text), Echo(Text)])]),
        Over(&[Skip(Text), I64, I8]),
    ])]),
];

const ALTER_REPLICA_LOG_DIRS: &[Step] = &[
    THROTTLE,
    Gather(&[Over(&[Skip(Text), Items(&[Echo(Text), Gather(&[Values(&[Echo(Fixed(4)), Code])])])])]),
];

const SHARE_GROUP_DESCRIBE: &[Step] = &[
    THROTTLE,
    Gather(&[Values(&[Code, Null, Echo(Text), EmptyText, ZERO, ZERO, EmptyText, Empty, NO_OPERATIONS])]),
];

const INITIALIZE_SHARE_GROUP_STATE: &[Step] = &[
    Skip(Text),
    Gather(&[Items(&[Echo(Fixed(16)), Gather(&[Items(&[Echo(Fixed(4)), I32, I64, Code, Null])])])]),
];

const READ_SHARE_GROUP_STATE: &[Step] = &[
    Skip(Text),
    Gather(&[Items(&[
        Echo(Fixed(16)),
        Gather(&[Items(&[Echo(Fixed(4)), I32, Code, Null, ZERO, LONG_ZERO, Empty])]),
    ])]),
];

const WRITE_SHARE_GROUP_STATE: &[Step] = &[
    Skip(Text),
    Gather(&[Items(&[
        Echo(Fixed(16)),
        Gather(&[Items(&[
            Echo(Fixed(4)),
            I32,
            I32,
            I64,
            Since(1, &[I32]),
            Over(&[I64, I64, I8, I16]),
            Code,
            Null,
        ])]),
    ])]),
];

const DELETE_SHARE_GROUP_STATE: &[Step] =
    &[Skip(Text), Gather(&[Items(&[Echo(Fixed(16)), Gather(&[Items(&[Echo(Fixed(4)), Code, Null])])])])];

const READ_SHARE_GROUP_STATE_SUMMARY: &[Step] = &[
    Skip(Text),
    Gather(&[Items(&[
        Echo(Fixed(16)),
        Gather(&[Items(&[Echo(Fixed(4)), I32, Code, Null, ZERO, ZERO, LONG_ZERO, Since(1, &[ZERO])])]),
    ])]),
];

const DESCRIBE_SHARE_GROUP_OFFSETS: &[Step] =
    &[THROTTLE, Gather(&[Items(&[Echo(Text), Over(&[Skip(Text), Past(Fixed(4))]), Empty, Code, Null])])];

const STREAMS_GROUP_HEARTBEAT: &[Step] = &[
    THROTTLE,
    Code,
    Null,
    EmptyText,
    ZERO,
    ZERO,
    Until(0, &[ZERO]),
    ZERO,
    Since(1, &[LONG_ZERO]),
    Empty,
    Empty,
    Empty,
    Empty,
    Since(1, &[FALSE]),
    ZERO,
    Empty,
];

const STREAMS_GROUP_DESCRIBE: &[Step] = &[
    THROTTLE,
    Gather(&[Values(&[
        Code,
        Null,
        Echo(Text),
        EmptyText,
        ZERO,
        ZERO,
        NO_STRUCT,
        Empty,
        NO_OPERATIONS,
        Since(1, &[NO_STRUCT, FALSE, Null]),
    ])]),
];
