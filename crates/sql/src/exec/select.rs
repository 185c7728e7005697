//! SELECT.

mod collect;

use super::{Chunks, limits, operation};
use crate::access::Target;
use crate::error::Failure;
use crate::expr::with_externals;
use crate::plan::select::{SelectPlan, encode_program};
use crate::session::{Outcome, Session, Sink};
use crate::store::Store;
use crate::table::Table;
use collect::Collector;
use lats_client::api::{KeyRange, LockMode, RowOp, RowOpKind, Scan};
use lats_values::{Expr, SqlError, Value, sort_order};
use std::cmp::Ordering;

/// Compares rows of ORDER BY values.
pub(crate) fn compare_rows(a: &[Value], b: &[Value], descending: &[bool]) -> Ordering {
    for ((a, b), descending) in a.iter().zip(b).zip(descending) {
        let order = sort_order(a, b);
        if order != Ordering::Equal {
            return if *descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

impl<S: Store> Session<S> {
    pub(crate) async fn select<K: Sink>(
        &mut self,
        plan: &SelectPlan,
        externals: &[Value],
        sink: &mut K,
    ) -> Result<Outcome, Failure> {
        let (offset, count) = limits(&plan.limit, externals)?;
        let mut collector = Collector::new(plan, externals, offset, count);
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
        collector.finish()?;
        send(&mut collector, sink)?;
        begin(&collector, sink);
        self.add_warnings(collector.warnings());
        Ok(Outcome::Rows)
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
        let resolved = plan.access.resolve(table, collector.externals())?;
        let filter = resolved.filter;
        if !resolved.exact && plan.access.fixed > 0 {
            collector.must_sort();
        }
        let locking = lock != LockMode::Committed;
        let (keys, filter) = match resolved.target {
            Target::Keys(keys) => (keys, filter),
            Target::Ranges(ranges) if !locking => {
                let program = self.program(plan, filter, collector);
                let mut scan = scan(plan, table, ranges, program);
                scan.limit = collector.scan_limit();
                return self.read_scan(scan, collector, sink).await;
            }
            Target::Ranges(ranges) => {
                let filter = filter.map(|f| with_externals(f, collector.externals()));
                let program = encode_program(filter, Some(Vec::new()));
                let keys = self.scan_keys(scan(plan, table, ranges, program), collector).await?;
                (keys, plan.access.filter.as_ref())
            }
        };
        let program = self.program(plan, filter, collector);
        let reads: Vec<RowOp> = keys
            .into_iter()
            .map(|key| RowOp {
                program: program.clone(),
                ..operation(table, RowOpKind::Read(lock), key)
            })
            .collect();
        self.read_keys(reads, locking, collector, sink).await
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

    async fn read_keys<K: Sink>(
        &mut self,
        reads: Vec<RowOp>,
        locking: bool,
        collector: &mut Collector<'_>,
        sink: &mut K,
    ) -> Result<(), Failure> {
        let mut chunks = Chunks::new(reads);
        while let Some((chunk, last)) = chunks.next_chunk() {
            let results = match locking {
                true => self.run_operations(chunk, last).await?,
                false => self.read_rows(chunk).await?,
            };
            for row in results.into_iter().filter_map(|r| r.row) {
                // Locks are taken on all rows, whether or not they are sent.
                let enough = collector.push(&row)?;
                if enough && !locking {
                    return Ok(());
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
            for row in rows {
                if collector.push(&row.row)? {
                    return Ok(());
                }
            }
            if !collector.buffers() {
                send(collector, sink)?;
                sink.flush().await?;
            }
        }
        Ok(())
    }

    async fn scan_keys(
        &mut self,
        scan: Scan,
        collector: &Collector<'_>,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let mut keys = Vec::new();
        if scan.ranges.is_empty() {
            return Ok(keys);
        }
        let mut bytes = 0;
        let mut running = self.start_scan(scan);
        while let Some(rows) = running.next().await? {
            bytes += rows.iter().map(|row| row.primary_key.len() + 48).sum::<usize>();
            collector.check_memory(bytes)?;
            keys.extend(rows.into_iter().map(|row| row.primary_key));
        }
        Ok(keys)
    }
}

fn scan(plan: &SelectPlan, table: &Table, ranges: Vec<KeyRange>, program: Vec<u8>) -> Scan {
    Scan {
        table: table.def.id,
        schema_version: table.def.schema_version,
        index: plan.access.index,
        ranges,
        ordered: plan.ordered_scan,
        reverse: plan.ordered_scan && plan.reverse,
        program,
        limit: None,
    }
}

fn begin<K: Sink>(collector: &Collector<'_>, sink: &mut K) {
    if !sink.has_begun() {
        sink.begin(&collector.columns());
    }
}

fn send<K: Sink>(collector: &mut Collector<'_>, sink: &mut K) -> Result<(), SqlError> {
    if collector.pending().is_empty() {
        return Ok(());
    }
    begin(collector, sink);
    for row in collector.take() {
        sink.row(&row)?;
    }
    Ok(())
}
