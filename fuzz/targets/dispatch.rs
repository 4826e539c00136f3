//! Requests to a whole broker, in memory and on a disk: every API and every version.
#![no_main]

#[path = "../../crates/broker/tests/state/dispatch.rs"]
#[allow(dead_code, reason = "each binary runs one target")]
mod dispatch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    dispatch::dispatch(data);
});
