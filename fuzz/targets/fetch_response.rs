//! An answer to a fetch, in any version.
#![no_main]

#[path = "../../crates/wire/tests/wire/targets.rs"]
#[allow(dead_code, reason = "each binary runs one target")]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    targets::fetch_response(data);
});
