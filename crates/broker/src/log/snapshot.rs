//! What a log knows besides its records, as text: where epochs begin and what producers wrote.
//!
//! It is stored when a segment is closed and at a clean end, with a checksum, so that only what came later has to be
//! read again. Kafka keeps the same in `leader-epoch-checkpoint` and `.snapshot`.

use super::epochs::Epochs;
use super::producers::Producers;
use std::fmt::Write as _;

const FIRST_LINE: &str = "tontine-log-state 1";

/// The text.
pub(super) fn write(epochs: &Epochs, producers: &Producers) -> String {
    let mut text = format!("{FIRST_LINE}\n");
    for (epoch, start) in epochs.iter() {
        let _ = writeln!(text, "epoch {epoch} {start}");
    }
    producers.write(&mut text);
    let checksum = checksum_of(&text);
    let _ = writeln!(text, "end {checksum:08x}");
    text
}

fn checksum_of(text: &str) -> u32 {
    crc32c::crc32c(text.as_bytes())
}

/// Whether the text is one of ours and complete.
pub(super) fn is_whole(text: &str) -> bool {
    let Some((body, last)) = text.trim_end_matches('\n').rsplit_once('\n') else { return false };
    let body = format!("{body}\n");
    let checksum = last.strip_prefix("end ").and_then(|hex| u32::from_str_radix(hex, 16).ok());
    body.starts_with(FIRST_LINE) && checksum == Some(checksum_of(&body))
}

/// Reads a text that is whole. Lines of a kind that is not known are stepped over.
pub(super) fn read(text: &str) -> (Epochs, Producers) {
    let (mut epochs, mut producers) = (Epochs::default(), Producers::default());
    for line in text.lines() {
        let mut words = line.split(' ');
        match words.next() {
            Some("epoch") => {
                if let (Some(epoch), Some(start)) = (number(words.next()), number(words.next())) {
                    epochs.begin(i32::try_from(epoch).unwrap_or(0), start);
                }
            }
            Some(kind) => {
                producers.read_line(kind, &words.filter_map(|word| number(Some(word))).collect::<Vec<_>>())
            }
            None => {}
        }
    }
    (epochs, producers)
}

fn number(word: Option<&str>) -> Option<i64> {
    word?.parse().ok()
}
