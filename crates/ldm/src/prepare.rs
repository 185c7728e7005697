//! The primary's part of prepare: lock, execute, keep the new version as tentative, send the row
//! images to the backups (COMMIT-1, COMMIT-2), with the decision where they may carry it (CARRY-2).

use crate::{
    Ldm, Refusal, Table,
    deadlock::REPORT_AFTER,
    fragment::Fragment,
    lock::{Grant, LockMode},
    row::{Row, Version},
    transaction::{Op, PausedBatch, Transaction, WaitingBatch},
};
use alloc::{sync::Arc, vec::Vec};
use lats_base::{
    Duration, Epoch, FragmentId, Incarnation, NodeId, NodeSet, RefCode, RowId, TableId,
    TransactionId, ViewNumber, limits, require,
};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{
        BatchResumeOrd, Carry, PART_OF_MANY, PrepareConf, PrepareRef, PrepareReq, ReplicateReq,
    },
    control::CLOSE_ALL,
    list::{
        self, Change, LOCK_NOWAIT, LOCK_SKIP, LOCK_WAIT_SHIFT, OUTCOME_HAS_ROW, OUTCOME_WAITED,
        Operation, OperationKind, Outcome, OutcomeKind,
    },
};
use lats_values::Program;

/// A batch in execution: what will be answered and replicated when it is through.
#[derive(Debug)]
pub(crate) struct Run {
    transaction: TransactionId,
    coordinator: BlockRef,
    batch: u32,
    statement: u32,
    part_of_many: bool,
    outcomes: Vec<u8>,
    outcome_count: u32,
    changes: Vec<u8>,
    change_count: u32,
    pub(crate) index_changes: Vec<u8>,
    pub(crate) index_change_count: u32,
    /// A fragment that was changed: all of this node have the same backups.
    changed: Option<FragmentId>,
    /// The images may carry their part of the decision: of so many, or 0; if this is still the view.
    carry_parts: u16,
    view: ViewNumber,
    /// What its programs may still do (PROGRAM-3).
    work_left: u64,
    /// `OUTCOME_WAITED` once it has waited for a lock.
    waited: u32,
}

enum Step {
    Done(OutcomeKind, Option<Vec<u8>>),
    Wait(RowId),
}

/// What came of asking for a row's lock.
enum Locked {
    Yes,
    /// The batch is in the queue.
    Wait,
    /// Another transaction has it, and the row is to be left out.
    Skip,
}

/// An operation and its strings.
struct Asked<'a> {
    head: Operation,
    kind: OperationKind,
    key: &'a [u8],
    row: &'a [u8],
    program: &'a [u8],
}

/// A change of a row is longer than the operation that inserts it, at most.
const HEADS_DIFFER_BYTES: usize = size_of::<Change>() - size_of::<Operation>() + 8;

