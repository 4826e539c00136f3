//! Values that somebody gave for keys of one table, as they were written.

use super::{ConfigError, check, nearest, row, rows::Row};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Given(BTreeMap<&'static str, String>);

impl Given {
    /// Takes a value that makes sense for this row.
    pub(super) fn set(&mut self, row: &'static Row, value: &str) -> Result<(), ConfigError> {
        check(row, value)?;
        self.0.insert(row.key, value.trim().to_owned());
        Ok(())
    }

    /// Takes a value for a key of a table that knows all keys there are.
    pub(super) fn set_in(&mut self, rows: &'static [Row], key: &str, value: &str) -> Result<(), ConfigError> {
        let unknown = || ConfigError::UnknownKey { key: key.to_owned(), nearest: nearest(key, rows, &[]) };
        self.set(row(rows, key).ok_or_else(unknown)?, value)
    }

    pub(super) fn unset(&mut self, key: &str) {
        self.0.remove(key);
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }
}
