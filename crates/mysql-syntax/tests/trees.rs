//! What trees look like: which operators bind more tightly, what names and texts contain, and where things stand.

use lats_mysql_syntax::tree::{Body, Expr, InsertSource, Select, Statement, Table, TypeName};
use lats_mysql_syntax::{Mode, Parsed, parse};

fn parsed_in(text: &str, mode: Mode) -> Parsed {
    parse(text.as_bytes(), 0, mode).unwrap_or_else(|e| panic!("{text}: {}", e.message))
}

fn parsed(text: &str) -> Parsed {
    parsed_in(text, Mode::default())
}

fn select(parsed: &Parsed) -> &Select {
    let Statement::Query(query) = parsed.statement else { panic!("no query") };
    match parsed.tree.body(parsed.tree.query(query).body) {
        Body::Select(select) => select,
        other => panic!("{other:?}"),
    }
}

/// Both texts mean the same expression.
fn same(one: &str, other: &str) {
    assert!(
        parsed(&format!("SELECT {one}")) == parsed(&format!("SELECT {other}")),
        "{one} | {other}"
    );
}

fn different(one: &str, other: &str) {
    assert!(
        parsed(&format!("SELECT {one}")) != parsed(&format!("SELECT {other}")),
        "{one} | {other}"
    );
}

