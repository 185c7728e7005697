//! DDL and SHOW.

use crate::testing::Desk;

#[test]
fn databases() {
    Desk::new().check(
        "CREATE DATABASE shop
         => ok 1
         CREATE DATABASE shop
         => ERROR 1007 Can't create database 'shop'; database exists
         CREATE SCHEMA IF NOT EXISTS shop
         => ok 1
         CREATE DATABASE other CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci
         => ok 1
         USE shop
         => ok 0
         CREATE TABLE a (x INT PRIMARY KEY)
         => ok 0
         SHOW TABLES
         => a
         SHOW FULL TABLES FROM shop LIKE 'a%'
         => a|BASE TABLE
         SHOW DATABASES LIKE 'sh%'
         => shop
         USE nowhere
         => ERROR 1049 Unknown database 'nowhere'
         DROP DATABASE shop
         => ok 0
         SELECT DATABASE()
         => NULL
         SHOW TABLES
         => ERROR 1046 No database selected
         SELECT * FROM a
         => ERROR 1046 No database selected
         DROP DATABASE shop
         => ERROR 1008 …
         DROP DATABASE IF EXISTS shop
         => ok 0
         DROP DATABASE latsdb
         => ERROR 1044 Access denied to database 'latsdb'",
    );
}

#[test]
fn every_type() {
    let mut desk = Desk::new();
    let created = desk.run(
        "CREATE TABLE every (a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT(11), e BIGINT UNSIGNED, f FLOAT, g DOUBLE, h DECIMAL(10,2), i CHAR(3), j VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, k BINARY(4), l VARBINARY(9), m TINYTEXT, n TEXT, o MEDIUMTEXT, p LONGTEXT, q TINYBLOB, r BLOB, s MEDIUMBLOB, t LONGBLOB, u DATE, v TIME(2), w DATETIME(6), x TIMESTAMP NULL, y YEAR, z NUMERIC(5), aa BOOL, bb INTEGER, cc DOUBLE PRECISION, PRIMARY KEY (d)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='all'",
    );
    assert_eq!(created, "ok 0");
    let found = desk.run("SHOW COLUMNS FROM every");
    let types: Vec<&str> = found.split(';').filter_map(|row| row.split('|').nth(1)).collect();
    assert_eq!(
        types.join(" "),
        "tinyint smallint unsigned mediumint int bigint unsigned float double decimal(10,2) char(3) varchar(255) binary(4) varbinary(9) tinytext text mediumtext longtext tinyblob blob mediumblob longblob date time(2) datetime(6) timestamp year decimal(5,0) tinyint(1) int double"
    );
    desk.check(
        "INSERT INTO every (d, h, i, j, k, u, v, w, y, aa) VALUES (1, 1.005, 'ab ', 'X', 'ab', '2024-02-29', '12:00:00.126', '2024-01-01 00:00:00.5', 2024, TRUE)
         => ok 1
         SELECT h, i, j, HEX(k), u, v, w, y, aa FROM every WHERE d = 1
         => 1.01|ab|X|61620000|2024-02-29|12:00:00.13|2024-01-01 00:00:00.500000|2024|1
         SELECT d FROM every WHERE j = 'x'
         => 
         SELECT d FROM every WHERE i = 'AB'
         => 1
         SHOW CREATE TABLE nope
         => ERROR 1146 Table 'test.nope' doesn't exist",
    );
    let text = desk.run("SHOW CREATE TABLE every");
    assert!(
        text.contains("`i` char(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL"),
        "{text}"
    );
    let again =
        text.split_once('|').map(|(_, t)| t.replace("`every`", "`copy`")).unwrap_or_default();
    assert_eq!(desk.run(&again), "ok 0", "{again}");
}

#[test]
fn tables() {
    Desk::new().check(
        "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'x', name VARCHAR(10) NOT NULL DEFAULT 'none', at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, INDEX by_name (name, at))
         => ok 0
         CREATE TABLE t (id INT PRIMARY KEY)
         => ERROR 1050 Table 't' already exists
         CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)
         => ok 0
         SHOW WARNINGS
         => Note|1050|Table 't' already exists
         DESCRIBE t
         => id|bigint unsigned|NO|PRI|NULL|auto_increment;name|varchar(10)|NO|MUL|none|;at|timestamp|YES||CURRENT_TIMESTAMP|DEFAULT_GENERATED on update CURRENT_TIMESTAMP
         DESC t name
         => name|varchar(10)|NO|MUL|none|
         SHOW KEYS FROM t WHERE Key_name = 'PRIMARY'
         => t|0|PRIMARY|1|id|A|NULL|NULL|NULL||BTREE|||YES|NULL
         SHOW CREATE TABLE t
         => t|CREATE TABLE `t` (…
         CREATE INDEX k_1 ON t(at)
         => ok 0
         CREATE INDEX k_1 ON t(at)
         => ERROR 1061 Duplicate key name 'k_1'
         CREATE INDEX k_2 ON t(nope)
         => ERROR 1072 Key column 'nope' doesn't exist in table
         INSERT INTO t (name) VALUES ('a')
         => ok 1
         TRUNCATE TABLE t
         => ok 0
         SELECT COUNT(*) FROM t
         => 0
         DROP TABLE t, u
         => ERROR 1051 Unknown table 'test.u'
         DROP TABLE IF EXISTS t, u
         => ok 0
         SELECT * FROM t
         => ERROR 1146 Table 'test.t' doesn't exist
         SELECT * FROM nowhere.t
         => ERROR 1049 Unknown database 'nowhere'
         CREATE TABLE d (a INT, a INT)
         => ERROR 1060 Duplicate column name 'a'
         CREATE TABLE d (a INT PRIMARY KEY, b INT PRIMARY KEY)
         => ERROR 1068 Multiple primary key defined
         CREATE TABLE d (a TEXT PRIMARY KEY)
         => ERROR 1170 …
         CREATE TABLE d (a INT AUTO_INCREMENT, b INT PRIMARY KEY)
         => ERROR 1075 …
         CREATE TABLE d (a INT DEFAULT 'abc')
         => ERROR 1067 Invalid default value for 'a'",
    );
}

