//! Statements that end early: KILL and limits of time.

use crate::session::{Session, Shared};
use crate::sessions::Why;
use crate::testing::{Desk, client, now};
use std::sync::Arc;
use std::task::{Context, Poll};

#[test]
fn who_kills_sessions() {
    let mut desk = Desk::new();
    desk.check(
        "KILL 4711
         => ERROR 1094 Unknown thread id: 4711
         KILL QUERY 1 + 1
         => ERROR 1094 Unknown thread id: 2
         KILL -1
         => ERROR 1094 Unknown thread id: 18446744073709551615
         KILL NULL
         => ERROR 1094 Unknown thread id: 0
         KILL (SELECT 1)
         => ERROR 1235 …
         KILL QUERY CONNECTION_ID()
         => ERROR 1317 Query execution was interrupted
         SELECT 1
         => 1
         KILL CONNECTION 150994945
         => ok 0
         KILL QUERY 150994946
         => ERROR 1094 Unknown thread id: 150994946
         KILL QUERY 150994947
         => ok 0
         KILL 33554433
         => ERROR 1094 Unknown thread id: 33554433",
    );
    let asked: Vec<String> =
        desk.store.inner().log.iter().filter(|line| line.starts_with("node")).cloned().collect();
    assert_eq!(
        asked,
        [
            "node 9: session 150994945 Kill",
            "node 9: session 150994946 Statement",
            "node 9: session 150994947 Statement",
            "node 9: session 150994947 KillQuery(5)"
        ]
    );
    assert_eq!(
        desk.execute("KILL ?", &[lats_values::Value::Int(5)]),
        "ERROR 1094 Unknown thread id: 5"
    );
}

#[test]
fn a_killed_statement_is_taken_back_and_its_transaction_lives() {
    let mut desk = Desk::new();
    desk.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    desk.run("INSERT INTO t VALUES (1, 10), (2, 20)");
    desk.run("BEGIN");
    desk.run("UPDATE t SET v = 11 WHERE id = 1");
    desk.session.client.handle.end(Why::Connection);
    assert_eq!(desk.run("UPDATE t SET v = v + 1"), "ERROR 1317 Query execution was interrupted");
    assert_eq!(
        desk.run("INSERT INTO t SELECT id + 10, v FROM t"),
        "ERROR 1317 Query execution was interrupted"
    );
    assert_eq!(
        desk.run("SELECT COUNT(*) FROM t a, t b"),
        "ERROR 1317 Query execution was interrupted"
    );
    assert_eq!(desk.run("SHOW WARNINGS"), "Error|1317|Query execution was interrupted");
    desk.session.client.handle = Arc::default();
    assert_eq!(desk.run("SELECT * FROM t"), "1|11;2|20");
    assert_eq!(desk.run("COMMIT"), "ok 0");
    assert_eq!(desk.run("SELECT * FROM t"), "1|11;2|20");
}

/// Runs for minutes if nobody ends it.
const LONG: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
                    SELECT COUNT(*) FROM n a, n b, n c WHERE a.i * b.i + c.i = -1";

#[test]
fn limits_of_time() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shared = Arc::new(Shared::new(crate::testing::Memory::new(), now));
    let mut session = Session::new(shared, client());
    let mut run = |text: &str| {
        let began = tokio::time::Instant::now();
        let mut kept = crate::testing::Kept::default();
        let result = runtime.block_on(session.query(text.as_bytes(), &mut kept));
        let error = result.err().map(crate::error::Failure::into_sql);
        (error.map(|error| error.errno), began.elapsed())
    };
    let (error, took) =
        run(&LONG.replace("SELECT COUNT", "SELECT /*+ MAX_EXECUTION_TIME(30) */ COUNT"));
    // The hint is for the whole statement, and a timer is not exact on a busy machine.
    assert_eq!(error, Some(3024));
    assert!(took >= std::time::Duration::from_millis(30), "{took:?}");
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    assert_eq!(run("SET max_execution_time = 20").0, None);
    assert_eq!(run(LONG).0, Some(3024));
    // Only SELECT is limited.
    let small = LONG.replace("1000", "60");
    assert_eq!(run("SET max_execution_time = 1").0, None);
    assert_eq!(run(&format!("SET @a = ({small})")).0, None);
    assert_eq!(run("SET max_execution_time = 0").0, None);
    assert_eq!(run(&small).0, None);
}