impl Ldm {
    pub(crate) fn on_prepare_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<PrepareReq>();
        if self.park_newer(req.view, signal) {
            return;
        }
        self.hear_epoch(req.epoch);
        if self.turn_away(&req, signal, ctx) {
            return;
        }
        let life = Incarnation::new(signal.header.incarnation);
        // Not more than the operations that are there.
        let count =
            (req.operation_count as usize).min(signal.payload().len() / size_of::<Operation>());
        let run = self.new_run(&req, signal, count);
        if !self.may_serve(ctx) {
            return self.turn_down(run, RefCode::NotServing, ctx);
        }
        if self.closing == CLOSE_ALL {
            return self.turn_down(run, RefCode::ShuttingDown, ctx);
        }
        if let Some(code) = self.redo.as_ref().and_then(|redo| redo.backlog.refuses(ctx.now())) {
            return self.turn_down(run, code, ctx);
        }
        if self.outcomes.refuses(req.transaction) {
            return self.turn_down(run, RefCode::TransactionAborted, ctx);
        }
        let spare_ops = &mut self.spare_ops;
        let transaction = self.transactions.get_or_insert_with(req.transaction, || {
            Transaction::new(signal.sender(), life, spare_ops.take())
        });
        // Its coordinator sends a batch when the last one is answered, and none after the decision: a client has given
        // two transactions the same id.
        let is_over = transaction.decided.is_some() || transaction.coordinator != signal.sender();
        if is_over || transaction.waiting.is_some() || transaction.paused.is_some() {
            transaction.id_given_twice = true;
            return self.turn_down(run, RefCode::TransactionAborted, ctx);
        }
        transaction.ops.reserve(count);
        self.go_on(run, signal.payload(), ctx);
    }

    fn new_run(&mut self, req: &PrepareReq, signal: &Signal<'_>, operations: usize) -> Run {
        let (mut outcomes, mut changes) = (self.spare_lists.take(), self.spare_lists.take());
        outcomes.reserve(operations * size_of::<Outcome>());
        changes.reserve(signal.payload().len() + operations * HEADS_DIFFER_BYTES);
        Run {
            transaction: req.transaction,
            coordinator: signal.sender(),
            batch: req.batch,
            statement: req.statement,
            part_of_many: req.flags & PART_OF_MANY != 0,
            outcomes,
            outcome_count: 0,
            changes,
            change_count: 0,
            index_changes: Vec::new(),
            index_change_count: 0,
            changed: None,
            carry_parts: req.carry_parts,
            view: req.view,
            work_left: limits::PROGRAM_WORK_MAX,
            waited: 0,
        }
    }

    /// Executes operations until the batch is through, is refused, or meets a locked row; after
    /// some it gives way to other work.
    fn go_on(&mut self, run: Run, operations: &[u8], ctx: &mut Ctx<'_>) {
        if let Some((run, done_bytes)) = self.execute_some(run, operations, ctx) {
            self.pause(PausedBatch { run, operations: operations.to_vec(), done_bytes }, ctx);
        }
    }

    /// SLICE-5: the rest of a long batch comes after what others have sent meanwhile.
    fn pause(&mut self, batch: PausedBatch, ctx: &mut Ctx<'_>) {
        let transaction = batch.run.transaction;
        if let Some(t) = self.transactions.get_mut(&transaction) {
            t.paused = Some(batch);
            ctx.send(ctx.me(), &BatchResumeOrd { transaction });
        }
    }

    pub(crate) fn on_batch_resume_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let id = signal.body::<BatchResumeOrd>().transaction;
        let Some(paused) = self.transactions.get_mut(&id).and_then(|t| t.paused.take()) else {
            return;
        };
        let PausedBatch { run, operations, done_bytes } = paused;
        let Some((run, more_bytes)) = self.execute_some(run, &operations[done_bytes..], ctx) else {
            return;
        };
        self.pause(PausedBatch { run, operations, done_bytes: done_bytes + more_bytes }, ctx);
    }

    /// Executes a slice of operations. Gives the batch back with the bytes that are done, unless it
    /// is through, is refused, or waits.
    fn execute_some(
        &mut self,
        mut run: Run,
        operations: &[u8],
        ctx: &mut Ctx<'_>,
    ) -> Option<(Run, usize)> {
        let mut items = list::items::<Operation>(operations);
        let mut executed = 0;
        loop {
            let rest = items.rest();
            if executed == self.config.slices.rows && !rest.is_empty() {
                return Some((run, operations.len() - rest.len()));
            }
            executed += 1;
            let Some((head, [key, row, program])) = items.next() else { break };
            let Some(kind) = OperationKind::from_number(head.kind) else {
                self.refuse_run(run, &RefCode::RequestMalformed.into(), ctx);
                return None;
            };
            let asked = Asked { head, kind, key, row, program };
            match self.execute(&asked, &mut run, ctx) {
                Ok(Step::Done(..)) if run.is_full() => {
                    self.refuse_run(run, &RefCode::BatchTooLarge.into(), ctx);
                    return None;
                }
                Ok(Step::Done(outcome, image)) => run.add_outcome(head.index, outcome, image),
                Ok(Step::Wait(row)) => {
                    let at = (head.table, head.fragment, row);
                    self.wait(run, rest, at, self.longest_wait(head.flags), ctx);
                    return None;
                }
                Err(refusal) => {
                    self.refuse_run(run, &refusal, ctx);
                    return None;
                }
            }
        }
        self.finish_run(run, ctx);
        None
    }

    fn refuse_run(&mut self, run: Run, refusal: &Refusal, ctx: &mut Ctx<'_>) {
        self.forget_if_empty(run.transaction);
        refuse(&run, refusal, ctx);
        self.keep_lists(run);
    }

    /// Refuses a batch before anything was done for it.
    fn turn_down(&mut self, run: Run, code: RefCode, ctx: &mut Ctx<'_>) {
        refuse(&run, &code.into(), ctx);
        self.keep_lists(run);
    }

    /// The next batch needs as much memory.
    fn keep_lists(&mut self, run: Run) {
        self.spare_lists.keep(run.changes);
        self.spare_lists.keep(run.outcomes);
    }

    fn forget_if_empty(&mut self, transaction: TransactionId) {
        let empty = self
            .transactions
            .get(&transaction)
            .is_some_and(|t| t.ops.is_empty() && t.waiting.is_none() && t.paused.is_none());
        if empty {
            self.forget_transaction(transaction);
        }
    }

    /// It is over here. The next one needs as much memory.
    pub(crate) fn forget_transaction(&mut self, id: TransactionId) -> Option<Epoch> {
        let t = self.transactions.remove(&id)?;
        self.shown_early.remove(&id);
        if let Some(redo) = &mut self.redo {
            redo.forget(id);
        }
        self.spare_ops.keep(t.ops);
        t.decided
    }

    /// The batch is through: the images go to the backups and the answer to the coordinator.
    fn finish_run(&mut self, run: Run, ctx: &mut Ctx<'_>) {
        let backups = run.changed.map_or(NodeSet::EMPTY, |f| self.view.backups(f));
        let carried = self.decide_with_images(&run, backups, ctx.node());
        self.send_images(&run, backups, carried, ctx);
        if ctx.crash_point(Fault::CrashAfterPrepare) {
            return;
        }
        self.forget_if_empty(run.transaction);
        if run.change_count == 0 {
            ctx.rests_on_lease(self.lease_until);
        }
        let conf = PrepareConf {
            transaction: run.transaction,
            epoch: self.epoch,
            backups,
            view: self.view.number,
            batch: run.batch,
            result_count: run.outcome_count,
            holds: u32::from(self.transactions.contains_key(&run.transaction)),
            carried: u32::from(carried),
            index_change_count: run.index_change_count,
            change_count: run.change_count,
        };
        ctx.send_with(run.coordinator, &conf, &[&run.outcomes, &run.index_changes]);
        self.keep_lists(run);
    }

    /// CARRY-2: true if the batch's images carry its part of the decision: it has changed something, all of it
    /// is in the images, and everyone sends them in the view that the coordinator had. If there is no other
    /// part nobody can refuse any more: the transaction is decided.
    fn decide_with_images(&mut self, run: &Run, backups: NodeSet, me: NodeId) -> bool {
        let Some(t) = self.transactions.get(&run.transaction) else { return false };
        let mine = |op: &Op| op.version == 0 || self.view.primary(op.fragment) == Some(me);
        // UNIQUE-2: the entries are still to be changed.
        let complete = run.index_change_count == 0 && run.view == self.view.number;
        let carries = run.carry_parts != 0
            && complete
            && !backups.is_empty()
            && t.ops.iter().all(mine)
            && (backups.len() == 1 || !self.only_locks(run.transaction, t));
        let epoch = self.epoch;
        if let Some(t) = self.transactions.get_mut(&run.transaction)
            && carries
            && run.carry_parts == 1
        {
            t.decided = Some(epoch);
        }
        carries
    }

    fn send_images(&self, run: &Run, backups: NodeSet, carried: bool, ctx: &mut Ctx<'_>) {
        if run.change_count == 0 {
            return;
        }
        let life = self.transactions.get(&run.transaction).map_or(0, |t| t.coordinator_life.get());
        let carry = Carry {
            epoch: self.epoch,
            sent_in: self.view.number,
            receivers: backups,
            parts: u32::from(run.carry_parts),
            reserved: 0,
        };
        let carry = if carried { carry } else { Carry::default() };
        let body = ReplicateReq {
            transaction: run.transaction,
            coordinator: run.coordinator,
            view: self.view.number,
            carry,
            batch: run.batch,
            statement: run.statement,
            change_count: run.change_count,
            coordinator_incarnation: life,
        };
        for backup in backups.iter() {
            ctx.send_with(BlockRef::ldm(backup, self.instance), &body, &[&run.changes]);
            if ctx.crash_point(Fault::CrashBetweenImages) {
                return;
            }
        }
    }

    fn execute(
        &mut self,
        asked: &Asked<'_>,
        run: &mut Run,
        ctx: &mut Ctx<'_>,
    ) -> Result<Step, Refusal> {
        self.counters.operations += 1;
        let (program, hash) = self.check(asked, ctx)?;
        let program = program.as_deref();
        let (table, id) = (asked.head.table, asked.head.fragment);
        if asked.kind == OperationKind::Read {
            return self.read_in_place(asked, hash, program, run);
        }
        let fragment = self.fragment_mut(table, id).ok_or(RefCode::StaleView)?;
        let row = match fragment.find_hashed(asked.key, hash) {
            Some(row) => row,
            None if matches!(asked.kind, OperationKind::Insert | OperationKind::Write) => {
                self.create_row(asked, hash)?
            }
            None => return Ok(Step::Done(OutcomeKind::Missing, None)),
        };
        match self.lock(asked, row, run, ctx)? {
            Locked::Yes => self.act(asked, program, row, run),
            Locked::Wait => Ok(Step::Wait(row)),
            Locked::Skip => Ok(Step::Done(OutcomeKind::Skipped, None)),
        }
    }

    /// Everything about an operation that can be wrong whatever the row holds (PROGRAM-1). Gives
    /// its program, and the hash of its key.
    fn check(
        &mut self,
        asked: &Asked<'_>,
        ctx: &Ctx<'_>,
    ) -> Result<(Option<Arc<Program>>, u64), RefCode> {
        let head = &asked.head;
        let table = self.tables.get(&head.table).ok_or(RefCode::TableUnknown)?;
        if table.def.schema_version != head.schema_version {
            return Err(RefCode::SchemaVersionOld);
        }
        let owns = self.view.primary(head.fragment) == Some(ctx.node());
        let (place, hash) = table.spread.place_of(asked.key);
        if !owns || place != head.fragment {
            return Err(RefCode::StaleView);
        }
        if asked.key.len() > limits::KEY_BYTES_MAX {
            return Err(RefCode::KeyTooLarge);
        }
        if matches!(asked.kind, OperationKind::Insert | OperationKind::Write) {
            check_row(table, asked.key, asked.row, &mut self.key_room)?;
        }
        let program = self.programs.read(table, asked.program)?;
        let fits = match (asked.kind, &program) {
            (_, None) | (OperationKind::Update, _) => true,
            (OperationKind::Insert | OperationKind::Write, Some(_)) => false,
            (_, Some(program)) => program.assignments.is_empty(),
        };
        if fits { Ok((program, hash)) } else { Err(RefCode::ProgramMalformed) }
    }

    fn create_row(&mut self, asked: &Asked<'_>, hash: u64) -> Result<RowId, RefCode> {
        if self.memory_bytes > self.config.memory_bytes {
            return Err(RefCode::MemoryFull);
        }
        let (table, fragment) = (asked.head.table, asked.head.fragment);
        self.on_fragment(table, fragment, |f, _| f.create(asked.key, hash))
            .ok_or(RefCode::StaleView)
    }

    /// Runs `work` on a fragment and keeps the count of used memory.
    pub(crate) fn on_fragment<R>(
        &mut self,
        table: TableId,
        fragment: FragmentId,
        work: impl FnOnce(&mut Fragment, &lats_values::RowLayout) -> R,
    ) -> Option<R> {
        let table = self.tables.get_mut(&table)?;
        let fragment = table.fragments.get_mut(&fragment)?;
        let before = fragment.bytes();
        let result = work(fragment, &table.layout);
        self.memory_bytes = self.memory_bytes + fragment.bytes() - before;
        Some(result)
    }

    /// Locks the row for the transaction.
    fn lock(
        &mut self,
        asked: &Asked<'_>,
        id: RowId,
        run: &Run,
        ctx: &mut Ctx<'_>,
    ) -> Result<Locked, RefCode> {
        let mode = match asked.kind {
            OperationKind::ReadShared | OperationKind::Reindex => LockMode::Shared,
            _ => LockMode::Exclusive,
        };
        if mode == LockMode::Shared && ctx.fault(Fault::BugShareWithoutLock) {
            return Ok(Locked::Yes);
        }
        let (table, fragment) = (asked.head.table, asked.head.fragment);
        let rows = self.fragment_mut(table, fragment).ok_or(RefCode::StaleView)?;
        let of_index = rows.of_index;
        let lock = rows.lock_mut(id).ok_or(RefCode::StaleView)?;
        let flags = asked.head.flags;
        match lock.acquire(run.transaction, mode, flags & (LOCK_NOWAIT | LOCK_SKIP) == 0) {
            Grant::Held => Ok(Locked::Yes),
            Grant::New => {
                self.note_op(run, (table, fragment, id), of_index, 0);
                Ok(Locked::Yes)
            }
            Grant::Queued => Ok(Locked::Wait),
            Grant::NotFree if flags & LOCK_SKIP != 0 => Ok(Locked::Skip),
            Grant::NotFree => Err(RefCode::LockNotFree),
            Grant::Full => Err(RefCode::LockQueueFull),
        }
    }

    fn note_op(
        &mut self,
        run: &Run,
        at: (TableId, FragmentId, RowId),
        of_index: bool,
        version: u64,
    ) -> Option<&mut Transaction> {
        let (table, fragment, row) = at;
        let statement = run.statement;
        let t = self.transactions.get_mut(&run.transaction)?;
        let same = |op: &&mut Op| {
            (op.table, op.fragment, op.row, op.statement) == (table, fragment, row, statement)
        };
        match t.ops.back_mut().filter(same) {
            // The row was locked for this change.
            Some(op) if op.version == 0 => op.version = version,
            _ => {
                let settled = false;
                t.ops.push_back(Op { table, fragment, of_index, settled, row, version, statement });
            }
        }
        Some(t)
    }

    /// Does what was asked with a row that the transaction has locked.
    fn act(
        &mut self,
        asked: &Asked<'_>,
        program: Option<&Program>,
        id: RowId,
        run: &mut Run,
    ) -> Result<Step, Refusal> {
        let room = self.room_for(asked, id);
        let table = self.tables.get(&asked.head.table).ok_or(RefCode::TableUnknown)?;
        let row = table.fragments.get(&asked.head.fragment).and_then(|f| f.row(id));
        let seen = row.and_then(|r| r.seen_by(run.transaction));
        if asked.kind == OperationKind::Reindex {
            let kind = run.note_entries_to_build(table, asked.head.index, asked.key, seen)?;
            return Ok(Step::Done(kind, None));
        }
        let outcome = decide(asked, program, (table, seen), room, &mut run.work_left)?;
        let (image, answer) = match outcome {
            Act::Answer(kind, image) => return Ok(Step::Done(kind, image)),
            Act::Store(image, answer) => (Some(image), answer),
            Act::Delete(answer) => (None, answer),
        };
        let grows = image.as_ref().map_or(0, Vec::len) > seen.map_or(0, <[u8]>::len);
        if grows && self.memory_bytes > self.config.memory_bytes {
            return Err(RefCode::MemoryFull.into());
        }
        let about = (asked.head.index, asked.head.flags, asked.key);
        run.note_index_changes(table, about, seen, image.as_deref())?;
        self.store(asked, id, image, run)?;
        Ok(Step::Done(OutcomeKind::Done, answer))
    }

    /// Memory for the image that an operation may store.
    fn room_for(&mut self, asked: &Asked<'_>, id: RowId) -> Vec<u8> {
        let length = match asked.kind {
            OperationKind::Insert | OperationKind::Write => Some(asked.row.len()),
            OperationKind::Update => None,
            _ => return Vec::new(),
        };
        let fragment = self.fragment_mut(asked.head.table, asked.head.fragment);
        fragment.map_or_else(Vec::new, |f| f.room(id, length))
    }

    fn store(
        &mut self,
        asked: &Asked<'_>,
        id: RowId,
        image: Option<Vec<u8>>,
        run: &mut Run,
    ) -> Result<(), RefCode> {
        let (table, fragment) = (asked.head.table, asked.head.fragment);
        let (transaction, view) = (run.transaction, self.view.number.get());
        let (statement, changes) = (run.statement, &mut run.changes);
        let (number, of_index) = self
            .on_fragment(table, fragment, |f, layout| {
                let over = f.row(id).map_or(0, Row::newest_number);
                let number = f.next_number();
                require!(number >> crate::view::NUMBERS_PER_VIEW_BITS <= view, "COMMIT-8");
                let bytes = image.as_deref().unwrap_or_default();
                let change = Change {
                    table,
                    fragment,
                    deleted: u16::from(image.is_none()),
                    row_id: id,
                    version: number,
                    over,
                    epoch: 0,
                    key_bytes: asked.key.len() as u32,
                    row_bytes: bytes.len() as u32,
                };
                list::push(changes, &change, [asked.key, bytes, &[]]);
                let image = image.map(Vec::into_boxed_slice);
                let version = Version { transaction, number, statement, image, replicated: false };
                f.push_version(id, version, layout);
                (number, f.of_index)
            })
            .ok_or(RefCode::StaleView)?;
        if let Some(t) = self.note_op(run, (table, fragment, id), of_index, number) {
            t.executed = true;
        }
        run.change_count += 1;
        run.changed = Some(fragment);
        Ok(())
    }

    fn read_in_place(
        &mut self,
        asked: &Asked<'_>,
        hash: u64,
        program: Option<&Program>,
        run: &mut Run,
    ) -> Result<Step, Refusal> {
        let table = self.tables.get(&asked.head.table).ok_or(RefCode::TableUnknown)?;
        if table.def.index_of.is_some() {
            let (kind, holders) = self.read_holders(&asked.head, asked.key)?;
            return Ok(Step::Done(kind, holders));
        }
        let fragment = asked.head.fragment;
        // The transaction's answer says nothing of that (READ-7).
        let (of, mut changed) = ((asked.key, hash), Epoch::default());
        let image = self.committed_read(table, fragment, of, run.transaction, &mut changed)?;
        let (kind, image) = project(table, program, image, &mut run.work_left)?;
        Ok(Step::Done(kind, image))
    }

    fn wait(
        &mut self,
        run: Run,
        rest: &[u8],
        row: (TableId, FragmentId, RowId),
        span: Duration,
        ctx: &mut Ctx<'_>,
    ) {
        self.counters.lock_waits += 1;
        let gives_up = ctx.now().plus(span);
        let transaction = run.transaction;
        self.waits.insert((gives_up, transaction));
        self.arm_lock_waits(ctx);
        let next_report = ctx.now().plus(REPORT_AFTER);
        self.reports.insert((next_report, transaction));
        ctx.after(REPORT_AFTER, crate::TIMER_REPORTS);
        if let Some(t) = self.transactions.get_mut(&transaction) {
            let rest = rest.to_vec();
            t.waiting = Some(WaitingBatch { run, rest, row, gives_up, next_report, reports: 0 });
        }
    }

    /// LOCK-6: how long an operation with these flags may wait.
    fn longest_wait(&self, flags: u32) -> Duration {
        match flags >> LOCK_WAIT_SHIFT {
            0 => Duration::from_millis(self.view.config.lock_wait_ms),
            asked_ms => Duration::from_millis(u64::from(asked_ms)),
        }
    }

    /// Takes a waiting batch out of its wait; its place in the lock's queue is left.
    fn take_waiting(&mut self, transaction: TransactionId) -> Option<WaitingBatch> {
        let waiting = self.transactions.get_mut(&transaction)?.waiting.take()?;
        self.waits.remove(&(waiting.gives_up, transaction));
        self.reports.remove(&(waiting.next_report, transaction));
        Some(waiting)
    }

    /// The lock that a batch waited for is granted: go on.
    pub(crate) fn resume_batch(&mut self, transaction: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(mut waiting) = self.take_waiting(transaction) else { return };
        waiting.run.waited = OUTCOME_WAITED;
        let (table, fragment, _) = waiting.row;
        let of_index = self.fragment(table, fragment).is_some_and(|f| f.of_index);
        self.note_op(&waiting.run, waiting.row, of_index, 0);
        self.go_on(waiting.run, &waiting.rest, ctx);
    }

    /// Refuses a batch that waits for a lock, or that has given way to other work.
    pub(crate) fn cancel_wait(
        &mut self,
        transaction: TransactionId,
        code: RefCode,
        ctx: &mut Ctx<'_>,
    ) {
        let paused = self.transactions.get_mut(&transaction).and_then(|t| t.paused.take());
        if let Some(paused) = paused {
            // SLICE-5: no image of it has left this node.
            return self.refuse_run(paused.run, &code.into(), ctx);
        }
        let Some(waiting) = self.take_waiting(transaction) else { return };
        let (table, fragment, id) = waiting.row;
        let row = self.fragment_mut(table, fragment).and_then(|f| f.row_mut(id));
        let mut granted = Vec::new();
        if let Some(busy) = row.and_then(|r| r.busy.as_mut()) {
            busy.lock.leave_queue(transaction);
            granted = busy.lock.grant_next();
        }
        self.on_fragment(table, fragment, |f, _| {
            f.come_to_rest(id);
            f.collect(id);
        });
        self.refuse_run(waiting.run, &code.into(), ctx);
        granted.into_iter().for_each(|t| self.resume_batch(t, ctx));
    }

    /// Sees to it that a timer goes off not later than the first wait ends. Waits may last for hours
    /// and most end early, so there is none for each.
    fn arm_lock_waits(&mut self, ctx: &mut Ctx<'_>) {
        let Some((first, _)) = self.waits.first().copied() else { return };
        if self.lock_timers.first().is_none_or(|armed| *armed > first) {
            self.lock_timers.insert(first);
            ctx.after(first.since(ctx.now()), crate::TIMER_LOCK_WAITS);
        }
    }

    /// LOCK-6: refuses the batches that have waited too long.
    pub(crate) fn give_up_lock_waits(&mut self, ctx: &mut Ctx<'_>) {
        while self.lock_timers.first().is_some_and(|armed| *armed <= ctx.now()) {
            self.lock_timers.pop_first();
        }
        while let Some((gives_up, transaction)) = self.waits.first().copied() {
            if gives_up > ctx.now() {
                break;
            }
            self.waits.pop_first();
            self.cancel_wait(transaction, RefCode::LockTimeout, ctx);
        }
        self.arm_lock_waits(ctx);
    }
}

