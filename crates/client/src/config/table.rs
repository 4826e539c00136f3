//! The macro that turns a table of rows into a struct, its defaults, a builder and the list of rows.

use super::value::Range;

/// Which of the two group protocols a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Both, or no group at all.
    Both,
    /// Only `group.protocol=classic`.
    Classic,
    /// Only `group.protocol=consumer`.
    Consumer,
}

/// One row of the table of `C`.
#[derive(Debug)]
pub struct Row<C> {
    /// Kafka's key.
    pub key: &'static str,
    /// Other spellings, as of librdkafka.
    pub aliases: &'static [&'static str],
    /// What values look like.
    pub kind: fn() -> &'static str,
    /// What values may be.
    pub range: Range,
    /// Whom the setting concerns.
    pub scope: Scope,
    /// What it does.
    pub doc: &'static str,
    pub(crate) parse: fn(&mut C, &str) -> Result<(), String>,
    pub(crate) check: fn(&C) -> Result<(), String>,
    pub(crate) show: fn(&C) -> String,
}

macro_rules! table {
    (
        $(#[$meta:meta])* $config:ident, $(#[$bmeta:meta])* $builder:ident { $($extra:ident: $et:ty),* }, ignored $ignored:expr, {
            $($field:ident: $t:ty = $default:expr, $key:literal $(| $alias:literal)*, $range:expr, $scope:ident, $doc:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $config {
            $(#[doc = concat!("`", $key, "`: ", $doc)] pub $field: $t,)*
            given: std::collections::BTreeSet<&'static str>,
        }

        impl Default for $config {
            fn default() -> Self {
                Self { $($field: $default,)* given: std::collections::BTreeSet::new() }
            }
        }

        impl $config {
            /// Every row of the table, in the order of the documentation.
            pub const ROWS: &'static [crate::config::Row<Self>] = &[$(crate::config::Row {
                key: $key,
                aliases: &[$($alias),*],
                kind: <$t as crate::config::Value>::kind,
                range: $range,
                scope: crate::config::Scope::$scope,
                doc: $doc,
                parse: |config, text| {
                    let value = <$t as crate::config::Value>::parse(text)?;
                    crate::config::Value::check(&value, $range)?;
                    config.$field = value;
                    Ok(())
                },
                check: |config| crate::config::Value::check(&config.$field, $range),
                show: |config| crate::config::Value::show(&config.$field),
            },)*];

            /// Sets what Kafka calls `key` from text. An unknown key is refused, and the nearest known one is named.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), crate::Error> {
                let known = |row: &&crate::config::Row<Self>| row.key == key || row.aliases.contains(&key);
                if let Some(row) = Self::ROWS.iter().find(known) {
                    self.given.insert(row.key);
                    let wrong = |why| crate::Error::configuration(format!("{key}: {why}"));
                    return (row.parse)(self, value).map_err(wrong);
                }
                let keys = Self::ROWS.iter().map(|row| row.key);
                crate::config::suggest::accept_ignored(key, value, $ignored, keys)
            }

            /// Whether this kind of client accepts `key`: it is a row, or known to have no effect.
            pub fn knows(key: &str) -> bool {
                let is_row = |row: &crate::config::Row<Self>| row.key == key || row.aliases.contains(&key);
                Self::ROWS.iter().any(is_row) || crate::config::suggest::is_ignored(key, $ignored)
            }

            /// Sets every line of a `.properties` file.
            pub fn set_properties(&mut self, text: &str) -> Result<(), crate::Error> {
                crate::config::properties(text)?.iter().try_for_each(|(key, value)| self.set(key, value))
            }

            /// The text of what Kafka calls `key`.
            pub fn get(&self, key: &str) -> Option<String> {
                Self::ROWS.iter().find(|row| row.key == key).map(|row| (row.show)(self))
            }

            /// Whether `key` was set, also when it was set to its default.
            pub fn is_given(&self, key: &str) -> bool {
                self.given.contains(key)
            }

            /// Whether every setting is in its range. Typed setters do not check one by one.
            pub(crate) fn check_ranges(&self) -> Result<(), crate::Error> {
                for row in Self::ROWS {
                    (row.check)(self).map_err(|why| crate::Error::configuration(format!("{}: {why}", row.key)))?;
                }
                Ok(())
            }

            /// What the network side needs to know.
            pub fn cluster_settings(&self) -> Result<crate::cluster::ClusterSettings, crate::Error> {
                let first_only = self.is_given("reconnect.backoff.ms") && !self.is_given("reconnect.backoff.max.ms");
                Ok(crate::cluster::ClusterSettings {
                    bootstrap: crate::config::network::bootstrap(&self.bootstrap_servers)?,
                    client_id: self.client_id.clone(),
                    request_timeout: self.request_timeout,
                    retry_backoff: self.retry_backoff,
                    retry_backoff_max: self.retry_backoff_max,
                    reconnect_backoff: self.reconnect_backoff,
                    reconnect_backoff_max: if first_only { self.reconnect_backoff } else { self.reconnect_backoff_max },
                    setup_timeout: self.socket_connection_setup_timeout,
                    setup_timeout_max: self.socket_connection_setup_timeout_max,
                    max_idle: self.connections_max_idle,
                    metadata_max_age: self.metadata_max_age,
                    rebootstrap: self.metadata_recovery_strategy == "rebootstrap",
                    rebootstrap_trigger: self.metadata_recovery_rebootstrap_trigger,
                    ..crate::cluster::ClusterSettings::default()
                })
            }

            /// What the driver needs to know.
            #[cfg(feature = "net")]
            pub(crate) fn net_settings(&self) -> crate::net::NetSettings {
                crate::net::NetSettings {
                    name: self.client_id.clone(),
                    send_buffer: u32::try_from(self.send_buffer).ok(),
                    receive_buffer: u32::try_from(self.receive_buffer).ok(),
                    ..crate::net::NetSettings::default()
                }
            }
        }

        $(#[$bmeta])*
        #[derive(Clone, Debug, Default)]
        #[must_use]
        pub struct $builder {
            pub(crate) config: $config,
            pub(crate) error: Option<crate::Error>,
            $(pub(crate) $extra: $et,)*
        }

        impl $builder {
            /// Starts from these settings.
            pub fn from_config(config: $config) -> Self {
                Self { config, ..Self::default() }
            }

            /// Sets what Kafka calls `key` from text. The first wrong setting is reported when the client is built.
            pub fn set(mut self, key: &str, value: impl AsRef<str>) -> Self {
                let result = self.config.set(key, value.as_ref());
                self.error = self.error.or(result.err());
                self
            }

            /// Sets every line of a `.properties` file.
            pub fn properties(mut self, text: &str) -> Self {
                let result = self.config.set_properties(text);
                self.error = self.error.or(result.err());
                self
            }

            $(
                #[doc = concat!("Sets `", $key, "`: ", $doc)]
                pub fn $field(mut self, value: impl crate::config::IntoSetting<$t>) -> Self {
                    self.config.$field = value.into_setting();
                    self.config.given.insert($key);
                    self
                }
            )*

            /// The settings, when all of them are right.
            pub fn checked(self) -> Result<$config, crate::Error> {
                if let Some(error) = self.error {
                    return Err(error);
                }
                self.config.check_ranges()?;
                self.config.check()?;
                Ok(self.config)
            }
        }
    };
}
