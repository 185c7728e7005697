//! Nodes that only leave columns out are dropped: columns have numbers of their own, so that nobody is misled by more of them.
//!
//! Joins then stand beside tables without anything between. [`super::columns`] leaves out again what nobody reads.

use crate::ir::Rel;

/// The plan without [`Rel::Narrow`].
pub fn dropped(rel: Rel) -> Rel {
    match rel {
        Rel::Narrow { input, .. } => dropped(*input),
        other => other.map_inputs(&mut dropped),
    }
}
