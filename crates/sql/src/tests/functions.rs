//! Functions that data nodes do not compute: random ones, and those of patterns, wherever they stand. The answers are those of MySQL.

use crate::testing::Desk;

const TABLES: &str = "
    CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20), KEY by_n (n));
    INSERT INTO t VALUES (1, 3, 'abc'), (2, 3, 'Abd'), (3, NULL, 'x1'), (4, 7, NULL);
    CREATE TABLE p (id INT PRIMARY KEY, pattern VARCHAR(20));
    INSERT INTO p VALUES (1, '^a'), (2, 'd$'), (3, '[0-9]'), (4, 'z')";

fn check(text: &str) {
    let mut desk = Desk::new();
    desk.run(TABLES);
    desk.check(text);
}

const PATTERNS: &str = r"
    SELECT id FROM t WHERE s REGEXP 'b' ORDER BY id
    => 1;2
    SELECT id FROM t WHERE s NOT RLIKE 'b' AND id > 0
    => 3
    SELECT id FROM t WHERE id = 1 AND s REGEXP 'b'
    => 1
    SELECT t.id FROM t JOIN p ON p.id = t.id AND t.s REGEXP p.pattern ORDER BY t.id
    => 1;2;3
    SELECT t.id, p.id FROM t LEFT JOIN p ON p.id = t.id AND t.s REGEXP p.pattern ORDER BY t.id
    => 1|1;2|2;3|3;4|NULL
    SELECT id FROM t WHERE EXISTS (SELECT 1 FROM p WHERE p.id = t.id AND t.s REGEXP p.pattern) ORDER BY id
    => 1;2;3
    SELECT s REGEXP 'b' AS r, COUNT(*) FROM t GROUP BY r ORDER BY r
    => NULL|1;0|1;1|2
    UPDATE t SET s = REGEXP_REPLACE(s, 'b(.)', '<$1>') WHERE s REGEXP '^a'
    => ok 2
    SELECT s FROM t ORDER BY id
    => a<c>;A<d>;x1;NULL
    DELETE FROM t WHERE s REGEXP '[0-9]'
    => ok 1
    INSERT INTO t VALUES (1, 0, 'q') ON DUPLICATE KEY UPDATE s = REGEXP_REPLACE(s, 'a', 'b')
    => ERROR 1235 …
    SELECT 'a' REGEXP '('
    => ERROR 3691 …
";

const RANDOM: &str = "
    SELECT id, ROUND(RAND(3), 4) FROM t ORDER BY id
    => 1|0.9058;2|0.3731;3|0.1481;4|0.6212
    SELECT id, ROUND(RAND(n), 4) FROM t ORDER BY id
    => 1|0.9058;2|0.9058;3|0.1552;4|0.9065
    SELECT COUNT(*) FROM (SELECT DISTINCT RAND() AS r FROM t) AS d
    => 4
    SELECT COUNT(*) FROM (SELECT DISTINCT (SELECT RAND()) AS r FROM t) AS d
    => 4
    SELECT COUNT(*) FROM t WHERE RAND() < 1 AND n = 3
    => 2
    SELECT COUNT(*) FROM t JOIN p USING (id) WHERE RAND() < 1
    => 4
    SELECT COUNT(*) FROM (SELECT RAND() AS r, COUNT(*) FROM t GROUP BY r) AS d
    => 4
    SELECT COUNT(*) FROM (SELECT DISTINCT UUID() AS u FROM t) AS d
    => 4
    WITH c AS (SELECT RAND() AS r FROM t) SELECT COUNT(*) FROM c
    => 4
    WITH c AS (SELECT RAND() AS r FROM t) SELECT COUNT(*) FROM c JOIN c AS d USING (r)
    => ERROR 1235 …
    UPDATE t SET n = FLOOR(RAND() * 10) + 100
    => ok 4
    SELECT MIN(n) >= 100, MAX(n) < 110 FROM t
    => 1|1
    INSERT INTO t VALUES (1, 0, 'q') ON DUPLICATE KEY UPDATE n = RAND()
    => ERROR 1235 …
";

#[test]
fn patterns_are_matched_wherever_they_stand() {
    check(PATTERNS);
}

const ESCAPES: &str = r"
    SELECT 'a3%' LIKE 'a33%' ESCAPE 3, 'ab' LIKE 'ab' ESCAPE NULL, 'a%' LIKE 'a0%' ESCAPE (3 IS FALSE)
    => 1|1|1
    SELECT 'a%' LIKE 'a|%' ESCAPE CONCAT('|', ''), 'axb' LIKE 'a|%b' ESCAPE X'7C'
    => 1|0
    SELECT 'a' LIKE 'a' ESCAPE 33
    => ERROR 1210 …
    SELECT s LIKE 'a' ESCAPE s FROM t
    => ERROR 1210 …
    SELECT s LIKE 'a' ESCAPE @unknown FROM t
    => ERROR 1235 …
";

#[test]
fn escape_is_any_constant() {
    check(ESCAPES);
}

#[test]
fn random_numbers_are_others_for_each_row() {
    check(RANDOM);
}

#[test]
fn each_statement_has_its_own_random_numbers() {
    let mut desk = Desk::new();
    let (first, second) = (desk.run("SELECT RAND(), UUID()"), desk.run("SELECT RAND(), UUID()"));
    assert_ne!(first, second);
}
