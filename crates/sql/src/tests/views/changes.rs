//! Changes through views: answers are those of MySQL.

use crate::testing::Desk;

const TABLES: &str = "
    CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c INT NOT NULL DEFAULT 5);
    CREATE TABLE u (a INT, x INT);
    CREATE TABLE n (id INT PRIMARY KEY, must INT NOT NULL, other INT);
    INSERT INTO t VALUES (1,'one',10),(2,'two',20),(3,'three',30);
    INSERT INTO u VALUES (1,100),(1,101),(3,300);
    CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1;
    CREATE VIEW w (k, l) AS SELECT b, a FROM v WHERE a < 9;
    CREATE VIEW j AS SELECT t.a, t.b, u.x, u.a AS ua FROM t JOIN u ON t.a = u.a";

fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(TABLES);
    desk
}

#[test]
fn rows_are_changed_through_views() {
    tables().check(
        "UPDATE v SET b = 'zwei' WHERE a = 2
         => ok 1
         UPDATE v SET b = 'x'
         => ok 2
         UPDATE v SET b = 'y' WHERE a = 1
         => ok 0
         SELECT * FROM t ORDER BY a
         => 1|one|10;2|x|20;3|x|30
         UPDATE w SET k = CONCAT(k, l), l = l + 10 ORDER BY l DESC LIMIT 1
         => ok 1
         SELECT * FROM t ORDER BY a
         => 1|one|10;2|x|20;13|x3|30
         UPDATE v AS z SET z.b = 'q' WHERE z.a = 13
         => ok 1
         DELETE FROM w WHERE l = 2
         => ok 1
         DELETE FROM v WHERE a = 1
         => ok 0
         DELETE FROM v ORDER BY a LIMIT 1
         => ok 1
         SELECT * FROM t ORDER BY a
         => 1|one|10
         INSERT INTO v VALUES (4, 'four'), (0, 'zero')
         => ok 2
         INSERT INTO w (l) VALUES (5)
         => ok 1
         INSERT INTO w VALUES ('six', 6)
         => ok 1
         INSERT INTO w SET l = 7, k = 'seven'
         => ok 1
         INSERT INTO v SELECT a + 20, 'copy' FROM t WHERE a < 5
         => ok 3
         REPLACE INTO v VALUES (4, 'vier')
         => ok 2
         INSERT INTO v VALUES (4, 'x') ON DUPLICATE KEY UPDATE b = CONCAT(b, VALUES(b))
         => ok 2
         INSERT INTO w (l) VALUES (4) ON DUPLICATE KEY UPDATE k = CONCAT(k, '!')
         => ok 2
         INSERT IGNORE INTO v VALUES (4, 'x')
         => ok 0
         INSERT INTO v VALUES (4, 'x')
         => ERROR 1062 Duplicate entry '4' for key 't.PRIMARY'
         INSERT INTO v (a, c) VALUES (40, 1)
         => ERROR 1054 Unknown column 'c' in 'field list'
         INSERT INTO v (a) VALUES (1, 2)
         => ERROR 1136 Column count doesn't match value count at row 1
         SELECT * FROM t ORDER BY a
         => 0|zero|5;1|one|10;4|vierx!|5;5|NULL|5;6|six|5;7|seven|5;20|copy|5;21|copy|5;24|copy|5",
    );
}

