//! RENAME TABLE: answers are those of MySQL.

use crate::testing::Desk;

#[test]
fn tables_and_views_get_other_names() {
    Desk::new().check(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT, UNIQUE KEY (b))
         => ok 0
         CREATE TABLE u (a INT)
         => ok 0
         CREATE VIEW v AS SELECT a FROM t
         => ok 0
         INSERT INTO t VALUES (1,2)
         => ok 1
         INSERT INTO u VALUES (9)
         => ok 1
         RENAME TABLE v TO w
         => ok 0
         SELECT * FROM w
         => 1
         SELECT * FROM v
         => ERROR 1146 Table 'test.v' doesn't exist
         RENAME TABLE t TO x, u TO t, x TO u
         => ok 0
         SELECT * FROM w
         => 9
         SELECT * FROM t
         => 9
         SELECT * FROM u
         => 1|2
         RENAME TABLE t TO u
         => ERROR 1050 Table 'u' already exists
         RENAME TABLE nosuch TO y
         => ERROR 1146 Table 'test.nosuch' doesn't exist
         RENAME TABLE t TO y, nosuch TO z
         => ERROR 1146 Table 'test.nosuch' doesn't exist
         SHOW TABLES
         => t;u;w
         RENAME TABLE t TO nosuch.y
         => ERROR 1049 Unknown database 'nosuch'
         CREATE DATABASE IF NOT EXISTS otherdb
         => ok 1
         RENAME TABLE w TO otherdb.w
         => ERROR 1450 Changing schema from 'test' to 'otherdb' is not allowed.
         RENAME TABLE t TO otherdb.t
         => ok 0
         SELECT * FROM otherdb.t
         => 9
         RENAME TABLE t TO t
         => ERROR 1146 Table 'test.t' doesn't exist
         RENAME TABLE u TO u
         => ERROR 1050 Table 'u' already exists
         RENAME TABLE w TO u
         => ERROR 1050 Table 'u' already exists
         RENAME TABLE u TO w
         => ERROR 1050 Table 'w' already exists
         RENAME TABLE u TO aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
         => ERROR 1059 Identifier name 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' is too long
         RENAME TABLE u TO `x `
         => ERROR 1103 Incorrect table name 'x '
         RENAME TABLES u TO t, w TO v
         => ok 0
         SHOW FULL TABLES
         => t|BASE TABLE;v|VIEW
         SELECT * FROM v
         => 1",
    );
}

#[test]
fn a_renamed_table_keeps_its_rows_and_keys() {
    Desk::new().check(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT, UNIQUE KEY (b))
         => ok 0
         INSERT INTO t VALUES (1, 2)
         => ok 1
         BEGIN
         => ok 0
         INSERT INTO t VALUES (5, 5)
         => ok 1
         RENAME TABLE t TO t5
         => ok 0
         ROLLBACK
         => ok 0
         SELECT * FROM t5
         => 1|2;5|5
         INSERT INTO t5 VALUES (6, 5)
         => ERROR 1062 Duplicate entry '5' for key 't5.b'
         INSERT INTO t5 VALUES (6, 6)
         => ok 1",
    );
}
