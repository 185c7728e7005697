//! Statements of MySQL 8.4 with what must come back, from `tests/statements/*.txt` at the top of the repository.
//!
//! A line is a statement, ` => ` and what is expected; without it, the statement is good. `⏎` stands for the end of a line.
//! Modes may stand in brackets before the statement. Lines that begin with `//` say what follows.

#[path = "statements/canonical.rs"]
mod canonical;
#[path = "statements/mutations.rs"]
mod mutations;

use lats_mysql_syntax::{Mode, Statement, parse, print};
use std::fs;
use std::path::PathBuf;

/// A line of a file.
pub(crate) struct Case {
    pub(crate) place: String,
    pub(crate) mode: Mode,
    pub(crate) text: String,
    pub(crate) expected: String,
}

fn mode_of(words: &str) -> Mode {
    let has = |word: &str| words.split(',').any(|w| w.trim() == word);
    Mode {
        ansi_quotes: has("ANSI_QUOTES"),
        pipes_as_concat: has("PIPES_AS_CONCAT"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        high_not_precedence: has("HIGH_NOT_PRECEDENCE"),
        ignore_space: has("IGNORE_SPACE"),
        real_as_float: has("REAL_AS_FLOAT"),
    }
}

/// All lines of all files.
pub(crate) fn cases() -> Vec<Case> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/statements"));
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        for (at, line) in fs::read_to_string(&file).expect("a text").lines().enumerate() {
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            let (text, expected) = line.rsplit_once(" => ").unwrap_or((line, "ok"));
            let (mode, text) = match text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
                Some((words, text)) => (mode_of(words), text),
                None => (Mode::default(), text),
            };
            let place = format!("{name}:{}", at + 1);
            cases.push(Case {
                place,
                mode,
                text: text.replace('⏎', "\n"),
                expected: expected.to_string(),
            });
        }
    }
    cases
}

fn outcome(text: &[u8], mode: Mode) -> String {
    match parse(text, 0, mode) {
        Ok(parsed) => {
            let warnings = parsed.tree.warnings.len();
            let other = match &parsed.statement {
                Statement::Other { name, .. } => format!("ok Other {name}"),
                _ => "ok".to_string(),
            };
            if warnings > 0 { format!("{other}, {warnings} warnings") } else { other }
        }
        Err(error) if error.number == 1064 => {
            let at = error.message.find("near '").expect("a place");
            format!("1064 {}", &error.message[at..])
        }
        Err(error) => format!("{} {}", error.number, error.message),
    }
}

#[test]
fn statements_give_what_is_expected() {
    let cases = cases();
    assert!(cases.len() > 600, "the files have {} statements", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        let found = outcome(case.text.as_bytes(), case.mode);
        if found != case.expected {
            failures.push(format!(
                "{}: {}\n    expected {}\n    found    {found}",
                case.place, case.text, case.expected
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} fail:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

#[test]
fn what_is_printed_parses_to_the_same_tree() {
    let mut failures = Vec::new();
    for case in cases() {
        let Ok(mut parsed) = parse(case.text.as_bytes(), 0, case.mode) else { continue };
        let printed = print(&parsed, case.mode);
        let shown = String::from_utf8_lossy(&printed).into_owned();
        parsed.next = None;
        parsed.named_arguments.clear();
        match parse(&printed, 0, case.mode) {
            Ok(mut again) => {
                again.tree.warnings = parsed.tree.warnings.clone();
                let printed_again = String::from_utf8_lossy(&print(&again, case.mode)).into_owned();
                if printed_again != shown {
                    failures.push(format!(
                        "{}: {}\n    {shown}\n    {printed_again}",
                        case.place, case.text
                    ));
                } else if again != parsed {
                    failures.push(format!(
                        "{}: {}\n    {shown}\n    another tree",
                        case.place, case.text
                    ));
                }
            }
            Err(error) => failures
                .push(format!("{}: {}\n    {shown}\n    {}", case.place, case.text, error.message)),
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn statements_of_one_text_come_one_after_the_other() {
    let text = b"  SELECT 1 ; /* x */ SELECT 'a;b';;SELECT 3;  ";
    let first = parse(text, 0, Mode::default()).unwrap();
    assert_eq!(first.span.of(text), b"SELECT 1");
    let second = parse(text, first.next.unwrap().0, Mode::default()).unwrap();
    assert_eq!(second.span.of(text), b"SELECT 'a;b'");
    let error = parse(text, second.next.unwrap().0, Mode::default()).unwrap_err();
    assert_eq!(
        (error.number, error.message.contains("near ';SELECT 3' at line 1")),
        (1064, true),
        "{}",
        error.message
    );
    assert_eq!(parse(b"SELECT 3;;  ", 0, Mode::default()).unwrap().next, None);
    assert!(parse(b"SELECT 1; ", 0, Mode::default()).unwrap().next.is_none());
}
