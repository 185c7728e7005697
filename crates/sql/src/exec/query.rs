//! Queries that the engine runs: its machine asks for rows of tables, and the session reads them.

mod fetch;

use super::limits;
use crate::error::{self, Failure};
use crate::plan::Columns;
use crate::plan::query::QueryPlan;
use crate::session::{Done, Outcome, STATEMENT_BYTES_MAX, Session, Sink};
use crate::store::Store;
use fetch::Fetcher;
use lats_engine::run::{Machine, Poll, Run};
use lats_values::{EvalContext, SqlError, Value};
use std::sync::Arc;

impl<S: Store> Session<S> {
    /// Runs a query, and sends its rows to the client or to variables.
    pub(crate) async fn run_query<K: Sink>(
        &mut self,
        plan: &QueryPlan,
        externals: &[Value],
        sink: &mut K,
    ) -> Result<Outcome, Failure> {
        let Some(names) = &plan.into else {
            let most = self.variables.changed_number("sql_select_limit");
            let most = most.filter(|_| !plan.is_limited).map(|most| most.max(0).unsigned_abs());
            let count = self.produce_some(plan, externals, sink, (true, most)).await?;
            if !sink.has_begun() {
                sink.begin(&plan.columns);
            }
            self.found_rows = count;
            return Ok(Outcome::Rows);
        };
        let mut only = OnlyRow::default();
        self.produce(plan, externals, &mut only, true).await?;
        let affected_rows = u64::from(only.row.is_some());
        match only.row {
            Some(row) => {
                for (name, value) in names.iter().zip(row) {
                    self.set_user_variable(name, value);
                }
            }
            None => {
                let text = "No data - zero rows fetched, selected, or processed";
                self.add_warnings(vec![error::make(1329, "02000", text)]);
            }
        }
        Ok(Outcome::Done(Done { affected_rows, ..Done::default() }))
    }

    /// Sends the rows of a query to a sink; how many there were. With `ends` nothing comes behind it in its statement.
    pub(crate) async fn produce<K: Sink>(
        &mut self,
        plan: &QueryPlan,
        externals: &[Value],
        sink: &mut K,
        ends: bool,
    ) -> Result<u64, Failure> {
        self.produce_some(plan, externals, sink, (ends, None)).await
    }

    /// The same, with so many rows at most.
    async fn produce_some<K: Sink>(
        &mut self,
        plan: &QueryPlan,
        externals: &[Value],
        sink: &mut K,
        (ends, most): (bool, Option<u64>),
    ) -> Result<u64, Failure> {
        let mut left = most.unwrap_or(u64::MAX);
        // With SQL_CALC_FOUND_ROWS all rows are counted, and only some are sent.
        let (mut skip, mut send) = match &plan.counted {
            Some(limit) => limits(limit, externals)?,
            None => (0, u64::MAX),
        };
        let memory = (STATEMENT_BYTES_MAX, error::out_of_statement_memory as fn() -> SqlError);
        let steps = match self.variables.get("cte_max_recursion_depth") {
            Value::Int(steps) => steps.max(0).unsigned_abs(),
            Value::UInt(steps) => steps,
            _ => 1_000,
        };
        let handle = Arc::clone(&self.client.handle);
        let mut run = Run::new(externals, EvalContext::new(plan.strict), memory, steps);
        let mut machine = Machine::new(&plan.plan);
        let mut fetcher = Fetcher::<S>::new(plan, externals);
        let mut count = 0;
        while left > 0 {
            handle.check()?;
            match machine.step(&mut run)? {
                Poll::Done => break,
                Poll::Yield => tokio::task::yield_now().await,
                Poll::Pending => fetcher.answer(self, &mut run).await?,
                Poll::Rows(rows) => {
                    if !sink.has_begun() {
                        sink.begin(&plan.columns);
                    }
                    for row in rows.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                        count += 1;
                        if skip > 0 {
                            skip -= 1;
                        } else if send > 0 {
                            send -= 1;
                            sink.row(row)?;
                        }
                    }
                    left = left.saturating_sub(rows.len() as u64);
                    sink.flush().await?;
                    // A sink that keeps rows never waits.
                    match run.is_tired() {
                        true => tokio::task::yield_now().await,
                        false => tokio::task::consume_budget().await,
                    }
                }
            }
        }
        drop(machine);
        let warnings = std::mem::take(&mut run.context.warnings);
        drop(run);
        if ends {
            fetcher.finish(self).await?;
        }
        self.add_warnings(warnings);
        Ok(count)
    }
}

/// Keeps the one row of SELECT … INTO.
#[derive(Default)]
pub(crate) struct OnlyRow {
    begun: bool,
    pub(crate) row: Option<Vec<Value>>,
}

impl Sink for OnlyRow {
    fn begin(&mut self, _: &Columns) {
        self.begun = true;
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        if self.row.is_some() {
            return Err(error::make(1172, "42000", "Result consisted of more than one row"));
        }
        self.row = Some(values.to_vec());
        Ok(())
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.begun
    }
}
