//! Reading what a machine asks for. Reads by key of all that is asked for go together.

use super::together::{Together, Wanted};
use crate::access::{Outside, Target};
use crate::error::Failure;
use crate::exec::{Chunks, REQUEST_BYTES_MAX, look::Found, operation, unique::LOOKUPS_MAX};
use crate::expr::with_outside;
use crate::plan::explain::actual::Read;
use crate::plan::query::{QueryPlan, TableSource};
use crate::plan::select::encode_strict_program;
use crate::session::{Running, Session, Share};
use crate::store::Store;
use lats_base::limits::OPERATIONS_PER_REQUEST_MAX;
use lats_client::api::{
    AsOf, KeyRange, LockMode, PRIMARY_INDEX, RowOp, RowOpKind, RowResult, Scan, StoreError,
};
use lats_engine::run::{Answer, Ask, AskId, Row, Run};
use lats_values::{Expr, Program, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Poll;

/// A request whose rows come by and by.
struct Open<S: Store> {
    source: usize,
    /// The scans that are still to be made, and which request each is for.
    scans: VecDeque<(u32, Scan)>,
    running: Option<(u32, Running<S>)>,
    /// For locking reads: the program of reads by key.
    programs: BTreeMap<u32, Arc<[u8]>>,
    /// And what the running scan has found.
    found: Found,
}

impl<S: Store> Open<S> {
    fn new(source: usize, share: Share) -> Self {
        let (scans, programs, found) = (VecDeque::new(), BTreeMap::new(), Found::new(share));
        Self { source, scans, running: None, programs, found }
    }
}

/// A read by key, and where its row goes.
struct KeyRead {
    id: AskId,
    request: u32,
    source: usize,
    operation: RowOp,
}

/// A read by a key of a unique index, and where its row goes.
struct UniqueRead {
    id: AskId,
    request: u32,
    key: Vec<u8>,
    program: Arc<[u8]>,
}

/// What is read by key when all that is asked for was looked at: those of unique indexes by source.
#[derive(Default)]
struct Reads {
    keys: Vec<KeyRead>,
    unique: BTreeMap<usize, Vec<UniqueRead>>,
}

/// A scan that is waited for, and which request it is for.
struct Waited<S: Store> {
    id: AskId,
    open: Open<S>,
    request: u32,
    running: Running<S>,
    is_new: bool,
}

/// Scans that are waited for together.
pub(super) const SCANS_AT_ONCE: usize = 64;

/// Reads rows for a machine.
pub(super) struct Fetcher<'p, S: Store> {
    plan: &'p QueryPlan,
    externals: &'p [Value],
    open: BTreeMap<AskId, Open<S>>,
    together: Together<S>,
    locked: bool,
    waited: bool,
    /// What was read of each table, if somebody wants to know, and the clock.
    reads: Option<Counted>,
}

/// The clock, and what was read of each table.
type Counted = (fn() -> u64, Vec<Read>);

/// When a read began: the time, and how often data nodes were waited for until then.
#[derive(Clone, Copy, Default)]
struct Since {
    time: u64,
    trips: u64,
}

impl<'p, S: Store> Fetcher<'p, S> {
    pub(super) fn new(plan: &'p QueryPlan, externals: &'p [Value]) -> Self {
        let (open, together) = (BTreeMap::new(), Together::new());
        let (locked, waited) = (false, false);
        Self { plan, externals, open, together, locked, waited, reads: None }
    }

    /// True if a lock was waited for.
    pub(super) fn has_waited(&self) -> bool {
        self.waited
    }

    /// Counts what is read from now on.
    pub(super) fn count_reads(&mut self, clock: fn() -> u64) {
        self.reads = Some((clock, vec![Read::default(); self.plan.sources.len()]));
    }

    /// What was counted.
    pub(super) fn counted(&mut self) -> Vec<Read> {
        self.reads.take().map_or_else(Vec::new, |(_, reads)| reads)
    }

    fn begin_read(&self, session: &Session<S>) -> Since {
        let time = self.reads.as_ref().map_or(0, |(clock, _)| clock());
        Since { time, trips: session.trips.count }
    }

    /// Counts rows that have come of a source, and what was waited for them.
    fn end_read(&mut self, session: &Session<S>, source: usize, rows: usize, since: Since) {
        let Some((clock, reads)) = &mut self.reads else { return };
        let waited = clock().saturating_sub(since.time);
        let Some(read) = reads.get_mut(source) else { return };
        read.trips += session.trips.count - since.trips;
        read.rows += rows as u64;
        (read.first, read.last) = (read.first + waited, read.last + waited);
    }

