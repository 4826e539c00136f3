//! The table that the benches print, and what the system says about a process.

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

/// CPU time of a process so far, in microseconds; the system counts in steps of ten milliseconds.
pub(crate) fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12].iter().filter_map(|i| fields.get(*i)?.parse::<f64>().ok()).sum::<f64>() * 1e4
}
