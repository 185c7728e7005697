//! LIMIT in changes through views, and careful sessions: answers are those of MySQL.

use crate::testing::Desk;

/// A table with keys and one without any, and views of each that have or lack a key.
fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL, c INT, UNIQUE KEY (b), UNIQUE KEY (c));
         CREATE TABLE nk (a INT, b INT);
         INSERT INTO t VALUES (1,1,1),(2,2,2);
         INSERT INTO nk VALUES (1,1),(2,2);
         CREATE VIEW va AS SELECT a, c FROM t;
         CREATE VIEW vc AS SELECT c FROM t;
         CREATE VIEW nka AS SELECT a FROM nk;
         CREATE VIEW nkab AS SELECT a, b FROM nk",
    );
    desk
}

#[test]
fn rows_are_limited_where_a_view_has_no_key() {
    tables().check(
        "CREATE VIEW vb AS SELECT b, c FROM t
         => ok 0
         CREATE VIEW vcc AS SELECT c FROM va
         => ok 0
         CREATE VIEW ve AS SELECT a + 0 AS a, c FROM t
         => ok 0
         UPDATE va SET c = c + 10 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => 
         UPDATE vb SET c = c + 10 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => 
         UPDATE vc SET c = c + 100 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE nka SET a = a + 1 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE nkab SET a = a + 1 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => 
         UPDATE vcc SET c = c + 1000 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE ve SET c = c + 10000 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         DELETE FROM vc LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE vc SET c = 7
         => ok 1
         SHOW WARNINGS
         => ",
    );
}

#[test]
fn limits_can_be_forbidden() {
    tables().check(
        "SET updatable_views_with_limit = NO
         => ok 0
         SELECT @@updatable_views_with_limit
         => NO
         UPDATE vc SET c = c + 100 LIMIT 1
         => ERROR 1288 The target table vc of the UPDATE is not updatable
         UPDATE va SET c = c + 100 LIMIT 1
         => ok 1
         DELETE FROM vc LIMIT 1
         => ERROR 1288 The target table vc of the DELETE is not updatable
         UPDATE vc SET c = 8
         => ERROR 1062 Duplicate entry '8' for key 't.c'
         DELETE FROM nka LIMIT 1
         => ERROR 1288 The target table nka of the DELETE is not updatable
         DELETE FROM nkab LIMIT 1
         => ok 1
         UPDATE vc SET c = c LIMIT 0
         => ERROR 1288 The target table vc of the UPDATE is not updatable
         SET updatable_views_with_limit = 1
         => ok 0
         SELECT @@updatable_views_with_limit
         => YES
         SET updatable_views_with_limit = 'off'
         => ERROR 1231 Variable 'updatable_views_with_limit' can't be set to the value of 'off'
         SET updatable_views_with_limit = 2
         => ERROR 1231 Variable 'updatable_views_with_limit' can't be set to the value of '2'
         SET SESSION updatable_views_with_limit = DEFAULT
         => ok 0
         SHOW VARIABLES LIKE 'updatable%'
         => updatable_views_with_limit|YES",
    );
}

#[test]
fn careful_sessions_change_rows_by_keys_only() {
    Desk::new().check(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT)
         => ok 0
         INSERT INTO t VALUES (1,1),(2,2)
         => ok 2
         CREATE VIEW v AS SELECT a, b FROM t
         => ok 0
         SET sql_safe_updates = 1
         => ok 0
         UPDATE v SET b = 5
         => ERROR 1175 …
         UPDATE v SET b = 6 WHERE a = 1
         => ok 1
         UPDATE v SET b = 7 LIMIT 5
         => ok 2
         DELETE FROM v WHERE b = 7
         => ERROR 1175 …
         DELETE FROM v WHERE a = 2
         => ok 1
         SELECT * FROM t
         => 1|7",
    );
}
