//! INSERT, UPDATE, DELETE, REPLACE.

use crate::testing::Desk;
use lats_values::Value;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, k INT UNSIGNED NOT NULL DEFAULT 0, c CHAR(5) DEFAULT 'x', PRIMARY KEY (id), KEY k (k))");
    desk
}

#[test]
fn insert() {
    desk().check(
        "INSERT INTO t (k) VALUES (5), (6)
         => ok 2
         SELECT LAST_INSERT_ID(), ROW_COUNT()
         => 1|2
         INSERT INTO t VALUES (10, 1 + 1, 'abc'), (NULL, DEFAULT, DEFAULT)
         => ok 2
         INSERT INTO t SET k = 9, c = NULL
         => ok 1
         INSERT INTO t () VALUES ()
         => ok 1
         SELECT * FROM t
         => 1|5|x;2|6|x;10|2|abc;11|0|x;12|9|NULL;13|0|x
         INSERT INTO t (id, k) VALUES (1, 1)
         => ERROR 1062 Duplicate entry '1' for key 't.PRIMARY'
         INSERT INTO t (id, k) VALUES (20, 1), (2, 1)
         => ERROR 1062 Duplicate entry '2' for key 't.PRIMARY'
         SELECT COUNT(*) FROM t WHERE id = 20
         => 0
         INSERT INTO t (id, k) VALUES (0, 77)
         => ok 1
         SELECT id FROM t WHERE k = 77
         => 21",
    );
}

/// Rows of literals are not read by the parser, but what stands around them is.
#[test]
fn rows_of_literals() {
    desk().check(
        "INSERT INTO t (k, c) VALUES (1, 'a'), (2, 'b\\'c'), (3, NULL);
         => ok 3
         INSERT INTO t (c, k) VALUES ('z', 7), ('y', 8) ON DUPLICATE KEY UPDATE k = VALUES(k)
         => ok 2
         SET @x = 5
         => ok 0
         INSERT INTO t VALUES (1, 2, 'new') ON DUPLICATE KEY UPDATE k = k + VALUES(k) + @x, c = 'old'
         => ok 2
         INSERT INTO t VALUES (1, 2, 'n') AS new ON DUPLICATE KEY UPDATE c = new.c
         => ok 2
         REPLACE INTO t VALUES (2, 20, 'r'), (9, 90, 's')
         => ok 3
         INSERT IGNORE INTO t VALUES (9, 91, 'no'), (10, 100, 'yes')
         => ok 1
         SELECT * FROM t
         => 1|8|n;2|20|r;3|3|NULL;4|7|z;5|8|y;9|90|s;10|100|yes
         INSERT INTO t (k) VALUES (1) /*! ,(2) */
         => ok 2
         INSERT INTO t (k, c) VALUES (1, 'a'), (1)
         => ERROR 1136 Column count doesn't match value count at row 2
         INSERT INTO t (k, c) VALUES (1)
         => ERROR 1136 Column count doesn't match value count at row 1
         INSERT INTO t (k) VALUES (1) RETURNING id
         => ERROR 1064 …
         INSERT INTO nope VALUES (1)
         => ERROR 1146 Table 'test.nope' doesn't exist
         INSERT INTO t VALUES (1, 2, 'a') ORDER BY 1
         => ERROR 1064 …
         SET sql_mode = ''
         => ok 0
         INSERT INTO t VALUES (30, NULL, 'a'), (31, -1, 'toolong')
         => ok 2
         SHOW WARNINGS
         => Warning|1048|Column 'k' cannot be null;Warning|1264|Out of range value for column 'k' at row 2;Warning|1265|Data truncated for column 'c' at row 2
         INSERT INTO t VALUES (32, NULL, 'a')
         => ERROR 1048 Column 'k' cannot be null
         SELECT * FROM t WHERE id >= 30
         => 30|0|a;31|0|toolo",
    );
}

