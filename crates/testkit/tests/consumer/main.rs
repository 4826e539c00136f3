//! The consumer against the embedded broker, from the application's side.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod callbacks;
mod cluster;
mod first;
mod positions;
mod rig;
