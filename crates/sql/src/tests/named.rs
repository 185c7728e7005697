//! PREPARE and EXPLAIN as statements, and SELECT … INTO.

use crate::testing::Desk;

fn people() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE person (id INT PRIMARY KEY, name VARCHAR(9), town INT, KEY (town));
         CREATE TABLE town (id INT PRIMARY KEY, name VARCHAR(9));
         INSERT INTO person VALUES (1, 'Ann', 1), (2, 'Bob', 1), (3, 'Cyd', NULL);
         INSERT INTO town VALUES (1, 'Oslo'), (2, 'Rome')",
    );
    desk
}

#[test]
fn statements_with_names() {
    people().check(
        "PREPARE p FROM 'SELECT name FROM person WHERE id = ? OR name = ? ORDER BY id'
         => ok 0
         SET @a = 1, @b = 'Cyd'
         => ok 0
         EXECUTE p USING @a, @b
         => Ann;Cyd
         EXECUTE P USING @a
         => ERROR 1210 Incorrect arguments to EXECUTE
         SET @s = 'INSERT INTO town VALUES (?, ?)'
         => ok 0
         PREPARE q FROM @s
         => ok 0
         SET @a = 9
         => ok 0
         EXECUTE q USING @a, @b
         => ok 1
         SELECT name FROM town WHERE id = 9
         => Cyd
         PREPARE q FROM 'SELECT * FROM nope'
         => ERROR 1146 …
         EXECUTE q USING @a, @b
         => ERROR 1243 Unknown prepared statement handler (q) given to EXECUTE
         PREPARE r FROM 'EXECUTE p'
         => ERROR 1295 …
         DEALLOCATE PREPARE p
         => ok 0
         DROP PREPARE p
         => ERROR 1243 Unknown prepared statement handler (p) given to DEALLOCATE PREPARE",
    );
}

#[test]
fn values_into_variables() {
    people().check(
        "SELECT name, town INTO @n, @t FROM person WHERE id = 2
         => ok 1
         SELECT @n, @t
         => Bob|1
         SELECT id INTO @n FROM person WHERE id = 77
         => ok 0
         SHOW WARNINGS
         => Warning|1329|No data - zero rows fetched, selected, or processed
         SELECT @n
         => Bob
         SELECT id INTO @n FROM person
         => ERROR 1172 Result consisted of more than one row
         SELECT 1, 2 INTO @n
         => ERROR 1222 …",
    );
}

#[test]
fn plans_are_shown() {
    let mut desk = people();
    let join = "SELECT p.name, t.name FROM person p JOIN town t ON t.id = p.town WHERE p.id = 1";
    let tree = desk.run(&format!("EXPLAIN FORMAT=TREE {join}"));
    assert_eq!(
        tree,
        "-> Nested loop inner join, keys of many rows at once\n    \
         -> Single-row index lookup on p using PRIMARY (id) (rows=1.0)\n    \
         -> Single-row index lookup on t using PRIMARY (id) (rows=1.0)\n"
    );
    desk.check(
        "EXPLAIN SELECT p.name, t.name FROM person p JOIN town t ON t.id = p.town WHERE p.id = 1
         => 1|SIMPLE|p|NULL|const|PRIMARY|PRIMARY|4|const|1|100.00|NULL;1|SIMPLE|t|NULL|eq_ref|PRIMARY|PRIMARY|4|test.p.town|1|100.00|NULL
         EXPLAIN SELECT * FROM person WHERE town = 1 ORDER BY name
         => 1|SIMPLE|person|NULL|ref|town|town|5|const|2|100.00|Using filesort
         EXPLAIN SELECT 1
         => 1|SIMPLE|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|No tables used
         EXPLAIN FORMAT=nope SELECT 1
         => ERROR 1791 Unknown EXPLAIN format name: 'nope'
         EXPLAIN ANALYZE FORMAT=TRADITIONAL SELECT 1
         => ERROR 1235 …
         EXPLAIN ANALYZE DELETE FROM person
         => ERROR 1235 …
         EXPLAIN SELECT nope FROM person
         => ERROR 1054 …",
    );
    let set = desk.run("EXPLAIN FORMAT=TREE SELECT town FROM person UNION SELECT id FROM town");
    assert!(set.starts_with("-> Union, without duplicates\n"), "{set}");
    let exists = "SELECT id FROM town t WHERE EXISTS (SELECT * FROM person WHERE town = t.id)";
    let exists = desk.run(&format!("EXPLAIN FORMAT=TREE {exists}"));
    assert!(exists.starts_with("-> Semi hash join"), "{exists}");
}

