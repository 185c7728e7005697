//! SELECT with locks. A statement that has waited looks again (LOCK-7). Protocol: `docs/protocols/locks.md`.

use super::send;
use super::{Chunks, Collector};
use crate::error::Failure;
use crate::exec::look::{Looks, is_not_free};
use crate::exec::unique::Pursuit;
use crate::plan::select::SelectPlan;
use crate::session::{Session, Share, Sink};
use crate::store::Store;
use crate::table::Table;
use lats_base::limits::OPERATIONS_PER_REQUEST_MAX;
use lats_client::api::{LockMode, LockWait, RowOp, RowOutcome, RowResult, Scan};
use lats_values::SqlError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that a scan with locks asks for at once.
const LOCKS_PER_REQUEST_MAX: usize = 1_024;
/// Rows that were kept for their order and are sent at once.
const ROWS_PER_FLUSH: usize = 1_024;

impl<S: Store> Session<S> {
    /// Locks and reads the rows that a scan finds, as many as are wanted.
    pub(super) async fn lock_ranges(
        &mut self,
        locking: &mut Locking<'_>,
        scan: Scan,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        if scan.ranges.is_empty() {
            return Ok(());
        }
        let mut enough = false;
        loop {
            let mut running = self.start_scan(Scan { to_lock: true, ..scan.clone() });
            locking.begin_look();
            while !enough && let Some(rows) = running.next().await? {
                self.note_trip();
                let keys = locking.new_keys(rows.iter().map(|row| row.primary_key))?;
                enough = self.lock_rows(locking, keys, collector, sink).await?;
                send(collector, sink)?;
                self.let_out(sink).await?;
            }
            if enough || !locking.looks.again()? {
                break;
            }
        }
        self.give_in_order(locking, collector, sink).await
    }

    /// Gives the rows that were kept for their order.
    async fn give_in_order(
        &mut self,
        locking: &mut Locking<'_>,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let Some(InOrder { mut rows, order, .. }) = locking.in_order.take() else { return Ok(()) };
        for (given, key) in order.iter().enumerate() {
            let Some(row) = rows.remove(key) else { continue };
            if collector.push(&row)? {
                break;
            }
            if given % ROWS_PER_FLUSH == ROWS_PER_FLUSH - 1 {
                send(collector, sink)?;
                self.let_out(sink).await?;
                self.let_others_work().await?;
            }
        }
        Ok(())
    }