#[test]
fn values_that_do_not_fit() {
    desk().check(
        "INSERT INTO t (k) VALUES (-1)
         => ERROR 1264 Out of range value for column 'k' at row 1
         INSERT INTO t (k, c) VALUES (1, 'a'), (1, 'toolong')
         => ERROR 1406 Data too long for column 'c' at row 2
         INSERT INTO t (k) VALUES ('abc')
         => ERROR 1366 Incorrect integer value: 'abc' for column 'k' at row 1
         INSERT INTO t (k) VALUES (NULL)
         => ERROR 1048 Column 'k' cannot be null
         INSERT INTO t (k) VALUES (1, 2)
         => ERROR 1136 Column count doesn't match value count at row 1
         INSERT INTO t (k, k) VALUES (1, 2)
         => ERROR 1110 Column 'k' specified twice
         INSERT INTO t (nope) VALUES (1)
         => ERROR 1054 Unknown column 'nope' in 'field list'
         INSERT INTO t (k) VALUES (1/0)
         => ERROR 1365 Division by 0
         CREATE TABLE strict (a INT PRIMARY KEY, b INT NOT NULL)
         => ok 0
         INSERT INTO strict (a) VALUES (1)
         => ERROR 1364 Field 'b' doesn't have a default value
         INSERT IGNORE INTO strict (a) VALUES (1)
         => ok 1
         SHOW WARNINGS
         => Warning|1364|Field 'b' doesn't have a default value
         SELECT * FROM strict
         => 1|0
         INSERT INTO t (k) VALUES (1)
         => ok 1
         UPDATE t SET k = k - 2
         => ERROR 1690 …
         UPDATE t SET k = 5000000000 WHERE id = 1
         => ERROR 1264 Out of range value for column 'k' at row 1
         UPDATE t SET k = NULL WHERE k = 1
         => ERROR 1048 Column 'k' cannot be null",
    );
}

#[test]
fn taken_keys() {
    desk().check(
        "INSERT INTO t (id, k, c) VALUES (1, 1, 'a'), (2, 2, 'b')
         => ok 2
         INSERT IGNORE INTO t (id, k) VALUES (1, 9), (3, 3)
         => ok 1
         SHOW WARNINGS
         => Warning|1062|Duplicate entry '1' for key 't.PRIMARY'
         INSERT INTO t (id, k) VALUES (1, 5), (4, 4) ON DUPLICATE KEY UPDATE k = t.k + VALUES(k), c = 'u'
         => ok 3
         INSERT INTO t (id, k) VALUES (2, 7) AS new ON DUPLICATE KEY UPDATE k = new.k
         => ok 2
         INSERT INTO t (id, k) VALUES (2, 7) ON DUPLICATE KEY UPDATE k = 7
         => ok 0
         REPLACE INTO t (id, k) VALUES (1, 100), (5, 5)
         => ok 3
         SELECT * FROM t
         => 1|100|x;2|7|b;3|3|x;4|4|x;5|5|x",
    );
}

#[test]
fn update_and_delete() {
    desk().check(
        "INSERT INTO t (id, k, c) VALUES (1,1,'a'),(2,2,'b'),(3,3,'c'),(4,4,'d')
         => ok 4
         UPDATE t SET k = k + 1 WHERE id = 1
         => ok 1
         UPDATE t SET k = 2 WHERE id = 1
         => ok 0
         UPDATE t SET k = k * 10, c = k WHERE id IN (2, 3) AND c <> 'c'
         => ok 1
         SELECT * FROM t WHERE id = 2
         => 2|20|20
         UPDATE t SET k = 7 WHERE k BETWEEN 2 AND 3
         => ok 2
         UPDATE t SET c = 'z' WHERE c LIKE '%d%'
         => ok 1
         UPDATE t SET k = 8 ORDER BY id DESC LIMIT 1
         => ok 1
         SELECT id FROM t WHERE k = 8
         => 4
         UPDATE t SET c = 'lim' ORDER BY k, id DESC LIMIT 2
         => ok 2
         SELECT id FROM t WHERE c = 'lim'
         => 1;3
         UPDATE t SET id = id + 10 WHERE id < 3
         => ok 2
         UPDATE t SET id = 3 WHERE id = 4
         => ERROR 1062 Duplicate entry '3' for key 't.PRIMARY'
         UPDATE t SET c = DEFAULT WHERE id = 11
         => ok 1
         SELECT id, c FROM t
         => 3|lim;4|z;11|x;12|20
         UPDATE t SET nope = 1
         => ERROR 1054 Unknown column 'nope' in 'field list'
         DELETE FROM t WHERE id = 3
         => ok 1
         DELETE FROM t WHERE id = 3
         => ok 0
         DELETE FROM t WHERE k = 8 AND c = 'q'
         => ok 0
         DELETE FROM t ORDER BY id LIMIT 1
         => ok 1
         DELETE FROM t WHERE id IN (11, 12) LIMIT 1
         => ok 1
         DELETE FROM t
         => ok 1",
    );
}

