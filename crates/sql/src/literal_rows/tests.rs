//! What is read without the parser is what it would have read.

use super::*;
use crate::bind::Binder;
use crate::parse::Tokens;
use lats_base::prng::Prng;
use lats_values::{EvalContext, eval};
use sqlparser::ast::{SetExpr, Statement};

/// The rows as the parser and the binder read them; none if they find a mistake.
fn by_parser(text: &str) -> Option<Vec<Value>> {
    let tokens = Tokens::new(text).ok()?;
    let Statement::Insert(insert) = tokens.parse(text).ok()? else { return None };
    let SetExpr::Values(rows) = &*insert.source.as_ref()?.body else { return None };
    let mut binder = Binder::new(None, "");
    let source = crate::expr::RowSource::constant(&[]);
    let cells = rows.rows.iter().flat_map(|row| &row.content);
    cells
        .map(|cell| {
            let bound = binder.bind_in("field list", cell).ok()?;
            eval(&bound, &source, &mut EvalContext::new(true)).ok()
        })
        .collect()
}

fn agrees(text: &str) -> bool {
    let Some(rows) = LiteralRows::of(text) else { return false };
    // What stands behind them is not read here.
    let template = Tokens::new(&rows.template);
    if template.is_err() || template.is_ok_and(|t| t.parse(&rows.template).is_err()) {
        return false;
    }
    assert_eq!(Some(&rows.values), by_parser(text).as_ref(), "{text}");
    assert_eq!(rows.count() * rows.width, rows.values.len(), "{text}");
    true
}

#[test]
fn literals_are_what_the_parser_reads() {
    for literals in [
        "(1),(-5) , ( 007 ),(0)",
        "(0.5,12.50,-3.25,00.10)",
        "(18446744073709551615,99999999999999999999,-999999999999999999)",
        "('a','','it''s','say \"so\"')",
        r"('\\','\'','\n\t\r\0\b\Z\a\f','50\%','a\_b','\ä','\q')",
        "(\"double\",\"q\"\"q\",\"it's\")",
        "('ä€😀',NULL,null,Null)",
        "\n\t('a',\r\n1)\n, ('b', 2)\n",
        "('-- no comment','/* none */','?',';')",
    ] {
        assert!(agrees(&format!("INSERT INTO t VALUES {literals}")), "{literals}");
        assert!(agrees(&format!("replace into `a`.`values` (a,`b ?`)values{literals};")));
    }
}

#[test]
fn what_is_more_than_literals_is_left_to_the_parser() {
    for text in [
        "SELECT 1",
        "INSERTS INTO t VALUES (1)",
        "INSERT INTO t VALUES",
        "INSERT INTO t VALUES ()",
        "INSERT INTO t VALUES (1",
        "INSERT INTO t VALUES (1,)",
        "INSERT INTO t VALUES (1),(1,2)",
        "INSERT INTO t VALUES (1),",
        "INSERT INTO t VALUES (1); SELECT 1",
        "INSERT INTO t VALUES (?)",
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = ?",
        "INSERT INTO t VALUES (1+1)",
        "INSERT INTO t VALUES (1e3)",
        "INSERT INTO t VALUES (1.)",
        "INSERT INTO t VALUES (.5)",
        "INSERT INTO t VALUES (1.2.3)",
        "INSERT INTO t VALUES (+1)",
        "INSERT INTO t VALUES (- 1)",
        "INSERT INTO t VALUES (-0)",
        "INSERT INTO t VALUES (0x1F)",
        "INSERT INTO t VALUES (x'1F')",
        "INSERT INTO t VALUES (N'a')",
        "INSERT INTO t VALUES (_utf8'a')",
        "INSERT INTO t VALUES ('a' 'b')",
        "INSERT INTO t VALUES ('a'",
        "INSERT INTO t VALUES ('a",
        "INSERT INTO t VALUES ('a\\')",
        "INSERT INTO t VALUES (NULLS)",
        "INSERT INTO t VALUES (DEFAULT)",
        "INSERT INTO t VALUES (NOW())",
        "INSERT INTO t VALUES (a)",
        "INSERT INTO t VALUES (1 /* one */)",
        "INSERT /* into */ INTO t VALUES (1)",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t SET a = 1",
    ] {
        assert_eq!(LiteralRows::of(text), None, "{text}");
    }
}

#[test]
fn no_row_is_wider_than_any_table() {
    let text = |width| format!("INSERT INTO t VALUES ({})", vec!["1"; width].join(","));
    assert!(agrees(&text(COLUMNS_MAX)));
    assert_eq!(LiteralRows::of(&text(COLUMNS_MAX + 1)), None);
}

/// Texts of the pieces of which such statements are made, in any order: what is read here is read so by the parser.
#[test]
fn nothing_is_read_otherwise_than_by_the_parser() {
    const PIECES: [&str; 34] = [
        "(",
        ")",
        ",",
        "'",
        "\"",
        "\\",
        "0",
        "1",
        "17",
        ".",
        "-",
        " ",
        "\n",
        "NULL",
        "a",
        "ä",
        "%",
        "_",
        "n",
        "''",
        "),(",
        "'x'",
        "e",
        "9223372036854775808",
        "0.00",
        "`",
        "VALUES",
        "--",
        "#",
        "/*",
        ";",
        "x",
        "\\'",
        "Z",
    ];
    let (mut random, mut read) = (Prng::new(1), 0);
    for _ in 0..60_000 {
        let mut text = String::from("INSERT INTO t VALUES ('',");
        for _ in 0..random.between(1, 9) {
            text.push_str(PIECES[random.below(PIECES.len() as u64) as usize]);
        }
        text.push_str([")", "')", ""][random.below(3) as usize]);
        read += u32::from(agrees(&text));
    }
    assert!(read > 1_000, "only {read} were read");
}
