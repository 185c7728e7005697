-- A subquery that is run once per row, whose memory is counted for all runs. LatsDB, with enough rows in t: error 1038. Right: no rows. Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY);
INSERT INTO t WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60) SELECT x FROM n;
SELECT r1.id FROM t AS r1 JOIN t AS r2
  ON 1 NOT IN (SELECT AVG(1) OVER (ORDER BY r3.id, r4.id) FROM t AS r3 STRAIGHT_JOIN t AS r4);
