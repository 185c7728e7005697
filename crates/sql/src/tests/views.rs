//! Views: made, shown, read.

mod changes;
mod checks;
mod limits;
mod names;
mod renames;

use crate::testing::Desk;

const TABLES: &str = "
    CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c INT NOT NULL DEFAULT 5);
    CREATE TABLE u (a INT, x INT);
    INSERT INTO t VALUES (1,'one',10),(2,'two',20),(3,'three',30);
    INSERT INTO u VALUES (1,100),(1,101),(3,300)";

fn tables() -> Desk {
    let mut desk = Desk::new();
    desk.run(TABLES);
    desk
}

#[test]
fn a_view_is_read_as_its_query_is() {
    tables().check(
        "CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1
         => ok 0
         SELECT * FROM v ORDER BY a
         => 2|two;3|three
         SELECT v.b, test.v.a FROM v WHERE a = 3
         => three|3
         SELECT w.a FROM v AS w JOIN t ON w.a = t.a + 1 ORDER BY 1
         => 2;3
         SELECT * FROM t NATURAL JOIN v ORDER BY a
         => 2|two|20;3|three|30
         SELECT a FROM t WHERE a IN (SELECT a FROM v) ORDER BY a
         => 2;3
         SELECT a FROM v UNION SELECT 9 ORDER BY 1
         => 2;3;9
         SELECT (SELECT MAX(a) FROM v)
         => 3
         CREATE VIEW g (n, total) AS SELECT COUNT(*), SUM(x) FROM u GROUP BY a ORDER BY 1
         => ok 0
         SELECT * FROM g WHERE n > 1
         => 2|201
         CREATE VIEW over_views AS SELECT v.b, g.total FROM v LEFT JOIN g ON g.n = 1 AND v.a = 3
         => ok 0
         SELECT * FROM over_views ORDER BY b
         => three|300;two|NULL
         WITH v AS (SELECT 7 AS a) SELECT a FROM v
         => 7
         CREATE DATABASE other
         => ok 1
         USE other
         => ok 0
         SELECT * FROM test.over_views ORDER BY b
         => three|300;two|NULL
         CREATE TABLE copy AS SELECT * FROM test.v
         => ok 2
         INSERT INTO copy SELECT a + 10, b FROM test.v
         => ok 2
         SELECT COUNT(*) FROM copy
         => 4",
    );
}

