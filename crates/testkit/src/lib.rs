//! What the tests of tontine stand on: a real Apache Kafka, Java members, one body for many brokers, and the promises of
//! a consumer group as checks over what was seen.
//!
//! * [`suite`]: registers a test body once and runs it on the embedded broker, the embedded cluster and Apache Kafka.
//! * [`cluster`]: what a body gets: a broker to talk to, names of its own, and the levers of the cluster.
//! * [`plain`], [`raw`]: a second client that shares nothing with the one under test but the message tables.
//! * [`apache`], [`process`]: Apache Kafka from Maven Central; no JVM outlives the tests.
//! * [`java`]: Java consumers as members of the same group.
//! * [`foreign`]: programs written with the clients of others, fetched in the versions that are named here.
//! * [`cache`]: what is fetched or built once.
//! * [`history`], [`invariants`]: what happened, and what must hold for it.
//! * [`wait`]: the only way to wait.

pub mod apache;
pub mod cache;
pub mod cluster;
pub mod foreign;
pub mod history;
pub mod invariants;
pub mod java;
pub mod member;
pub mod plain;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod suite;
pub mod wait;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A random number, from the seeds that the standard library gives to its hash maps.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The error of everything here: a sentence for the person who reads the failed test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// A [`Failure`] with a formatted message.
#[macro_export]
macro_rules! failure {
    ($($part:tt)*) => { $crate::Failure(format!($($part)*)) };
}

/// Fails the test with a formatted message unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($part:tt)*) => {
        if !$condition {
            return Err($crate::failure!($($part)*).into());
        }
    };
}

/// Fails the test unless both sides are equal; says both and what was compared.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($what:tt)+) => {
        match (&$left, &$right) {
            (left, right) => {
                if left != right {
                    let what = format!($($what)+);
                    return Err($crate::failure!("{what}: got {left:?}, expected {right:?}").into());
                }
            }
        }
    };
}
