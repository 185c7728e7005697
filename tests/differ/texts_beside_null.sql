-- NULL among the texts of a function does not make bytes of its result. LatsDB: another order. Right: a%, then Ab. Mended.
CREATE TABLE t (a VARCHAR(20));
INSERT INTO t VALUES ('Ab'), ('a%');
SELECT ELT(1, a, NULL) AS x FROM t ORDER BY 1 LIMIT 1;
