//! The settings of a coordinator, by Kafka's names and with Kafka's defaults.

use super::consumer::{Pace, ServerAssignors};
use crate::time::Duration;

/// Settings of one coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// `group.min.session.timeout.ms`: a shorter session is refused.
    pub group_min_session_timeout: Duration,
    /// `group.max.session.timeout.ms`: a longer session is refused.
    pub group_max_session_timeout: Duration,
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members after the first.
    pub group_initial_rebalance_delay: Duration,
    /// `group.max.size`: how many members a classic group may have.
    pub group_max_size: usize,
    /// `offset.metadata.max.bytes`: longer metadata of a commit is refused.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`: how long offsets nobody uses are kept.
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`: how often old offsets are looked for.
    pub offsets_retention_check_interval: Duration,
    /// How long a parked join of a member that is not known by its id yet may wait. Fixed in Kafka.
    pub group_new_member_join_timeout: Duration,
    /// `group.consumer.session.timeout.ms`: how long a member of a consumer group may be silent.
    pub consumer_session_timeout: Duration,
    /// `group.consumer.heartbeat.interval.ms`: how often members of consumer groups are asked to speak, or how seldom.
    pub consumer_heartbeat_interval: Duration,
    /// When they are asked to speak more often than that.
    pub consumer_heartbeat_pace: HeartbeatPace,
    /// `group.consumer.assignment.interval.ms`: how far apart targets are computed at least. Kafka: 1000.
    pub consumer_assignment_interval: Duration,
    /// `group.consumer.assignors`: the assignors that members may ask for, the default first.
    pub consumer_assignors: ServerAssignors,
    /// `group.consumer.max.size`: how many members a consumer group may have.
    pub consumer_group_max_size: usize,
    /// `group.consumer.migration.policy`: whether groups with members go over to the other protocol.
    pub consumer_migration_policy: MigrationPolicy,
    /// Wall clock at [`crate::Instant::ZERO`], in milliseconds since 1970, for the timestamps of records.
    pub unix_ms_at_origin: i64,
}

/// Settings of one consumer group, where it has other ones than the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// `consumer.session.timeout.ms`
    pub session_timeout: Option<Duration>,
    /// `consumer.heartbeat.interval.ms`
    pub heartbeat_interval: Option<Duration>,
    /// `consumer.assignment.interval.ms`
    pub assignment_interval: Option<Duration>,
}

/// When members of consumer groups are asked to speak more often than the configured interval says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeartbeatPace {
    /// Never, as in Kafka.
    Fixed,
    /// While partitions are on their way.
    #[default]
    QuickWhileMoving,
    /// At rest as well, as long as the coordinator has few members. Groups with an interval of their own keep it.
    Quick,
}

/// What is in force for one consumer group.
#[derive(Clone, Copy, Debug)]
pub(super) struct InForce {
    pub(super) session_timeout: Duration,
    pub(super) pace: Pace,
    pub(super) assignment_interval: Duration,
}

impl CoordinatorConfig {
    /// `members`: of all consumer groups of the coordinator.
    pub(super) fn in_force(&self, group: GroupSettings, members: usize) -> InForce {
        let pace = match (self.consumer_heartbeat_pace, group.heartbeat_interval) {
            (HeartbeatPace::Quick, Some(_)) => HeartbeatPace::QuickWhileMoving,
            (pace, _) => pace,
        };
        let interval = group.heartbeat_interval.unwrap_or(self.consumer_heartbeat_interval);
        InForce {
            session_timeout: group.session_timeout.unwrap_or(self.consumer_session_timeout),
            pace: Pace::new(pace, interval, members),
            assignment_interval: group.assignment_interval.unwrap_or(self.consumer_assignment_interval),
        }
    }
}

/// Whether groups with members go over to the other protocol. Groups without always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// To the consumer protocol with the first member that speaks it, and back when the last one leaves.
    #[default]
    Bidirectional,
    /// Only to the consumer protocol.
    Upgrade,
    /// Only back to the classic protocol.
    Downgrade,
    /// Not at all, and no group has members of both.
    Disabled,
}

impl MigrationPolicy {
    /// Whether classic groups may become consumer groups.
    pub fn upgrades(self) -> bool {
        matches!(self, Self::Bidirectional | Self::Upgrade)
    }

    /// Whether consumer groups may become classic groups.
    pub fn downgrades(self) -> bool {
        matches!(self, Self::Bidirectional | Self::Downgrade)
    }
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        Self {
            group_min_session_timeout: Duration::from_secs(6),
            group_max_session_timeout: Duration::from_secs(1800),
            group_initial_rebalance_delay: Duration::from_secs(3),
            group_max_size: i32::MAX as usize,
            offset_metadata_max_bytes: 4096,
            offsets_retention: Duration::from_secs(10080 * 60),
            offsets_retention_check_interval: Duration::from_secs(600),
            group_new_member_join_timeout: Duration::from_secs(300),
            consumer_session_timeout: Duration::from_secs(45),
            consumer_heartbeat_interval: Duration::from_secs(5),
            consumer_heartbeat_pace: HeartbeatPace::QuickWhileMoving,
            consumer_assignment_interval: Duration::from_millis(20),
            consumer_assignors: ServerAssignors::default(),
            consumer_group_max_size: i32::MAX as usize,
            consumer_migration_policy: MigrationPolicy::Bidirectional,
            unix_ms_at_origin: 0,
        }
    }
}
