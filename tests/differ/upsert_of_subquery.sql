-- An upsert of rows with subqueries. LatsDB: error 1296. Right: 2 rows are affected, and 4. Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
INSERT INTO t (id, a) VALUES (1, (SELECT 7)) ON DUPLICATE KEY UPDATE a = VALUES(a) + t.a;
INSERT INTO t (id, a) SELECT r.id, r.a + 1 FROM t AS r WHERE r.id > 0 ON DUPLICATE KEY UPDATE a = VALUES(a);
SELECT id, a FROM t;
