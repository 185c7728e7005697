//! Errors: MySQL's number, state and message.

use alloc::format;
use alloc::string::{String, ToString};

/// Why a text is no statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// MySQL's number.
    pub number: u16,
    /// The SQLSTATE.
    pub state: &'static str,
    /// MySQL's message.
    pub message: String,
    /// Where in the text, in bytes.
    pub at: u32,
}

/// Characters of the text that a message shows.
const NEAR_MAX: usize = 80;

impl SyntaxError {
    /// An error with a message of its own.
    #[must_use]
    pub fn new(number: u16, state: &'static str, message: &str, at: u32) -> Self {
        Self { number, state, message: message.to_string(), at }
    }

    /// 1064: the text from here on cannot follow what stands before it.
    #[must_use]
    pub fn near(text: &[u8], start: u32, at: u32) -> Self {
        let place = near(text, start, at);
        let message = format!(
            "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use {place}"
        );
        Self { number: 1064, state: "42000", message, at }
    }

    /// 1065: there is no statement.
    #[must_use]
    pub fn empty(at: u32) -> Self {
        Self::new(1065, "42000", "Query was empty", at)
    }

    /// 1436: the statement is nested too deeply.
    #[must_use]
    pub fn too_deep(at: u32) -> Self {
        let message = "Thread stack overrun: the statement is nested too deeply";
        Self::new(1436, "HY000", message, at)
    }

    /// 3170: tokens and tree take more than they may.
    #[must_use]
    pub fn too_large(bytes_max: usize, at: u32) -> Self {
        let message = format!(
            "Memory capacity of {bytes_max} bytes for 'parser_max_mem_size' exceeded. Parser bailed out for this query. Send fewer values in one \
             statement"
        );
        Self::new(3170, "HY000", &message, at)
    }

    /// 1221: two things that do not go together.
    #[must_use]
    pub fn usage(one: &str, other: &str, at: u32) -> Self {
        Self::new(1221, "HY000", &format!("Incorrect usage of {one} and {other}"), at)
    }

    /// 1235: what MySQL's grammar knows and refuses.
    #[must_use]
    pub fn unsupported(what: &str, at: u32) -> Self {
        let message = format!("This version of MySQL doesn't yet support '{what}'");
        Self::new(1235, "42000", &message, at)
    }
}

/// The end of MySQL's message: the text from a place on, and the line where it stands in the statement.
pub(crate) fn near(text: &[u8], start: u32, at: u32) -> String {
    let (start, at) = (start as usize, (at as usize).min(text.len()));
    let rest = &text[at..(at + 4 * NEAR_MAX).min(text.len())];
    let rest: String = String::from_utf8_lossy(rest).chars().take(NEAR_MAX).collect();
    let before = text.get(start..at).unwrap_or(&[]);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    format!("near '{rest}' at line {line}")
}