#[test]
fn views_that_are_no_choice_of_rows_are_not_changed() {
    tables().check(
        "CREATE VIEW g AS SELECT c, COUNT(*) AS many FROM t GROUP BY c
         => ok 0
         UPDATE g SET c = 1
         => ERROR 1288 The target table g of the UPDATE is not updatable
         DELETE FROM g
         => ERROR 1288 The target table g of the DELETE is not updatable
         INSERT INTO g VALUES (1, 2)
         => ERROR 1471 The target table g of the INSERT is not insertable-into
         CREATE VIEW d AS SELECT DISTINCT c FROM t
         => ok 0
         UPDATE d SET c = 1
         => ERROR 1288 The target table d of the UPDATE is not updatable
         DELETE FROM d
         => ERROR 1288 The target table d of the DELETE is not updatable
         INSERT INTO d VALUES (1)
         => ERROR 1471 The target table d of the INSERT is not insertable-into
         CREATE ALGORITHM = TEMPTABLE VIEW tmp AS SELECT a, b FROM t
         => ok 0
         UPDATE tmp SET b = 1
         => ERROR 1288 The target table tmp of the UPDATE is not updatable
         DELETE FROM tmp
         => ERROR 1288 The target table tmp of the DELETE is not updatable
         INSERT INTO tmp VALUES (1, 2)
         => ERROR 1471 The target table tmp of the INSERT is not insertable-into
         CREATE VIEW un AS SELECT a FROM t UNION ALL SELECT a FROM u
         => ok 0
         UPDATE un SET a = 1
         => ERROR 1288 The target table un of the UPDATE is not updatable
         DELETE FROM un
         => ERROR 1288 The target table un of the DELETE is not updatable
         INSERT INTO un VALUES (1)
         => ERROR 1471 The target table un of the INSERT is not insertable-into
         CREATE VIEW lim AS SELECT a, b FROM t LIMIT 2
         => ok 0
         UPDATE lim SET b = 1
         => ERROR 1288 The target table lim of the UPDATE is not updatable
         DELETE FROM lim
         => ERROR 1288 The target table lim of the DELETE is not updatable
         INSERT INTO lim VALUES (1, 2)
         => ERROR 1471 The target table lim of the INSERT is not insertable-into
         CREATE VIEW one AS SELECT 1 AS a
         => ok 0
         UPDATE one SET a = 2
         => ERROR 1288 The target table one of the UPDATE is not updatable
         DELETE FROM one
         => ERROR 1288 The target table one of the DELETE is not updatable
         INSERT INTO one VALUES (3)
         => ERROR 1471 The target table one of the INSERT is not insertable-into",
    );
}

#[test]
fn some_columns_are_not_changed() {
    tables().check(
        "CREATE VIEW e AS SELECT a, c + 1 AS c1, b FROM t
         => ok 0
         UPDATE e SET c1 = 3
         => ERROR 1348 Column 'c1' is not updatable
         UPDATE e SET b = c1 WHERE a = 3
         => ok 1
         UPDATE e SET b = 'nothing' WHERE a = 300
         => ok 0
         DELETE FROM e WHERE c1 = 600
         => ok 0
         INSERT INTO e VALUES (50, 1, 'b')
         => ERROR 1348 Column 'c1' is not updatable
         INSERT INTO e (a, b) VALUES (50, 'b')
         => ERROR 1471 The target table e of the INSERT is not insertable-into
         INSERT INTO e (a, c1) VALUES (50, 2)
         => ERROR 1348 Column 'c1' is not updatable
         CREATE VIEW twice AS SELECT a, a AS again FROM t
         => ok 0
         INSERT INTO twice VALUES (60, 60)
         => ERROR 1471 The target table twice of the INSERT is not insertable-into
         INSERT INTO twice (a) VALUES (60)
         => ERROR 1471 The target table twice of the INSERT is not insertable-into
         UPDATE twice SET again = 61 WHERE a = 6
         => ok 0
         UPDATE twice SET a = 63, again = 62 WHERE a = 61
         => ok 0",
    );
}

