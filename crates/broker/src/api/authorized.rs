//! What a client may do, when it asks: everything, for there are no ACLs. Mirrors `AclEntry.supportedOperations`.

/// The number that says that nobody asked.
const NOT_ASKED: i32 = i32::MIN;

const fn bits(operations: &[u8]) -> i32 {
    let (mut all, mut at) = (0, 0);
    while at < operations.len() {
        all |= 1 << operations[at];
        at += 1;
    }
    all
}

/// Read, write, create, delete, alter, describe, describe configs, alter configs.
const TOPIC: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);
/// Create, alter, describe, cluster action, describe configs, alter configs, idempotent write.
const CLUSTER: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

pub(super) fn topic(asked: bool) -> i32 {
    if asked { TOPIC } else { NOT_ASKED }
}

pub(super) fn cluster(asked: bool) -> i32 {
    if asked { CLUSTER } else { NOT_ASKED }
}
