//! One line for each thing worth seeing, in words.

use super::history::{Event, Partition, What, letter};
use std::fmt::Write;

/// The line for an event; `None` for what happens all the time.
pub(crate) fn line(event: &Event) -> Option<String> {
    let said = match &event.what {
        What::Started => "started".to_owned(),
        What::Assigned(partitions) => format!("assigned  {}", short(partitions)),
        What::Revoked(partitions) => format!("revoked   {}", short(partitions)),
        What::Lost(partitions) => format!("lost      {}", short(partitions)),
        What::Committed(_) | What::Delivered { .. } => return None,
        What::Rebalanced { cause } => format!("rebalance, because {cause}"),
        What::Left => "left in good order".to_owned(),
        What::Killed => "killed".to_owned(),
        What::Trouble(text) => format!("trouble: {text}"),
    };
    Some(format!("{:>8.3} s  {}  {said}", event.at.as_secs_f64(), letter(event.member)))
}

/// `t-[0-3,5]` for five partitions of one topic.
pub(crate) fn short(partitions: &[Partition]) -> String {
    if partitions.is_empty() {
        return "(nothing)".to_owned();
    }
    let mut sorted = partitions.to_vec();
    sorted.sort();
    let mut out = String::new();
    for of_topic in sorted.chunk_by(|a, b| a.0.topic == b.0.topic) {
        let separator = if out.is_empty() { "" } else { " " };
        let numbers: Vec<i32> = of_topic.iter().map(|p| p.0.partition).collect();
        let _ = write!(out, "{separator}{}-[{}]", of_topic[0].0.topic, runs(&numbers));
    }
    out
}

fn runs(numbers: &[i32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_written_as_runs() {
        let list: Vec<_> = ["t-0", "t-1", "t-2", "t-3", "t-5"].map(|p| p.parse().unwrap()).into();
        assert_eq!(short(&list), "t-[0-3,5]");
        assert_eq!(short(&[]), "(nothing)");
    }
}
