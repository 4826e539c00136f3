//! Topics: create, delete, list, describe, add partitions.

use super::{Admin, Each, caller::checked, only};
use crate::{
    Error,
    cluster::{PartitionMetadata, Target, TopicMetadata},
};
use std::collections::BTreeMap;
use tontine_wire::{
    ErrorCode, Uuid,
    api::{create_partitions, create_topics, delete_topics, metadata},
};

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; `None` takes the broker's default.
    pub partitions: Option<i32>,
    /// How many copies of each; `None` takes the broker's default.
    pub replication_factor: Option<i16>,
    /// Its configuration.
    pub configs: BTreeMap<String, String>,
}

/// A topic that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its id, where brokers tell ids.
    pub id: Uuid,
    /// How many partitions it has, where brokers tell.
    pub partitions: Option<i32>,
}

/// A topic in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicListing {
    /// Its name.
    pub name: String,
    /// Its id, where brokers tell ids.
    pub id: Uuid,
    /// Whether Kafka itself keeps it.
    pub is_internal: bool,
    /// How many partitions it has.
    pub partitions: i32,
}

impl NewTopic {
    /// A topic with this many partitions and the broker's default for copies.
    pub fn new(name: impl Into<String>, partitions: i32) -> Self {
        Self {
            name: name.into(),
            partitions: Some(partitions),
            replication_factor: None,
            configs: BTreeMap::new(),
        }
    }

    /// With this many copies of each partition.
    pub fn replication_factor(mut self, copies: i16) -> Self {
        self.replication_factor = Some(copies);
        self
    }

    /// With this configuration entry.
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.insert(key.into(), value.into());
        self
    }

    fn to_wire(&self) -> create_topics::CreatableTopic {
        let entry = |(name, value): (&String, &String)| create_topics::CreatableTopicConfig {
            name: name.clone(),
            value: Some(value.clone()),
        };
        create_topics::CreatableTopic {
            name: self.name.clone(),
            num_partitions: self.partitions.unwrap_or(-1),
            replication_factor: self.replication_factor.unwrap_or(-1),
            assignments: Vec::new(),
            configs: self.configs.iter().map(entry).collect(),
        }
    }
}

impl Admin {
    /// Creates a topic.
    pub async fn create_topic(&self, topic: NewTopic) -> Result<CreatedTopic, Error> {
        let context = format!("creating topic `{}`", topic.name);
        only(self.create_topics([topic]).await?, &context)
    }

