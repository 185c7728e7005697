-- Division by 0 in the condition of a change, or by constants in INSERT ... SELECT. LatsDB took them. Right: error 1365 each. Mended.
-- MySQL's manual, ERROR_FOR_DIVISION_BY_ZERO with strict mode.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT);
INSERT INTO t VALUES (1, 0);
UPDATE t SET a = 1 WHERE 1 / a > 5;
UPDATE t SET a = 1 WHERE 1 DIV a;
UPDATE t SET a = 1 WHERE 1 % a;
REPLACE INTO t (id, a) SELECT 1, (5 DIV 0) FROM (SELECT 1 AS x) AS r;
