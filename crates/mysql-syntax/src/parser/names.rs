//! Names, texts and numbers.

use super::{Parser, Result};
use crate::keyword::Class;
use crate::token::{Kind, Token};
use crate::tree::{Account, TableName, Text};
use crate::{Keyword, Span, SyntaxError};
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    /// True if a token can be a name.
    pub(super) fn is_name(token: Token) -> bool {
        match token.kind {
            Kind::Quoted => true,
            Kind::Word => !token.word.is_reserved(),
            _ => false,
        }
    }

    pub(super) fn at_name(&self) -> bool {
        Self::is_name(self.token())
    }

    /// The bytes of a token that is a name, without quotes.
    pub(super) fn name_text(&mut self, token: Token) -> Text {
        let bytes = token.span().of(self.text);
        if token.kind == Kind::Quoted { self.unquoted(bytes) } else { self.tree.add_text(bytes) }
    }

    /// A quoted name without its quotes.
    fn unquoted(&mut self, bytes: &[u8]) -> Text {
        let (quote, inner) = (bytes[0], &bytes[1..bytes.len() - 1]);
        let start = self.tree.bytes.len();
        let mut rest = inner;
        while let Some(at) = rest.iter().position(|byte| *byte == quote) {
            self.tree.bytes.extend_from_slice(&rest[..=at]);
            rest = rest.get(at + 2..).unwrap_or(&[]);
        }
        self.tree.bytes.extend_from_slice(rest);
        self.tree.text_from(start)
    }

    /// Any name.
    pub(super) fn name(&mut self) -> Result<Text> {
        let token = self.token();
        if !Self::is_name(token) {
            return Err(self.error());
        }
        self.advance();
        Ok(self.name_text(token))
    }

    /// Names that commas part.
    pub(super) fn names(&mut self) -> Result<Vec<Text>> {
        self.comma_list(Self::name)
    }

    /// `(a, b)`
    pub(super) fn names_in_parentheses(&mut self) -> Result<Vec<Text>> {
        self.expect(Kind::Open)?;
        let names = self.names()?;
        self.expect(Kind::Close)?;
        Ok(names)
    }

    /// The label of a block or loop.
    pub(super) fn label(&mut self) -> Result<Text> {
        let class = self.token().word.class();
        if matches!(class, Class::NotLabel | Class::NeitherRoleNorLabel) && self.is(Kind::Word) {
            return Err(self.error());
        }
        self.name()
    }

    /// `schema.table`
    pub(super) fn table_name(&mut self) -> Result<TableName> {
        let start = self.token().start;
        let first = self.name()?;
        if self.eat(Kind::Dot) {
            let name = self.name()?;
            return Ok(TableName { schema: first, name, span: self.span_from(start) });
        }
        Ok(TableName { schema: Text::NONE, name: first, span: self.span_from(start) })
    }

    pub(super) fn table_names(&mut self) -> Result<Vec<TableName>> {
        self.comma_list(Self::table_name)
    }

    /// A name, or a text in quotes.
    pub(super) fn name_or_text(&mut self) -> Result<Text> {
        let token = self.token();
        match token.kind {
            Kind::Text => self.text(),
            Kind::Host => {
                self.advance();
                Ok(self.tree.add_text(token.span().of(self.text)))
            }
            _ => self.name(),
        }
    }

    /// One text in quotes.
    pub(super) fn text(&mut self) -> Result<Text> {
        let token = self.token();
        if token.kind != Kind::Text {
            return Err(self.error());
        }
        self.advance();
        let start = self.tree.bytes.len();
        self.push_text(token);
        Ok(self.tree.text_from(start))
    }

    /// A text in quotes, or a number in hexadecimal or binary digits.
    pub(super) fn text_or_digits(&mut self) -> Result<Text> {
        if matches!(self.token().kind, Kind::Hex | Kind::Bits) {
            let token = self.token();
            self.advance();
            return Ok(self.tree.add_text(token.span().of(self.text)));
        }
        self.text()
    }

    /// Adds the content of a text in quotes to the pool.
    pub(super) fn push_text(&mut self, token: Token) {
        let bytes = token.span().of(self.text);
        let bytes = if token.kind == Kind::National { &bytes[1..] } else { bytes };
        let (quote, mut rest) = (bytes[0], &bytes[1..bytes.len() - 1]);
        let has_escapes = !self.mode.no_backslash_escapes;
        let pool = &mut self.tree.bytes;
        let special = |byte: &u8| *byte == quote || (has_escapes && *byte == b'\\');
        while let Some(at) = rest.iter().position(special) {
            pool.extend_from_slice(&rest[..at]);
            let next = rest.get(at + 1).copied().unwrap_or(quote);
            if rest[at] == quote {
                pool.push(quote);
            } else {
                match next {
                    b'0' => pool.push(0),
                    b'b' => pool.push(8),
                    b'n' => pool.push(b'\n'),
                    b'r' => pool.push(b'\r'),
                    b't' => pool.push(b'\t'),
                    b'Z' => pool.push(26),
                    // These keep their backslash, for LIKE.
                    b'%' | b'_' => pool.extend_from_slice(&[b'\\', next]),
                    _ => pool.push(next),
                }
            }
            rest = rest.get(at + 2..).unwrap_or(&[]);
        }
        pool.extend_from_slice(rest);
    }

    /// An integer of decimal digits, as it was written.
    pub(super) fn integer(&mut self) -> Result<Text> {
        let token = self.token();
        if token.kind != Kind::Integer {
            return Err(self.error());
        }
        self.advance();
        Ok(self.tree.add_text(token.span().of(self.text)))
    }

    /// An integer in decimal or hexadecimal digits.
    pub(super) fn number(&mut self) -> Result<Text> {
        let token = self.token();
        if !matches!(token.kind, Kind::Integer | Kind::Hex) {
            return Err(self.error());
        }
        self.advance();
        Ok(self.tree.add_text(token.span().of(self.text)))
    }

    /// `(5)`, if there is one.
    pub(super) fn optional_length(&mut self) -> Result<Text> {
        if !self.eat(Kind::Open) {
            return Ok(Text::NONE);
        }
        let length = self.integer()?;
        self.expect(Kind::Close)?;
        Ok(length)
    }

    /// The name of a character set, which may be a text or BINARY.
    pub(super) fn charset_name(&mut self) -> Result<Text> {
        if self.is_word(Keyword::BINARY) {
            self.advance();
            return Ok(self.tree.add_text(b"binary"));
        }
        self.name_or_text()
    }

    /// The name of a collation.
    pub(super) fn collation_name(&mut self) -> Result<Text> {
        self.charset_name()
    }

    /// CHARSET, CHARACTER SET or CHAR SET, if it comes next.
    pub(super) fn eat_charset(&mut self) -> bool {
        self.eat_word(Keyword::CHARSET)
            || self.eat_words(&[Keyword::CHARACTER, Keyword::SET])
            || self.eat_words(&[Keyword::CHAR, Keyword::SET])
    }

    pub(super) fn at_charset(&self) -> bool {
        self.is_word(Keyword::CHARSET)
            || (matches!(self.token().word, Keyword::CHARACTER | Keyword::CHAR)
                && self.word_ahead(1) == Keyword::SET)
    }

    /// `@name`, whose `@` is passed.
    pub(super) fn variable_name(&mut self) -> Result<Text> {
        self.name_or_text()
    }

    /// An account, or CURRENT_USER.
    pub(super) fn account(&mut self) -> Result<Account> {
        if self.eat_word(Keyword::CURRENT_USER) {
            if self.eat(Kind::Open) {
                self.expect(Kind::Close)?;
            }
            return Ok(Account::Current);
        }
        let user = self.name_or_text()?;
        let host = if self.eat(Kind::At) { self.name_or_text()? } else { Text::NONE };
        Ok(Account::Name { user, host })
    }

    /// A role, which has fewer names than an account.
    pub(super) fn role(&mut self) -> Result<Account> {
        let class = self.token().word.class();
        if matches!(class, Class::NotRole | Class::NeitherRoleNorLabel) && self.is(Kind::Word) {
            return Err(self.error());
        }
        let user = self.name_or_text()?;
        let host = if self.eat(Kind::At) { self.name_or_text()? } else { Text::NONE };
        Ok(Account::Name { user, host })
    }

    /// IF EXISTS.
    pub(super) fn eat_if_exists(&mut self) -> Result<bool> {
        let found = self.eat_word(Keyword::IF);
        if found {
            self.expect_word(Keyword::EXISTS)?;
        }
        Ok(found)
    }

    /// IF NOT EXISTS.
    pub(super) fn eat_if_not_exists(&mut self) -> Result<bool> {
        let found = self.eat_word(Keyword::IF);
        if found {
            self.expect_words(&[Keyword::NOT, Keyword::EXISTS])?;
        }
        Ok(found)
    }

    pub(super) fn usage(&self, one: &str, other: &str, at: Span) -> Box<SyntaxError> {
        Box::new(SyntaxError::usage(one, other, at.start))
    }
}
