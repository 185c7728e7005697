//! MySQL sessions over the cluster: parsing, planning, running statements, and the connections of
//! clients.
//!
//! A statement's way: [`syntax`] makes its tree, [`bind`] and [`plan`] make a plan for the catalog, [`access`] chooses an index, [`exec`] runs the plan against
//! a [`store::Store`]. Rows of literals go past the parser (`literal_rows`). Values are computed and compared by `lats_values` only.
#![forbid(unsafe_code)]

pub mod access;
pub mod bind;
pub mod connection;
mod ddl;
pub mod error;
pub mod exec;
pub mod expr;
mod literal_rows;
pub mod optimizer_switch;
pub mod plan;
pub mod session;
pub mod sessions;
pub mod set;
mod shape;
pub mod show;
mod skeleton;
pub mod store;
pub mod syntax;
pub mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod variables;
pub mod views;

/// The stack of threads in which sessions run: statements are nested so deeply at most that it is enough.
pub const STACK_BYTES: usize = 8 << 20;
