//! What no single row can say: settings that contradict each other, and those that do not go well together.
//!
//! Mirrors `ConsumerConfig.postProcessParsedConfig`, `ProducerConfig` and `AbstractCoordinator`'s argument checks. A
//! contradiction is an error at start; what merely works badly is a warning.

use super::{Acks, AdminConfig, ConsumerConfig, GroupProtocol, ProducerConfig, Scope, network::bootstrap};
use crate::Error;

impl ConsumerConfig {
    /// Whether offsets are committed in the background: only in a group.
    pub fn auto_commit(&self) -> bool {
        self.enable_auto_commit && self.group_id.is_some()
    }

    /// The assignors' short names: Java's class names are translated.
    pub fn assignor_names(&self) -> Vec<String> {
        self.partition_assignment_strategy.iter().map(|name| short_assignor_name(name).to_owned()).collect()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |message: &str| Err(Error::configuration(message));
        check_network(&self.bootstrap_servers, &self.security_protocol, &self.metadata_recovery_strategy)?;
        self.check_scopes()?;
        if self.group_id.is_none() && self.is_given("enable.auto.commit") && self.enable_auto_commit {
            return wrong(
                "enable.auto.commit: it cannot be true without a group.id: set group.id, or leave it out",
            );
        }
        if self.heartbeat_interval >= self.session_timeout {
            return wrong(
                "heartbeat.interval.ms must be shorter than session.timeout.ms, best a third of it",
            );
        }
        if self.partition_assignment_strategy.is_empty() {
            return wrong("partition.assignment.strategy: name at least one assignor, `range` for example");
        }
        Ok(())
    }

    /// The protocol that is not spoken would ignore the setting; Kafka refuses it, so that nobody counts on it.
    fn check_scopes(&self) -> Result<(), Error> {
        let (foreign, protocol) = match self.group_protocol {
            GroupProtocol::Classic => (Scope::Consumer, "classic"),
            GroupProtocol::Consumer => (Scope::Classic, "consumer"),
            // Either can turn out to be the one that is spoken.
            GroupProtocol::ConsumerOrClassic => return Ok(()),
        };
        match Self::ROWS.iter().find(|row| row.scope == foreign && self.is_given(row.key)) {
            None => Ok(()),
            Some(row) => Err(Error::configuration(format!(
                "{}: it has no effect with group.protocol={protocol}: leave it out",
                row.key
            ))),
        }
    }

    /// What works, but not as somebody who set it that way may expect.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let in_group = self.group_id.is_some() && self.group_protocol != GroupProtocol::Consumer;
        if in_group && self.session_timeout < self.heartbeat_interval * 3 {
            warnings.push(format!(
                "session.timeout.ms ({}) is shorter than three times heartbeat.interval.ms ({}): one or two late \
                 heartbeats put this member out of its group",
                self.session_timeout.as_millis(),
                self.heartbeat_interval.as_millis()
            ));
        }
        if in_group && self.max_poll_interval < self.session_timeout {
            warnings.push(format!(
                "max.poll.interval.ms ({}) is shorter than session.timeout.ms ({}): a rebalance waits for a member \
                 only as long as max.poll.interval.ms",
                self.max_poll_interval.as_millis(),
                self.session_timeout.as_millis()
            ));
        }
        if self.request_timeout < self.fetch_max_wait {
            warnings.push(format!(
                "request.timeout.ms ({}) is shorter than fetch.max.wait.ms ({}): fetches of idle partitions time out",
                self.request_timeout.as_millis(),
                self.fetch_max_wait.as_millis()
            ));
        }
        if self.connections_max_idle < self.max_poll_interval {
            warnings.push(format!(
                "connections.max.idle.ms ({}) is shorter than max.poll.interval.ms ({}): connections may be closed \
                 between two polls",
                self.connections_max_idle.as_millis(),
                self.max_poll_interval.as_millis()
            ));
        }
        warnings
    }
}

