//! Members and a coordinator against each other in virtual time, over a network that delays, reorders and breaks.

mod broker;
mod chaos;
mod client;
mod dice;
mod handover;
mod world;
