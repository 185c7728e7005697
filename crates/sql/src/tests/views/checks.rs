//! WITH CHECK OPTION: answers are those of MySQL.

use crate::testing::Desk;

const TABLES: &str = "
    CREATE TABLE t (a INT, b INT DEFAULT 1, PRIMARY KEY (a));
    CREATE TABLE u (a INT, x INT);
    INSERT INTO u VALUES (1, 100), (2, 200), (30, 300)";

fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(TABLES);
    desk
}

const VIEWS: &str = "
         CREATE VIEW none AS SELECT * FROM t WHERE a < 100
         => ok 0
         CREATE VIEW loc AS SELECT * FROM none WHERE a > 0 WITH LOCAL CHECK OPTION
         => ok 0
         CREATE VIEW casc AS SELECT * FROM none WHERE a > 0 WITH CASCADED CHECK OPTION
         => ok 0
         CREATE VIEW deflt AS SELECT * FROM none WHERE a > 0 WITH CHECK OPTION
         => ok 0
         SHOW CREATE VIEW deflt
         => deflt|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `deflt` AS select `none`.`a` AS `a`,`none`.`b` AS `b` from `none` where (`none`.`a` > 0) WITH CASCADED CHECK OPTION|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW over_casc AS SELECT * FROM casc WHERE a <> 5
         => ok 0
         CREATE VIEW local_over_casc AS SELECT * FROM casc WHERE a <> 5 WITH LOCAL CHECK OPTION
         => ok 0
         CREATE VIEW local_over_none AS SELECT * FROM none WITH LOCAL CHECK OPTION
         => ok 0
         CREATE VIEW casc_over_local AS SELECT * FROM loc WHERE a <> 6 WITH CASCADED CHECK OPTION
         => ok 0";

#[test]
fn check_options_of_views_in_views() {
    let mut desk = tables();
    desk.check(VIEWS);
    desk.check(
        "INSERT INTO none VALUES (200, 1)
         => ok 1
         INSERT INTO loc VALUES (201, 1)
         => ok 1
         INSERT INTO loc VALUES (0, 1)
         => ERROR 1369 CHECK OPTION failed 'test.loc'
         INSERT INTO casc VALUES (202, 1)
         => ERROR 1369 CHECK OPTION failed 'test.casc'
         INSERT INTO casc VALUES (-1, 1)
         => ERROR 1369 CHECK OPTION failed 'test.casc'
         INSERT INTO casc VALUES (10, 1)
         => ok 1
         INSERT INTO over_casc VALUES (5, 1)
         => ok 1
         INSERT INTO over_casc VALUES (203, 1)
         => ERROR 1369 CHECK OPTION failed 'test.over_casc'
         INSERT INTO local_over_casc VALUES (5, 1)
         => ERROR 1369 CHECK OPTION failed 'test.local_over_casc'
         INSERT INTO local_over_casc VALUES (203, 1)
         => ERROR 1369 CHECK OPTION failed 'test.local_over_casc'
         INSERT INTO local_over_none VALUES (203, 1)
         => ok 1
         INSERT INTO casc_over_local VALUES (204, 1)
         => ERROR 1369 CHECK OPTION failed 'test.casc_over_local'
         INSERT INTO casc_over_local VALUES (6, 1)
         => ERROR 1369 CHECK OPTION failed 'test.casc_over_local'
         SELECT a FROM t ORDER BY a
         => 5;10;200;201;203",
    );
}

