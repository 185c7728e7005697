-- What is compared with NULL, and what nobody reads, is not computed. LatsDB: error 1365 each. Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
UPDATE t SET a = 9 WHERE NULL < (1 % 0);
UPDATE t SET a = 9 WHERE NOT EXISTS (SELECT 1 % 0);
INSERT INTO t (id) SELECT 9 FROM (SELECT 1 % 0 AS x FROM t) AS r WHERE 1 = 2;
