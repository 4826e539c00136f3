//! `range`: the partitions of each topic in contiguous ranges, in the order of the members.
//!
//! Each topic is dealt on its own: with n partitions and c subscribers everybody gets n / c, and the first n % c
//! subscribers one more. Topics with as many partitions and the same subscribers are thus co-partitioned: the same
//! partition number of both goes to the same member. Mirrors `RangeAssignor` with its rack awareness (KIP-881), whose
//! rules are in `racks`, and the broker's `range`, which knows no racks.

use super::{
    Assignor, MemberSubscription,
    layout::{Layout, NOBODY, Subscribers},
    racks::Racks,
};
use crate::{Assignment, topics::Topics};
use std::collections::BTreeMap;

/// The assignor `range`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range;

impl Assignor for Range {
    fn name(&self) -> &str {
        "range"
    }

    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        let layout = Layout::new(topics, members);
        let subscribers = layout.subscribers();
        let mut owners = vec![NOBODY; layout.partitions];
        match Racks::new(&layout, &subscribers) {
            Some(racks) => deal_with_racks(&layout, &subscribers, &racks, &mut owners),
            None => deal(&layout, &subscribers, &mut owners),
        }
        layout.assignment(&owners)
    }
}

/// The broker's `range`: as above, wherever the replicas are.
pub fn assign_without_racks(topics: &Topics, members: &[MemberSubscription]) -> Assignment {
    let layout = Layout::new(topics, members);
    let mut owners = vec![NOBODY; layout.partitions];
    deal(&layout, &layout.subscribers(), &mut owners);
    layout.assignment(&owners)
}

fn deal(layout: &Layout<'_>, subscribers: &Subscribers, owners: &mut [u32]) {
    for (row, topic) in layout.rows.iter().enumerate() {
        let ranks = subscribers.of(row);
        let (each, extra) =
            (topic.partitions as usize / ranks.len(), topic.partitions as usize % ranks.len());
        let mut rest = &mut owners[topic.range()];
        for (nth, rank) in ranks.iter().enumerate() {
            let (range, after) = rest.split_at_mut(each + usize::from(nth < extra));
            range.fill(*rank);
            rest = after;
        }
    }
}

/// First what lies in the members' racks, then the rest in ranges, both within the same quotas.
fn deal_with_racks(layout: &Layout<'_>, subscribers: &Subscribers, racks: &Racks, owners: &mut [u32]) {
    let mut dealers: Vec<_> = (0..layout.rows.len())
        .map(|row| Dealer::new(layout.rows[row].range(), subscribers.of(row)))
        .collect();
    for rows in co_partitioned(layout, subscribers) {
        match rows.as_slice() {
            [row] if racks.matter(*row) => {
                dealers[*row].deal(owners, |nth, slot| racks.near(subscribers.of(*row)[nth], slot))
            }
            [_] => {}
            rows => deal_together(&mut dealers, rows, racks, owners),
        }
    }
    for dealer in &mut dealers {
        dealer.deal(owners, |_, _| true);
    }
}

/// The rows that have as many partitions and the same subscribers, together.
fn co_partitioned(layout: &Layout<'_>, subscribers: &Subscribers) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<(&[u32], u32), Vec<usize>> = BTreeMap::new();
    for (row, topic) in layout.rows.iter().enumerate() {
        groups.entry((subscribers.of(row), topic.partitions)).or_default().push(row);
    }
    groups.into_values().collect()
}

/// Each partition number to the first subscriber that still has room and a replica of it in its rack, in every topic.
fn deal_together(dealers: &mut [Dealer<'_>], rows: &[usize], racks: &Racks, owners: &mut [u32]) {
    let Some(first) = rows.first().map(|row| &dealers[*row]) else { return };
    let ranks = first.ranks;
    let mut with_room: Vec<usize> = (0..ranks.len()).collect();
    for partition in 0..first.slots.len() {
        let near = |nth: usize, row: usize| {
            dealers[row].room(nth) > 0 && racks.near(ranks[nth], dealers[row].slots.start + partition)
        };
        let fits = |nth: &usize| rows.iter().all(|row| near(*nth, *row));
        let Some(nth) = with_room.iter().copied().find(fits) else { continue };
        for row in rows {
            let slot = dealers[*row].slots.start + partition;
            dealers[*row].give(nth, slot, owners);
        }
        if rows.iter().all(|row| dealers[*row].room(nth) == 0) {
            with_room.retain(|other| *other != nth);
        }
    }
}

/// Deals the partitions of one topic within the quotas of `range`.
struct Dealer<'a> {
    slots: std::ops::Range<usize>,
    ranks: &'a [u32],
    given: Vec<usize>,
    each: usize,
    extra: usize,
}

impl<'a> Dealer<'a> {
    fn new(slots: std::ops::Range<usize>, ranks: &'a [u32]) -> Self {
        let (each, extra) = (slots.len() / ranks.len(), slots.len() % ranks.len());
        Self { slots, ranks, given: vec![0; ranks.len()], each, extra }
    }

    /// How many more the nth subscriber may get.
    fn room(&self, nth: usize) -> usize {
        (self.each + usize::from(self.extra > 0)).saturating_sub(self.given[nth])
    }

