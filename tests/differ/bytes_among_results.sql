-- CASE, IF and COALESCE with bytes among their results give bytes. LatsDB compared the texts among them without case. Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
SELECT CASE 1 WHEN 0 THEN v ELSE 'A' END = 'a', IF(0, v, 'A') = 'a' FROM t;
SELECT id FROM t WHERE IF(0, v, 'A') IN (SELECT 'a');
