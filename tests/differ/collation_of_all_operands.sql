-- Open: IN and CASE compare all their operands in the one collation of them all. LatsDB compares two by two: (1, 1). Right: (0, 3).
CREATE TABLE t (id INT PRIMARY KEY, k VARCHAR(20) COLLATE utf8mb4_bin, g VARCHAR(20) COLLATE utf8mb4_0900_ai_ci);
INSERT INTO t VALUES (1, 'x', 'B');
SELECT g IN ('b', k), CASE g WHEN 'b' THEN 1 WHEN k THEN 2 ELSE 3 END FROM t;
