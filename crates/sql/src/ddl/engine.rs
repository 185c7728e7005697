//! Names of storage engines. LatsDB keeps all tables in its own way, whatever engine a definition names.

use crate::error;
use lats_values::SqlError;

/// MySQL's engines whose tables can be tables of LatsDB, by the names that they have in statements and in MySQL.
const ENGINES: [(&str, &str); 9] = [
    ("LatsDB", "LatsDB"),
    ("InnoDB", "InnoDB"),
    ("NDB", "ndbcluster"),
    ("NDBCLUSTER", "ndbcluster"),
    ("MyISAM", "MyISAM"),
    ("MEMORY", "MEMORY"),
    ("HEAP", "MEMORY"),
    ("CSV", "CSV"),
    ("ARCHIVE", "ARCHIVE"),
];
/// MySQL's engines whose tables forget their rows, or have them somewhere else.
const OTHERS: [&str; 5] = ["BLACKHOLE", "FEDERATED", "MERGE", "MRG_MYISAM", "PERFORMANCE_SCHEMA"];

/// An engine's own spelling; none if there is no such engine.
///
/// # Errors
/// 1235 for engines whose tables LatsDB cannot have.
pub(crate) fn find(name: &str) -> Result<Option<&'static str>, SqlError> {
    if let Some(other) = OTHERS.iter().find(|other| other.eq_ignore_ascii_case(name)) {
        return Err(error::not_supported(&format!("ENGINE={other}")));
    }
    let found = ENGINES.iter().find(|(engine, _)| engine.eq_ignore_ascii_case(name));
    Ok(found.map(|(_, shown)| *shown))
}

/// 1286: no such engine.
pub(crate) fn unknown(name: &str) -> SqlError {
    error::make(1286, "42000", &format!("Unknown storage engine '{name}'"))
}
