//! Transactions, retries, and what errors do to them.

use crate::testing::Desk;
use lats_base::RefCode;

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT PRIMARY KEY, k INT); INSERT INTO t VALUES (1, 1), (2, 2)");
    desk
}

#[test]
fn commit_and_rollback() {
    desk().check(
        "BEGIN
         => ok 0
         UPDATE t SET k = 10 WHERE id = 1
         => ok 1
         SELECT k FROM t WHERE id = 1
         => 10
         ROLLBACK
         => ok 0
         SELECT k FROM t WHERE id = 1
         => 1
         START TRANSACTION
         => ok 0
         INSERT INTO t VALUES (3, 3)
         => ok 1
         INSERT INTO t VALUES (4, 4), (1, 1)
         => ERROR 1062 Duplicate entry '1' for key 't.PRIMARY'
         COMMIT
         => ok 0
         SELECT id FROM t
         => 1;2;3
         SET autocommit = 0
         => ok 0
         DELETE FROM t WHERE id = 3
         => ok 1
         ROLLBACK
         => ok 0
         DELETE FROM t WHERE id = 2
         => ok 1
         SET autocommit = 1
         => ok 0
         ROLLBACK
         => ok 0
         SELECT id FROM t
         => 1;3",
    );
}

#[test]
fn savepoints() {
    desk().check(
        "BEGIN
         => ok 0
         UPDATE t SET k = 5 WHERE id = 1
         => ok 1
         SAVEPOINT a
         => ok 0
         UPDATE t SET k = 6 WHERE id = 1
         => ok 1
         ROLLBACK TO SAVEPOINT a
         => ok 0
         SELECT k FROM t WHERE id = 1
         => 5
         RELEASE SAVEPOINT a
         => ok 0
         ROLLBACK TO a
         => ERROR 1305 SAVEPOINT a does not exist
         COMMIT
         => ok 0
         SELECT k FROM t WHERE id = 1
         => 5
         START TRANSACTION READ ONLY
         => ok 0
         DELETE FROM t
         => ERROR 1792 Cannot execute statement in a READ ONLY transaction.
         ROLLBACK
         => ok 0",
    );
}

#[test]
fn temporary_errors_outside_transactions_are_retried() {
    let mut desk = desk();
    desk.store.inner().refuse.extend([RefCode::NodeFailed, RefCode::StaleView]);
    assert_eq!(desk.run("UPDATE t SET k = k + 1 WHERE id = 1"), "ok 1");
    desk.store.inner().refuse.extend([RefCode::NotServing]);
    assert_eq!(desk.run("SELECT k FROM t WHERE id = 1"), "2");
    desk.store.inner().refuse.extend([RefCode::SchemaVersionOld]);
    assert_eq!(desk.run("SELECT COUNT(*) FROM t"), "2");
    // What may have happened, or has, is never run again.
    desk.store.inner().refuse.extend([RefCode::OutcomeUnknown]);
    assert!(desk.run("DELETE FROM t WHERE id = 1").starts_with("ERROR 50029 It is not known"));
    desk.store.inner().refuse.extend([RefCode::ResultsLost]);
    assert!(desk.run("DELETE FROM t WHERE id = 1").starts_with("ERROR 50038 The result"));
    assert_eq!(desk.run("SELECT COUNT(*) FROM t"), "2");
    desk.store.inner().refuse.extend([RefCode::LockTimeout]);
    assert!(desk.run("DELETE FROM t WHERE id = 1").starts_with("ERROR 1205"));
    desk.store.inner().refuse.extend([RefCode::MemoryFull]);
    assert!(desk.run("INSERT INTO t VALUES (9, 9)").starts_with("ERROR 1114"));
    desk.store.inner().refuse.extend([RefCode::NotServing; 200]);
    assert!(desk.run("SELECT k FROM t WHERE id = 1").starts_with("ERROR 1297"));
}

