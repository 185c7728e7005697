-- A quotient as the value of a subquery keeps its digits. LatsDB: (-1.3333). Right: (-1.333333333). Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
SELECT f - (SELECT AVG(id) FROM t) FROM t;
