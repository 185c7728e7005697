//! Strict mode in conditions and queries of statements that change rows, divisions by zero, REPLACE of equal rows, and years. The
//! answers are those of MySQL.

use crate::testing::Desk;

#[test]
fn replace_of_equal_rows() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE p1 (id INT PRIMARY KEY, a INT)
         => ok 0
         INSERT INTO p1 VALUES (1,1)
         => ok 1
         REPLACE INTO p1 VALUES (1,1),(1,2),(1,2),(2,2)
         => ok 5
         REPLACE INTO p1 SELECT id, a FROM p1
         => ok 2
         SELECT * FROM p1
         => 1|2;2|2
         CREATE TABLE p2 (id INT PRIMARY KEY, a INT UNIQUE)
         => ok 0
         INSERT INTO p2 VALUES (1,1),(2,2)
         => ok 2
         REPLACE INTO p2 VALUES (1,1)
         => ok 2
         REPLACE INTO p2 VALUES (1,2)
         => ok 3
         CREATE TABLE p3 (a INT UNIQUE, b INT)
         => ok 0
         INSERT INTO p3 VALUES (1,1)
         => ok 1
         REPLACE INTO p3 VALUES (1,1)
         => ok 1
         REPLACE INTO p3 VALUES (1,1),(1,1),(1,2),(2,2),(NULL,2)
         => ok 6
         SELECT * FROM p3 ORDER BY a
         => NULL|2;1|2;2|2
         CREATE TABLE p4 (a INT UNIQUE, b INT UNIQUE)
         => ok 0
         INSERT INTO p4 VALUES (1,1)
         => ok 1
         REPLACE INTO p4 VALUES (1,1)
         => ok 2
         CREATE TABLE p5 (id INT PRIMARY KEY, b VARCHAR(9))
         => ok 0
         INSERT INTO p5 VALUES (1,'a')
         => ok 1
         REPLACE INTO p5 VALUES (1,'a')
         => ok 1
         REPLACE INTO p5 VALUES (1,'A')
         => ok 2",
    );
}

#[test]
fn years_from_outside() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE y (a YEAR, b INT)");
    desk.run("INSERT INTO y VALUES (1999,1),('00',2),(0,3)");
    for (condition, parameters, answer) in [
        ("a = ?", "99", "1"),
        ("a = ?", "'0'", "2"),
        ("a = ?", "0", "3"),
        ("? = a", "99", "1"),
        ("a IN (?, 7)", "99", ""),
        ("a < ?", "3000", "1;2;3"),
        ("a < ?", "1", "1;2;3"),
        ("a <=> ?", "NULL", ""),
        ("a IN (SELECT a FROM y WHERE a = ?)", "99", "1"),
    ] {
        desk.run(&format!("PREPARE s FROM 'SELECT b FROM y WHERE {condition} ORDER BY b'"));
        desk.run(&format!("SET @a = {parameters}"));
        assert_eq!(desk.run("EXECUTE s USING @a"), answer, "{condition} with {parameters}");
    }
    desk.check(
        "SET @a = 98, @b = 1
         => ok 0
         PREPARE s FROM 'SELECT b FROM y WHERE a BETWEEN ? AND ?'
         => ok 0
         EXECUTE s USING @a, @b
         =>
         SELECT b FROM y WHERE a BETWEEN 98 AND 1 ORDER BY b
         => 1;2
         SELECT b FROM y WHERE a = 98 + 1
         => 1
         SELECT b FROM y WHERE a = @a + 1
         =>",
    );
}

