//! The next step of a member towards its target: it lets go first, and gets a partition only when nobody has it.
//!
//! Mirrors `CurrentAssignmentBuilder`.

use super::stored::{ConsumerMember, Held, MemberState, Partitions};
use tontine_wire::Uuid;

/// What a step depends on besides the member.
pub(super) struct Step<'a> {
    /// What the member is to have, of topics that it still wants.
    pub(super) target: &'a Partitions,
    pub(super) target_epoch: i32,
    /// Whether somebody else has a partition.
    pub(super) taken: &'a dyn Fn(Uuid, i32) -> bool,
    /// What the member says it has, if it says so.
    pub(super) owned: Option<&'a Partitions>,
    /// The member wants other topics than before.
    pub(super) resubscribed: bool,
}

impl Step<'_> {
    /// The member after the step.
    pub(super) fn take(&self, member: &ConsumerMember) -> ConsumerMember {
        match member.state {
            MemberState::Stable if member.epoch != self.target_epoch => self.advance(member),
            MemberState::Stable if self.resubscribed => self.shrink(member),
            MemberState::Stable => member.clone(),
            MemberState::Unrevoked if self.holds_on(member) => {
                if self.resubscribed {
                    self.shrink(member)
                } else {
                    member.clone()
                }
            }
            MemberState::Unrevoked | MemberState::Unreleased => self.advance(member),
        }
    }

    /// Whether the member has, or may have, something that it was told to let go of.
    fn holds_on(&self, member: &ConsumerMember) -> bool {
        self.owned.is_none_or(|owned| intersects(owned, &member.revoking))
    }

    /// Takes away what the member does not want any more; it stays at its epoch.
    fn shrink(&self, member: &ConsumerMember) -> ConsumerMember {
        let (kept, dropped) = split(&member.assigned, self.target);
        if dropped.is_empty() {
            return member.clone();
        }
        let mut revoking = member.revoking.clone();
        merge(&mut revoking, dropped);
        ConsumerMember {
            previous_epoch: member.epoch,
            assigned: kept,
            revoking,
            state: MemberState::Unrevoked,
            ..member.clone()
        }
    }

    fn advance(&self, member: &ConsumerMember) -> ConsumerMember {
        let (mut assigned, dropped) = split(&member.assigned, self.target);
        // A member that joins has nothing, whatever it had: it does not need to be asked to let go.
        let may_own = self.owned.is_none_or(|owned| intersects(owned, &dropped));
        if !dropped.is_empty() && may_own {
            return ConsumerMember {
                previous_epoch: member.epoch,
                assigned,
                revoking: dropped,
                state: MemberState::Unrevoked,
                ..member.clone()
            };
        }
        let mut waits = false;
        for (topic, partitions) in self.target {
            for &partition in partitions {
                if assigned.get(topic).is_some_and(|held| held.contains_key(&partition)) {
                    continue;
                }
                if (self.taken)(*topic, partition) {
                    waits = true;
                } else {
                    assigned.entry(*topic).or_default().insert(partition, self.target_epoch);
                }
            }
        }
        ConsumerMember {
            previous_epoch: member.epoch,
            epoch: self.target_epoch,
            assigned,
            revoking: Held::new(),
            state: if waits { MemberState::Unreleased } else { MemberState::Stable },
            ..member.clone()
        }
    }
}

fn intersects(owned: &Partitions, held: &Held) -> bool {
    held.iter().any(|(topic, partitions)| {
        owned.get(topic).is_some_and(|owned| partitions.keys().any(|partition| owned.contains(partition)))
    })
}

/// What of `held` is in `target`, and what is not.
fn split(held: &Held, target: &Partitions) -> (Held, Held) {
    let (mut inside, mut outside) = (Held::new(), Held::new());
    for (topic, partitions) in held {
        for (&partition, &epoch) in partitions {
            let wanted = target.get(topic).is_some_and(|target| target.contains(&partition));
            let side = if wanted { &mut inside } else { &mut outside };
            side.entry(*topic).or_default().insert(partition, epoch);
        }
    }
    (inside, outside)
}

fn merge(into: &mut Held, from: Held) {
    for (topic, partitions) in from {
        into.entry(topic).or_default().extend(partitions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Uuid = Uuid::from_u128(1);

    fn partitions(numbers: &[i32]) -> Partitions {
        if numbers.is_empty() { Partitions::new() } else { [(T, numbers.iter().copied().collect())].into() }
    }

    fn held(numbers: &[(i32, i32)]) -> Held {
        if numbers.is_empty() { Held::new() } else { [(T, numbers.iter().copied().collect())].into() }
    }

    fn step(
        member: &ConsumerMember,
        target: &[i32],
        target_epoch: i32,
        taken: &[i32],
        owned: Option<&[i32]>,
    ) -> ConsumerMember {
        let (target, owned) = (partitions(target), owned.map(partitions));
        let taken = |_: Uuid, partition: i32| taken.contains(&partition);
        Step { target: &target, target_epoch, taken: &taken, owned: owned.as_ref(), resubscribed: false }
            .take(member)
    }

    fn at(member: &ConsumerMember) -> (i32, i32, MemberState, Held, Held) {
        let m = member.clone();
        (m.epoch, m.previous_epoch, m.state, m.assigned, m.revoking)
    }

    #[test]
    fn a_partition_is_let_go_before_somebody_else_gets_it() {
        use MemberState::*;
        let a = step(&ConsumerMember::default(), &[0, 1], 2, &[], Some(&[]));
        assert_eq!(at(&a), (2, 0, Stable, held(&[(0, 2), (1, 2)]), held(&[])));
        let b = step(&ConsumerMember { epoch: 2, ..Default::default() }, &[1], 3, &[1], None);
        assert_eq!(at(&b), (3, 2, Unreleased, held(&[]), held(&[])));
        let a = step(&a, &[0], 3, &[], None);
        assert_eq!(at(&a), (2, 2, Unrevoked, held(&[(0, 2)]), held(&[(1, 2)])));
        assert_eq!(step(&a, &[0], 3, &[], None), a, "silence is no acknowledgement");
        assert_eq!(step(&a, &[0], 3, &[], Some(&[0, 1])), a, "nor is having it still");
        let a = step(&a, &[0], 3, &[], Some(&[0]));
        assert_eq!(at(&a), (3, 2, Stable, held(&[(0, 2)]), held(&[])));
        let b = step(&b, &[1], 3, &[], None);
        assert_eq!(at(&b), (3, 3, Stable, held(&[(1, 3)]), held(&[])));
    }

    #[test]
    fn a_member_that_is_where_it_should_be_stays() {
        let a = step(&ConsumerMember::default(), &[0], 2, &[], Some(&[]));
        assert_eq!(step(&a, &[0], 2, &[], Some(&[])), a, "whatever it says it has");
    }
}
