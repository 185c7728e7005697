//! SELECT.

mod collect;
mod order;

use super::unique::Pursuit;
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
use lats_base::{IndexId, limits::OPERATIONS_PER_REQUEST_MAX};
use lats_client::api::{AsOf, KeyRange, LockMode, RowOp, RowOpKind, RowOutcome, Scan, StoreError};
use lats_values::{Expr, Program, SqlError, Value};
pub(crate) use order::compare_rows;

/// Rows that a scan with locks asks for at once.
const LOCKS_PER_REQUEST_MAX: usize = 1_024;

impl<S: Store> Session<S> {
    pub(crate) async fn select<K: Sink>(
        &mut self,
        plan: &SelectPlan,
        externals: &[Value],
        sink: &mut K,
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
            sink.flush().await?;
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

    async fn read_table<K: Sink>(
        &mut self,
        plan: &SelectPlan,
        table: &Table,
        lock: LockMode,
        collector: &mut Collector<'_>,
        sink: &mut K,
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
                return self.lock_unique((plan, table), lock, keys, &program, collector).await;
            }
            Target::Ranges(ranges) if lock == LockMode::Committed => {
                let program = self.program(plan, filter, collector);
                let mut scan = scan(plan, table, ranges, program);
                scan.limit = collector.scan_limit();
                return self.read_scan(scan, collector, sink).await;
            }
            Target::Ranges(ranges) => {
                let filter = filter.map(|f| with_externals(f, collector.externals()));
                let program = encode_program(filter, Some(Vec::new()));
                let scan = Scan { primary_keys: true, ..scan(plan, table, ranges, program) };
                return self.lock_scan(plan, table, (scan, lock), collector, sink).await;
            }
        };
        let program = self.program(plan, filter, collector);
        let reads = reads(plan, table, lock, &program, keys);
        match lock {
            LockMode::Committed => self.read_keys(reads, collector, sink).await,
            _ => self.lock_keys(reads, table, collector, sink).await,
        }
    }

    /// Locks and reads the rows that a scan finds, as many as are wanted.
    async fn lock_scan<K: Sink>(
        &mut self,
        plan: &SelectPlan,
        table: &Table,
        (scan, lock): (Scan, LockMode),
        collector: &mut Collector<'_>,
        sink: &mut K,
    ) -> Result<(), Failure> {
        // A row may have changed since it was found: the whole condition is checked again.
        let program = self.program(plan, plan.access.filter.as_ref(), collector);
        if scan.ranges.is_empty() {
            return Ok(());
        }
        let mut running = self.start_scan(scan);
        let mut enough = false;
        while !enough && let Some(rows) = running.next().await? {
            self.note_trip();
            let keys = rows.iter().map(|row| row.primary_key.to_vec()).collect();
            let reads = reads(plan, table, lock, &program, keys);
            enough = self.lock_rows(reads, table, collector, sink).await?;
        }
        self.finish_statement().await
    }

    /// Locks and reads the rows with these keys of a unique index, whichever rows have them by then.
    async fn lock_unique(
        &mut self,
        (plan, table): (&SelectPlan, &Table),
        lock: LockMode,
        keys: Vec<Vec<u8>>,
        program: &[u8],
        collector: &mut Collector<'_>,
    ) -> Result<(), Failure> {
        let mut pursuit = Pursuit::new(plan.access.index, keys);
        loop {
            let keys = pursuit.next(self, table).await?;
            if keys.is_empty() {
                return self.finish_statement().await;
            }
            let mut matched = Vec::new();
            let mut chunks = Chunks::changing(reads(plan, table, lock, program, keys), table);
            while let Some((chunk, _)) = chunks.next_chunk() {
                for result in self.run_operations(chunk, false).await? {
                    // What was left out, because it is locked, is not pursued.
                    matched.push(result.row.is_some() || result.outcome == RowOutcome::Skipped);
                    if let Some(row) = result.row
                        && collector.push(&row)?
                    {
                        return self.finish_statement().await;
                    }
                }
            }
            pursuit.keep_missed(matched.into_iter());
        }
    }

    async fn lock_keys<K: Sink>(
        &mut self,
        reads: Vec<RowOp>,
        table: &Table,
        collector: &mut Collector<'_>,
        sink: &mut K,
    ) -> Result<(), Failure> {
        if collector.scan_limit().is_none() && reads.len() <= OPERATIONS_PER_REQUEST_MAX {
            // The usual case: one request that also ends what commits by itself.
            let mut chunks = Chunks::changing(reads, table);
            while let Some((chunk, last)) = chunks.next_chunk() {
                let results = self.run_operations(chunk, last).await?;
                for row in results.into_iter().filter_map(|r| r.row) {
                    collector.push(&row)?;
                }
            }
            return Ok(());
        }
        self.lock_rows(reads, table, collector, sink).await?;
        self.finish_statement().await
    }

    /// Locks and reads rows, no more than LIMIT wants; true if no more are wanted.
    async fn lock_rows<K: Sink>(
        &mut self,
        mut reads: Vec<RowOp>,
        table: &Table,
        collector: &mut Collector<'_>,
        sink: &mut K,
    ) -> Result<bool, Failure> {
        let at_once = Chunks::changing(Vec::new(), table).rows_max().min(LOCKS_PER_REQUEST_MAX);
        while !reads.is_empty() {
            let wanted = collector.scan_limit().map_or(usize::MAX, |n| n as usize);
            let rest = reads.split_off(reads.len().min(wanted.clamp(1, at_once)));
            let results = self.run_operations(std::mem::replace(&mut reads, rest), false).await?;
            for row in results.into_iter().filter_map(|r| r.row) {
                if collector.push(&row)? {
                    return Ok(true);
                }
                if collector.is_tired() {
                    self.let_others_work().await?;
                }
            }
            send(collector, sink)?;
            sink.flush().await?;
        }
        Ok(false)
    }

    fn program(
        &self,
        plan: &SelectPlan,
        filter: Option<&Expr>,
        collector: &Collector<'_>,
    ) -> Vec<u8> {
        match &plan.program {
            Some(program) if filter == plan.access.residual.as_ref() => program.clone(),
            _ => encode_program(
                filter.map(|f| with_externals(f, collector.externals())),
                plan.projection.clone(),
            ),
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

    async fn read_keys<K: Sink>(
        &mut self,
        reads: Vec<RowOp>,
        collector: &mut Collector<'_>,
        sink: &mut K,
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
                sink.flush().await?;
            }
        }
        Ok(())
    }

    async fn read_scan<K: Sink>(
        &mut self,
        scan: Scan,
        collector: &mut Collector<'_>,
        sink: &mut K,
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
                sink.flush().await?;
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
    program: &[u8],
    keys: Vec<Vec<u8>>,
) -> Vec<RowOp> {
    keys.into_iter()
        .map(|key| RowOp {
            program: program.to_vec(),
            wait: plan.wait,
            ..operation(table, RowOpKind::Read(lock), key)
        })
        .collect()
}

fn scan(plan: &SelectPlan, table: &Table, ranges: Vec<KeyRange>, program: Vec<u8>) -> Scan {
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
        few: false,
    }
}

fn begin<K: Sink>(collector: &Collector<'_>, sink: &mut K) {
    if !sink.has_begun() {
        sink.begin(&collector.columns());
    }
}

fn send<K: Sink>(collector: &mut Collector<'_>, sink: &mut K) -> Result<(), SqlError> {
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