#[test]
fn the_text_of_a_view_has_full_names() {
    tables().check(
        "CREATE VIEW v AS SELECT * FROM t WHERE a > 1 AND b LIKE 'x%' OR NOT c <=> 3
         => ok 0
         SHOW CREATE VIEW v
         => v|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS select `t`.`a` AS `a`,`t`.`b` AS `b`,`t`.`c` AS `c` from `t` where (((`t`.`a` > 1) and (`t`.`b` like 'x%')) or (not((`t`.`c` <=> 3))))|utf8mb4|utf8mb4_0900_ai_ci
         CREATE OR REPLACE ALGORITHM = MERGE DEFINER = me SQL SECURITY INVOKER VIEW v (k, l) AS SELECT z.a + 1, COUNT(*) FROM t z JOIN u USING (a) LEFT JOIN u y ON y.x = 3 GROUP BY z.a + 1 HAVING COUNT(*) > 1 ORDER BY 2 DESC LIMIT 3
         => ok 0
         SHOW WARNINGS
         => Warning|1354|View merge algorithm can't be used here for now (assumed undefined algorithm)
         SHOW CREATE TABLE v
         => v|CREATE ALGORITHM=UNDEFINED DEFINER=`me`@`%` SQL SECURITY INVOKER VIEW `v` (`k`,`l`) AS select (`z`.`a` + 1) AS `z.a + 1`,count(0) AS `COUNT(*)` from ((`t` `z` join `u` on((`z`.`a` = `u`.`a`))) left join `u` `y` on((`y`.`x` = 3))) group by (`z`.`a` + 1) having (count(0) > 1) order by 2 desc limit 3|utf8mb4|utf8mb4_0900_ai_ci
         SELECT * FROM v
         => 2|2
         CREATE VIEW w AS SELECT CASE WHEN a IN (1, 2) THEN 'a''b' ELSE CONCAT(b, '\\\\') END, -a, CAST(c AS CHAR), b IS NOT NULL, (SELECT MAX(x) FROM u WHERE u.a = t.a) m, EXISTS (SELECT 1 FROM u), SUBSTRING(b, 2), DATE_ADD('2024-01-01', INTERVAL 1 DAY) FROM t
         => ok 0
         SHOW CREATE VIEW w
         => w|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `w` AS select (case when (`t`.`a` in (1,2)) then 'a\\'b' else concat(`t`.`b`,'\\\\') end) AS `CASE WHEN a IN (1, 2) THEN 'a''b' ELSE CONCAT(b, '\\\\') END`,-(`t`.`a`) AS `-a`,cast(`t`.`c` as char charset utf8mb4) AS `CAST(c AS CHAR)`,(`t`.`b` is not null) AS `b IS NOT NULL`,(select max(`u`.`x`) from `u` where (`u`.`a` = `t`.`a`)) AS `m`,exists(select 1 from `u`) AS `EXISTS (SELECT 1 FROM u)`,substr(`t`.`b`,2) AS `SUBSTRING(b, 2)`,('2024-01-01' + interval 1 day) AS `DATE_ADD('2024-01-01', INTERVAL 1 DAY)` from `t`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW x AS SELECT 'b ', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' FROM t
         => ok 0
         SHOW COLUMNS FROM x
         => Name_exp_1|varchar(2)|NO|||;Name_exp_2|varchar(80)|NO|||
         CREATE VIEW s AS (SELECT a FROM t LIMIT 1) UNION ALL (SELECT x FROM u ORDER BY x) INTERSECT SELECT 100
         => ok 0
         SELECT * FROM s ORDER BY 1
         => 1;100
         CREATE VIEW c AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT n.*, t.b FROM n, t WHERE n.i = t.a
         => ok 0
         SHOW CREATE VIEW c
         => c|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `c` AS with recursive `n` (`i`) as (select 1 AS `1` union all select (`n`.`i` + 1) AS `i + 1` from `n` where (`n`.`i` < 3)) select `n`.`i` AS `i`,`t`.`b` AS `b` from (`n` join `t`) where (`n`.`i` = `t`.`a`)|utf8mb4|utf8mb4_0900_ai_ci
         SELECT * FROM c ORDER BY i
         => 1|one;2|two;3|three
         CREATE VIEW n AS SELECT * FROM t NATURAL RIGHT JOIN u
         => ok 0
         SHOW CREATE VIEW n
         => n|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `n` AS select `u`.`a` AS `a`,`u`.`x` AS `x`,`t`.`b` AS `b`,`t`.`c` AS `c` from (`u` left join `t` on((`t`.`a` = `u`.`a`)))|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW nothing_common AS SELECT x.n, u.x FROM (SELECT 1 AS n) x NATURAL LEFT JOIN u WHERE u.a = 3
         => ok 0
         SELECT * FROM nothing_common
         => 1|300
         USE latsdb
         => ok 0
         SHOW CREATE VIEW test.n
         => n|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `test`.`n` AS select `test`.`u`.`a` AS `a`,`test`.`u`.`x` AS `x`,`test`.`t`.`b` AS `b`,`test`.`t`.`c` AS `c` from (`test`.`u` left join `test`.`t` on((`test`.`t`.`a` = `test`.`u`.`a`)))|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW test.w2 AS SELECT ROW_NUMBER() OVER (PARTITION BY c ORDER BY a DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) r, SUM(c) OVER w FROM test.t WINDOW w AS (ORDER BY a)
         => ok 0
         SELECT * FROM test.w2
         => 1|10;1|30;1|60
         CREATE VIEW test.whole AS TABLE test.u
         => ok 0
         SHOW CREATE VIEW test.whole
         => whole|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `test`.`whole` AS select `test`.`u`.`a` AS `a`,`test`.`u`.`x` AS `x` from `test`.`u`|utf8mb4|utf8mb4_0900_ai_ci",
    );
}

#[test]
fn a_view_keeps_the_columns_that_a_star_had() {
    tables().check(
        "CREATE VIEW v AS SELECT * FROM u
         => ok 0
         CREATE VIEW w AS SELECT x FROM v
         => ok 0
         DROP TABLE u
         => ok 0
         SELECT * FROM v
         => ERROR 1356 View 'test.v' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them
         SELECT * FROM w
         => ERROR 1356 View 'test.w' references…
         CREATE VIEW z AS SELECT * FROM v
         => ERROR 1356 View 'test.v' references…
         DESCRIBE v
         => ERROR 1356 View 'test.v' references…
         SHOW CREATE VIEW v
         => v|CREATE ALGORITHM=UNDEFINED…
         CREATE TABLE u (x INT, y INT, a INT)
         => ok 0
         INSERT INTO u VALUES (1, 2, 3)
         => ok 1
         SELECT * FROM v
         => 3|1
         SELECT * FROM w
         => 1
         DROP TABLE u
         => ok 0
         CREATE TABLE u (a INT)
         => ok 0
         SELECT * FROM w
         => ERROR 1356 View 'test.w' references…",
    );
}

#[test]
fn what_cannot_be_a_view_is_refused_as_in_mysql() {
    tables().check(
        "CREATE VIEW v AS SELECT @x
         => ERROR 1351 View's SELECT contains a variable or parameter
         CREATE VIEW v AS SELECT @@version
         => ERROR 1351 View's SELECT contains a variable or parameter
         CREATE VIEW v AS SELECT a INTO @x FROM t
         => ERROR 1350 View's SELECT contains a 'INTO' clause
         CREATE VIEW v AS SELECT a, a FROM t
         => ERROR 1060 Duplicate column name 'a'
         CREATE VIEW v (p, P) AS SELECT 1, 2
         => ERROR 1060 Duplicate column name 'P'
         CREATE VIEW v (p, q) AS SELECT a FROM t
         => ERROR 1353 In definition of view, derived table or common table expression, SELECT list and column names list have different column counts
         CREATE VIEW v (p, p2) AS SELECT a, a FROM t
         => ok 0
         CREATE VIEW v AS SELECT 1
         => ERROR 1050 Table 'v' already exists
         CREATE VIEW t AS SELECT 1
         => ERROR 1050 Table 't' already exists
         CREATE OR REPLACE VIEW t AS SELECT 1
         => ERROR 1347 'test.t' is not VIEW
         ALTER VIEW t AS SELECT 1
         => ERROR 1347 'test.t' is not VIEW
         ALTER VIEW nosuch AS SELECT 1
         => ERROR 1146 Table 'test.nosuch' doesn't exist
         CREATE VIEW w AS SELECT a FROM nosuch
         => ERROR 1146 Table 'test.nosuch' doesn't exist
         CREATE VIEW w AS SELECT nosuch FROM t
         => ERROR 1054 Unknown column 'nosuch' in 'field list'
         CREATE VIEW nosuch.w AS SELECT 1
         => ERROR 1049 Unknown database 'nosuch'
         CREATE VIEW w AS SELECT 1 AS `x `
         => ERROR 1166 Incorrect column name 'x '
         CREATE VIEW w AS SELECT p FROM v
         => ok 0
         CREATE OR REPLACE VIEW v AS SELECT p FROM w
         => ERROR 1146 Table 'test.v' doesn't exist
         ALTER VIEW v AS SELECT * FROM v
         => ERROR 1146 Table 'test.v' doesn't exist
         CREATE VIEW g AS SELECT COUNT(*) FROM t WITH CHECK OPTION
         => ERROR 1368 CHECK OPTION on non-updatable view 'test.g'
         CREATE VIEW g AS SELECT t.a, x FROM t LEFT JOIN u ON t.a = u.a WITH CHECK OPTION
         => ERROR 1368 CHECK OPTION on non-updatable view 'test.g'
         DROP VIEW v
         => ok 0
         CREATE VIEW v AS SELECT p FROM w
         => ERROR 1356 View 'test.w' references…
         PREPARE s FROM 'CREATE VIEW z AS SELECT ? FROM t'
         => ERROR 1351 View's SELECT contains a variable or parameter",
    );
}

#[test]
fn tables_and_views_share_their_names() {
    tables().check(
        "CREATE VIEW v AS SELECT a FROM t
         => ok 0
         CREATE TABLE v (a INT)
         => ERROR 1050 Table 'v' already exists
         CREATE TABLE IF NOT EXISTS v AS SELECT 7 AS a
         => ok 0
         SHOW WARNINGS
         => Note|1050|Table 'v' already exists
         SELECT COUNT(*) FROM t
         => 3
         CREATE TABLE w LIKE v
         => ERROR 1347 'test.v' is not BASE TABLE
         TRUNCATE TABLE v
         => ERROR 1146 Table 'test.v' doesn't exist
         CREATE INDEX i ON v (a)
         => ERROR 1347 'test.v' is not BASE TABLE
         DROP TABLE v
         => ERROR 1051 Unknown table 'test.v'
         DROP VIEW t
         => ERROR 1347 'test.t' is not VIEW
         DROP VIEW nosuch, v, other
         => ERROR 1051 Unknown table 'test.nosuch,test.other'
         DROP VIEW v, v
         => ERROR 1066 Not unique table/alias: 'v'
         SHOW FULL TABLES
         => t|BASE TABLE;u|BASE TABLE;v|VIEW
         SHOW TABLES LIKE 'v%'
         => v
         SHOW TABLE STATUS LIKE 'v'
         => v|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|VIEW
         SHOW INDEX FROM v
         => 
         SHOW CREATE VIEW t
         => ERROR 1347 'test.t' is not VIEW
         SHOW CREATE VIEW nosuch
         => ERROR 1146 Table 'test.nosuch' doesn't exist
         DROP VIEW IF EXISTS nosuch, v, t
         => ok 0
         SHOW WARNINGS
         => Note|1051|Unknown table 'test.nosuch';Warning|1347|'test.t' is not VIEW
         SHOW TABLES
         => t;u
         CREATE VIEW v AS SELECT a FROM t
         => ok 0
         DROP DATABASE test
         => ok 0
         CREATE DATABASE test
         => ok 1
         SHOW TABLES FROM test
         => ",
    );
}

#[test]
fn columns_of_views_have_types_and_defaults() {
    tables().check(
        "CREATE VIEW v AS SELECT a, b, c, 'xy' AS l, COUNT(*) AS n FROM t GROUP BY a
         => ok 0
         DESCRIBE v
         => a|int|NO||NULL|;b|varchar(10)|YES||NULL|;c|int|NO||5|;l|varchar(2)|NO|||;n|bigint|NO||0|
         CREATE VIEW w AS SELECT a + 1 AS p, 1 AS q, LENGTH(b) AS r, CAST(a AS CHAR) AS s, c = 1 AS t FROM t
         => ok 0
         DESCRIBE w
         => p|bigint|NO||0|;q|int|NO||0|;r|bigint|YES||NULL|;s|varchar(11)|YES||NULL|;t|int|NO||0|",
    );
}

#[test]
fn plans_follow_the_views_that_they_used() {
    let mut desk = tables();
    desk.run("CREATE VIEW v AS SELECT a FROM t WHERE a < 3; CREATE VIEW w AS SELECT a FROM v");
    let id = desk.prepare(b"SELECT COUNT(*) FROM w WHERE a > ?").unwrap().id;
    let one = [lats_values::Value::Int(0)];
    assert_eq!(desk.again(id, &one), "2");
    assert_eq!(desk.run("SELECT COUNT(*) FROM w WHERE a > 0"), "2");
    desk.run("ALTER VIEW v AS SELECT a FROM t");
    assert_eq!(desk.again(id, &one), "3");
    assert_eq!(desk.run("SELECT COUNT(*) FROM w WHERE a > 0"), "3");
    desk.run("DROP VIEW v");
    assert!(desk.again(id, &one).starts_with("ERROR 1356 View 'test.w'"));
    desk.run("CREATE TABLE v (a INT); INSERT INTO v VALUES (9)");
    assert_eq!(desk.again(id, &one), "1");
}

#[test]
fn views_in_views_have_a_limit() {
    let mut desk = tables();
    desk.run("CREATE VIEW v0 AS SELECT a FROM t");
    let made = (1..100).map_while(|at| {
        let text = format!("CREATE VIEW v{at} AS SELECT a FROM v{}", at - 1);
        let result = desk.run(&text);
        (result == "ok 0").then_some(()).ok_or(result).ok()
    });
    let made = made.count();
    assert_eq!(made, 60);
    assert_eq!(desk.run(&format!("SELECT COUNT(*) FROM v{made}")), "3");
    // A circle: what was a table becomes a view.
    desk.run("CREATE TABLE x (a INT); CREATE VIEW y AS SELECT a FROM x; CREATE VIEW z AS SELECT a FROM y; DROP TABLE x");
    assert_eq!(
        desk.run("CREATE VIEW x AS SELECT a FROM z"),
        "ERROR 1356 View 'test.z' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to \
         use them"
    );
    // Each view names the one before twice.
    desk.run("CREATE VIEW d0 AS SELECT 1 AS a");
    let made = (1..30).map_while(|at| {
        let before = at - 1;
        let text = format!("CREATE VIEW d{at} AS SELECT x.a FROM d{before} x JOIN d{before} y");
        let result = desk.run(&text);
        (result == "ok 0").then_some(())
    });
    assert_eq!(made.count(), 9);
    assert_eq!(desk.run("SELECT COUNT(*) FROM d9"), "1");
}

#[test]
fn columns_that_double_with_each_view_have_a_limit() {
    let mut desk = tables();
    desk.run("CREATE VIEW e0 AS SELECT a, c, a AS k FROM t");
    for at in 1..40 {
        let before = at - 1;
        desk.run(&format!("CREATE VIEW e{at} AS SELECT a + a AS a, c, k FROM e{before}"));
    }
    assert_eq!(desk.run("SELECT a FROM e20 WHERE k = 1"), "1048576");
    assert_eq!(desk.run("UPDATE e5 SET c = a WHERE k = 1"), "ok 1");
    assert_eq!(desk.run("SELECT c FROM t WHERE a = 1"), "32");
    let refused = "ERROR 1235 This version of LatsDB doesn't yet support 'changes through views whose columns are that long'";
    assert_eq!(desk.run("UPDATE e39 SET c = a WHERE k = 1"), refused);
    assert_eq!(desk.run("UPDATE e39 SET c = 7 WHERE k = 1"), "ok 1");
    desk.run("CREATE VIEW checked AS SELECT k, c FROM e39 WHERE a > 0 WITH CHECK OPTION");
    assert_eq!(desk.run("UPDATE checked SET c = 8"), refused);
}

#[test]
fn a_view_keeps_the_collation_that_it_was_made_with() {
    tables().check(
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin
         => ok 0
         CREATE VIEW v AS SELECT 'a' = 'A' AS x
         => ok 0
         SELECT x, 'a' = 'A' FROM v
         => 0|0
         SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci
         => ok 0
         SELECT x, 'a' = 'A' FROM v
         => 0|1
         SET sql_mode = ''
         => ok 0
         CREATE VIEW g AS SELECT x, a FROM u GROUP BY x
         => ok 0
         SET sql_mode = DEFAULT
         => ok 0
         SELECT x FROM g
         => ERROR 1055 …
         DESCRIBE g
         => x|int|YES||NULL|;a|int|YES||NULL|",
    );
}
