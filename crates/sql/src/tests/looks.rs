//! LOCK-7: a statement that has waited for a transaction sees all of it.

use crate::testing::{Changed, Desk};
use lats_values::{ColumnType, TypeKind, Value, encode_key_value};

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT, INDEX (k), UNIQUE (v));
         INSERT INTO t VALUES (10, 1, 110), (20, 2, 120), (30, 3, 130)",
    );
    desk
}

fn key(id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    let int = ColumnType::new(TypeKind::Int).not_null();
    encode_key_value(&int, &Value::Int(id), &mut key);
    key
}

fn changed(desk: &Desk, id: i64, k: i64) -> Changed {
    let catalog = std::sync::Arc::clone(&desk.store.inner().catalog);
    let mut row = Vec::new();
    let values = [Value::Int(id), Value::Int(k), Value::Int(id + 100)];
    catalog.table("test", "t").unwrap().layout().encode(&values, &mut row).unwrap();
    (key(id), Some(row))
}

/// Somebody has locked a row, changes it to 99, inserts others with 99, and commits when that row is waited for.
fn wait_at(desk: &Desk, id: i64, others: &[i64]) {
    let mut changes = vec![changed(desk, id, 99)];
    changes.extend(others.iter().map(|other| changed(desk, *other, 99)));
    desk.store.inner().waits.insert(key(id), changes);
}

fn after_a_wait(in_transaction: bool, at: i64, others: &[i64], statement: &str) -> String {
    let mut desk = desk();
    if in_transaction {
        desk.run("BEGIN");
    }
    wait_at(&desk, at, others);
    let answer = desk.run(statement);
    assert!(desk.store.inner().waits.is_empty(), "it has waited: {statement}");
    desk.run("COMMIT");
    let rows = desk.run("SELECT id, k FROM t ORDER BY id");
    format!("{answer} => {rows}")
}

fn both(at: i64, others: &[i64], statement: &str) -> String {
    let answers = [false, true].map(|open| after_a_wait(open, at, others, statement));
    assert_eq!(answers[0], answers[1], "{statement}");
    answers[0].clone()
}

#[test]
fn a_locking_read_shows_all_of_a_transaction_that_it_has_waited_for() {
    let all = " => 5|99;10|1;15|99;20|99;30|3";
    let ranges = "SELECT id, k FROM t WHERE id BETWEEN 1 AND 25 ORDER BY id FOR UPDATE";
    assert_eq!(both(20, &[5, 15], ranges), format!("5|99;10|1;15|99;20|99{all}"));
    let reverse = "SELECT id FROM t WHERE id < 25 ORDER BY id DESC LIMIT 3 FOR UPDATE";
    assert_eq!(both(20, &[5, 15], reverse), format!("20;15;10{all}"));
    let few = "SELECT id FROM t WHERE id < 25 ORDER BY id LIMIT 9 FOR SHARE";
    assert_eq!(both(20, &[5, 15], few), format!("5;10;15;20{all}"));
    let keys = "SELECT id, k FROM t WHERE id IN (5, 10, 15, 20) ORDER BY id FOR UPDATE";
    assert_eq!(both(20, &[5, 15], keys), format!("5|99;10|1;15|99;20|99{all}"));
    let sum = "SELECT SUM(k) FROM t WHERE id < 25 FOR UPDATE";
    assert_eq!(both(20, &[5, 15], sum), format!("298{all}"));
    let index = "SELECT id FROM t WHERE k >= 2 ORDER BY id FOR UPDATE";
    assert_eq!(both(20, &[5, 15], index), format!("5;15;20;30{all}"));
    let unique = "SELECT id FROM t WHERE v IN (105, 115, 120) ORDER BY id FOR UPDATE";
    assert_eq!(both(20, &[5, 15], unique), format!("5;15;20{all}"));
    let join =
        "SELECT b.id FROM t a JOIN t b ON b.id = a.id WHERE a.id < 25 ORDER BY b.id FOR UPDATE";
    assert_eq!(both(20, &[5, 15], join), format!("5;10;15;20{all}"));
}

#[test]
fn a_change_is_made_of_all_that_is_covered_after_a_wait() {
    let ok = |rows: &str, counts: &str| format!("ok {counts} => {rows}");
    let update = "UPDATE t SET k = k + 1 WHERE id BETWEEN 1 AND 25";
    assert_eq!(both(20, &[5, 15], update), ok("5|100;10|2;15|100;20|100;30|3", "4"));
    let keys = "UPDATE t SET k = k + 1 WHERE id IN (5, 10, 15, 20)";
    assert_eq!(both(20, &[5, 15], keys), ok("5|100;10|2;15|100;20|100;30|3", "4"));
    let unique = "UPDATE t SET k = k + 1 WHERE v IN (105, 115, 120)";
    assert_eq!(both(20, &[5, 15], unique), ok("5|100;10|1;15|100;20|100;30|3", "3"));
    let moved = "UPDATE t SET id = id + 1000, v = NULL WHERE id BETWEEN 1 AND 2000 AND k <> 3";
    assert_eq!(both(20, &[5, 15], moved), ok("30|3;1005|99;1010|1;1015|99;1020|99", "4"));
    let delete = "DELETE FROM t WHERE id < 25";
    assert_eq!(both(20, &[5, 15], delete), ok("30|3", "4"));
    let limit = "DELETE FROM t WHERE id < 25 ORDER BY id LIMIT 3";
    assert_eq!(both(20, &[5, 15], limit), ok("15|99;30|3", "3"));
    let several = "UPDATE t JOIN (SELECT 1 AS one) s SET k = k + one WHERE id < 25";
    assert_eq!(both(20, &[5, 15], several), ok("5|100;10|2;15|100;20|100;30|3", "4"));
}

#[test]
fn who_waits_in_each_look_is_refused_in_the_end() {
    let mut desk = desk();
    for at in 20..60 {
        wait_at(&desk, at, &[at + 1]);
    }
    let refused = desk.run("BEGIN; SELECT id FROM t WHERE id BETWEEN 15 AND 90 FOR UPDATE");
    assert!(refused.starts_with("ERROR 1205 "), "{refused}");
    assert_eq!(desk.run("UPDATE t SET k = 7 WHERE id = 10; COMMIT"), "ok 0");
    assert_eq!(desk.run("SELECT k FROM t WHERE id = 10"), "7");
    desk.store.inner().waits.clear();
    assert_eq!(desk.run("SELECT COUNT(*) FROM t WHERE id < 15 FOR UPDATE"), "1");
}

#[test]
fn who_need_not_wait_looks_once_and_commits_at_once() {
    let mut desk = desk();
    desk.store.inner().log.clear();
    desk.run("UPDATE t SET k = k + 1 WHERE id IN (10, 20)");
    desk.run("DELETE FROM t WHERE id BETWEEN 25 AND 35");
    desk.run("SELECT k FROM t WHERE id IN (10, 20) FOR UPDATE");
    let log: Vec<String> = desk.store.inner().log.drain(..).collect();
    assert_eq!(log, ["execute 2 commit", "scan 0 x1", "execute 1 commit", "execute 2 commit"]);
}
