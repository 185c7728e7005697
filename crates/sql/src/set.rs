//! SET: of system and user variables, NAMES, and TRANSACTION.

use crate::bind::Binder;
use crate::error;
use crate::expr::External;
use crate::parse::Tokens;
use lats_values::{Expr, SqlError, Value};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// Where a value goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This session.
    Session,
    /// Sessions that begin later.
    Global,
    /// Sessions that begin later, at all nodes, also when they were started again.
    Cluster,
    /// The next transaction.
    NextTransaction,
}

/// One assignment of a SET.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// `@name = value`.
    User(String, Expr),
    /// `name = value`; none for DEFAULT.
    System(Scope, String, Option<Expr>),
    /// NAMES, with a collation.
    Names(Option<String>, Option<String>),
    /// CHARACTER SET.
    CharacterSet(Option<String>),
}

/// Parses and binds a SET statement.
///
/// # Errors
/// 1064, or what binding gives.
pub fn plan(tokens: &Tokens) -> Result<(Vec<Setting>, Vec<External>, u16), SqlError> {
    let mut binder = Binder::new(None, "").with_placeholders(tokens);
    let mut settings = Vec::new();
    for (from, to) in parts(tokens) {
        settings.push(setting(tokens, from, to, &mut binder)?);
    }
    Ok((settings.into_iter().flatten().collect(), binder.externals, binder.parameters))
}

/// The positions of the comma-separated parts after SET.
fn parts(tokens: &Tokens) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let (mut from, mut depth) = (1, 0usize);
    for (at, token) in tokens.list.iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => {
                parts.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push((from, tokens.list.len()));
    parts
}

fn setting(
    tokens: &Tokens,
    from: usize,
    to: usize,
    binder: &mut Binder<'_>,
) -> Result<Vec<Setting>, SqlError> {
    let mut at = from;
    let mut scope = None;
    match tokens.word(at).as_str() {
        "GLOBAL" => scope = Some(Scope::Global),
        "SESSION" | "LOCAL" => scope = Some(Scope::Session),
        "PERSIST" => scope = Some(Scope::Cluster),
        "PERSIST_ONLY" => return Err(error::not_supported("SET PERSIST_ONLY")),
        "PASSWORD" | "ROLE" | "DEFAULT" | "RESOURCE" => {
            return Err(error::not_supported(&format!("SET {}", tokens.word(at))));
        }
        _ => {}
    }
    at += usize::from(scope.is_some());
    match tokens.word(at).as_str() {
        word @ ("TRANSACTION" | "NAMES" | "CHARSET" | "CHARACTER")
            if scope == Some(Scope::Cluster) =>
        {
            return Err(error::not_supported(&format!("SET PERSIST {word}")));
        }
        "TRANSACTION" => return transaction(tokens, at + 1, to, scope),
        "NAMES" => return names(tokens, at + 1, to).map(|s| vec![s]),
        "CHARSET" => return Ok(vec![Setting::CharacterSet(charset_word(tokens, at + 1, to)?)]),
        "CHARACTER" if tokens.word(at + 1) == "SET" => {
            return Ok(vec![Setting::CharacterSet(charset_word(tokens, at + 2, to)?)]);
        }
        _ => {}
    }
    assignment(tokens, (at, to), scope, binder).map(|s| vec![s])
}

