//! Fetching, as plain rules: what to ask of which broker, and what an answer means for a partition.
//!
//! `partition` knows where each partition stands, `session` what a broker remembers, `buffer` how much may wait, `portion`
//! how much is asked for at once, `plan` puts a request together. Who sends it and who hands records out is decided elsewhere.

pub(crate) mod buffer;
pub(crate) mod partition;
pub(crate) mod plan;
pub(crate) mod portion;
pub(crate) mod position;
pub(crate) mod session;
