//! The syntax of MySQL 8.4: tokens, syntax tree, parser and printer.
//!
//! Pure, and without any knowledge of what a statement means.
//! A text of any bytes gives a tree or an error, in a time that grows with its length, and with bounded stack.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod error;
pub mod keyword;
pub mod lexer;
pub mod mode;
pub mod parser;
pub mod position;
pub mod print;
pub mod token;
pub mod tree;

pub use error::SyntaxError;
pub use keyword::Keyword;
pub use mode::Mode;
pub use parser::{DEPTH_MAX, parse, parse_within};
pub use position::Span;
pub use print::print;
pub use tree::{Parsed, Statement, Tree};
