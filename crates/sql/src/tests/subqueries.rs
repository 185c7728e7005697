//! Subqueries and groups: which query an aggregate function, a name of the select list and a column belong to; what runs only where
//! it is needed; rows as values; totals over expressions. The answers are those of MySQL.

use crate::testing::Desk;

const TABLES: &str = "
    CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b INT, s VARCHAR(10));
    INSERT INTO t VALUES (1,1,10,'x'),(2,2,20,'y'),(3,2,30,'z'),(4,NULL,5,NULL);
    CREATE TABLE u (id INT NOT NULL PRIMARY KEY, a INT, c INT);
    INSERT INTO u VALUES (1,1,1),(2,2,5),(3,6,35),(4,NULL,2)";

fn check(text: &str) {
    let mut desk = Desk::new();
    desk.run(TABLES);
    desk.check(text);
}

const AGGREGATES_OF_OUTER_COLUMNS: &str = "
    SELECT (SELECT COUNT(*) FROM u WHERE u.a < SUM(t.a)) FROM t
    => 2
    SELECT a, (SELECT COUNT(*) FROM u WHERE u.c < SUM(t.b)) FROM t GROUP BY a ORDER BY a
    => NULL|2;1|3;2|4
    SELECT a FROM t GROUP BY a HAVING EXISTS (SELECT 1 FROM u WHERE u.c < SUM(t.b) AND u.id = 3)
    => 2
    SELECT a FROM t GROUP BY a HAVING (SELECT COUNT(*) FROM u WHERE u.c < SUM(t.b)) > 2 ORDER BY a
    => 1;2
    SELECT a FROM t GROUP BY a HAVING EXISTS (SELECT u.a FROM u GROUP BY u.a HAVING SUM(t.b) > MAX(u.c)) ORDER BY a
    => NULL;1;2
    SELECT (SELECT SUM(t.a + u.a) FROM u LIMIT 1) FROM t ORDER BY id
    => 12;15;15;NULL
    SELECT id FROM t WHERE (SELECT SUM(t.a) FROM u) > 2
    => 1;2;3
    SELECT id FROM t WHERE (SELECT COUNT(*) FROM u HAVING SUM(t.a) > 2) > 2
    => 1;2;3
    SELECT id FROM t WHERE id = (SELECT MAX(t.id))
    => 1;2;3;4
    SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE SUM(t.a) > 1)
    => ERROR 1111 …
    SELECT id FROM t WHERE (SELECT 1 FROM u WHERE COUNT(*) > 0)
    => ERROR 1111 …
    SELECT (SELECT 1 FROM u WHERE COUNT(*) > 0 AND u.id = 1) FROM t
    => 1
    SELECT (SELECT (SELECT SUM(t.a) FROM u AS v WHERE v.id = 1) FROM u WHERE u.id = 1) FROM t
    => 5
    SELECT (SELECT (SELECT SUM(u.a) FROM u AS v WHERE v.id = 1) FROM u) FROM t
    => 9;9;9;9
    SELECT SUM((SELECT MAX(u.c) FROM u WHERE u.a = t.a)) FROM t
    => 11
    SELECT SUM((SELECT MAX(t.a) FROM u)) FROM t
    => ERROR 1111 …
    SELECT MAX((SELECT t.a)) FROM t
    => 2
    SELECT (SELECT MAX((SELECT t.a)) FROM u) FROM t
    => ERROR 1242 …
    SELECT (SELECT x FROM (SELECT SUM(t.a) AS x) d) FROM t
    => 5
    SELECT (SELECT COUNT(*)) FROM t
    => 1;1;1;1
    SELECT id, (SELECT COUNT(t.a) FROM u) FROM t
    => ERROR 1140 …
    SELECT t.id FROM t ORDER BY (SELECT SUM(t.a) FROM u)
    => ERROR 3029 …
    SELECT SUM(b) FROM t ORDER BY SUM(a)
    => 65
    SELECT t.id FROM t GROUP BY t.id ORDER BY (SELECT SUM(t.a) FROM u LIMIT 1), t.id
    => 4;1;2;3";

#[test]
fn aggregates_of_outer_columns() {
    check(AGGREGATES_OF_OUTER_COLUMNS);
}