#[test]
fn one_round_trip_by_key() {
    let mut desk = desk();
    desk.run("INSERT INTO t (id, k) VALUES (1, 1)");
    desk.store.inner().log.clear();
    desk.run("UPDATE t SET k = k + 1 WHERE id = 1; INSERT INTO t (id, k) VALUES (2, 2); DELETE FROM t WHERE id = 2; SELECT k FROM t WHERE id = 1");
    let log = desk.store.inner().log.clone();
    assert_eq!(log, ["execute 1 commit", "execute 1 commit", "execute 1 commit", "read 1"]);
}

#[test]
fn many_rows_go_in_chunks() {
    let mut desk = desk();
    let rows: Vec<String> = (1..=9_000).map(|n| format!("({n}, {n})")).collect();
    let found = desk.run(&format!("INSERT INTO t (id, k) VALUES {}", rows.join(",")));
    assert_eq!(found, "ok 9000");
    assert_eq!(desk.run("UPDATE t SET k = 0 WHERE id <= 8999"), "ok 8999");
    assert_eq!(desk.run("SELECT COUNT(*), SUM(k) FROM t"), "9000|9000");
    assert_eq!(desk.run("DELETE FROM t"), "ok 9000");
}

#[test]
fn times_and_hidden_keys() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE log (what VARCHAR(10), at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), changed DATETIME DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP)
         => ok 0
         INSERT INTO log (what) VALUES ('a'), ('a')
         => ok 2
         SELECT * FROM log
         => a|2023-11-14 22:13:20.123|NULL;a|2023-11-14 22:13:20.123|NULL
         SELECT LAST_INSERT_ID()
         => 0
         UPDATE log SET what = 'b' LIMIT 1
         => ok 1
         SELECT what, changed FROM log
         => b|2023-11-14 22:13:20;a|NULL
         UPDATE log SET what = 'b'
         => ok 1
         SELECT COUNT(*) FROM log WHERE at = '2023-11-14 22:13:20.123'
         => 2",
    );
}

#[test]
fn prepared() {
    let mut desk = desk();
    let insert = "INSERT INTO t (id, k, c) VALUES (?, ?, ?)";
    assert_eq!(desk.execute(insert, &[Value::Int(1), Value::text("4"), Value::Null]), "ok 1");
    let found = desk.execute(insert, &[Value::Int(1), Value::Int(4), Value::Null]);
    assert_eq!(found, "ERROR 1062 Duplicate entry '1' for key 't.PRIMARY'");
    let update = "UPDATE t SET k = k + ? WHERE id = ?";
    assert_eq!(desk.execute(update, &[Value::Int(3), Value::Int(1)]), "ok 1");
    assert_eq!(desk.run("SELECT k FROM t"), "7");
    assert_eq!(desk.execute("DELETE FROM t WHERE k >= ?", &[Value::Int(7)]), "ok 1");
}

#[test]
fn long_conditions_reach_the_data_nodes() {
    let mut desk = desk();
    desk.run("INSERT INTO t (id, k) VALUES (1, 1), (2, 2)");
    let terms: Vec<String> = (0..900).map(|n| format!("c = 'q{n}'")).collect();
    let found = desk.run(&format!("SELECT id FROM t WHERE k + 0 = 2 OR {}", terms.join(" OR ")));
    assert_eq!(found, "2");
    let terms: Vec<String> = (0..900).map(|n| format!("k <> {}", n + 10)).collect();
    let found = desk.run(&format!("UPDATE t SET k = 5 WHERE {}", terms.join(" AND ")));
    assert_eq!(found, "ok 2");
}