#[test]
fn subqueries_in_views_stay_where_they_are() {
    tables().check(
        "CREATE VIEW sub AS SELECT a, b, (SELECT MAX(x) FROM u WHERE u.a = t.a) AS m FROM t
         => ok 0
         UPDATE sub SET b = 'sub' WHERE a = 3
         => ERROR 1288 The target table sub of the UPDATE is not updatable
         INSERT INTO sub (a, b) VALUES (70, 'x')
         => ERROR 1471 The target table sub of the INSERT is not insertable-into
         DELETE FROM sub WHERE a = 62
         => ERROR 1288 The target table sub of the DELETE is not updatable
         CREATE VIEW usub AS SELECT a, b, (SELECT MAX(x) FROM u) AS m FROM t
         => ok 0
         UPDATE usub SET b = m WHERE a = 4
         => ok 0
         UPDATE usub SET m = 4 WHERE a = 4
         => ERROR 1348 Column 'm' is not updatable
         INSERT INTO usub (a, b) VALUES (71, 'x')
         => ERROR 1471 The target table usub of the INSERT is not insertable-into
         DELETE FROM usub WHERE a = 71
         => ok 0
         CREATE VIEW wsub AS SELECT a, b FROM t WHERE a IN (SELECT a FROM u)
         => ok 0
         UPDATE wsub SET b = 'in u'
         => ok 2
         INSERT INTO wsub (a, b) VALUES (72, 'x')
         => ok 1
         DELETE FROM wsub WHERE a = 3
         => ok 1
         CREATE VIEW selfsub AS SELECT a, b FROM t WHERE a > (SELECT MIN(a) FROM t)
         => ok 0
         UPDATE selfsub SET b = 'in t'
         => ERROR 1288 The target table selfsub of the UPDATE is not updatable
         INSERT INTO selfsub (a, b) VALUES (73, 'x')
         => ERROR 1471 The target table selfsub of the INSERT is not insertable-into
         DELETE FROM selfsub
         => ERROR 1288 The target table selfsub of the DELETE is not updatable",
    );
}

#[test]
fn columns_that_a_view_lacks_need_defaults() {
    tables().check(
        "CREATE VIEW nv AS SELECT id, other FROM n
         => ok 0
         INSERT INTO nv VALUES (1, 2)
         => ERROR 1423 Field of view 'test.nv' underlying table doesn't have a default value
         INSERT IGNORE INTO nv VALUES (1, 2)
         => ok 1
         SHOW WARNINGS
         => Warning|1423|Field of view 'test.nv' underlying table doesn't have a default value
         SELECT * FROM n
         => 1|0|2
         SET sql_mode = ''
         => ok 0
         INSERT INTO nv VALUES (2, 2)
         => ok 1
         SHOW WARNINGS
         => Warning|1423|Field of view 'test.nv' underlying table doesn't have a default value",
    );
}

