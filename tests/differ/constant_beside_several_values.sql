-- A constant in BETWEEN or IN is compared in the collation of the columns beside it. LatsDB took the other constants' own. Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(20) COLLATE utf8mb4_bin, v VARBINARY(8), d DECIMAL(8,2), f DOUBLE);
INSERT INTO t VALUES (0, 0, 'Ab', 'A', NULL, 0), (1, 1, 'a', 'x', NULL, 0), (3, 3, 'B', NULL, NULL, 0);
SELECT id FROM t WHERE 'Ab' BETWEEN b AND 'a' AND id = 0;
SELECT 'A' IN ('a', v), 'A' IN ('a', b) FROM t;