const UPSERTS_OF_QUERIES: &str = "
    INSERT INTO t (id, a, b) SELECT id, a, b FROM u ON DUPLICATE KEY UPDATE a = VALUES(a), b = t.b + VALUES(b)
    => ok 5
    SELECT * FROM t ORDER BY id
    => 1|10|110;2|20|220;3|30|30
    INSERT INTO t (id, a) SELECT id + 1, SUM(a) FROM u GROUP BY id ON DUPLICATE KEY UPDATE a = a + 1, b = VALUES(a)
    => ok 5
    SELECT * FROM t ORDER BY id
    => 1|10|110;2|21|10;3|31|20;4|30|NULL
    INSERT INTO t (id, a) SELECT 1, 5 UNION SELECT 9, 9 ON DUPLICATE KEY UPDATE a = 7
    => ok 3
    INSERT INTO t VALUES (1, (SELECT MAX(a) FROM u), 3), (8, 8, 8) ON DUPLICATE KEY UPDATE a = VALUES(a) + t.a
    => ok 3
    SELECT * FROM t WHERE id IN (1, 8, 9) ORDER BY id
    => 1|37|110;8|8|8;9|9|NULL
    INSERT INTO t (id, a) SELECT id, a FROM u ON DUPLICATE KEY UPDATE a = b
    => ERROR 1052 …
    INSERT INTO t (id, a) SELECT id, a FROM u ON DUPLICATE KEY UPDATE a = u.a
    => ERROR 1235 …
    INSERT INTO t (id, a) SELECT id, a FROM u ON DUPLICATE KEY UPDATE a = c
    => ERROR 1235 …
    INSERT INTO t (id, a) SELECT id, a FROM u ON DUPLICATE KEY UPDATE c = 1
    => ERROR 1054 …
    INSERT INTO t (id, a) SELECT id, a FROM u ON DUPLICATE KEY UPDATE a = nope
    => ERROR 1054 …
    INSERT INTO t (id, a) SELECT x.id, x.a FROM (SELECT id, a, b FROM u) AS x ON DUPLICATE KEY UPDATE a = b
    => ERROR 1052 …
    INSERT INTO t (id, a) SELECT x.id, x.a FROM (SELECT id, a FROM u) AS x ON DUPLICATE KEY UPDATE a = VALUES(a) + b
    => ok 6
    SELECT * FROM t WHERE id < 4 ORDER BY id
    => 1|120|110;2|30|10;3|50|20
    INSERT INTO t (id, a) SELECT id, a FROM t ON DUPLICATE KEY UPDATE a = t.a + 1
    => ERROR 1052 …";

#[test]
fn upserts_of_queries() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT);
         INSERT INTO t VALUES (1,1,100),(2,2,200);
         CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT, c INT);
         INSERT INTO u VALUES (1,10,10,0),(2,20,20,0),(3,30,30,0)",
    );
    desk.check(UPSERTS_OF_QUERIES);
}

#[test]
fn a_numbered_column_need_not_be_a_primary_key() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE n (a INT NOT NULL AUTO_INCREMENT, b INT, KEY (a))
         => ok 0
         INSERT INTO n (b) VALUES (1), (2)
         => ok 2
         SELECT LAST_INSERT_ID()
         => 1
         INSERT INTO n VALUES (2, 3), (1, 4)
         => ok 2
         INSERT INTO n VALUES (50, 5), (NULL, 6)
         => ok 2
         SELECT b FROM n WHERE a <= 2 ORDER BY a, b
         => 1;4;2;3
         SELECT COUNT(*), COUNT(DISTINCT a) FROM n WHERE a > 50
         => 1|1
         UPDATE n SET a = 2 WHERE b = 6
         => ok 1
         SELECT COUNT(*) FROM n WHERE a = 2
         => 3
         DELETE FROM n WHERE b = 3
         => ok 1
         SELECT * FROM n WHERE b IN (2, 6)  ORDER BY b
         => 2|2;2|6",
    );
}
