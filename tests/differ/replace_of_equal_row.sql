-- REPLACE of a row by an equal one. LatsDB: 2 rows affected, and 3. MariaDB: 1, and 2; MySQL's server does not count a row
-- that stays the same as deleted, as MariaDB's does not.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT);
CREATE TABLE u (id INT NOT NULL PRIMARY KEY);
INSERT INTO t VALUES (1, 1);
INSERT INTO u VALUES (0), (1);
REPLACE INTO t (id, a) VALUES (1, 1);
REPLACE INTO t (id, a) SELECT 2, 1 FROM u;
