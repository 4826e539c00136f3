//! The records of one partition.
#![no_main]

#[path = "../../crates/wire/tests/wire/targets.rs"]
#[allow(dead_code, reason = "each binary runs one target")]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    targets::records(data);
});
