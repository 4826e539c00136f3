//! From settings to a running consumer.

use super::{
    Consumer,
    audit_log::AuditLog,
    front::{CommitFutures, Front, Wakeup},
};
use crate::{
    Error,
    config::ConsumerBuilder,
    desk::Desk,
    net::{self, mpsc},
    state::{ConsumerSettings, ConsumerState},
};
use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

impl ConsumerBuilder {
    /// Starts the consumer. Nothing is sent before it is used.
    pub fn build(self) -> Result<Consumer, Error> {
        let net_settings = self.config.net_settings();
        let warnings = self.config.warnings();
        let audit = self.config.audit_log.as_deref().map(AuditLog::open).transpose()?;
        let settings = ConsumerSettings::new(self, net::unix_ms())?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let group_id: Option<Arc<str>> =
            settings.member.as_ref().map(|member| member.group_id.as_str().into());
        let (desk, default_timeout) = (Desk::new(&settings), settings.default_api_timeout);
        let seed = RandomState::new().hash_one("seed");
        let net_settings = net::NetSettings { name: settings.cluster.client_id.clone(), ..net_settings };
        let futures = CommitFutures::new();
        let (sender, events) = mpsc::unbounded_channel();
        let passing = futures.ends();
        let actor = net::spawn(ConsumerState::new(settings, seed), net_settings, move |event| {
            passing.see(&event);
            // Without a receiver the consumer is gone, and the machine is told so otherwise.
            let _ = sender.send(event);
        })?;
        let front = Front {
            desk,
            actor,
            events,
            futures,
            wakeup: Arc::new(Wakeup::default()),
            on_commit: BTreeMap::new(),
            origin: tokio::time::Instant::now(),
            default_timeout,
            group_id,
            audit,
        };
        Ok(Consumer { front, listener: None })
    }
}
