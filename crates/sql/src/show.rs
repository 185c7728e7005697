//! SHOW, DESCRIBE and their like: tables made up on the spot.

mod lists;
mod tables;

use crate::bind::Binder;
use crate::error::{self, Failure};
use crate::expr::ValuesSource;
use crate::parse::Tokens;
use crate::plan::select::Context;
use crate::plan::{ColumnMeta, Columns};
use crate::session::{Outcome, Session, Sink};
use crate::store::Store;
use lats_catalog::{ColumnDef, DefaultValue, TableDef};
use lats_values::{ColumnType, EvalContext, Expr, SqlError, TypeKind, Value};
use sqlparser::tokenizer::Token;

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Variables { global: bool },
    Status,
    Databases,
    Tables { database: String, full: bool },
    Columns { database: String, table: String, full: bool },
    CreateTable { database: String, table: String },
    CreateDatabase { database: String },
    Index { database: String, table: String },
    TableStatus { database: String },
    Engines,
    Collation,
    Charset,
    Warnings { errors_only: bool },
    ProcessList,
    Plugins,
    Privileges,
    Grants,
    Empty(&'static [&'static str]),
}

/// A SHOW statement.
#[derive(Debug)]
pub struct Show {
    subject: Subject,
    /// Of LIKE.
    pattern: Option<String>,
    filter: Option<Expr>,
    limit: Option<(usize, usize)>,
}

/// The rows that are shown.
pub(crate) struct Rows {
    pub(crate) columns: Vec<(String, ColumnType)>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// True for databases that exist only to be asked about.
pub fn is_virtual_database(name: &str) -> bool {
    name.eq_ignore_ascii_case("information_schema")
        || name.eq_ignore_ascii_case("performance_schema")
        || name.eq_ignore_ascii_case("mysql")
        || name.eq_ignore_ascii_case("sys")
}

impl Show {
    /// True if it shows what the statement before left.
    pub fn reads_diagnostics(&self) -> bool {
        matches!(self.subject, Subject::Warnings { .. })
    }

    /// The columns of its result.
    pub fn columns(&self) -> Columns {
        self.named(&lists::columns(&self.subject))
    }

