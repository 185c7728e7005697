//! `INSERT … VALUES` with nothing but plain literals, read without the parser: programs that do not prepare their statements, and
//! dumps, send most of their rows so. What stands around the rows is planned once, with placeholders in their place.
//!
//! The literals are the parser's tokens. Whatever is not read here for certain as the parser reads it is left to the parser,
//! mistakes above all.

use crate::bind::number;
use lats_base::limits::COLUMNS_MAX;
use lats_mysql_syntax::lexer::Lexer;
use lats_mysql_syntax::token::{Kind, Token};
use lats_mysql_syntax::{Keyword, Mode};
use lats_values::{Collation, Value};

/// The rows of such a statement.
#[derive(Debug, PartialEq)]
pub(crate) struct LiteralRows {
    /// The statement with one row of placeholders in their place.
    pub(crate) template: Vec<u8>,
    /// Values in each row.
    pub(crate) width: usize,
    /// The values, row by row.
    pub(crate) values: Vec<Value>,
}

impl LiteralRows {
    /// False for most other statements, before any token is made.
    pub(crate) fn may_be(text: &[u8]) -> bool {
        matches!(text.trim_ascii_start().first(), Some(b'I' | b'i' | b'R' | b'r'))
    }

    /// Reads a statement; none if it is to be read by the parser, which says so if its values take more than so many bytes.
    pub(crate) fn of(text: &[u8], mode: Mode, bytes_max: usize) -> Option<Self> {
        if !Self::may_be(text) {
            return None;
        }
        let text = text.trim_ascii_start();
        let mut reader = Reader { text, mode, at: 0, values_max: bytes_max / size_of::<Value>() };
        let head = reader.end_of_head()?;
        let (width, values, end) = reader.rows()?;
        let tail = trim_end(text.get(end..)?).trim_ascii_start();
        // Behind a comment more rows may come.
        let is_comment = matches!(tail.first(), Some(b'/' | b'#' | b'-'));
        if is_comment || tail.iter().any(|byte| matches!(byte, b'?' | b';')) {
            return None;
        }
        let places = vec!["?"; width].join(",");
        let parts = [text.get(..head)?, b" (", places.as_bytes(), b") ", tail];
        Some(Self { template: parts.concat(), width, values })
    }

    /// What the values take.
    pub(crate) fn bytes(&self) -> usize {
        crate::exec::select::row_bytes(&self.values)
    }

    /// How many rows there are.
    pub(crate) fn count(&self) -> usize {
        self.values.len() / self.width
    }

    /// A row's values.
    pub(crate) fn row(&self, at: usize) -> &[Value] {
        self.values.get(at * self.width..(at + 1) * self.width).unwrap_or_default()
    }
}

/// What ends a text does not belong to it.
fn trim_end(text: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    let length = text.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    &text[..length]
}

