//! SET: all of its assignments or none.

use crate::testing::Desk;

#[test]
fn one_wrong_value_keeps_the_others_from_being_set() {
    Desk::new().check(
        "SET @a = 1, autocommit = 0, wait_timeout = 'x'
         => ERROR 1232 …
         SELECT @a, @@autocommit
         => NULL|1
         SET @a = 1, @b = @a
         => ok 0
         SELECT @a, @b
         => 1|NULL
         SET nosuch.wait_timeout = 5
         => ERROR 1193 Unknown system variable 'nosuch.wait_timeout'
         SET PASSWORD = 'x'
         => ERROR 1235 …
         SET PERSIST wait_timeout = 5
         => ERROR 1235 This version of LatsDB doesn't yet support 'SET PERSIST wait_timeout'
         SET SESSION @v = 1
         => ERROR 1064 …",
    );
}

#[test]
fn values_in_their_own_spelling() {
    Desk::new().check(
        "SET sql_mode = 32
         => ok 0
         SELECT @@sql_mode
         => ONLY_FULL_GROUP_BY
         SET default_storage_engine = 'nonesuch'
         => ERROR 1286 Unknown storage engine 'nonesuch'
         SET default_storage_engine = innodb
         => ok 0
         SELECT @@default_storage_engine
         => InnoDB
         SET completion_type = 'release'
         => ERROR 1235 …
         SET completion_type = 1
         => ok 0
         START TRANSACTION READ ONLY
         => ok 0
         COMMIT
         => ok 0
         CREATE TABLE t (a INT)
         => ERROR 1792 …
         COMMIT AND NO CHAIN
         => ok 0
         CREATE TABLE t (a INT)
         => ok 0",
    );
}

#[test]
fn transactions_and_names() {
    Desk::new().check(
        "SET @@transaction_isolation = 'REPEATABLE-READ'
         => ok 0
         SELECT @@transaction_isolation
         => READ-COMMITTED
         SET transaction_isolation = 'REPEATABLE-READ'
         => ok 0
         SELECT @@transaction_isolation
         => REPEATABLE-READ
         SET SESSION TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED
         => ok 0
         SELECT @@transaction_isolation, @@transaction_read_only
         => READ-COMMITTED|1
         SET SESSION TRANSACTION READ WRITE
         => ok 0
         BEGIN
         => ok 0
         SET TRANSACTION READ ONLY
         => ERROR 1568 …
         ROLLBACK
         => ok 0
         SET NAMES utf8mb4 COLLATE binary
         => ERROR 1253 COLLATION 'binary' is not valid for CHARACTER SET 'utf8mb4'
         SET NAMES binary
         => ok 0
         SELECT @@character_set_client, @@character_set_connection, @@collation_connection
         => binary|binary|binary
         SET CHARACTER SET DEFAULT
         => ok 0
         SELECT @@character_set_results, @@character_set_connection, @@collation_connection
         => utf8mb4|utf8mb4|utf8mb4_0900_ai_ci",
    );
}
