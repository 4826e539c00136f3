//! The command line `tontine`.

fn main() {}
