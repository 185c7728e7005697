//! LIMIT in changes through views, and careful sessions: answers are those of MySQL.

use crate::testing::Desk;

/// A table with keys and one without any, and views of each that have or lack a key.
fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL, c INT, UNIQUE KEY (b), UNIQUE KEY (c));
         CREATE TABLE nk (a INT, b INT);
         INSERT INTO t VALUES (1,1,1),(2,2,2);
         INSERT INTO nk VALUES (1,1),(2,2);
         CREATE VIEW va AS SELECT a, c FROM t;
         CREATE VIEW vc AS SELECT c FROM t;
         CREATE VIEW nka AS SELECT a FROM nk;
         CREATE VIEW nkab AS SELECT a, b FROM nk",
    );
    desk
}

#[test]
fn rows_are_limited_where_a_view_has_no_key() {
    tables().check(
        "CREATE VIEW vb AS SELECT b, c FROM t
         => ok 0
         CREATE VIEW vcc AS SELECT c FROM va
         => ok 0
         CREATE VIEW ve AS SELECT a + 0 AS a, c FROM t
         => ok 0
         UPDATE va SET c = c + 10 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => 
         UPDATE vb SET c = c + 10 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => 
         UPDATE vc SET c = c + 100 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE nka SET a = a + 1 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE nkab SET a = a + 1 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => 
         UPDATE vcc SET c = c + 1000 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE ve SET c = c + 10000 LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         DELETE FROM vc LIMIT 1
         => ok 1
         SHOW WARNINGS
         => Note|1355|View being updated does not have complete key of underlying table in it
         UPDATE vc SET c = 7
         => ok 1
         SHOW WARNINGS
         => ",
    );
}

#[test]
fn limits_can_be_forbidden() {
    tables().check(
        "SET updatable_views_with_limit = NO
         => ok 0
         SELECT @@updatable_views_with_limit
         => NO
         UPDATE vc SET c = c + 100 LIMIT 1
         => ERROR 1288 The target table vc of the UPDATE is not updatable
         UPDATE va SET c = c + 100 LIMIT 1
         => ok 1
         DELETE FROM vc LIMIT 1
         => ERROR 1288 The target table vc of the DELETE is not updatable
         UPDATE vc SET c = 8
         => ERROR 1062 Duplicate entry '8' for key 't.c'
         DELETE FROM nka LIMIT 1
         => ERROR 1288 The target table nka of the DELETE is not updatable
         DELETE FROM nkab LIMIT 1
         => ok 1
         UPDATE vc SET c = c LIMIT 0
         => ERROR 1288 The target table vc of the UPDATE is not updatable
         SET updatable_views_with_limit = 1
         => ok 0
         SELECT @@updatable_views_with_limit
         => YES
         SET updatable_views_with_limit = 'off'
         => ERROR 1231 Variable 'updatable_views_with_limit' can't be set to the value of 'off'
         SET updatable_views_with_limit = 2
         => ERROR 1231 Variable 'updatable_views_with_limit' can't be set to the value of '2'
         SET SESSION updatable_views_with_limit = DEFAULT
         => ok 0
         SHOW VARIABLES LIKE 'updatable%'
         => updatable_views_with_limit|YES",
    );
}

#[test]
fn careful_sessions_change_rows_by_keys_only() {
    Desk::new().check(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT)
         => ok 0
         INSERT INTO t VALUES (1,1),(2,2)
         => ok 2
         CREATE VIEW v AS SELECT a, b FROM t
         => ok 0
         SET sql_safe_updates = 1
         => ok 0
         UPDATE v SET b = 5
         => ERROR 1175 …
         UPDATE v SET b = 6 WHERE a = 1
         => ok 1
         UPDATE v SET b = 7 LIMIT 5
         => ok 2
         DELETE FROM v WHERE b = 7
         => ERROR 1175 …
         DELETE FROM v WHERE a = 2
         => ok 1
         SELECT * FROM t
         => 1|7",
    );
}

#[test]
fn views_nested_too_deep_are_no_invalid_views() {
    let mut desk = tables();
    for (open, close) in
        [("-(1+", ")"), ("ABS(", ")"), ("NOT (", ")"), ("1 IN (", ")"), ("(SELECT ", ")")]
    {
        let mut made = 0;
        for levels in [10, 50, 100, 150, 200, 240, 280, 320, 400, 480, 600, 1_000] {
            let text = format!(
                "CREATE OR REPLACE VIEW deep AS SELECT {}1{} AS a",
                open.repeat(levels),
                close.repeat(levels)
            );
            let found = desk.run(&text);
            match found.as_str() {
                "ok 0" => {
                    made += 1;
                    let read = desk.run("SELECT * FROM deep");
                    assert!(!read.starts_with("ERROR 1356"), "{open} {levels}: {read}");
                }
                other => assert!(other.starts_with("ERROR 1436"), "{open} {levels}: {other}"),
            }
        }
        assert!((2..12).contains(&made), "{open}: {made}");
    }
}

#[test]
fn a_broken_view_hides_no_others_in_the_status_of_tables() {
    let mut desk = tables();
    desk.run("CREATE VIEW a AS SELECT a FROM nk; CREATE VIEW z AS SELECT a FROM t; DROP TABLE nk");
    let comments = desk.run("SHOW TABLE STATUS WHERE Name IN ('a', 't', 'z')");
    let comments: Vec<&str> =
        comments.split(';').filter_map(|row| row.rsplit('|').next()).collect();
    assert!(comments[0].starts_with("View 'test.a' references invalid"), "{comments:?}");
    assert_eq!(&comments[1..], ["", "VIEW"]);
    let invalid = desk.run("SHOW TABLE STATUS WHERE Comment LIKE '%invalid%'");
    assert_eq!(invalid.split(';').count(), 3, "{invalid}");
    assert!(desk.run("SHOW TABLE STATUS LIKE 'nka'").contains("references invalid"));
}

#[test]
fn several_views_are_dropped_as_one_change() {
    let mut desk = tables();
    let before = desk.store.inner().catalog.version;
    desk.check(
        "DROP VIEW va, nosuch, vc, other
         => ERROR 1051 Unknown table 'test.nosuch,test.other'
         DROP VIEW va, nosuch, t
         => ERROR 1347 'test.t' is not VIEW
         SHOW FULL TABLES LIKE 'v%'
         => va|VIEW;vc|VIEW",
    );
    assert_eq!(desk.store.inner().catalog.version, before);
    assert_eq!(desk.run("DROP VIEW va, vc, nka"), "ok 0");
    assert_eq!(desk.store.inner().catalog.version, before + 1);
    assert_eq!(desk.run("SHOW FULL TABLES WHERE Table_type = 'VIEW'"), "nkab|VIEW");
    assert_eq!(desk.run("DROP VIEW IF EXISTS nkab, nosuch"), "ok 0");
    assert_eq!(desk.run("SHOW WARNINGS"), "Note|1051|Unknown table 'test.nosuch'");
}
