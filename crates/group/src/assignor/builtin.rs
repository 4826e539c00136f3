//! The assignors that come with the library, by name, and what several of them have in common.

use super::{Assignor, CooperativeSticky, Range, RebalanceProtocol, RoundRobin, Sticky};
use std::sync::Arc;

/// An assignor that comes with the library.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name on the wire.
    pub name: &'static str,
    /// The Java class of that name, accepted in `partition.assignment.strategy` as well.
    pub java_class: &'static str,
    /// Makes one.
    pub new: fn() -> Arc<dyn Assignor>,
}

/// All assignors that come with the library.
pub static ALL: &[Builtin] = &[
    Builtin {
        name: "range",
        java_class: "org.apache.kafka.clients.consumer.RangeAssignor",
        new: || Arc::new(Range),
    },
    Builtin {
        name: "roundrobin",
        java_class: "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        new: || Arc::new(RoundRobin),
    },
    Builtin {
        name: "sticky",
        java_class: "org.apache.kafka.clients.consumer.StickyAssignor",
        new: || Arc::new(Sticky),
    },
    Builtin {
        name: "cooperative-sticky",
        java_class: "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        new: || Arc::new(CooperativeSticky),
    },
];

/// The assignor of this name or of this Java class.
pub fn by_name(name: &str) -> Option<Arc<dyn Assignor>> {
    ALL.iter()
        .find(|builtin| name == builtin.name || name == builtin.java_class)
        .map(|builtin| (builtin.new)())
}

/// How a member that offers these assignors rebalances: the most gentle way that all of them support, since it does not
/// know which of them the group will vote for. `Eager` for none at all.
pub fn negotiate(assignors: &[Arc<dyn Assignor>]) -> RebalanceProtocol {
    assignors.iter().map(|assignor| assignor.rebalance_protocol()).min().unwrap_or(RebalanceProtocol::Eager)
}
