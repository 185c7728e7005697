//! Rewrites: each gives the same rows as before.

pub mod columns;
pub mod push;

use crate::ir::{ColumnId, Rel, Types};

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
}

impl Default for Rules {
    fn default() -> Self {
        Self { filters: true, columns: true, hash_join: true, key_join: true, apply_cache: true }
    }
}

/// All rewrites, in their order. The columns are those that are wanted of the result.
pub fn all(mut rel: Rel, wanted: &[ColumnId], types: &Types, rules: Rules) -> Rel {
    if rules.filters {
        rel = push::filters(rel, types);
    }
    if rules.columns {
        rel = columns::prune(rel, wanted);
    }
    rel
}
