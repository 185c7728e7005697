//! The native client of LatsDB.
//!
//! [`api`] is what it can be asked, [`core`] is how it works, without any I/O.
#![forbid(unsafe_code)]

pub mod api;
pub mod core;
