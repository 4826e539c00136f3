//! Sums over the members of a consumer group, kept as members come, change and go: what a decision about one of them
//! needs to know of all the others, without a look at each.

use super::stored::{ConsumerMember, MemberState};
use std::collections::BTreeMap;

/// How many members there are of each kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// By the assignor they ask for.
    pub(super) assignors: BTreeMap<String, usize>,
    /// By the topics that they name.
    pub(super) names: BTreeMap<String, usize>,
    /// By their regular expression.
    pub(super) regexes: BTreeMap<String, usize>,
    /// Of the classic protocol.
    pub(super) classic: usize,
    /// By their epoch, of those that have what they are to have then.
    stable: BTreeMap<i32, usize>,
}

impl Tally {
    pub(super) fn add(&mut self, member: &ConsumerMember) {
        for name in &member.names {
            more(&mut self.names, name);
        }
        if !member.regex.is_empty() {
            more(&mut self.regexes, &member.regex);
        }
        if let Some(assignor) = &member.server_assignor {
            more(&mut self.assignors, assignor);
        }
        self.classic += usize::from(member.classic.is_some());
        if member.state == MemberState::Stable {
            *self.stable.entry(member.epoch).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, member: &ConsumerMember) {
        for name in &member.names {
            less(&mut self.names, name);
        }
        less(&mut self.regexes, &member.regex);
        if let Some(assignor) = &member.server_assignor {
            less(&mut self.assignors, assignor);
        }
        self.classic = self.classic.saturating_sub(usize::from(member.classic.is_some()));
        if member.state == MemberState::Stable {
            less(&mut self.stable, &member.epoch);
        }
    }

    /// How many members have what they are to have at this epoch.
    pub(super) fn settled_at(&self, epoch: i32) -> usize {
        self.stable.get(&epoch).copied().unwrap_or(0)
    }
}

fn more(counts: &mut BTreeMap<String, usize>, key: &str) {
    match counts.get_mut(key) {
        Some(count) => *count += 1,
        None => drop(counts.insert(key.to_owned(), 1)),
    }
}

fn less<K: Ord + std::borrow::Borrow<Q>, Q: Ord + ?Sized>(counts: &mut BTreeMap<K, usize>, key: &Q) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_come_and_go_leave_nothing_behind() {
        let member = |names: &[&str], regex: &str, epoch| ConsumerMember {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            regex: regex.to_owned(),
            server_assignor: Some("range".to_owned()),
            epoch,
            ..ConsumerMember::default()
        };
        let (a, b) = (member(&["t", "u"], "", 1), member(&["t"], "x.*", 2));
        let mut tally = Tally::default();
        tally.add(&a);
        tally.add(&b);
        assert_eq!((tally.names["t"], tally.names["u"], tally.assignors["range"]), (2, 1, 2));
        assert_eq!((tally.settled_at(1), tally.settled_at(2), tally.settled_at(3)), (1, 1, 0));
        tally.remove(&a);
        assert_eq!(tally.names.keys().collect::<Vec<_>>(), ["t"]);
        tally.remove(&b);
        assert_eq!(tally, Tally::default());
    }
}