    /// Answers all that is asked for.
    pub(super) async fn answer(
        &mut self,
        session: &mut Session<S>,
        run: &mut Run<'_>,
    ) -> Result<(), Failure> {
        let (mut reads, mut wanted) = (Reads::default(), Vec::new());
        let mut asking = Vec::new();
        for ask in std::mem::take(&mut run.asks) {
            match ask {
                Ask::Read { id, source, requests, first } => {
                    asking.push(id);
                    let parts = (&mut reads, &mut wanted);
                    self.begin(session, run, (id, source, requests), parts)?;
                    if first.is_some()
                        && let Some(open) = self.open.get_mut(&id)
                    {
                        open.scans.iter_mut().for_each(|(_, scan)| scan.few = true);
                    }
                }
                Ask::More(id) => {
                    asking.push(id);
                }
                Ask::Close(id) => {
                    self.open.remove(&id);
                    self.together.close(id);
                }
            }
        }
        asking.sort_unstable();
        asking.dedup();
        self.together.begin(session, self.plan, wanted);
        self.read_unique(session, run, reads.unique).await?;
        self.read_keys(session, run, reads.keys).await?;
        self.read_together(session, run, &asking).await?;
        let (mut free, mut locking) = (Vec::new(), Vec::new());
        for id in &asking {
            let Some(open) = self.open.get(id) else { continue };
            match self.lock(session, open.source) {
                LockMode::Committed => free.push(*id),
                _ => locking.push(*id),
            }
        }
        for ids in free.chunks(SCANS_AT_ONCE) {
            self.next_rows_of_all(session, run, ids).await?;
        }
        for id in locking {
            self.next_rows(session, run, id).await?;
        }
        Ok(())
    }

    /// What data nodes run for a request.
    fn program(&self, source: &TableSource, filter: Option<&Expr>, outside: &[Value]) -> Arc<[u8]> {
        match &source.program {
            Some(program) if filter == source.access.residual.as_ref() => program.clone(),
            _ => encode_strict_program(
                filter.map(|filter| with_outside(filter, outside, self.externals.len())),
                source.projection.clone(),
                self.plan.strict,
            )
            .into(),
        }
    }

    /// Settles a statement that has taken locks and commits by itself.
    pub(super) async fn finish(self, session: &mut Session<S>) -> Result<(), Failure> {
        match self.locked {
            true => session.finish_statement().await,
            false => Ok(()),
        }
    }

    /// A scan for rows, which are locked if the query locks what it reads.
    fn scan(
        &self,
        source: &TableSource,
        ranges: Vec<KeyRange>,
        program: Arc<[u8]>,
        lock: LockMode,
    ) -> Scan {
        let to_lock = lock != LockMode::Committed;
        Scan { to_lock, ..scan(source, ranges, program, lock) }
    }

    fn lock(&self, session: &Session<S>, source: usize) -> LockMode {
        match self.plan.sources[source].lock.0 {
            LockMode::Committed if session.reads_repeatably() => LockMode::Shared,
            lock => lock,
        }
    }

    /// True if there may be more rows for an ask.
    fn has_more(&self, id: AskId) -> bool {
        self.open.contains_key(&id) || self.together.has_more(id)
    }

    /// The next rows of scans that read for many asks.
    async fn read_together(
        &mut self,
        session: &mut Session<S>,
        run: &mut Run<'_>,
        asking: &[AskId],
    ) -> Result<(), Failure> {
        if self.together.is_empty() {
            return Ok(());
        }
        let since = self.begin_read(session);
        let read = self.together.go_on(self.plan, asking).await?;
        for _ in 0..read.trips {
            session.note_trip();
        }
        for (id, answer) in read.answers {
            let more = self.has_more(id);
            run.answer(id, Answer { more, ..answer })?;
        }
        for (source, rows) in read.rows {
            self.end_read(session, source, rows, since);
        }
        Ok(())
    }

