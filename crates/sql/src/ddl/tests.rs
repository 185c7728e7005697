//! Definitions: what they commit, what they refuse, and with which number.

use crate::testing::Desk;

#[test]
fn a_definition_commits_before_it_is_tried() {
    let definitions = [
        "DROP TABLE nosuch",
        "TRUNCATE nosuch",
        "CREATE INDEX i ON nosuch (a)",
        "CREATE INDEX i ON t (nosuch)",
        "DROP INDEX nosuch ON t",
        "CREATE TABLE u (a INT, a INT)",
        "CREATE TABLE u (a INT, KEY (b))",
        "CREATE TABLE t (a INT)",
        "DROP DATABASE nosuch",
        "DROP VIEW v",
        "CREATE VIEW t AS SELECT 1",
        "CREATE VIEW v AS SELECT nosuch FROM t",
        "CREATE TABLE u AS SELECT nosuch FROM t",
        "RENAME TABLE nosuch TO u",
    ];
    for definition in definitions {
        let mut desk = Desk::new();
        desk.run("CREATE TABLE t (id INT PRIMARY KEY); BEGIN; INSERT INTO t VALUES (1)");
        assert!(desk.run(definition).starts_with("ERROR"), "{definition}");
        assert_eq!(desk.run("ROLLBACK; SELECT id FROM t"), "1", "{definition}");
    }
    // What LatsDB does not have leaves the transaction as it is.
    for refused in ["ALTER TABLE t ADD a INT", "LOCK TABLES t READ"] {
        let mut desk = Desk::new();
        desk.run("CREATE TABLE t (id INT PRIMARY KEY); BEGIN; INSERT INTO t VALUES (1)");
        assert!(desk.run(refused).starts_with("ERROR 1235"), "{refused}");
        assert_eq!(desk.run("ROLLBACK; SELECT id FROM t"), "", "{refused}");
    }
}

#[test]
fn read_only_transactions_define_nothing() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT PRIMARY KEY)");
    for definition in ["CREATE TABLE u (a INT)", "TRUNCATE t", "DROP TABLE t", "DROP DATABASE test"]
    {
        desk.run("START TRANSACTION READ ONLY");
        assert!(desk.run(definition).starts_with("ERROR 1792"), "{definition}");
        assert!(desk.session.in_transaction());
    }
    assert_eq!(desk.run("SHOW TABLES"), "t");
}

#[test]
fn names_that_nothing_can_have() {
    Desk::new().check(
        "CREATE TABLE `p/q` (a INT)
         => ok 0
         SHOW TABLES
         => p/q
         DROP TABLE `p/q`
         => ok 0
         DROP TABLE IF EXISTS ``
         => ERROR 1103 Incorrect table name ''
         CREATE TABLE `t ` (a INT)
         => ERROR 1103 Incorrect table name 't '
         CREATE DATABASE `d `
         => ERROR 1102 Incorrect database name 'd '
         CREATE TABLE t (`` INT)
         => ERROR 1166 Incorrect column name ''
         CREATE TABLE t (a INT, KEY `` (a))
         => ERROR 1280 Incorrect index name ''
         CREATE TABLE t (a INT, KEY `primary` (a))
         => ERROR 1280 Incorrect index name 'primary'
         CREATE TABLE t (`primary` INT, KEY (`primary`))
         => ok 0
         SHOW KEYS FROM t
         => t|1|primary_2|1|primary|A|NULL|NULL|NULL|YES|BTREE|||YES|NULL
         CREATE INDEX `` ON t (`primary`)
         => ERROR 1280 Incorrect index name ''
         DROP TABLE t, test.t
         => ERROR 1066 Not unique table/alias: 't'",
    );
}

