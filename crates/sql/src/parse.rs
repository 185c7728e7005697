//! From text to statements: tokens, the parser library, and guards before it.

use crate::error;
use lats_values::SqlError;
use sqlparser::ast::{Expr, Ident, Statement};
use sqlparser::dialect::MySqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

/// Words that a value follows.
fn is_before_operand(word: Keyword) -> bool {
    use Keyword as K;
    matches!(
        word,
        K::SELECT
            | K::DISTINCT
            | K::ALL
            | K::WHERE
            | K::HAVING
            | K::ON
            | K::BY
            | K::SET
            | K::LIMIT
            | K::AND
            | K::OR
            | K::XOR
            | K::NOT
            | K::BETWEEN
            | K::IN
            | K::LIKE
            | K::DIV
            | K::VALUES
            | K::CASE
            | K::WHEN
            | K::THEN
            | K::ELSE
            | K::FROM
            | K::USING
            | K::AS
    )
}

/// Tokens in a row within one list item, parentheses left out. The library makes trees of chains of
/// operators that are as deep as the chain is long, and walking deep trees needs stack.
const CHAIN_MAX: usize = 5_000;
/// Set operations in a statement, for the same reason.
const SETS_MAX: usize = 500;

/// A statement's text as tokens, without blanks and comments.
pub struct Tokens {
    /// The tokens.
    pub list: Vec<TokenWithSpan>,
    line_starts: Vec<usize>,
    /// The columns of `PARTITION BY KEY (…)`, which the library does not know.
    partition_by: Option<Vec<Ident>>,
}

