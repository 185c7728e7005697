//! Words that every crate uses: ids, limits, error codes, time, assertions, maps.
//!
//! Pure: `no_std`, no clock, no thread, no randomness of its own.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod error;
pub mod hash;
pub mod id_map;
pub mod ids;
pub mod limits;
pub mod map;
pub mod node_set;
pub mod planted;
pub mod prng;
pub mod require;
pub mod sorted;
pub mod spare;
pub mod time;

pub use error::{ErrorClass, RefCode};
pub use id_map::IdMap;
pub use ids::*;
pub use node_set::NodeSet;
pub use sorted::{SortedMap, SortedSet};
pub use spare::Spare;
pub use time::{Duration, Instant};
