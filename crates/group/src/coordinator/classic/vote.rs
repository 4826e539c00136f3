//! Which protocol a group uses: each member votes for the first of its own that all members know.
//!
//! Kafka leaves a tie to the order of a hash map. Here the leader's order decides it.

use super::{ClassicGroup, member::Member};
use bytes::Bytes;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};
use tontine_wire::api::join_group::JoinGroupRequestProtocol;

/// A protocol that a member can work with, and what it says under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    pub(super) name: String,
    pub(super) metadata: Bytes,
}

impl From<JoinGroupRequestProtocol> for Protocol {
    fn from(protocol: JoinGroupRequestProtocol) -> Self {
        Self { name: protocol.name, metadata: protocol.metadata }
    }
}

/// For each protocol the number of members that know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Support {
    members: BTreeMap<String, usize>,
}

impl Support {
    pub(super) fn add(&mut self, protocols: &[Protocol]) {
        for name in names(protocols) {
            *self.members.entry(name.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, protocols: &[Protocol]) {
        for name in names(protocols) {
            if let Some(count) = self.members.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.members.remove(name);
                }
            }
        }
    }

    fn has(&self, name: &str, members: usize) -> bool {
        self.members.get(name).copied().unwrap_or(0) == members
    }
}

/// The names, each once: a member that lists one twice still is one member.
fn names(protocols: &[Protocol]) -> BTreeSet<&str> {
    protocols.iter().map(|p| p.name.as_str()).collect()
}

impl ClassicGroup {
    /// Whether somebody with these protocols can be in the group: of its type, with one protocol that all members know.
    /// Anything goes while there are no members.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if matches!(self.phase, super::Phase::Empty) {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|p| self.support.has(&p.name, self.members.len()))
    }

    /// The protocol that wins, if there is one that all members know.
    pub(super) fn select_protocol(&self) -> Option<String> {
        let mut votes = BTreeMap::<&str, usize>::new();
        for member in self.members.values() {
            if let Some(choice) = self.vote_of(member) {
                *votes.entry(choice).or_default() += 1;
            }
        }
        let order = |name: &str| {
            let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
            leader.and_then(|l| l.protocols.iter().position(|p| p.name == name)).unwrap_or(usize::MAX)
        };
        let winner = votes.into_iter().max_by_key(|(name, votes)| (*votes, Reverse(order(name))));
        winner.map(|(name, _)| name.to_owned())
    }

    fn vote_of<'a>(&self, member: &'a Member) -> Option<&'a str> {
        let all = self.members.len();
        member.protocols.iter().map(|p| p.name.as_str()).find(|name| self.support.has(name, all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocols(names: &[&str]) -> Vec<Protocol> {
        names.iter().map(|name| Protocol { name: (*name).to_owned(), metadata: Bytes::new() }).collect()
    }

    #[test]
    fn a_member_that_lists_a_protocol_twice_is_one_member() {
        let mut support = Support::default();
        support.add(&protocols(&["range", "range"]));
        assert!(support.has("range", 1));
        support.remove(&protocols(&["range", "range"]));
        assert_eq!(support, Support::default());
    }

    #[test]
    fn support_is_unanimous_or_none() {
        let mut support = Support::default();
        support.add(&protocols(&["range", "sticky"]));
        support.add(&protocols(&["sticky"]));
        assert!(support.has("sticky", 2) && !support.has("range", 2) && !support.has("other", 2));
    }
}
