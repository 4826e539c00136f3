//! The eager rule: everybody gives up everything before anybody joins.
//!
//! That is the whole of it: between the first revocation and the first assignment nobody in the group owns anything, so
//! no plan can hand a partition to two members. Mirrors `RebalanceProtocol.EAGER` of `ConsumerPartitionAssignor`.

use crate::TopicPartition;
use std::collections::BTreeSet;

/// What a member gives up before it joins again, in order. Also when that is nothing: an eager listener is told of every
/// rebalance.
pub fn given_up_before_join(owned: &BTreeSet<TopicPartition>) -> Vec<TopicPartition> {
    owned.iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eager_member_gives_up_everything_before_it_joins() {
        let owned = BTreeSet::from([TopicPartition::new("b", 0), TopicPartition::new("a", 1)]);
        assert_eq!(given_up_before_join(&owned), [TopicPartition::new("a", 1), TopicPartition::new("b", 0)]);
    }
}
