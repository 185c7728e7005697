-- Groups of a subquery of IN or EXISTS that has no aggregate functions. LatsDB: error 1055. Right: (1), (3). Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
SELECT id FROM t WHERE id IN (SELECT a FROM t GROUP BY v) AND id > 0;
