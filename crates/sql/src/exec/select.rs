//! SELECT.

mod collect;
mod lock;
mod order;

use super::{Chunks, limits, operation};
use crate::access::{Outside, Target};
use crate::error::Failure;
use crate::expr::with_externals;
use crate::plan::select::{SelectPlan, encode_program};
use crate::session::{Outcome, Session, Sink};
use crate::store::Store;
use crate::table::Table;
use collect::Collector;
pub(crate) use collect::row_bytes;
use lats_base::IndexId;
use lats_client::api::{AsOf, KeyRange, LockMode, RowOp, RowOpKind, Scan, StoreError};
use lats_values::{Expr, Program, SqlError, Value};
use lock::{InOrder, Locking};
pub(crate) use order::compare_rows;
use std::sync::Arc;

impl<S: Store> Session<S> {
    pub(crate) async fn select(
        &mut self,
        plan: &SelectPlan,
        externals: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let (offset, count) = limits(&plan.limit, externals)?;
        let unlimited = self
            .variables
            .changed_number("sql_select_limit")
            .filter(|_| plan.limit.count.is_none());
        let count = unlimited.map_or(count, |most| most.max(0).unsigned_abs());
        let (computing, share) = (self.computing(false), self.share());
        let mut collector = Collector::new(plan, externals, (offset, count), (computing, share));
        match &plan.table {
            None => {
                if collector.dummy_matches()? {
                    collector.push(&[])?;
                }
            }
            Some(_) if count == 0 => {}
            Some(table) => {
                let lock = match plan.lock {
                    LockMode::Committed if self.reads_repeatably() => LockMode::Shared,
                    lock => lock,
                };
                self.read_table(plan, table, lock, &mut collector, sink).await?;
            }
        }
        loop {
            let is_over = collector.finish_some()?;
            send(&mut collector, sink)?;
            if is_over {
                break;
            }
            self.let_out(sink).await?;
            self.let_others_work().await?;
        }
        begin(&collector, sink);
        self.found_rows = collector.given();
        self.trips.rows = collector.taken();
        self.add_warnings(collector.warnings());
        Ok(Outcome::Rows)
    }

    /// Pauses, unless the statement is to end.
    async fn let_others_work(&mut self) -> Result<(), StoreError> {
        self.client.handle.check()?;
        tokio::task::yield_now().await;
        Ok(())
    }

    pub(crate) fn add_warnings(&mut self, warnings: Vec<SqlError>) {
        for warning in warnings {
            lats_values::error::push_warning(&mut self.warnings, warning);
        }
    }

    async fn read_table(
        &mut self,
        plan: &SelectPlan,
        table: &Table,
        lock: LockMode,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let resolved = plan.access.resolve(table, Outside::constants(collector.externals()))?;
        let filter = resolved.filter;
        if !resolved.exact && plan.access.fixed > 0 {
            collector.must_sort();
        }
        let (keys, filter) = match resolved.target {
            Target::Keys(keys) => (keys, filter),
            Target::UniqueKeys(keys) if lock == LockMode::Committed => {
                let program = self.program(plan, filter, collector);
                return self
                    .read_unique((table, plan.access.index), keys, &program, collector)
                    .await;
            }
            Target::UniqueKeys(keys) => {
                let program = self.program(plan, plan.access.filter.as_ref(), collector);
                let filter = filter.map(|f| with_externals(f, collector.externals()));
                let ranges = crate::access::key_ranges(&keys);
                let scan = found_by(plan, table, ranges, filter);
                let mut locking = Locking::new(plan, table, (lock, program), self.share());
                return self.lock_unique(&mut locking, keys, scan, collector, sink).await;
            }
            Target::Ranges(ranges) if lock == LockMode::Committed => {
                let program = self.program(plan, filter, collector);
                let mut scan = scan(plan, table, ranges, program);
                scan.limit = collector.scan_limit();
                return self.read_scan(scan, collector, sink).await;
            }
            Target::Ranges(ranges) => {
                let filter = filter.map(|f| with_externals(f, collector.externals()));
                let scan = found_by(plan, table, ranges, filter);
                // A row may have changed since it was found: the whole condition is checked again.
                let program = self.program(plan, plan.access.filter.as_ref(), collector);
                let mut locking = Locking::new(plan, table, (lock, program), self.share());
                if plan.ordered_scan && !collector.buffers() {
                    locking.in_order = Some(InOrder::default());
                }
                self.lock_ranges(&mut locking, scan, collector, sink).await?;
                return self.finish_statement().await;
            }
        };
        let program = self.program(plan, filter, collector);
        match lock {
            LockMode::Committed => {
                let reads = reads(plan, table, lock, &program, keys);
                self.read_keys(reads, collector, sink).await
            }
            _ => self.lock_keys((plan, table), (lock, program), keys, collector, sink).await,
        }
    }

