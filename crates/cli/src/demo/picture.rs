//! A picture of who owned what over time: one row a partition, one letter and one colour a member.

use super::history::{MemberId, letter};
use super::ownership::Ownership;
use std::{fmt::Write, time::Duration};

const COLOURS: [u8; 8] = [42, 44, 43, 45, 46, 41, 102, 104];

/// Draws the picture with this many columns of time; `colour` only where a terminal will show it.
pub(crate) fn draw(ownership: &Ownership, total: Duration, columns: usize, colour: bool) -> String {
    let rows: Vec<_> = ownership.partitions().map(|(p, _)| p.clone()).collect();
    let width = rows.iter().map(|p| p.to_string().len()).max().unwrap_or(0);
    let mut out = String::new();
    for partition in &rows {
        let _ = write!(out, "{:>width$} ", partition.to_string());
        let owners = (0..columns).map(|c| ownership.owner(partition, middle(total, columns, c)));
        owners.for_each(|owner| cell(&mut out, owner, colour));
        out.push('\n');
    }
    let seconds = total.as_secs_f64();
    let _ = writeln!(
        out,
        "{:>width$} 0 s{:>rest$}",
        "",
        format!("{seconds:.1} s"),
        rest = columns.saturating_sub(3)
    );
    out
}

/// The time in the middle of a column.
fn middle(total: Duration, columns: usize, column: usize) -> Duration {
    total.mul_f64((column as f64 + 0.5) / columns.max(1) as f64)
}

fn cell(out: &mut String, owner: Option<MemberId>, colour: bool) {
    let Some(member) = owner else {
        out.push('.');
        return;
    };
    if colour {
        let _ = write!(out, "\x1b[30;{}m{}\x1b[0m", COLOURS[member % COLOURS.len()], letter(member));
    } else {
        out.push(letter(member));
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Event, What};
    use super::*;

    #[test]
    fn one_row_a_partition_and_plain_letters_without_colour() {
        let p = vec!["t-0".parse().unwrap()];
        let at = |s, member, what| Event { at: Duration::from_secs(s), member, what };
        let events = [
            at(0, 0, What::Assigned(p.clone())),
            at(5, 0, What::Revoked(p.clone())),
            at(6, 1, What::Assigned(p)),
        ];
        let picture = draw(&Ownership::of(&events), Duration::from_secs(10), 10, false);
        assert!(picture.starts_with("t-0 AAAAA.BBBB\n"), "{picture}");
        assert!(!picture.contains('\x1b'));
    }
}