    /// Begins with an ask: reads by key are gathered, scans are kept for later.
    fn begin(
        &mut self,
        session: &Session<S>,
        run: &mut Run<'_>,
        (id, number, requests): (AskId, usize, Vec<Row>),
        (reads, wanted): (&mut Reads, &mut Vec<Wanted>),
    ) -> Result<(), Failure> {
        let source = &self.plan.sources[number];
        let lock = self.lock(session, number);
        if let Some((_, counted)) = &mut self.reads {
            counted[number].requests += requests.len() as u64;
        }
        let mut open = Open::new(number, session.share());
        let by_index = !source.access.columns.is_empty() && lock == LockMode::Committed;
        let before = wanted.len();
        for (request, params) in (0u32..).zip(requests) {
            let has_params = !params.is_empty();
            let outside: Vec<Value> = self.externals.iter().cloned().chain(params).collect();
            let around = Outside { values: &outside, constants: self.externals.len() };
            let resolved = source.access.resolve(&source.table, around)?;
            let program = self.program(source, resolved.filter, &outside);
            match resolved.target {
                Target::Keys(keys) => reads.keys.extend(keys.into_iter().map(|key| KeyRead {
                    id,
                    request,
                    source: number,
                    operation: RowOp {
                        program: program.clone(),
                        wait: source.lock.1,
                        ..operation(&source.table, RowOpKind::Read(lock), key)
                    },
                })),
                Target::UniqueKeys(keys) if lock == LockMode::Committed => {
                    let read = |key| UniqueRead { id, request, key, program: program.clone() };
                    reads.unique.entry(number).or_default().extend(keys.into_iter().map(read));
                }
                Target::UniqueKeys(keys) => {
                    let filter = source.access.filter.as_ref();
                    let whole = self.program(source, filter, &outside);
                    open.programs.insert(request, whole);
                    let ranges = crate::access::key_ranges(&keys);
                    open.scans
                        .push_back((request, self.scan(source, ranges, Arc::default(), lock)));
                }
                Target::Ranges(ranges) if ranges.is_empty() => {}
                Target::Ranges(ranges) if by_index && has_params => {
                    wanted.push(Wanted { id, request, source: number, ranges, program });
                }
                Target::Ranges(ranges) => {
                    let program = match lock {
                        LockMode::Committed => program,
                        _ => {
                            let filter = source.access.filter.as_ref();
                            let whole = self.program(source, filter, &outside);
                            open.programs.insert(request, whole);
                            let constants = self.externals.len();
                            let filter =
                                resolved.filter.map(|f| with_outside(f, &outside, constants));
                            encode_strict_program(filter, Some(Vec::new()), self.plan.strict).into()
                        }
                    };
                    open.scans.push_back((request, self.scan(source, ranges, program, lock)));
                }
            }
        }
        let has_scans = !open.scans.is_empty();
        let more = has_scans || wanted.len() > before;
        let answer = Answer { rows: Vec::new(), more };
        if has_scans {
            self.open.insert(id, open);
        }
        run.answer(id, answer)?;
        Ok(())
    }

    /// Reads rows by keys of unique indexes: all of a source together.
    async fn read_unique(
        &mut self,
        session: &mut Session<S>,
        run: &mut Run<'_>,
        reads: BTreeMap<usize, Vec<UniqueRead>>,
    ) -> Result<(), Failure> {
        for (number, wanted) in reads {
            let source = &self.plan.sources[number];
            let table = &source.table;
            for part in wanted.chunks(LOOKUPS_MAX) {
                let keys: Vec<Vec<u8>> = part.iter().map(|read| read.key.clone()).collect();
                let since = self.begin_read(session);
                let found = session.find_unique(table, source.access.index, &keys).await?;
                let rows = found.iter().filter(|found| found.is_some()).count();
                self.end_read(session, number, rows, since);
                for (read, found) in part.iter().zip(found) {
                    let Some(found) = found else { continue };
                    let Some(row) = passed(source, &read.program, &found.row)? else { continue };
                    let rows = vec![(read.request, row)];
                    run.answer(read.id, Answer { rows, more: self.has_more(read.id) })?;
                }
            }
        }
        Ok(())
    }

    async fn read_keys(
        &mut self,
        session: &mut Session<S>,
        run: &mut Run<'_>,
        reads: Vec<KeyRead>,
    ) -> Result<(), Failure> {
        let mut rest = reads;
        let mut at_once = KEYS_AT_FIRST;
        while !rest.is_empty() {
            let part = cut_batch(&mut rest, at_once);
            let (places, operations): (Vec<_>, Vec<_>) = part
                .into_iter()
                .map(|read| ((read.id, read.request, read.source), read.operation))
                .unzip();
            let is_locking =
                operations.iter().any(|op| op.kind != RowOpKind::Read(LockMode::Committed));
            let since = self.begin_read(session);
            let results = match is_locking {
                false => session.read_rows(operations).await?,
                true => {
                    self.locked = true;
                    session.run_operations(operations, false).await?
                }
            };
            self.waited |= results.iter().any(|result| result.waited);
            let found: usize = results.iter().filter_map(|r| r.row.as_ref()).map(Vec::len).sum();
            at_once = keys_at_once(results.len(), found);
            self.end_key_reads(session, &places, &results, since);
            for ((id, request, source), result) in places.into_iter().zip(results) {
                let rows =
                    result.row.map(|row| (request, decode(&self.plan.sources[source], &row)));
                let more = self.has_more(id);
                run.answer(id, Answer { rows: rows.into_iter().collect(), more })?;
            }
        }
        Ok(())
    }

