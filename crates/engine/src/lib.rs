//! Queries as relational plans: their form, how they are rewritten and lowered, and how they run.
//!
//! A plan defines its result by itself: [`ir::Rel::Apply`] evaluates a subquery anew for each row, and every rewrite must give
//! the same rows.
//! Operators do no I/O: a [`run::Machine`] asks for rows of tables, and is stepped again when answers are there.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cost;
pub mod estimate;
pub mod ir;
pub mod lower;
pub mod physical;
pub mod reach;
pub mod rewrite;
pub mod run;