    fn give(&mut self, nth: usize, slot: usize, owners: &mut [u32]) {
        owners[slot] = self.ranks[nth];
        self.given[nth] += 1;
        self.extra -= usize::from(self.given[nth] > self.each);
    }

    /// Fills the subscribers one after the other with what is left and suits them.
    fn deal(&mut self, owners: &mut [u32], suits: impl Fn(usize, usize) -> bool) {
        let mut left: Vec<usize> = self.slots.clone().filter(|slot| owners[*slot] == NOBODY).collect();
        for nth in 0..self.ranks.len() {
            if left.is_empty() {
                return;
            }
            let mut room = self.room(nth);
            left.retain(|slot| {
                let taken = room > 0 && suits(nth, *slot);
                if taken {
                    room -= 1;
                    self.give(nth, *slot, owners);
                }
                !taken
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        assignor::examples::{assigned, member},
        topics::Topic,
    };
    use std::sync::Arc;

    /// Each word is a partition, each letter of it a rack with a replica.
    fn topic(racks: &str) -> Topic {
        let racks: Vec<Vec<Arc<str>>> = racks
            .split(' ')
            .map(|racks| racks.chars().map(|rack| rack.to_string().into()).collect())
            .collect();
        Topic { partitions: racks.len() as i32, racks, ..Topic::default() }
    }

    fn topics(all: &[(&str, &str)]) -> Topics {
        let mut topics = Topics::new();
        all.iter().for_each(|(name, racks)| topics.insert(*name, topic(racks)));
        topics
    }

    /// `racks` has a letter for each member, `-` for one that does not tell.
    fn group(racks: &str, wants: &[&str]) -> Vec<MemberSubscription> {
        let members = racks.chars().enumerate().map(|(i, rack)| {
            let rack = (rack != '-').then(|| Arc::from(rack.to_string()));
            MemberSubscription { rack, ..member(&format!("C{i}"), wants) }
        });
        members.collect()
    }

    #[test]
    fn members_get_what_lies_in_their_rack_within_their_quota() {
        let topics = topics(&[("t", "a a b b c c")]);
        let got = assigned(&Range, &topics, &group("cab", &["t"]));
        assert_eq!(got, ["C0: t-4 t-5", "C1: t-0 t-1", "C2: t-2 t-3"]);
        let got = assigned(&Range, &topics, &group("aab", &["t"]));
        assert_eq!(got, ["C0: t-0 t-1", "C1: t-4 t-5", "C2: t-2 t-3"], "C1's rack is used up by C0");
    }

    #[test]
    fn one_more_for_the_first_ones_holds_with_racks_too() {
        let got = assigned(&Range, &topics(&[("t", "ab bc ca ab")]), &group("cb", &["t"]));
        assert_eq!(got, ["C0: t-1 t-2", "C1: t-0 t-3"]);
        let got = assigned(&Range, &topics(&[("t", "a b b b b")]), &group("ab", &["t"]));
        assert_eq!(got, ["C0: t-0 t-4", "C1: t-1 t-2 t-3"]);
    }

    #[test]
    fn where_racks_make_no_difference_there_are_plain_ranges() {
        let plain = ["C0: t-0 t-1", "C1: t-2 t-3"];
        for (racks, members) in
            [("ab ab ab ab", "ba"), ("a b a b", "--"), ("a b a b", "xy"), ("a a a a", "ba")]
        {
            assert_eq!(
                assigned(&Range, &topics(&[("t", racks)]), &group(members, &["t"])),
                plain,
                "{racks} {members}"
            );
        }
    }

    #[test]
    fn a_member_that_tells_no_rack_is_near_everything() {
        let got = assigned(&Range, &topics(&[("t", "a b a b")]), &group("b-", &["t"]));
        assert_eq!(got, ["C0: t-1 t-3", "C1: t-0 t-2"]);
    }

    #[test]
    fn topics_with_as_many_partitions_stay_together_if_the_racks_of_all_match() {
        let wants = ["t", "u"];
        let together = topics(&[("t", "a b c"), ("u", "a b c")]);
        let got = assigned(&Range, &together, &group("cab", &wants));
        assert_eq!(got, ["C0: t-2 u-2", "C1: t-0 u-0", "C2: t-1 u-1"]);
        let apart = topics(&[("t", "a b c"), ("u", "b c a")]);
        let got = assigned(&Range, &apart, &group("cab", &wants));
        assert_eq!(got, ["C0: t-0 u-0", "C1: t-1 u-1", "C2: t-2 u-2"], "no member is near both");
    }

    #[test]
    fn topics_that_differ_in_subscribers_are_dealt_each_on_its_own() {
        let topics = topics(&[("t", "a b"), ("u", "b a")]);
        let mut members = group("ab", &["t", "u"]);
        members.push(member("C2", &["u"]));
        let got = assigned(&Range, &topics, &members);
        assert_eq!(got, ["C0: t-0 u-1", "C1: t-1 u-0", "C2:"]);
    }

    #[test]
    fn the_broker_does_not_look_at_racks() {
        let (topics, members) = (topics(&[("t", "a b")]), group("ba", &["t"]));
        let assignment = assign_without_racks(&topics, &members);
        assert_eq!((assignment.owner("t", 0), assignment.owner("t", 1)), (Some(0), Some(1)));
    }
}