    /// Creates topics.
    pub async fn create_topics(
        &self,
        topics: impl IntoIterator<Item = NewTopic>,
    ) -> Result<Each<String, CreatedTopic>, Error> {
        let topics: Vec<NewTopic> = topics.into_iter().collect();
        let op = self.caller.operation("creating topics");
        let request = create_topics::CreateTopicsRequest {
            topics: topics.iter().map(NewTopic::to_wire).collect(),
            timeout_ms: self.caller.request_timeout_ms(),
            validate_only: false,
        };
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, Target::Controller, request.clone()).await?;
            not_controller(answer.topics.iter().map(|t| t.error_code), "creating topics")?;
            Ok(answer)
        });
        let result = |topic: create_topics::CreatableTopicResult| {
            checked(topic.error_code, &format!("creating topic `{}`", topic.name), topic.error_message)?;
            let partitions = (topic.num_partitions >= 0).then_some(topic.num_partitions);
            Ok(CreatedTopic { id: topic.topic_id, partitions })
        };
        Ok(answer.await?.topics.into_iter().map(|t| (t.name.clone(), result(t))).collect())
    }

    /// Deletes a topic.
    pub async fn delete_topic(&self, name: &str) -> Result<(), Error> {
        only(self.delete_topics([name]).await?, &format!("deleting topic `{name}`"))
    }

    /// Deletes topics.
    pub async fn delete_topics(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Each<String, ()>, Error> {
        let topic_names: Vec<String> = names.into_iter().map(Into::into).collect();
        let op = self.caller.operation("deleting topics");
        let one =
            |n: &String| delete_topics::DeleteTopicState { name: Some(n.clone()), topic_id: Uuid::ZERO };
        let request = delete_topics::DeleteTopicsRequest {
            topics: topic_names.iter().map(one).collect(),
            topic_names,
            timeout_ms: self.caller.request_timeout_ms(),
        };
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, Target::Controller, request.clone()).await?;
            not_controller(answer.responses.iter().map(|t| t.error_code), "deleting topics")?;
            Ok(answer)
        });
        let result = |topic: delete_topics::DeletableTopicResult| {
            let name = topic.name.unwrap_or_default();
            let result = checked(topic.error_code, &format!("deleting topic `{name}`"), topic.error_message);
            (name, result)
        };
        Ok(answer.await?.responses.into_iter().map(result).collect())
    }

    /// Gives a topic this many partitions altogether; there cannot be fewer than before.
    pub async fn create_partitions(&self, topic: &str, total: i32) -> Result<(), Error> {
        let context = format!("giving topic `{topic}` {total} partitions");
        let op = self.caller.operation(context.clone());
        let one = create_partitions::CreatePartitionsTopic {
            name: topic.to_owned(),
            count: total,
            assignments: None,
        };
        let request = create_partitions::CreatePartitionsRequest {
            topics: vec![one],
            timeout_ms: self.caller.request_timeout_ms(),
            validate_only: false,
        };
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, Target::Controller, request.clone()).await?;
            not_controller(answer.results.iter().map(|t| t.error_code), &context)?;
            Ok(answer)
        });
        // The controller knows every topic: one that it does not know does not come by waiting.
        let mut results = answer.await?.results.into_iter();
        results.try_for_each(|t| checked(t.error_code, &context, t.error_message))
    }

    /// Every topic.
    pub async fn list_topics(&self) -> Result<Vec<TopicListing>, Error> {
        let op = self.caller.operation("listing topics");
        let request = metadata::MetadataRequest { topics: None, ..no_creation() };
        let answer = self
            .caller
            .retry(&op, || async { self.caller.call(&op, Target::Any, request.clone()).await })
            .await?;
        let mut topics: Vec<_> = answer.topics.into_iter().filter_map(listing).collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(topics)
    }

    /// Describes a topic: its partitions, their leaders and copies.
    pub async fn describe_topic(&self, name: &str) -> Result<TopicMetadata, Error> {
        only(self.describe_topics([name]).await?, &format!("describing topic `{name}`"))
    }

    /// Describes topics: their partitions, their leaders and copies.
    pub async fn describe_topics(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Each<String, TopicMetadata>, Error> {
        let one = |name| metadata::MetadataRequestTopic { topic_id: Uuid::ZERO, name: Some(name) };
        let topics = Some(names.into_iter().map(|n| one(n.into())).collect());
        let request = metadata::MetadataRequest { topics, ..no_creation() };
        let op = self.caller.operation("describing topics");
        let answer = self.caller.retry(&op, || async {
            let answer = self.caller.call(&op, Target::Any, request.clone()).await?;
            match answer.topics.iter().find(|t| t.error_code == ErrorCode::LEADER_NOT_AVAILABLE) {
                None => Ok(answer),
                Some(t) => Err(Error::broker(t.error_code, "describing topics", None)),
            }
        });
        let result = |topic: TopicMetadata| {
            checked(topic.error, &format!("describing topic `{}`", topic.name), None)?;
            Ok(topic)
        };
        let topics = answer.await?.topics.into_iter().filter_map(TopicMetadata::new);
        Ok(topics.map(|t| (t.name.to_string(), result(t))).collect())
    }
}

fn no_creation() -> metadata::MetadataRequest {
    metadata::MetadataRequest { allow_auto_topic_creation: false, ..Default::default() }
}

fn listing(topic: metadata::MetadataResponseTopic) -> Option<TopicListing> {
    let topic = TopicMetadata::new(topic)?;
    let partitions: &BTreeMap<i32, PartitionMetadata> = &topic.partitions;
    let partitions = partitions.len() as i32;
    Some(TopicListing {
        name: topic.name.to_string(),
        id: topic.id,
        is_internal: topic.is_internal,
        partitions,
    })
}

/// The whole request went to a broker that does not decide: it is sent again.
pub(super) fn not_controller(codes: impl Iterator<Item = ErrorCode>, context: &str) -> Result<(), Error> {
    let passing =
        |code: &ErrorCode| matches!(*code, ErrorCode::NOT_CONTROLLER | ErrorCode::THROTTLING_QUOTA_EXCEEDED);
    codes.into_iter().find(passing).map_or(Ok(()), |code| checked(code, context, None))
}