    fn program(
        &self,
        plan: &SelectPlan,
        filter: Option<&Expr>,
        collector: &Collector<'_>,
    ) -> Arc<[u8]> {
        match &plan.program {
            Some(program) if filter == plan.access.residual.as_ref() => program.clone(),
            _ => encode_program(
                filter.map(|f| with_externals(f, collector.externals())),
                plan.projection.clone(),
            )
            .into(),
        }
    }

    /// Rows by keys of a unique index: found whole, so the rest of the condition is checked here.
    async fn read_unique(
        &mut self,
        (table, index): (&Table, IndexId),
        keys: Vec<Vec<u8>>,
        program: &[u8],
        collector: &mut Collector<'_>,
    ) -> Result<(), Failure> {
        let program = match program {
            [] => Program::default(),
            bytes => Program::decode(bytes, table.layout.columns()).map_err(StoreError::from)?,
        };
        for part in keys.chunks(super::unique::LOOKUPS_MAX) {
            for found in self.find_unique(table, index, part).await?.into_iter().flatten() {
                if !program.matches(&table.layout, &found.row)? {
                    continue;
                }
                let mut projected = Vec::new();
                program.project(&table.layout, &found.row, &mut projected);
                if collector.push(&projected)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn read_keys(
        &mut self,
        reads: Vec<RowOp>,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let mut chunks = Chunks::new(reads);
        while let Some((chunk, last)) = chunks.next_chunk() {
            let results = self.read_rows(chunk).await?;
            for row in results.into_iter().filter_map(|r| r.row) {
                if collector.push(&row)? {
                    return Ok(());
                }
                if collector.is_tired() {
                    self.let_others_work().await?;
                }
            }
            if !last {
                send(collector, sink)?;
                self.let_out(sink).await?;
            }
        }
        Ok(())
    }

    async fn read_scan(
        &mut self,
        scan: Scan,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        if scan.ranges.is_empty() {
            return Ok(());
        }
        let mut running = self.start_scan(scan);
        while let Some(rows) = running.next().await? {
            self.note_trip();
            for row in rows.iter() {
                if collector.push(row.row)? {
                    return Ok(());
                }
                if collector.is_tired() {
                    self.let_others_work().await?;
                }
            }
            if !collector.buffers() {
                send(collector, sink)?;
                self.let_out(sink).await?;
            }
        }
        Ok(())
    }
}

/// Reads of rows by key, with the lock that the plan asks for.
fn reads(
    plan: &SelectPlan,
    table: &Table,
    lock: LockMode,
    program: &Arc<[u8]>,
    keys: Vec<Vec<u8>>,
) -> Vec<RowOp> {
    keys.into_iter()
        .map(|key| RowOp {
            program: program.clone(),
            wait: plan.wait,
            ..operation(table, RowOpKind::Read(lock), key)
        })
        .collect()
}

/// A scan for the keys of rows that are to be locked.
fn found_by(plan: &SelectPlan, table: &Table, ranges: Vec<KeyRange>, filter: Option<Expr>) -> Scan {
    let program = encode_program(filter, Some(Vec::new())).into();
    Scan { primary_keys: true, ..scan(plan, table, ranges, program) }
}

fn scan(plan: &SelectPlan, table: &Table, ranges: Vec<KeyRange>, program: Arc<[u8]>) -> Scan {
    Scan {
        table: table.def.id,
        schema_version: table.def.schema_version,
        index: plan.access.index,
        ranges,
        ordered: plan.ordered_scan,
        reverse: plan.ordered_scan && plan.reverse,
        primary_keys: false,
        program,
        limit: None,
        as_of: AsOf::Newest,
        pending: false,
        to_lock: false,
        few: false,
        first_of_range: false,
    }
}

fn begin(collector: &Collector<'_>, sink: &mut dyn Sink) {
    if !sink.has_begun() {
        sink.begin(&collector.columns());
    }
}

fn send(collector: &mut Collector<'_>, sink: &mut dyn Sink) -> Result<(), SqlError> {
    if collector.pending().len() == 0 {
        return Ok(());
    }
    begin(collector, sink);
    for row in collector.pending() {
        sink.row(row)?;
    }
    collector.clear_pending();
    Ok(())
}
