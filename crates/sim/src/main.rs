//! Runs many histories and says what happened in them; or one, with its timeline.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};
use tontine_sim::{Counts, report::line, run, run_verbosely};

const USAGE: &str = "usage: tontine-sim [--seeds N] [--seed FIRST] [--full] [--requests]

  --seeds N      run N histories, from seed FIRST (default 0) on; default 1
  --seed FIRST   the first seed
  --full         print the whole timeline of each history
  --requests     put requests and answers into it, but for fetches";

struct Args {
    first: u64,
    seeds: u64,
    full: bool,
    requests: bool,
}

fn args() -> Result<Args, String> {
    let mut parsed = Args { first: 0, seeds: 1, full: false, requests: false };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        let mut number = || {
            let text = given.next().ok_or_else(|| format!("{flag} needs a number"))?;
            text.parse::<u64>().map_err(|_| format!("{flag}: `{text}` is no number"))
        };
        match flag.as_str() {
            "--seeds" => parsed.seeds = number()?,
            "--seed" => parsed.first = number()?,
            "--full" => parsed.full = true,
            "--requests" => parsed.requests = true,
            other => return Err(format!("{other} is not known\n\n{USAGE}")),
        }
    }
    Ok(parsed)
}

fn main() -> ExitCode {
    match args() {
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
        Ok(args) => work(&args),
    }
}

fn work(args: &Args) -> ExitCode {
    let (mut counts, mut seconds, mut failed) = (Counts::default(), 0.0, Vec::new());
    let shows_progress = std::io::stderr().is_terminal() && args.seeds > 1;
    for done in 0..args.seeds {
        let seed = args.first.wrapping_add(done);
        let outcome = if args.requests { run_verbosely(seed) } else { run(seed) };
        counts.merge(&outcome.counts);
        seconds += outcome.time.as_secs_f64();
        if args.full {
            outcome.history.iter().for_each(|entry| println!("{}", line(entry)));
        }
        if let Some(failure) = outcome.failure {
            if failed.len() < 3 {
                println!("{failure}\n");
            }
            failed.push((failure.seed, failure.invariant));
        }
        if shows_progress && done % 16 == 15 {
            eprint!("\r{} of {} histories, {} failed", done + 1, args.seeds, failed.len());
            let _ = std::io::stderr().flush();
        }
    }
    if shows_progress {
        eprintln!();
    }
    print!("{counts}");
    println!("{} histories, {seconds:.0} simulated seconds, {} failed", args.seeds, failed.len());
    for (seed, invariant) in &failed {
        println!("  seed {seed}: {invariant}");
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
