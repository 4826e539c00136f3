//! The classic group protocol, request by request, as Apache Kafka 4.4.0 answers it.

mod errors;
mod failover;
mod life;
mod member;
mod offsets;
mod second_member;
mod static_members;
mod timers;

use tontine_testkit::suite::Suite;

pub fn register(suite: &mut Suite) {
    life::register(suite);
    second_member::register(suite);
    timers::register(suite);
    errors::register(suite);
    static_members::register(suite);
    offsets::register(suite);
    failover::register(suite);
}