#[test]
fn errors_within_transactions() {
    let mut desk = desk();
    desk.run("BEGIN; UPDATE t SET k = 9 WHERE id = 1");
    desk.store.inner().refuse.push_back(RefCode::NodeFailed);
    assert!(desk.run("UPDATE t SET k = 9 WHERE id = 2").starts_with("ERROR 1213"));
    assert!(!desk.session.in_transaction());
    assert_eq!(desk.run("SELECT id, k FROM t"), "1|1;2|2");
    desk.run("BEGIN; UPDATE t SET k = 9 WHERE id = 1");
    desk.store.inner().refuse.push_back(RefCode::LockTimeout);
    assert!(desk.run("UPDATE t SET k = 9 WHERE id = 2").starts_with("ERROR 1205"));
    assert_eq!(desk.run("COMMIT"), "ok 0");
    assert_eq!(desk.run("SELECT id, k FROM t"), "1|9;2|2");
    desk.run("BEGIN; UPDATE t SET k = 1 WHERE id = 1");
    assert!(desk.run("UPDATE t SET k = 1 << 40 WHERE id = 2").starts_with("ERROR 1264"));
    assert_eq!(desk.run("COMMIT"), "ok 0");
    assert_eq!(desk.run("SELECT id, k FROM t"), "1|1;2|2");
    // What ends the transaction with another number than 1213 is told once more.
    desk.run("BEGIN; UPDATE t SET k = 9 WHERE id = 1");
    desk.store.inner().refuse.push_back(RefCode::NotServing);
    assert!(desk.run("UPDATE t SET k = 9 WHERE id = 2").starts_with("ERROR 1297"));
    assert!(desk.run("UPDATE t SET k = 9 WHERE id = 2").starts_with("ERROR 1213"));
    assert_eq!(desk.run("SELECT id, k FROM t"), "1|1;2|2");
    // The first statement of a transaction can be run again.
    desk.run("BEGIN");
    desk.store.inner().refuse.push_back(RefCode::NodeFailed);
    assert_eq!(
        desk.run("UPDATE t SET k = 9 WHERE id = 2; COMMIT; SELECT k FROM t WHERE id = 2"),
        "9"
    );
}

#[test]
fn a_statement_of_many_requests_is_undone_as_a_whole() {
    let mut desk = desk();
    let rows = |from: i32, to: i32| {
        let rows: Vec<String> = (from..to).map(|id| format!("({id}, 0)")).collect();
        format!("INSERT INTO t VALUES {}", rows.join(", "))
    };
    desk.run("BEGIN; INSERT INTO t VALUES (7000, 1)");
    // More rows than one request carries; the last is there already.
    assert!(desk.run(&rows(10, 7001)).starts_with("ERROR 1062"));
    desk.store.inner().refuse.extend([RefCode::SchemaVersionOld]);
    assert_eq!(desk.run("UPDATE t SET k = 3 WHERE id = 7000"), "ok 1");
    assert_eq!(desk.run("COMMIT; SELECT id, k FROM t"), "1|1;2|2;7000|3");
    // Outside a transaction as well.
    assert!(desk.run(&rows(10, 7001)).starts_with("ERROR 1062"));
    assert_eq!(desk.run("SELECT COUNT(*) FROM t"), "3");
}

#[test]
fn locking_reads() {
    let mut desk = desk();
    desk.check(
        "SELECT k FROM t WHERE id = 1 FOR UPDATE
         => 1
         BEGIN
         => ok 0
         SELECT k FROM t WHERE id = 1 FOR SHARE
         => 1
         SELECT id FROM t WHERE k > 0 ORDER BY k DESC LIMIT 1 FOR UPDATE
         => 2
         SELECT k FROM t WHERE id = 1 LOCK IN SHARE MODE
         => 1
         COMMIT
         => ok 0
         SELECT k FROM t FOR UPDATE OF x
         => ERROR 3568 Unresolved table name 'x' in locking clause.
         SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
         => ok 0
         BEGIN
         => ok 0
         SELECT k FROM t WHERE id = 1
         => 1
         COMMIT
         => ok 0
         SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
         => ERROR 1235 …
         SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
         => ok 0",
    );
    assert!(desk.store.inner().log.iter().any(|l| l == "execute 1 commit"));
}

