//! Configurations of topics and brokers: read them, change single entries.

use super::{Admin, caller::checked, topics::not_controller};
use crate::{Error, cluster::Target};
use tontine_wire::api::{describe_configs, incremental_alter_configs};

/// What has a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigResource {
    /// A topic.
    Topic(String),
    /// A broker.
    Broker(i32),
    /// A group.
    Group(String),
}

impl std::fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Topic(name) => write!(f, "topic `{name}`"),
            Self::Broker(id) => write!(f, "broker {id}"),
            Self::Group(name) => write!(f, "group `{name}`"),
        }
    }
}

/// One entry of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its key.
    pub name: String,
    /// Its value; hidden when it is sensitive.
    pub value: Option<String>,
    /// Whether it is what nobody set.
    pub is_default: bool,
    /// Whether it cannot be changed.
    pub is_read_only: bool,
    /// Whether the value is hidden.
    pub is_sensitive: bool,
}

/// A change of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigChange {
    /// Set it.
    Set(String, String),
    /// Back to the default.
    Delete(String),
}

/// `ConfigEntry.ConfigSource.DEFAULT_CONFIG`.
const DEFAULT_CONFIG: i8 = 5;

impl ConfigResource {
    fn kind(&self) -> i8 {
        match self {
            Self::Topic(_) => 2,
            Self::Broker(_) => 4,
            Self::Group(_) => 32,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Topic(name) | Self::Group(name) => name.clone(),
            Self::Broker(id) => id.to_string(),
        }
    }

    /// A broker's own configuration is known to itself only.
    fn target(&self) -> Target {
        match self {
            Self::Topic(_) | Self::Group(_) => Target::Any,
            Self::Broker(id) => Target::Node(*id),
        }
    }
}

impl ConfigChange {
    fn into_wire(self) -> incremental_alter_configs::AlterableConfig {
        let (name, config_operation, value) = match self {
            Self::Set(name, value) => (name, 0, Some(value)),
            Self::Delete(name) => (name, 1, None),
        };
        incremental_alter_configs::AlterableConfig { name, config_operation, value }
    }
}

impl Admin {
    /// Reads a configuration.
    pub async fn describe_configs(&self, resource: &ConfigResource) -> Result<Vec<ConfigEntry>, Error> {
        let context = format!("reading the configuration of {resource}");
        let op = self.caller.operation(context.clone());
        let one = describe_configs::DescribeConfigsResource {
            resource_type: resource.kind(),
            resource_name: resource.name(),
            configuration_keys: None,
        };
        let request = describe_configs::DescribeConfigsRequest { resources: vec![one], ..Default::default() };
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, resource.target(), request.clone()).await?;
            for result in &answer.results {
                checked(result.error_code, &context, result.error_message.clone())?;
            }
            Ok(answer)
        });
        let entry = |e: describe_configs::DescribeConfigsResourceResult| ConfigEntry {
            name: e.name,
            value: e.value,
            is_default: e.config_source == DEFAULT_CONFIG,
            is_read_only: e.read_only,
            is_sensitive: e.is_sensitive,
        };
        Ok(answer.await?.results.into_iter().flat_map(|r| r.configs).map(entry).collect())
    }

    /// Changes single entries of a configuration and leaves the others as they are.
    pub async fn alter_configs(
        &self,
        resource: &ConfigResource,
        changes: impl IntoIterator<Item = ConfigChange>,
    ) -> Result<(), Error> {
        let context = format!("changing the configuration of {resource}");
        let op = self.caller.operation(context.clone());
        let one = incremental_alter_configs::AlterConfigsResource {
            resource_type: resource.kind(),
            resource_name: resource.name(),
            configs: changes.into_iter().map(ConfigChange::into_wire).collect(),
        };
        let request = incremental_alter_configs::IncrementalAlterConfigsRequest {
            resources: vec![one],
            validate_only: false,
        };
        let target = match resource.target() {
            Target::Any => Target::Controller,
            own => own,
        };
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, target.clone(), request.clone()).await?;
            not_controller(answer.responses.iter().map(|r| r.error_code), &context)?;
            Ok(answer)
        });
        let mut responses = answer.await?.responses.into_iter();
        responses.try_for_each(|r| checked(r.error_code, &context, r.error_message))
    }
}
