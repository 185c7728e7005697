-- Open. A derived column has a collation that is as strong as that of a table's column. LatsDB compares by one of the two. Right: error 1267.
CREATE TABLE t (a VARCHAR(20)) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
SELECT 1 FROM (SELECT MAX('b') AS x FROM t) AS r JOIN t ON r.x >= t.a;