#[test]
fn engines_and_options() {
    Desk::new().check(
        "CREATE TABLE a (a INT) ENGINE=nonesuch
         => ERROR 1286 Unknown storage engine 'nonesuch'
         CREATE TABLE a (a INT) ENGINE='myisam' ROW_FORMAT=DYNAMIC, STATS_PERSISTENT=0 AVG_ROW_LENGTH 5 KEY_BLOCK_SIZE=8 COMMENT 'x' ENCRYPTION='n'
         => ok 0
         CREATE TABLE b (a INT) ENGINE=BLACKHOLE
         => ERROR 1235 This version of LatsDB doesn't yet support 'ENGINE=BLACKHOLE'
         CREATE TABLE b (a INT) DATA DIRECTORY='/x'
         => ERROR 1235 This version of LatsDB doesn't yet support 'table option DATA DIRECTORY'
         CREATE TABLE b (a INT) ENCRYPTION='Y'
         => ERROR 1235 …
         CREATE TABLE b (a INT) CHARSET utf8mb4 COLLATE binary
         => ERROR 1253 COLLATION 'binary' is not valid for CHARACTER SET 'utf8mb4'
         CREATE TABLE b (a INT) AUTO_INCREMENT=0x10
         => ok 0
         SET sql_mode = ''
         => ok 0
         CREATE TABLE c (a INT) ENGINE=nonesuch
         => ok 0
         SHOW WARNINGS
         => Warning|1286|Unknown storage engine 'nonesuch';Warning|1266|Using storage engine LatsDB for table 'c'
         CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
         => ERROR 1235 …
         CREATE DATABASE d DEFAULT CHARSET utf8mb4 ENCRYPTION 'N'
         => ok 1",
    );
}

#[test]
fn columns() {
    Desk::new().check(
        "CREATE TABLE t (a INT NULL PRIMARY KEY)
         => ERROR 1171 …
         CREATE TABLE t (a INT NULL, PRIMARY KEY (a))
         => ERROR 1171 …
         CREATE TABLE t (a DATETIME(3) DEFAULT CURRENT_TIMESTAMP)
         => ERROR 1067 Invalid default value for 'a'
         CREATE TABLE t (a DATETIME(3) DEFAULT NOW(3) ON UPDATE NOW())
         => ERROR 1294 Invalid ON UPDATE clause for 'a' column
         CREATE TABLE t (a INT DEFAULT (1 + 1))
         => ERROR 1235 This version of LatsDB doesn't yet support 'expressions as default values'
         CREATE TABLE t (a INT INVISIBLE)
         => ERROR 1235 This version of LatsDB doesn't yet support 'invisible columns'
         CREATE TABLE t (a VARCHAR(5) CHARACTER SET utf8mb4 COLLATE binary)
         => ERROR 1253 …
         CREATE TABLE t (id SERIAL PRIMARY KEY, a INT DEFAULT 0x10 COMMENT 'x' COLUMN_FORMAT FIXED, b DECIMAL(3,1) DEFAULT -1.5, c DATE DEFAULT DATE'2024-01-01', d DATETIME(3) DEFAULT NOW(3) ON UPDATE LOCALTIME(3), e CHAR(3) DEFAULT 'x' COLLATE utf8mb4_bin, f INT NOT NULL NULL)
         => ok 0
         SHOW COLUMNS FROM t
         => id|bigint unsigned|NO|PRI|NULL|auto_increment;a|int|YES||16|;b|decimal(3,1)|YES||-1.5|;c|date|YES||2024-01-01|;d|datetime(3)|YES||CURRENT_TIMESTAMP(3)|DEFAULT_GENERATED on update CURRENT_TIMESTAMP(3);e|char(3)|YES||x|;f|int|YES||NULL|",
    );
}