#[test]
fn all_statements_check_rows() {
    let mut desk = tables();
    desk.check(VIEWS);
    desk.run("INSERT INTO t (a) VALUES (5), (10), (200), (201), (203)");
    desk.check(
        "INSERT INTO casc VALUES (11, 1), (0, 1), (12, 1)
         => ERROR 1369 CHECK OPTION failed 'test.casc'
         SELECT a FROM t ORDER BY a
         => 5;10;200;201;203
         INSERT IGNORE INTO casc VALUES (11, 1), (0, 1), (12, 1)
         => ok 2
         SHOW WARNINGS
         => Warning|1369|CHECK OPTION failed 'test.casc'
         INSERT INTO casc SELECT a + 80, b FROM t WHERE a BETWEEN 10 AND 12
         => ok 3
         INSERT INTO casc SELECT a + 88, b FROM t WHERE a BETWEEN 10 AND 12
         => ERROR 1369 CHECK OPTION failed 'test.casc'
         REPLACE INTO casc VALUES (10, 2), (0, 2)
         => ERROR 1369 CHECK OPTION failed 'test.casc'
         REPLACE INTO casc VALUES (10, 2)
         => ok 2
         UPDATE casc SET a = a + 100
         => ERROR 1369 CHECK OPTION failed 'test.casc'
         UPDATE casc SET a = -a WHERE a = 10
         => ERROR 1369 CHECK OPTION failed 'test.casc'
         UPDATE casc SET b = b + 1
         => ok 7
         UPDATE casc SET a = a WHERE a = 10
         => ok 0
         UPDATE loc SET a = a + 1000 WHERE a = 10
         => ok 1
         UPDATE over_casc SET a = 0 WHERE a = 11
         => ERROR 1369 CHECK OPTION failed 'test.over_casc'
         UPDATE local_over_casc SET a = 5 WHERE a = 11
         => ERROR 1369 CHECK OPTION failed 'test.local_over_casc'
         UPDATE over_casc SET a = 5 WHERE a = 11
         => ERROR 1062 Duplicate entry '5' for key 't.PRIMARY'
         UPDATE none SET a = 300 WHERE a = 12
         => ok 1
         SELECT a, b FROM t ORDER BY a
         => 5|2;11|2;90|2;91|2;92|2;200|1;201|1;203|1;300|2;1010|3
         DELETE FROM casc WHERE a > 50
         => ok 3
         INSERT INTO casc (a) VALUES (NULL)
         => ERROR 1048 Column 'a' cannot be null
         INSERT INTO casc VALUES (13, 1) ON DUPLICATE KEY UPDATE a = 14
         => ERROR 1235 This version of LatsDB doesn't yet support 'ON DUPLICATE KEY UPDATE of a primary key column'
         INSERT INTO casc VALUES (13, 1) ON DUPLICATE KEY UPDATE a = 500
         => ERROR 1235 This version of LatsDB doesn't yet support 'ON DUPLICATE KEY UPDATE of a primary key column'
         INSERT INTO casc VALUES (500, 1) ON DUPLICATE KEY UPDATE a = 14
         => ERROR 1235 This version of LatsDB doesn't yet support 'ON DUPLICATE KEY UPDATE of a primary key column'
         UPDATE IGNORE casc SET a = a + 95
         => ERROR 1235 This version of LatsDB doesn't yet support 'UPDATE IGNORE'
         UPDATE casc JOIN u ON casc.a = u.a SET casc.a = 1000
         => ok 0
         UPDATE casc JOIN u ON casc.a = u.a SET casc.b = 1001
         => ok 0",
    );
}

#[test]
fn check_option_asks_for_true() {
    tables().check(
        "CREATE VIEW nullable AS SELECT * FROM u WHERE x > 50 WITH CHECK OPTION
         => ok 0
         INSERT INTO nullable VALUES (1, NULL)
         => ERROR 1369 CHECK OPTION failed 'test.nullable'
         UPDATE nullable SET x = NULL WHERE a = 1
         => ERROR 1369 CHECK OPTION failed 'test.nullable'
         UPDATE nullable SET x = x + 1
         => ok 3",
    );
}

#[test]
fn check_option_with_subqueries() {
    tables().check(
        "CREATE VIEW in_u AS SELECT * FROM t WHERE a IN (SELECT a FROM u) WITH CHECK OPTION
         => ok 0
         INSERT INTO in_u VALUES (1, 1)
         => ok 1
         INSERT INTO in_u VALUES (3, 1)
         => ERROR 1369 CHECK OPTION failed 'test.in_u'
         UPDATE in_u SET a = 2 WHERE a = 1
         => ok 1
         UPDATE in_u SET a = 3 WHERE a = 2
         => ERROR 1369 CHECK OPTION failed 'test.in_u'
         CREATE VIEW ex_u AS SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.x > t.b) WITH CHECK OPTION
         => ok 0
         UPDATE ex_u SET b = 150 WHERE a = 2
         => ok 1
         UPDATE ex_u SET b = 201 WHERE a = 2
         => ERROR 1369 CHECK OPTION failed 'test.ex_u'
         UPDATE ex_u SET b = 202 WHERE a = 2
         => ERROR 1369 CHECK OPTION failed 'test.ex_u'
         SELECT * FROM ex_u ORDER BY a
         => 2|150",
    );
}