const NAMES_OF_THE_SELECT_LIST: &str = "
    SELECT a AS q FROM t HAVING EXISTS (SELECT 1 FROM u WHERE u.a = q)
    => 1;2;2
    SELECT a AS q FROM t ORDER BY (SELECT MAX(u.c) FROM u WHERE u.a = q), q
    => NULL;1;2;2
    SELECT a + 1 AS q FROM t GROUP BY (SELECT MAX(u.c) FROM u WHERE u.a = q), q ORDER BY q
    => NULL;2;3
    SELECT a + 1 AS q FROM t GROUP BY a + 1 HAVING (SELECT MAX(u.c) FROM u WHERE u.a = q) > 1
    => 2
    SELECT SUM(a) AS q FROM t GROUP BY b HAVING (SELECT MAX(u.c) FROM u WHERE u.a = q) > 1
    => ERROR 1247 …
    SELECT SUM(a) AS q, (SELECT q) FROM t
    => ERROR 1247 …
    SELECT a AS q, (SELECT q) FROM t ORDER BY id
    => 1|1;2|2;2|2;NULL|NULL
    SELECT a AS q, (SELECT q + 1) AS w, (SELECT w + 1) FROM t ORDER BY id
    => 1|2|3;2|3|4;2|3|4;NULL|NULL|NULL
    SELECT (SELECT q), a AS q FROM t
    => ERROR 1247 …
    SELECT a AS q FROM t WHERE (SELECT q) > 1
    => ERROR 1054 …
    SELECT (SELECT MAX(c) FROM u) AS q, (SELECT q + 1) FROM t
    => 35|36;35|36;35|36;35|36
    SELECT a AS b, COUNT(*) FROM t GROUP BY a HAVING (SELECT b) > 1
    => ERROR 1055 …
    SELECT b AS id FROM t ORDER BY (SELECT id) DESC
    => 5;30;20;10
    SELECT a + 1 AS q, COUNT(*) FROM t GROUP BY q ORDER BY (SELECT q) DESC
    => 3|2;2|1;NULL|1
    SELECT a + 1 AS x, (SELECT x), COUNT(*) FROM t GROUP BY x WITH ROLLUP
    => NULL|NULL|1;2|2|1;3|3|2;NULL|NULL|4";

#[test]
fn names_of_the_select_list() {
    check(NAMES_OF_THE_SELECT_LIST);
}

const COLUMNS_WITHOUT_ONE_VALUE: &str = "
    SELECT a, (SELECT MAX(u.c) FROM u WHERE u.a = t.a) FROM t GROUP BY a ORDER BY a
    => NULL|NULL;1|1;2|5
    SELECT a, (SELECT MAX(u.c) FROM u WHERE u.a = t.b) FROM t GROUP BY a
    => ERROR 1055 …
    SELECT (SELECT t.b FROM u WHERE u.id = 1) FROM t GROUP BY a
    => ERROR 1055 …
    SELECT COUNT(*), (SELECT t.b FROM u WHERE u.id = 1) FROM t
    => ERROR 1140 …
    SELECT a FROM t GROUP BY a HAVING (SELECT t.b FROM u WHERE u.id = 1) > 1
    => ERROR 1055 …
    SELECT a FROM t GROUP BY a ORDER BY (SELECT t.b FROM u WHERE u.id = 1)
    => ERROR 1055 …
    SELECT a, EXISTS(SELECT t.b FROM u) FROM t GROUP BY a
    => ERROR 1055 …
    SELECT a, t.b IN (SELECT c FROM u) FROM t GROUP BY a
    => ERROR 1055 …
    SELECT a, (SELECT t.b + SUM(u.c) FROM u) FROM t GROUP BY a, b ORDER BY a, b
    => NULL|48;1|53;2|63;2|73
    SELECT id, (SELECT t.b FROM u LIMIT 1) FROM t GROUP BY id ORDER BY id
    => 1|10;2|20;3|30;4|5
    SELECT ABS(a + 1) FROM t GROUP BY a + 1
    => ERROR 1055 …
    SELECT a + 1 AS k FROM t GROUP BY k HAVING ABS(k) > 0 ORDER BY k
    => 2;3
    SELECT a, SUM(b) OVER () FROM t GROUP BY a
    => ERROR 1055 …
    SELECT t.id FROM t WHERE 1 IN (SELECT 1 FROM u AS v JOIN u AS w ON v.id = w.id HAVING id > 2) ORDER BY t.id
    => 3;4
    SELECT 1 FROM u AS v JOIN u AS w ON v.id = w.id HAVING id > 2
    => ERROR 1054 …
    SELECT COUNT(*) FROM u AS v JOIN u AS w ON v.id = w.id GROUP BY w.id HAVING id > 2
    => 1;1
    SELECT COUNT(*) FROM u AS v JOIN u AS w ON v.id = w.id GROUP BY w.id, v.id HAVING id > 2
    => ERROR 1052 …";

