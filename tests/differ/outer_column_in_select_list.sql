-- An outer column as the only select item of a scalar subquery. LatsDB: NULL, NULL. Right: 0, 5. Mended.
-- MySQL's manual, "Correlated Subqueries": the column takes the value of the row of the outer query.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT);
INSERT INTO t VALUES (1, 0), (2, 5);
SELECT (SELECT t.a LIMIT 1) AS x FROM t ORDER BY t.id;
SELECT (SELECT t.a) AS x FROM t ORDER BY t.id;
SELECT (SELECT t.a FROM t AS u ORDER BY 1 LIMIT 1) AS x FROM t ORDER BY t.id;
-- The same in a condition: LatsDB changes no row. Right: the row with a = 5 only.
UPDATE t SET a = 6 WHERE (SELECT t.a LIMIT 1);