/// Takes rows, notes how many come at once, and may end the statement when the first ones have left.
struct Leaving {
    begun: bool,
    rows: usize,
    at_once: usize,
    most: usize,
    ends: Option<Arc<crate::sessions::Handle>>,
}

impl crate::session::Sink for Leaving {
    fn begin(&mut self, _: &crate::plan::Columns) {
        self.begun = true;
    }

    fn row(&mut self, _: &[lats_values::Value]) -> Result<(), lats_values::SqlError> {
        (self.rows, self.at_once) = (self.rows + 1, self.at_once + 1);
        self.most = self.most.max(self.at_once);
        Ok(())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.at_once > 0
            && let Some(handle) = self.ends.take()
        {
            handle.end(Why::Query);
        }
        self.at_once = 0;
        Poll::Ready(Ok(()))
    }

    fn has_begun(&self) -> bool {
        self.begun
    }
}

#[test]
fn rows_of_one_table_leave_in_parts() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shared = Arc::new(Shared::new(crate::testing::Memory::new(), now));
    let mut session = Session::new(shared, client());
    let mut run = |text: &str, ends: bool| {
        let ends = ends.then(|| Arc::clone(&session.client.handle));
        let mut sink = Leaving { begun: false, rows: 0, at_once: 0, most: 0, ends };
        let result = runtime.block_on(session.query(text.as_bytes(), &mut sink));
        (result.err().map(|error| error.into_sql().errno), sink.rows, sink.most)
    };
    for text in [
        "CREATE DATABASE IF NOT EXISTS test",
        "CREATE TABLE test.t (id INT PRIMARY KEY, v INT)",
        "SET cte_max_recursion_depth = 10000",
        "INSERT INTO test.t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i, -i FROM n",
    ] {
        assert_eq!(run(text, false).0, None, "{text}");
    }
    for (query, rows) in [
        ("SELECT id FROM test.t ORDER BY v", 5_000),
        ("SELECT id FROM test.t ORDER BY v + 1 DESC", 5_000),
        ("SELECT v, COUNT(*) FROM test.t GROUP BY v", 5_000),
        ("SELECT v, COUNT(*) FROM test.t GROUP BY v ORDER BY COUNT(*), v DESC LIMIT 3000", 3_000),
        ("SELECT id FROM test.t ORDER BY v LIMIT 2000 OFFSET 2000", 2_000),
    ] {
        let (error, found, most) = run(query, false);
        assert_eq!((error, found), (None, rows), "{query}");
        assert!(most <= 1_024, "{query}: {most}");
        let (error, found, _) = run(query, true);
        assert_eq!(error, Some(1317), "{query}");
        assert!(found <= 1_024, "{query}: {found}");
    }
}

#[test]
fn no_more_is_kept_of_an_order_than_is_asked_for() {
    let mut desk = Desk::new();
    desk.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT);
         SET cte_max_recursion_depth = 50000;
         INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
             SELECT i, i * 7919 % 40009 FROM n",
    );
    desk.session.shared.memory().limit(6 << 20);
    let all = desk.run("SELECT v FROM t ORDER BY v");
    assert!(all.starts_with("ERROR 1038"), "{}", &all[..100]);
    for (order, first) in [("v", "1;2;3;"), ("v + 1 DESC", "40008;40007;")] {
        let found = desk.run(&format!("SELECT v FROM t ORDER BY {order} LIMIT 9000"));
        assert!(found.starts_with(first), "{}", &found[..60]);
        assert_eq!(found.split(';').count(), 9_000);
        let found = desk.run(&format!("SELECT v FROM t ORDER BY {order} LIMIT 100 OFFSET 11000"));
        assert_eq!(found.split(';').count(), 100);
        assert!(!found.starts_with("ERROR"), "{found}");
    }
}