#[test]
fn rules_can_be_switched_off() {
    let mut desk = people();
    let queries = [
        "SELECT p.name, t.name FROM person p JOIN town t ON t.id = p.town ORDER BY p.id",
        "SELECT t.name, COUNT(p.id) FROM town t LEFT JOIN person p ON p.town = t.id GROUP BY t.id ORDER BY t.id",
        "SELECT name FROM person WHERE town IN (SELECT id FROM town WHERE name = 'Oslo') AND id < 3 ORDER BY id",
        "SELECT name FROM person WHERE id > 1 ORDER BY name DESC LIMIT 1",
        "SELECT id, town IN (SELECT id FROM town) AS a, id NOT IN (SELECT town FROM person) AS b FROM person ORDER BY id",
        "SELECT id, 2 IN (SELECT town FROM person WHERE id < 3) AS c, town IN (SELECT 1 FROM town WHERE id > 9) AS d FROM person ORDER BY id",
        "SELECT id, (town, id) IN (SELECT town, id FROM person WHERE id > 1) AS e, id > ALL (SELECT id FROM town) AS f FROM person ORDER BY id",
        "SELECT id, (SELECT COUNT(*) FROM town) AS g, EXISTS (SELECT * FROM town WHERE id = 7) AS h FROM person ORDER BY id",
        "SELECT t.id, (SELECT MAX(p.name) FROM person p WHERE p.town = t.id) AS i FROM town t ORDER BY t.id",
        "SELECT d.town, d.n FROM (SELECT town, COUNT(*) AS n FROM person GROUP BY town) d WHERE d.n > 1 OR d.town IS NULL ORDER BY d.n",
        "SELECT t.name FROM town t LEFT JOIN person p ON p.town = t.id AND p.id > 1 WHERE p.id IS NULL OR p.id = 2 ORDER BY t.id",
    ];
    let answers: Vec<String> = queries.iter().map(|query| desk.run(query)).collect();
    let expected = [
        "Ann|Oslo;Bob|Oslo",
        "Oslo|2;Rome|0",
        "Ann;Bob",
        "Cyd",
        "1|1|0;2|1|NULL;3|NULL|NULL",
        "1|0|0;2|0|0;3|0|0",
        "1|0|0;2|1|0;3|NULL|1",
        "1|2|0;2|2|0;3|2|0",
        "1|Bob;2|NULL",
        "NULL|1;1|2",
        "Oslo;Rome",
    ];
    assert_eq!(answers, expected);
    for rule in crate::optimizer_switch::NAMES {
        assert_eq!(desk.run(&format!("SET optimizer_switch = '{rule}=off'")), "ok 0");
        for (query, answer) in queries.iter().zip(&answers) {
            assert_eq!(desk.run(query), *answer, "{rule}: {query}");
        }
    }
    desk.check(
        "SELECT @@optimizer_switch
         => apply_cache=off,column_pruning=off,common_terms=off,condition_pushdown=off,equal_columns=off,hash_join=off,join_order=off,key_join=off,outer_to_inner=off,semijoin=off,single_table=off,subquery_to_derived=off
         SET optimizer_switch = 'hash_join=on,semijoin=off'
         => ok 0
         SELECT @@optimizer_switch LIKE '%hash_join=on%'
         => 1
         SET optimizer_switch = 'default'
         => ok 0
         SET optimizer_switch = 'nope=on'
         => ERROR 1231 Variable 'optimizer_switch' can't be set to the value of 'nope=on'",
    );
}

#[test]
fn rows_are_counted() {
    people().check(
        "SELECT SQL_CALC_FOUND_ROWS name FROM person ORDER BY id LIMIT 1 OFFSET 1
         => Bob
         SELECT FOUND_ROWS()
         => 3
         SELECT FOUND_ROWS()
         => 1
         SELECT name FROM person WHERE id < 3
         => Ann;Bob
         SELECT FOUND_ROWS()
         => 2",
    );
}

#[test]
fn columns_of_outer_queries() {
    people().check(
        "SELECT (SELECT id) AS a, (SELECT town FROM town WHERE id = 2) AS b FROM person ORDER BY person.id
         => 1|1;2|1;3|NULL
         SELECT (SELECT SUM(p.id)) FROM person p
         => 6
         SELECT id, (WITH RECURSIVE c AS (SELECT person.id AS n UNION ALL SELECT n + 1 FROM c WHERE n < 4) SELECT COUNT(*) FROM c) AS n FROM person ORDER BY id
         => 1|4;2|3;3|2
         WITH town AS (SELECT id + 10 AS id FROM town) SELECT id FROM town ORDER BY id
         => 11;12
         WITH RECURSIVE c AS (SELECT 10 AS n UNION ALL SELECT n / 2 FROM c WHERE n > 2) SELECT n FROM c
         => 10;5;3;2
         WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT COUNT(*) FROM c) SELECT n FROM c
         => ERROR 3575 …
         WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT a.n + 1 FROM c a JOIN c b) SELECT n FROM c
         => ERROR 3577 …
         SELECT id FROM person WHERE id IN (SELECT id FROM town LIMIT 1)
         => ERROR 1235 …
         SELECT town, COUNT(*) FROM person WHERE id > 9 GROUP BY town WITH ROLLUP
         => NULL|0
         UPDATE person SET id = id + 10, town = (SELECT MAX(id) FROM town WHERE id < person.id)
         => ERROR 1235 …",
    );
}

#[test]
fn a_prepared_text_is_read_as_when_it_was_prepared() {
    people().check(
        "PREPARE p FROM 'SELECT ''2'' || ''3'''
         => ok 0
         SET sql_mode = 'PIPES_AS_CONCAT'
         => ok 0
         EXECUTE p
         => 1
         SELECT '2' || '3'
         => 23
         CREATE TABLE more (id INT)
         => ok 0
         EXECUTE p
         => 1
         SELECT ? + 1
         => ERROR 1064 …",
    );
}