#[test]
fn where_sequences_start() {
    Desk::new().check(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, k INT) AUTO_INCREMENT=100
         => ok 0
         INSERT INTO t (k) VALUES (1), (2)
         => ok 2
         SELECT id FROM t
         => 100;101
         INSERT INTO t VALUES (5000, 1)
         => ok 1
         INSERT INTO t (k) VALUES (3)
         => ok 1
         SELECT MAX(id) FROM t
         => 5001",
    );
}

#[test]
fn an_index_made_after_the_load_is_used() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL)");
    desk.run("INSERT INTO t VALUES (1, 5), (2, 6), (3, 5); CREATE INDEX k_1 ON t(k)");
    desk.store.inner().log.clear();
    assert_eq!(desk.run("SELECT id FROM t WHERE k = 5"), "1;3");
    assert_eq!(desk.store.inner().log, ["scan 1 x1"]);
}

#[test]
fn show() {
    Desk::new().check(
        "SHOW VARIABLES LIKE 'sql\\_mode'
         => sql_mode|ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION
         SHOW SESSION VARIABLES WHERE Variable_name IN ('autocommit', 'wait_timeout')
         => autocommit|ON;wait_timeout|28800
         SHOW GLOBAL VARIABLES WHERE Variable_name = 'autocommit' AND Value = 'ON'
         => autocommit|ON
         SHOW ENGINES
         => LatsDB|DEFAULT|Replicated in-memory tables|YES|NO|YES
         SHOW COLLATION LIKE 'utf8mb4_bin'
         => utf8mb4_bin|utf8mb4|46||Yes|1|PAD SPACE
         SHOW CHARACTER SET LIKE 'utf8mb4'
         => utf8mb4|UTF-8 Unicode|utf8mb4_0900_ai_ci|4
         SHOW STATUS LIKE 'Ssl_cipher'
         => Ssl_cipher|
         SHOW WARNINGS LIMIT 5
         => 
         SHOW TABLE STATUS
         => 
         SHOW PLUGINS
         => 
         SHOW MASTER STATUS
         => ERROR 1064 …",
    );
}

#[test]
fn tables_made_of_results_have_mysqls_types() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE m (i INT, n INT NOT NULL, ti TINYINT, f FLOAT, dc DECIMAL(10,2), v VARCHAR(20))");
    for (expression, wanted) in [
        ("1", "int|NO"),
        ("n + 1", "bigint|NO"),
        ("ti + 1", "int|YES"),
        ("i % i", "int|YES"),
        ("i = 1", "int|YES"),
        ("n IS NULL", "int|NO"),
        ("LENGTH(v)", "int|YES"),
        ("COALESCE(ti, ti)", "int|YES"),
        ("IFNULL(ti, ti)", "tinyint|YES"),
        ("MAX(ti)", "tinyint|YES"),
        ("COUNT(*)", "bigint|NO"),
        ("IFNULL(ti, f)", "float|YES"),
        ("MIN(f)", "float|YES"),
        ("dc + 1", "decimal(11,2)|YES"),
        ("dc * 1.5", "decimal(12,3)|YES"),
        ("CAST(i AS CHAR)", "varchar(11)|YES"),
        ("CONCAT(v, 'abc')", "varchar(23)|YES"),
        ("LEFT(v, 3)", "varchar(3)|YES"),
        ("SUBSTRING(v, 2)", "varchar(19)|YES"),
        ("REPEAT(v, 3)", "varchar(60)|YES"),
        ("LPAD(v, 7, 'x')", "varchar(7)|YES"),
        ("HEX(i)", "varchar(16)|YES"),
        ("9223372036854775807", "bigint|NO"),
    ] {
        desk.run("DROP TABLE IF EXISTS made");
        desk.run(&format!("CREATE TABLE made AS SELECT {expression} AS x FROM m"));
        let found = desk.run("DESCRIBE made");
        let cells: Vec<&str> = found.split('|').collect();
        assert_eq!(format!("{}|{}", cells[1], cells[2]), wanted, "{expression}");
    }
}
