//! User variables that expressions assign.

use crate::testing::Desk;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, x INT);
         INSERT INTO t VALUES (1, 30), (2, 20), (3, 10)",
    );
    desk
}

#[test]
fn rows_see_what_the_rows_before_have_assigned() {
    desk().check(
        "SELECT @n := @n + 1, id FROM t, (SELECT @n := 0) z ORDER BY x
         => 1|3;2|2;3|1
         SELECT d.k, id FROM (SELECT @k := @k + 1 AS k, id FROM t, (SELECT @k := 0) z ORDER BY id) d WHERE id > 1
         => 2|2;3|3
         SELECT @w := id FROM (SELECT id FROM t ORDER BY id LIMIT 9) d WHERE (@v := id) = COALESCE(@w, 0) + 1
         => 1;2;3
         SELECT @v, @w
         => 3|3",
    );
}

#[test]
fn what_was_assigned_stays_after_an_error() {
    desk().check(
        "SELECT @a := id, (SELECT x FROM t WHERE id > 0) FROM t
         => ERROR 1242 …
         SELECT @b := id, 9223372036854775807 + (@c := id) FROM t ORDER BY id
         => ERROR 1690 …
         SELECT @b, @c
         => 1|1",
    );
}

#[test]
fn subqueries_do_not_see_assignments_around_them() {
    desk().check(
        "SELECT @a := id, (SELECT MAX(x) FROM t WHERE x > @a) FROM t
         => ERROR 1235 …
         SELECT (@a := id) IN (SELECT x FROM t) FROM t
         => ERROR 1235 …
         SELECT @a := id AS k, (SELECT k) FROM t
         => ERROR 1235 …
         SELECT @a := 1, (SELECT @a AS z FROM t ORDER BY z LIMIT 1)
         => ERROR 1235 …
         SELECT @a := 1, (SELECT MAX(id) FROM t GROUP BY @a HAVING @a ORDER BY @a LIMIT 1)
         => ERROR 1235 …
         SELECT (SELECT (@d := 7) + 1 AS z FROM t ORDER BY z LIMIT 1), (SELECT @e := 2)
         => 8|2
         SELECT (SELECT @c := MAX(x) FROM t)
         => 30
         SELECT @c
         => 30",
    );
}

#[test]
fn plans_that_assign_are_used_again() {
    desk().check(
        "PREPARE p FROM 'SELECT @s := @s + x FROM t ORDER BY id'
         => ok 0
         SET @s = 0
         => ok 0
         EXECUTE p
         => 30;50;60
         EXECUTE p
         => 90;110;120
         SET @s = 'abc'
         => ok 0
         SELECT @s := 1, @s
         => 1|1",
    );
}

#[test]
fn a_change_assigns_in_the_order_of_its_rows() {
    desk().check(
        "UPDATE t SET x = (@u := COALESCE(@u, 0) + 1) ORDER BY id DESC LIMIT 2
         => ok 2
         SELECT id, x FROM t ORDER BY id
         => 1|30;2|2;3|1
         INSERT INTO t VALUES (4, @i := 8), (5, @i := @i + 1)
         => ok 2
         SELECT x, @i FROM t WHERE id = 5
         => 9|9
         INSERT INTO t VALUES (5, 1) ON DUPLICATE KEY UPDATE x = (@i := 2)
         => ERROR 1235 …
         SET @a = (@b := 3), @c = @b
         => ok 0
         SELECT @a, @b, @c
         => 3|3|3
         KILL @i := 1
         => ERROR 1235 …",
    );
}

#[test]
fn many_mentions_are_counted_once() {
    let reads = vec!["@m"; 30_000].join(",");
    let began = tokio::time::Instant::now();
    desk().check(&format!(
        "SELECT (SELECT LENGTH(CONCAT(@m := 1, {reads})))
         => 30001
         SELECT @m := 2, (SELECT LENGTH(CONCAT(@m, {reads})))
         => ERROR 1235 …",
    ));
    // Counting them for each of them takes minutes.
    assert!(began.elapsed().as_secs() < 10);
}