    /// MySQL puts the pattern into the first column's name, where names of things are listed.
    fn named(&self, columns: &[(String, ColumnType)]) -> Columns {
        let listed = matches!(self.subject, Subject::Databases | Subject::Tables { .. });
        let pattern = self.pattern.as_ref().filter(|_| listed);
        let name = |at: usize, name: &str| match pattern {
            Some(pattern) if at == 0 => format!("{name} ({pattern})"),
            _ => name.to_owned(),
        };
        let columns = columns.iter().enumerate();
        columns.map(|(at, (n, kind))| ColumnMeta::expression(&name(at, n), kind.clone())).collect()
    }
}

/// Parses a SHOW, DESCRIBE or similar statement.
///
/// # Errors
/// 1064, or 1235 for what we do not show.
pub fn parse(context: &Context<'_>) -> Result<Show, SqlError> {
    let tokens = context.tokens;
    match tokens.word(0).as_str() {
        "SHOW" => {}
        "DESCRIBE" | "DESC" | "EXPLAIN" => return describe(context),
        other => return Err(error::not_supported(other)),
    }
    let mut at = 1;
    let mut words = Words::default();
    loop {
        match tokens.word(at).as_str() {
            "GLOBAL" => words.global = true,
            "SESSION" | "LOCAL" | "EXTENDED" => {}
            "FULL" => words.full = true,
            _ => break,
        }
        at += 1;
    }
    let (subject, at) = subject(context, at, &words)?;
    finish(tokens, subject, at)
}

#[derive(Default)]
struct Words {
    global: bool,
    full: bool,
}

fn subject(context: &Context<'_>, at: usize, words: &Words) -> Result<(Subject, usize), SqlError> {
    let tokens = context.tokens;
    let full = words.full;
    let (first, second) = (tokens.word(at), tokens.word(at + 1));
    Ok(match (first.as_str(), second.as_str()) {
        ("VARIABLES", _) => (Subject::Variables { global: words.global }, at + 1),
        ("STATUS", _) => (Subject::Status, at + 1),
        ("DATABASES" | "SCHEMAS", _) => (Subject::Databases, at + 1),
        ("TABLES", _) => {
            let (database, at) = database_of(context, at + 1)?;
            (Subject::Tables { database, full }, at)
        }
        ("COLUMNS" | "FIELDS", _) => {
            let ((database, table), at) = table_of(context, at + 1)?;
            (Subject::Columns { database, table, full }, at)
        }
        ("INDEX" | "INDEXES" | "KEYS", _) => {
            let ((database, table), at) = table_of(context, at + 1)?;
            (Subject::Index { database, table }, at)
        }
        ("CREATE", "TABLE") => {
            let ((database, table), at) = name(context, at + 2)?;
            (Subject::CreateTable { database, table }, at)
        }
        ("CREATE", "DATABASE" | "SCHEMA") => {
            let skip = if tokens.words_are(at + 2, &["IF", "NOT", "EXISTS"]) { 5 } else { 2 };
            let ((_, database), at) = plain_name(tokens, at + skip)?;
            (Subject::CreateDatabase { database }, at)
        }
        ("TABLE", "STATUS") => {
            let (database, at) = database_of(context, at + 2)?;
            (Subject::TableStatus { database }, at)
        }
        ("ENGINES", _) => (Subject::Engines, at + 1),
        ("STORAGE", "ENGINES") => (Subject::Engines, at + 2),
        ("COLLATION", _) => (Subject::Collation, at + 1),
        ("CHARSET", _) => (Subject::Charset, at + 1),
        ("CHARACTER", "SET") => (Subject::Charset, at + 2),
        ("WARNINGS", _) => (Subject::Warnings { errors_only: false }, at + 1),
        ("ERRORS", _) => (Subject::Warnings { errors_only: true }, at + 1),
        ("PROCESSLIST", _) => (Subject::ProcessList, at + 1),
        ("PLUGINS", _) => (Subject::Plugins, at + 1),
        ("PRIVILEGES", _) => (Subject::Privileges, at + 1),
        ("GRANTS", _) => (Subject::Grants, tokens.list.len()),
        ("TRIGGERS", _) => (Subject::Empty(&lists::TRIGGERS), database_of(context, at + 1)?.1),
        ("EVENTS", _) => (Subject::Empty(&lists::EVENTS), database_of(context, at + 1)?.1),
        ("PROCEDURE" | "FUNCTION", "STATUS") => (Subject::Empty(&lists::ROUTINES), at + 2),
        ("OPEN", "TABLES") => {
            (Subject::Empty(&lists::OPEN_TABLES), database_of(context, at + 2)?.1)
        }
        _ => return Err(error::not_supported(&format!("SHOW {first} {second}"))),
    })
}

fn describe(context: &Context<'_>) -> Result<Show, SqlError> {
    let tokens = context.tokens;
    if matches!(
        tokens.word(1).as_str(),
        "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "ANALYZE" | "FORMAT" | "WITH"
    ) {
        return Err(error::not_supported("EXPLAIN"));
    }
    let ((database, table), at) = name(context, 1)?;
    let subject = Subject::Columns { database, table, full: false };
    if at == tokens.list.len() {
        return Ok(Show { subject, pattern: None, filter: None, limit: None });
    }
    // DESCRIBE table column
    let ((_, pattern), at) = plain_name(tokens, at)?;
    if at != tokens.list.len() {
        return Err(error::syntax("near DESCRIBE"));
    }
    let filter = like_filter(&pattern);
    Ok(Show { subject, pattern: None, filter: Some(filter), limit: None })
}

fn like_filter(pattern: &str) -> Expr {
    Expr::Like {
        arg: Box::new(Expr::Column(0)),
        pattern: Box::new(Expr::Literal(Value::text(pattern))),
        escape: None,
        negated: false,
    }
}

/// What may follow: LIKE, WHERE, LIMIT.
fn finish(tokens: &Tokens, subject: Subject, mut at: usize) -> Result<Show, SqlError> {
    let mut show = Show { subject, pattern: None, filter: None, limit: None };
    match tokens.word(at).as_str() {
        "LIKE" => {
            let pattern = match tokens.list.get(at + 1).map(|t| &t.token) {
                Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => text,
                _ => return Err(error::syntax("near LIKE")),
            };
            show.filter = Some(like_filter(pattern));
            show.pattern = Some(pattern.clone());
            at += 2;
        }
        "WHERE" => {
            let expr = tokens.parse_expr(at + 1, tokens.list.len())?;
            let columns = lists::columns(&show.subject);
            let mut binder = Binder::new(None, "");
            binder.select_names = columns
                .iter()
                .zip(0u16..)
                .map(|((name, _), at)| (name.to_lowercase(), Expr::Column(at)))
                .collect();
            show.filter = Some(binder.bind_in("where clause", &expr)?);
            if !binder.externals.is_empty() {
                return Err(error::not_supported("variables in SHOW … WHERE"));
            }
            at = tokens.list.len();
        }
        "LIMIT" => {
            let number = |at: usize| match tokens.list.get(at).map(|t| &t.token) {
                Some(Token::Number(text, _)) => text.parse::<usize>().ok(),
                _ => None,
            };
            let comma = matches!(tokens.list.get(at + 2).map(|t| &t.token), Some(Token::Comma));
            let parsed = match comma {
                true => number(at + 1).zip(number(at + 3)),
                false => Some(0).zip(number(at + 1)),
            };
            show.limit = Some(parsed.ok_or_else(|| error::syntax("near LIMIT"))?);
            at += if comma { 4 } else { 2 };
        }
        _ => {}
    }
    if at < tokens.list.len() {
        return Err(error::syntax("near SHOW"));
    }
    Ok(show)
}

type Name = (Option<String>, String);

fn plain_name(tokens: &Tokens, at: usize) -> Result<(Name, usize), SqlError> {
    let word = |at: usize| match tokens.list.get(at).map(|t| &t.token) {
        Some(Token::Word(word)) => Some(word.value.clone()),
        Some(Token::SingleQuotedString(text)) => Some(text.clone()),
        _ => None,
    };
    let Some(first) = word(at) else { return Err(error::syntax("near the end")) };
    if matches!(tokens.list.get(at + 1).map(|t| &t.token), Some(Token::Period)) {
        let Some(second) = word(at + 2) else { return Err(error::syntax("near '.'")) };
        return Ok(((Some(first), second), at + 3));
    }
    Ok(((None, first), at + 1))
}

fn name(context: &Context<'_>, at: usize) -> Result<((String, String), usize), SqlError> {
    let ((database, table), at) = plain_name(context.tokens, at)?;
    let database = match database {
        Some(database) => database,
        None => context.database.ok_or_else(error::no_database)?.to_owned(),
    };
    Ok(((database, table), at))
}

/// `FROM table [FROM database]`.
fn table_of(context: &Context<'_>, at: usize) -> Result<((String, String), usize), SqlError> {
    let tokens = context.tokens;
    if !matches!(tokens.word(at).as_str(), "FROM" | "IN") {
        return Err(error::syntax("near SHOW"));
    }
    let ((mut database, table), mut at) = plain_name(tokens, at + 1)?;
    if matches!(tokens.word(at).as_str(), "FROM" | "IN") {
        let ((_, named), after) = plain_name(tokens, at + 1)?;
        (database, at) = (Some(named), after);
    }
    let database = match database {
        Some(database) => database,
        None => context.database.ok_or_else(error::no_database)?.to_owned(),
    };
    Ok(((database, table), at))
}

/// `[FROM database]`.
fn database_of(context: &Context<'_>, at: usize) -> Result<(String, usize), SqlError> {
    if matches!(context.tokens.word(at).as_str(), "FROM" | "IN") {
        let ((_, database), at) = plain_name(context.tokens, at + 1)?;
        return Ok((database, at));
    }
    Ok((context.database.ok_or_else(error::no_database)?.to_owned(), at))
}

impl<S: Store> Session<S> {
    pub(crate) async fn show<K: Sink>(
        &mut self,
        show: &Show,
        sink: &mut K,
    ) -> Result<Outcome, Failure> {
        let rows = self.shown(&show.subject)?;
        sink.begin(&show.named(&rows.columns));
        let mut context = EvalContext::new(false);
        let (skip, count) = show.limit.unwrap_or((0, usize::MAX));
        let mut kept = Vec::new();
        for row in rows.rows {
            let matches = match &show.filter {
                None => true,
                Some(filter) => {
                    let source = ValuesSource { row: &row, externals: &[] };
                    lats_values::is_true(filter, &source, &mut context)?
                }
            };
            if matches {
                kept.push(row);
            }
        }
        for row in kept.into_iter().skip(skip).take(count) {
            sink.row(&row)?;
        }
        Ok(Outcome::Rows)
    }
}

/// A column's default as SHOW prints it.
fn default_text(column: &ColumnDef) -> Option<String> {
    match &column.default {
        DefaultValue::None | DefaultValue::Literal(Value::Null) => None,
        DefaultValue::Literal(value) => Some(value.to_display()),
        DefaultValue::Now => Some(now_text(column)),
    }
}

fn now_text(column: &ColumnDef) -> String {
    match column.column_type.kind.fsp() {
        0 => "CURRENT_TIMESTAMP".to_owned(),
        fsp => format!("CURRENT_TIMESTAMP({fsp})"),
    }
}

fn key_text(table: &TableDef, at: u16) -> &'static str {
    if table.primary_key.contains(&at) {
        "PRI"
    } else if table.unique_indexes().any(|(i, _)| i.columns == [at]) {
        "UNI"
    } else if table.indexes.iter().any(|i| i.columns.first() == Some(&at)) {
        "MUL"
    } else {
        ""
    }
}

fn text_type() -> ColumnType {
    ColumnType::new(TypeKind::VarChar { chars: 1_024 })
}

fn number_type() -> ColumnType {
    ColumnType::new(TypeKind::BigInt).unsigned()
}
