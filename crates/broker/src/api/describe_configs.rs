//! DescribeConfigs and ListConfigResources: what is set, and where each value comes from.

use crate::config::{BrokerConfig, Row, TopicConfig, broker_default, rows, topic_value};
use crate::state::{BrokerState, Call};
use crate::topics::{Refusal, check_name};
use tontine_wire::ErrorCode;
use tontine_wire::api::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult, DescribeConfigsSynonym,
};
use tontine_wire::api::list_config_resources::{
    ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
};

/// Kinds of resources by their numbers.
pub(super) mod resource {
    pub(in crate::api) const TOPIC: i8 = 2;
    pub(in crate::api) const BROKER: i8 = 4;
    pub(in crate::api) const GROUP: i8 = 32;
}

/// Where a value comes from, by its number.
mod source {
    pub(super) const TOPIC: i8 = 1;
    pub(super) const STATIC_BROKER: i8 = 4;
    pub(super) const DEFAULT: i8 = 5;
    pub(super) const GROUP: i8 = 8;
}

pub(super) fn answer(
    state: &BrokerState,
    _: &Call,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let (synonyms, documentation) = (request.include_synonyms, request.include_documentation);
    let results = request.resources.into_iter().map(|wanted| {
        let (error_code, error_message, configs) = match describe(state, &wanted) {
            Ok(configs) => (ErrorCode::NONE, None, configs),
            Err(refusal) => (refusal.code, Some(refusal.message), Vec::new()),
        };
        DescribeConfigsResult {
            error_code,
            error_message,
            resource_type: wanted.resource_type,
            resource_name: wanted.resource_name,
            configs: configs.into_iter().map(|config| trimmed(config, synonyms, documentation)).collect(),
        }
    });
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }
}

fn trimmed(
    mut config: DescribeConfigsResourceResult,
    synonyms: bool,
    documentation: bool,
) -> DescribeConfigsResourceResult {
    if !synonyms {
        config.synonyms.clear();
    }
    config.documentation = config.documentation.filter(|_| documentation);
    config
}

fn describe(
    state: &BrokerState,
    wanted: &DescribeConfigsResource,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let asked =
        |name: &str| wanted.configuration_keys.as_ref().is_none_or(|keys| keys.iter().any(|key| key == name));
    match wanted.resource_type {
        resource::TOPIC => {
            check_name(&wanted.resource_name)
                .map_err(|why| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why))?;
            let topic = state.topics.get(&wanted.resource_name).ok_or_else(|| {
                Refusal::new(
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    "This server does not host this topic-partition.",
                )
            })?;
            Ok(of_topic(state, &topic.config).filter(|config| asked(&config.name)).collect())
        }
        resource::BROKER => {
            check_broker(state, &wanted.resource_name)?;
            // The defaults of all brokers are a resource of their own, without a name; none are set.
            let rows = if wanted.resource_name.is_empty() { &[][..] } else { rows::BROKER };
            Ok(rows.iter().filter(|row| asked(row.key)).map(|row| of_broker(&state.config, row)).collect())
        }
        resource::GROUP => {
            check_group(&wanted.resource_name)?;
            Ok(of_group(state, &wanted.resource_name).filter(|config| asked(&config.name)).collect())
        }
        other => Err(Refusal::new(
            ErrorCode::INVALID_REQUEST,
            format!("resources of type {other} have no configuration here"),
        )),
    }
}

pub(super) fn check_broker(state: &BrokerState, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.parse().is_ok_and(|id: i32| state.nodes.contains_key(&id)) {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::INVALID_REQUEST,
        format!("Unexpected broker id, expected one of the nodes, but received {name}"),
    ))
}

