//! The contract: what a broker and a consumer must do, whoever the broker is. See `tontine_testkit::suite`.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod admin;
mod broker;
mod consumer;
mod group;
mod java_alone;
mod listener;
mod mixed;
mod mode;
mod producer;
mod protocol;
mod proxied;

use std::process::ExitCode;
use tontine_testkit::suite::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    admin::register(&mut suite);
    broker::register(&mut suite);
    producer::register(&mut suite);
    protocol::register(&mut suite);
    proxied::register(&mut suite);
    java_alone::register(&mut suite);
    listener::register(&mut suite);
    group::register(&mut suite);
    mixed::register(&mut suite);
    consumer::register(&mut suite);
    suite.run()
}