impl Tokens {
    /// Splits the text.
    ///
    /// # Errors
    /// 1064 for text that has no tokens of SQL, 1065 for no text.
    pub fn new(text: &str) -> Result<Self, SqlError> {
        let dialect = MySqlDialect {};
        let mut list = Tokenizer::new(&dialect, text)
            .tokenize_with_location()
            .map_err(|e| error::syntax(&e.to_string()))?;
        list.retain(|t| !matches!(t.token, Token::Whitespace(_)));
        while matches!(list.last().map(|t| &t.token), Some(Token::SemiColon | Token::EOF)) {
            list.pop();
        }
        if list.is_empty() {
            return Err(error::empty_query());
        }
        check_chains(&list)?;
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1))
            .collect();
        let mut tokens = Self { list, line_starts, partition_by: None };
        tokens.rewrite_share_lock();
        tokens.drop_priorities();
        tokens.rewrite_operators();
        tokens.take_partition_by()?;
        Ok(tokens)
    }

    /// `LOCK IN SHARE MODE` is the old way to say `FOR SHARE`, which the library knows.
    fn rewrite_share_lock(&mut self) {
        let Some(at) = self.list.len().checked_sub(4) else { return };
        if self.words_are(at, &["LOCK", "IN", "SHARE", "MODE"]) {
            self.list[at].token = Token::make_keyword("FOR");
            self.list[at + 1].token = Token::make_keyword("SHARE");
            self.list.truncate(at + 2);
        }
    }

    /// `&&`, `||` and `a MOD b` by their other names, which the library reads as MySQL does.
    fn rewrite_operators(&mut self) {
        for at in 0..self.list.len() {
            let renamed = match &self.list[at].token {
                Token::Overlap => Some(Token::make_keyword("AND")),
                Token::StringConcat => Some(Token::make_keyword("OR")),
                word if is_word(word, "MOD") && self.ends_operand(at) => Some(Token::Mod),
                _ => None,
            };
            if let Some(token) = renamed {
                self.list[at].token = token;
            }
        }
    }

    /// True if the token before this one ends a value: what follows is an operator.
    fn ends_operand(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.list.get(before)).map(|t| &t.token);
        match before {
            Some(Token::Word(word)) => {
                word.quote_style.is_some() || !is_before_operand(word.keyword)
            }
            Some(Token::Number(..) | Token::RParen | Token::Placeholder(_)) => true,
            Some(Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)) => true,
            _ => false,
        }
    }

    /// Words that say how urgent a statement is: they mean nothing here, and the library takes them for names.
    fn drop_priorities(&mut self) {
        let words: &[&str] = match self.word(0).as_str() {
            "UPDATE" => &["LOW_PRIORITY"],
            "DELETE" => &["LOW_PRIORITY", "QUICK"],
            "INSERT" | "REPLACE" => &["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"],
            _ => return,
        };
        while words.contains(&self.word(1).as_str()) {
            self.list.remove(1);
        }
    }

    /// Takes `PARTITION BY KEY (a, …)` from the end of a CREATE TABLE.
    fn take_partition_by(&mut self) -> Result<(), SqlError> {
        if !self.words_are(0, &["CREATE", "TABLE"]) {
            return Ok(());
        }
        let found = (2..self.list.len()).find(|at| self.words_are(*at, &["PARTITION", "BY"]));
        let Some(from) = found else { return Ok(()) };
        let kind = self.word(from + 2);
        if kind != "KEY" {
            return Err(error::not_supported(&format!("PARTITION BY {kind}")));
        }
        let near = || error::syntax("near PARTITION BY KEY: a list of columns is wanted");
        let mut columns = Vec::new();
        let mut rest = self.list.iter().skip(from + 3).map(|t| &t.token).peekable();
        if rest.next() != Some(&Token::LParen) {
            return Err(near());
        }
        if rest.next_if_eq(&&Token::RParen).is_none() {
            loop {
                let Some(Token::Word(word)) = rest.next() else { return Err(near()) };
                columns.push(word.to_ident(Span::empty()));
                match rest.next() {
                    Some(Token::Comma) => {}
                    Some(Token::RParen) => break,
                    _ => return Err(near()),
                }
            }
        }
        if rest.next().is_some() {
            return Err(error::not_supported(
                "options of PARTITION BY: fragments are made by the cluster",
            ));
        }
        self.partition_by = Some(columns);
        self.list.truncate(from);
        Ok(())
    }

    /// The word at this position, in upper case; empty if there is none.
    pub fn word(&self, at: usize) -> String {
        match self.list.get(at).map(|t| &t.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                word.value.to_ascii_uppercase()
            }
            _ => String::new(),
        }
    }

    /// True if the words from this position on are these (upper case).
    pub fn words_are(&self, at: usize, words: &[&str]) -> bool {
        let is = |at: usize, word: &str| self.list.get(at).is_some_and(|t| is_word(&t.token, word));
        words.iter().enumerate().all(|(i, word)| is(at + i, word))
    }

    /// Where in the text a location of a token is.
    pub fn offset(&self, text: &str, location: Location) -> usize {
        let line = usize::try_from(location.line).unwrap_or(1).saturating_sub(1);
        let start = self.line_starts.get(line).copied().unwrap_or(text.len());
        let column = usize::try_from(location.column).unwrap_or(1).saturating_sub(1);
        let rest = text.get(start..).unwrap_or("");
        rest.char_indices().nth(column).map_or(text.len(), |(at, _)| start + at)
    }

    /// Parses the tokens as one statement.
    ///
    /// # Errors
    /// 1064.
    pub fn parse(&self, text: &str) -> Result<Statement, SqlError> {
        let first = self.word(0);
        if matches!(first.as_str(), "UPDATE" | "DELETE") && self.word(1) == "IGNORE" {
            // The library takes it for a table.
            return Err(error::not_supported(&format!("{first} IGNORE")));
        }
        let dialect = MySqlDialect {};
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(self.list.clone());
        let mut statement = parser
            .parse_statement()
            .map_err(|e| self.not_supported_form().unwrap_or_else(|| parse_error(&e)))?;
        let next = parser.peek_token();
        if next.token != Token::EOF {
            if let Some(error) = self.not_supported_form() {
                return Err(error);
            }
            let near = self.offset(text, next.span.start);
            let near: String = text.get(near..).unwrap_or("").chars().take(80).collect();
            return Err(error::syntax(&format!("near '{near}'")));
        }
        if let (Statement::CreateTable(create), Some(columns)) =
            (&mut statement, &self.partition_by)
        {
            let columns = columns.iter().cloned().map(Expr::Identifier);
            create.partition_by = Some(Box::new(Expr::Tuple(columns.collect())));
        }
        Ok(statement)
    }

    /// MySQL's forms that the library does not know: they are no mistakes of who wrote them.
    fn not_supported_form(&self) -> Option<SqlError> {
        let first = self.word(0);
        if matches!(first.as_str(), "PREPARE" | "EXECUTE" | "DEALLOCATE") {
            return Some(error::not_supported(&format!("{first} as a statement")));
        }
        let has = |words: &[&str]| (0..self.list.len()).any(|at| self.words_are(at, words));
        if has(&["WITH", "ROLLUP"]) {
            return Some(error::not_supported("WITH ROLLUP"));
        }
        if has(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
            return Some(error::not_supported("WITH CONSISTENT SNAPSHOT"));
        }
        let before_set = self.list.iter().take_while(|t| !is_word(&t.token, "SET"));
        let mut commas = before_set.filter(|t| t.token == Token::Comma);
        (first == "UPDATE" && commas.next().is_some())
            .then(|| error::not_supported("UPDATE of several tables"))
    }

    /// Parses the tokens between these positions as an expression.
    ///
    /// # Errors
    /// 1064.
    pub fn parse_expr(&self, from: usize, to: usize) -> Result<sqlparser::ast::Expr, SqlError> {
        let dialect = MySqlDialect {};
        let rest = self.list.get(from..to).unwrap_or(&[]).to_vec();
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(rest);
        let expr = parser.parse_expr().map_err(|e| parse_error(&e))?;
        match parser.peek_token().token {
            Token::EOF => Ok(expr),
            other => Err(error::syntax(&format!("near '{other}'"))),
        }
    }

    /// The texts of the select list's items, as MySQL names unnamed columns.
    pub fn select_items(&self, text: &str) -> Vec<String> {
        let mut items = Vec::new();
        let mut at = 1;
        while matches!(self.word(at).as_str(), "DISTINCT" | "ALL" | "SQL_NO_CACHE" | "DISTINCTROW")
        {
            at += 1;
        }
        let mut start = at;
        let mut depth = 0usize;
        while let Some(token) = self.list.get(at) {
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                Token::Comma if depth == 0 => {
                    items.push(self.text_between(text, start, at));
                    start = at + 1;
                }
                Token::Word(_) if depth == 0 && self.ends_select_list(at) => break,
                _ => {}
            }
            at += 1;
        }
        items.push(self.text_between(text, start, at));
        items
    }

    fn ends_select_list(&self, at: usize) -> bool {
        matches!(
            self.word(at).as_str(),
            "FROM" | "LIMIT" | "WHERE" | "ORDER" | "GROUP" | "HAVING" | "UNION" | "INTO"
        )
    }

    fn text_between(&self, text: &str, from: usize, to: usize) -> String {
        let (Some(first), Some(last)) =
            (self.list.get(from), to.checked_sub(1).and_then(|at| self.list.get(at)))
        else {
            return String::new();
        };
        let (start, end) = (self.offset(text, first.span.start), self.offset(text, last.span.end));
        text.get(start..end).unwrap_or("").trim().to_owned()
    }
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

