//! Rows that a query does not ask for give no errors: answers are those of MySQL.

use crate::testing::Desk;

/// A table whose last rows do not fit into sums, and have no partners.
fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE r (id INT PRIMARY KEY, k INT, t VARCHAR(20));
         CREATE TABLE s (id INT PRIMARY KEY, k INT, b BIGINT, d DOUBLE, t VARCHAR(20) UNIQUE, n INT NOT NULL);
         INSERT INTO r VALUES (1,1,'1'),(2,2,'x'),(3,3,'02');
         INSERT INTO s VALUES (1,1,5,1.5,'1',1),(2,2,6,2.5,'01',2),
             (3,9,9223372036854775807,1e308,'z',9),(4,9,9223372036854775807,1e308,'y',9)",
    );
    desk
}

#[test]
fn groups_that_nobody_asks_for_may_be_out_of_range() {
    tables().check(
        "SELECT r.id, (SELECT SUM(s.b * 2) FROM s WHERE s.k = r.k) AS v FROM r ORDER BY 1
         => 1|10;2|12;3|NULL
         SELECT r.id, (SELECT SUM(s.d) FROM s WHERE s.k = r.k) AS v FROM r ORDER BY 1
         => 1|1.5;2|2.5;3|NULL
         SELECT r.id, (SELECT COUNT(*) FROM s WHERE s.k = r.k AND s.b + 1 > 5) AS v FROM r ORDER BY 1
         => 1|1;2|1;3|0
         SELECT r.id, (SELECT MAX(-s.b - 2) FROM s WHERE s.k = r.k) AS v FROM r ORDER BY 1
         => 1|-7;2|-8;3|NULL
         SELECT r.id, x.v FROM r, LATERAL (SELECT s.b * 2 AS v FROM s WHERE s.k = r.k) x ORDER BY 1
         => 1|10;2|12",
    );
}

#[test]
fn constants_that_fail_are_computed_for_no_row_that_nobody_asks_for() {
    tables().check(
        "SELECT r.id, (SELECT MAX(IF(s.k = 9, 9223372036854775807 + 1, s.n)) FROM s WHERE s.k = r.k) AS v FROM r ORDER BY 1
         => 1|1;2|2;3|NULL
         SELECT r.id, (SELECT COUNT(*) FROM s WHERE s.k = r.k AND (s.k < 9 OR 18446744073709551615 + 1 > s.n)) AS v FROM r ORDER BY 1
         => 1|1;2|1;3|0
         SELECT r.id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k AND CASE s.k WHEN 9 THEN -(-9223372036854775807 - 1) ELSE 1 END)
         => 1;2",
    );
}

#[test]
fn conditions_that_are_texts_may_warn() {
    let mut desk = tables();
    for condition in
        ["IF(s.t, 1, 1)", "CASE WHEN s.t THEN 1 ELSE 1 END", "s.t", "NOT s.t", "CONCAT(s.t, '')"]
    {
        let query = format!("(SELECT COUNT(*) FROM s WHERE s.k = r.k AND {condition})");
        assert_eq!(desk.run(&format!("UPDATE r SET id = id + 0 * {query}")), "ok 0", "{condition}");
    }
}

#[test]
fn long_sums_are_looked_at_once() {
    let mut desk = tables();
    let sum = vec!["s.n"; 500].join(" + ");
    let began = tokio::time::Instant::now();
    let query =
        format!("SELECT r.id, (SELECT SUM({sum}) FROM s WHERE s.k = r.k) AS v FROM r ORDER BY 1");
    assert_eq!(desk.run(&query), "1|500;2|1000;3|NULL");
    let tree = desk.run(&format!("EXPLAIN FORMAT=TREE {query}"));
    assert!(tree.contains("join"), "{tree}");
    let took = began.elapsed();
    assert!(took.as_millis() < 1_500, "{took:?}");
}

#[test]
fn groups_are_still_made_where_nothing_fails() {
    let mut desk = tables();
    for value in [
        "SUM(s.n)",
        "AVG(s.n * 2)",
        "MAX(s.b)",
        "SUM(s.n * (1 - s.k))",
        "COUNT(DISTINCT s.t)",
        "SUM(s.n * (2 + 3))",
        "MAX(IF(s.n > 1 + 1, s.t, UPPER('a')))",
    ] {
        let query =
            format!("SELECT r.id, (SELECT {value} FROM s WHERE s.k = r.k AND s.n < 100) FROM r");
        let tree = desk.run(&format!("EXPLAIN FORMAT=TREE {query}"));
        assert!(tree.contains("join"), "{value}: {tree}");
        assert!(!tree.to_lowercase().contains("subquer"), "{value}: {tree}");
    }
}

#[test]
fn a_key_of_texts_is_not_fixed_by_a_number() {
    tables().check(
        "SELECT r.id FROM r WHERE r.id = 2 AND r.k IN (SELECT s2.k FROM s s2 WHERE s2.k = r.k AND s2.n = (SELECT s.n FROM s WHERE s.t = s2.k))
         => 
         SELECT r.id, (SELECT s.n FROM s WHERE s.t = r.k) AS v FROM r ORDER BY 1
         => ERROR 1242 Subquery returns more than 1 row
         SELECT r.id, (SELECT s.n FROM s WHERE s.t = r.k) AS v FROM r WHERE r.id > 1 ORDER BY 1
         => 2|NULL;3|NULL",
    );
}

#[test]
fn conditions_may_be_nested_deeper_than_data_nodes_take() {
    let mut desk = tables();
    let deep = |levels: usize, inner: &str| {
        format!("{}{inner}{}", "ABS(1 + ".repeat(levels), ")".repeat(levels))
    };
    for levels in [20, 60, 110, 200] {
        let wanted = levels + 2;
        let condition = format!("{} = {wanted}", deep(levels, "s.k"));
        let all = [
            format!("SELECT id FROM s WHERE {condition}"),
            format!("SELECT s.id FROM s JOIN r ON r.k = s.k AND {condition}"),
            format!(
                "SELECT r.id FROM r WHERE EXISTS (SELECT * FROM s WHERE s.k = r.k AND {condition})"
            ),
            format!(
                "SELECT r.id FROM r LEFT JOIN s ON s.id = r.id AND {condition} WHERE s.id IS NOT NULL"
            ),
        ];
        for query in all {
            assert_eq!(desk.run(&query), "2", "{levels}: {query}");
        }
        assert_eq!(
            desk.run(&format!("UPDATE s SET n = {} WHERE {condition}", deep(levels, "s.n"))),
            "ok 1"
        );
        assert_eq!(desk.run("SELECT n FROM s WHERE id = 2"), format!("{}", 2 + levels));
        assert_eq!(desk.run("UPDATE s SET n = 2 WHERE id = 2"), "ok 1");
        assert_eq!(desk.run(&format!("DELETE FROM s WHERE {condition}")), "ok 1");
        assert_eq!(desk.run("INSERT INTO s VALUES (2,2,6,2.5,'01',2)"), "ok 1");
    }
}
