//! What functions keep between the rows of a statement.

use super::random::Generator;
use super::regexp::Patterns;
use crate::Value;
use alloc::collections::BTreeMap;
use alloc::string::String;

/// It belongs to one statement in the SQL layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Local {
    /// Compiled patterns.
    pub(crate) patterns: Patterns,
    /// For each RAND of the statement, by its place, where it is in its series.
    pub(super) random: BTreeMap<i64, Generator>,
    /// Values of UUID() and RANDOM_BYTES() so far.
    pub(super) made: u64,
    /// The variables that the statement has assigned.
    pub(crate) variables: BTreeMap<String, Value>,
}
