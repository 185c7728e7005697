//! Plans that sessions share: each gets what its own settings say, and what definitions say now.

use crate::session::Session;
use crate::sessions::Why;
use crate::testing::{Desk, Memory, client};
use lats_values::Value;
use std::sync::Arc;

/// A desk, and another session of the same process.
fn two() -> (Desk, Session<Memory>) {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10))
         => ok 0
         INSERT INTO t VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'z')
         => ok 3
         CREATE DATABASE d
         => ok 1
         CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(10))
         => ok 0
         INSERT INTO d.t VALUES (1, 'other')
         => ok 1",
    );
    let mut other = Session::new(Arc::clone(&desk.session.shared), client());
    other.use_database("test").unwrap();
    (desk, other)
}

/// Runs a statement in the other session.
fn in_other(desk: &mut Desk, other: &mut Session<Memory>, text: &str) -> String {
    std::mem::swap(&mut desk.session, other);
    let found = desk.run(text);
    std::mem::swap(&mut desk.session, other);
    found
}

#[test]
fn definitions_that_another_session_changes_are_seen() {
    let (mut desk, mut other) = two();
    let query = "SELECT * FROM t WHERE id = 1";
    let join = "SELECT * FROM t JOIN t u ON u.id = t.id WHERE t.id = 1";
    assert_eq!(desk.run(query), "1|1|x");
    assert_eq!(in_other(&mut desk, &mut other, query), "1|1|x");
    assert_eq!(desk.run(join), "1|1|x|1|1|x");
    let id = desk.prepare(b"SELECT * FROM t WHERE id = ?").unwrap().id;
    assert_eq!(desk.again(id, &[Value::Int(1)]), "1|1|x");
    desk.run("PREPARE named FROM 'SELECT * FROM t JOIN t u ON u.id = t.id WHERE t.id = 1'");
    assert_eq!(desk.run("EXECUTE named"), "1|1|x|1|1|x");
    in_other(&mut desk, &mut other, "DROP TABLE t");
    assert!(desk.run(query).starts_with("ERROR 1146"));
    assert!(desk.again(id, &[Value::Int(1)]).starts_with("ERROR 1146"));
    in_other(&mut desk, &mut other, "CREATE TABLE t (c VARCHAR(5), id INT PRIMARY KEY)");
    in_other(&mut desk, &mut other, "INSERT INTO t VALUES ('new', 1)");
    for _ in 0..2 {
        assert_eq!(desk.run(query), "new|1");
        assert_eq!(desk.run(join), "new|1|new|1");
        assert_eq!(desk.again(id, &[Value::Int(1)]), "new|1");
        assert_eq!(desk.run("EXECUTE named"), "new|1|new|1");
        assert_eq!(in_other(&mut desk, &mut other, query), "new|1");
    }
}

#[test]
fn settings_and_databases_have_plans_of_their_own() {
    let (mut desk, mut other) = two();
    in_other(&mut desk, &mut other, "SET sql_mode = 'ANSI_QUOTES'");
    for _ in 0..2 {
        assert_eq!(desk.run("SELECT \"a\" FROM t WHERE id = 3"), "a");
        assert_eq!(in_other(&mut desk, &mut other, "SELECT \"a\" FROM t WHERE id = 3"), "2");
        let grouped = "SELECT b FROM t GROUP BY a";
        assert!(desk.run(grouped).starts_with("ERROR 1055"));
        assert_eq!(in_other(&mut desk, &mut other, grouped), "x;z");
    }
    in_other(&mut desk, &mut other, "USE d");
    let query = "SELECT a FROM t WHERE id = 1";
    for _ in 0..2 {
        assert_eq!(desk.run(query), "1");
        assert_eq!(in_other(&mut desk, &mut other, query), "other");
    }
    let concat = "SELECT GROUP_CONCAT(b ORDER BY id) FROM test.t";
    in_other(&mut desk, &mut other, "SET group_concat_max_len = 4");
    for _ in 0..2 {
        assert_eq!(desk.run(concat), "x,y,z");
        assert_eq!(in_other(&mut desk, &mut other, concat), "x,y,");
    }
}

