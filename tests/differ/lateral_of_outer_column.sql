-- An outer column as the only select item of LATERAL. LatsDB sends a row with fewer columns than announced, which breaks the protocol. Mended.
-- Right: (b).
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT);
INSERT INTO t VALUES (0, NULL);
SELECT 'b' FROM t AS r1 JOIN LATERAL (SELECT r1.a AS x) AS r3;
