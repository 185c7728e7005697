//! Unique keys: what they refuse, how rows are found by them, how they come and go.

use crate::testing::Desk;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), a INT, b INT, UNIQUE KEY name (name), UNIQUE KEY (a, b))
         => ok 0
         INSERT INTO t VALUES (1, 'Anna', 1, 1), (2, 'Bo', 1, 2), (3, NULL, NULL, 2), (4, NULL, NULL, 2)
         => ok 4",
    );
    desk
}

#[test]
fn keys_that_are_taken() {
    desk().check(
        "INSERT INTO t VALUES (5, 'anna', 7, 7)
         => ERROR 1062 Duplicate entry 'anna' for key 't.name'
         INSERT INTO t VALUES (5, 'c', 1, 2)
         => ERROR 1062 Duplicate entry '1-2' for key 't.a'
         INSERT INTO t VALUES (1, 'c', 9, 9)
         => ERROR 1062 Duplicate entry '1' for key 't.PRIMARY'
         INSERT INTO t VALUES (5, 'c', 3, 3), (6, 'C', 4, 4)
         => ERROR 1062 Duplicate entry 'C' for key 't.name'
         UPDATE t SET name = 'BO' WHERE id = 1
         => ERROR 1062 Duplicate entry 'BO' for key 't.name'
         UPDATE t SET name = 'ANNA' WHERE id = 1
         => ok 1
         UPDATE t SET id = 10, name = 'bo' WHERE id = 1
         => ERROR 1062 Duplicate entry 'bo' for key 't.name'
         SELECT id, name FROM t ORDER BY id
         => 1|ANNA;2|Bo;3|NULL;4|NULL
         BEGIN
         => ok 0
         INSERT INTO t VALUES (7, 'g', 7, 7)
         => ok 1
         INSERT INTO t VALUES (8, 'h', 8, 8), (9, 'G', 9, 9)
         => ERROR 1062 Duplicate entry 'G' for key 't.name'
         COMMIT
         => ok 0
         SELECT id FROM t WHERE id > 4
         => 7
         DELETE FROM t WHERE name = 'g'
         => ok 1
         INSERT INTO t VALUES (9, 'G', 7, 7)
         => ok 1",
    );
}

#[test]
fn rows_by_unique_keys() {
    let mut desk = desk();
    desk.check(
        "SELECT id FROM t WHERE name = 'ANNA'
         => 1
         SELECT id FROM t WHERE name IN ('bo', 'nobody', 'anna') ORDER BY id DESC
         => 2;1
         SELECT id FROM t WHERE a = 1 AND b = 2 AND id > 1
         => 2
         SELECT id FROM t WHERE a = 1 AND b = 2 AND id > 2
         =>
         SELECT id FROM t WHERE name = NULL
         =>
         SELECT id FROM t WHERE name IS NULL ORDER BY id
         => 3;4
         SELECT b FROM t WHERE name = 'bo' FOR UPDATE
         => 2
         UPDATE t SET b = 5 WHERE name = 'bo' LIMIT 1
         => ok 1
         UPDATE t SET b = b + 1 WHERE name IN ('anna', 'bo')
         => ok 2
         SELECT id, b FROM t WHERE a = 1 ORDER BY b
         => 1|2;2|6
         DELETE FROM t WHERE a = 1 AND b = 6
         => ok 1
         SELECT COUNT(*) FROM t
         => 3",
    );
    desk.store.inner().log.clear();
    assert_eq!(desk.run("SELECT id FROM t WHERE name = 'anna'"), "1");
    // The entry, and the row: no scan.
    assert_eq!(desk.store.inner().log, ["read 1", "read 1"]);
}

