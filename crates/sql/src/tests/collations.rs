//! Which collation texts are compared in: answers are those of MySQL.

use crate::testing::Desk;

/// Texts that differ in case alone, in columns with a weaker and a stronger collation.
fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE ci (id INT PRIMARY KEY, t VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, KEY (t));
         CREATE TABLE bn (id INT PRIMARY KEY, t VARCHAR(20) COLLATE utf8mb4_bin, KEY (t));
         INSERT INTO ci VALUES (1,'a'),(2,'A'),(3,'b'),(4,'B'),(5,'c');
         INSERT INTO bn VALUES (1,'a'),(2,'A'),(3,'b'),(4,'Z')",
    );
    desk
}

#[test]
fn operands_are_compared_in_the_collation_of_all() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE p (c VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, e VARCHAR(9) COLLATE utf8mb4_bin)
         => ok 0
         INSERT INTO p VALUES ('a', 'A')
         => ok 1
         SELECT c IN (e, 'x'), c IN ('A', e), c IN ('A', 'x'), c IN ('a', e) FROM p
         => 0|0|1|1
         SELECT c IN ('A', e, NULL), c IN (NULL, 'A'), NULLIF(NULL, 1 / 0) FROM p
         => NULL|1|NULL
         SELECT c FROM p WHERE c IN ('A', e)
         =>
         SELECT c FROM p WHERE CONCAT(c, '') IN ('A', e)
         =>
         SELECT CASE c WHEN e THEN 1 WHEN 'A' THEN 2 END, CASE c WHEN 'A' THEN 2 END FROM p
         => NULL|2
         SELECT c BETWEEN 'A' AND e, c BETWEEN 'A' AND 'A', c BETWEEN e AND 'a' FROM p
         => 0|1|1",
    );
}

#[test]
fn an_index_is_no_help_for_a_text_of_another_row_with_a_stronger_collation() {
    tables().check(
        "SELECT bn.id, (SELECT GROUP_CONCAT(ci.id ORDER BY ci.id) FROM ci WHERE ci.t = bn.t) AS g FROM bn ORDER BY bn.id
         => 1|1;2|2;3|3;4|NULL
         SELECT bn.id, (SELECT GROUP_CONCAT(ci.id ORDER BY ci.id) FROM ci WHERE ci.t > bn.t) AS g FROM bn ORDER BY bn.id
         => 1|3,5;2|1,3,4,5;3|5;4|1,3,5
         SELECT bn.id, x.id FROM bn, LATERAL (SELECT ci.id FROM ci WHERE ci.t IN (bn.t, 'c') ORDER BY ci.id LIMIT 5) x ORDER BY 1, 2
         => 1|1;1|5;2|2;2|5;3|3;3|5;4|5
         SELECT ci.id, (SELECT GROUP_CONCAT(bn.id ORDER BY bn.id) FROM bn WHERE bn.t = ci.t) AS g FROM ci ORDER BY ci.id
         => 1|1;2|2;3|3;4|NULL;5|NULL
         SELECT bn.id, ci.id FROM bn JOIN ci ON ci.t = bn.t ORDER BY 1, 2
         => 1|1;2|2;3|3
         SELECT id FROM ci WHERE t = 'A' ORDER BY id
         => 1;2",
    );
}

#[test]
fn an_index_is_no_help_for_a_function_of_a_constant_with_a_stronger_collation() {
    tables().check(
        "SET @u = 'A' COLLATE utf8mb4_bin
         => ok 0
         SELECT id FROM ci WHERE t = CONCAT(@u, '') ORDER BY id
         => 2
         SELECT id FROM ci WHERE t = @u ORDER BY id
         => 2
         DELETE FROM ci WHERE t = @u AND id = 1
         => ok 0
         SET @u = 'A'
         => ok 0
         SELECT id FROM ci WHERE t = @u ORDER BY id
         => 1;2",
    );
}

