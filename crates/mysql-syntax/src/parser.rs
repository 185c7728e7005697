//! The parser: recursive descent over tokens, without going back, and with a limit to its depth.

mod account;
mod aggregate;
mod alter_table;
mod change;
mod create;
mod create_table;
mod expr;
mod from;
mod function;
mod hints;
mod insert;
mod key;
mod names;
mod other;
mod partition;
mod pattern;
mod primary;
mod program;
mod query;
mod select;
mod set;
mod show;
mod statement;
mod transaction;
mod types;
mod utility;

use crate::lexer::Lexer;
use crate::token::{Kind, Token};
use crate::tree::{ExprId, List, Offset, Parsed, Text, Tree};
use crate::{Keyword, Mode, Span, SyntaxError};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How deep a statement may be nested, in steps of the parser; a pair of parentheses takes one or two.
pub const DEPTH_MAX: u32 = 2_100;

/// Tokens that the parser may look ahead.
const AHEAD: usize = 5;

pub(crate) type Result<T> = core::result::Result<T, Box<SyntaxError>>;

/// A text being parsed.
pub(crate) struct Parser<'a> {
    text: &'a [u8],
    /// Where the statement begins.
    start: u32,
    mode: Mode,
    lexer: Lexer<'a>,
    tokens: Vec<Token>,
    at: usize,
    tree: Tree,
    depth: u32,
    /// Expressions of the lists that are being read.
    scratch: Vec<ExprId>,
    /// Within a stored program, where local variables may be assigned to.
    is_in_program: bool,
    /// In how many parentheses around queries the parser is.
    query_nesting: u32,
    /// Calls whose arguments have names.
    named_arguments: Vec<ExprId>,
    /// What tokens and tree may take, when it is looked at next, by tokens, and whether they have taken more.
    bytes_max: usize,
    look_at: usize,
    is_full: bool,
}

/// Tokens between two looks at the memory that they and the tree take.
const TOKENS_BETWEEN_LOOKS: usize = 1_024;
/// What lists outside of the tree's arenas take for each token, at most: items of SELECT, rows, columns.
const LIST_BYTES_PER_TOKEN: usize = 16;

/// Parses the first statement from a byte of the text on, and says where the next begins.
///
/// # Errors
/// MySQL's: 1064 for a text that is no statement, 1065 for no statement, 1436 for a statement that is nested too deeply,
/// and others that MySQL's parser gives.
pub fn parse(text: &[u8], start: u32, mode: Mode) -> core::result::Result<Parsed, SyntaxError> {
    parse_within(text, start, mode, usize::MAX)
}

