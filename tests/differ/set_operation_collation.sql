-- A set operation of a literal and a column of another collation than the connection's. LatsDB finds no equal texts. Mended.
-- Right: (zz); (b); (zz), (b). The column's collation is stronger than the literal's ("Collation Coercibility in Expressions").
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, s VARCHAR(20)) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT INTO t VALUES (1, 'zz'), (2, 'b');
(SELECT 'zz' AS x) INTERSECT (SELECT s FROM t);
(SELECT s FROM t) EXCEPT (SELECT 'zz' AS x);
(SELECT 'zz' AS x) UNION (SELECT s FROM t);
