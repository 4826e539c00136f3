//! The commands, one file each.

pub(crate) mod broker;
pub(crate) mod consume;
pub(crate) mod group;
pub(crate) mod interrupt;
pub(crate) mod produce;
pub(crate) mod settings;
pub(crate) mod topic;
mod waiting;