/// Every key of a topic with these settings.
pub(super) fn of_topic<'s>(
    state: &'s BrokerState,
    config: &'s TopicConfig,
) -> impl Iterator<Item = DescribeConfigsResourceResult> + 's {
    rows::TOPIC.iter().map(|row| {
        let mut synonyms = Vec::new();
        let mut push = |name: &str, value: Option<String>, source| {
            if let Some(value) = value {
                synonyms.push(DescribeConfigsSynonym { name: name.to_owned(), value: Some(value), source });
            }
        };
        push(row.key, config.given(row.key).map(str::to_owned), source::TOPIC);
        let broker_key = rows::broker_key(row.key).unwrap_or(row.key);
        push(broker_key, broker_default(&state.config, row.key), source::STATIC_BROKER);
        push(broker_key, row.default.map(str::to_owned), source::DEFAULT);
        result(row, topic_value(config, &state.config, row.key), synonyms, false)
    })
}

pub(super) fn check_group(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Default group resources are not allowed."));
    }
    Ok(())
}

/// Every key of a group, whether there is such a group or not.
fn of_group<'s>(
    state: &'s BrokerState,
    group: &'s str,
) -> impl Iterator<Item = DescribeConfigsResourceResult> + 's {
    let config = state.group_configs.get(group);
    rows::GROUP.iter().map(move |row| {
        let broker_key = rows::group_broker_key(row.key);
        let given = config.and_then(|config| config.given(row.key));
        let default = crate::config::row(rows::BROKER, &broker_key).and_then(|row| row.default);
        let known = [
            (row.key, given, source::GROUP),
            (&broker_key, state.config.given(&broker_key), source::STATIC_BROKER),
            (&broker_key, default, source::DEFAULT),
        ];
        let synonym = |(name, value, source): (&str, Option<&str>, i8)| {
            let value = Some(value?.to_owned());
            Some(DescribeConfigsSynonym { name: name.to_owned(), value, source })
        };
        let synonyms: Vec<_> = known.into_iter().filter_map(synonym).collect();
        let value = synonyms.first().and_then(|synonym| synonym.value.clone());
        result(row, value, synonyms, false)
    })
}

fn of_broker(config: &BrokerConfig, row: &Row) -> DescribeConfigsResourceResult {
    let mut synonyms = Vec::new();
    let synonym = |value: &str, source| DescribeConfigsSynonym {
        name: row.key.to_owned(),
        value: Some(value.to_owned()),
        source,
    };
    synonyms.extend(config.given(row.key).map(|value| synonym(value, source::STATIC_BROKER)));
    synonyms.extend(row.default.map(|value| synonym(value, source::DEFAULT)));
    result(
        row,
        config.value(row.key).map(str::to_owned),
        synonyms,
        !super::alter_configs::is_dynamic(row.key),
    )
}

fn result(
    row: &Row,
    value: Option<String>,
    synonyms: Vec<DescribeConfigsSynonym>,
    read_only: bool,
) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult {
        name: row.key.to_owned(),
        value,
        read_only,
        config_source: synonyms.first().map_or(source::DEFAULT, |synonym| synonym.source),
        is_sensitive: false,
        synonyms,
        config_type: row.kind.wire_type(),
        documentation: Some(row.doc.to_owned()),
    }
}

/// ListConfigResources: what has a configuration.
pub(super) fn list(
    state: &BrokerState,
    call: &Call,
    request: &ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let asked = |kind: i8| request.resource_types.is_empty() || request.resource_types.contains(&kind);
    let mut config_resources = Vec::new();
    // Version 0 lists the metrics of clients, which do not exist here.
    if call.version >= 1 && asked(resource::TOPIC) {
        let topics = state.topics.iter().map(|topic| topic.name.to_string());
        config_resources.extend(
            topics.map(|resource_name| ConfigResource { resource_name, resource_type: resource::TOPIC }),
        );
    }
    if call.version >= 1 && asked(resource::BROKER) {
        let nodes = state.nodes.keys().map(i32::to_string);
        config_resources.extend(
            nodes.map(|resource_name| ConfigResource { resource_name, resource_type: resource::BROKER }),
        );
    }
    if call.version >= 1 && asked(resource::GROUP) {
        let groups = state.group_configs.keys().cloned();
        config_resources.extend(
            groups.map(|resource_name| ConfigResource { resource_name, resource_type: resource::GROUP }),
        );
    }
    ListConfigResourcesResponse { config_resources, ..Default::default() }
}
