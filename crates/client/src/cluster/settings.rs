//! What a [`Cluster`](super::Cluster) can be told at construction, with Kafka's defaults.

use std::time::Duration;

/// Settings of the network side of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// `bootstrap.servers`: host and port of each.
    pub bootstrap: Vec<(String, u16)>,
    /// `client.id`.
    pub client_id: String,
    /// `request.timeout.ms`: a connection that leaves a request unanswered for this long is closed.
    pub request_timeout: Duration,
    /// `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// `reconnect.backoff.ms`.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`.
    pub reconnect_backoff_max: Duration,
    /// `socket.connection.setup.timeout.ms`.
    pub setup_timeout: Duration,
    /// `socket.connection.setup.timeout.max.ms`.
    pub setup_timeout_max: Duration,
    /// `connections.max.idle.ms`.
    pub max_idle: Duration,
    /// `metadata.max.age.ms`.
    pub metadata_max_age: Duration,
    /// `metadata.recovery.strategy` is `rebootstrap`.
    pub rebootstrap: bool,
    /// `metadata.recovery.rebootstrap.trigger.ms`.
    pub rebootstrap_trigger: Duration,
    /// `allow.auto.create.topics`.
    pub allow_auto_topic_creation: bool,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            bootstrap: Vec::new(),
            client_id: "tontine".to_owned(),
            request_timeout: ms(30_000),
            retry_backoff: ms(100),
            retry_backoff_max: ms(1_000),
            reconnect_backoff: ms(50),
            reconnect_backoff_max: ms(1_000),
            setup_timeout: ms(10_000),
            setup_timeout_max: ms(30_000),
            max_idle: ms(540_000),
            metadata_max_age: ms(300_000),
            rebootstrap: true,
            rebootstrap_trigger: ms(300_000),
            allow_auto_topic_creation: true,
        }
    }
}
