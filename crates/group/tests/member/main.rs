//! The classic member driven by hand: every request, answer, callback and second is the test's own.

mod callbacks;
mod close;
mod commits;
mod errors;
mod joining;
mod leading;
mod liveness;
mod rig;
