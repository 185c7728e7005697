//! How long a statement may take: `max_execution_time`, and the hint of the same name.

use super::{Given, Outcome, RETRY_TOTAL, Session, Sink};
use crate::error::Failure;
use crate::plan::{Plan, Prepared};
use crate::sessions::Why;
use crate::store::Store;
use crate::syntax::Context;
use lats_mysql_syntax::Statement as Syntax;
use lats_mysql_syntax::tree::{Body, Hint};
use lats_values::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl<S: Store> Session<S> {
    /// As in MySQL, `interactive_timeout` is the first `wait_timeout` of who says that a person types.
    pub(super) fn begin_to_rest(&mut self) {
        if self.client.interactive {
            self.variables.wait_as_interactive();
        }
        self.limit_rest();
    }

    /// `wait_timeout` may have changed.
    pub(super) fn limit_rest(&self) {
        let seconds = match self.variables.get("wait_timeout") {
            Value::Int(seconds) => seconds.max(1).unsigned_abs(),
            Value::UInt(seconds) => seconds.max(1),
            _ => 0,
        };
        self.client.handle.limit_rest(seconds);
    }

    /// True if a statement that has failed is not to be run again, or was often enough. `begun` is when it was run last, and
    /// `since` since when it is repeated.
    pub(super) fn is_repeated_enough(
        &self,
        failure: &Failure,
        begun: Instant,
        since: &mut Option<Instant>,
    ) -> bool {
        // Who could not serve has made the statement wait already; but one that has worked for long is run once more.
        let now = Instant::now();
        let latest = now.checked_sub(RETRY_TOTAL / 2).unwrap_or(now);
        let waits_since = || match failure.is_not_serving() {
            true => begun.max(latest),
            false => now,
        };
        since.get_or_insert_with(waits_since).elapsed() >= RETRY_TOTAL
            || self.client.handle.why().is_some()
            || self.shared.store.cut_off().is_some()
    }

    /// When the statement is to end, if its time is limited.
    fn due(&self, prepared: &Prepared) -> Option<Instant> {
        // As in MySQL, only what SELECT computes is limited.
        if !matches!(prepared.plan, Plan::Select(_) | Plan::Query(_)) {
            return None;
        }
        let milliseconds = match prepared.time_limit_ms {
            0 => match self.variables.changed("max_execution_time") {
                Some(Value::Int(number)) => number.max(&0).unsigned_abs(),
                Some(Value::UInt(number)) => *number,
                _ => 0,
            },
            limit => u64::from(limit),
        };
        let limit = Duration::from_millis(milliseconds);
        (milliseconds > 0).then(|| self.began.checked_add(limit)).flatten()
    }

    /// Runs a statement until it is through, or its time is.
    pub(super) async fn run_in_time(
        &mut self,
        prepared: &Prepared,
        given: Given<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let Some(due) = self.due(prepared) else {
            return self.run_prepared(prepared, given, sink).await;
        };
        let handle = Arc::clone(&self.client.handle);
        let run = self.run_prepared(prepared, given, sink);
        tokio::pin!(run);
        tokio::select! {
            biased;
            done = &mut run => done,
            () = tokio::time::sleep_until(due) => {
                handle.end(Why::Time);
                run.await
            }
        }
    }
}

/// The number of the hint `MAX_EXECUTION_TIME` of a query's first SELECT; 0 if it has none.
pub(super) fn hinted_limit(context: &Context<'_>) -> u32 {
    let Syntax::Query(id) = &context.parsed.statement else { return 0 };
    let tree = context.tree();
    let mut body = tree.body(tree.query(*id).body);
    let select = loop {
        body = match body {
            Body::Select(select) => break select,
            Body::Set { left, .. } => tree.body(*left),
            Body::Nested(query) => tree.body(tree.query(*query).body),
            Body::Values(_) | Body::Table(_) => return 0,
        };
    };
    let text = |text| String::from_utf8_lossy(tree.text(text)).into_owned();
    let is_limit = |hint: &&Hint| text(hint.name).eq_ignore_ascii_case("MAX_EXECUTION_TIME");
    // What is no number is no limit.
    let hint = select.hints.iter().find(is_limit);
    hint.and_then(|hint| text(hint.arguments).trim().parse().ok()).unwrap_or(0)
}