    /// Counts reads by key that went together.
    fn end_key_reads(
        &mut self,
        session: &Session<S>,
        places: &[(AskId, u32, usize)],
        results: &[RowResult],
        since: Since,
    ) {
        if self.reads.is_none() {
            return;
        }
        let mut rows = BTreeMap::new();
        for ((_, _, source), result) in places.iter().zip(results) {
            *rows.entry(*source).or_insert(0) += usize::from(result.row.is_some());
        }
        for (source, rows) in rows {
            self.end_read(session, source, rows, since);
        }
    }

    /// The next rows of scans without locks: all of them are waited for at once.
    async fn next_rows_of_all(
        &mut self,
        session: &mut Session<S>,
        run: &mut Run<'_>,
        ids: &[AskId],
    ) -> Result<(), Failure> {
        let since = self.begin_read(session);
        let mut waited = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(mut open) = self.open.remove(id) else { continue };
            let is_new = open.running.is_none();
            let running = open.running.take().or_else(|| {
                let (request, scan) = open.scans.pop_front()?;
                Some((request, session.start_scan(scan)))
            });
            let Some((request, running)) = running else { continue };
            waited.push(Waited { id: *id, open, request, running, is_new });
        }
        let batches = all(waited.iter_mut().map(|waited| waited.running.next())).await;
        session.note_trip();
        // One wait counts once for each table.
        let mut counted = BTreeSet::new();
        for (waited, batch) in waited.into_iter().zip(batches) {
            let Waited { id, mut open, request, running, is_new } = waited;
            let source = &self.plan.sources[open.source];
            // That there are no more rows is often known before.
            let brings = is_new || matches!(batch, Ok(Some(_)));
            let since = match brings && counted.insert(open.source) {
                true => since,
                false => self.begin_read(session),
            };
            let mut answer = Answer::default();
            if let Some(batch) = batch? {
                let rows = batch.iter().map(|row| (request, decode(source, row.row)));
                answer.rows.extend(rows);
                open.running = Some((request, running));
            }
            self.end_read(session, open.source, answer.rows.len(), since);
            if open.running.is_some() || !open.scans.is_empty() {
                self.open.insert(id, open);
            }
            answer.more = self.has_more(id);
            run.answer(id, answer)?;
        }
        Ok(())
    }

    /// The next rows of scans with locks.
    async fn next_rows(
        &mut self,
        session: &mut Session<S>,
        run: &mut Run<'_>,
        id: AskId,
    ) -> Result<(), Failure> {
        let Some(mut open) = self.open.remove(&id) else { return Ok(()) };
        let source = &self.plan.sources[open.source];
        let lock = self.lock(session, open.source);
        let mut answer = Answer::default();
        let since = self.begin_read(session);
        while answer.rows.is_empty() {
            let (request, mut running) = match open.running.take() {
                Some(running) => running,
                None => match open.scans.pop_front() {
                    Some((request, scan)) => {
                        open.found.clear();
                        (request, session.start_scan(scan))
                    }
                    None => break,
                },
            };
            let batch = running.next().await?;
            session.note_trip();
            let Some(batch) = batch else { continue };
            // A row may have changed since it was found: the whole condition is looked at again.
            let program = open.programs.get(&request).cloned().unwrap_or_default();
            let mut reads = Vec::new();
            for key in batch.iter().map(|row| row.primary_key) {
                if source.access.index == PRIMARY_INDEX || open.found.is_new(key)? {
                    reads.push(RowOp {
                        program: program.clone(),
                        wait: source.lock.1,
                        ..operation(&source.table, RowOpKind::Read(lock), key.to_vec())
                    });
                }
            }
            self.locked = true;
            let mut chunks = Chunks::changing(reads, &source.table);
            while let Some((chunk, _)) = chunks.next_chunk() {
                let results = session.run_operations(chunk, false).await?;
                self.waited |= results.iter().any(|result| result.waited);
                let rows = results.into_iter().filter_map(|result| result.row);
                answer.rows.extend(rows.map(|row| (request, decode(source, &row))));
            }
            open.running = Some((request, running));
        }
        self.end_read(session, open.source, answer.rows.len(), since);
        if open.running.is_some() || !open.scans.is_empty() {
            self.open.insert(id, open);
        }
        answer.more = self.has_more(id);
        run.answer(id, answer)?;
        Ok(())
    }
}

