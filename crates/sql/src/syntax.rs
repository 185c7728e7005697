//! What statements are planned from: the syntax tree, the catalog, and the session's modes.

use crate::error;
use crate::optimizer_switch::Rules;
use crate::plan::known::Look;
use crate::views::{View, Views};
use lats_catalog::Catalog;
use lats_mysql_syntax::tree::{Expr, ExprId, TableName, Text};
use lats_mysql_syntax::{Mode, Parsed, SyntaxError, Tree};
use lats_values::{Collation, SqlError, Value};

/// What a plan is made from.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The catalog, with the temporary tables of the session.
    pub catalog: &'a Catalog,
    /// The catalog without them, which views are about.
    pub base: &'a Catalog,
    /// The current database.
    pub database: Option<&'a str>,
    /// The text that the tree's spans are in.
    pub text: &'a [u8],
    /// The statement and its tree.
    pub parsed: &'a Parsed,
    /// `sql_mode` has ONLY_FULL_GROUP_BY.
    pub full_group_by: bool,
    /// `sql_mode` has NO_BACKSLASH_ESCAPES.
    pub no_escapes: bool,
    /// `sql_mode` has STRICT_TRANS_TABLES or STRICT_ALL_TABLES.
    pub strict: bool,
    /// `sql_mode` lacks ERROR_FOR_DIVISION_BY_ZERO: divisions by zero are NULL, and nothing is said of them.
    pub quiet_division: bool,
    /// `collation_connection`, if it is another one than that of texts without any.
    pub connection_collation: Option<Collation>,
    /// `group_concat_max_len`.
    pub group_concat_bytes: usize,
    /// What plans may do, of `optimizer_switch`.
    pub rules: Rules,
    /// The views that the statement names.
    pub views: &'a Views,
    /// What is known about tables.
    pub statistics: Look<'a>,
    /// The values from outside that the plan is made for first, if they are known.
    pub values: &'a [Value],
    /// What the plan may take.
    pub bounds: Bounds,
}

/// The memory that reading and planning a statement may take in this thread.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    of_thread: fn() -> i64,
    end: i64,
    bytes_max: usize,
}

impl Bounds {
    /// From now on so many bytes.
    pub fn of(of_thread: fn() -> i64, bytes_max: usize) -> Self {
        let more = i64::try_from(bytes_max).unwrap_or(i64::MAX);
        Self { of_thread, end: of_thread().saturating_add(more), bytes_max }
    }

    /// As much as there is.
    pub fn none() -> Self {
        Self { of_thread: || 0, end: i64::MAX, bytes_max: usize::MAX }
    }

    /// # Errors
    /// 3170: it has taken more.
    pub fn check(&self) -> Result<(), SqlError> {
        match (self.of_thread)() > self.end {
            true => Err(error::out_of_parser_memory(self.bytes_max)),
            false => Ok(()),
        }
    }
}

/// `collation_connection`, if constants must be told of it.
pub fn collation_of_constants(name: &str) -> Option<Collation> {
    let found = Collation::from_name(name);
    found.filter(|found| ![Collation::default(), Collation::Binary].contains(found))
}

impl<'a> Context<'a> {
    /// The view of this name, if the statement means it.
    pub fn view(&self, database: &str, name: &str) -> Option<&'a View> {
        let view = self.views.get(database, name)?;
        // A temporary table may have its place.
        self.catalog.view(database, name).map(|_| view)
    }

    /// The statement's tree.
    pub fn tree(&self) -> &'a Tree {
        &self.parsed.tree
    }
}

/// Parses a statement.
///
/// # Errors
/// What MySQL's parser says.
pub fn parse(text: &[u8], mode: Mode) -> Result<Parsed, SqlError> {
    parse_within(text, mode, usize::MAX)
}

/// The same, where tokens and tree may take so many bytes.
///
/// # Errors
/// As [`parse`]; 3170 if they need more.
pub fn parse_within(text: &[u8], mode: Mode, bytes_max: usize) -> Result<Parsed, SqlError> {
    let parsed = lats_mysql_syntax::parse_within(text, 0, mode, bytes_max);
    let parsed = parsed.map_err(|e| syntax_error(&e))?;
    match parsed.next {
        None => Ok(parsed),
        // The text behind the semicolon is a statement of its own, which nobody asked for.
        Some(next) => {
            // A comment is no statement.
            let behind = lats_mysql_syntax::parse_within(text, next.0, mode, bytes_max);
            if behind.is_err_and(|error| error.number == 1065) {
                return Ok(parsed);
            }
            let error = SyntaxError::near(text, parsed.span.start, next.0);
            Err(syntax_error(&error))
        }
    }
}

/// The parser's error as the client gets it.
pub fn syntax_error(error: &SyntaxError) -> SqlError {
    error::make(error.number, error.state, &error.message)
}

/// What of `sql_mode` changes how a text is read.
pub fn mode_of(sql_mode: &str) -> Mode {
    let has = |name: &str| sql_mode.split(',').any(|mode| mode.eq_ignore_ascii_case(name));
    Mode {
        ansi_quotes: has("ANSI_QUOTES"),
        pipes_as_concat: has("PIPES_AS_CONCAT"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        high_not_precedence: has("HIGH_NOT_PRECEDENCE"),
        ignore_space: has("IGNORE_SPACE"),
        real_as_float: has("REAL_AS_FLOAT"),
    }
}

/// A name, or any text that must be utf8mb4; empty for none.
///
/// # Errors
/// 1300 for bytes that are no utf8mb4.
pub fn name(tree: &Tree, text: Text) -> Result<&str, SqlError> {
    core::str::from_utf8(tree.text(text)).map_err(|e| {
        let bytes = tree.text(text);
        SqlError::invalid_utf8(bytes.get(e.valid_up_to()..).unwrap_or(bytes))
    })
}

/// A name where one was written.
///
/// # Errors
/// As [`name`].
pub fn optional_name(tree: &Tree, text: Text) -> Result<Option<&str>, SqlError> {
    text.is_some().then(|| name(tree, text)).transpose()
}

/// A table's database and name.
///
/// # Errors
/// 1046 without a database, 1300.
pub fn split_name(
    tree: &Tree,
    table: &TableName,
    database: Option<&str>,
) -> Result<(String, String), SqlError> {
    let schema = match optional_name(tree, table.schema)? {
        Some(schema) => schema,
        None => database.ok_or_else(error::no_database)?,
    };
    Ok((schema.to_owned(), name(tree, table.name)?.to_owned()))
}

/// The parts of a column's name as they were written, for errors.
pub fn shown_column(tree: &Tree, id: ExprId) -> String {
    match tree.expr(id) {
        Expr::Column { schema, table, name } => {
            let parts = [*schema, *table, *name];
            let parts = parts.iter().filter(|part| part.is_some());
            let parts = parts.map(|part| String::from_utf8_lossy(tree.text(*part)).into_owned());
            parts.collect::<Vec<_>>().join(".")
        }
        _ => String::new(),
    }
}
