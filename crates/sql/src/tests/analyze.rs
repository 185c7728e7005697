//! EXPLAIN ANALYZE: what the steps of a query did.

use crate::testing::Desk;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE town (id INT PRIMARY KEY, name VARCHAR(10), size INT)
         => ok 0
         INSERT INTO town VALUES (1, 'A', 1), (2, 'B', 2), (3, 'C', 3)
         => ok 3
         CREATE TABLE person (id INT PRIMARY KEY, town INT, name VARCHAR(10))
         => ok 0
         INSERT INTO person VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, 2, 'd')
         => ok 4",
    );
    desk
}

/// The tree, with `T` for each time; every time must be there, and none may go backward.
fn tree(desk: &mut Desk, query: &str) -> String {
    let text = desk.run(&format!("EXPLAIN ANALYZE {query}"));
    let mut out = String::new();
    for (at, part) in text.split("actual time=").enumerate() {
        let Some((times, rest)) = part.split_once(' ').filter(|_| at > 0) else {
            out.push_str(part);
            continue;
        };
        let (first, last) = times.split_once("..").expect("two times");
        let number = |text: &str| text.parse::<f64>().expect("a number");
        assert!(number(first) > 0.0 && number(first) <= number(last), "{text}");
        out.push_str("T ");
        out.push_str(rest);
    }
    out
}

#[test]
fn joins_and_orders_say_what_they_did() {
    let mut desk = desk();
    assert_eq!(
        tree(
            &mut desk,
            "SELECT t.name FROM person p JOIN town t ON t.id = p.town WHERE p.id > 1 ORDER BY t.name LIMIT 2"
        ),
        "-> Limit  (T rows=2 loops=1)
    -> Sort, and keep the first rows  (T rows=2 loops=1)
        -> Nested loop inner join, keys of many rows at once  (T rows=3 loops=1) (memory=1 KiB)
            -> Index range scan on p using PRIMARY (id) (rows=3.0)  (T rows=3 loops=1) (round trips=1, columns=1 of 3)
            -> Single-row index lookup on t using PRIMARY (id) (rows=1.0)  (T rows=1 loops=3) (round trips=1, columns=2 of 3)
"
    );
    let hash = tree(&mut desk, "SELECT * FROM person p LEFT JOIN town t ON t.size = p.town + 1");
    assert_eq!(
        hash,
        "-> Left hash join (1 columns)  (T rows=4 loops=1) (memory=1 KiB)
    -> Table scan on p (rows=4.0)  (T rows=4 loops=1) (round trips=2)
    -> Hash
        -> Table scan on t (rows=3.0)  (T rows=3 loops=1) (round trips=1)
"
    );
}

#[test]
fn subqueries_count_their_runs() {
    let mut desk = desk();
    let query = "SELECT id, (SELECT COUNT(*) FROM person p WHERE p.town < t.id) FROM town t";
    let shown = tree(&mut desk, query);
    assert!(shown.contains("-> Apply (value of a subquery)  (T rows=3 loops=1)"), "{shown}");
    assert!(shown.contains("-> Aggregate  (T rows=1 loops=3)"), "{shown}");
    // The three runs wait together: for the first three rows of each, and then for the fourth of the last one.
    let read =
        "-> Table scan on p; filter in data nodes (rows=1.3)  (T rows=2 loops=3) (round trips=2";
    assert!(shown.contains(read), "{shown}");
    let shown = tree(&mut desk, "(SELECT 1 FROM town LIMIT 0) UNION ALL SELECT 2 FROM person");
    assert!(shown.contains("-> Table scan on town (rows=3.0)  (never executed)"), "{shown}");
    assert!(shown.contains("-> Table scan on person (rows=4.0)  (T rows=4 loops=1)"), "{shown}");
}

#[test]
fn queries_of_one_table_say_what_they_read() {
    let mut desk = desk();
    let shown = tree(&mut desk, "SELECT town, COUNT(*) FROM person WHERE id < 4 GROUP BY town");
    assert_eq!(
        shown,
        "-> Group aggregate by hash  (T rows=2 loops=1)
    -> Index range scan on person using PRIMARY (id)  (T rows=3 loops=1) (round trips=1)
"
    );
    let shown = tree(&mut desk, "SELECT * FROM person WHERE id = 3");
    assert_eq!(
        shown,
        "-> Single-row index lookup on person using PRIMARY (id)  (T rows=1 loops=1) (round trips=1)
"
    );
    let shown = tree(&mut desk, "SELECT 1");
    assert_eq!(shown, "-> Rows fetched before execution  (T rows=1 loops=1)\n");
}

#[test]
fn it_runs_with_values_from_outside_and_fails_as_the_query_does() {
    let mut desk = desk();
    desk.run("SET @id = 2");
    let shown =
        tree(&mut desk, "SELECT * FROM person p JOIN town t ON t.id = p.town WHERE t.id = @id");
    assert!(shown.contains("rows=2 loops=1"), "{shown}");
    desk.check(
        "EXPLAIN ANALYZE SELECT (SELECT id FROM person) FROM town
         => ERROR 1242 …
         EXPLAIN ANALYZE FORMAT=JSON SELECT 1
         => ERROR 1235 …",
    );
}

#[test]
fn scans_with_other_conditions_are_waited_for_together() {
    let mut desk = desk();
    desk.run("ALTER TABLE person ADD INDEX (town)");
    desk.store.inner().is_slow = true;
    desk.store.inner().log.clear();
    // Each town has a condition of its own for data nodes.
    let query = "SELECT id, (SELECT GROUP_CONCAT(p.id) FROM person p WHERE p.town = t.id AND p.id > t.size + 1) FROM town t";
    assert_eq!(desk.run(query), "1|NULL;2|4;3|NULL");
    let inner = desk.store.inner();
    let (mut waiting, mut most) = (0, 0);
    for line in &inner.log {
        match line.as_str() {
            "wait" => waiting += 1,
            "go on" => waiting -= 1,
            _ => {}
        }
        most = most.max(waiting);
    }
    assert!(most >= 3, "{:?}", inner.log);
}