#[test]
fn one_table_of_a_join_is_changed() {
    tables().check(
        "UPDATE j SET b = 'joined'
         => ok 2
         UPDATE j SET x = x + 1 WHERE a = 1
         => ok 2
         SELECT * FROM j ORDER BY x
         => 1|joined|101|1;1|joined|102|1;3|joined|300|3
         UPDATE j SET b = 'z', x = 2
         => ERROR 1393 Can not modify more than one base table through a join view 'test.j'
         UPDATE j SET b = 'z' LIMIT 1
         => ERROR 1221 Incorrect usage of UPDATE and LIMIT
         UPDATE j SET b = 'z' ORDER BY x
         => ERROR 1221 Incorrect usage of UPDATE and ORDER BY
         DELETE FROM j
         => ERROR 1395 Can not delete from join view 'test.j'
         DELETE j FROM j
         => ERROR 1395 Can not delete from join view 'test.j'
         INSERT INTO j VALUES (1, 2, 3, 4)
         => ERROR 1394 Can not insert into join view 'test.j' without fields list
         INSERT INTO j (a, b) VALUES (9, 'nine')
         => ok 1
         INSERT INTO j (x, ua) VALUES (900, 9)
         => ok 1
         INSERT INTO j (a, x) VALUES (10, 3)
         => ERROR 1393 Can not modify more than one base table through a join view 'test.j'
         REPLACE INTO j (a, b) VALUES (9, 'neun')
         => ERROR 1395 Can not delete from join view 'test.j'
         INSERT INTO j (a, b) VALUES (9, 'nine') ON DUPLICATE KEY UPDATE b = 'again'
         => ok 2
         INSERT INTO j (a, b) VALUES (9, 'nine') ON DUPLICATE KEY UPDATE x = 1
         => ERROR 1393 Can not modify more than one base table through a join view 'test.j'
         SELECT * FROM j ORDER BY a, x
         => 1|joined|101|1;1|joined|102|1;3|joined|300|3;9|again|900|9
         CREATE VIEW lj AS SELECT t.a, t.b, u.x FROM t LEFT JOIN u ON t.a = u.a
         => ok 0
         UPDATE lj SET b = 'l'
         => ERROR 1288 The target table lj of the UPDATE is not updatable
         UPDATE lj SET x = 1
         => ERROR 1288 The target table lj of the UPDATE is not updatable
         DELETE FROM lj
         => ERROR 1288 The target table lj of the DELETE is not updatable
         INSERT INTO lj (a, b) VALUES (80, 'x')
         => ERROR 1471 The target table lj of the INSERT is not insertable-into
         CREATE VIEW jj AS SELECT j.a, j.x, t.c FROM j JOIN t ON j.a = t.a
         => ok 0
         UPDATE jj SET c = 99 WHERE x = 300
         => ok 1
         UPDATE jj SET x = 301 WHERE x = 300
         => ok 1
         UPDATE jj SET c = 1, x = 2
         => ERROR 1393 Can not modify more than one base table through a join view 'test.jj'
         SELECT * FROM jj ORDER BY a, x
         => 1|101|10;1|102|10;3|301|99;9|900|5
         UPDATE j, u SET j.b = 'multi' WHERE j.x = u.x AND u.x = 301
         => ok 1
         UPDATE v JOIN u ON v.a = u.a SET v.b = u.x, u.x = u.x + 1
         => ok 4
         SELECT * FROM t ORDER BY a
         => 1|joined|10;2|two|20;3|301|99;9|900|5
         SELECT * FROM u ORDER BY x
         => 1|101;1|102;3|302;9|901
         DELETE v FROM v JOIN u ON v.a = u.a WHERE u.x = 302
         => ok 1
         DELETE FROM z USING v AS z JOIN u ON z.a = u.a
         => ok 1
         SELECT * FROM t ORDER BY a
         => 1|joined|10;2|two|20
         SELECT * FROM u ORDER BY x
         => 1|101;1|102;3|302;9|901",
    );
}

#[test]
fn what_is_changed_is_not_read_beside_it() {
    tables().check(
        "CREATE ALGORITHM = TEMPTABLE VIEW tmp AS SELECT a, b FROM t
         => ok 0
         UPDATE t SET b = 'r' WHERE a IN (SELECT a FROM v)
         => ERROR 1443 The definition of table 'v' prevents operation UPDATE on table 't'.
         UPDATE v SET b = 'r' WHERE a IN (SELECT a FROM t)
         => ERROR 1443 The definition of table 'v' prevents operation UPDATE on table 'v'.
         UPDATE v SET b = 'r' WHERE a IN (SELECT a FROM v)
         => ERROR 1093 You can't specify target table 'v' for update in FROM clause
         DELETE FROM t WHERE a IN (SELECT a FROM v)
         => ERROR 1443 The definition of table 'v' prevents operation DELETE on table 't'.
         DELETE FROM v WHERE a = (SELECT MAX(a) FROM v)
         => ERROR 1093 You can't specify target table 'v' for update in FROM clause
         INSERT INTO v SELECT a + 100, b FROM v
         => ok 2
         INSERT INTO v VALUES ((SELECT MAX(a) FROM v) + 1, 'm')
         => ERROR 1093 You can't specify target table 'v' for update in FROM clause
         INSERT INTO t (a) VALUES ((SELECT MAX(a) FROM v) + 1)
         => ERROR 1443 The definition of table 'v' prevents operation INSERT on table 't'.
         UPDATE t SET b = 'd' WHERE a IN (SELECT a FROM (SELECT a FROM v) AS q)
         => ok 4
         UPDATE t SET b = 'tt' WHERE a IN (SELECT a FROM tmp)
         => ok 5",
    );
}
