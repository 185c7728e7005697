//! The native client of LatsDB.
//!
//! [`api`] is what it can be asked, [`program`] what rows can be asked to do by themselves,
//! [`core`] is how it works, without any I/O, and [`net`] is the asynchronous client around it.
#![forbid(unsafe_code)]

pub mod api;
pub mod batch;
pub mod core;
pub mod net;
pub mod program;
mod prune;
pub mod unique;

pub use lats_signals::proof::Secret;
