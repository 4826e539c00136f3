//! What every assignor that comes with the library promises, asked of all of them with groups drawn at random.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod best;
mod examples;
mod group;
mod large;
mod properties;
