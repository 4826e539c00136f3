//! Writes the tables of docs/BROKER.md.

use super::{Kind, Row, known, rows};
use std::fmt::Write as _;

const MARK: &str = "<!-- The rest of this page is written by `UPDATE=1 cargo test -p tontine-broker`. -->\n";

fn values(kind: Kind) -> String {
    match kind {
        Kind::Int { min, max } | Kind::Long { min, max } => match (min, max) {
            (i64::MIN, i64::MAX) => "whole number".into(),
            (min, i64::MAX) => format!("whole number, at least {min}"),
            (min, max) if max == i64::from(i32::MAX) && min == i64::from(i32::MIN) => "whole number".into(),
            (min, max) if max == i64::from(i32::MAX) => format!("whole number, at least {min}"),
            (min, max) => format!("whole number, {min} to {max}"),
        },
        Kind::Double => "0 to 1".into(),
        Kind::Bool => "true, false".into(),
        Kind::Text => "text".into(),
        Kind::List => "list".into(),
        Kind::OneOf(choices) => choices.join(", "),
    }
}

fn table(page: &mut String, rows: &[Row]) {
    page.push_str("| Key | Default | Values | Meaning |\n|---|---|---|---|\n");
    for row in rows {
        let default = row.default.filter(|text| !text.is_empty()).map(|text| format!("`{text}`"));
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            row.key,
            default.unwrap_or_default(),
            values(row.kind),
            row.doc
        );
    }
}

fn tables() -> String {
    let mut page = String::from("\n## Keys of the broker\n\n");
    table(&mut page, rows::BROKER);
    page.push_str("\n## Keys of a topic\n\n");
    table(&mut page, rows::TOPIC);
    page.push_str("\n## Keys of a consumer group\n\nWhat is not set follows `group.` and the key, and has to lie between its bounds.\n\n");
    table(&mut page, rows::GROUP);
    page.push_str(
        "\n## Keys without an effect\n\nThese are accepted, so that a `server.properties` loads as it is:\n",
    );
    page.push_str("`listener.name.*`");
    for key in known::KNOWN {
        let _ = write!(page, ", `{key}`");
    }
    page.push_str(".\n");
    page
}

#[test]
fn the_page_says_what_the_tables_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/BROKER.md");
    let written = std::fs::read_to_string(path).unwrap();
    let (prose, _) = written.split_once(MARK).expect("the mark behind which the tables stand");
    let page = format!("{prose}{MARK}{}", tables());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &page).unwrap();
        return;
    }
    assert!(written == page, "docs/BROKER.md is not what the tables say: run the tests with UPDATE=1");
}
