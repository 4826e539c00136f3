//! Runs many histories and says what happened in them; or one, with its timeline.

mod args;

use args::{Args, USAGE};
use std::{
    io::{self, BufWriter, ErrorKind, IsTerminal, Write},
    process::ExitCode,
    time::Instant,
};
use tontine_sim::{Counts, Outcome, replay, report::line, shrink::shrink};

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => {
            // Nobody may be there to read it.
            let _ = writeln!(io::stderr(), "{why}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let done = if args.help { writeln!(out, "{USAGE}").map(|()| true) } else { work(&args, &mut out) };
    match done.and_then(|holds| out.flush().map(|()| holds)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads has enough, as `head` has.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "the report cannot be written: {error}");
            ExitCode::from(2)
        }
    }
}

/// How many times a failing history is run again to find a shorter one.
const ATTEMPTS: usize = 300;

/// What came of all histories together.
#[derive(Default)]
struct Sum {
    counts: Counts,
    seconds: f64,
    failed: Vec<(u64, &'static str)>,
}

/// Runs the histories; whether everything holds in all of them.
fn work(args: &Args, out: &mut impl Write) -> io::Result<bool> {
    let (mut sum, progress) = (Sum::default(), Progress::begin(args.seeds));
    for done in 0..args.seeds {
        let seed = args.first.wrapping_add(done);
        let outcome = replay(seed, &args.cuts, args.requests);
        tell(args, out, &mut sum, outcome)?;
        progress.tell(done + 1, sum.failed.len());
    }
    progress.end();
    write!(out, "{}", sum.counts)?;
    let (seeds, seconds, failed) = (args.seeds, sum.seconds, sum.failed.len());
    writeln!(
        out,
        "{seeds} histories, {seconds:.0} simulated seconds, {failed} failed; {}",
        progress.speed(seconds)
    )?;
    for (seed, invariant) in &sum.failed {
        writeln!(out, "  seed {seed}: {invariant}")?;
    }
    Ok(sum.failed.is_empty())
}

fn tell(args: &Args, out: &mut impl Write, sum: &mut Sum, outcome: Outcome) -> io::Result<()> {
    sum.counts.merge(&outcome.counts);
    sum.seconds += outcome.time.as_secs_f64();
    if args.full {
        outcome.history.iter().try_for_each(|entry| writeln!(out, "{}", line(entry)))?;
    }
    let Some(failure) = outcome.failure.clone() else { return Ok(()) };
    if sum.failed.len() < args.failures {
        let shown = if args.unshrunk || args.full { outcome } else { shrink(outcome, ATTEMPTS) };
        let shown = shown.failure.unwrap_or(failure.clone());
        writeln!(out, "{shown}\n")?;
    }
    // A long run shows its failures when they are found.
    out.flush()?;
    sum.failed.push((failure.seed, failure.invariant));
    Ok(())
}

/// How far a run is, for somebody at a terminal.
struct Progress {
    of: u64,
    shows: bool,
    since: Instant,
}

impl Progress {
    #[allow(clippy::disallowed_methods, reason = "how fast the simulator is, nothing in a simulation")]
    fn begin(of: u64) -> Self {
        Self { of, shows: io::stderr().is_terminal() && of > 1, since: Instant::now() }
    }

    fn tell(&self, done: u64, failed: usize) {
        if self.shows && (done.is_multiple_of(16) || done == self.of) {
            let mut err = io::stderr();
            let _ = write!(err, "\r{done} of {} histories, {failed} failed", self.of);
            let _ = err.flush();
        }
    }

    fn end(&self) {
        if self.shows {
            let _ = writeln!(io::stderr());
        }
    }

    /// Simulated time for each second that it took.
    fn speed(&self, simulated: f64) -> String {
        let (seconds, of) = match cpu_seconds() {
            Some(seconds) => (seconds, "CPU second"),
            None => (self.since.elapsed().as_secs_f64(), "second"),
        };
        format!("{:.0} simulated seconds for each {of}", simulated / seconds.max(0.001))
    }
}

/// The time that this process has computed, where the system tells it in a file: all of it is one thread.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}