/// The same, where tokens and tree may take so many bytes.
///
/// # Errors
/// As [`parse`]; 3170 if they need more.
pub fn parse_within(
    text: &[u8],
    start: u32,
    mode: Mode,
    bytes_max: usize,
) -> core::result::Result<Parsed, SyntaxError> {
    // As in MySQL, what ends the text does not belong to it.
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';' || *byte == 0x0b;
    let length = text.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    let text = &text[..length.max((start as usize).min(text.len()))];
    let skipped = text[(start as usize).min(text.len())..].iter();
    let start = start + skipped.take_while(|byte| byte.is_ascii_whitespace()).count() as u32;
    if u32::try_from(text.len()).is_err() {
        return Err(SyntaxError::new(
            1153,
            "08S01",
            "Got a packet bigger than 'max_allowed_packet' bytes",
            0,
        ));
    }
    let mut parser = Parser::new(text, start, mode);
    parser.bytes_max = bytes_max;
    let parsed = parser.run();
    match parser.is_full {
        false => parsed.map_err(|error| *error),
        // It saw an end that is none.
        true => Err(SyntaxError::too_large(bytes_max, start)),
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], start: u32, mode: Mode) -> Self {
        let lexer = Lexer::new(text, start, mode);
        let (tokens, scratch) = (Vec::new(), Vec::new());
        let tree = Tree::default();
        let mut parser = Self {
            text,
            start,
            mode,
            lexer,
            tokens,
            at: 0,
            tree,
            depth: 0,
            scratch,
            is_in_program: false,
            query_nesting: 0,
            named_arguments: Vec::new(),
            bytes_max: usize::MAX,
            look_at: TOKENS_BETWEEN_LOOKS,
            is_full: false,
        };
        parser.fill();
        parser
    }

    fn run(&mut self) -> Result<Parsed> {
        let first = self.token();
        if first.kind == Kind::End {
            return Err(Box::new(SyntaxError::empty(first.start)));
        }
        let statement = self.statement()?;
        let span = first.span().to(self.last_span());
        let next = match self.token().kind {
            Kind::End => None,
            Kind::Semicolon => {
                let behind = self.token().end;
                let rest = &self.text[behind as usize..];
                let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                (blanks < rest.len()).then_some(Offset(behind + blanks as u32))
            }
            _ => return Err(self.error()),
        };
        let tree = core::mem::take(&mut self.tree);
        let named_arguments = core::mem::take(&mut self.named_arguments);
        Ok(Parsed { tree, statement, span, next, named_arguments })
    }

    /// Reads tokens, so that all that may be looked at are there.
    fn fill(&mut self) {
        while self.tokens.len() <= self.at + AHEAD {
            self.read();
        }
    }

    /// Reads a token. The text ends for a parser that is full.
    fn read(&mut self) {
        if self.tokens.len() >= self.look_at {
            self.look_at_memory();
        }
        let token = match self.is_full {
            false => self.lexer.next_token(),
            true => {
                let end = self.text.len() as u32;
                Token { kind: Kind::End, word: Keyword::None, start: end, end }
            }
        };
        self.tokens.push(token);
    }

    #[cold]
    fn look_at_memory(&mut self) {
        self.look_at = self.tokens.len() + TOKENS_BETWEEN_LOOKS;
        let tokens = self.tokens.len() * (size_of::<Token>() + LIST_BYTES_PER_TOKEN);
        let lists = self.scratch.len() * size_of::<ExprId>();
        self.is_full |= tokens + lists + self.tree.used_bytes() > self.bytes_max;
    }

    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn ahead(&self, count: usize) -> Token {
        self.tokens[self.at + count]
    }

    fn word_ahead(&self, count: usize) -> Keyword {
        self.tokens[self.at + count].word
    }

    fn kind_ahead(&self, count: usize) -> Kind {
        self.tokens[self.at + count].kind
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.tokens.len() <= self.at + AHEAD {
            self.read();
        }
    }

    fn is(&self, kind: Kind) -> bool {
        self.token().kind == kind
    }

    fn is_word(&self, word: Keyword) -> bool {
        self.token().word == word
    }

    /// True if the next tokens are these words.
    fn are_words(&self, words: &[Keyword]) -> bool {
        words.iter().enumerate().all(|(at, word)| self.word_ahead(at) == *word)
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.is(kind);
        if found {
            self.advance();
        }
        found
    }

    fn eat_word(&mut self, word: Keyword) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Passes these words if all of them come next.
    fn eat_words(&mut self, words: &[Keyword]) -> bool {
        let found = self.are_words(words);
        if found {
            words.iter().for_each(|_| self.advance());
        }
        found
    }

    /// Passes one of these words, if one comes next.
    fn eat_one_of(&mut self, words: &[Keyword]) -> Option<Keyword> {
        let word = self.token().word;
        let found = word != Keyword::None && words.contains(&word);
        found.then(|| {
            self.advance();
            word
        })
    }

    fn expect(&mut self, kind: Kind) -> Result<()> {
        if self.eat(kind) { Ok(()) } else { Err(self.error()) }
    }

    fn expect_word(&mut self, word: Keyword) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.error()) }
    }

    fn expect_words(&mut self, words: &[Keyword]) -> Result<()> {
        words.iter().try_for_each(|word| self.expect_word(*word))
    }

    fn expect_one_of(&mut self, words: &[Keyword]) -> Result<Keyword> {
        self.eat_one_of(words).ok_or_else(|| self.error())
    }

    /// 1064 at the next token.
    #[cold]
    fn error(&self) -> Box<SyntaxError> {
        self.error_at(self.token().start)
    }

    #[cold]
    fn error_at(&self, at: u32) -> Box<SyntaxError> {
        Box::new(SyntaxError::near(self.text, self.start, at))
    }

    /// Goes one step deeper.
    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Box::new(SyntaxError::too_deep(self.token().start)));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Goes into parentheses, where a query is not the statement itself.
    fn enter_parentheses(&mut self) -> Result<()> {
        self.query_nesting += 1;
        self.enter()
    }

    fn leave_parentheses(&mut self) {
        self.query_nesting -= 1;
        self.leave();
    }

    /// The place of the token before the next one.
    fn last_span(&self) -> Span {
        self.at.checked_sub(1).map_or(Span::default(), |last| self.tokens[last].span())
    }

    /// From a byte to the end of what was read.
    fn span_from(&self, start: u32) -> Span {
        Span { start, end: self.last_span().end }
    }

    /// The list of the expressions that were gathered since there were so many.
    fn list_from(&mut self, mark: usize) -> List {
        let list = self.tree.add_list(&self.scratch[mark..]);
        self.scratch.truncate(mark);
        list
    }

    /// The tokens from one on up to the next one, as they were written, with single blanks.
    fn raw_from(&mut self, first: usize) -> Text {
        let start = self.tree.bytes.len();
        let mut end = None;
        for token in &self.tokens[first..self.at] {
            if end.is_some_and(|end| end != token.start) {
                self.tree.bytes.push(b' ');
            }
            self.tree.bytes.extend_from_slice(token.span().of(self.text));
            end = Some(token.end);
        }
        self.tree.text_from(start)
    }

    /// Things that commas part.
    fn comma_list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = Vec::new();
        loop {
            list.push(one(self)?);
            if !self.eat(Kind::Comma) {
                return Ok(list);
            }
        }
    }
}