impl Run {
    /// The batch's number within the transaction.
    pub(crate) fn batch(&self) -> u32 {
        self.batch
    }

    /// True if the transaction may wait for other batches of the same request too.
    pub(crate) fn is_part_of_many(&self) -> bool {
        self.part_of_many
    }

    /// True if its images or results might not fit into a signal with one more.
    fn is_full(&self) -> bool {
        let longest = limits::ROW_BYTES_MAX + limits::KEY_BYTES_MAX + 256;
        // Changes of entries travel with the outcomes, and each operation may add to both.
        let answer = match self.index_changes.len() {
            0 => self.outcomes.len(),
            _ => self.outcomes.len() + limits::INDEX_CHANGE_BYTES_MAX,
        };
        answer.max(self.changes.len()) + longest > limits::BATCH_BYTES_MAX
    }

    fn add_outcome(&mut self, index: u32, kind: OutcomeKind, image: Option<Vec<u8>>) {
        push_outcome(&mut self.outcomes, (index, self.waited), kind, image.as_deref());
        self.outcome_count += 1;
    }
}

/// Appends an operation's outcome to an answer.
pub(crate) fn push_outcome(
    out: &mut Vec<u8>,
    (index, waited): (u32, u32),
    kind: OutcomeKind,
    image: Option<&[u8]>,
) {
    let row = image.unwrap_or_default();
    let has_row = if image.is_some() { OUTCOME_HAS_ROW } else { 0 };
    let outcome =
        Outcome { index, kind: kind as u32, flags: has_row | waited, row_bytes: row.len() as u32 };
    list::push(out, &outcome, [row, &[], &[]]);
}

