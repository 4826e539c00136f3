//! What the consumer's machine needs to know of the configuration, and how it is derived.

use crate::{
    Error,
    audit::LedgerSettings,
    cluster::ClusterSettings,
    config::{self, AutoOffsetReset, ConsumerBuilder, ConsumerConfig, IsolationLevel},
    desk::{Desk, DeskSettings, Rules},
    fetch::plan::FetchSettings,
};
use std::{sync::Arc, time::Duration};
use tontine_group::{
    assignor::{self, Assignor},
    member::{GroupProtocol, MemberConfig},
};
use tontine_wire::records::Checksum;

/// Settings of a consumer's machine and of its application's side.
#[derive(Clone, Debug)]
pub struct ConsumerSettings {
    pub(crate) cluster: ClusterSettings,
    pub(crate) member: Option<MemberConfig>,
    pub(crate) fetch: FetchSettings,
    pub(crate) desk: DeskSettings,
    pub(crate) reset: AutoOffsetReset,
    pub(crate) exclude_internal_topics: bool,
    pub(crate) request_timeout: Duration,
    pub(crate) default_api_timeout: Duration,
    pub(crate) retry_backoff: Duration,
    pub(crate) retry_backoff_max: Duration,
    pub(crate) metadata_max_age: Duration,
    /// The wall clock, in milliseconds since 1970, when the machine's time was zero.
    pub(crate) unix_ms_at_origin: i64,
}

impl ConsumerSettings {
    /// The settings that a builder stands for. `unix_ms_at_origin` is the wall clock when the machine's time is zero.
    pub fn new(builder: ConsumerBuilder, unix_ms_at_origin: i64) -> Result<Self, Error> {
        let own = builder.assignors.clone();
        let mut config = builder.checked()?;
        if config.client_id.is_empty() {
            config.client_id = made_up_client_id(&config);
        }
        let cluster = ClusterSettings {
            allow_auto_topic_creation: config.allow_auto_create_topics,
            ..config.cluster_settings()?
        };
        let member = match &config.group_id {
            Some(group) => Some(member_config(&config, group, &own)?),
            None => None,
        };
        Ok(Self {
            cluster,
            member,
            fetch: fetch_settings(&config),
            desk: desk_settings(&config, unix_ms_at_origin),
            reset: config.auto_offset_reset,
            exclude_internal_topics: config.exclude_internal_topics,
            request_timeout: config.request_timeout,
            default_api_timeout: config.default_api_timeout,
            retry_backoff: config.retry_backoff,
            retry_backoff_max: config.retry_backoff_max,
            metadata_max_age: config.metadata_max_age,
            unix_ms_at_origin,
        })
    }

    pub(crate) fn is_read_committed(&self) -> bool {
        self.fetch.isolation == IsolationLevel::ReadCommitted
    }
}

fn made_up_client_id(config: &ConsumerConfig) -> String {
    let name = config.group_instance_id.as_ref().or(config.group_id.as_ref());
    name.map_or_else(|| "tontine-consumer".to_owned(), |name| format!("tontine-consumer-{name}"))
}

/// A member that may come to speak the classic protocol only because a broker has no other rebalances as gently there.
fn offered_assignors(config: &ConsumerConfig) -> Vec<String> {
    let is_second_choice = config.group_protocol == config::GroupProtocol::ConsumerOrClassic;
    if is_second_choice && !config.is_given("partition.assignment.strategy") {
        return vec!["cooperative-sticky".to_owned()];
    }
    config.assignor_names()
}

fn member_config(
    config: &ConsumerConfig,
    group: &str,
    own: &[Arc<dyn Assignor>],
) -> Result<MemberConfig, Error> {
    let mut assignors = Vec::new();
    for name in offered_assignors(config) {
        let found = own.iter().find(|a| a.name() == name).cloned().or_else(|| assignor::by_name(&name));
        assignors.push(found.ok_or_else(|| {
            Error::configuration(format!(
                "partition.assignment.strategy: `{name}` is not known: use range, roundrobin, sticky or \
                 cooperative-sticky, or give your own to the builder with .assignor(..)"
            ))
        })?);
    }
    Ok(MemberConfig {
        group_id: group.to_owned(),
        instance_id: config.group_instance_id.clone(),
        protocol: match config.group_protocol {
            config::GroupProtocol::Classic => GroupProtocol::Classic,
            config::GroupProtocol::Consumer => GroupProtocol::Consumer,
            config::GroupProtocol::ConsumerOrClassic => GroupProtocol::ConsumerOrClassic,
        },
        remote_assignor: config.group_remote_assignor.clone(),
        client_id: config.client_id.clone(),
        rack: (!config.client_rack.is_empty()).then(|| config.client_rack.clone()),
        session_timeout: config.session_timeout,
        heartbeat_interval: config.heartbeat_interval,
        rebalance_timeout: config.max_poll_interval,
        // The desk tells of polls only now and then; what it may be late by is added here.
        max_poll_interval: config.max_poll_interval + Desk::tell_every(config.max_poll_interval),
        request_timeout: config.request_timeout,
        retry_backoff: config.retry_backoff,
        retry_backoff_max: config.retry_backoff_max,
        assignors,
    })
}

fn fetch_settings(config: &ConsumerConfig) -> FetchSettings {
    FetchSettings {
        min_bytes: config.fetch_min_bytes,
        max_wait: config.fetch_max_wait,
        max_bytes: config.fetch_max_bytes,
        partition_max_bytes: config.max_partition_fetch_bytes,
        queue_bytes: usize::try_from(config.fetch_queue_bytes).unwrap_or(0),
        isolation: config.isolation_level,
        rack: config.client_rack.clone(),
    }
}

fn desk_settings(config: &ConsumerConfig, unix_ms_at_origin: i64) -> DeskSettings {
    let audit = config.audit_log.as_ref().and(config.group_id.clone());
    DeskSettings {
        audit: audit.map(|group| LedgerSettings {
            group,
            unix_ms_at_origin,
            in_rounds: config.group_protocol == config::GroupProtocol::Classic,
        }),
        has_group: config.group_id.is_some(),
        max_poll_records: usize::try_from(config.max_poll_records).unwrap_or(usize::MAX),
        max_poll_interval: config.max_poll_interval,
        auto_commit: config.auto_commit().then_some(config.auto_commit_interval),
        retry_backoff: config.retry_backoff,
        queue_bytes: usize::try_from(config.fetch_queue_bytes).unwrap_or(0),
        partition_max_bytes: usize::try_from(config.max_partition_fetch_bytes).unwrap_or(1),
        rules: Rules {
            committed_only: config.isolation_level == IsolationLevel::ReadCommitted,
            checksum: if config.check_crcs { Checksum::Verify } else { Checksum::Ignore },
        },
    }
}
