//! Texts whose trees would take too much memory are refused, and never read in part.

use lats_mysql_syntax::{Mode, parse, parse_within};

/// What is repeated between a beginning and an end; the factor is how many bytes arenas and tokens take for a byte of text at
/// most (`docs/memory.md`).
const SHAPES: [(&str, &str, &str, usize); 12] = [
    ("SELECT 1", ",1", "", 80),
    ("SELECT 1", "+1", "", 80),
    ("SELECT 1", " OR a", "", 40),
    ("SELECT a IN (1", ",1", ")", 80),
    ("SELECT a IN (''", ",''", ")", 60),
    ("SELECT 1 FROM t WHERE a", "=a", "", 80),
    ("SELECT f(1", ",a.b.c", ")", 30),
    ("INSERT INTO t VALUES (1)", ",(1)", "", 50),
    ("INSERT INTO t VALUES (1", ",?", ")", 80),
    ("UPDATE t SET a = 1", ",a=1", "", 60),
    ("SELECT * FROM t", ",t", "", 100),
    ("SELECT 1", " UNION SELECT 1", "", 40),
];

#[test]
fn a_tree_takes_no_more_than_it_may_and_a_text_is_read_whole_or_not() {
    for (begin, more, end, factor) in SHAPES {
        let text = format!("{begin}{}{end}", more.repeat(20_000));
        let whole = parse(text.as_bytes(), 0, Mode::default()).unwrap();
        let tree = whole.tree.used_bytes() / text.len();
        assert!(tree <= factor, "{begin}{more}: {tree} bytes for each byte of text");
        let needed = (20_000..200 << 20)
            .step_by(200_000)
            .find(|max| parse_within(text.as_bytes(), 0, Mode::default(), *max).is_ok());
        let needed = needed.unwrap();
        assert!(
            needed > whole.tree.used_bytes() && needed < text.len() * (factor + 60),
            "{begin}{more}: {needed}"
        );
        let within = parse_within(text.as_bytes(), 0, Mode::default(), needed).unwrap();
        assert!(within == whole, "{begin}{more}");
        let error = parse_within(text.as_bytes(), 0, Mode::default(), needed / 2).unwrap_err();
        assert_eq!(error.number, 3170, "{begin}{more}");
        assert!(error.message.contains("Parser bailed out"), "{}", error.message);
    }
}

#[test]
fn small_statements_and_mistakes_do_not_care() {
    assert!(parse_within(b"SELECT 1 + 1", 0, Mode::default(), 0).is_ok());
    let error = parse_within(b"SELECT 1 +", 0, Mode::default(), 0).unwrap_err();
    assert_eq!(error.number, 1064);
}
