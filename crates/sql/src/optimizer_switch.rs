//! `optimizer_switch`: rewrites and algorithms that can be switched off, so that plans can be compared.

use crate::error;
use lats_engine::rewrite;
use lats_values::SqlError;

/// What plans may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What the engine may do.
    pub engine: rewrite::Rules,
    /// Queries of one table go their short way.
    pub short_way: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { engine: rewrite::Rules::default(), short_way: true }
    }
}

/// MySQL's flags that LatsDB has no use for: they are taken, and shown.
const OTHERS: [&str; 4] = ["derived_merge", "index_merge", "materialization", "mrr"];

/// Ours, in the order in which they are shown.
pub const NAMES: [&str; 12] = [
    "apply_cache",
    "column_pruning",
    "common_terms",
    "condition_pushdown",
    "equal_columns",
    "hash_join",
    "join_order",
    "key_join",
    "outer_to_inner",
    "semijoin",
    "single_table",
    "subquery_to_derived",
];

impl Rules {
    fn flag(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "condition_pushdown" => &mut self.engine.filters,
            "column_pruning" => &mut self.engine.columns,
            "hash_join" => &mut self.engine.hash_join,
            "join_order" => &mut self.engine.join_order,
            "key_join" => &mut self.engine.key_join,
            "apply_cache" => &mut self.engine.apply_cache,
            "common_terms" => &mut self.engine.common_terms,
            "equal_columns" => &mut self.engine.equal_columns,
            "outer_to_inner" => &mut self.engine.outer_to_inner,
            "semijoin" => &mut self.engine.semi_join,
            "subquery_to_derived" => &mut self.engine.grouped_join,
            "single_table" => &mut self.short_way,
            _ => return None,
        })
    }

    /// All flags as the variable shows them.
    pub fn shown(mut self) -> String {
        let flag = |name: &&str| {
            let is_on = self.flag(name).is_none_or(|flag| *flag);
            format!("{name}={}", if is_on { "on" } else { "off" })
        };
        NAMES.iter().map(flag).collect::<Vec<_>>().join(",")
    }

    /// What the variable says.
    pub fn of(text: &str) -> Self {
        Self::default().with(text).unwrap_or_default()
    }

    /// The same with some flags changed: `name=on,name=off,name=default`, or `default` for all of them.
    ///
    /// # Errors
    /// 1231 for what is no flag.
    pub fn with(mut self, text: &str) -> Result<Self, SqlError> {
        let wrong = || error::wrong_variable_value("optimizer_switch", text);
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part.eq_ignore_ascii_case("default") {
                self = Self::default();
                continue;
            }
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let value = match value.to_ascii_lowercase().as_str() {
                "on" | "default" => true,
                "off" => false,
                _ => return Err(wrong()),
            };
            let name = name.trim().to_ascii_lowercase();
            match self.flag(&name) {
                Some(flag) => *flag = value,
                None if OTHERS.contains(&name.as_str()) => {}
                None => return Err(wrong()),
            }
        }
        Ok(self)
    }
}
