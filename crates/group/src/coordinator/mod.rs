//! The broker's side of the group protocols.
