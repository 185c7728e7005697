//! Tests of tokens.

use super::Lexer;
use crate::token::Kind;
use crate::{Keyword, Mode};
use alloc::string::String;
use alloc::vec::Vec;

fn kinds_in(text: &str, mode: Mode) -> Vec<(Kind, String)> {
    let mut lexer = Lexer::new(text.as_bytes(), 0, mode);
    let mut found = Vec::new();
    loop {
        let token = lexer.next_token();
        if token.kind == Kind::End {
            return found;
        }
        found.push((token.kind, String::from(&text[token.start as usize..token.end as usize])));
        if token.kind == Kind::Bad {
            return found;
        }
    }
}

fn check(text: &str, expected: &[(Kind, &str)]) {
    let found = kinds_in(text, Mode::default());
    let found: Vec<(Kind, &str)> =
        found.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn numbers_have_classes_and_names_may_begin_with_digits() {
    use Kind::{Bits, Decimal, Dot, Float, Hex, Integer, Word};
    check(
        "1 1.5 .5 5. 1e5 1.e-2 1E+3",
        &[
            (Integer, "1"),
            (Decimal, "1.5"),
            (Decimal, ".5"),
            (Decimal, "5."),
            (Float, "1e5"),
            (Float, "1.e-2"),
            (Float, "1E+3"),
        ],
    );
    check(
        "0x1F 0x1 0b01 x'1f' B'1'",
        &[(Hex, "0x1F"), (Hex, "0x1"), (Bits, "0b01"), (Hex, "x'1f'"), (Bits, "B'1'")],
    );
    check(
        "0x 0xfg 0X1 0b2 1a 1e 1e5a",
        &[
            (Word, "0x"),
            (Word, "0xfg"),
            (Word, "0X1"),
            (Word, "0b2"),
            (Word, "1a"),
            (Word, "1e"),
            (Float, "1e5"),
            (Word, "a"),
        ],
    );
    check("t.1e5", &[(Word, "t"), (Dot, "."), (Word, "1e5")]);
    check("t .1", &[(Word, "t"), (Decimal, ".1")]);
    check("1.e", &[(Kind::Bad, "1.e")]);
    check("x'1'", &[(Kind::Bad, "x")]);
}

#[test]
fn comments_are_blanks_and_versions_decide() {
    use Kind::{Integer, Minus, Star, Word};
    check(
        "1 -- x\n2 # y\n3 /* z */ 4--5",
        &[
            (Integer, "1"),
            (Integer, "2"),
            (Integer, "3"),
            (Integer, "4"),
            (Minus, "-"),
            (Minus, "-"),
            (Integer, "5"),
        ],
    );
    check(
        "/*!80400 a */ /*!80401 b /* c */ d */ /*! e */ /*!080000 f */ /*!99999 g */",
        &[(Word, "a"), (Word, "e"), (Word, "f")],
    );
    check("*/", &[(Star, "*"), (Kind::Slash, "/")]);
    check("/* x", &[(Kind::Bad, "/* x")]);
    check("/*! 1", &[(Integer, "1"), (Kind::Bad, "")]);
    check("--", &[]);
}

#[test]
fn names_texts_and_variables() {
    use Kind::{Assign, At, Dot, Host, Introducer, National, Quoted, Text, Word};
    check(
        "`a``b`.select 'a''b\\'c' \"d\" N'e' _latin1'f' _x",
        &[
            (Quoted, "`a``b`"),
            (Dot, "."),
            (Word, "select"),
            (Text, "'a''b\\'c'"),
            (Text, "\"d\""),
            (National, "N'e'"),
            (Introducer, "_latin1"),
            (Text, "'f'"),
            (Word, "_x"),
        ],
    );
    check("@a.b:=@'c d'", &[(At, "@"), (Host, "a.b"), (Assign, ":="), (At, "@"), (Text, "'c d'")]);
    check("@@global.x", &[(At, "@"), (At, "@"), (Word, "global"), (Dot, "."), (Word, "x")]);
    check("'a", &[(Kind::Bad, "'")]);
    let ansi = Mode { ansi_quotes: true, ..Mode::default() };
    assert_eq!(kinds_in("\"a\"", ansi), [(Quoted, String::from("\"a\""))]);
    let raw = Mode { no_backslash_escapes: true, ..Mode::default() };
    assert_eq!(kinds_in("'a\\'", raw), [(Text, String::from("'a\\'"))]);
}

#[test]
fn names_of_functions_are_keywords_before_a_parenthesis() {
    let word = |text: &str, mode: Mode| Lexer::new(text.as_bytes(), 0, mode).next_token().word;
    assert_eq!(word("count(", Mode::default()), Keyword::COUNT);
    assert_eq!(word("count (", Mode::default()), Keyword::None);
    assert_eq!(word("count (", Mode { ignore_space: true, ..Mode::default() }), Keyword::COUNT);
    assert_eq!(word("select.a", Mode::default()), Keyword::None);
    assert_eq!(word("select .a", Mode::default()), Keyword::SELECT);
}

#[test]
fn hints_stand_behind_keywords_only() {
    let mut lexer = Lexer::new(b"SELECT /*+ BKA(t) */ 1 /*+ x */", 0, Mode::default());
    let select = lexer.next_token();
    assert_eq!(lexer.hints_behind(select.end).map(|s| (s.start, s.end)), Some((10, 18)));
    assert_eq!(lexer.next_token().kind, Kind::Integer);
    assert_eq!(lexer.next_token().kind, Kind::End);
}