#[test]
fn keys() {
    Desk::new().check(
        "CREATE TABLE t (a VARCHAR(769) PRIMARY KEY)
         => ERROR 1071 Specified key was too long; max key length is 3072 bytes
         CREATE TABLE t (a VARCHAR(400), b VARCHAR(400), KEY (a, b))
         => ERROR 1071 …
         CREATE TABLE t (a VARCHAR(768) PRIMARY KEY, b VARCHAR(10), c TEXT, d INT, KEY (b(10)))
         => ok 0
         CREATE INDEX i ON t (b(5))
         => ERROR 1235 This version of LatsDB doesn't yet support 'index prefixes and expressions in indexes'
         CREATE INDEX i ON t (b(11))
         => ERROR 1089 …
         CREATE INDEX i ON t (d(2))
         => ERROR 1089 …
         CREATE INDEX i ON t (b(0))
         => ERROR 1391 Key part 'b' length cannot be 0
         CREATE INDEX i ON t (c)
         => ERROR 1170 …
         CREATE INDEX i ON t (d) INVISIBLE
         => ERROR 1235 This version of LatsDB doesn't yet support 'invisible indexes'
         CREATE INDEX i ON t (d) COMMENT 'x' ALGORITHM=INPLACE LOCK=EXCLUSIVE
         => ERROR 1235 This version of LatsDB doesn't yet support 'LOCK=EXCLUSIVE'
         CREATE INDEX i ON t (d) ALGORITHM=MAGIC
         => ERROR 1800 Unknown ALGORITHM 'MAGIC'
         CREATE INDEX i USING HASH ON t (d) COMMENT 'x' ALGORITHM=INPLACE LOCK=NONE
         => ok 0
         DROP INDEX i ON t LOCK=DEFAULT
         => ok 0",
    );
}

#[test]
fn unique_keys_of_partitioned_tables_have_the_partition_key() {
    Desk::new().check(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT, UNIQUE (b)) PARTITION BY KEY (a)
         => ERROR 1503 A UNIQUE INDEX must include all columns in the table's partitioning function…
         CREATE TABLE t (a INT PRIMARY KEY, b INT, UNIQUE (b)) PARTITION BY KEY ()
         => ERROR 1503 …
         CREATE TABLE t (a INT, b INT, UNIQUE (b, a), PRIMARY KEY (a, b)) PARTITION BY KEY (a, a)
         => ERROR 1652 Duplicate partition field name 'a'
         CREATE TABLE t (a INT, b INT, UNIQUE (b, a), PRIMARY KEY (a, b)) PARTITION BY KEY (a)
         => ok 0
         CREATE UNIQUE INDEX i ON t (b)
         => ERROR 1503 …
         CREATE TABLE u (a INT UNIQUE NOT NULL) PARTITION BY KEY ()
         => ok 0
         CREATE TABLE v (a INT PRIMARY KEY) PARTITION BY LINEAR KEY (a)
         => ERROR 1235 This version of LatsDB doesn't yet support 'PARTITION BY LINEAR KEY'
         CREATE TABLE v (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))
         => ERROR 1235 This version of LatsDB doesn't yet support 'PARTITION BY RANGE'",
    );
}

#[test]
fn a_table_like_another() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(5) DEFAULT 'x' UNIQUE, b INT, KEY (b)) COMMENT='c' AUTO_INCREMENT=10
         => ok 0
         INSERT INTO t (b) VALUES (1)
         => ok 1
         CREATE TABLE u LIKE t
         => ok 0
         SELECT COUNT(*) FROM u
         => 0
         INSERT INTO u (b) VALUES (1)
         => ok 1
         INSERT INTO u (b) VALUES (1)
         => ERROR 1062 Duplicate entry 'x' for key 'u.a'
         SELECT id FROM u
         => 1
         CREATE TABLE u LIKE t
         => ERROR 1050 …
         CREATE TABLE IF NOT EXISTS u (LIKE t)
         => ok 0
         CREATE TABLE v LIKE nosuch
         => ERROR 1146 …
         CREATE TABLE nosuch.v LIKE t
         => ERROR 1049 …
         CREATE TABLE v LIKE v
         => ERROR 1066 …",
    );
    let (old, new) = (desk.run("SHOW CREATE TABLE t"), desk.run("SHOW CREATE TABLE u"));
    assert_eq!(old.replace("`t`", "`u`").split_once('|'), Some(("t", new[2..].trim())));
    desk.run("CREATE TABLE plain (a INT); CREATE TABLE copy LIKE plain; INSERT INTO copy VALUES (1), (1)");
    assert_eq!(desk.run("SELECT * FROM copy"), "1;1");
}
