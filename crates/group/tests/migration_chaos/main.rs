//! Random histories of a group whose members change the protocol one by one, and back: classic ones, eager or
//! cooperative, and ones of the consumer protocol, with lost answers, slow and failing appends, deaths and restarts.
//!
//! No partition may ever be used by two members, and when the world comes to rest the group is of the protocol that its
//! members ask for, everybody is in it, and every partition is used.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod classic;
mod world;

use proptest::{prelude::*, test_runner::RngSeed};
use world::{MEMBERS, World};

#[derive(Clone, Debug)]
enum Step {
    /// A member does what is next for it; the answer may be lost.
    Act {
        member: usize,
        lost: bool,
    },
    /// A member goes and comes back with the other protocol.
    Switch {
        member: usize,
    },
    /// A member dies, or is started again.
    Die {
        member: usize,
    },
    Wait {
        ms: u64,
    },
    LogFails(bool),
    LogIsSlow(bool),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let member = 0..MEMBERS;
    prop_oneof![
        60 => (member.clone(), prop::bool::weighted(0.1)).prop_map(|(member, lost)| Step::Act { member, lost }),
        6 => member.clone().prop_map(|member| Step::Switch { member }),
        2 => member.prop_map(|member| Step::Die { member }),
        12 => prop_oneof![0..50u64, 0..4_000u64].prop_map(|ms| Step::Wait { ms }),
        1 => any::<bool>().prop_map(Step::LogFails),
        3 => any::<bool>().prop_map(Step::LogIsSlow),
        1 => Just(Step::Restart),
    ]
}

/// The same histories in every run; other ones when somebody wants many: `PROPTEST_CASES=20000`.
fn config() -> ProptestConfig {
    let standard = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return standard;
    }
    ProptestConfig { rng_seed: RngSeed::Fixed(848), ..standard }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn members_change_the_protocol_one_by_one_and_no_partition_has_two_users(
        eager in any::<bool>(),
        consumers in prop::collection::vec(any::<bool>(), MEMBERS),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(eager, &consumers);
        for step in &steps {
            match *step {
                Step::Act { member, lost } => world.act(member, lost),
                Step::Switch { member } => world.switch(member),
                Step::Die { member } => world.die(member),
                Step::Wait { ms } => world.wait(ms),
                Step::LogFails(fails) => world.log_fails = fails,
                Step::LogIsSlow(slow) => world.set_slow(slow),
                Step::Restart => world.restart(),
            }
            world.check();
        }
        world.come_to_rest();
    }
}

#[test]
fn a_classic_group_goes_over_member_by_member_and_comes_back() {
    for eager in [true, false] {
        let mut world = World::new(eager, &[false; MEMBERS]);
        world.come_to_rest();
        for member in (0..MEMBERS).chain(0..MEMBERS) {
            world.switch(member);
            world.come_to_rest();
        }
    }
}