#[test]
fn columns_without_one_value() {
    check(COLUMNS_WITHOUT_ONE_VALUE);
}

const WHAT_IS_NOT_NEEDED_DOES_NOT_RUN: &str = "
    SELECT CASE WHEN 1 = 1 THEN 1 ELSE (SELECT a FROM u) END
    => 1
    SELECT CASE WHEN 1 = 2 THEN 1 ELSE (SELECT a FROM u) END
    => ERROR 1242 …
    SELECT IF(1, 5, (SELECT a FROM u)), IF(0, (SELECT a FROM u), 6)
    => 5|6
    SELECT IF(id < 0, (SELECT a FROM u), id) FROM t ORDER BY id
    => 1;2;3;4
    SELECT COALESCE(id, (SELECT a FROM u)), IFNULL(id, (SELECT a FROM u)) FROM t ORDER BY id
    => 1|1;2|2;3|3;4|4
    SELECT COALESCE(a, (SELECT a FROM u)) FROM t
    => ERROR 1242 …
    SELECT id > 0 OR (SELECT a FROM u) > 1, id < 0 AND (SELECT a FROM u) > 1 FROM t
    => 1|0;1|0;1|0;1|0
    SELECT id < 0 OR (SELECT a FROM u) > 1 FROM t
    => ERROR 1242 …
    SELECT NULL AND (SELECT a FROM u)
    => ERROR 1242 …
    SELECT NOT (1 OR (SELECT a FROM u))
    => 0
    SELECT id FROM t WHERE id > 0 OR (SELECT u.a FROM u WHERE u.a > t.a) > 1 ORDER BY id
    => 1;2;3;4
    SELECT CASE id WHEN 1 THEN 5 WHEN 2 THEN 7 ELSE (SELECT c FROM u WHERE u.id > t.id) END FROM t ORDER BY id
    => 5;7;2;NULL
    SELECT NULLIF(NULL, (SELECT a FROM u)), NULLIF(2, (SELECT a FROM u WHERE id = 2))
    => NULL|NULL
    SELECT IF((SELECT 1), 2, (SELECT a FROM u))
    => 2
    SELECT CASE (SELECT 1) WHEN 1 THEN 2 WHEN (SELECT a FROM u) THEN 3 END
    => 2
    SELECT SUM(IF(id > 0, b, (SELECT c FROM u))) FROM t
    => 65
    SELECT CASE WHEN ROW_NUMBER() OVER (ORDER BY id) > 0 THEN 1 ELSE (SELECT a FROM u) END FROM t
    => 1;1;1;1
    SELECT id, ROW_NUMBER() OVER (ORDER BY id) IN (SELECT a FROM u) FROM t ORDER BY id
    => 1|1;2|1;3|NULL;4|NULL";

#[test]
fn what_is_not_needed_does_not_run() {
    check(WHAT_IS_NOT_NEEDED_DOES_NOT_RUN);
}

const ROWS_AS_VALUES: &str = "
    SELECT (1, (2, 3)) = (1, (2, 3)), (1, (2, 3)) < (1, (2, 4)), (1, (2, 3)) <> (1, (2, 3))
    => 1|1|0
    SELECT (1, (2, 3)) IN ((1, (2, 3)), (2, (2, 4)))
    => 1
    SELECT (a, (b, id)) = (2, (20, 2)) FROM t ORDER BY id
    => 0;1;0;0
    SELECT (SELECT 1, 2) = (1, 2), (1, 2) = (SELECT 1, 2), (SELECT 1, 2) = (SELECT 1, 2), (SELECT 1, 3) > (SELECT 1, 2)
    => 1|1|1|1
    SELECT (SELECT 1, 2) <=> (SELECT 1, 2), (SELECT 1, 2) <> (SELECT 1, 3), (SELECT 1, 2) < (SELECT 1, 3)
    => 1|1|1
    SELECT (SELECT 1, 2) = (SELECT 1, 2 FROM u)
    => ERROR 1242 …
    SELECT (SELECT 1, 2) IN ((1, 2), (3, 4)), (1, 2) IN ((SELECT 1, 2), (3, 4))
    => 1|1
    SELECT (SELECT 1, 2) IN (SELECT 1, 2), (SELECT 1, 2) = ANY (SELECT 1, 2), (1, 2) <> ALL (SELECT 1, 3)
    => 1|1|1
    SELECT (SELECT id, a FROM t WHERE id = 2) IN (SELECT id, a FROM u), (SELECT id, a FROM t WHERE id = 9) IN (SELECT id, a FROM u)
    => 1|NULL
    SELECT (SELECT id, a FROM t WHERE id = 9) = (1, 2), (SELECT id, a FROM t WHERE id = 9) <=> (1, 2), (SELECT id, a FROM t WHERE id = 9) <=> (NULL, NULL)
    => NULL|0|1
    SELECT (SELECT id, a FROM t) = (1, 2)
    => ERROR 1242 …
    SELECT ((SELECT 1, 2), 3) = ((1, 2), 3)
    => 1
    SELECT (1, 2) = (SELECT 1)
    => ERROR 1241 …
    SELECT (1, (2, 3)) = (1, (2, 3, 4))
    => ERROR 1241 …
    SELECT (1, 2) IN (1, 2)
    => ERROR 1241 …
    SELECT 1 IN (1, (2, 3))
    => ERROR 1241 …
    SELECT 1 + (SELECT 1, 2)
    => ERROR 1241 …
    SELECT (1, 2) IS NULL
    => ERROR 1241 …
    SELECT (SELECT * FROM (SELECT 1 AS x) d) = 1, 1 + (SELECT * FROM (SELECT 1 AS x) d)
    => 1|2
    SELECT (SELECT * FROM u WHERE id = 1) = (1, 1, 1)
    => 1
    SELECT id FROM t WHERE (SELECT id, a) = (1, 1)
    => 1
    SELECT (SELECT id, a FROM u WHERE u.id = t.id) IN (SELECT id, a FROM t AS v) FROM t ORDER BY id
    => 1;1;0;NULL
    SELECT (SELECT id, a FROM u WHERE u.id = t.id) NOT IN ((1, 1), (2, NULL)) FROM t ORDER BY id
    => 0;NULL;1;1";

