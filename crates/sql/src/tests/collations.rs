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
         => 2",
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
