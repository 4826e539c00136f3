//! The end of a demo, for people and for programs.

use super::audit::Verdict;
use super::history::Event;
use super::ownership::Ownership;
use super::picture;
use crate::args::DemoArgs;
use std::{fmt::Write, time::Duration};

/// Columns of the picture; with a topic's name before it, it fits on a usual terminal.
const COLUMNS: usize = 72;

/// Picture, table of rebalances and verdict.
pub(crate) fn text(verdict: &Verdict, events: &[Event], total: Duration, colour: bool) -> String {
    let mut out = String::from("\nWho owned what over time (a dot: nobody)\n\n");
    out += &picture::draw(&Ownership::of(events), total, COLUMNS, colour);
    out +=
        "\nREBALANCE                                 MOVED  LONGEST-SILENCE-MS   KEPT  LONGEST-SILENCE-MS\n";
    for rebalance in &verdict.rebalances {
        let _ = writeln!(
            out,
            "{:<40} {:>6}  {:>18}  {:>5}  {:>18}",
            rebalance.cause,
            rebalance.moved,
            silence(rebalance.moved, rebalance.moved_gap_ms_max),
            rebalance.kept,
            silence(rebalance.kept, rebalance.kept_gap_ms_max),
        );
    }
    let _ = writeln!(out, "longest silence of a partition in calm times: {} ms", verdict.calm_gap_ms_max);
    out += &promises(verdict);
    out
}

fn silence(partitions: u64, gap_ms: f64) -> String {
    if partitions == 0 { "-".to_owned() } else { format!("{gap_ms:.1}") }
}

fn promises(verdict: &Verdict) -> String {
    let Verdict {
        produced,
        delivered,
        lost,
        duplicated,
        duplicated_after_kill,
        two_owners,
        commits_backwards,
        ..
    } = verdict;
    let mut out = format!("\nproduced {produced}, delivered {delivered}\n");
    let _ = writeln!(out, "lost                        {lost}");
    let _ = writeln!(
        out,
        "doubled                     {duplicated}{}",
        explained(*duplicated, *duplicated_after_kill)
    );
    let _ = writeln!(out, "two owners at once          {two_owners}");
    let _ = writeln!(out, "commits that went backwards {commits_backwards}");
    out += if verdict.ok { "\nEvery promise was kept.\n" } else { "\nA PROMISE WAS BROKEN.\n" };
    out
}

fn explained(duplicated: u64, after_kill: u64) -> String {
    match (duplicated, after_kill) {
        (0, _) => String::new(),
        (all, killed) if all == killed => " (a killed member had read them and not yet committed)".to_owned(),
        (all, killed) => format!(" ({killed} of a killed member; {} without a reason)", all - killed),
    }
}

/// One object with everything that was counted.
pub(crate) fn json(args: &DemoArgs, verdict: &Verdict) -> String {
    let mut object = serde_json::json!({
        "protocol": args.protocol,
        "members": args.members,
        "partitions": args.partitions,
        "rate": args.rate,
    });
    if let Ok(serde_json::Value::Object(counted)) = serde_json::to_value(verdict)
        && let Some(fields) = object.as_object_mut()
    {
        fields.extend(counted);
    }
    object.to_string()
}
