//! The simulator: a whole cluster with its clients in one thread and virtual time.
//!
//! One seed decides everything: delays, orders, crashes, restarts, cut and reset links, pauses,
//! placement of blocks, what clients do. The node code is the code that production runs; the
//! simulator is the other shell. Checkers watch each run; see `docs/testing.md`.
#![forbid(unsafe_code)]

mod archive;
pub mod checkers;
pub mod clients;
mod deadlocks;
pub mod disk;
pub mod durability;
pub mod faults;
pub mod many;
pub mod network;
pub mod outcome;
pub mod planted;
pub mod run;
pub mod scenarios;
pub mod tables;
pub mod world;

pub use outcome::{Counts, Outcome};
pub use run::{Kind, Options, run, run_caught};
