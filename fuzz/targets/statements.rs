//! Statements, as clients send them: any text gives a tree or an error, and what is printed parses to the same text again.
#![no_main]

use lats_mysql_syntax::{Mode, parse, print};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((modes, text)) = bytes.split_first() else { return };
    let mode = Mode {
        ansi_quotes: modes & 1 != 0,
        pipes_as_concat: modes & 2 != 0,
        no_backslash_escapes: modes & 4 != 0,
        high_not_precedence: modes & 8 != 0,
        ignore_space: modes & 16 != 0,
    };
    let Ok(parsed) = parse(text, 0, mode) else { return };
    let printed = print(&parsed, mode);
    let again = parse(&printed, 0, mode);
    assert!(again.is_ok_and(|again| print(&again, mode) == printed), "what is printed parses to the same statement");
});
