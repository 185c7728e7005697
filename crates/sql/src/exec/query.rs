//! Queries that the engine runs: its machine asks for rows of tables, and the session reads them.

mod analyze;
mod fetch;
mod together;

use super::limits;
use super::look::LOOKS_MAX;
use crate::error::{self, Failure};
use crate::plan::Columns;
use crate::plan::explain::actual::Read;
use crate::plan::query::QueryPlan;
use crate::session::{Done, Outcome, Session, Share, Sink};
use crate::store::Store;
use fetch::Fetcher;
use lats_client::api::LockMode;
use lats_engine::run::{LEFT_BYTES_MIN, Leftovers, Machine, Poll, Profile, Run};
use lats_values::{SqlError, Value};
use std::sync::Arc;

/// Rows that were kept and are sent at once.
const ROWS_PER_FLUSH: usize = 1_024;

impl<S: Store> Session<S> {
    /// Runs a query, and sends its rows to the client or to variables.
    pub(crate) async fn run_query(
        &mut self,
        plan: &QueryPlan,
        externals: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let Some(names) = &plan.into else {
            let most = self.variables.changed_number("sql_select_limit");
            let most = most.filter(|_| !plan.is_limited).map(|most| most.max(0).unsigned_abs());
            let count = self
                .produce_some(plan, externals, sink, Terms { ends: true, most, watch: None })
                .await?;
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
                    self.set_user_variable(name, value)?;
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
    pub(crate) async fn produce(
        &mut self,
        plan: &QueryPlan,
        externals: &[Value],
        sink: &mut dyn Sink,
        ends: bool,
    ) -> Result<u64, Failure> {
        self.produce_some(plan, externals, sink, Terms { ends, ..Terms::default() }).await
    }

    /// The same, on terms. LOCK-7: a query that has waited for a lock runs again, with the locks that it has, until it waits
    /// for none; nobody sees the rows of the runs before.
    async fn produce_some(
        &mut self,
        plan: &QueryPlan,
        externals: &[Value],
        sink: &mut dyn Sink,
        mut terms: Terms<'_>,
    ) -> Result<u64, Failure> {
        let is_locking = plan.sources.iter().any(|source| source.lock.0 != LockMode::Committed);
        if !is_locking && !self.reads_repeatably() {
            let terms = Terms { most: terms.most, ends: terms.ends, watch: terms.watch };
            return Ok(self.produce_once(plan, externals, sink, terms).await?.0);
        }
        for _ in 0..LOOKS_MAX {
            let mut kept = Kept::new(self.share());
            let watch = terms.watch.as_deref_mut();
            let once = Terms { ends: terms.ends, most: terms.most, watch };
            let (count, waited) = self.produce_once(plan, externals, &mut kept, once).await?;
            if waited {
                continue;
            }
            for rows in kept.rows.chunks(ROWS_PER_FLUSH) {
                if !sink.has_begun() {
                    sink.begin(&plan.columns);
                }
                rows.iter().try_for_each(|row| sink.row(row))?;
                self.let_out(sink).await?;
            }
            return Ok(count);
        }
        Err(error::looked_too_often(LOOKS_MAX).into())
    }

    /// Runs a query once; how many rows there were, and whether it has waited for a lock and has to run again.
    async fn produce_once(
        &mut self,
        plan: &QueryPlan,
        externals: &[Value],
        sink: &mut dyn Sink,
        terms: Terms<'_>,
    ) -> Result<(u64, bool), Failure> {
        let (budget, steps) = (self.shared.memory().budget(), self.recursion_max());
        let mut run = Run::new(externals, self.computing(plan.strict), budget, steps);
        // Who locks what is read does not read more than is asked for, and := has an order.
        let locks = plan.sources.iter().any(|source| source.lock.0 != LockMode::Committed);
        run.switches = !locks && !self.reads_repeatably() && !plan.uses_variables;
        run.one_by_one = plan.uses_variables;
        let mut machine = Machine::new(&plan.plan);
        let mut fetcher = Fetcher::<S>::new(plan, externals);
        if terms.watch.is_some() {
            run.profile = Some(Profile::new(&plan.plan, self.shared.clock));
            fetcher.count_reads(self.shared.clock);
        }
        let most = terms.most.unwrap_or(u64::MAX);
        let sent = self.send(plan, (&mut machine, &mut run, &mut fetcher), sink, most).await;
        if sent.is_ok() && fetcher.has_waited() {
            machine.close(&mut run);
            drop(machine);
            self.leave(run.leftovers());
            return Ok((0, true));
        }
        // Steps that nobody has asked to their end have ended, too.
        machine.close(&mut run);
        drop(machine);
        let assigned = run.context.take_assigned();
        let warnings = std::mem::take(&mut run.context.warnings);
        if let Some(watch) = terms.watch {
            (watch.profile, watch.reads) = (run.profile.take(), fetcher.counted());
        }
        self.leave(run.leftovers());
        // What was assigned stays, whatever becomes of the statement.
        let mut kept = Ok(());
        for (name, value) in assigned {
            kept = kept.and(self.set_user_variable(&name, value));
        }
        let count = sent?;
        kept?;
        if terms.ends {
            fetcher.finish(self).await?;
        }
        self.add_warnings(warnings);
        Ok((count, false))
    }

    fn leave(&self, left: Leftovers) {
        if !left.is_small() {
            super::drop_elsewhere(left, self.shared.memory().meter().report);
        }
    }

    /// Steps a machine until it has no more rows, or so many are there; how many there were.
    async fn send<'p>(
        &mut self,
        plan: &'p QueryPlan,
        (machine, run, fetcher): (&mut Machine<'p>, &mut Run<'_>, &mut Fetcher<'p, S>),
        sink: &mut dyn Sink,
        most: u64,
    ) -> Result<u64, Failure> {
        // With SQL_CALC_FOUND_ROWS all rows are counted, and only some are sent.
        let (mut skip, mut send) = match &plan.counted {
            Some(limit) => limits(limit, run.externals)?,
            None => (0, u64::MAX),
        };
        let handle = Arc::clone(&self.client.handle);
        let (mut left, mut count) = (most, 0);
        while left > 0 {
            handle.check()?;
            match machine.step(run)? {
                Poll::Done => break,
                Poll::Yield => tokio::task::yield_now().await,
                Poll::Pending => fetcher.answer(self, run).await?,
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
                    self.let_out(sink).await?;
                    // A sink that keeps rows never waits.
                    match run.is_tired() {
                        true => tokio::task::yield_now().await,
                        false => tokio::task::consume_budget().await,
                    }
                }
            }
        }
        Ok(count)
    }
}

impl<S: Store> Session<S> {
    fn recursion_max(&self) -> u64 {
        match self.variables.changed("cte_max_recursion_depth") {
            Some(Value::Int(steps)) => steps.max(&0).unsigned_abs(),
            Some(Value::UInt(steps)) => *steps,
            _ => 1_000,
        }
    }
}

/// How rows of a query are wanted.
#[derive(Default)]
struct Terms<'w> {
    /// Nothing comes behind it in its statement.
    ends: bool,
    /// So many rows at most.
    most: Option<u64>,
    /// Who wants to know what the steps did.
    watch: Option<&'w mut Watch>,
}

/// What the steps of a query did.
#[derive(Default)]
struct Watch {
    profile: Option<Profile>,
    reads: Vec<Read>,
}

/// Keeps the rows of a query.
pub(super) struct Kept {
    begun: bool,
    pub(super) rows: Vec<Vec<Value>>,
    bytes: usize,
    share: Share,
}

impl Kept {
    pub(super) fn new(share: Share) -> Self {
        Self { begun: false, rows: Vec::new(), bytes: 0, share }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.bytes >= LEFT_BYTES_MIN {
            let (share, report) = self.share.leave();
            super::drop_elsewhere((std::mem::take(&mut self.rows), share), report);
        }
    }
}

impl Sink for Kept {
    fn begin(&mut self, _: &Columns) {
        self.begun = true;
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        self.bytes += super::select::row_bytes(values);
        self.share.cover(self.bytes)?;
        self.rows.push(values.to_vec());
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.begun
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

    fn has_begun(&self) -> bool {
        self.begun
    }
}