fn refuse(run: &Run, refusal: &Refusal, ctx: &mut Ctx<'_>) {
    let (errno, text) = refusal.parts();
    let body = PrepareRef {
        transaction: run.transaction,
        batch: run.batch,
        code: u32::from(refusal.code.number()),
        backups: NodeSet::EMPTY,
        errno,
        reserved: 0,
    };
    ctx.send_with(run.coordinator, &body, &[&text]);
}

/// A row image from outside: it must fit the table, and its key must be the one it came with.
fn check_row(table: &Table, key: &[u8], row: &[u8], room: &mut Vec<u8>) -> Result<(), RefCode> {
    if row.len() > limits::ROW_BYTES_MAX {
        return Err(RefCode::RowTooLarge);
    }
    table.layout.validate(row)?;
    check_key(table, key, row, room)
}

/// `room` is memory for the row's own key.
fn check_key(table: &Table, key: &[u8], row: &[u8], room: &mut Vec<u8>) -> Result<(), RefCode> {
    room.clear();
    table.layout.key_of(row, &table.def.primary_key, room);
    if *room == key { Ok(()) } else { Err(RefCode::RowMalformed) }
}

/// What is done with a row, and which row image is answered.
enum Act {
    Answer(OutcomeKind, Option<Vec<u8>>),
    Store(Vec<u8>, Option<Vec<u8>>),
    Delete(Option<Vec<u8>>),
}