/// The row of a unique index's key as it is wanted; none if the rest of the condition is not true for it.
fn passed(source: &TableSource, program: &[u8], image: &[u8]) -> Result<Option<Row>, Failure> {
    let table = &source.table;
    let program = match program {
        [] => Program::default(),
        bytes => Program::decode(bytes, table.layout.columns()).map_err(StoreError::from)?,
    };
    if !program.matches(&table.layout, image)? {
        return Ok(None);
    }
    let mut projected = Vec::new();
    program.project(&table.layout, image, &mut projected);
    Ok(Some(decode(source, &projected)))
}

/// What all of these come to; they are waited for together.
pub(super) async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_ready = true;
        for (future, output) in &mut waiting {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}

/// Keys that are read at once before it is known how large the rows are.
const KEYS_AT_FIRST: usize = 1_024;
/// Bytes of rows that reads by key bring at once, about.
const ROWS_BYTES_AT_ONCE: usize = 2 << 20;

/// How many keys are read at once when so many have brought so many bytes.
fn keys_at_once(keys: usize, bytes: usize) -> usize {
    let of_one = (bytes / keys.max(1)).max(1);
    (ROWS_BYTES_AT_ONCE / of_one).clamp(16, OPERATIONS_PER_REQUEST_MAX)
}

/// The next reads that go together: so many at most, and no more than a request may carry.
fn cut_batch(rest: &mut Vec<KeyRead>, at_once: usize) -> Vec<KeyRead> {
    let mut bytes = 0;
    let fits = |read: &&KeyRead| {
        bytes += read.operation.key.len() + read.operation.program.len() + 64;
        bytes <= REQUEST_BYTES_MAX
    };
    let count = rest.iter().take(at_once).take_while(fits).count().max(1);
    let later = rest.split_off(count.min(rest.len()));
    std::mem::replace(rest, later)
}

pub(super) fn scan(
    source: &TableSource,
    ranges: Vec<KeyRange>,
    program: Arc<[u8]>,
    lock: LockMode,
) -> Scan {
    Scan {
        table: source.table.def.id,
        schema_version: source.table.def.schema_version,
        index: source.access.index,
        ranges,
        ordered: false,
        reverse: false,
        primary_keys: lock != LockMode::Committed,
        program,
        limit: None,
        as_of: AsOf::Newest,
        pending: false,
        to_lock: false,
        few: false,
        first_of_range: false,
    }
}

pub(super) fn decode(source: &TableSource, image: &[u8]) -> Row {
    (0..source.width).map(|at| source.layout.value(image, at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::TableId;
    use lats_client::api::LockWait;

    fn read(program_bytes: usize) -> KeyRead {
        let operation = RowOp {
            table: TableId::new(1),
            schema_version: 1,
            kind: RowOpKind::Read(LockMode::Committed),
            key: vec![0; 8],
            row: Vec::new(),
            program: vec![0; program_bytes].into(),
            wait: LockWait::Wait,
        };
        KeyRead { id: AskId(0), request: 0, source: 0, operation }
    }

    #[test]
    fn what_is_waited_for_together_goes_on_together() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let barrier = tokio::sync::Barrier::new(3);
        let wait = |number: u32| {
            let barrier = &barrier;
            async move {
                barrier.wait().await;
                number
            }
        };
        assert_eq!(runtime.block_on(all((1..=3).map(wait))), [1, 2, 3]);
        assert_eq!(runtime.block_on(all(std::iter::empty::<std::future::Ready<u32>>())), []);
    }

    #[test]
    fn reads_by_key_go_in_batches_of_bounded_bytes() {
        let mut rest: Vec<KeyRead> = (0..3_000).map(|_| read(10_000)).collect();
        let mut batches = 0;
        while !rest.is_empty() {
            let batch = cut_batch(&mut rest, 1_024);
            let bytes: usize = batch.iter().map(|read| read.operation.program.len()).sum();
            assert!(bytes <= REQUEST_BYTES_MAX);
            batches += 1;
        }
        assert_eq!(batches, 3_000_usize.div_ceil(REQUEST_BYTES_MAX / 10_072));
        assert_eq!(cut_batch(&mut vec![read(2 << 20), read(1)], 8).len(), 1);
        // Large rows: few keys at once; small ones: as many as a request may have.
        assert_eq!(keys_at_once(1_024, 1_024 * 60_000), 34);
        assert_eq!(keys_at_once(1_024, 1_024 * 10), OPERATIONS_PER_REQUEST_MAX);
    }
}
