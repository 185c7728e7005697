//! Tokens: the words, literals and signs that a text consists of.

use crate::{Keyword, Span};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The end of the text.
    End,
    /// Something that cannot be read: a text or comment without end, or a stray character.
    Bad,
    /// A word without quotes: a name or a keyword.
    Word,
    /// A name in quotes.
    Quoted,
    /// What stands behind `@` without quotes: a variable's name or a host; it may be empty.
    Host,
    /// `'text'`.
    Text,
    /// `N'text'`.
    National,
    /// `_utf8mb4` and its like.
    Introducer,
    /// `0x41` or `x'41'`.
    Hex,
    /// `0b01` or `b'01'`.
    Bits,
    /// Digits.
    Integer,
    /// Digits and a point.
    Decimal,
    /// A number with an exponent.
    Float,
    /// `?`
    Parameter,
    /// `@`
    At,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `:=`
    Assign,
    /// `=`
    Equal,
    /// `<=>`
    NullSafeEqual,
    /// `<>` or `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `&`
    Ampersand,
    /// `&&`
    AndAnd,
    /// `|`
    Pipe,
    /// `||`
    PipePipe,
    /// `^`
    Caret,
    /// `~`
    Tilde,
    /// `!`
    Bang,
    /// `->`
    Arrow,
    /// `->>`
    LongArrow,
}

/// A token and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Which keyword it is, if it is one.
    pub word: Keyword,
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Token {
    /// The place of the token.
    #[must_use]
    pub fn span(self) -> Span {
        Span { start: self.start, end: self.end }
    }
}
