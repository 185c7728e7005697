//! Deep and long statements, in a thread with a small stack: an answer or error 1436, and never an overflow.

use lats_mysql_syntax::{Mode, parse, print};
use std::thread;

const STACK: usize = 2 << 20;

/// Runs in a thread with 2 MiB of stack.
fn in_small_stack(test: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(test)
        .expect("a thread")
        .join()
        .expect("no panic");
}

/// All shapes of nesting: what opens, what is in the middle, what closes.
const SHAPES: [(&str, &str, &str); 22] = [
    ("(", "1", ")"),
    ("f(", "1", ")"),
    ("abs(1 + (", "1", "))"),
    ("(SELECT ", "1", ")"),
    ("(SELECT 1 + (", "1", "))"),
    ("(SELECT 1 FROM (SELECT ", "1", ") x)"),
    ("EXISTS (SELECT 1 WHERE ", "1", ")"),
    ("1 IN (SELECT ", "1", ")"),
    ("1 IN (2, ", "1", ")"),
    ("NOT ", "1", ""),
    ("! ", "1", ""),
    ("- ", "1", ""),
    ("~", "1", ""),
    ("BINARY ", "1", ""),
    ("CASE WHEN ", "1", " THEN 2 END"),
    ("CASE ", "1", " WHEN 1 THEN 2 END"),
    ("IF(1, ", "1", ", 2)"),
    ("1 + (2 * (", "1", "))"),
    ("@a := ", "1", ""),
    ("1 BETWEEN 2 AND 3 BETWEEN 4 AND ", "1", ""),
    ("INTERVAL 1 DAY + ", "1", ""),
    ("SUM(1) OVER (ORDER BY ", "1", ")"),
];

fn check(text: &str, needs_answer: bool) {
    match parse(text.as_bytes(), 0, Mode::default()) {
        Ok(parsed) => {
            let copy = parsed.clone();
            assert!(copy == parsed);
            let printed = print(&parsed, Mode::default());
            let again = parse(&printed, 0, Mode::default());
            let again = again
                .unwrap_or_else(|e| panic!("{}: {}", e.message, String::from_utf8_lossy(&printed)));
            assert!(print(&again, Mode::default()) == printed);
        }
        Err(error) => {
            assert_eq!(error.number, 1436, "{}", error.message);
            assert!(!needs_answer, "{}", &text[..text.len().min(60)]);
        }
    }
}

#[test]
fn five_hundred_levels_work_and_more_than_the_limit_are_refused() {
    in_small_stack(|| {
        for (open, middle, close) in SHAPES {
            let levels = if open.matches('(').count() > 1 { 250 } else { 500 };
            for (count, needs_answer) in
                [(levels, true), (1_000, false), (1_700, false), (100_000, false)]
            {
                let text = format!("SELECT {}{middle}{}", open.repeat(count), close.repeat(count));
                check(&text, needs_answer);
            }
        }
    });
}

#[test]
fn tables_in_parentheses_nest() {
    in_small_stack(|| {
        for (open, middle, close) in [
            ("(", "t", ")"),
            ("(", "t", " JOIN u ON 1)"),
            ("(u JOIN ", "t", ")"),
            ("(u, ", "t", ")"),
            ("(SELECT * FROM ", "t", ") x"),
            ("{oj ", "t", "}"),
            ("u JOIN ", "t", " ON 1"),
            ("u LEFT JOIN ", "t", " ON 1"),
            ("u NATURAL JOIN ", "t", ""),
        ] {
            for (count, needs_answer) in [(500, true), (1_000, false), (50_000, false)] {
                let text =
                    format!("SELECT * FROM {}{middle}{}", open.repeat(count), close.repeat(count));
                check(&text, needs_answer);
            }
        }
    });
}

#[test]
fn queries_in_parentheses_nest() {
    in_small_stack(|| {
        for (open, middle, close) in [
            ("(", "SELECT 1", ")"),
            ("(SELECT 1 UNION ", "SELECT 1", ")"),
            ("(", "SELECT 1", " LIMIT 1)"),
            ("(", "SELECT 1", " UNION SELECT 2)"),
            ("WITH a AS (", "SELECT 1", ") SELECT 1"),
        ] {
            for (count, needs_answer) in [(500, true), (1_000, false), (50_000, false)] {
                let text = format!("{}{middle}{}", open.repeat(count), close.repeat(count));
                check(&text, needs_answer);
            }
        }
        let blocks = |count: usize| {
            format!("CREATE PROCEDURE p() {}{}", "BEGIN ".repeat(count), " END; ".repeat(count))
        };
        for count in [300, 50_000] {
            let text = blocks(count);
            check(text.trim_end_matches([' ', ';']), false);
        }
        let nested = |count: usize| {
            format!("{}a INT PATH '$'{}", "NESTED '$' COLUMNS (".repeat(count), ")".repeat(count))
        };
        check(&format!("SELECT * FROM JSON_TABLE('', '$' COLUMNS ({})) j", nested(400)), true);
        check(&format!("SELECT * FROM JSON_TABLE('', '$' COLUMNS ({})) j", nested(50_000)), false);
    });
}

#[test]
fn long_chains_have_answers() {
    in_small_stack(|| {
        for chain in [
            " + 1",
            " AND 1",
            " OR 1",
            " XOR 1",
            " = 1",
            " IS NULL",
            " COLLATE x",
            " * 2",
            " | 1",
            ", 1",
            " AND 1 OR 1",
            " + INTERVAL 1 DAY",
            " = ANY (SELECT 1)",
            " - -1",
            " < (1)",
        ] {
            check(&format!("SELECT 1{}", chain.repeat(100_000)), true);
        }
        for chain in [" UNION SELECT 1", " INTERSECT SELECT 1", " EXCEPT (SELECT 1 LIMIT 1)"] {
            check(&format!("SELECT 1{}", chain.repeat(20_000)), true);
        }
        for chain in [
            ", t",
            " JOIN t",
            " JOIN t ON 1",
            " LEFT JOIN t ON 1",
            " NATURAL JOIN t",
            " JOIN t JOIN u ON 1",
        ] {
            check(&format!("SELECT * FROM t{}", chain.repeat(20_000)), true);
        }
        check(&format!("INSERT INTO t VALUES (1){}", ", (1, 'a')".repeat(100_000)), true);
    });
}
