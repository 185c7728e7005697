//! Optimizer hints: `/*+ … */`. What is wrong with them is a warning.

use super::Parser;
use crate::error::near;
use crate::token::Kind;
use crate::tree::{Hint, Warning};
use crate::{Mode, lexer::Lexer};
use alloc::vec::Vec;

/// The hints of MySQL 8.4.
const HINTS: [&str; 42] = [
    "BKA",
    "BNL",
    "DERIVED_CONDITION_PUSHDOWN",
    "DUPSWEEDOUT",
    "FIRSTMATCH",
    "GROUP_INDEX",
    "HASH_JOIN",
    "INDEX",
    "INDEX_MERGE",
    "INTOEXISTS",
    "JOIN_FIXED_ORDER",
    "JOIN_INDEX",
    "JOIN_ORDER",
    "JOIN_PREFIX",
    "JOIN_SUFFIX",
    "LOOSESCAN",
    "MATERIALIZATION",
    "MAX_EXECUTION_TIME",
    "MERGE",
    "MRR",
    "NO_BKA",
    "NO_BNL",
    "NO_DERIVED_CONDITION_PUSHDOWN",
    "NO_GROUP_INDEX",
    "NO_HASH_JOIN",
    "NO_ICP",
    "NO_INDEX",
    "NO_INDEX_MERGE",
    "NO_JOIN_INDEX",
    "NO_MERGE",
    "NO_MRR",
    "NO_ORDER_INDEX",
    "NO_RANGE_OPTIMIZATION",
    "NO_SEMIJOIN",
    "NO_SKIP_SCAN",
    "ORDER_INDEX",
    "QB_NAME",
    "RESOURCE_GROUP",
    "SEMIJOIN",
    "SET_VAR",
    "SKIP_SCAN",
    "SUBQUERY",
];

impl Parser<'_> {
    /// The hints behind the keyword that was just passed.
    pub(super) fn hints(&mut self) -> Vec<Hint> {
        let Some(span) = self.lexer.hints_behind(self.last_span().end) else { return Vec::new() };
        let text = &self.text[..span.end as usize];
        let mut lexer = Lexer::new(text, span.start, Mode { ansi_quotes: true, ..self.mode });
        let mut hints = Vec::new();
        loop {
            let token = lexer.next_token();
            let name = token.span().of(text);
            let is_known = HINTS.iter().any(|hint| hint.as_bytes().eq_ignore_ascii_case(name));
            if token.kind == Kind::End {
                return hints;
            }
            let open = lexer.next_token();
            // As in MySQL, nothing behind the first mistake is read.
            if !is_known || open.kind != Kind::Open {
                let place =
                    near(self.text, self.start, if is_known { open.start } else { token.start });
                let message = alloc::format!("Optimizer hint syntax error {place}");
                self.tree.warnings.push(Warning { number: 1064, message });
                return hints;
            }
            let mut depth = 1;
            let mut last = open;
            // Token by token, for what stands between them may be a comment.
            let mut inner: Vec<u8> = Vec::new();
            while depth > 0 {
                let behind = last.end;
                last = lexer.next_token();
                match last.kind {
                    Kind::Open => depth += 1,
                    Kind::Close => depth -= 1,
                    Kind::End | Kind::Bad => break,
                    _ => {}
                }
                if depth > 0 {
                    if last.start > behind && !inner.is_empty() {
                        inner.push(b' ');
                    }
                    inner.extend_from_slice(last.span().of(text));
                }
            }
            if depth > 0 {
                let message = alloc::format!(
                    "Optimizer hint syntax error {}",
                    near(self.text, self.start, last.start)
                );
                self.tree.warnings.push(Warning { number: 1064, message });
                return hints;
            }
            let name = self.tree.add_text(name);
            let arguments = self.tree.add_text(&inner);
            hints.push(Hint { name, arguments });
        }
    }
}
