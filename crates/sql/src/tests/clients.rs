//! Statements as clients and benchmarks send them.

use crate::testing::Desk;
use lats_values::Value;

#[test]
fn connector_j() {
    let mut desk = Desk::new();
    let found = desk.run("/* mysql-connector-j-9.1.0 (Revision: cf2917ea44ae2e43a4514a33771035aa99de73dd) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout");
    assert!(found.starts_with("1|utf8mb4|utf8mb4|utf8mb4|utf8mb4|utf8mb4_0900_ai_ci|"), "{found}");
    desk.check(
        "SET character_set_results = NULL
         => ok 0
         SET autocommit=1
         => ok 0
         SET SESSION TRANSACTION READ WRITE
         => ok 0
         SELECT @@session.transaction_read_only
         => 0
         SELECT @@session.tx_isolation
         => READ-COMMITTED
         SHOW WARNINGS
         => 
         SET sql_mode='STRICT_TRANS_TABLES'
         => ok 0
         SET net_write_timeout=600
         => ok 0
         SELECT @@session.sql_mode
         => STRICT_TRANS_TABLES
         SELECT 1
         => 1",
    );
}

#[test]
fn shells_and_drivers() {
    let mut desk = Desk::new();
    assert_eq!(desk.run("select @@version_comment limit 1"), "LatsDB");
    assert_eq!(desk.columns("select @@version_comment limit 1")[0].name, "@@version_comment");
    desk.check(
        "SET NAMES utf8mb4
         => ok 0
         SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'
         => ok 0
         SET AUTOCOMMIT = 0
         => ok 0
         SET AUTOCOMMIT = 1
         => ok 0
         SELECT VERSION() LIKE '8.4%'
         => 1
         /*!40101 SET NAMES utf8 */
         => ok 0
         /*!40103 SET TIME_ZONE='+00:00' */
         => ok 0
         SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO'
         => ok 0
         SET SQL_MODE=@OLD_SQL_MODE, @@session.foreign_key_checks = 0, unique_checks=OFF
         => ok 0
         SELECT @@foreign_key_checks, @@unique_checks
         => 0|0
         SET @a = 1 + 1, @b := 'x'
         => ok 0
         SELECT @a, @b
         => 2|x
         SET GLOBAL wait_timeout = 100
         => ok 0
         SELECT @@global.wait_timeout, @@wait_timeout
         => 100|28800
         SET SESSION wait_timeout = DEFAULT
         => ok 0
         SET CHARACTER SET utf8mb4
         => ok 0
         SET NAMES latin1
         => ERROR 1235 …
         SET NAMES klingon
         => ERROR 1115 Unknown character set: 'klingon'
         show databases
         => information_schema;latsdb;test
         select connection_id()
         => 7",
    );
}

const SBTEST: &str = "CREATE TABLE sbtest1(
  id INTEGER NOT NULL AUTO_INCREMENT,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
) /*! ENGINE = innodb */ ";

#[test]
fn sysbench() {
    let mut desk = Desk::new();
    assert_eq!(desk.run(SBTEST), "ok 0");
    let rows: Vec<String> = (1..=20).map(|n| format!("({}, 'c{n:02}', 'p{n}')", n % 7)).collect();
    let insert = format!("INSERT INTO sbtest1(k, c, pad) VALUES{}", rows.join(", "));
    assert_eq!(desk.run(&insert), "ok 20");
    desk.check(
        "CREATE INDEX k_1 ON sbtest1(k)
         => ok 0
         SELECT c FROM sbtest1 WHERE id=3
         => c03
         SELECT c FROM sbtest1 WHERE id BETWEEN 3 AND 5
         => c03;c04;c05
         SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 7
         => 21
         SELECT c FROM sbtest1 WHERE id BETWEEN 18 AND 19 ORDER BY c
         => c18;c19
         SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 2 ORDER BY c
         => c01;c02
         UPDATE sbtest1 SET k=k+1 WHERE id=3
         => ok 1
         UPDATE sbtest1 SET c='new' WHERE id=3
         => ok 1
         DELETE FROM sbtest1 WHERE id=3
         => ok 1
         INSERT INTO sbtest1 (id, k, c, pad) VALUES (3, 500, 'back', 'pad')
         => ok 1
         INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, 501, 'auto', 'pad')
         => ok 1
         SELECT id, k, c, pad FROM sbtest1 WHERE k IN (500, 501, 502)
         => 3|500|back|pad;21|501|auto|pad
         SELECT count(k) FROM sbtest1 WHERE k BETWEEN 0 AND 1 OR k BETWEEN 500 AND 501 OR k BETWEEN 900 AND 901
         => 7
         DROP TABLE IF EXISTS sbtest1
         => ok 0",
    );
}

#[test]
fn sysbench_prepared() {
    let mut desk = Desk::new();
    desk.run(SBTEST);
    desk.run("INSERT INTO sbtest1(k, c, pad) VALUES(1, 'a', 'b'),(2, 'b', 'c'); CREATE INDEX k_1 ON sbtest1(k)");
    let int = Value::Int;
    let read = "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    assert_eq!(desk.execute(read, &(1..=10).map(int).collect::<Vec<_>>()), "1|1|a|b;2|2|b|c");
    let ranges = "SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?";
    assert_eq!(desk.execute(ranges, &[int(0), int(1), int(2), int(9)]), "2");
    let begin = desk.prepare(b"BEGIN").unwrap().id;
    let commit = desk.prepare(b"COMMIT").unwrap().id;
    assert_eq!(desk.again(begin, &[]), "ok 0");
    assert_eq!(
        desk.execute("UPDATE sbtest1 SET c=? WHERE id=?", &[Value::text("q"), int(2)]),
        "ok 1"
    );
    assert_eq!(desk.execute("SELECT c FROM sbtest1 WHERE id=?", &[int(2)]), "q");
    assert_eq!(desk.again(commit, &[]), "ok 0");
}

#[test]
fn ycsb() {
    let mut desk = Desk::new();
    desk.check(
        "CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, FIELD0 TEXT, FIELD1 TEXT)
         => ok 0
         INSERT INTO usertable (YCSB_KEY,FIELD0,FIELD1) VALUES('user1','a','b'),('user2','c','d'),('user30','e','f')
         => ok 3
         SELECT * FROM usertable WHERE YCSB_KEY = 'user2'
         => user2|c|d
         UPDATE usertable SET FIELD0='z',FIELD1='y' WHERE YCSB_KEY = 'user2'
         => ok 1
         SELECT * FROM usertable WHERE YCSB_KEY >= 'user2' ORDER BY YCSB_KEY LIMIT 2
         => user2|z|y;user30|e|f
         DELETE FROM usertable WHERE YCSB_KEY = 'user1'
         => ok 1",
    );
    assert!(desk.store.inner().log.iter().any(|l| l == "scan 0 x1"));
}