impl ProducerConfig {
    /// Whether batches carry a producer id and sequence numbers.
    pub fn idempotent(&self) -> bool {
        self.enable_idempotence && self.acks == Acks::All && self.max_in_flight <= 5
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_network(&self.bootstrap_servers, &self.security_protocol, &self.metadata_recovery_strategy)?;
        if self.transactional_id.is_some() {
            return Err(Error::configuration(
                "transactional.id: transactions are not supported: leave it unset",
            ));
        }
        if self.is_given("enable.idempotence") && self.enable_idempotence && !self.idempotent() {
            return Err(Error::configuration(
                "enable.idempotence: it needs acks=all and at most 5 max.in.flight.requests.per.connection",
            ));
        }
        if self.is_given("delivery.timeout.ms") && self.delivery_timeout < self.linger + self.request_timeout
        {
            return Err(Error::configuration(
                "delivery.timeout.ms must not be shorter than linger.ms and request.timeout.ms together",
            ));
        }
        Ok(())
    }
}

impl AdminConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_network(&self.bootstrap_servers, &self.security_protocol, &self.metadata_recovery_strategy)
    }
}

fn check_network(servers: &[String], security: &str, recovery: &str) -> Result<(), Error> {
    bootstrap(servers)?;
    if !security.eq_ignore_ascii_case("plaintext") {
        return Err(Error::configuration(format!(
            "security.protocol: `{security}` is not supported yet: only PLAINTEXT is"
        )));
    }
    if !["rebootstrap", "none"].contains(&recovery) {
        return Err(Error::configuration(format!(
            "metadata.recovery.strategy: `{recovery}` is not one of rebootstrap, none"
        )));
    }
    Ok(())
}