/// What an operation does to the image that its transaction sees.
fn decide(
    asked: &Asked<'_>,
    program: Option<&Program>,
    (table, seen): (&Table, Option<&[u8]>),
    mut room: Vec<u8>,
    work_left: &mut u64,
) -> Result<Act, Refusal> {
    let answer = |kind| Ok(Act::Answer(kind, None));
    match (asked.kind, seen) {
        // UNIQUE-3: whose the key is.
        (OperationKind::Insert, Some(image)) if table.def.index_of.is_some() => {
            Ok(Act::Answer(OutcomeKind::Exists, Some(image.to_vec())))
        }
        (OperationKind::Insert, Some(_)) => answer(OutcomeKind::Exists),
        (OperationKind::Insert, None) | (OperationKind::Write, _) => {
            room.extend_from_slice(asked.row);
            Ok(Act::Store(room, None))
        }
        (_, None) => answer(OutcomeKind::Missing),
        (OperationKind::Delete, Some(image)) if !asked.row.is_empty() && asked.row != image => {
            answer(OutcomeKind::NotMatched)
        }
        (OperationKind::Reindex, Some(_)) => answer(OutcomeKind::Done),
        (OperationKind::Delete, Some(image)) => {
            let Some(program) = program else { return Ok(Act::Delete(None)) };
            if program.matches_within(&table.layout, image, work_left)? {
                return Ok(Act::Delete(wanted(program, table, image)));
            }
            answer(OutcomeKind::NotMatched)
        }
        (OperationKind::Update, Some(image)) => {
            let program = program.ok_or(RefCode::ProgramMalformed)?;
            update(asked, program, (table, image), room, work_left)
        }
        (OperationKind::Read | OperationKind::ReadShared | OperationKind::ReadExclusive, _) => {
            let (kind, image) = project(table, program, seen, work_left)?;
            Ok(Act::Answer(kind, image))
        }
    }
}