#[test]
fn collations_of_equal_strength_are_no_mix() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE ci (a VARCHAR(9) COLLATE utf8mb4_0900_ai_ci);
         CREATE TABLE gc (b VARCHAR(9) COLLATE utf8mb4_general_ci);
         INSERT INTO ci VALUES ('a'); INSERT INTO gc VALUES ('A')",
    );
    let pair = "(utf8mb4_0900_ai_ci,IMPLICIT) and (utf8mb4_general_ci,IMPLICIT)";
    for (query, operation) in [
        ("SELECT * FROM ci, gc WHERE a = b", "="),
        (
            "SELECT * FROM (SELECT CONCAT(a,'') a FROM ci) x, (SELECT b FROM gc) y WHERE x.a = y.b",
            "=",
        ),
        ("SELECT * FROM ci, gc WHERE CONCAT(a, '') = b", "="),
        ("SELECT * FROM (SELECT a FROM ci UNION SELECT 'z') x, gc WHERE x.a = gc.b", "="),
        ("SELECT * FROM (SELECT MAX(a) a FROM ci) x, gc WHERE x.a = gc.b", "="),
        ("SELECT * FROM ci WHERE a IN (SELECT b FROM gc)", "="),
        ("SELECT * FROM ci WHERE a = (SELECT b FROM gc)", "="),
        ("SELECT * FROM ci, gc WHERE a LIKE b", "like"),
        ("SELECT STRCMP(a, b) FROM ci, gc", "strcmp"),
        ("SELECT NULLIF(a, b) FROM ci, gc", "nullif"),
        ("SELECT * FROM ci NATURAL JOIN (SELECT b AS a FROM gc) z", "="),
        ("WITH c AS (SELECT a FROM ci) SELECT * FROM c, gc WHERE c.a = gc.b", "="),
        ("SELECT * FROM (SELECT IFNULL(a, 'q') AS a FROM ci) x, gc WHERE x.a = gc.b", "="),
        ("SELECT * FROM (SELECT LOWER(a) AS a FROM ci) x, gc WHERE x.a > gc.b", ">"),
        ("SELECT * FROM (SELECT CAST(1 AS CHAR) AS a) x, gc WHERE x.a = gc.b", "="),
    ] {
        let wanted =
            format!("ERROR 1267 Illegal mix of collations {pair} for operation '{operation}'");
        assert_eq!(desk.run(query), wanted, "{query}");
    }
    desk.check(
        "SELECT a FROM ci UNION SELECT b FROM gc
         => ERROR 1271 Illegal mix of collations for operation 'UNION'
         SELECT * FROM ci JOIN gc ON a BETWEEN b AND 'z'
         => ERROR 1270 Illegal mix of collations (utf8mb4_0900_ai_ci,IMPLICIT), (utf8mb4_general_ci,IMPLICIT), (utf8mb4_0900_ai_ci,COERCIBLE) for operation 'between'
         SELECT * FROM ci WHERE a IN ((SELECT b FROM gc), 'x')
         => ERROR 1270 Illegal mix of collations (utf8mb4_0900_ai_ci,IMPLICIT), (utf8mb4_general_ci,IMPLICIT), (utf8mb4_0900_ai_ci,COERCIBLE) for operation ' IN '
         SELECT b IN (NULLIF('a', b), 'a', '', b) FROM gc
         => 1
         SELECT a COLLATE utf8mb4_bin = b COLLATE utf8mb4_general_ci FROM ci, gc
         => ERROR 1267 Illegal mix of collations (utf8mb4_bin,EXPLICIT) and (utf8mb4_general_ci,EXPLICIT) for operation '='
         SELECT CONCAT(a, b), IF(1, a, b), COALESCE(a, b), GREATEST(a, b), INSTR(a, b), FIELD(a, b, 'c') FROM ci, gc
         => aA|a|a|A|1|1
         SELECT CONCAT(a COLLATE utf8mb4_general_ci, b) = a, COALESCE(a, b) = 'A' COLLATE utf8mb4_general_ci FROM ci, gc
         => 0|1
         SELECT COUNT(*) FROM ci, gc WHERE CONCAT(a, b) = 'x'
         => 0
         SELECT * FROM (SELECT 'x' AS k) x, gc WHERE x.k = gc.b
         => 
         SELECT a = b COLLATE utf8mb4_bin, CONCAT(a, b COLLATE utf8mb4_bin) FROM ci, gc
         => 0|aA
         SELECT * FROM gc WHERE b = (SELECT 'a')
         => A
         SELECT * FROM gc WHERE b = COALESCE(NULLIF(1, 1), 'a')
         => A
         SELECT * FROM gc WHERE b IN ('a', 'z') AND b BETWEEN 'a' AND 'b' AND b LIKE 'a%'
         => A
         SELECT b FROM gc UNION SELECT 'a'
         => A",
    );
}

