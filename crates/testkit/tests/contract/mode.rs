//! The ways in which a group rebalances, for tests that run in all of them.

use tontine_testkit::member::Plan;
use tontine_wire::api::ApiKey;

/// Eager or cooperative, or with the consumer protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything is revoked before members join.
    Eager,
    /// Only what moves is revoked.
    Cooperative,
    /// The coordinator deals the partitions.
    Consumer,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Eager, Self::Cooperative, Self::Consumer];
    pub const CLASSIC: [Self; 2] = [Self::Eager, Self::Cooperative];

    /// The plan of a member in this mode.
    pub fn plan(self, plan: Plan) -> Plan {
        match self {
            Self::Eager => plan.assignor("range"),
            Self::Cooperative => plan.assignor("cooperative-sticky"),
            Self::Consumer => plan.consumer_protocol(),
        }
    }

    /// What keeps a member in its group.
    pub fn heartbeat(self) -> ApiKey {
        self.pick3(ApiKey::Heartbeat, ApiKey::Heartbeat, ApiKey::ConsumerGroupHeartbeat)
    }

    pub fn is_classic(self) -> bool {
        self != Self::Consumer
    }

    /// How tests in this mode are called.
    pub fn name(self) -> &'static str {
        self.pick3("eager", "cooperative", "consumer")
    }

    /// The first in eager mode, the second in the others, where only what moves is revoked.
    pub fn pick<T>(self, eager: T, others: T) -> T {
        match self {
            Self::Eager => eager,
            Self::Cooperative | Self::Consumer => others,
        }
    }

    pub fn pick3<T>(self, eager: T, cooperative: T, consumer: T) -> T {
        match self {
            Self::Eager => eager,
            Self::Cooperative => cooperative,
            Self::Consumer => consumer,
        }
    }
}