#[test]
fn check_option_of_a_join() {
    tables().check(
        "INSERT INTO t VALUES (2, 150)
         => ok 1
         CREATE VIEW j AS SELECT t.a, t.b, u.x, u.a AS ua FROM t JOIN u ON t.a = u.a WHERE t.b < u.x WITH CHECK OPTION
         => ok 0
         UPDATE j SET b = 10
         => ok 1
         UPDATE j SET b = 201 WHERE a = 2
         => ERROR 1369 CHECK OPTION failed 'test.j'
         UPDATE j SET x = 5
         => ERROR 1369 CHECK OPTION failed 'test.j'
         UPDATE j SET x = 15 WHERE a = 2
         => ok 1
         UPDATE j SET ua = 7 WHERE a = 2
         => ERROR 1369 CHECK OPTION failed 'test.j'
         SELECT * FROM j ORDER BY a
         => 2|10|15|2
         INSERT INTO j (a, b) VALUES (77, 1)
         => ERROR 1369 CHECK OPTION failed 'test.j'",
    );
}

#[test]
fn views_of_computed_rows_check_what_they_can() {
    tables().check(
        "CREATE VIEW d AS SELECT DISTINCT a FROM t WITH CHECK OPTION
         => ERROR 1368 CHECK OPTION on non-updatable view 'test.d'
         CREATE VIEW over_d AS SELECT * FROM (SELECT a FROM t) q WITH CHECK OPTION
         => ok 0
         CREATE VIEW exprs AS SELECT a + 1 AS p, b FROM t WHERE b > 0 WITH CHECK OPTION
         => ok 0
         INSERT INTO exprs (b) VALUES (1)
         => ERROR 1471 The target table exprs of the INSERT is not insertable-into
         UPDATE exprs SET b = 0
         => ok 0
         SELECT a, b FROM t ORDER BY a
         => ",
    );
}
#[test]
fn rows_that_are_changed_in_the_place_of_others_are_checked() {
    Desk::new().check(
        "CREATE TABLE k (id INT PRIMARY KEY, n INT, c INT, UNIQUE KEY (n))
         => ok 0
         CREATE VIEW vk AS SELECT * FROM k WHERE c > 10 WITH CHECK OPTION
         => ok 0
         INSERT INTO vk VALUES (1, 1, 11), (2, 2, 12)
         => ok 2
         INSERT INTO vk VALUES (1, 5, 20) ON DUPLICATE KEY UPDATE c = c + VALUES(c)
         => ok 2
         INSERT INTO vk VALUES (1, 5, 20) ON DUPLICATE KEY UPDATE c = 3
         => ERROR 1369 CHECK OPTION failed 'test.vk'
         INSERT INTO vk VALUES (9, 2, 20) ON DUPLICATE KEY UPDATE c = 3
         => ERROR 1369 CHECK OPTION failed 'test.vk'
         INSERT INTO vk VALUES (9, 2, 20) ON DUPLICATE KEY UPDATE c = 33
         => ok 2
         INSERT INTO vk VALUES (9, 2, 2) ON DUPLICATE KEY UPDATE c = 33
         => ERROR 1369 CHECK OPTION failed 'test.vk'
         INSERT INTO vk VALUES (7, 7, 70), (1, 8, 80) ON DUPLICATE KEY UPDATE c = c - 100
         => ERROR 1369 CHECK OPTION failed 'test.vk'
         INSERT INTO vk VALUES (7, 7, 70), (1, 8, 80) ON DUPLICATE KEY UPDATE c = c + 100
         => ok 3
         SELECT * FROM k ORDER BY id
         => 1|1|131;2|2|33;7|7|70
         CREATE TABLE p (id INT PRIMARY KEY, c INT)
         => ok 0
         CREATE VIEW vp AS SELECT * FROM p WHERE c > 10 WITH CHECK OPTION
         => ok 0
         INSERT INTO vp VALUES (1, 11), (2, 12), (3, 13)
         => ok 3
         INSERT INTO vp VALUES (1, 20), (1, 30) ON DUPLICATE KEY UPDATE c = IF(VALUES(c) = 20, 1, 50)
         => ERROR 1369 CHECK OPTION failed 'test.vp'
         INSERT INTO vp VALUES (1, 20), (2, 30), (4, 40) ON DUPLICATE KEY UPDATE c = VALUES(c) + 1
         => ok 5
         SELECT * FROM p ORDER BY id
         => 1|21;2|31;3|13;4|40",
    );
}