fn assignment(
    tokens: &Tokens,
    (mut at, to): (usize, usize),
    mut scope: Option<Scope>,
    binder: &mut Binder<'_>,
) -> Result<Setting, SqlError> {
    let Some(Token::Word(first)) = tokens.list.get(at).map(|t| &t.token) else {
        return Err(error::syntax("near SET"));
    };
    let mut name = first.value.to_lowercase();
    at += 1;
    if let Some(prefix) = name.strip_prefix("@@").map(str::to_owned) {
        let qualified = matches!(tokens.list.get(at).map(|t| &t.token), Some(Token::Period));
        match (prefix.as_str(), qualified) {
            ("global", true) => scope = Some(Scope::Global),
            ("persist", true) => scope = Some(Scope::Cluster),
            ("session" | "local", true) => scope = Some(Scope::Session),
            (_, true) => return Err(error::unknown_variable(&prefix)),
            (_, false) => {}
        }
        name = prefix;
        if qualified {
            name = match tokens.list.get(at + 1).map(|t| &t.token) {
                Some(Token::Word(word)) => word.value.to_lowercase(),
                _ => return Err(error::syntax("near SET")),
            };
            at += 2;
        }
    }
    if !matches!(tokens.list.get(at).map(|t| &t.token), Some(Token::Eq | Token::Assignment)) {
        return Err(error::syntax(&format!("near '{name}'")));
    }
    at += 1;
    if let Some(user) = name.strip_prefix('@') {
        let expr = tokens.parse_expr(at, to)?;
        return Ok(Setting::User(user.to_owned(), binder.bind_in("field list", &expr)?));
    }
    if !crate::variables::is_known(&name) {
        return Err(error::unknown_variable(&name));
    }
    let scope = scope.unwrap_or(Scope::Session);
    if scope == Scope::Cluster && name != "durability" {
        return Err(error::not_supported(&format!("SET PERSIST {name}")));
    }
    if at + 1 == to && tokens.word(at) == "DEFAULT" {
        return Ok(Setting::System(scope, name, None));
    }
    let value = match tokens.parse_expr(at, to)? {
        // A bare word is a value here: ON, utf8mb4.
        ast::Expr::Identifier(word) if !word.value.starts_with('@') => {
            Expr::Literal(Value::text(&word.value))
        }
        expr => binder.bind_in("field list", &expr)?,
    };
    Ok(Setting::System(scope, name, Some(value)))
}

fn transaction(
    tokens: &Tokens,
    from: usize,
    to: usize,
    scope: Option<Scope>,
) -> Result<Vec<Setting>, SqlError> {
    let scope = scope.unwrap_or(Scope::NextTransaction);
    let mut at = from;
    let set = |name: &str, value: Value| {
        Setting::System(scope.clone(), name.to_owned(), Some(Expr::Literal(value)))
    };
    let known: [(&[&str], &str, Value); 6] = [
        (
            &["ISOLATION", "LEVEL", "READ", "COMMITTED"],
            "transaction_isolation",
            Value::text("READ-COMMITTED"),
        ),
        (
            &["ISOLATION", "LEVEL", "READ", "UNCOMMITTED"],
            "transaction_isolation",
            Value::text("READ-UNCOMMITTED"),
        ),
        (
            &["ISOLATION", "LEVEL", "REPEATABLE", "READ"],
            "transaction_isolation",
            Value::text("REPEATABLE-READ"),
        ),
        (
            &["ISOLATION", "LEVEL", "SERIALIZABLE"],
            "transaction_isolation",
            Value::text("SERIALIZABLE"),
        ),
        (&["READ", "ONLY"], "transaction_read_only", Value::Int(1)),
        (&["READ", "WRITE"], "transaction_read_only", Value::Int(0)),
    ];
    let mut settings = Vec::new();
    for (words, name, value) in known {
        if tokens.words_are(at, words) {
            settings.push(set(name, value));
            at += words.len();
            break;
        }
    }
    if settings.is_empty() || at != to {
        return Err(error::syntax("near 'SET TRANSACTION'"));
    }
    Ok(settings)
}

fn word_or_text(tokens: &Tokens, at: usize) -> Option<String> {
    match tokens.list.get(at).map(|t| &t.token) {
        Some(Token::Word(word)) => Some(word.value.clone()),
        Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => {
            Some(text.clone())
        }
        _ => None,
    }
}

fn charset_word(tokens: &Tokens, at: usize, to: usize) -> Result<Option<String>, SqlError> {
    let Some(name) = word_or_text(tokens, at).filter(|_| at + 1 == to) else {
        return Err(error::syntax("near 'CHARACTER SET'"));
    };
    Ok((!name.eq_ignore_ascii_case("DEFAULT")).then_some(name))
}

fn names(tokens: &Tokens, at: usize, to: usize) -> Result<Setting, SqlError> {
    let wrong = || error::syntax("near 'SET NAMES'");
    let charset = word_or_text(tokens, at).ok_or_else(wrong)?;
    let charset = (!charset.eq_ignore_ascii_case("DEFAULT")).then_some(charset);
    if at + 1 == to {
        return Ok(Setting::Names(charset, None));
    }
    if tokens.word(at + 1) != "COLLATE" || at + 3 != to {
        return Err(wrong());
    }
    Ok(Setting::Names(charset, Some(word_or_text(tokens, at + 2).ok_or_else(wrong)?)))
}
