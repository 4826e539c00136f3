//! AlterConfigs and IncrementalAlterConfigs: settings change while the broker runs.

use super::admin::outcome;
use super::describe_configs::{check_broker, check_group, resource};
use crate::config::{BrokerConfig, ConfigError, Effect, TopicConfig, topic_value};
use crate::creation::config_refusal;
use crate::state::{BrokerState, Call};
use crate::topics::Refusal;
use tontine_group::Instant;
use tontine_wire::ErrorCode;
use tontine_wire::api::alter_configs::{
    AlterConfigsRequest, AlterConfigsResourceResponse, AlterConfigsResponse,
};
use tontine_wire::api::incremental_alter_configs::{
    AlterConfigsResourceResponse as IncrementalResourceResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

/// What to do with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

/// One change.
#[derive(Debug)]
struct Change {
    key: String,
    operation: Operation,
    value: Option<String>,
}

/// Keys of the broker that may change while it runs.
pub(super) fn is_dynamic(key: &str) -> bool {
    matches!(
        key,
        "log.cleanup.policy"
            | "log.message.timestamp.after.max.ms"
            | "log.message.timestamp.before.max.ms"
            | "log.message.timestamp.type"
            | "log.retention.bytes"
            | "log.retention.ms"
            | "log.segment.bytes"
            | "max.connections"
            | "message.max.bytes"
            | "min.insync.replicas"
            | "producer.id.expiration.ms"
            | "unclean.leader.election.enable"
    )
}

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse {
    let mut responses = Vec::new();
    for wanted in request.resources {
        let set = |(key, value)| Change { key, operation: Operation::Set, value };
        let changes: Vec<_> =
            wanted.configs.into_iter().map(|config| set((config.name, config.value))).collect();
        let (kind, name) = (wanted.resource_type, wanted.resource_name);
        let (error_code, error_message) =
            outcome(alter(state, call.now, kind, &name, &changes, true, request.validate_only));
        responses.push(AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: kind,
            resource_name: name,
        });
    }
    AlterConfigsResponse { responses, ..Default::default() }
}

pub(super) fn answer_incremental(
    state: &mut BrokerState,
    call: &Call,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let mut responses = Vec::new();
    for wanted in request.resources {
        let (kind, name) = (wanted.resource_type, wanted.resource_name);
        let changes: Result<Vec<_>, _> = wanted
            .configs
            .into_iter()
            .map(|config| {
                Ok(Change {
                    key: config.name,
                    operation: operation(config.config_operation)?,
                    value: config.value,
                })
            })
            .collect();
        let result = changes
            .and_then(|changes| alter(state, call.now, kind, &name, &changes, false, request.validate_only));
        let (error_code, error_message) = outcome(result);
        responses.push(IncrementalResourceResponse {
            error_code,
            error_message,
            resource_type: kind,
            resource_name: name,
        });
    }
    IncrementalAlterConfigsResponse { responses, ..Default::default() }
}

fn operation(number: i8) -> Result<Operation, Refusal> {
    match number {
        0 => Ok(Operation::Set),
        1 => Ok(Operation::Delete),
        2 => Ok(Operation::Append),
        3 => Ok(Operation::Subtract),
        other => Err(Refusal::new(ErrorCode::INVALID_REQUEST, format!("unknown operation {other}"))),
    }
}

fn alter(
    state: &mut BrokerState,
    now: Instant,
    kind: i8,
    name: &str,
    changes: &[Change],
    replace: bool,
    validate_only: bool,
) -> Result<(), Refusal> {
    match kind {
        resource::TOPIC => alter_topic(state, now, name, changes, replace, validate_only),
        resource::BROKER => alter_broker(state, now, name, changes, validate_only),
        resource::GROUP => alter_group(state, now, name, changes, replace, validate_only),
        other => Err(Refusal::new(
            ErrorCode::INVALID_REQUEST,
            format!("resources of type {other} have no configuration here"),
        )),
    }
}