#[test]
fn rows_as_values() {
    check(ROWS_AS_VALUES);
}

const TOTALS: &str = "
    SELECT a + 1, COUNT(*) FROM t GROUP BY a + 1 WITH ROLLUP
    => NULL|1;2|1;3|2;NULL|4
    SELECT a + 1 AS q, COUNT(*), GROUPING(a + 1) FROM t GROUP BY q WITH ROLLUP
    => NULL|1|0;2|1|0;3|2|0;NULL|4|1
    SELECT a * 2, a, COUNT(*) FROM t GROUP BY a * 2, a WITH ROLLUP
    => NULL|NULL|1;NULL|NULL|1;2|1|1;2|NULL|1;4|2|2;4|NULL|2;NULL|NULL|4
    SELECT a + 1, a + 1, SUM(a + 1) FROM t GROUP BY a + 1, a + 1 WITH ROLLUP
    => NULL|NULL|NULL;NULL|NULL|NULL;2|2|2;2|2|2;3|3|6;3|3|6;NULL|NULL|8
    SELECT IFNULL(a, 'x'), SUM(b) FROM t GROUP BY IFNULL(a, 'x') WITH ROLLUP
    => 1|10;2|50;x|5;NULL|65
    SELECT 1, COUNT(*) FROM t GROUP BY 1 WITH ROLLUP
    => 1|4;NULL|4
    SELECT 1 AS x, a + 1, COUNT(*) FROM t GROUP BY x, a WITH ROLLUP
    => 1|NULL|1;1|2|1;1|3|2;1|NULL|4;NULL|NULL|4
    SELECT a + 1 AS k FROM t GROUP BY k WITH ROLLUP HAVING k * 2 IS NULL
    => NULL;NULL
    SELECT a + 1 AS k FROM t GROUP BY k WITH ROLLUP ORDER BY k DESC
    => 3;2;NULL;NULL
    SELECT a + 1 AS k, COUNT(*) FROM t GROUP BY k WITH ROLLUP HAVING GROUPING(k) = 1
    => NULL|4
    SELECT a + 1, RANK() OVER (ORDER BY a + 1) FROM t GROUP BY a + 1 WITH ROLLUP
    => NULL|1;NULL|1;2|3;3|4
    SELECT DISTINCT a + 1 FROM t GROUP BY a + 1, b WITH ROLLUP
    => NULL;2;3
    SELECT a, b, COUNT(*) FROM t GROUP BY a + 1, b WITH ROLLUP
    => ERROR 1055 …
    SELECT a + 1, ABS(a + 1) FROM t GROUP BY a + 1 WITH ROLLUP
    => ERROR 1055 …
    SELECT a, (SELECT MAX(c) FROM u WHERE u.a = t.a), COUNT(*) FROM t GROUP BY a WITH ROLLUP
    => NULL|NULL|1;1|1|1;2|5|2;NULL|NULL|4
    SELECT a, COUNT(*) FROM t GROUP BY a WITH ROLLUP HAVING (SELECT MAX(c) FROM u WHERE u.a = t.a) > 0
    => 1|1;2|2
    SELECT a, SUM((SELECT MAX(c) FROM u WHERE u.a = t.a)) FROM t GROUP BY a WITH ROLLUP
    => NULL|NULL;1|1;2|10;NULL|11
    SELECT (SELECT MAX(c) FROM u WHERE u.a = t.a) AS q, a, COUNT(*) FROM t GROUP BY q, a WITH ROLLUP
    => NULL|NULL|1;NULL|NULL|1;1|1|1;1|NULL|1;5|2|2;5|NULL|2;NULL|NULL|4
    SELECT (SELECT MAX(c) FROM u WHERE u.a = t.a) + 1 AS q, COUNT(*) FROM t GROUP BY q WITH ROLLUP
    => NULL|1;2|1;6|2;NULL|4
    SELECT a IN (SELECT a FROM u) AS q, COUNT(*) FROM t GROUP BY q WITH ROLLUP
    => NULL|1;1|3;NULL|4
    SELECT a, EXISTS (SELECT a FROM u WHERE u.a = t.a) AS q, COUNT(*) FROM t GROUP BY a WITH ROLLUP
    => NULL|0|1;1|1|1;2|1|2;NULL|0|4
    SELECT a, COUNT(*) FROM t GROUP BY a WITH ROLLUP HAVING a IN (SELECT a FROM u) OR a IS NULL
    => NULL|1;1|1;2|2;NULL|4
    SELECT a, AVG(b) AS y, AVG(b) * 3 FROM t GROUP BY a WITH ROLLUP
    => NULL|5.0000|15.0000;1|10.0000|30.0000;2|25.0000|75.0000;NULL|16.2500|48.7500
    SELECT AVG(DISTINCT r.x) AS y FROM (SELECT AVG(c) / 3 AS x FROM u) AS r
    => 3.583333330000
    SELECT AVG(r.x) AS y FROM (SELECT AVG(c) AS x FROM u WHERE id <> 2) AS r
    => 12.66670000";