#[test]
fn precedence_is_that_of_the_manual() {
    for (plain, explicit) in [
        ("a OR b AND c", "a OR (b AND c)"),
        ("a XOR b AND c", "a XOR (b AND c)"),
        ("a OR b XOR c", "a OR (b XOR c)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT a BETWEEN b AND c", "NOT (a BETWEEN b AND c)"),
        ("NOT a IS TRUE", "NOT (a IS TRUE)"),
        ("! a = b", "(! a) = b"),
        ("a = b = c", "(a = b) = c"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a < b + c", "a < (b + c)"),
        ("a = b LIKE c", "a = (b LIKE c)"),
        ("a IN (1) = b", "(a IN (1)) = b"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN 1 AND b IN (2)", "a BETWEEN 1 AND (b IN (2))"),
        ("a | b & c", "a | (b & c)"),
        ("a & b << c", "a & (b << c)"),
        ("a << b + c", "a << (b + c)"),
        ("a - b - c", "(a - b) - c"),
        ("a + b * c", "a + (b * c)"),
        ("a * b ^ c", "a * (b ^ c)"),
        ("a DIV b MOD c", "(a DIV b) MOD c"),
        ("- a ^ b", "(- a) ^ b"),
        ("~ a * b", "(~ a) * b"),
        ("- a COLLATE x", "- (a COLLATE x)"),
        ("BINARY a = b", "(BINARY a) = b"),
        ("a + b COLLATE x", "a + (b COLLATE x)"),
        ("@a := b OR c", "@a := (b OR c)"),
        ("a + INTERVAL 1 DAY * 2", "(a + INTERVAL 1 DAY) * 2"),
        ("CASE WHEN a THEN b END + c", "(CASE WHEN a THEN b END) + c"),
    ] {
        same(plain, explicit);
    }
    different("a - b - c", "a - (b - c)");
    different("a AND b AND c", "a AND (b AND c)");
    different("(NOT a) = b", "NOT a = b");
    same("a && b || c", "a AND b OR c");
    same("a MOD b", "a % b");
    same("a != b", "a <> b");
    same("a RLIKE b", "a REGEXP b");
    let concat = Mode { pipes_as_concat: true, ..Mode::default() };
    assert!(parsed_in("SELECT a || b ^ c", concat) == parsed_in("SELECT (a || b) ^ c", concat));
    assert!(parsed_in("SELECT -a || b", concat) == parsed_in("SELECT (-a) || b", concat));
    let high = Mode { high_not_precedence: true, ..Mode::default() };
    assert!(parsed_in("SELECT NOT a = b", high) == parsed_in("SELECT (! a) = b", high));
}

#[test]
fn texts_are_put_together_and_escapes_are_gone() {
    let parsed = parsed("SELECT 'a''b' \"c\\n\\%\" 'd', _latin1'x', 0x4A, `a``b`");
    let items = &select(&parsed).items;
    let tree = &parsed.tree;
    let Expr::Text { text, charset, first, .. } = *tree.expr(items[0].value) else { panic!() };
    assert_eq!(tree.text(text), b"a'bc\n\\%d");
    assert_eq!(first.0, 3, "the column is named by the first text");
    assert!(charset.is_none());
    let Expr::Text { text, charset, .. } = *tree.expr(items[1].value) else { panic!() };
    assert_eq!((tree.text(charset), tree.text(text)), (b"latin1".as_slice(), b"x".as_slice()));
    let Expr::Hex { digits, .. } = *tree.expr(items[2].value) else { panic!() };
    assert_eq!(tree.text(digits), b"4A");
    let Expr::Column { name, table, .. } = *tree.expr(items[3].value) else { panic!() };
    assert_eq!(tree.text(name), b"a`b");
    assert!(table.is_none());
}

#[test]
fn texts_may_have_any_bytes() {
    let parsed = parse(b"SELECT '\xff\xfe', _binary'\x80' /* \xff */", 0, Mode::default()).unwrap();
    let items = &select(&parsed).items;
    let Expr::Text { text, .. } = *parsed.tree.expr(items[0].value) else { panic!() };
    assert_eq!(parsed.tree.text(text), b"\xff\xfe");
}

#[test]
fn items_know_their_text() {
    let text = "SELECT  a +  1 , (b)*2 x, COUNT( * ) , 'q' FROM t";
    let parsed = parsed(text);
    let spans: Vec<&[u8]> =
        select(&parsed).items.iter().map(|item| item.span.of(text.as_bytes())).collect();
    let expected: [&[u8]; 4] = [b"a +  1", b"(b)*2", b"COUNT( * )", b"'q'"];
    assert_eq!(spans, expected);
}

#[test]
fn joins_without_condition_lean_left() {
    for (plain, explicit) in [
        ("a JOIN b JOIN c ON x", "(a JOIN b) JOIN c ON x"),
        ("a JOIN b JOIN c", "(a JOIN b) JOIN c"),
        ("a JOIN b JOIN c ON x ON y", "a JOIN (b JOIN c ON x) ON y"),
        ("a JOIN b LEFT JOIN c ON x", "(a JOIN b) LEFT JOIN c ON x"),
        ("a LEFT JOIN b ON x JOIN c ON y", "(a LEFT JOIN b ON x) JOIN c ON y"),
    ] {
        let (one, other) = (format!("SELECT * FROM {plain}"), format!("SELECT * FROM {explicit}"));
        assert!(parsed(&one) == parsed(&other), "{plain}");
    }
    let parsed = parsed("SELECT * FROM a JOIN b JOIN c ON x");
    let Table::Join { left, .. } = parsed.tree.table(select(&parsed).from[0]) else { panic!() };
    assert!(matches!(parsed.tree.table(*left), Table::Join { .. }));
}

#[test]
fn set_operations_bind_as_in_the_standard() {
    for (plain, explicit) in [
        (
            "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3",
            "SELECT 1 UNION (SELECT 2 INTERSECT SELECT 3)",
        ),
        ("SELECT 1 UNION SELECT 2 EXCEPT SELECT 3", "(SELECT 1 UNION SELECT 2) EXCEPT SELECT 3"),
        ("(SELECT 1)", "SELECT 1"),
    ] {
        assert!(parsed(plain) == parsed(explicit), "{plain}");
    }
}

#[test]
fn rows_and_columns_are_where_they_are_expected() {
    let insert = parsed("INSERT INTO s.t (a, b) VALUES (1, DEFAULT), (2, 'x')");
    let Statement::Insert(insert_statement) = &insert.statement else { panic!() };
    let InsertSource::Rows(rows) = &insert_statement.source else { panic!() };
    assert_eq!((rows.len(), insert.tree.list(rows[1]).len()), (2, 2));
    assert!(matches!(insert.tree.expr(insert.tree.list(rows[0])[1]), Expr::Default));
    let create = parsed("CREATE TABLE t (a INT8 UNSIGNED, b CHARACTER VARYING(5))");
    let Statement::CreateTable(table) = &create.statement else { panic!() };
    let lats_mysql_syntax::tree::TableContent::Elements { elements, .. } = &table.content else {
        panic!()
    };
    let types: Vec<TypeName> = elements
        .iter()
        .map(|element| match element {
            lats_mysql_syntax::tree::TableElement::Column(column) => column.data_type.name,
            _ => panic!(),
        })
        .collect();
    assert_eq!(types, [TypeName::BigInt, TypeName::VarChar]);
}

#[test]
fn messages_show_eighty_characters_and_count_lines_from_the_statement_on() {
    let text = format!("SELECT 1;\n\nSELECT\n1 {}", "é".repeat(100));
    let first = parse(text.as_bytes(), 0, Mode::default()).unwrap();
    assert!(parse(text.as_bytes(), first.next.unwrap().0, Mode::default()).is_ok());
    let text = text.replace("1 é", "1 2 é");
    let first = parse(text.as_bytes(), 0, Mode::default()).unwrap();
    let error = parse(text.as_bytes(), first.next.unwrap().0, Mode::default()).unwrap_err();
    let expected = format!("near '2 {}' at line 2", "é".repeat(78));
    assert!(error.message.ends_with(&expected), "{}", error.message);
    assert_eq!((error.number, error.state), (1064, "42000"));
}
