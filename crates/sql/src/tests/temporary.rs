//! TEMPORARY tables.

use crate::session::Session;
use crate::store::Store;
use crate::testing::{Desk, client};
use std::sync::Arc;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, x INT);
         INSERT INTO t VALUES (1, 10), (2, 20)",
    );
    desk
}

/// How many temporary tables the cluster has.
fn count(desk: &Desk) -> usize {
    desk.session.shared.store.catalog().tables.values().filter_map(|t| t.owner()).count()
}

#[test]
fn a_temporary_table_hides_another_one() {
    let mut desk = desk();
    desk.check(
        "CREATE VIEW v AS SELECT id FROM t
         => ok 0
         CREATE TEMPORARY TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9) UNIQUE)
         => ok 0
         CREATE TEMPORARY TABLE t (a INT)
         => ERROR 1050 Table 't' already exists
         INSERT INTO t (b) VALUES ('x'), ('y')
         => ok 2
         INSERT INTO t (b) VALUES ('x')
         => ERROR 1062 …
         SELECT * FROM t ORDER BY a
         => 1|x;2|y
         SELECT * FROM v ORDER BY id
         => 1;2
         CREATE TEMPORARY TABLE v (c INT)
         => ok 0
         SELECT * FROM v
         => 
         CREATE VIEW w AS SELECT a FROM t
         => ERROR 1352 View's SELECT refers to a temporary table 't'
         SHOW TABLES
         => t;v
         DROP TABLE t, v
         => ok 0
         SELECT * FROM t ORDER BY id
         => 1|10;2|20
         SELECT COUNT(*) FROM v
         => 2
         DROP TEMPORARY TABLE t
         => ERROR 1051 Unknown table 'test.t'
         DROP TEMPORARY TABLE IF EXISTS t
         => ok 0",
    );
    assert_eq!(count(&desk), 0);
}

#[test]
fn plans_of_a_session_are_not_those_of_others() {
    let mut desk = desk();
    let query = "SELECT COUNT(*) FROM t";
    assert_eq!(desk.run(query), "2");
    desk.run("PREPARE p FROM 'SELECT COUNT(*) FROM t'");
    desk.run("CREATE TEMPORARY TABLE t (a INT)");
    assert_eq!(desk.run(query), "0");
    assert_eq!(desk.run("EXECUTE p"), "0");
    let other = Session::new(Arc::clone(&desk.session.shared), client());
    let own = std::mem::replace(&mut desk.session, other);
    desk.run("USE test");
    assert_eq!(desk.run(query), "2");
    assert_eq!(desk.run("CREATE TEMPORARY TABLE t (a INT, b INT)"), "ok 0");
    assert_eq!(count(&desk), 2);
    desk.end(own);
    assert_eq!(count(&desk), 1);
    assert_eq!(desk.run(query), "0");
    desk.run("DROP TEMPORARY TABLE t");
    assert_eq!(desk.run("EXECUTE p"), "2");
}

#[test]
fn a_session_takes_its_tables_with_it() {
    let mut desk = desk();
    desk.run("CREATE TEMPORARY TABLE s (a INT); BEGIN; CREATE TEMPORARY TABLE r (a INT)");
    desk.run("INSERT INTO s VALUES (1); DROP TEMPORARY TABLE s; INSERT INTO r VALUES (1)");
    assert_eq!(count(&desk), 2);
    let next = Session::new(Arc::clone(&desk.session.shared), client());
    desk.end(next);
    assert_eq!(count(&desk), 0);
}

#[test]
fn a_table_whose_creation_is_cut_off_does_not_stay() {
    let mut desk = desk();
    desk.store.inner().is_slow = true;
    desk.cut_off("CREATE TEMPORARY TABLE s (a INT)");
    desk.store.inner().is_slow = false;
    assert_eq!(count(&desk), 0);
    desk.check(
        "SELECT * FROM s
         => ERROR 1146 …
         CREATE TEMPORARY TABLE s (a INT)
         => ok 0
         SELECT * FROM s
         => ",
    );
    assert_eq!(count(&desk), 1);
}

