//! Rewrites: each gives the same rows as before.

pub mod columns;
pub mod push;

use crate::ir::{ColumnId, Rel, Types};

/// All rewrites, in their order. The columns are those that are wanted of the result.
pub fn all(rel: Rel, wanted: &[ColumnId], types: &Types) -> Rel {
    let rel = push::filters(rel, types);
    columns::prune(rel, wanted)
}