fn parse_error(error: &ParserError) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            error::make(1436, "HY000", "Thread stack overrun: the statement is nested too deeply")
        }
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => error::syntax(text),
    }
}

fn check_chains(list: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut levels = vec![0usize];
    let mut sets = 0usize;
    for token in list {
        match &token.token {
            Token::LParen => levels.push(0),
            Token::RParen if levels.len() > 1 => {
                levels.pop();
            }
            Token::Comma => {
                if let Some(level) = levels.last_mut() {
                    *level = 0;
                }
            }
            // Set operations make one tree of lists: commas do not end it.
            Token::Word(word) if is_set_operator(&word.value) => sets += 1,
            _ => {}
        }
        let Some(level) = levels.last_mut() else { continue };
        *level += 1;
        if *level > CHAIN_MAX || sets > SETS_MAX {
            let text = "Thread stack overrun: too many operators in one expression";
            return Err(error::make(1436, "HY000", text));
        }
    }
    Ok(())
}

fn is_set_operator(word: &str) -> bool {
    const OPERATORS: [&str; 4] = ["UNION", "EXCEPT", "INTERSECT", "MINUS"];
    OPERATORS.iter().any(|operator| operator.eq_ignore_ascii_case(word))
}

/// Splits a text at the semicolons between statements; blank statements are left out.
pub fn split_statements(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b';' => {
                parts.push(&text[start..at]);
                at += 1;
                start = at;
            }
            quote @ (b'\'' | b'"' | b'`') => at = end_of_quoted(bytes, at, quote),
            b'#' => at = end_of_line(bytes, at),
            b'-' if bytes[at..].starts_with(b"-- ") => at = end_of_line(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => at = end_of_comment(bytes, at),
            _ => at += 1,
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote != b'`' {
            at += 2;
        } else if bytes[at] == quote {
            return at + 1;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn end_of_line(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| start + at + 1)
}

fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let body = start + 2;
    let found = bytes[body.min(bytes.len())..].windows(2).position(|w| w == b"*/");
    found.map_or(bytes.len(), |at| body + at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_semicolons_outside_quotes_and_comments() {
        let text = "a 'x;\\';y'; b /* ; */ `;` ; # ;\n c -- ;\n;;";
        let parts: Vec<&str> = split_statements(text).into_iter().map(str::trim).collect();
        assert_eq!(parts, ["a 'x;\\';y'", "b /* ; */ `;`", "# ;\n c -- ;"]);
    }

    #[test]
    fn names_of_select_items_are_their_texts() {
        let text = "SELECT DISTINCT 1 +  1, f(a, b) , 'ü,' FROM t";
        let tokens = Tokens::new(text).unwrap();
        assert_eq!(tokens.select_items(text), ["1 +  1", "f(a, b)", "'ü,'"]);
    }

    #[test]
    fn long_chains_are_refused() {
        let text = format!("SELECT 1{}", "+1".repeat(5_000));
        assert_eq!(Tokens::new(&text).err().map(|e| e.errno), Some(1436));
    }
}