#[test]
fn what_waits_for_disks_is_said_by_the_session_at_the_end() {
    let mut desk = desk();
    let waited = |desk: &Desk| -> Vec<String> {
        let mut inner = desk.store.inner();
        inner.log.drain(..).filter(|l| l.ends_with("to disk")).collect()
    };
    desk.run("UPDATE t SET k = 5 WHERE id = 1");
    desk.run("CREATE TABLE u (id INT PRIMARY KEY)");
    assert_eq!(waited(&desk), [""; 0]);
    desk.run("BEGIN; UPDATE t SET k = 6 WHERE id = 1; SET durability = 'disk'; COMMIT");
    assert_eq!(waited(&desk), ["to disk"], "this transaction, and those that follow");
    desk.run("UPDATE t SET k = 7 WHERE id = 1");
    assert_eq!(waited(&desk), ["to disk"]);
    desk.run("CREATE INDEX j ON u (id); DROP TABLE u; CREATE DATABASE d");
    assert_eq!(waited(&desk), ["all to disk"; 3], "definitions wait as rows do");
    desk.run("DROP TABLE missing");
    assert_eq!(waited(&desk), [""; 0], "nothing was changed");
    desk.run("SET durability = 'replicated'; UPDATE t SET k = 8 WHERE id = 1; DROP DATABASE d");
    assert_eq!(waited(&desk), [""; 0]);
}

#[test]
fn what_is_shown_waits_for_disks_as_commits_do() {
    let mut desk = desk();
    let waited = |desk: &Desk| -> Vec<String> {
        let mut inner = desk.store.inner();
        inner.log.drain(..).filter(|l| l.ends_with("to disk")).collect()
    };
    desk.run("SELECT * FROM t; SELECT k FROM t WHERE id = 1");
    assert_eq!(waited(&desk), [""; 0]);
    desk.run("SET durability = 'disk'");
    desk.run("SELECT * FROM t");
    assert_eq!(waited(&desk), ["reads to disk"]);
    desk.run("SELECT k FROM t WHERE id = 1 UNION SELECT 7");
    assert_eq!(waited(&desk), ["reads to disk"], "once, at the end");
    desk.run("BEGIN; SELECT k FROM t WHERE id = 1 FOR UPDATE");
    assert_eq!(waited(&desk), ["all to disk"], "nobody says of which epoch that was");
    desk.run("UPDATE t SET k = 9 WHERE id = 1");
    assert_eq!(waited(&desk), [""; 0], "its commit waits");
    desk.run("COMMIT");
    assert_eq!(waited(&desk), ["to disk"]);
    desk.run("SELECT k INTO @k FROM t WHERE id = 1");
    assert_eq!(waited(&desk), [""; 0], "nobody has seen it");
    desk.run("SELECT @k");
    assert_eq!(waited(&desk), ["reads to disk"]);
    desk.run("SELECT @@version; SHOW VARIABLES LIKE 'durability'");
    assert_eq!(waited(&desk), [""; 0], "no rows are shown");
    desk.run("SET durability = 'replicated'; SELECT k INTO @k FROM t WHERE id = 1 FOR UPDATE");
    assert_eq!(waited(&desk), [""; 0]);
    desk.run("SET durability = 'disk'; SELECT @k");
    assert_eq!(waited(&desk), ["all to disk"]);
    desk.run("SET durability = 'replicated'; SELECT * FROM t");
    assert_eq!(waited(&desk), [""; 0]);
}

