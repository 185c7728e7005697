//! What is refused, and with which number.

use crate::testing::Desk;

#[test]
fn not_supported_yet() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT PRIMARY KEY, k INT); INSERT INTO t VALUES (1, 1)");
    let statements = [
        "SELECT * FROM JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$')) j",
        "CREATE TABLE u (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES t (id))",
        "CREATE TABLE u (id INT PRIMARY KEY, a INT REFERENCES t (id))",
        "CREATE TABLE u (id INT PRIMARY KEY, a INT CHECK (a > 1))",
        "CREATE TABLE u (id INT PRIMARY KEY, a INT AS (id + 1))",
        "CREATE TABLE u (id INT PRIMARY KEY, a JSON)",
        "CREATE TABLE u (id INT PRIMARY KEY, a ENUM('a','b'))",
        "CREATE TABLE u (id INT PRIMARY KEY) PARTITION BY HASH (id)",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.k = 1",
        "ALTER TABLE t ADD COLUMN c INT",
        "CALL p()",
        "LOCK TABLES t READ",
        "SELECT * FROM information_schema.tables",
        "SET time_zone = '+02:00'",
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
    ];
    for statement in statements {
        let found = desk.run(statement);
        let fits = found.starts_with("ERROR 1235") || found.starts_with("ERROR 1064");
        assert!(fits, "{statement}: {found}");
    }
    assert_eq!(desk.run("SELECT * FROM t"), "1|1");
}

#[test]
fn names_and_syntax() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT PRIMARY KEY, k INT)");
    desk.check(
        "SELEC 1
         => ERROR 1064 You have an error in your SQL syntax;…
         SELECT 1 2 3
         => ERROR 1064 …
         SELECT 'abc
         => ERROR 1064 …
         /* nothing */
         => ERROR 1065 Query was empty
         SELECT nope FROM t
         => ERROR 1054 Unknown column 'nope' in 'field list'
         SELECT id FROM t WHERE nope = 1
         => ERROR 1054 Unknown column 'nope' in 'where clause'
         SELECT id FROM t ORDER BY nope
         => ERROR 1054 Unknown column 'nope' in 'order clause'
         SELECT id FROM t GROUP BY nope
         => ERROR 1054 Unknown column 'nope' in 'group statement'
         SELECT u.id FROM t
         => ERROR 1054 Unknown column 'u.id' in 'field list'
         SELECT u.* FROM t
         => ERROR 1051 Unknown table 'u'
         SELECT nope(1)
         => ERROR 1305 FUNCTION nope does not exist
         SELECT ABS(1, 2)
         => ERROR 1582 Incorrect parameter count in the call to native function 'ABS'
         SELECT @@nope
         => ERROR 1193 Unknown system variable 'nope'
         SET nope = 1
         => ERROR 1193 Unknown system variable 'nope'
         SET version = 1
         => ERROR 1238 Variable 'version' is a read only variable
         SET autocommit = 7
         => ERROR 1231 Variable 'autocommit' can't be set to the value of '7'
         SELECT * FROM t LIMIT -1
         => ERROR 1064 …
         SELECT * FROM t LIMIT k
         => ERROR 1327 Undeclared variable: k",
    );
}

#[test]
fn hostile_texts_end_in_errors() {
    let mut desk = Desk::new();
    let texts = [
        format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT {}1", "-".repeat(100_000)),
        format!("SELECT {}1", "NOT ".repeat(100_000)),
        format!("SELECT {}1", "CASE WHEN ".repeat(10_000)),
        format!("SELECT {}", "f(".repeat(10_000)),
        format!("SELECT 1{}", " + f(1, 2)".repeat(100_000)),
        format!("SELECT 1, 1{}", " UNION SELECT 1, 1".repeat(100_000)),
        format!("SELECT 1{}", " AT TIME ZONE 'a'".repeat(100_000)),
        format!("SELECT 1{}", " IS NULL".repeat(1_600)),
    ];
    for text in texts {
        assert!(desk.run(&text).starts_with("ERROR"), "{}", &text[..20]);
    }
    for operator in [" OR 1", "+1"] {
        let long = format!("SELECT (1{}) > 0", operator.repeat(2_400));
        assert_eq!(desk.run(&long), "1", "{operator}");
    }
    let long = format!("SELECT 1 FROM dual WHERE 1 = 1{}", " AND 1 = 1".repeat(900));
    assert_eq!(desk.run(&long), "1");
}

#[test]
fn results_have_4096_columns_at_most() {
    let mut desk = Desk::new();
    let columns = |count: usize| {
        let all: Vec<String> = (0..count).map(|n| format!("{n} AS c{n}")).collect();
        all.join(", ")
    };
    assert!(desk.run(&format!("SELECT {}", columns(4_096))).starts_with("0|1|2|"));
    let refused = "ERROR 1117 Too many columns";
    assert_eq!(desk.run(&format!("SELECT {}", columns(4_097))), refused);
    assert_eq!(desk.run(&format!("CREATE VIEW v AS SELECT {}", columns(4_097))), refused);
    let names: Vec<String> = (0..500).map(|n| format!("c{n} INT")).collect();
    desk.run(&format!("CREATE TABLE wide ({})", names.join(", ")));
    let tables: Vec<String> = (0..9).map(|n| format!("wide w{n}")).collect();
    assert_eq!(desk.run(&format!("SELECT * FROM {}", tables.join(", "))), refused);
    assert_eq!(desk.run(&format!("SELECT * FROM {}", tables[..8].join(", "))), "");
}
