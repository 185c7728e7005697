-- HAVING names a column of two tables, which only the outer query can mean. LatsDB: error 1052. Right: (1), (3). Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
SELECT t.id FROM t WHERE 1 IN (SELECT 1 FROM t AS r JOIN t AS s ON r.id = s.id HAVING id > 0);
