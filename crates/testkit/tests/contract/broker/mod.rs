//! Topics and records, request by request, as Apache Kafka 4.4.0 answers them.

mod fetch;
mod produce;
mod requests;
mod sessions;
mod topics;

use tontine_testkit::suite::Suite;

pub fn register(suite: &mut Suite) {
    produce::register(suite);
    fetch::register(suite);
    sessions::register(suite);
    topics::register(suite);
}