#[test]
fn values_of_other_types_have_plans_of_their_own() {
    let (mut desk, mut other) = two();
    desk.run("SET @x = 2");
    in_other(&mut desk, &mut other, "SET @x = 'text'");
    let query = "SELECT t.id, @x FROM t JOIN t u ON u.id = t.id WHERE t.a = 2";
    for _ in 0..3 {
        assert_eq!(desk.run(query), "3|2");
        assert_eq!(in_other(&mut desk, &mut other, query), "3|text");
    }
    let id = desk.prepare(b"SELECT t.id, ? FROM t JOIN t u ON u.id = t.id WHERE t.a = 2");
    let id = id.unwrap().id;
    for value in [Value::Int(7), Value::text("seven"), Value::Null, Value::Double(0.5)] {
        assert_eq!(
            desk.again(id, std::slice::from_ref(&value)),
            format!("3|{}", value.to_display())
        );
    }
}

#[test]
fn subqueries_of_many_rows_ask_together() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE u (id INT PRIMARY KEY, k INT UNIQUE, v INT)
         => ok 0
         INSERT INTO u VALUES (1, 10, 100), (2, 20, 200), (3, 30, 300)
         => ok 3
         CREATE TABLE t (id INT PRIMARY KEY, k INT)
         => ok 0
         INSERT INTO t VALUES (1, 20), (2, 10), (3, NULL), (4, 40)
         => ok 4",
    );
    desk.store.inner().log.clear();
    let query = "SELECT id, (SELECT v FROM u WHERE u.k = t.k) FROM t ORDER BY id";
    assert_eq!(desk.run(query), "1|200;2|100;3|NULL;4|NULL");
    let log = desk.store.inner().log.join(", ");
    // Rows come in batches of three: those of a batch ask together, for entries of the index and then for rows.
    let reads = log.matches("read").count();
    assert!(reads <= 3, "{log}");
}

#[test]
fn a_join_that_was_planned_for_few_rows_serves_many() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE many (id INT PRIMARY KEY, k INT NOT NULL, KEY (k)); CREATE TABLE few (id INT PRIMARY KEY, v INT NOT NULL)");
    for part in 0..8 {
        let rows: Vec<String> =
            (0..1_000).map(|at| format!("({}, {})", part * 1_000 + at, at % 500)).collect();
        desk.run(&format!("INSERT INTO many VALUES {}", rows.join(",")));
    }
    let rows: Vec<String> = (0..400).map(|at| format!("({at}, {})", at * 2)).collect();
    desk.run(&format!("INSERT INTO few VALUES {}", rows.join(",")));
    let queries = [
        (
            "SELECT COUNT(*), SUM(v) FROM many JOIN few ON few.id = k WHERE many.id < ?",
            "3|6",
            "6400|2553600",
        ),
        (
            "SELECT COUNT(*), SUM(v) FROM many LEFT JOIN few ON few.id = k AND v > 6 WHERE many.id < ?",
            "3|NULL",
            "8000|2553408",
        ),
        (
            "SELECT COUNT(*), SUM(k) FROM many WHERE id < ? AND EXISTS (SELECT * FROM few WHERE few.id = k)",
            "3|3",
            "6400|1276800",
        ),
        (
            "SELECT COUNT(*), SUM(k) FROM many WHERE id < ? AND NOT EXISTS (SELECT * FROM few WHERE few.id = k)",
            "0|NULL",
            "1600|719200",
        ),
    ];
    for (query, few, many) in queries {
        let id = desk.prepare(query.as_bytes()).unwrap().id;
        assert_eq!(desk.again(id, &[Value::Int(3)]), few, "{query}");
        assert_eq!(desk.again(id, &[Value::Int(8_000)]), many, "{query}");
    }
}

/// Long texts are planned elsewhere: what ended the statement before does not end them, and KILL is heard meanwhile.
#[test]
fn long_statements_are_planned_whatever_was_killed_before() {
    let (mut desk, _) = two();
    let list = (0..5_000).map(|n| format!("{n}")).collect::<Vec<_>>().join(",");
    let query = format!("SELECT id FROM t WHERE a IN ({list}) ORDER BY id");
    assert_eq!(desk.run(&query), "1;2;3");
    desk.session.client.handle.end(Why::Query);
    assert!(desk.prepare_for_client(query.as_bytes()).is_ok());
    desk.session.client.handle.end(Why::Query);
    assert_eq!(desk.run(&query), "1;2;3");
    // Without a beginning it is still to end.
    desk.session.client.handle.end(Why::Query);
    let ended = desk.prepare(query.replace("id", "ID").as_bytes());
    assert_eq!(ended.map_err(|error| error.errno).err(), Some(1317));
    assert_eq!(
        desk.run(&format!("SELECT nosuch FROM t WHERE a IN ({list})")),
        "ERROR 1054 Unknown column 'nosuch' in 'field list'"
    );
}
