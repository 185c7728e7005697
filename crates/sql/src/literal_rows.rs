//! `INSERT … VALUES` with nothing but plain literals, read without the parser: programs that do not prepare their statements, and
//! dumps, send most of their rows so. What stands around the rows is planned once, with placeholders in their place.
//!
//! Whatever is not read here for certain as the parser reads it is left to the parser, mistakes above all.

use crate::bind::number;
use lats_base::limits::COLUMNS_MAX;
use lats_values::{Collation, Value};

/// The rows of such a statement.
#[derive(Debug, PartialEq)]
pub(crate) struct LiteralRows {
    /// The statement with one row of placeholders in their place.
    pub(crate) template: String,
    /// Values in each row.
    pub(crate) width: usize,
    /// The values, row by row.
    pub(crate) values: Vec<Value>,
}

impl LiteralRows {
    /// Reads a statement; none if it is to be read by the parser.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = text.trim_ascii_start();
        if !["INSERT", "REPLACE"].iter().any(|word| begins_with_word(text, word)) {
            return None;
        }
        let head = end_of_head(text.as_bytes())?;
        let mut reader = Reader { text, at: head };
        let (width, values) = reader.rows()?;
        let tail = text.get(reader.at..)?.trim_ascii();
        let tail = tail.strip_suffix(';').unwrap_or(tail);
        if tail.contains(['?', ';']) {
            return None;
        }
        let head = text.get(..head)?;
        let places = vec!["?"; width].join(",");
        Some(Self { template: format!("{head} ({places}) {tail}"), width, values })
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

fn begins_with_word(text: &str, word: &str) -> bool {
    let bytes = text.as_bytes();
    let (found, behind) = (bytes.get(..word.len()), bytes.get(word.len()));
    found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
        && !behind.is_some_and(|byte| is_in_word(*byte))
}

/// What a name or a number may go on with.
fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'@') || byte >= 0x80
}

/// Behind the first VALUES that is no part of a name.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'`' => at += 2 + bytes.get(at + 1..)?.iter().position(|byte| *byte == b'`')?,
            // Texts, comments, placeholders, hints.
            b'\'' | b'"' | b'#' | b'-' | b'/' | b'*' | b'?' | b';' => return None,
            byte if is_in_word(byte) => {
                let word = &bytes[at..];
                let length = word.iter().position(|byte| !is_in_word(*byte))?;
                at += length;
                if word[..length].eq_ignore_ascii_case(b"VALUES") {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    /// How many values are in each row, and all of them.
    fn rows(&mut self) -> Option<(usize, Vec<Value>)> {
        let (mut width, mut values) = (None, Vec::new());
        loop {
            let before = values.len();
            self.row(&mut values)?;
            let this = values.len() - before;
            if *width.get_or_insert(this) != this {
                return None;
            }
            if !self.take(b',') {
                return Some((width?, values));
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

    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().iter().take_while(blank).count();
    }

    /// Takes this byte, and blanks before it.
    fn take(&mut self, wanted: u8) -> bool {
        self.skip_blanks();
        let found = self.rest().first() == Some(&wanted);
        self.at += usize::from(found);
        found
    }

    fn literal(&mut self) -> Option<Value> {
        match self.rest().first()? {
            quote @ (b'\'' | b'"') => self.quoted(*quote),
            b'0'..=b'9' | b'-' => self.number(),
            b'n' | b'N' if begins_with_word(self.text.get(self.at..)?, "NULL") => {
                self.at += "NULL".len();
                Some(Value::Null)
            }
            _ => None,
        }
    }

    /// Digits, with a point among them or without.
    fn number(&mut self) -> Option<Value> {
        let negative = self.rest().first() == Some(&b'-');
        let digits = self.rest().get(usize::from(negative)..)?;
        let length = digits.iter().position(|byte| !is_in_word(*byte))?;
        let digits = &digits[..length];
        let plain = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let mut parts = digits.splitn(2, |byte| *byte == b'.');
        let (whole, fraction) = (parts.next()?, parts.next());
        if !plain(whole) || !fraction.is_none_or(plain) {
            return None;
        }
        // What has a sign is computed by the parser's way when it may not fit, and so is a zero below zero.
        let is_zero = digits.iter().all(|byte| matches!(byte, b'0' | b'.'));
        if negative && (length > 18 || is_zero) {
            return None;
        }
        let end = self.at + usize::from(negative) + length;
        let value = number(self.text.get(self.at..end)?).ok()?;
        self.at = end;
        Some(value)
    }

    /// A text in quotes, with what stands for other characters in it.
    fn quoted(&mut self, quote: u8) -> Option<Value> {
        self.at += 1;
        let ends = |byte: &u8| *byte == quote || *byte == b'\\';
        let length = self.rest().iter().position(ends)?;
        let mut found = self.text.get(self.at..self.at + length)?.to_owned();
        self.at += length;
        loop {
            let second = self.text.get(self.at + 1..)?.chars().next();
            match (self.rest().first()?, second) {
                (b'\\', second) => {
                    let second = second?;
                    self.at += 1 + second.len_utf8();
                    push_escaped(&mut found, second);
                }
                (_, Some(second)) if second == char::from(quote) => {
                    self.at += 2;
                    found.push(second);
                }
                _ => {
                    self.at += 1;
                    return Some(Value::Text(found, Collation::default()));
                }
            }
            let length = self.rest().iter().position(ends)?;
            found.push_str(self.text.get(self.at..self.at + length)?);
            self.at += length;
        }
    }
}

/// What a character behind a backslash stands for; the wildcards of LIKE keep theirs.
fn push_escaped(found: &mut String, escaped: char) {
    if matches!(escaped, '%' | '_') {
        found.push('\\');
    }
    found.push(match escaped {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'Z' => '\u{1a}',
        other => other,
    });
}

#[cfg(test)]
mod tests;
