//! From bytes to tokens, one at a time. The lexer never fails: what it cannot read is a bad token, where the parser stops.

mod charsets;
#[cfg(test)]
mod tests;

use crate::token::{Kind, Token};
use crate::{Keyword, Mode, Span};
use alloc::vec::Vec;
pub use charsets::is_charset;

/// Version comments up to this version are read, newer ones are skipped.
pub const VERSION: u32 = 80_400;

/// Reads tokens from a text.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    mode: Mode,
    /// Within `/*!80000 … */`, whose end is skipped.
    in_version_comment: bool,
    expects: Expects,
    /// The hints that stand behind the keyword which ends at the first position.
    hints: Vec<(u32, Span)>,
}

/// What the token before demands of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Anything,
    /// Directly behind a point: a name, even if it is a keyword or begins with a digit.
    Name,
    /// Behind `@`.
    Variable,
    /// Behind `@@`.
    SystemVariable,
}

/// The bytes of names: most bytes of a statement are looked up here.
const NAME_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        bytes[at] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        at += 1;
    }
    bytes
};

fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[usize::from(byte)]
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl<'a> Lexer<'a> {
    /// A lexer that begins at a byte of the text.
    #[must_use]
    pub fn new(text: &'a [u8], start: u32, mode: Mode) -> Self {
        let (in_version_comment, expects) = (false, Expects::Anything);
        Self { text, at: start as usize, mode, in_version_comment, expects, hints: Vec::new() }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Which hints stand behind the keyword that ends here.
    #[must_use]
    pub fn hints_behind(&self, keyword_end: u32) -> Option<Span> {
        let found = self.hints.binary_search_by_key(&keyword_end, |(end, _)| *end).ok()?;
        Some(self.hints[found].1)
    }

    /// The next token.
    pub fn next_token(&mut self) -> Token {
        let expects = core::mem::replace(&mut self.expects, Expects::Anything);
        if expects == Expects::Anything
            && let Err(bad) = self.skip_blanks()
        {
            return bad;
        }
        let start = self.at;
        let (kind, word) = match expects {
            Expects::Name if is_name_byte(self.peek(0)) => (self.name(), Keyword::None),
            Expects::Name if self.peek(0) == b'.' => (self.sign(b'.'), Keyword::None),
            Expects::Variable if !matches!(self.peek(0), b'\'' | b'"' | b'`' | b'@') => {
                (self.host(), Keyword::None)
            }
            Expects::SystemVariable if self.peek(0) != b'`' => self.system_variable(),
            _ => self.token(),
        };
        if kind == Kind::At {
            self.expects = if expects == Expects::Variable {
                Expects::SystemVariable
            } else {
                Expects::Variable
            };
        }
        let token = Token { kind, word, start: start as u32, end: self.at as u32 };
        if matches!(word, Keyword::SELECT | Keyword::INSERT | Keyword::REPLACE | Keyword::UPDATE)
            || word == Keyword::DELETE
        {
            self.take_hints(token.end);
        }
        token
    }

    /// Skips blanks and comments.
    fn skip_blanks(&mut self) -> Result<(), Token> {
        loop {
            match self.peek(0) {
                byte if is_blank(byte) => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.peek(1) == b'-' && self.is_comment_dash() => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.comment()?,
                b'*' if self.in_version_comment && self.peek(1) == b'/' => {
                    self.in_version_comment = false;
                    self.at += 2;
                }
                _ if self.at >= self.text.len() && self.in_version_comment => {
                    self.in_version_comment = false;
                    let end = self.text.len() as u32;
                    let word = Keyword::None;
                    return Err(Token { kind: Kind::Bad, word, start: end, end });
                }
                _ => return Ok(()),
            }
        }
    }

    /// `--` begins a comment before a blank, a control character or the end.
    fn is_comment_dash(&self) -> bool {
        let next = self.peek(2);
        is_blank(next) || next.is_ascii_control()
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    fn comment(&mut self) -> Result<(), Token> {
        let start = self.at;
        self.at += 2;
        let mut is_skipped_version = false;
        if self.peek(0) == b'!' {
            self.at += 1;
            let digits = (0..6).take_while(|at| self.peek(*at).is_ascii_digit()).count();
            if digits < 5 {
                self.in_version_comment = true;
                return Ok(());
            }
            let number = &self.text[self.at..self.at + digits];
            let version = number.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            self.at += digits;
            if version <= VERSION {
                self.in_version_comment = true;
                return Ok(());
            }
            is_skipped_version = true;
        }
        // A comment of a newer version may have one level of comments inside.
        let mut depth = 1;
        while self.at < self.text.len() {
            if self.peek(0) == b'*' && self.peek(1) == b'/' {
                self.at += 2;
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            } else if is_skipped_version
                && self.peek(0) == b'/'
                && self.peek(1) == b'*'
                && depth == 1
            {
                self.at += 2;
                depth += 1;
            } else {
                self.at += 1;
            }
        }
        let (start, end) = (start as u32, self.text.len() as u32);
        Err(Token { kind: Kind::Bad, word: Keyword::None, start, end })
    }

    /// Takes `/*+ … */` that stands directly behind a keyword.
    fn take_hints(&mut self, keyword_end: u32) {
        let rest = &self.text[self.at..];
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        let rest = &rest[blanks..];
        if !rest.starts_with(b"/*+") {
            return;
        }
        let Some(length) = rest.windows(2).skip(3).position(|pair| pair == b"*/") else { return };
        let start = self.at + blanks + 3;
        let span = Span { start: start as u32, end: (start + length) as u32 };
        self.hints.push((keyword_end, span));
        self.at = start + length + 2;
    }

    fn token(&mut self) -> (Kind, Keyword) {
        let first = self.peek(0);
        match first {
            b'0'..=b'9' => (self.number(), Keyword::None),
            b'.' if self.peek(1).is_ascii_digit() => (self.fraction(), Keyword::None),
            b'\'' => (self.quoted(b'\'', Kind::Text), Keyword::None),
            b'"' if self.mode.ansi_quotes => (self.quoted(b'"', Kind::Quoted), Keyword::None),
            b'"' => (self.quoted(b'"', Kind::Text), Keyword::None),
            b'`' => (self.quoted(b'`', Kind::Quoted), Keyword::None),
            b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                (self.quoted(b'\'', Kind::National), Keyword::None)
            }
            b'x' | b'X' if self.peek(1) == b'\'' => (self.quoted_number(), Keyword::None),
            b'b' | b'B' if self.peek(1) == b'\'' => (self.quoted_number(), Keyword::None),
            byte if is_name_byte(byte) => self.word(),
            _ => (self.sign(first), Keyword::None),
        }
    }

    fn skip_name(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(rest.len());
    }

    fn skip_digits(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    }

    /// A name that is no keyword; what follows a point behind it is a name too.
    fn name(&mut self) -> Kind {
        self.skip_name();
        self.mark_point();
        Kind::Word
    }

    fn mark_point(&mut self) {
        if self.peek(0) == b'.' && is_name_byte(self.peek(1)) {
            // The point itself comes next, and must not begin a number.
            self.expects = Expects::Name;
        }
    }

    fn word(&mut self) -> (Kind, Keyword) {
        let start = self.at;
        self.skip_name();
        let is_qualifier = self.peek(0) == b'.' && is_name_byte(self.peek(1));
        if is_qualifier {
            self.expects = Expects::Name;
            return (Kind::Word, Keyword::None);
        }
        let word = &self.text[start..self.at];
        let keyword = Keyword::find(word);
        if keyword != Keyword::None
            && (keyword.class() != crate::keyword::Class::Function || self.is_before_parenthesis())
        {
            return (Kind::Word, keyword);
        }
        if word[0] == b'_' && is_charset(&word[1..]) {
            return (Kind::Introducer, Keyword::None);
        }
        (Kind::Word, Keyword::None)
    }

    fn is_before_parenthesis(&self) -> bool {
        let rest = &self.text[self.at..];
        let blanks = if self.mode.ignore_space {
            rest.iter().take_while(|byte| is_blank(**byte)).count()
        } else {
            0
        };
        rest.get(blanks) == Some(&b'(')
    }

    fn host(&mut self) -> Kind {
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"._$".contains(byte) || *byte >= 0x80;
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        Kind::Host
    }

    fn system_variable(&mut self) -> (Kind, Keyword) {
        let start = self.at;
        self.skip_name();
        if self.at == start {
            return (Kind::Bad, Keyword::None);
        }
        if self.peek(0) == b'.' {
            self.mark_point();
        }
        let word = &self.text[start..self.at];
        (Kind::Word, Keyword::find(word))
    }

    /// Digits, and all that can follow them: a number, or a name that begins with digits.
    fn number(&mut self) -> Kind {
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'b') {
            let is_hex = self.peek(1) == b'x';
            let is_digit = |byte: u8| {
                if is_hex { byte.is_ascii_hexdigit() } else { matches!(byte, b'0' | b'1') }
            };
            let digits =
                self.text[self.at + 2..].iter().take_while(|byte| is_digit(**byte)).count();
            if digits > 0 && !is_name_byte(self.peek(2 + digits)) {
                self.at += 2 + digits;
                return if is_hex { Kind::Hex } else { Kind::Bits };
            }
            return self.name();
        }
        self.skip_digits();
        match self.peek(0) {
            b'.' => {
                self.at += 1;
                self.skip_digits();
                self.exponent(Kind::Decimal)
            }
            b'e' | b'E' => {
                let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
                if self.peek(1 + sign).is_ascii_digit() {
                    self.at += 1 + sign;
                    self.skip_digits();
                    return Kind::Float;
                }
                self.name()
            }
            byte if is_name_byte(byte) => self.name(),
            _ => Kind::Integer,
        }
    }

    fn fraction(&mut self) -> Kind {
        self.at += 1;
        self.skip_digits();
        self.exponent(Kind::Decimal)
    }

    fn exponent(&mut self, without: Kind) -> Kind {
        if !matches!(self.peek(0), b'e' | b'E') {
            return without;
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if !self.peek(1 + sign).is_ascii_digit() {
            self.at += 1;
            return Kind::Bad;
        }
        self.at += 1 + sign;
        self.skip_digits();
        Kind::Float
    }

    /// `x'41'` and `b'01'`.
    fn quoted_number(&mut self) -> Kind {
        let is_hex = matches!(self.peek(0), b'x' | b'X');
        let is_digit =
            |byte: u8| if is_hex { byte.is_ascii_hexdigit() } else { matches!(byte, b'0' | b'1') };
        let digits = self.text[self.at + 2..].iter().take_while(|byte| is_digit(**byte)).count();
        if self.peek(2 + digits) != b'\'' || (is_hex && digits % 2 == 1) {
            self.at += 1;
            return Kind::Bad;
        }
        self.at += 3 + digits;
        if is_hex { Kind::Hex } else { Kind::Bits }
    }

    fn quoted(&mut self, quote: u8, kind: Kind) -> Kind {
        let start = self.at;
        let has_escapes = kind != Kind::Quoted && !self.mode.no_backslash_escapes;
        self.at += 1;
        loop {
            let rest = &self.text[self.at.min(self.text.len())..];
            let stop = |byte: &u8| *byte == quote || (has_escapes && *byte == b'\\');
            let Some(length) = rest.iter().position(stop) else {
                self.at = start + 1;
                return Kind::Bad;
            };
            self.at += length;
            let is_escape = self.peek(0) == b'\\' && has_escapes;
            if is_escape || self.peek(1) == quote {
                self.at += 2;
            } else {
                self.at += 1;
                break;
            }
        }
        kind
    }

    fn sign(&mut self, first: u8) -> Kind {
        if self.at >= self.text.len() {
            return Kind::End;
        }
        let (second, third) = (self.peek(1), self.peek(2));
        let (kind, length) = match (first, second, third) {
            (b'<', b'=', b'>') => (Kind::NullSafeEqual, 3),
            (b'-', b'>', b'>') => (Kind::LongArrow, 3),
            (b'<', b'=', _) => (Kind::LessEqual, 2),
            (b'<', b'>', _) | (b'!', b'=', _) => (Kind::NotEqual, 2),
            (b'<', b'<', _) => (Kind::ShiftLeft, 2),
            (b'>', b'=', _) => (Kind::GreaterEqual, 2),
            (b'>', b'>', _) => (Kind::ShiftRight, 2),
            (b'-', b'>', _) => (Kind::Arrow, 2),
            (b'&', b'&', _) => (Kind::AndAnd, 2),
            (b'|', b'|', _) => (Kind::PipePipe, 2),
            (b':', b'=', _) => (Kind::Assign, 2),
            _ => (single(first), 1),
        };
        if kind == Kind::Dot && is_name_byte(second) {
            self.expects = Expects::Name;
        }
        self.at += length;
        kind
    }
}

fn single(sign: u8) -> Kind {
    match sign {
        b'?' => Kind::Parameter,
        b'@' => Kind::At,
        b'+' => Kind::Plus,
        b'-' => Kind::Minus,
        b'*' => Kind::Star,
        b'/' => Kind::Slash,
        b'%' => Kind::Percent,
        b'(' => Kind::Open,
        b')' => Kind::Close,
        b'{' => Kind::OpenBrace,
        b'}' => Kind::CloseBrace,
        b',' => Kind::Comma,
        b'.' => Kind::Dot,
        b';' => Kind::Semicolon,
        b':' => Kind::Colon,
        b'=' => Kind::Equal,
        b'<' => Kind::Less,
        b'>' => Kind::Greater,
        b'&' => Kind::Ampersand,
        b'|' => Kind::Pipe,
        b'^' => Kind::Caret,
        b'~' => Kind::Tilde,
        b'!' => Kind::Bang,
        _ => Kind::Bad,
    }
}
