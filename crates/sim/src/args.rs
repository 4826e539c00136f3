//! What the command line says.

use tontine_sim::cuts::Cuts;

/// How to call the program.
pub(crate) const USAGE: &str = "\
usage: tontine-sim [--seeds N] [--seed FIRST] [--full] [--requests] [--failures N]
                   [--members N] [--trouble-ms N] [--produce-ms N] [--without NUMBERS] [--no-disk]
                   [--no-transactions] [--unshrunk]

  --seeds N      run N histories, from seed FIRST on; default 1
  --seed FIRST   the first seed; default 0
  --full         print the whole timeline of each history
  --requests     put requests and answers into it, but for fetches
  --failures N   tell the whole story of the first N failures; default 3
  --unshrunk     tell failing histories as they are, not the shortest that fail in the same way

What a shortened history leaves out; reports of failures say what to give here:

  --members N        this many members at first
  --trouble-ms N     trouble lasts so long
  --produce-ms N     so long between two records, on average
  --without 0-4,7    these troubles do not happen
  --no-disk          brokers keep things in memory
  --no-transactions  nobody writes in transactions

It ends with 0 when everything held in every history, with 1 when something did not.";

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Args {
    /// The first seed.
    pub(crate) first: u64,
    /// How many seeds.
    pub(crate) seeds: u64,
    /// Whether timelines are printed.
    pub(crate) full: bool,
    /// Whether requests are in them.
    pub(crate) requests: bool,
    /// How many failures are told.
    pub(crate) failures: usize,
    /// What is left out of the histories.
    pub(crate) cuts: Cuts,
    /// Whether failing histories are told as they are.
    pub(crate) unshrunk: bool,
    /// Only say how the program is called.
    pub(crate) help: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            first: 0,
            seeds: 1,
            full: false,
            requests: false,
            failures: 3,
            cuts: Cuts::default(),
            unshrunk: false,
            help: false,
        }
    }
}

impl Args {
    /// Reads the arguments; otherwise what is wrong with them.
    pub(crate) fn parse(given: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut args, mut given) = (Self::default(), given.into_iter());
        while let Some(flag) = given.next() {
            // `--seed=7` is `--seed 7`.
            let (flag, value) = match flag.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (flag, None),
            };
            if args.switch(&flag) {
                match value {
                    None => continue,
                    Some(_) => return Err(format!("{flag} takes no value")),
                }
            }
            let mut number = || number(&flag, value.clone().or_else(|| given.next()));
            match flag.as_str() {
                "--seeds" => args.seeds = number()?,
                "--seed" => args.first = number()?,
                "--failures" => args.failures = usize::try_from(number()?).unwrap_or(usize::MAX),
                "--members" => args.cuts.members = Some(number()?.max(1)),
                "--trouble-ms" => args.cuts.trouble_ms = Some(number()?),
                "--produce-ms" => args.cuts.produce_ms = Some(number()?),
                "--without" => {
                    let text =
                        value.or_else(|| given.next()).ok_or_else(|| format!("{flag} needs numbers"))?;
                    args.cuts.troubles = Cuts::numbers(&text).map_err(|why| format!("{flag}: {why}"))?;
                }
                other => return Err(format!("{other} is not known")),
            }
        }
        Ok(args)
    }

    /// Takes a flag that stands for itself; whether it is one.
    fn switch(&mut self, flag: &str) -> bool {
        match flag {
            "--full" => self.full = true,
            "--requests" => self.requests = true,
            "--unshrunk" => self.unshrunk = true,
            "--no-disk" => self.cuts.no_disk = true,
            "--no-transactions" => self.cuts.no_transactions = true,
            "--help" | "-h" => self.help = true,
            _ => return false,
        }
        true
    }
}

fn number(flag: &str, text: Option<String>) -> Result<u64, String> {
    let text = text.ok_or_else(|| format!("{flag} needs a number"))?;
    text.parse().map_err(|_| format!("{flag}: `{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_given_is_taken_and_the_rest_has_a_default() {
        assert_eq!(parse(""), Ok(Args::default()));
        let troubles = [0, 1, 4].into();
        let (no_disk, no_transactions) = (true, true);
        let (members, trouble_ms, produce_ms) = (Some(2), Some(50), Some(9));
        let cuts = Cuts { members, trouble_ms, produce_ms, troubles, no_disk, no_transactions };
        let (first, seeds, failures) = (7, 3, 1);
        let all =
            Args { first, seeds, full: true, requests: true, failures, cuts, unshrunk: true, help: false };
        let line = "--seed 7 --seeds=3 --full --requests --failures 1 --unshrunk --members 2 --trouble-ms 50 \
                    --produce-ms 9 --without 0-1,4 --no-disk --no-transactions";
        assert_eq!(parse(line), Ok(all));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        assert_eq!(parse("--seed"), Err("--seed needs a number".into()));
        assert_eq!(parse("--seeds ten"), Err("--seeds: `ten` is no number".into()));
        assert_eq!(parse("--full=yes"), Err("--full takes no value".into()));
        assert_eq!(parse("--sead 1"), Err("--sead is not known".into()));
    }
}
