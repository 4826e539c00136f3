//! What only the consumer protocol has: epochs, topic ids, the coordinator's regular expressions and assignors, static
//! members that leave for a while, groups of both protocols, and brokers without this one.

mod errors;
mod migration;
mod mixed;
mod static_members;

use tontine_testkit::suite::Suite;

pub fn register(suite: &mut Suite) {
    errors::register(suite);
    static_members::register(suite);
    mixed::register(suite);
    migration::register(suite);
}