const STRICT: &str = "
    UPDATE t SET a = 1 WHERE 1 / a > 5
    => ERROR 1365 Division by 0
    UPDATE t SET a = 5 WHERE id = 2 AND 1 / a > 5
    => ok 0
    UPDATE t SET a = 5 WHERE id = 1 AND 1 / a > 5
    => ERROR 1365 Division by 0
    DELETE FROM t WHERE 1 % a
    => ERROR 1365 Division by 0
    DELETE FROM t WHERE id = 2 OR 1 / a > 0
    => ERROR 1365 Division by 0
    DELETE FROM t WHERE s = 7
    => ERROR 1292 …
    UPDATE t SET a = 9 WHERE s = 7
    => ERROR 1292 …
    UPDATE t SET a = 9 WHERE s = 7 ORDER BY s LIMIT 1
    => ERROR 1292 …
    UPDATE t SET a = 1 ORDER BY 1 / a LIMIT 1
    => ERROR 1365 Division by 0
    UPDATE t, u SET t.a = 3 WHERE 1 / t.a > 5 AND u.id = t.id
    => ERROR 1365 Division by 0
    DELETE t FROM t JOIN u ON 1 / t.a > 5
    => ERROR 1365 Division by 0
    UPDATE t SET a = 1 WHERE id IN (SELECT id FROM u WHERE 1 / (id - 1) > 5)
    => ERROR 1365 Division by 0
    UPDATE u SET a = (SELECT 1 / a FROM t WHERE t.id = u.id) WHERE id = 1
    => ERROR 1365 Division by 0
    INSERT INTO u SELECT id + 10, 1 / a FROM t
    => ERROR 1365 Division by 0
    INSERT INTO u SELECT id + 20, 1 FROM t WHERE 1 / a > 5
    => ERROR 1365 Division by 0
    INSERT INTO u SELECT id + 20, CAST(s AS SIGNED) FROM t
    => ERROR 1292 …
    INSERT INTO u SELECT 77, SUM(1 / a) FROM t
    => ERROR 1365 Division by 0
    INSERT INTO u VALUES (78, (SELECT SUM(1 / a) FROM t))
    => ERROR 1365 Division by 0
    REPLACE INTO u SELECT id + 40, 1 / a FROM t
    => ERROR 1365 Division by 0
    CREATE TABLE v AS SELECT 1 / a FROM t
    => ERROR 1365 Division by 0
    INSERT INTO u SELECT id + 30, IF(a = 0, 0, (SELECT 1 / a)) FROM t
    => ok 2
    INSERT IGNORE INTO u SELECT id + 50, 1 / a FROM t
    => ok 2
    SELECT SUM(1 / a) FROM t
    => 1.0000
    SET @x = (SELECT 1 / 0)
    => ok 0
    SELECT * FROM t
    => 1|0|x;2|1|5
    SELECT * FROM u ORDER BY id
    => 1|7;31|0;32|1;51|NULL;52|1";

#[test]
fn values_that_do_not_fit_in_changes() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(5));
         INSERT INTO t VALUES (1,0,'x'),(2,1,'5');
         CREATE TABLE u (id INT PRIMARY KEY, a INT);
         INSERT INTO u VALUES (1,7)",
    );
    desk.check(STRICT);
}

#[test]
fn divisions_by_zero_in_other_modes() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(5));
         INSERT INTO t VALUES (1,0,'x'),(2,1,'5')",
    );
    desk.check(
        "SET sql_mode = 'STRICT_TRANS_TABLES'
         => ok 0
         UPDATE t SET a = 1 WHERE 1 / a > 5
         => ok 0
         INSERT INTO t VALUES (79, 1 / 0, NULL), (80, 5 DIV 0, NULL), (81, 5 % 0, NULL), (82, MOD(5, 0), NULL)
         => ok 4
         SELECT 1 / 0, 7 / 2, 7 DIV 2, 7 % 4, MOD(7, 4)
         => NULL|3.5000|3|3|3
         SHOW WARNINGS
         =>
         UPDATE t SET a = 1 WHERE s = 7
         => ERROR 1292 …
         SET sql_mode = 'ERROR_FOR_DIVISION_BY_ZERO'
         => ok 0
         INSERT INTO t VALUES (83, 1 / 0, NULL)
         => ok 1
         SHOW WARNINGS
         => Warning|1365|Division by 0
         UPDATE t SET s = 'x' WHERE 1 / a > 5
         => ok 0
         SET div_precision_increment = 4
         => ok 0
         SET div_precision_increment = 6
         => ERROR 1235 …",
    );
}

#[test]
fn collations_that_do_not_go_together() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE g (a VARCHAR(9) COLLATE utf8mb4_general_ci);
         INSERT INTO g VALUES ('a');
         CREATE TABLE u (a VARCHAR(9), b VARCHAR(9) COLLATE utf8mb4_bin);
         INSERT INTO u VALUES ('A', 'a')",
    );
    desk.check(
        "SELECT 1 FROM g JOIN u ON g.a = u.a
         => ERROR 1267 Illegal mix of collations (utf8mb4_general_ci,IMPLICIT) and (utf8mb4_0900_ai_ci,IMPLICIT) for operation '='
         SELECT 1 FROM g, u WHERE (g.a, 1) = (u.a, 1)
         => ERROR 1267 …
         SELECT 1 FROM g WHERE g.a IN (SELECT u.a FROM u)
         => ERROR 1267 …
         SELECT 1 FROM g JOIN u ON g.a = u.b
         => 1
         SELECT 1 FROM g JOIN u ON g.a = u.a COLLATE utf8mb4_bin
         =>
         SELECT 1 FROM g WHERE g.a = 'A'
         => 1",
    );
}