fn short_assignor_name(name: &str) -> &str {
    match name.strip_prefix("org.apache.kafka.clients.consumer.").unwrap_or(name) {
        "RangeAssignor" => "range",
        "RoundRobinAssignor" => "roundrobin",
        "StickyAssignor" => "sticky",
        "CooperativeStickyAssignor" => "cooperative-sticky",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConsumerBuilder, ProducerBuilder};

    fn consumer(settings: &[(&str, &str)]) -> Result<ConsumerConfig, String> {
        let mut builder = ConsumerBuilder::default().set("bootstrap.servers", "localhost:9092").group_id("g");
        for (key, value) in settings {
            builder = builder.set(key, value);
        }
        builder.checked().map_err(|e| e.to_string())
    }

    #[test]
    fn an_unknown_key_names_the_nearest_known_one() {
        assert_eq!(
            consumer(&[("sesion.timeout.ms", "10000")]).unwrap_err(),
            "`sesion.timeout.ms` is not a setting: did you mean `session.timeout.ms`?"
        );
        assert_eq!(
            consumer(&[("fetch.max.wait", "1")]).unwrap_err(),
            "`fetch.max.wait` is not a setting: did you mean `fetch.max.wait.ms`?"
        );
        assert!(consumer(&[("completely.different.thing", "1")]).unwrap_err().contains("docs/CONFIG.md"));
    }

    #[test]
    fn keys_of_other_clients_are_told_from_typos() {
        assert!(!AdminConfig::knows("session.timeout.ms") && ConsumerConfig::knows("session.timeout.ms"));
        assert!(AdminConfig::knows("metadata.broker.list") && AdminConfig::knows("ssl.keystore.location"));
        for key in ["session.timeout.ms", "linger.ms", "key.serializer", "key.deserializer", "client.id"] {
            assert!(crate::config::is_key_of_a_client(key), "{key}");
        }
        assert!(!crate::config::is_key_of_a_client("sesion.timeout.ms"));
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        assert_eq!(
            consumer(&[("max.poll.records", "0")]).unwrap_err(),
            "max.poll.records: 0 is out of range: at least 1"
        );
        assert_eq!(
            consumer(&[("session.timeout.ms", "ten")]).unwrap_err(),
            "session.timeout.ms: `ten` is not a time: it must be milliseconds"
        );
        let builder = ConsumerBuilder::default().bootstrap_servers("localhost:9092").max_poll_records(0);
        assert!(builder.checked().is_err(), "typed setters are checked as well");
    }

    #[test]
    fn blank_names_are_refused() {
        assert_eq!(consumer(&[("group.id", "  ")]).unwrap_err(), "group.id: it must not be blank");
        assert_eq!(
            consumer(&[("group.instance.id", "")]).unwrap_err(),
            "group.instance.id: it must not be blank"
        );
    }

    #[test]
    fn settings_of_the_other_protocol_are_refused_as_kafka_refuses_them() {
        let error = consumer(&[("group.protocol", "CONSUMER"), ("session.timeout.ms", "10000")]).unwrap_err();
        assert_eq!(error, "session.timeout.ms: it has no effect with group.protocol=consumer: leave it out");
        let error = consumer(&[("group.remote.assignor", "uniform")]).unwrap_err();
        assert_eq!(
            error,
            "group.remote.assignor: it has no effect with group.protocol=classic: leave it out"
        );
    }

    #[test]
    fn both_protocols_can_be_given_and_then_the_settings_of_both_have_a_meaning() {
        let settings = [
            ("group.protocol", "consumer,classic"),
            ("session.timeout.ms", "10000"),
            ("group.remote.assignor", "range"),
        ];
        assert_eq!(consumer(&settings).unwrap().get("group.protocol").as_deref(), Some("consumer,classic"));
        assert!(consumer(&[("group.protocol", "classic,consumer")]).is_err());
    }

    #[test]
    fn a_heartbeat_as_long_as_the_session_is_an_error_and_a_third_of_it_no_warning() {
        assert!(consumer(&[("session.timeout.ms", "3000")]).is_err());
        assert!(consumer(&[("session.timeout.ms", "9000")]).unwrap().warnings().is_empty());
        let warnings = consumer(&[("session.timeout.ms", "8999")]).unwrap().warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("three times"), "{warnings:?}");
    }

    #[test]
    fn without_a_group_nothing_is_committed_in_the_background() {
        let builder = ConsumerBuilder::default().bootstrap_servers("localhost:9092");
        assert!(!builder.clone().checked().unwrap().auto_commit());
        assert!(builder.enable_auto_commit(true).checked().is_err());
    }

    #[test]
    fn java_class_names_of_assignors_are_translated() {
        let config = consumer(&[(
            "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor, mine",
        )]);
        assert_eq!(config.unwrap().assignor_names(), ["cooperative-sticky", "mine"]);
    }

    #[test]
    fn what_only_java_can_use_is_left_alone() {
        let config = consumer(&[
            ("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer"),
            ("ssl.keystore.location", "/etc/keys"),
            ("metric.reporters", ""),
        ]);
        assert!(config.is_ok(), "{config:?}");
    }

    #[test]
    fn librdkafka_spellings_are_understood() {
        let config = consumer(&[("fetch.wait.max.ms", "7"), ("auto.offset.reset", "smallest")]).unwrap();
        assert_eq!(config.get("fetch.max.wait.ms").as_deref(), Some("7"));
        assert_eq!(config.get("auto.offset.reset").as_deref(), Some("earliest"));
    }

    #[test]
    fn only_the_first_reconnect_backoff_makes_the_last_one_the_same() {
        let config = consumer(&[("reconnect.backoff.ms", "2000")]).unwrap();
        let settings = config.cluster_settings().unwrap();
        assert_eq!(settings.reconnect_backoff_max, settings.reconnect_backoff);
    }

    #[test]
    fn idempotence_is_quietly_off_unless_it_was_asked_for() {
        let builder = ProducerBuilder::default().bootstrap_servers("localhost:9092").set("acks", "1");
        assert!(!builder.clone().checked().unwrap().idempotent());
        assert!(builder.enable_idempotence(true).checked().is_err());
    }

    #[test]
    fn every_default_is_in_its_range_and_can_be_read_back() {
        let defaults = ConsumerConfig::default();
        defaults.check_ranges().unwrap();
        ProducerConfig::default().check_ranges().unwrap();
        AdminConfig::default().check_ranges().unwrap();
        for row in ConsumerConfig::ROWS {
            let shown = (row.show)(&defaults);
            if !shown.is_empty() {
                let mut config = ConsumerConfig::default();
                config.set(row.key, &shown).unwrap();
                assert_eq!(config.get(row.key), Some(shown), "{}", row.key);
            }
        }
    }
}
