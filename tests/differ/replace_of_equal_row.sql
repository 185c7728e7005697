-- REPLACE of a row by an equal one. LatsDB: 2 rows affected, and 3. Right: 1, and 2. Mended.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT);
CREATE TABLE u (id INT NOT NULL PRIMARY KEY);
INSERT INTO t VALUES (1, 1);
INSERT INTO u VALUES (0), (1);
REPLACE INTO t (id, a) VALUES (1, 1);
REPLACE INTO t (id, a) SELECT 2, 1 FROM u;
