//! What is read without the parser is what it would have read.

use super::*;
use crate::bind::Binder;
use crate::syntax::{Context, parse};
use lats_base::prng::Prng;
use lats_catalog::Catalog;
use lats_mysql_syntax::Statement;
use lats_mysql_syntax::tree::InsertSource;
use lats_values::{EvalContext, eval};

/// The rows as the parser and the binder read them; none if they find a mistake.
fn by_parser(text: &str, mode: Mode) -> Option<Vec<Value>> {
    let parsed = parse(text.as_bytes(), mode).ok()?;
    let Statement::Insert(insert) = &parsed.statement else { return None };
    let InsertSource::Rows(rows) = &insert.source else { return None };
    let catalog = Catalog::initial();
    let context = Context {
        catalog: &catalog,
        base: &catalog,
        database: None,
        text: text.as_bytes(),
        parsed: &parsed,
        full_group_by: true,
        no_escapes: mode.no_backslash_escapes,
        quiet_division: false,
        connection_collation: None,
        strict: true,
        group_concat_bytes: 1_024,
        rules: crate::optimizer_switch::Rules::default(),
        views: &crate::views::Views::default(),
        statistics: &|_| None,
        values: &[],
        bounds: crate::syntax::Bounds::none(),
    };
    let mut binder = Binder::new(&context);
    let source = crate::expr::RowSource::constant(&[]);
    let cells = rows.iter().flat_map(|row| parsed.tree.list(*row));
    cells
        .map(|cell| {
            let bound = binder.bind_in("field list", *cell).ok()?;
            eval(&bound, &source, &mut EvalContext::new(true)).ok()
        })
        .collect()
}

fn agrees_in(text: &str, mode: Mode) -> bool {
    let Some(rows) = LiteralRows::of(text.as_bytes(), mode, usize::MAX) else { return false };
    // What stands behind them is not read here.
    if parse(&rows.template, mode).is_err() {
        return false;
    }
    assert_eq!(Some(&rows.values), by_parser(text, mode).as_ref(), "{text}");
    assert_eq!(rows.count() * rows.width, rows.values.len(), "{text}");
    true
}

fn agrees(text: &str) -> bool {
    agrees_in(text, Mode::default())
}

fn of(text: &str) -> Option<LiteralRows> {
    LiteralRows::of(text.as_bytes(), Mode::default(), usize::MAX)
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
        "INSERT INTO t VALUES (1) /* two */, (2)",
        "INSERT INTO t VALUES (1) /*!80000 , (2) */",
        "INSERT /*+ NO_MERGE(t) */ INTO t VALUES (1)",
        "INSERT INTO t VALUES (TRUE)",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t SET a = 1",
    ] {
        assert_eq!(of(text), None, "{text}");
    }
}

#[test]
fn modes_decide_what_quotes_and_backslashes_are() {
    let plain = Mode { no_backslash_escapes: true, ..Mode::default() };
    assert!(agrees_in(r"INSERT INTO t VALUES ('a\n', '\', 'it''s')", plain));
    let rows = LiteralRows::of(br"INSERT INTO t VALUES ('\')", plain, usize::MAX).unwrap();
    assert_eq!(rows.values, [Value::text(r"\")]);
    let names = Mode { ansi_quotes: true, ..Mode::default() };
    let text = "INSERT INTO \"t\" (\"a ? b\") VALUES ('\"')";
    assert!(agrees_in(text, names));
    assert_eq!(LiteralRows::of(b"INSERT INTO t VALUES (\"a\")", names, usize::MAX), None);
}

#[test]
fn what_is_no_utf8_is_left_to_the_parser() {
    let mode = Mode::default();
    assert_eq!(LiteralRows::of(b"INSERT INTO t VALUES ('\xff')", mode, usize::MAX), None);
    assert_eq!(LiteralRows::of(b"INSERT INTO t VALUES ('\\n\xff')", mode, usize::MAX), None);
    // Elsewhere the bytes stay as they are.
    let text = b"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = '\xff'";
    let rows = LiteralRows::of(text, mode, usize::MAX).unwrap();
    assert!(rows.template.ends_with(b"(?) ON DUPLICATE KEY UPDATE a = '\xff'"));
}

#[test]
fn no_row_is_wider_than_any_table() {
    let text = |width| format!("INSERT INTO t VALUES ({})", vec!["1"; width].join(","));
    assert!(agrees(&text(COLUMNS_MAX)));
    assert_eq!(of(&text(COLUMNS_MAX + 1)), None);
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
        let mode = Mode {
            no_backslash_escapes: random.below(3) == 0,
            ansi_quotes: random.below(3) == 0,
            ..Mode::default()
        };
        read += u32::from(agrees_in(&text, mode));
    }
    assert!(read > 1_000, "only {read} were read");
}