fn alter_topic(
    state: &mut BrokerState,
    now: Instant,
    name: &str,
    changes: &[Change],
    replace: bool,
    validate_only: bool,
) -> Result<(), Refusal> {
    let broker = state.config.clone();
    let topic = state.topics.get_mut(name).ok_or_else(|| {
        Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("The topic '{name}' does not exist."))
    })?;
    let mut config = if replace { TopicConfig::default() } else { topic.config.clone() };
    for change in changes {
        let now = topic_value(&config, &broker, &change.key).unwrap_or_default();
        match changed(change, &now)? {
            Some(value) => config.set(&change.key, &value).map_err(config_refusal)?,
            None => config.unset(&change.key),
        }
    }
    if !validate_only {
        let settings = config.settings(&broker);
        let before = std::mem::replace(&mut topic.config, config);
        let kept = state.keep_changed(now, name);
        if let Some(topic) = state.topics.get_mut(name) {
            match kept {
                Ok(()) => topic.settings = settings,
                Err(_) => topic.config = before,
            }
        }
        kept.map_err(not_stored)?;
        state.settle_logs(now);
    }
    Ok(())
}

/// A group need not exist for it; its members hear of it with their next heartbeat.
fn alter_group(
    state: &mut BrokerState,
    now: Instant,
    name: &str,
    changes: &[Change],
    replace: bool,
    validate_only: bool,
) -> Result<(), Refusal> {
    check_group(name)?;
    let known = state.group_configs.get(name).filter(|_| !replace);
    let mut config = known.cloned().unwrap_or_default();
    for change in changes {
        match changed(change, "")? {
            Some(value) => config.set(&change.key, &value).map_err(config_refusal)?,
            None => config.unset(&change.key),
        }
    }
    config.check(&state.config).map_err(|why| Refusal::new(ErrorCode::INVALID_CONFIG, why))?;
    if !validate_only {
        state.keep_group(now, name, &config).map_err(not_stored)?;
        state.set_group_config(name, config);
    }
    Ok(())
}

/// The value after a change; `None` for the default.
fn changed(change: &Change, now: &str) -> Result<Option<String>, Refusal> {
    let Some(value) = change.value.clone().filter(|_| change.operation != Operation::Delete) else {
        return Ok(None);
    };
    let parts = |text: &str| {
        text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect::<Vec<_>>()
    };
    let joined = match change.operation {
        Operation::Set | Operation::Delete => return Ok(Some(value)),
        _ if !is_list(&change.key) => {
            return Err(Refusal::new(
                ErrorCode::INVALID_CONFIG,
                format!("Can't append to or subtract from key {}: it is not a list", change.key),
            ));
        }
        Operation::Append => {
            let mut list = parts(now);
            list.extend(
                parts(&value).into_iter().filter(|part| !now.split(',').any(|known| known.trim() == part)),
            );
            list
        }
        Operation::Subtract => {
            let gone = parts(&value);
            parts(now).into_iter().filter(|part| !gone.contains(part)).collect()
        }
    };
    Ok(Some(joined.join(",")))
}

fn is_list(key: &str) -> bool {
    use crate::config::{Kind, rows};
    rows::TOPIC.iter().chain(rows::BROKER).any(|row| row.key == key && row.kind == Kind::List)
}

/// All nodes share one configuration: what is set for one of them is set for all.
fn alter_broker(
    state: &mut BrokerState,
    now: Instant,
    name: &str,
    changes: &[Change],
    validate_only: bool,
) -> Result<(), Refusal> {
    check_broker(state, name)?;
    let mut config: BrokerConfig = state.config.clone();
    let mut kept = Vec::new();
    for change in changes {
        if !is_dynamic(&change.key) {
            check_without_effect(change)?;
            continue;
        }
        let was = config.value(&change.key).unwrap_or_default().to_owned();
        let value = changed(change, &was)?;
        match &value {
            Some(value) => {
                let _ = config.set(&change.key, value).map_err(config_refusal)?;
            }
            None => config.unset(&change.key),
        }
        kept.push((&change.key, value));
    }
    if !validate_only {
        for (key, value) in kept {
            state.keep_setting(now, key, value.as_deref()).map_err(not_stored)?;
        }
        state.set_config(config);
        state.settle_logs(now);
    }
    Ok(())
}

fn not_stored(code: ErrorCode) -> Refusal {
    Refusal::new(code, "the change cannot be stored in the data directory: see the broker's log")
}

/// Keys that have no effect may be set to anything; keys that are read once at start may not.
fn check_without_effect(change: &Change) -> Result<(), Refusal> {
    match BrokerConfig::new().set(&change.key, change.value.as_deref().unwrap_or_default()) {
        Ok(Effect::None) => Ok(()),
        Err(unknown @ ConfigError::UnknownKey { .. }) => Err(config_refusal(unknown)),
        Ok(Effect::Obeyed) | Err(_) => Err(Refusal::new(
            ErrorCode::INVALID_REQUEST,
            format!("Cannot update these configs dynamically: {}", change.key),
        )),
    }
}
