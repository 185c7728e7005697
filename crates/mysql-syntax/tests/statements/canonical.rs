//! The texts that are kept of views' queries.

use super::cases;
use lats_mysql_syntax::print::canonical::{Resolved, canonical};
use lats_mysql_syntax::{Mode, Parsed, Statement, parse};

fn kept(parsed: &Parsed) -> Option<String> {
    let Statement::Query(query) = parsed.statement else { return None };
    let text = canonical(&parsed.tree, query, &Resolved::default(), None);
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn kept_in(text: &str, mode: Mode) -> String {
    let parsed =
        parse(text.as_bytes(), 0, mode).unwrap_or_else(|e| panic!("{text}: {}", e.message));
    kept(&parsed).expect("a query")
}

#[test]
fn kept_texts_are_read_in_the_default_mode_and_stay_as_they_are() {
    let (mut failures, mut count) = (Vec::new(), 0);
    for case in cases() {
        let Ok(parsed) = parse(case.text.as_bytes(), 0, case.mode) else { continue };
        let Some(text) = kept(&parsed) else { continue };
        // Views have no variables.
        if case.text.contains('@') {
            continue;
        }
        count += 1;
        let again = match parse(text.as_bytes(), 0, Mode::default()) {
            Ok(again) => kept(&again).unwrap_or_default(),
            Err(error) => error.message,
        };
        if again != text {
            failures.push(format!("{}: {}\n    {text}\n    {again}", case.place, case.text));
        }
    }
    assert!(count > 130, "there are {count} queries");
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn modes_do_not_matter_for_what_is_kept() {
    let mode = Mode {
        ansi_quotes: true,
        pipes_as_concat: true,
        no_backslash_escapes: true,
        high_not_precedence: true,
        ignore_space: true,
        real_as_float: true,
    };
    assert_eq!(
        kept_in("SELECT \"a\" || 'x\\y' || COUNT (*), NOT a IN (2, 3) FROM \"t\"", mode),
        "select concat(concat(`a`,'x\\\\y'),count(0)),((not(`a`)) in (2,3)) from `t`"
    );
    assert_eq!(
        kept_in("SELECT \"a\" || 'x\\\\y', NOT a IN (2, 3) FROM t", Mode::default()),
        "select ('a' or 'x\\\\y'),(not((`a` in (2,3)))) from `t`"
    );
}

#[test]
fn operators_stand_in_parentheses() {
    for (text, expected) in [
        ("SELECT a + b * c - d", "select ((`a` + (`b` * `c`)) - `d`)"),
        ("SELECT a AND b AND c OR d", "select ((`a` and `b` and `c`) or `d`)"),
        (
            "SELECT a LIKE b ESCAPE '|', a NOT LIKE 'x'",
            "select (`a` like `b` escape '|'),(not((`a` like 'x')))",
        ),
        ("SELECT 1 + +(a IN (SELECT b FROM c))", "select (1 + (`a` in (select `b` from `c`)))"),
        ("SELECT CASE a WHEN 1 THEN 2 END", "select (case `a` when 1 then 2 end)"),
        (
            "SELECT a = ANY (SELECT 1), a <> ALL (TABLE t)",
            "select `a` in (select 1),`a` not in (table `t`)",
        ),
        (
            "SELECT (-a) COLLATE binary, -(a COLLATE binary), 1 FROM a NATURAL LEFT JOIN b",
            "select ((-(`a`)) collate binary),-((`a` collate binary)),1 from (`a` left join `b` on(true))",
        ),
        (
            "SELECT a IN (SELECT 1) = b, NOT a IN (SELECT 1), a IN (SELECT 1) OR b",
            "select ((`a` in (select 1)) = `b`),(not((`a` in (select 1)))),(`a` in (select 1) or `b`)",
        ),
        (
            "SELECT CAST(a AS CHAR), CAST(a AS DECIMAL), CAST(a AS BINARY(3)), BINARY a, a IN (1), 'a''b\n'",
            "select cast(`a` as char charset utf8mb4),cast(`a` as decimal(10,0)),cast(`a` as char(3) charset binary),cast(`a` as char charset binary),(`a` = 1),'a\\'b\\n'",
        ),
        (
            "SELECT 1 FROM a, b JOIN c ON 1 LEFT JOIN d USING (x)",
            "select 1 from (`a` join ((`b` join `c` on(1)) left join `d` using (`x`)))",
        ),
        (
            "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3",
            "select 1 union all select 2 except select 3",
        ),
        (
            "SELECT 1 UNION (SELECT 2 UNION SELECT 3 LIMIT 1)",
            "select 1 union (select 2 union select 3 limit 1)",
        ),
    ] {
        assert_eq!(kept_in(text, Mode::default()), expected, "{text}");
    }
}
