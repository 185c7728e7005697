//! Statements in, rows or errors out.

mod analyze;
mod changes;
mod clients;
mod collations;
mod connection;
mod dml;
mod ends;
mod explain;
mod found;
mod functions;
mod looks;
mod modes;
mod named;
mod plans;
mod queries;
mod refusals;
mod rewrites;
mod schema;
mod subqueries;
mod temporary;
mod transactions;
mod unasked;
mod unique;
mod variables;
mod views;