struct Reader<'t> {
    text: &'t [u8],
    mode: Mode,
    at: usize,
    values_max: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn bytes(&self, token: Token) -> &[u8] {
        token.span().of(self.text)
    }

    fn skip_blanks(&mut self) {
        let blank = |byte: &&u8| byte.is_ascii_whitespace();
        self.at += self.rest().iter().take_while(blank).count();
    }

    /// Behind the first VALUES that is no part of a name; none if there are comments or hints before it.
    fn end_of_head(&mut self) -> Option<usize> {
        let mut lexer = Lexer::new(self.text, 0, self.mode);
        let first = lexer.next_token();
        if !matches!(first.word, Keyword::INSERT | Keyword::REPLACE) {
            return None;
        }
        self.at = first.end as usize;
        loop {
            let token = lexer.next_token();
            let between = self.text.get(self.at..token.start as usize)?;
            if !between.iter().all(u8::is_ascii_whitespace) {
                return None;
            }
            self.at = token.end as usize;
            match token.kind {
                Kind::Word if token.word == Keyword::VALUES => return Some(self.at),
                Kind::Word | Kind::Quoted | Kind::Dot => {}
                Kind::Comma | Kind::Open | Kind::Close => {}
                _ => return None,
            }
        }
    }

    /// How many values are in each row, all of them, and where the last row ends.
    fn rows(&mut self) -> Option<(usize, Vec<Value>, usize)> {
        let (mut width, mut values) = (None, Vec::new());
        loop {
            let before = values.len();
            self.row(&mut values)?;
            if values.len() > self.values_max {
                return None;
            }
            let (this, end) = (values.len() - before, self.at);
            if *width.get_or_insert(this) != this {
                return None;
            }
            if !self.take(b',') {
                return Some((width?, values, end));
            }
        }
    }

    fn row(&mut self, values: &mut Vec<Value>) -> Option<()> {
        // No table has more columns: the parser's way says so.
        let most = values.len() + COLUMNS_MAX;
        if !self.take(b'(') {
            return None;
        }
        loop {
            if values.len() == most {
                return None;
            }
            self.skip_blanks();
            values.push(self.literal()?);
            if self.take(b')') {
                return Some(());
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    /// Takes a sign that is a token by itself wherever it stands, and blanks before it.
    fn take(&mut self, wanted: u8) -> bool {
        self.skip_blanks();
        let found = self.rest().first() == Some(&wanted);
        self.at += usize::from(found);
        found
    }

    /// A literal that begins here: anything else, a comment too, is the parser's.
    fn literal(&mut self) -> Option<Value> {
        let start = self.at;
        let is_negative = self.rest().first() == Some(&b'-');
        let begin = start + usize::from(is_negative);
        let token = Lexer::new(self.text, u32::try_from(begin).ok()?, self.mode).next_token();
        if token.start as usize != begin {
            return None;
        }
        self.at = token.end as usize;
        match token.kind {
            Kind::Integer | Kind::Decimal => self.number(token, start),
            _ if is_negative => None,
            Kind::Text => self.quoted(token),
            Kind::Word if token.word == Keyword::NULL => Some(Value::Null),
            _ => None,
        }
    }

    /// Digits, with a point among them or without, from this byte on, where a sign may stand.
    fn number(&self, token: Token, start: usize) -> Option<Value> {
        let digits = self.bytes(token);
        match token.kind {
            Kind::Integer => {}
            Kind::Decimal if digits.first() != Some(&b'.') && digits.last() != Some(&b'.') => {}
            _ => return None,
        }
        // What has a sign is computed by the parser's way when it may not fit, and so is a zero below zero.
        let is_negative = start < token.start as usize;
        let is_zero = || digits.iter().all(|byte| matches!(byte, b'0' | b'.'));
        if is_negative && (digits.len() > 18 || is_zero()) {
            return None;
        }
        let text = self.text.get(start..token.end as usize)?;
        number(std::str::from_utf8(text).ok()?).ok()
    }

    /// A text in quotes, with what stands for other characters in it.
    fn quoted(&self, token: Token) -> Option<Value> {
        let (quote, inner) = self.bytes(token).split_first()?;
        let inner = inner.get(..inner.len().checked_sub(1)?)?;
        let has_escapes = !self.mode.no_backslash_escapes;
        let is_plain = !inner.contains(quote) && (!has_escapes || !inner.contains(&b'\\'));
        if is_plain {
            return Some(text_of(std::str::from_utf8(inner).ok()?.to_owned()));
        }
        let special = |byte: &u8| *byte == *quote || (has_escapes && *byte == b'\\');
        let mut found = Vec::with_capacity(inner.len());
        let mut rest = inner;
        while let Some(at) = rest.iter().position(special) {
            found.extend_from_slice(&rest[..at]);
            match (rest[at], *rest.get(at + 1)?) {
                (b'\\', escaped) if has_escapes => push_escaped(&mut found, escaped),
                // A quote that is written twice.
                (_, second) => found.push(second),
            }
            rest = &rest[at + 2..];
        }
        found.extend_from_slice(rest);
        Some(text_of(String::from_utf8(found).ok()?))
    }
}

fn text_of(text: String) -> Value {
    Value::Text(text, Collation::default())
}

/// What a byte behind a backslash stands for; the wildcards of LIKE keep theirs.
fn push_escaped(found: &mut Vec<u8>, escaped: u8) {
    if matches!(escaped, b'%' | b'_') {
        found.push(b'\\');
    }
    found.push(match escaped {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    });
}

#[cfg(test)]
mod tests;