#[test]
fn what_waits_for_disks_is_said_by_the_cluster_at_the_beginning() {
    let mut desk = desk();
    desk.check(
        "SET PERSIST durability = 'disk'
         => ok 0
         SELECT @@session.durability, @@global.durability -- this session began before
         => replicated|disk
         SET durability = DEFAULT
         => ok 0
         SELECT @@session.durability, @@global.durability
         => disk|disk
         SET GLOBAL durability = 'replicated'
         => ok 0
         SELECT @@session.durability, @@global.durability -- at this node
         => disk|replicated
         SET @@persist.durability = 'disk'
         => ok 0
         SELECT @@session.durability, @@global.durability -- the newest word counts
         => disk|disk
         SET PERSIST durability = DEFAULT, SESSION durability = DEFAULT
         => ok 0
         SELECT @@session.durability, @@global.durability
         => replicated|replicated
         SET PERSIST durability = 'somewhere'
         => ERROR 1231…
         SET PERSIST autocommit = 0
         => ERROR 1235…
         SET PERSIST durability = 'disk'
         => ok 0
         SET PERSIST TRANSACTION ISOLATION LEVEL READ COMMITTED
         => ERROR 1064…
         SET PERSIST NAMES utf8mb4
         => ERROR 1064…
         SELECT @@global.durability
         => disk",
    );
    let mut inner = desk.store.inner();
    let waits = inner.log.drain(..).filter(|line| line == "all to disk").count();
    assert_eq!(waits, 4, "what is said here is on disk when it is answered");
}

#[test]
fn locked_rows_are_left_out_or_refuse_the_statement() {
    let mut desk = desk();
    desk.run("INSERT INTO t VALUES (3, 3), (4, 4)");
    let mut key = Vec::new();
    let int = lats_values::ColumnType::new(lats_values::TypeKind::Int).not_null();
    lats_values::encode_key_value(&int, &lats_values::Value::Int(2), &mut key);
    desk.store.inner().locked.push(key);
    desk.check(
        "BEGIN
         => ok 0
         SELECT id FROM t FOR UPDATE SKIP LOCKED
         => 1;3;4
         SELECT id FROM t WHERE id IN (2, 3) FOR SHARE SKIP LOCKED
         => 3
         SELECT id FROM t ORDER BY id LIMIT 2 FOR UPDATE OF t SKIP LOCKED
         => 1;3
         SELECT id FROM t ORDER BY id DESC LIMIT 2 OFFSET 1 FOR UPDATE SKIP LOCKED
         => 3;1
         SELECT SUM(k) FROM t WHERE k > 1 FOR UPDATE SKIP LOCKED
         => 7
         SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT
         => ERROR 3572 Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.
         SELECT id FROM t WHERE k > 0 FOR SHARE NOWAIT
         => ERROR 3572 Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.
         SELECT k FROM t WHERE id = 2
         => 2
         UPDATE t SET k = 5 WHERE id = 1
         => ok 1
         COMMIT
         => ok 0
         SELECT k FROM t WHERE id = 1
         => 5",
    );
}

#[test]
fn a_locking_read_locks_no_more_rows_than_it_gives() {
    let mut desk = desk();
    desk.run("INSERT INTO t VALUES (3, 3), (4, 4)");
    let requests = |desk: &Desk| -> Vec<String> {
        let mut inner = desk.store.inner();
        inner.log.drain(..).filter(|l| l.starts_with("execute")).collect()
    };
    requests(&desk);
    assert_eq!(desk.run("SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"), "1");
    assert_eq!(requests(&desk), ["execute 1"]);
    // The order of another index is not sure until the rows are locked.
    assert_eq!(desk.run("SELECT id FROM t ORDER BY k LIMIT 1 FOR UPDATE"), "1");
    assert!(requests(&desk).iter().map(|l| &l[..9]).all(|l| l == "execute 3" || l == "execute 1"));
}

#[test]
fn a_lock_timeout_says_that_the_transaction_lives_on_only_if_it_does() {
    let mut desk = desk();
    desk.run("BEGIN; UPDATE t SET k = 5 WHERE id = 1");
    desk.store.inner().refuse.push_back(RefCode::LockTimeout);
    assert!(desk.run("UPDATE t SET k = 6 WHERE id = 2").starts_with("ERROR 1205 "));
    assert_eq!(desk.run("COMMIT; SELECT k FROM t WHERE id = 1"), "5");
    desk.run("BEGIN; UPDATE t SET k = 7 WHERE id = 1");
    // The statement cannot be taken back.
    desk.store.inner().refuse.extend([RefCode::LockTimeout, RefCode::NodeFailed]);
    assert!(desk.run("UPDATE t SET k = 8 WHERE id = 2").starts_with("ERROR 1213 "));
    assert_eq!(desk.run("SELECT k FROM t WHERE id = 1"), "5", "that was said, and is over");
}
