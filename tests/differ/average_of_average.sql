-- A derived table's AVG has four digits more than its argument. LatsDB kept more: (1.33333333). Right: (1.33330000). Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY);
INSERT INTO t VALUES (0), (1), (3);
SELECT AVG(DISTINCT r.x) AS y FROM (SELECT AVG(id) AS x FROM t) AS r;
