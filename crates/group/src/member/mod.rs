//! The client's side of the group protocols.
