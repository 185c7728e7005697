-- A quotient in a set operation has the digits of the common type. LatsDB rounded it before: (1.333300). Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
(SELECT AVG(id) FROM t) UNION (SELECT AVG(d) FROM t);
SELECT 0.5e0 UNION ALL SELECT AVG(id) FROM t;
