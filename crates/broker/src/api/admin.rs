//! What admin requests share: null where Kafka sends null for "no error".

use tontine_wire::ErrorCode;

/// The outcome of one item as code and sentence.
pub(super) fn outcome(result: Result<(), crate::topics::Refusal>) -> (ErrorCode, Option<String>) {
    match result {
        Ok(()) => (ErrorCode::NONE, None),
        Err(refusal) => (refusal.code, Some(refusal.message)),
    }
}

/// Names that come more than once, which Kafka refuses.
pub(super) fn repeated<'n>(names: impl Iterator<Item = &'n str>) -> std::collections::BTreeSet<String> {
    let mut seen = std::collections::BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).map(str::to_owned).collect()
}
