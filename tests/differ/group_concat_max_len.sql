-- group_concat_max_len is taken, and has no effect. LatsDB: (1024). Right: (3001). Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, s VARCHAR(20));
INSERT INTO t VALUES (1, 'zz'), (2, 'b');
SET group_concat_max_len = 20000;
SELECT LENGTH(GROUP_CONCAT(REPEAT(s, 1000))) FROM t;
