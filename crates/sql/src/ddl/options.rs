//! Options of tables and databases.

use super::engine;
use crate::bind::{charset_collation, collation_named};
use crate::error;
use crate::syntax::name;
use lats_mysql_syntax::tree::{OptionValue, TableOption, Text};
use lats_mysql_syntax::{Keyword as K, Tree};
use lats_values::{Collation, SqlError};

/// What follows a table's definition.
#[derive(Debug, Default)]
pub(super) struct TableOptions {
    pub(super) collation: Collation,
    pub(super) comment: String,
    /// Where the sequence starts.
    pub(super) auto_increment: Option<u64>,
    /// The name of an engine that does not exist.
    pub(super) unknown_engine: Option<String>,
}

pub(super) fn table_options(
    tree: &Tree,
    options: &[TableOption],
) -> Result<TableOptions, SqlError> {
    let mut found = TableOptions { collation: collation(tree, options)?, ..Default::default() };
    for option in options {
        match (option.name, &option.value) {
            (K::CHARSET | K::COLLATE, _) => {}
            (K::ENGINE, OptionValue::Name(engine)) => {
                let engine = name(tree, *engine)?;
                let is_known = engine::find(engine)?.is_some();
                found.unknown_engine = (!is_known).then(|| engine.to_owned());
            }
            (K::COMMENT, OptionValue::Text(text)) => {
                name(tree, *text)?.clone_into(&mut found.comment);
            }
            (K::AUTO_INCREMENT, OptionValue::Number(digits)) => {
                found.auto_increment = Some(number(tree, *digits)?);
            }
            _ => check_storage(tree, option)?,
        }
    }
    Ok(found)
}

/// Options that only say how an engine stores rows are taken; others say what a table is.
fn check_storage(tree: &Tree, option: &TableOption) -> Result<(), SqlError> {
    let shown = match (option.name, &option.value) {
        (K::ROW_FORMAT, OptionValue::Word(K::FIXED)) => return Err(no_such_option()),
        (
            K::ROW_FORMAT
            | K::KEY_BLOCK_SIZE
            | K::STATS_PERSISTENT
            | K::STATS_AUTO_RECALC
            | K::STATS_SAMPLE_PAGES
            | K::MAX_ROWS
            | K::MIN_ROWS
            | K::AVG_ROW_LENGTH
            | K::CHECKSUM
            | K::TABLE_CHECKSUM
            | K::PACK_KEYS
            | K::DELAY_KEY_WRITE
            | K::COMPRESSION
            | K::AUTOEXTEND_SIZE,
            _,
        ) => return Ok(()),
        (K::ENCRYPTION, OptionValue::Text(text)) if is_no(tree, *text) => return Ok(()),
        (K::STORAGE, OptionValue::Word(K::MEMORY)) => return Ok(()),
        (K::SECONDARY_ENGINE, OptionValue::Null) => return Ok(()),
        (K::DATA, _) => "DATA DIRECTORY",
        (K::INDEX, _) => "INDEX DIRECTORY",
        (K::START, _) => "START TRANSACTION",
        (name, _) => name.name(),
    };
    Err(error::not_supported(&format!("table option {shown}")))
}

fn is_no(tree: &Tree, text: Text) -> bool {
    tree.text(text).eq_ignore_ascii_case(b"N")
}

/// The collation that the options say.
fn collation(tree: &Tree, options: &[TableOption]) -> Result<Collation, SqlError> {
    let (mut charset, mut collation) = (None, None);
    for option in options {
        match (option.name, &option.value) {
            (K::CHARSET, OptionValue::Name(text)) => {
                charset = Some(charset_collation(name(tree, *text)?)?);
            }
            (K::COLLATE, OptionValue::Name(text)) => {
                collation = Some(collation_named(name(tree, *text)?)?);
            }
            _ => {}
        }
    }
    if let (Some(charset), Some(collation)) = (charset, collation)
        && charset.charset() != collation.charset()
    {
        return Err(wrong_collation(collation.name(), charset.charset()));
    }
    Ok(collation.or(charset).unwrap_or_default())
}

/// 1253: a collation of another character set.
pub(crate) fn wrong_collation(collation: &str, charset: &str) -> SqlError {
    let text = format!("COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'");
    error::make(1253, "42000", &text)
}

/// Databases have no defaults of their own yet: only those of the server are taken.
pub(super) fn check_database(tree: &Tree, options: &[TableOption]) -> Result<(), SqlError> {
    if collation(tree, options)? != Collation::default() {
        return Err(error::not_supported("databases with a collation of their own"));
    }
    let is_encrypted = |option: &TableOption| match option.value {
        OptionValue::Text(text) => option.name == K::ENCRYPTION && !is_no(tree, text),
        _ => false,
    };
    match options.iter().any(is_encrypted) {
        true => Err(error::not_supported("ENCRYPTION")),
        false => Ok(()),
    }
}

/// A number in decimal or hexadecimal digits.
fn number(tree: &Tree, digits: Text) -> Result<u64, SqlError> {
    let text = name(tree, digits)?;
    let hex = text.strip_prefix("0x").or_else(|| text.get(2..)?.strip_suffix('\''));
    let found = match hex {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    found.map_err(|_| error::syntax(&format!("near '{text}'")))
}

/// 1031: in MySQL, tables of InnoDB have no such rows.
fn no_such_option() -> SqlError {
    let text = "Table storage engine doesn't have this option";
    error::make(1031, "HY000", text)
}
