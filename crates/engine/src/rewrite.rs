//! Rewrites: each gives the same rows as before.

pub mod columns;
mod common;
mod equal;
pub mod facts;
mod fails;
mod grouped;
mod lift;
mod narrow;
mod order;
pub mod push;
mod semi;

use crate::estimate::{Estimates, Statistics};
use crate::ir::{ColumnId, Rel, SourceId, Types};
use crate::reach::Kinds;
use alloc::vec::Vec;

/// Which rewrites and algorithms a plan may use. Without any, the rows must be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Conditions move to the tables that they are about.
    pub filters: bool,
    /// Columns that nobody reads are not read.
    pub columns: bool,
    /// Joins by equal values keep one side in a table by the bytes of its values.
    pub hash_join: bool,
    /// Tables that are reached by a full key are asked by key.
    pub key_join: bool,
    /// Results of subqueries are kept for rows with the same parameters.
    pub apply_cache: bool,
    /// Subqueries that only decide about rows become semi-joins and anti-joins.
    pub semi_join: bool,
    /// Subqueries with aggregate functions become joins with groups.
    pub grouped_join: bool,
    /// Outer joins whose rows without partners are left out are inner joins.
    pub outer_to_inner: bool,
    /// What is said of one column is said of those that are equal to it.
    pub equal_columns: bool,
    /// What all alternatives of a condition have in common stands beside them.
    pub common_terms: bool,
    /// Tables are joined in the order that costs least.
    pub join_order: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            filters: true,
            columns: true,
            hash_join: true,
            key_join: true,
            apply_cache: true,
            semi_join: true,
            grouped_join: true,
            outer_to_inner: true,
            equal_columns: true,
            common_terms: true,
            join_order: true,
        }
    }
}

/// What a statement says about the order of its joins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinOrder {
    /// Tables are joined as they are written.
    pub is_fixed: bool,
    /// The first of each pair comes before the second.
    pub before: Vec<(SourceId, SourceId)>,
}

impl JoinOrder {
    /// True if the order of sides of a join is left to the plan.
    pub fn is_free(&self) -> bool {
        !self.is_fixed && self.before.is_empty()
    }
}

/// What rewrites know of a statement.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The types of its columns.
    pub types: &'a Types,
    /// The types of values from outside, as far as they are known.
    pub externals: &'a Types,
    /// What they may do.
    pub rules: Rules,
    /// What is known about tables' rows.
    pub statistics: &'a dyn Statistics,
    /// What the statement says about the order of its joins.
    pub order: &'a JoinOrder,
}

impl<'a> Context<'a> {
    /// The types of what expressions name.
    pub fn kinds(&self) -> Kinds<'a> {
        Kinds { types: self.types, externals: self.externals }
    }
}

/// All rewrites, in their order. The columns are those that are wanted of the result.
pub fn all(mut rel: Rel, wanted: &[ColumnId], context: Context<'_>) -> Rel {
    let rules = context.rules;
    if rules.columns {
        rel = narrow::dropped(rel);
    }
    if rules.semi_join {
        rel = semi::joins(rel, wanted, context);
    }
    if rules.filters {
        rel = push::filters(rel, context);
    }
    if rules.grouped_join {
        rel = grouped::joins(rel, context);
        if rules.filters {
            rel = push::filters(rel, context);
        }
    }
    if rules.join_order && !context.order.is_fixed {
        rel = ordered(rel, context);
    }
    if rules.columns {
        rel = columns::prune(rel, wanted);
    }
    rel
}

/// The plan with its joins in the order that costs least.
fn ordered(rel: Rel, context: Context<'_>) -> Rel {
    let estimates = Estimates::new(&rel, context);
    order::joins(rel, &estimates)
}
