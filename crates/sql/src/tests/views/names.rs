//! Names of columns: answers are those of MySQL.

use crate::testing::Desk;

#[test]
fn columns_without_names_get_some() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    desk.check(
        "CREATE VIEW v1 AS SELECT 1, 1
         => ok 0
         SHOW CREATE VIEW v1
         => v1|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v1` AS select 1 AS `1`,1 AS `Name_exp_1`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v2 AS SELECT 1, 1, 1, 1
         => ok 0
         SHOW CREATE VIEW v2
         => v2|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v2` AS select 1 AS `1`,1 AS `Name_exp_1`,1 AS `Name_exp_1_1`,1 AS `Name_exp_2_1`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v3 AS SELECT 1 AS x, 'x'
         => ok 0
         SHOW CREATE VIEW v3
         => v3|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v3` AS select 1 AS `x`,'x' AS `Name_exp_x`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v4 AS SELECT 'x', 1 AS x
         => ok 0
         SHOW CREATE VIEW v4
         => v4|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v4` AS select 'x' AS `Name_exp_x`,1 AS `x`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v5 AS SELECT a, 'a' FROM t
         => ok 0
         SHOW CREATE VIEW v5
         => v5|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v5` AS select `t`.`a` AS `a`,'a' AS `Name_exp_a` from `t`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v6 AS SELECT 'a', a FROM t
         => ok 0
         SHOW CREATE VIEW v6
         => v6|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v6` AS select 'a' AS `Name_exp_a`,`t`.`a` AS `a` from `t`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v7 AS SELECT a, a FROM t
         => ERROR 1060 Duplicate column name 'a'
         CREATE VIEW v8 AS SELECT *, a FROM t
         => ERROR 1060 Duplicate column name 'a'
         CREATE VIEW v9 AS SELECT 1 AS p, 2 AS p
         => ERROR 1060 Duplicate column name 'p'
         CREATE VIEW v10 AS SELECT a AS p, b AS p FROM t
         => ERROR 1060 Duplicate column name 'p'
         CREATE VIEW v11 AS SELECT a+1, a + 1, A+1 FROM t
         => ok 0
         SHOW CREATE VIEW v11
         => v11|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v11` AS select (`t`.`a` + 1) AS `a+1`,(`t`.`a` + 1) AS `a + 1`,(`t`.`a` + 1) AS `Name_exp_A+1` from `t`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v12 AS SELECT 1 AS Name_exp_1, 1, 1
         => ok 0
         SHOW CREATE VIEW v12
         => v12|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v12` AS select 1 AS `Name_exp_1`,1 AS `1`,1 AS `Name_exp_1_1`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v13 AS SELECT *, 'b', 'b' FROM t
         => ok 0
         SHOW CREATE VIEW v13
         => v13|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v13` AS select `t`.`a` AS `a`,`t`.`b` AS `b`,'b' AS `Name_exp_b`,'b' AS `Name_exp_1_b` from `t`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v14 AS SELECT 1, 1 UNION SELECT 2, 3
         => ok 0
         SHOW CREATE VIEW v14
         => v14|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v14` AS select 1 AS `1`,1 AS `Name_exp_1` union select 2 AS `2`,3 AS `3`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v15 (p, q) AS SELECT 1, 1
         => ok 0
         SHOW CREATE VIEW v15
         => v15|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v15` (`p`,`q`) AS select 1 AS `1`,1 AS `1`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v16 AS SELECT '', ''
         => ok 0
         SHOW CREATE VIEW v16
         => v16|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v16` AS select '' AS `Name_exp_1`,'' AS `Name_exp_2`|utf8mb4|utf8mb4_0900_ai_ci
         CREATE VIEW v19 AS SELECT (SELECT 1), (SELECT 1), a+b FROM t
         => ok 0
         SHOW CREATE VIEW v19
         => v19|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v19` AS select (select 1) AS `(SELECT 1)`,(select 1) AS `Name_exp_(SELECT 1)`,(`t`.`a` + `t`.`b`) AS `a+b` from `t`|utf8mb4|utf8mb4_0900_ai_ci",
    );
}

#[test]
fn a_name_of_with_may_be_the_name_of_the_view() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1,2),(3,4)");
    desk.check(
        "CREATE VIEW v AS WITH v AS (SELECT a FROM t) SELECT * FROM v
         => ok 0
         SELECT * FROM v ORDER BY 1
         => 1;3
         CREATE OR REPLACE VIEW v AS WITH v AS (SELECT b FROM t) SELECT * FROM v
         => ok 0
         SELECT * FROM v ORDER BY 1
         => 2;4
         SHOW CREATE VIEW v
         => v|CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS with `v` as (select `t`.`b` AS `b` from `t`) select `v`.`b` AS `b` from `v`|utf8mb4|utf8mb4_0900_ai_ci
         ALTER VIEW v AS WITH v AS (SELECT a+b AS c FROM t) SELECT * FROM v
         => ok 0
         SELECT * FROM v ORDER BY 1
         => 3;7
         CREATE OR REPLACE VIEW v AS WITH x AS (SELECT * FROM v) SELECT * FROM x
         => ERROR 1146 Table 'test.v' doesn't exist
         CREATE OR REPLACE VIEW v AS WITH v AS (SELECT * FROM v) SELECT * FROM v
         => ERROR 1146 Table 'test.v' doesn't exist
         CREATE VIEW w AS SELECT * FROM v
         => ok 0
         CREATE OR REPLACE VIEW v AS WITH w AS (SELECT 9 AS z) SELECT * FROM w
         => ok 0
         SELECT * FROM v
         => 9
         CREATE OR REPLACE VIEW v AS SELECT * FROM w
         => ERROR 1146 Table 'test.v' doesn't exist",
    );
}
