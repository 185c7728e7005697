//! Views: named queries.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use lats_base::TableId;
use serde::{Deserialize, Serialize};

/// A view's definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDef {
    /// Its id, another one after each CREATE OR REPLACE and ALTER; never reused.
    pub id: TableId,
    /// The database it is in.
    pub database: String,
    /// Its name.
    pub name: String,
    /// The names of its columns, if the statement had a list of them; else those of the query count.
    pub columns: Vec<String>,
    /// The query. Tables stand there with their databases, columns with their tables, and no star; a parser in its default
    /// mode reads it.
    pub query: String,
    /// ALGORITHM.
    pub algorithm: ViewAlgorithm,
    /// DEFINER: the account's name and host.
    pub definer: (String, String),
    /// SQL SECURITY.
    pub security: ViewSecurity,
    /// WITH CHECK OPTION.
    pub check: CheckOption,
    /// The `sql_mode` of the session that made it.
    pub sql_mode: String,
    /// That session's `character_set_client` and `collation_connection`.
    pub character_set: (String, String),
}

/// How a view is to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewAlgorithm {
    /// As it fits.
    #[default]
    Undefined,
    /// As a part of the query that names it.
    Merge,
    /// As a table of its own, which nobody can change.
    TempTable,
}

/// Whose privileges count for what a view reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewSecurity {
    /// The definer's.
    #[default]
    Definer,
    /// Those of whoever names it.
    Invoker,
}

/// Which conditions new and changed rows must meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckOption {
    /// None of the view's own.
    #[default]
    None,
    /// The view's own.
    Local,
    /// The view's own, and those of all views beneath it.
    Cascaded,
}

impl ViewDef {
    /// A view that is to be made, with nothing special about it.
    pub fn new(database: &str, name: &str, query: &str) -> Self {
        Self {
            database: database.to_string(),
            name: name.to_string(),
            query: query.to_string(),
            ..Self::default()
        }
    }
}
