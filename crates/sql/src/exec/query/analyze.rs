//! EXPLAIN ANALYZE: a query runs, its rows are dropped, and what its steps did is shown.

use super::{Terms, Watch};
use crate::error::Failure;
use crate::plan::explain::actual::{Actual, Read};
use crate::plan::explain::{AnalyzePlan, analyzed};
use crate::plan::query::QueryPlan;
use crate::plan::select::SelectPlan;
use crate::plan::{Columns, Plan};
use crate::session::{Outcome, Session, Sink, Trips};
use crate::store::Store;
use lats_values::{SqlError, Value};

impl<S: Store> Session<S> {
    /// Runs EXPLAIN ANALYZE.
    pub(crate) async fn analyze(
        &mut self,
        plan: &AnalyzePlan,
        externals: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let text = match &plan.plan {
            Plan::Select(select) => self.analyze_select(plan, select, externals).await?,
            Plan::Query(query) => self.analyze_query(plan, query, externals).await?,
            // No other is planned.
            _ => String::new(),
        };
        sink.begin(&plan.columns);
        sink.row(&[Value::text(&text)])?;
        Ok(Outcome::Rows)
    }

    async fn analyze_query(
        &mut self,
        plan: &AnalyzePlan,
        query: &QueryPlan,
        externals: &[Value],
    ) -> Result<String, Failure> {
        let mut watch = Watch::default();
        let mut rows = Dropped::new(self.shared.clock);
        let terms = Terms { ends: true, most: None, watch: Some(&mut watch) };
        self.produce_some(query, externals, &mut rows, terms).await?;
        let reads = watch.reads;
        Ok(watch.profile.map_or_else(String::new, |profile| {
            analyzed(&plan.plan, &Actual::Many { profile: &profile, reads: &reads })
        }))
    }

    async fn analyze_select(
        &mut self,
        plan: &AnalyzePlan,
        select: &SelectPlan,
        externals: &[Value],
    ) -> Result<String, Failure> {
        let clock = self.shared.clock;
        let mut rows = Dropped::new(clock);
        let begin = clock();
        self.trips = Trips { is_timed: true, ..Trips::default() };
        let done = self.select(select, externals, &mut rows).await;
        let trips = std::mem::take(&mut self.trips);
        done?;
        let since = |time: u64| time.saturating_sub(begin);
        let last = since(clock());
        let first = rows.first.map_or(last, since);
        let all = Read { trips: trips.count, requests: 1, rows: rows.count, first, last };
        let (first, last) = trips.times.map_or((0, 0), |(first, last)| (since(first), since(last)));
        let requests = u64::from(trips.count > 0);
        let read = Read { trips: trips.count, requests, rows: trips.rows, first, last };
        Ok(analyzed(&plan.plan, &Actual::One { all, read }))
    }
}

/// Drops rows, and counts them.
struct Dropped {
    clock: fn() -> u64,
    begun: bool,
    count: u64,
    /// When the first one came.
    first: Option<u64>,
}

impl Dropped {
    fn new(clock: fn() -> u64) -> Self {
        Self { clock, begun: false, count: 0, first: None }
    }
}

impl Sink for Dropped {
    fn begin(&mut self, _: &Columns) {
        self.begun = true;
    }

    fn row(&mut self, _: &[Value]) -> Result<(), SqlError> {
        self.count += 1;
        self.first.get_or_insert_with(self.clock);
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.begun
    }
}