fn update(
    asked: &Asked<'_>,
    program: &Program,
    (table, image): (&Table, &[u8]),
    room: Vec<u8>,
    work_left: &mut u64,
) -> Result<Act, Refusal> {
    let Some(new) = program.updated_within(&table.layout, image, room, work_left)? else {
        return Ok(Act::Answer(OutcomeKind::NotMatched, None));
    };
    let answer = wanted(program, table, &new);
    if new == image {
        return Ok(Act::Answer(OutcomeKind::Unchanged, answer));
    }
    debug_assert!(table.layout.validate(&new).is_ok(), "a row that was made here");
    if program.assigns_any(&table.def.primary_key) {
        check_key(table, asked.key, &new, &mut Vec::new())
            .map_err(|_| RefCode::ProgramMalformed)?;
    }
    Ok(Act::Store(new, answer))
}

/// PROGRAM-2: a change answers with the columns that its program asks for: of the new row, or of
/// the one that is gone.
fn wanted(program: &Program, table: &Table, image: &[u8]) -> Option<Vec<u8>> {
    program.projection.as_ref()?;
    let mut out = Vec::new();
    program.project(&table.layout, image, &mut out);
    Some(out)
}

/// Reads many rows into one answer.
pub(crate) struct Reading {
    /// What programs may still do (PROGRAM-3).
    work_left: u64,
    projected: Vec<u8>,
}

