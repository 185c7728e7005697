-- A subquery of an outer column in ON. LatsDB: no rows for all three. Right: (1), (1); then (2), (2); then (1), (1). Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT);
INSERT INTO t VALUES (1, 0), (2, 5);
SELECT t.id FROM t JOIN t AS v ON 5 NOT IN (SELECT t.a);
SELECT t.id FROM t JOIN t AS v ON 5 <= ANY (SELECT t.a);
SELECT t.id FROM t JOIN t AS v ON 5 NOT IN (SELECT t.a FROM t AS w);
-- The same in a DELETE of two tables. LatsDB deletes one row. Right: both rows.
DELETE g FROM t AS g JOIN t AS r ON 1 WHERE (0, 1) NOT IN (SELECT g.a, 7);