#[test]
fn a_statement_names_one_once() {
    desk().check(
        "CREATE TEMPORARY TABLE s (a INT, b INT)
         => ok 0
         INSERT INTO s VALUES (1, 2), (2, 3)
         => ok 2
         SELECT * FROM s, s AS r
         => ERROR 1137 Can't reopen table: 's'
         SELECT * FROM s x JOIN s y ON x.a = y.b
         => ERROR 1137 Can't reopen table: 'x'
         SELECT a FROM s UNION SELECT b FROM s
         => ERROR 1137 Can't reopen table: 's'
         SELECT * FROM s WHERE a IN (SELECT b FROM s r)
         => ERROR 1137 Can't reopen table: 's'
         SELECT * FROM t WHERE id IN (SELECT x.a FROM s x WHERE EXISTS (SELECT * FROM s))
         => ERROR 1137 Can't reopen table: 'x'
         INSERT INTO s SELECT * FROM s
         => ERROR 1137 Can't reopen table: 's'
         WITH q AS (SELECT * FROM s) SELECT COUNT(*) FROM q, s
         => ERROR 1137 Can't reopen table: 's'
         SELECT a, (SELECT COUNT(*) FROM t WHERE id < a) AS n FROM s GROUP BY a, n HAVING n >= 0 ORDER BY n, a
         => 1|0;2|1
         SELECT id, (SELECT MAX(b) FROM s WHERE a = id) AS m FROM t GROUP BY id, m HAVING m > 2 ORDER BY m
         => 2|3
         INSERT INTO t SELECT a + 10, b FROM s
         => ok 2
         UPDATE t, s SET t.x = s.b WHERE t.id = s.a + 10
         => ok 0
         DELETE FROM s WHERE a = 1
         => ok 1",
    );
}

#[test]
fn many_tables_hide_others() {
    let mut desk = desk();
    for at in 0..60 {
        assert_eq!(desk.run(&format!("CREATE TABLE o{at} (a INT UNIQUE)")), "ok 0");
        assert_eq!(desk.run(&format!("CREATE TEMPORARY TABLE o{at} (b INT UNIQUE)")), "ok 0");
    }
    assert_eq!(desk.run("CREATE TEMPORARY TABLE only (b INT)"), "ok 0");
    assert_eq!(desk.run("SELECT o7.b, o59.b, only.b FROM o7, o59 JOIN only"), "");
    assert_eq!(desk.run("DROP TEMPORARY TABLE o7"), "ok 0");
    assert_eq!(desk.run("SELECT a FROM o7"), "");
    assert_eq!(desk.run("SELECT a FROM o8"), "ERROR 1054 Unknown column 'a' in 'field list'");
}

#[test]
fn they_commit_nothing_and_are_not_rolled_back() {
    let mut desk = desk();
    desk.check(
        "CREATE TEMPORARY TABLE old (a INT)
         => ok 0
         BEGIN
         => ok 0
         INSERT INTO t VALUES (3, 30)
         => ok 1
         CREATE TEMPORARY TABLE s SELECT id FROM t
         => ok 3
         INSERT INTO old VALUES (1)
         => ok 1
         DROP TEMPORARY TABLE old
         => ok 0
         SELECT * FROM old
         => ERROR 1146 …
         ROLLBACK
         => ok 0
         SELECT COUNT(*) FROM t
         => 2
         SELECT COUNT(*) FROM s
         => 0
         START TRANSACTION READ ONLY
         => ok 0
         INSERT INTO s VALUES (7)
         => ok 1
         CREATE TEMPORARY TABLE r (a INT)
         => ERROR 1792 …
         INSERT INTO t VALUES (4, 40)
         => ERROR 1792 …
         COMMIT
         => ok 0
         SELECT * FROM s
         => 7",
    );
    assert_eq!(count(&desk), 1);
}

#[test]
fn definitions_of_them() {
    let mut desk = desk();
    desk.check(
        "CREATE TEMPORARY TABLE t LIKE t
         => ERROR 1066 Not unique table/alias: 't'
         CREATE TABLE s LIKE t
         => ok 0
         CREATE TEMPORARY TABLE t LIKE s
         => ok 0
         DROP TABLE s
         => ok 0
         SHOW CREATE TABLE t
         => t|CREATE TEMPORARY TABLE `t` (…
         INSERT INTO t VALUES (1, 5), (2, 5)
         => ok 2
         CREATE UNIQUE INDEX u ON t (x)
         => ERROR 1062 …
         CREATE INDEX i ON t (x)
         => ok 0
         DROP INDEX i ON t
         => ok 0
         TRUNCATE t
         => ok 0
         CREATE UNIQUE INDEX u ON t (x)
         => ok 0
         INSERT INTO t VALUES (1, 5)
         => ok 1
         SELECT * FROM t WHERE x = 5
         => 1|5
         CREATE TEMPORARY TABLE nowhere.t (a INT)
         => ERROR 1049 …
         CREATE TEMPORARY TABLE s SELECT id, nope FROM t
         => ERROR 1054 …
         CREATE TEMPORARY TABLE s (a INT PRIMARY KEY) SELECT 1 AS a UNION ALL SELECT 1
         => ERROR 1062 …
         SELECT * FROM s
         => ERROR 1146 …
         CREATE TEMPORARY TABLE IF NOT EXISTS t (z INT)
         => ok 0
         SELECT * FROM t
         => 1|5
         DROP TABLE t
         => ok 0
         SELECT COUNT(*) FROM t
         => 2",
    );
    assert_eq!(count(&desk), 0);
}