impl Reading {
    pub(crate) fn new(work_left: u64) -> Self {
        Self { work_left, projected: Vec::new() }
    }

    /// Appends the outcome of reading an image through a program's filter and projection.
    pub(crate) fn push(
        &mut self,
        out: &mut Vec<u8>,
        index: u32,
        (table, program): (&Table, Option<&Program>),
        image: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        let (kind, image) = match (image, program) {
            (None, _) => (OutcomeKind::Missing, None),
            (image, None) => (OutcomeKind::Done, image),
            (Some(image), Some(program)) => {
                if program.matches_within(&table.layout, image, &mut self.work_left)? {
                    self.projected.clear();
                    program.project(&table.layout, image, &mut self.projected);
                    (OutcomeKind::Done, Some(&self.projected[..]))
                } else {
                    (OutcomeKind::NotMatched, None)
                }
            }
        };
        push_outcome(out, (index, 0), kind, image);
        Ok(())
    }
}

/// The outcome of reading an image through a program's filter and projection.
pub(crate) fn project(
    table: &Table,
    program: Option<&Program>,
    image: Option<&[u8]>,
    work_left: &mut u64,
) -> Result<(OutcomeKind, Option<Vec<u8>>), Refusal> {
    let Some(image) = image else { return Ok((OutcomeKind::Missing, None)) };
    let Some(program) = program else { return Ok((OutcomeKind::Done, Some(image.to_vec()))) };
    if !program.matches_within(&table.layout, image, work_left)? {
        return Ok((OutcomeKind::NotMatched, None));
    }
    let mut out = Vec::new();
    program.project(&table.layout, image, &mut out);
    Ok((OutcomeKind::Done, Some(out)))
}
