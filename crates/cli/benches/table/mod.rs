//! The table that the benches print, the broker that they measure, and what the system says about a process.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

/// The first line.
pub(crate) fn head() {
    println!("{:<62} {:>9} {:>9} {:>9}  goal", "figure", "min", "median", "max");
}

/// A line: the least, the median and the most of these figures.
pub(crate) fn row(what: &str, mut figures: Vec<f64>, goal: &str) {
    figures.sort_by(f64::total_cmp);
    let (min, max) = (figures[0], figures[figures.len() - 1]);
    println!("{what:<62} {min:>9.3} {:>9.3} {max:>9.3}  {goal}", figures[figures.len() / 2]);
}

/// A broker process, and where it listens.
pub(crate) fn broker(args: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tontine"))
        .args(["broker", "--listen", "127.0.0.1:0"])
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    (child, address)
}

/// CPU time of a process so far, in microseconds; the system counts in steps of ten milliseconds.
pub(crate) fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12].iter().filter_map(|i| fields.get(*i)?.parse::<f64>().ok()).sum::<f64>() * 1e4
}