#[test]
fn rows_that_give_way() {
    desk().check(
        "INSERT IGNORE INTO t VALUES (5, 'Anna', 5, 5)
         => ok 0
         SHOW WARNINGS
         => Warning|1062|Duplicate entry 'Anna' for key 't.name'
         INSERT IGNORE INTO t VALUES (5, 'e', 5, 5), (6, 'E', 6, 6), (6, 'f', 6, 6)
         => ok 2
         SELECT id, name FROM t WHERE id > 4 ORDER BY id
         => 5|e;6|f
         REPLACE INTO t VALUES (1, 'bo', 5, 5)
         => ok 4
         SELECT id, name FROM t ORDER BY id
         => 1|bo;3|NULL;4|NULL;6|f
         INSERT INTO t VALUES (9, 'F', 9, 9) ON DUPLICATE KEY UPDATE a = VALUES(a), b = 10
         => ok 2
         SELECT id, name, a, b FROM t WHERE name = 'f'
         => 6|f|9|10
         INSERT INTO t VALUES (9, 'F', 9, 9) ON DUPLICATE KEY UPDATE name = 'BO'
         => ERROR 1062 Duplicate entry 'BO' for key 't.name'
         INSERT INTO t VALUES (9, 'i', 9, 9), (10, 'I', 11, 11) ON DUPLICATE KEY UPDATE a = 12
         => ok 3
         SELECT id, name, a, b FROM t WHERE id > 6
         => 9|i|12|9
         TRUNCATE TABLE t
         => ok 0
         INSERT INTO t VALUES (1, 'bo', 1, 1)
         => ok 1
         INSERT INTO t VALUES (2, 'bo', 2, 2)
         => ERROR 1062 Duplicate entry 'bo' for key 't.name'",
    );
}

#[test]
fn indexes_come_and_go() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(20) NOT NULL UNIQUE, n INT, KEY (n))
         => ok 0
         INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 1)
         => ok 2
         CREATE UNIQUE INDEX by_n ON t (n)
         => ERROR 1062 Duplicate entry '1' for key 't.by_n'
         UPDATE t SET n = 2 WHERE id = 2
         => ok 1
         CREATE UNIQUE INDEX by_n ON t (n)
         => ok 0
         INSERT INTO t VALUES (3, 'z', 2)
         => ERROR 1062 Duplicate entry '2' for key 't.by_n'
         SELECT id FROM t WHERE n = 2
         => 2
         SHOW COLUMNS FROM t LIKE 'email'
         => email|varchar(20)|NO|UNI|NULL|
         DROP INDEX by_n ON t
         => ok 0
         DROP INDEX by_n ON t
         => ERROR 1091 Can't DROP 'by_n'; check that column/key exists
         INSERT INTO t VALUES (3, 'z', 2)
         => ok 1
         SHOW TABLES
         => t",
    );
    let text = desk.run("SHOW CREATE TABLE t");
    assert!(text.contains("UNIQUE KEY `email` (`email`),\n  KEY `n` (`n`)"), "{text}");
    let again = text.split_once('|').map(|(_, t)| t.replace("`t`", "`u`")).unwrap_or_default();
    assert_eq!(desk.run(&again), "ok 0", "{again}");
}

/// What one row of a statement does the next one meets, as in MySQL.
#[test]
fn rows_of_a_statement_come_in_their_order() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE o (id INT PRIMARY KEY, u CHAR(1) UNIQUE, n INT)
         => ok 0
         INSERT INTO o VALUES (1, 'a', 0)
         => ok 1
         REPLACE INTO o VALUES (1, 'b', 1), (2, 'b', 2)
         => ok 4
         SELECT id, u, n FROM o
         => 2|b|2
         DELETE FROM o
         => ok 1
         INSERT INTO o VALUES (1, 'a', 0)
         => ok 1
         INSERT INTO o VALUES (1, 'b', 1), (2, 'b', 2) ON DUPLICATE KEY UPDATE u = VALUES(u), n = n + 1
         => ok 4
         SELECT id, u, n FROM o
         => 1|b|2
         INSERT INTO o VALUES (5, 'x', 0), (1, 'y', 0), (6, 'x', 0) ON DUPLICATE KEY UPDATE n = n + 10
         => ok 5
         SELECT id, u, n FROM o ORDER BY id
         => 1|b|12;5|x|10",
    );
}