#[test]
fn constants_have_the_collation_of_the_connection() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE c (a VARCHAR(9));
         INSERT INTO c VALUES ('a')",
    );
    desk.check(
        "SELECT 'a' = 'A', 'a' IN ('A', 'b'), 'a' LIKE 'A', STRCMP('a', 'A')
         => 1|1|1|0
         SET NAMES utf8mb4 COLLATE utf8mb4_bin
         => ok 0
         SELECT 'a' = 'A', 'a' IN ('A', 'b'), 'a' LIKE 'A', STRCMP('a', 'A'), 'a' BETWEEN 'A' AND 'B', CONCAT('a', 'b') = 'AB'
         => 0|0|0|1|0|0
         SELECT 'a' = 'A' COLLATE utf8mb4_0900_ai_ci, NULLIF('a', 'A'), CASE 'a' WHEN 'a' THEN 1 END
         => 1|a|1
         SELECT a = 'A', a = CONCAT('A', ''), 'A' = a FROM c
         => 1|1|1
         SELECT COUNT(DISTINCT x) FROM (SELECT 'a' AS x UNION ALL SELECT 'A') AS d
         => 2
         (SELECT 'A' AS x) INTERSECT (SELECT a FROM c)
         => A
         (SELECT a FROM c) UNION (SELECT 'A')
         => a
         SELECT 1 AS x WHERE 'a' = 'A'
         =>
         SET NAMES utf8mb4
         => ok 0
         SELECT 'a' = 'A'
         => 1",
    );
}

#[test]
fn numbers_in_the_order_of_an_aggregate() {
    let mut desk = Desk::new();
    desk.check(
        "SELECT GROUP_CONCAT(1 ORDER BY -7), GROUP_CONCAT(DISTINCT 1 ORDER BY -1 DESC), GROUP_CONCAT(2 ORDER BY 1)
         => 1|1|2
         SELECT GROUP_CONCAT(1 ORDER BY 2)
         => ERROR 1054 …
         SELECT GROUP_CONCAT(1 ORDER BY 0)
         => ERROR 1054 …",
    );
}

#[test]
fn values_that_nobody_needs() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARBINARY(8));
         INSERT INTO t VALUES (1,1,'A')",
    );
    desk.check(
        "UPDATE t SET a = 2 WHERE NULL XOR (1 DIV 0)
         => ok 0
         UPDATE t SET a = 2 WHERE NULL < (1 % 0) OR NULL = (1 % 0)
         => ok 0
         UPDATE t SET a = 2 WHERE NULL <=> (1 % 0)
         => ERROR 1365 …
         UPDATE t SET a = 2 WHERE NOT EXISTS (SELECT 1 % 0)
         => ok 0
         INSERT INTO t (id) SELECT 2 FROM (SELECT 1 % 0 AS x FROM t) AS r WHERE 1 = 1
         => ok 1
         INSERT INTO t (id) SELECT r.x FROM (SELECT 1 % 0 AS x FROM t) AS r
         => ERROR 1365 …
         SELECT id FROM t WHERE id IN (SELECT a FROM t GROUP BY v)
         => 1
         SELECT id FROM t WHERE EXISTS (SELECT a FROM t GROUP BY v) ORDER BY id
         => 1;2
         SELECT id FROM t WHERE id IN (SELECT a FROM t GROUP BY v HAVING 1 = 1)
         => ERROR 1055 …
         SELECT id FROM t WHERE id = (SELECT a FROM t GROUP BY v)
         => ERROR 1055 …",
    );
}

