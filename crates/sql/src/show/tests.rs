//! SHOW and DESCRIBE.

use crate::testing::Desk;

#[test]
fn what_there_is_none_of() {
    Desk::new().check(
        "SHOW TRIGGERS
         =>
         SHOW EVENTS FROM nosuch
         => ERROR 1049 Unknown database 'nosuch'
         SHOW PROCEDURE STATUS WHERE Db = 'test'
         =>
         SHOW OPEN TABLES
         =>
         SHOW PROFILES
         =>
         SHOW CREATE VIEW v
         => ERROR 1146 Table 'test.v' doesn't exist
         SHOW GRANTS FOR CURRENT_USER()
         => GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`
         SHOW GRANTS FOR 'mallory'
         => ERROR 1141 There is no such grant defined for user 'mallory' on host '%'",
    );
}

#[test]
fn hidden_columns_are_shown_when_asked_for() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (a INT)");
    desk.check(
        "SHOW EXTENDED COLUMNS FROM t
         => a|int|YES||NULL|;$latsdb_key|bigint unsigned|NO|PRI|NULL|
         SHOW COLUMNS FROM t FROM test
         => a|int|YES||NULL|
         SHOW INDEX FROM t
         =>
         SHOW EXTENDED KEYS FROM t WHERE Seq_in_index = 1
         => t|0|PRIMARY|1|$latsdb_key|A|NULL|NULL|NULL||BTREE|||YES|NULL
         DESCRIBE t 'a%'
         => a|int|YES||NULL|
         SHOW CREATE SCHEMA IF NOT EXISTS test
         => test|CREATE DATABASE /*!32312 IF NOT EXISTS*/ `test` …",
    );
}

#[test]
fn warnings_are_counted_and_kept() {
    Desk::new().check(
        "DROP TABLE IF EXISTS a, b
         => ok 0
         SHOW COUNT(*) WARNINGS
         => 2
         SHOW WARNINGS LIMIT 1, 5
         => Note|1051|Unknown table 'test.b'
         SHOW COUNT(*) ERRORS
         => 0
         DROP TABLE a, b
         => ERROR 1051 Unknown table 'test.a,test.b'
         SHOW ERRORS
         => Error|1051|Unknown table 'test.a,test.b'
         SHOW COUNT(*) ERRORS
         => 1",
    );
}