#[test]
fn a_constant_among_results_is_compared_in_the_collation_of_the_column_beside_it() {
    tables().check(
        "SELECT id FROM bn WHERE IF(id < 3, 'A', t) = 'a' ORDER BY id
         => 
         SELECT id FROM bn WHERE CASE WHEN id < 3 THEN 'A' ELSE t END LIKE 'a%' OR ELT(1, 'A', t) = 'a' ORDER BY id
         => 
         SELECT id FROM bn WHERE COALESCE(NULLIF(t, 'a'), 'B') IN ('b') ORDER BY id
         => 3
         SELECT id FROM bn WHERE LEAST('a', CONCAT(t, 'z')) > 'A' ORDER BY id
         => 1;2;3;4
         SELECT id, IFNULL(NULLIF(t, 'a'), 5) = '5', IF(id = 1, 'A', t) BETWEEN 'a' AND 'b' FROM bn WHERE id < 3 ORDER BY id
         => 1|1|0;2|0|0
         SELECT id FROM ci WHERE IF(id < 3, 'A', t) = 'a' ORDER BY id
         => 1;2",
    );
}

/// Found by generated statements: the value of the first column is as strong as that of the other one.
#[test]
fn results_of_two_columns_are_compared_by_their_bytes_if_one_of_them_is() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE p (id INT PRIMARY KEY, c VARCHAR(9) COLLATE utf8mb4_general_ci, e VARCHAR(9) COLLATE utf8mb4_bin);
         INSERT INTO p VALUES (0, 'A', '0')",
    );
    desk.check(
        "(SELECT MIN(c) AS x FROM p) UNION SELECT 'a' UNION SELECT e FROM p WHERE id > 0
         => A;a
         (SELECT c AS x FROM p) UNION SELECT 'a' UNION ALL SELECT e FROM p WHERE id > 0
         => A
         SELECT COUNT(*) FROM p JOIN (SELECT 'a' AS x) y WHERE CONCAT_WS('', NULLIF(e, '0'), 'A') < y.x
         => 1
         SELECT 'a' = CASE 7 WHEN 2 THEN e ELSE c END, 'a' = IF(id > 5, e, c), 'a' = COALESCE(c, e), 'a' = IFNULL(c, e) FROM p
         => 0|0|0|0
         SELECT COLLATION(CASE 7 WHEN 2 THEN e ELSE c END), COLLATION(IF(1, c, e)), COLLATION(IF(1, c, 'x')) FROM p
         => utf8mb4_bin|utf8mb4_bin|utf8mb4_general_ci
         SELECT COUNT(*) FROM p JOIN (SELECT 1) x WHERE 'a' <=> ELT(1, c, e)
         => 0
         SELECT COERCIBILITY(COALESCE(c, e)), COERCIBILITY(c COLLATE utf8mb4_bin) FROM p
         => 2|0
         SELECT 'a' = NULLIF(c, e), 'a' = CASE WHEN id = 0 THEN c ELSE 'x' END FROM p
         => 1|1",
    );
}
