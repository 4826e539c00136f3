//! How results are written: columns for people, JSON for programs.

use std::io::{IsTerminal, Write};

/// Rows under heads, each column as wide as its widest cell; `-` stands for what is missing.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads.
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self { rows: vec![heads.map(str::to_owned).to_vec()] }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }).to_vec());
    }

    /// The table as text.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |c: usize| {
            self.rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let padded: Vec<String> =
                row.iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
            out += padded.join("  ").trim_end();
            out.push('\n');
        }
        out
    }
}

/// Writes to standard output. A reader that has gone away (`| head`) ends the writing, it is no error.
pub(crate) fn print(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Says a line on standard error. Whether anybody listens makes no difference.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A progress bar on a terminal; nothing at all when standard error goes elsewhere.
pub(crate) fn progress(total: Option<u64>, what: &'static str) -> indicatif::ProgressBar {
    if !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let bar = total.map_or_else(indicatif::ProgressBar::new_spinner, indicatif::ProgressBar::new);
    bar.with_message(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["GROUP", "LAG"]);
        table.row(["billing-eu".to_owned(), String::new()]);
        assert_eq!(table.render(), "GROUP       LAG\nbilling-eu  -\n");
    }
}