    /// Locks and reads the rows with these keys of a unique index, whichever rows have them by then.
    pub(super) async fn lock_unique(
        &mut self,
        locking: &mut Locking<'_>,
        keys: Vec<Vec<u8>>,
        scan: Scan,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let table = locking.table;
        let mut pursuit = Pursuit::new(locking.plan.access.index, keys);
        let is_single = pursuit.is_single();
        loop {
            let keys = pursuit.next(self, table).await?;
            if keys.is_empty() {
                break;
            }
            let mut matched = Vec::new();
            let mut chunks = Chunks::changing(locking.reads(keys), table);
            while let Some((chunk, _)) = chunks.next_chunk() {
                locking.looks.ask(&chunk);
                let results = self.run_operations(chunk, false).await?;
                locking.looks.hear(&results)?;
                for result in results {
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
        // LOCK-7: a key that nobody had may have a row by now.
        if !is_single && locking.looks.again()? {
            self.lock_ranges(locking, scan, collector, sink).await?;
        }
        self.finish_statement().await
    }

    /// Locks and reads the rows with these keys.
    pub(super) async fn lock_keys(
        &mut self,
        (plan, table): (&SelectPlan, &Table),
        (lock, program): (LockMode, Arc<[u8]>),
        mut keys: Vec<Vec<u8>>,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        if keys.len() == 1 && collector.scan_limit().is_none() {
            // The usual case: one request that also ends what commits by itself.
            let reads = super::reads(plan, table, lock, &program, keys);
            let results = self.run_operations(reads, true).await?;
            return results.into_iter().filter_map(|r| r.row).try_for_each(|row| {
                collector.push(&row)?;
                Ok(())
            });
        }
        let mut locking = Locking::new(plan, table, (lock, program), self.share());
        let fits = collector.scan_limit().is_none() && keys.len() <= locking.at_once();
        if fits && !self.in_transaction() && plan.wait == LockWait::Wait {
            // Likewise, if there is nothing to wait for.
            let mut reads = locking.reads(keys.clone());
            reads.iter_mut().for_each(|read| read.wait = LockWait::Refuse);
            let results = self.run_operations(reads, true).await;
            if !is_not_free(&results) {
                return results?.into_iter().filter_map(|r| r.row).try_for_each(|row| {
                    collector.push(&row)?;
                    Ok(())
                });
            }
            self.begin_anew().await;
        }
        while !self.lock_rows(&mut locking, keys, collector, sink).await? {
            if !locking.looks.again()? {
                break;
            }
            keys = locking.looks.take_missing();
        }
        self.finish_statement().await
    }

    /// Locks and reads rows, no more than LIMIT wants; true if no more are wanted.
    async fn lock_rows(
        &mut self,
        locking: &mut Locking<'_>,
        mut keys: Vec<Vec<u8>>,
        collector: &mut Collector<'_>,
        sink: &mut dyn Sink,
    ) -> Result<bool, Failure> {
        let at_once = locking.at_once().min(LOCKS_PER_REQUEST_MAX);
        while !keys.is_empty() {
            let wanted = locking.wanted(collector);
            if wanted == 0 {
                return Ok(true);
            }
            let rest = keys.split_off(keys.len().min(wanted.clamp(1, at_once)));
            let part = std::mem::replace(&mut keys, rest);
            let kept = if locking.in_order.is_some() { part.clone() } else { Vec::new() };
            let reads = locking.reads(part);
            locking.looks.ask(&reads);
            let results = self.run_operations(reads, false).await?;
            locking.looks.hear(&results)?;
            if let Some(in_order) = &mut locking.in_order {
                in_order.keep(kept, results, &mut locking.share)?;
                continue;
            }
            for row in results.into_iter().filter_map(|r| r.row) {
                if collector.push(&row)? {
                    return Ok(true);
                }
                if collector.is_tired() {
                    self.let_others_work().await?;
                }
            }
            if !keys.is_empty() {
                send(collector, sink)?;
                self.let_out(sink).await?;
            }
        }
        Ok(locking.in_order.is_some() && locking.wanted(collector) == 0)
    }
}

/// A locking read in progress.
pub(super) struct Locking<'p> {
    plan: &'p SelectPlan,
    table: &'p Table,
    lock: LockMode,
    program: Arc<[u8]>,
    looks: Looks,
    /// The scan gives the order of the rows.
    pub(super) in_order: Option<InOrder>,
    share: Share,
}

/// Rows that are kept until it is known which there are: another look may find some in between.
#[derive(Default)]
pub(super) struct InOrder {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The keys that the look has found, in the order of the scan, and how many of these have rows.
    order: Vec<Vec<u8>>,
    count: u64,
    bytes: usize,
}

impl<'p> Locking<'p> {
    pub(super) fn new(
        plan: &'p SelectPlan,
        table: &'p Table,
        (lock, program): (LockMode, Arc<[u8]>),
        share: Share,
    ) -> Self {
        let looks = Looks::new(share.beside());
        Self { plan, table, lock, program, looks, in_order: None, share }
    }

    /// Reads of rows by key, with the lock that the plan asks for.
    pub(super) fn reads(&self, keys: Vec<Vec<u8>>) -> Vec<RowOp> {
        super::reads(self.plan, self.table, self.lock, &self.program, keys)
    }

    /// Rows that one request may have.
    fn at_once(&self) -> usize {
        Chunks::changing(Vec::new(), self.table).rows_max().min(OPERATIONS_PER_REQUEST_MAX)
    }

    fn begin_look(&mut self) {
        if let Some(in_order) = &mut self.in_order {
            in_order.order.clear();
            in_order.count = 0;
        }
    }

    /// The keys of rows that were found and that no earlier look has locked.
    fn new_keys<'k>(
        &mut self,
        found: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<Vec<u8>>, SqlError> {
        let mut new = Vec::new();
        for key in found {
            if let Some(in_order) = &mut self.in_order {
                in_order.count += u64::from(in_order.rows.contains_key(key));
                in_order.order.push(key.to_vec());
            }
            if self.looks.is_new(key, self.plan.access.index)? {
                new.push(key.to_vec());
            }
        }
        Ok(new)
    }

    /// How many more rows are wanted.
    fn wanted(&self, collector: &Collector<'_>) -> usize {
        let kept = self.in_order.as_ref().map_or(0, |in_order| in_order.count);
        let limit = collector.scan_limit().map(|limit| limit.saturating_sub(kept));
        limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

impl InOrder {
    /// Keeps rows that were locked.
    fn keep(
        &mut self,
        keys: Vec<Vec<u8>>,
        results: Vec<RowResult>,
        share: &mut Share,
    ) -> Result<(), SqlError> {
        for (key, result) in keys.into_iter().zip(results) {
            let Some(row) = result.row else { continue };
            self.bytes += row.len() + 2 * key.len() + 128;
            self.count += u64::from(self.rows.insert(key, row).is_none());
        }
        share.cover(self.bytes)
    }
}