#[test]
fn totals() {
    check(TOTALS);
}

/// A text of another row is no literal: its collation does not give way, and it need not be a moment.
#[test]
fn values_of_other_rows_are_compared_as_columns() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE k1 (id INT PRIMARY KEY, v VARCHAR(5) COLLATE utf8mb4_bin, d DATE)
         => ok 0
         CREATE TABLE k2 (id INT PRIMARY KEY, v VARCHAR(5) COLLATE utf8mb4_general_ci)
         => ok 0
         INSERT INTO k1 VALUES (1, 'a', '2024-01-01'), (2, 'b', '2024-01-02')
         => ok 2
         INSERT INTO k2 VALUES (1, 'A'), (2, 'b')
         => ok 2
         SELECT k1.id FROM k1 JOIN k2 ON k2.id = k1.id AND k2.v = k1.v
         => 2
         SELECT k1.id FROM k2 JOIN k1 ON k2.id = k1.id AND k2.v = k1.v
         => 2
         SELECT k1.id, k2.id FROM k1 LEFT JOIN k2 ON k2.id = k1.id AND k2.v = k1.v ORDER BY 1
         => 1|NULL;2|2
         SELECT id, (SELECT COUNT(*) FROM k2 z WHERE z.v = x.v) FROM k1 x ORDER BY id
         => 1|0;2|1
         SELECT id, (SELECT COUNT(*) FROM k1 z WHERE z.d = x.v) FROM k2 x ORDER BY id
         => 1|0;2|0
         UPDATE k1 JOIN k2 ON k2.id = k1.id AND k2.v = k1.v SET k1.v = 'Z'
         => ok 1",
    );
    assert_eq!(desk.run("SELECT v FROM k1 ORDER BY id"), "a;Z");
}

/// BETWEEN and IN are NULL where a text beside a moment is none, though no operand is.
#[test]
fn what_compares_moments_with_texts_may_be_null() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE s (id INT PRIMARY KEY, d DATE NOT NULL, t VARCHAR(9) NOT NULL)
         => ok 0
         INSERT INTO s VALUES (1, '2020-01-01', 'x')
         => ok 1
         CREATE TABLE r (a INT PRIMARY KEY)
         => ok 0
         INSERT INTO r VALUES (1)
         => ok 1
         SELECT a FROM r WHERE a NOT IN (SELECT d BETWEEN t AND t FROM s)
         => 
         SELECT a FROM r WHERE a NOT IN (SELECT d IN (t) FROM s)
         => ",
    );
}
