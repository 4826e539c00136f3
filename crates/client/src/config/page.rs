//! Writes docs/CONFIG.md out of the tables.

use super::{AdminConfig, ConsumerConfig, ProducerConfig, Row, Scope};
use std::fmt::Write;

/// The page that documents every setting.
pub fn page() -> String {
    let mut out = String::from(
        "# Settings\n\n\
         Keys are Kafka's own. Give them with `set(\"key\", \"value\")`, with the typed method of the same name on the\n\
         builder (`session_timeout` for `session.timeout.ms`), or in a `.properties` file. An unknown key is refused, and\n\
         the nearest known one is named. Settings that only the Java client can use, such as `key.deserializer`, are\n\
         accepted and have no effect.\n\n\
         This page is written from the tables in `crates/client/src/config`; `UPDATE=1 cargo test -p tontine` rewrites it.\n",
    );
    let consumer = ConsumerConfig::default();
    section(&mut out, "Consumer", ConsumerConfig::ROWS, &consumer);
    let producer = ProducerConfig::default();
    section(&mut out, "Producer", ProducerConfig::ROWS, &producer);
    let admin = AdminConfig::default();
    section(&mut out, "Admin", AdminConfig::ROWS, &admin);
    out
}

fn section<C>(out: &mut String, title: &str, rows: &[Row<C>], defaults: &C) {
    let _ = write!(out, "\n## {title}\n\n| Key | Default | Values | Meaning |\n|---|---|---|---|\n");
    for row in rows {
        let kind = (row.kind)();
        let default = (row.show)(defaults);
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        let range = row.range.to_string();
        let values = if range.is_empty() { kind.to_owned() } else { format!("{kind}, {range}") };
        let scope = match row.scope {
            Scope::Both => "",
            Scope::Classic => " Not with `group.protocol=consumer`.",
            Scope::Consumer => " Not with `group.protocol=classic`.",
        };
        let also = match row.aliases {
            [] => String::new(),
            names => format!(" Also `{}`.", names.join("`, `")),
        };
        let values = values.replace('<', "&lt;").replace('|', "\\|");
        let _ = writeln!(out, "| `{}` | {default} | {values} | {}{scope}{also} |", row.key, row.doc);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_of_settings_is_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CONFIG.md");
        let page = super::page();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == page, "docs/CONFIG.md is not what the tables say: run the tests with UPDATE=1");
    }
}