#[test]
fn types_of_several_values() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARBINARY(8), d DECIMAL(8,2));
         INSERT INTO t VALUES (0,'A',NULL),(1,'A',NULL),(3,'A',NULL)",
    );
    desk.check(
        "SELECT CASE 1 WHEN 0 THEN v ELSE 'A' END = 'a', IF(0, v, 'A') = 'a', COALESCE(NULL, v, 'A') = 'a', IFNULL(NULL, v) = 'A' FROM t WHERE id = 1
         => 0|0|0|1
         SELECT id FROM t WHERE IF(0, v, 'A') IN (SELECT 'a')
         =>
         (SELECT AVG(id) FROM t) UNION (SELECT AVG(d) FROM t)
         => 1.333333;NULL
         SELECT * FROM (SELECT AVG(id) AS x FROM t) AS r UNION SELECT AVG(d) FROM t
         => 1.333300;NULL
         SELECT 0.5e0 UNION ALL SELECT AVG(id) FROM t
         => 0.5;1.333333333",
    );
}

#[test]
fn numbers_with_another_base() {
    let mut desk = Desk::new();
    desk.check(
        "SELECT BIN(2.5), OCT(9.5), HEX(2.5), BIN(2.5e0), BIN('2.9'), OCT(NULL), BIN('abc'), BIN(''), BIN(0x41), BIN(1e30)
         => 10|11|3|10|10|NULL|0|NULL|1000001|1
         SELECT BIN(-1.5) = BIN(-1), OCT(-1), BIN(5) + 0
         => 1|1777777777777777777777|101",
    );
}

#[test]
fn what_a_constant_is_compared_in() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, b VARCHAR(9) COLLATE utf8mb4_bin, v VARBINARY(9), c VARCHAR(9), f DOUBLE);
         INSERT INTO t VALUES (0,'0','x','Ab',0),(1,'0',NULL,'a%',1),(3,'0',NULL,NULL,2)",
    );
    desk.check(
        "SELECT 'Ab' BETWEEN b AND 'a', 'A' IN ('a', v), 'A' IN ('a', b), 'A' IN ('a', c), 'A' BETWEEN 'a' AND c FROM t WHERE id = 0
         => 1|0|0|1|1
         SELECT ELT(1, c, NULL) FROM t WHERE c IS NOT NULL ORDER BY 1
         => a%;Ab
         SELECT f - (SELECT AVG(id) FROM t) FROM t WHERE id <> 1 ORDER BY id
         => -1.333333333;0.6666666670000001
         SELECT (SELECT AVG(id) FROM t), (SELECT AVG(id) FROM t) * 3
         => 1.3333|4.0000
         SELECT CONCAT((SELECT AVG(id) FROM t)), GROUP_CONCAT((SELECT SUM(id + 0.25) FROM t)) FROM t
         => 1.3333|4.75,4.75,4.75
         SELECT CONCAT(IFNULL(id, 2.25)), CONCAT(COALESCE(NULL, id, 2.250)), CONCAT(IFNULL(1.5, id + 0.25)) FROM t ORDER BY id
         => 0.00|0.000|1.50;1.00|1.000|1.50;3.00|3.000|1.50
         SELECT CONCAT(IF(1, id, 2.25)), CONCAT(NULLIF(id, 2.25)), IFNULL(id, 0.5) / 3 FROM t ORDER BY id
         => 0|0|0.00000;1|1|0.33333;3|3|1.00000",
    );
}

#[test]
fn null_is_ordered_as_zero_in_group_concat() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE e (a INT PRIMARY KEY, b INT, s VARCHAR(9), t TIME, d DATE);
         INSERT INTO e VALUES (1,1,'b','-01:00:00','2020-01-01'),(2,NULL,'a',NULL,NULL),
            (3,-1,NULL,'01:00:00','2021-01-01'),(4,0,'','0:1:0','2019-01-01'),(5,NULL,'','0:2:0','2018-01-01')",
    );
    desk.check(
        "SELECT GROUP_CONCAT(a ORDER BY b, a), GROUP_CONCAT(a ORDER BY b DESC, a), GROUP_CONCAT(a ORDER BY b + 0.5, a) FROM e
         => 3,2,4,5,1|1,2,4,5,3|3,2,5,4,1
         SELECT GROUP_CONCAT(a ORDER BY s, a), GROUP_CONCAT(a ORDER BY s DESC, a), GROUP_CONCAT(a ORDER BY CAST(b AS DOUBLE), a) FROM e
         => 3,4,5,2,1|1,2,3,4,5|3,2,4,5,1
         SELECT GROUP_CONCAT(a ORDER BY t), GROUP_CONCAT(a ORDER BY d) FROM e
         => 1,2,4,5,3|2,5,4,1,3
         SELECT b FROM e ORDER BY b
         => NULL;NULL;-1;0;1",
    );
}
