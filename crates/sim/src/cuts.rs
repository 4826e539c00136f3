//! What is left out of a history to make it shorter: written as the arguments that replay exactly what is left.

use crate::workload::Plan;
use std::{collections::BTreeSet, fmt, time::Duration};

/// What is left out of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// This many members at first.
    pub members: Option<u64>,
    /// Trouble lasts this many milliseconds.
    pub trouble_ms: Option<u64>,
    /// This long between two records, in milliseconds on average.
    pub produce_ms: Option<u64>,
    /// The troubles with these numbers do not happen.
    pub troubles: BTreeSet<u64>,
    /// The brokers keep things in memory.
    pub no_disk: bool,
    /// There are no transactions.
    pub no_transactions: bool,
}

impl Cuts {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn applied_to(&self, mut plan: Plan) -> Plan {
        plan.members = self.members.unwrap_or(plan.members);
        plan.duration = self.trouble_ms.map_or(plan.duration, Duration::from_millis);
        plan.produce = self.produce_ms.unwrap_or(plan.produce);
        plan.transactions = plan.transactions.filter(|_| !self.no_transactions);
        plan.disk = plan.disk.filter(|_| !self.no_disk);
        plan
    }

    /// Reads numbers as they are written for `--without`: `0-4,7`.
    pub fn numbers(text: &str) -> Result<BTreeSet<u64>, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is no number"));
        let mut all = BTreeSet::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (number(from)?, number(to)?);
            if to < from || to - from > 100_000 {
                return Err(format!("`{part}` is no range of numbers"));
            }
            all.extend(from..=to);
        }
        Ok(all)
    }
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, value) in
            [("members", self.members), ("trouble-ms", self.trouble_ms), ("produce-ms", self.produce_ms)]
        {
            if let Some(value) = value {
                write!(f, " --{flag} {value}")?;
            }
        }
        if self.no_disk {
            f.write_str(" --no-disk")?;
        }
        if self.no_transactions {
            f.write_str(" --no-transactions")?;
        }
        let mut separator = " --without ";
        let mut rest = self.troubles.iter().copied().peekable();
        while let Some(from) = rest.next() {
            let mut to = from;
            while let Some(next) = rest.next_if(|next| *next == to + 1) {
                to = next;
            }
            f.write_str(separator)?;
            separator = ",";
            if to > from { write!(f, "{from}-{to}")? } else { write!(f, "{from}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_written_as_the_arguments_that_give_them() {
        assert_eq!(Cuts::default().to_string(), "");
        let troubles = [0, 1, 2, 5, 8, 9].into();
        let cuts = Cuts {
            members: Some(2),
            trouble_ms: Some(900),
            produce_ms: None,
            troubles,
            no_disk: true,
            no_transactions: true,
        };
        assert_eq!(
            cuts.to_string(),
            " --members 2 --trouble-ms 900 --no-disk --no-transactions --without 0-2,5,8-9"
        );
        assert_eq!(Cuts::numbers("0-2,5,8-9"), Ok(cuts.troubles));
        assert_eq!(Cuts::numbers("4-1"), Err("`4-1` is no range of numbers".into()));
        assert!(Cuts::numbers("a").is_err());
    }
}
