//! Statements that need no tree are described by patterns, and checked against them.
//!
//! A pattern is a text of pieces with blanks between them: words and signs stand for themselves, `<name>` and its like for
//! what the parser reads, `[ a | b ]` for at most one, `[ a | b ]*` for any number, `{ a | b }` for exactly one,
//! `{ a | b }*` for at least one, `{ a | b },` for a list with commas. The next tokens decide which way to go.

use super::other::part;
use super::{AHEAD, Parser, Result};
use crate::token::{Kind, Token};
use alloc::vec::Vec;

/// The piece that closes the group which begins at the first piece.
fn closing(pieces: &[&str]) -> usize {
    let mut depth = 0;
    for (at, piece) in pieces.iter().enumerate() {
        match piece.as_bytes()[0] {
            b'[' | b'{' if piece.len() == 1 => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    pieces.len() - 1
}

/// The alternatives of a group.
fn alternatives<'p>(pieces: &'p [&'static str]) -> Vec<&'p [&'static str]> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, piece) in pieces.iter().enumerate() {
        match *piece {
            "[" | "{" => depth += 1,
            "|" if depth == 0 => {
                found.push(&pieces[start..at]);
                start = at + 1;
            }
            piece if piece.starts_with([']', '}']) => depth -= 1,
            _ => {}
        }
    }
    found.push(&pieces[start..]);
    found
}

fn pieces_of(pattern: &'static str) -> Vec<&'static str> {
    pattern.split_ascii_whitespace().collect()
}

impl Parser<'_> {
    /// True if the next tokens can begin this pattern.
    pub(super) fn starts(&self, pattern: &'static str) -> bool {
        self.starts_with(&pieces_of(pattern), 0)
    }

    /// True if the next token is the first word of this pattern.
    pub(super) fn has_first_word(&self, pattern: &'static str) -> bool {
        pattern.split_ascii_whitespace().next().is_some_and(|word| self.is_piece(word, 0))
    }

    /// Passes what the pattern describes.
    pub(super) fn follow(&mut self, pattern: &'static str) -> Result<()> {
        self.follow_all(&pieces_of(pattern))
    }

    fn is_piece(&self, piece: &str, ahead: usize) -> bool {
        let token = self.ahead(ahead);
        token.kind != Kind::End && token.span().of(self.text).eq_ignore_ascii_case(piece.as_bytes())
    }

    fn starts_with(&self, pieces: &[&'static str], ahead: usize) -> bool {
        let Some(first) = pieces.first() else { return ahead > 0 };
        if ahead >= AHEAD {
            return true;
        }
        match first.as_bytes()[0] {
            b'[' if first.len() == 1 => {
                let close = closing(pieces);
                self.any_starts(&pieces[1..close], ahead)
                    || self.starts_with(&pieces[close + 1..], ahead)
            }
            b'{' if first.len() == 1 => self.any_starts(&pieces[1..closing(pieces)], ahead),
            b'<' if first.len() > 2 => match part(first) {
                Some(part) => self.starts_with(&pieces_of(part), ahead),
                None => self.can_be(first, self.ahead(ahead)),
            },
            _ => self.is_piece(first, ahead) && self.starts_with(&pieces[1..], ahead + 1),
        }
    }

    fn any_starts(&self, pieces: &[&'static str], ahead: usize) -> bool {
        alternatives(pieces).iter().any(|one| !one.is_empty() && self.starts_with(one, ahead))
    }

    fn follow_all(&mut self, pieces: &[&'static str]) -> Result<()> {
        let mut at = 0;
        while at < pieces.len() {
            if !matches!(pieces[at], "[" | "{") {
                self.follow_piece(pieces[at])?;
                at += 1;
                continue;
            }
            let close = at + closing(&pieces[at..]);
            let inner = &pieces[at + 1..close];
            match pieces[close] {
                "]" => {
                    if self.any_starts(inner, 0) {
                        self.follow_one(inner)?;
                    }
                }
                "]*" => {
                    while self.any_starts(inner, 0) {
                        self.follow_one(inner)?;
                    }
                }
                "}*" => {
                    self.follow_one(inner)?;
                    while self.any_starts(inner, 0) {
                        self.follow_one(inner)?;
                    }
                }
                "}," => {
                    self.follow_one(inner)?;
                    while self.eat(Kind::Comma) {
                        self.follow_one(inner)?;
                    }
                }
                _ => self.follow_one(inner)?,
            }
            at = close + 1;
        }
        Ok(())
    }

    fn follow_one(&mut self, inner: &[&'static str]) -> Result<()> {
        for one in alternatives(inner) {
            if self.starts_with(one, 0) {
                return self.follow_all(one);
            }
        }
        // None fits; the one that has the next word at least says where the error is.
        for one in alternatives(inner) {
            if one.first().is_some_and(|first| self.is_piece(first, 0)) {
                return self.follow_all(one);
            }
        }
        Err(self.error())
    }

    /// True if a token can begin what the piece stands for.
    fn can_be(&self, piece: &str, token: Token) -> bool {
        let is_name = Self::is_name(token);
        match piece {
            "<name>" | "<table>" | "<label>" => is_name,
            "<text>" => token.kind == Kind::Text,
            "<nametext>" | "<user>" | "<role>" => {
                is_name || token.kind == Kind::Text || token.word == crate::Keyword::CURRENT_USER
            }
            "<int>" => token.kind == Kind::Integer,
            "<number>" => {
                matches!(token.kind, Kind::Integer | Kind::Hex | Kind::Decimal | Kind::Float)
            }
            "<size>" => token.kind == Kind::Integer || is_name,
            "<limit>" => matches!(token.kind, Kind::Integer | Kind::Parameter) || is_name,
            "<variable>" => token.kind == Kind::At,
            "<value>" => matches!(token.kind, Kind::Integer | Kind::Text | Kind::Hex | Kind::Bits),
            _ => !matches!(token.kind, Kind::End | Kind::Semicolon | Kind::Close | Kind::Comma),
        }
    }

    fn follow_piece(&mut self, piece: &'static str) -> Result<()> {
        match piece {
            "<name>" => self.name().map(drop),
            "<label>" => self.label().map(drop),
            "<table>" => self.table_name().map(drop),
            "<text>" => self.text().map(drop),
            "<nametext>" => self.name_or_text().map(drop),
            "<user>" => self.account().map(drop),
            "<role>" => self.role().map(drop),
            "<expr>" => self.expr().map(drop),
            "<literal>" => self.signed_literal().map(drop),
            "<limit>" => self.limit_number().map(drop),
            "<query>" => self.query_expression().map(drop),
            "<statement>" => self.statement().map(drop),
            "<format>" => self.file_format().map(drop),
            "<partitions>" => self.partition_definitions().map(drop),
            "<assignments>" => self.assignments().map(drop),
            "<variable>" => {
                self.expect(Kind::At)?;
                self.variable_name().map(drop)
            }
            "<value>" => self.text_literal_or_integer(),
            "<int>" | "<number>" | "<size>" => {
                if !self.can_be(piece, self.token()) {
                    return Err(self.error());
                }
                self.advance();
                Ok(())
            }
            _ if part(piece).is_some() => self.follow(part(piece).unwrap_or("")),
            _ if self.is_piece(piece, 0) => {
                self.advance();
                Ok(())
            }
            _ => Err(self.error()),
        }
    }

    fn text_literal_or_integer(&mut self) -> Result<()> {
        if self.eat(Kind::Integer) { Ok(()) } else { self.text_literal().map(drop) }
    }
}
