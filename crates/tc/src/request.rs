//! A client's request: route its operations to the primaries of their rows.

use crate::{
    TableRoute, Tc,
    abort::send_refusal,
    carry::Carry,
    transaction::{Batch, Debt, Request, State, Transaction},
};
use alloc::vec::Vec;
use lats_base::{RefCode, SortedMap, SortedSet, TableId, TransactionId, limits};
use lats_kernel::Ctx;
use lats_signals::{
    BlockKind, BlockRef, Signal,
    commit::{
        CANCEL_WAIT, FLAG_COMMIT, FLAG_COMMITTED, FLAG_ROLLBACK, FLAG_ROLLBACK_TO, PART_OF_MANY,
        PrepareReq, TcKeyConf, TcKeyReq,
    },
    control::ClientGoneRep,
    list::{self, Operation, OperationKind},
};

/// Operations for one primary.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) count: u32,
    pub(crate) operations: Vec<u8>,
    pub(crate) reads_with_lock: bool,
}

/// Operations by the local data manager of their rows' primary.
pub(crate) type Parts = SortedMap<BlockRef, Part, 2>;

/// True of requests that end a transaction, or take back a part of it.
fn ends_or_commits(flags: u32) -> bool {
    flags & (FLAG_COMMIT | FLAG_ROLLBACK | FLAG_ROLLBACK_TO) != 0
}

impl Tc {
    pub(crate) fn on_tc_key_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<TcKeyReq>();
        let client = signal.sender();
        let id = req.transaction;
        let takes = !self.quiet && self.closing == 0;
        if takes && self.may_serve(ctx) && self.hold_back(&req, signal) {
            return;
        }
        if let Err(code) = self.admit(&req, client, ctx) {
            return self.refuse(client, &req, code, ctx);
        }
        self.hear_client_epoch(req.epoch_seen);
        let t = self.transactions.get_or_insert_with(id, || Transaction::new(Some(client)));
        t.answered_below = req.answered_below;
        t.statement = t.statement.max(req.statement);
        t.request = Some(Request::new(&req, self.spare_lists.take()));
        match t.state {
            State::Aborted => return self.finish_abort(id, ctx),
            // It is rolled back where that can be done.
            State::Settling | State::Aborting if t.debt == Debt::Last => {
                return self.tell_without_the_silent(id, ctx);
            }
            // It is being rolled back; the end of that answers.
            State::Settling | State::Aborting => return,
            _ => {}
        }
        if t.needs_any_of(self.silent) && req.flags & FLAG_ROLLBACK == 0 {
            return self.abort(id, RefCode::NodeSilent.into(), ctx);
        }
        if req.flags & FLAG_ROLLBACK != 0 {
            return self.abort(id, RefCode::TransactionAborted.into(), ctx);
        }
        if req.flags & FLAG_ROLLBACK_TO != 0 {
            t.state = State::SettlingStatement;
            return self.when_settled(id, ctx);
        }
        self.send_parts(&req, signal.payload(), ctx);
    }

    /// Refuses a request before anything was done for it. An open transaction of the client hears
    /// of it as of any other refusal.
    fn refuse(&mut self, client: BlockRef, req: &TcKeyReq, code: RefCode, ctx: &mut Ctx<'_>) {
        let id = req.transaction;
        let t = self.transactions.get_mut(&id);
        let Some(t) = t.filter(|t| t.client == Some(client) && t.is_between_requests()) else {
            return send_refusal(client, id, req.request, (&code.into(), 0), ctx);
        };
        // It takes nothing back but itself.
        t.request = Some(Request { rollback_to: None, ..Request::new(req, Vec::new()) });
        match t.state {
            State::Idle => self.refuse_request(id, code.into(), ctx),
            _ => self.abort(id, code.into(), ctx),
        }
    }

    /// What can be wrong with a request before anything is done for it.
    fn admit(&self, req: &TcKeyReq, client: BlockRef, ctx: &Ctx<'_>) -> Result<(), RefCode> {
        let operations = req.operation_count as usize;
        let ends = req.flags & (FLAG_ROLLBACK | FLAG_ROLLBACK_TO) != 0;
        let known = self.transactions.get(&req.transaction);
        let newest = known.map_or(1, |t| t.statement.max(1));
        // What refused requests take back is known by the statement's number (STATEMENT-2).
        let in_order = (newest..CANCEL_WAIT).contains(&req.statement) || ends;
        if req.transaction.is_none()
            || operations > limits::OPERATIONS_PER_REQUEST_MAX
            || (ends && operations > 0)
            || !in_order
            || req.rollback_to == CANCEL_WAIT
        {
            return Err(RefCode::RequestMalformed);
        }
        // STOP-4: what has begun needs no lease here. Data managers compare theirs when rows are read (LEASE-7), and whether a
        // change is committed its backups say, who confirm nothing to a coordinator that was removed.
        let begins = known.is_none() && (operations > 0 || !ends_or_commits(req.flags));
        if begins && (!self.may_serve(ctx) || (self.quiet && self.closing == 0)) {
            return Err(RefCode::NotServing);
        }
        let Some(t) = known else {
            if self.closing > 0 && !ends {
                return Err(RefCode::ShuttingDown);
            }
            let full = self.transactions.len() >= limits::TRANSACTIONS_PER_COORDINATOR_MAX;
            return if full { Err(RefCode::TransactionLimit) } else { Ok(()) };
        };
        if t.client != Some(client) {
            // It has lost the connection that the transaction belonged to, and with it the
            // transaction.
            return Err(RefCode::TransactionAborted);
        }
        if !t.is_between_requests() {
            return Err(RefCode::RequestMalformed);
        }
        // Changes of unique indexes may have brought it above already: it can still be ended.
        if operations > 0 && t.operations + operations > limits::OPERATIONS_PER_TRANSACTION_MAX {
            return Err(RefCode::OperationLimit);
        }
        Ok(())
    }

    fn send_parts(&mut self, req: &TcKeyReq, payload: &[u8], ctx: &mut Ctx<'_>) {
        let id = req.transaction;
        let room = self.spare_lists.take();
        let (parts, tables) = match self.split(payload, room) {
            Ok(split) => split,
            Err(code) => return self.refuse_request(id, code.into(), ctx),
        };
        let carry_parts = self.carry_parts(req, &parts, ctx);
        let flags = if parts.len() > 1 { PART_OF_MANY } else { 0 };
        let Some(t) = self.transactions.get_mut(&id) else { return };
        t.state = State::Preparing;
        t.carry = Carry::of(carry_parts);
        t.seen_searches.clear();
        t.operations += req.operation_count as usize;
        for table in tables.iter() {
            t.tables.insert(*table);
        }
        self.send_batches(id, (req.statement, flags, carry_parts), (parts, false), ctx);
        self.when_settled(id, ctx);
    }

    pub(crate) fn send_batches(
        &mut self,
        id: TransactionId,
        (statement, flags, carry_parts): (u32, u16, u16),
        (parts, of_index): (Parts, bool),
        ctx: &mut Ctx<'_>,
    ) {
        let (view, epoch) = (self.view.number, self.epochs.current);
        let Some(t) = self.transactions.get_mut(&id) else { return };
        for (primary, part) in parts {
            let reads_with_lock = part.reads_with_lock;
            let new = Batch { reads_with_lock, of_index, ..Batch::new(primary, part.count) };
            let batch = t.add_batch(new);
            let body = PrepareReq {
                transaction: id,
                view,
                epoch,
                batch,
                statement,
                operation_count: part.count,
                flags,
                carry_parts,
            };
            ctx.send_with(primary, &body, &[&part.operations]);
            self.spare_lists.keep(part.operations);
        }
    }

    /// Sorts operations by the local data manager of their row's primary. The first one's list has its memory from
    /// `room`.
    fn split(
        &self,
        payload: &[u8],
        mut room: Vec<u8>,
    ) -> Result<(Parts, SortedSet<TableId, 4>), RefCode> {
        let (mut parts, mut tables) = (Parts::new(), SortedSet::new());
        let mut last: Option<(TableId, &TableRoute)> = None;
        for (index, (mut head, strings)) in list::items::<Operation>(payload).enumerate() {
            let table = match last {
                Some((id, table)) if id == head.table => table,
                _ => self.tables.get(&head.table).ok_or(RefCode::TableUnknown)?,
            };
            // Entries of unique indexes come and go with their index: SCHEMA-1 is about rows.
            if last.replace((head.table, table)).map(|l| l.0) != Some(head.table) && !table.is_index
            {
                tables.insert(head.table);
            }
            let kind = OperationKind::from_number(head.kind).ok_or(RefCode::RequestMalformed)?;
            // UNIQUE-1: entries change with their rows only.
            if table.is_index && kind != OperationKind::Read {
                return Err(RefCode::RequestMalformed);
            }
            head.index = index as u32;
            let primary = self.route_in(table, &mut head, strings[0])?;
            // Mostly there is one part: it has all bytes.
            let is_first = parts.is_empty();
            let part = parts.get_or_default(primary);
            if is_first {
                part.operations = core::mem::take(&mut room);
                part.operations.reserve(payload.len());
            }
            part.count += 1;
            part.reads_with_lock |= matches!(
                kind,
                OperationKind::ReadShared | OperationKind::ReadExclusive | OperationKind::Reindex
            );
            list::push(&mut part.operations, &head, strings);
        }
        Ok((parts, tables))
    }

    /// Fills in the operation's fragment; the local data manager of its primary.
    pub(crate) fn route(&self, head: &mut Operation, key: &[u8]) -> Result<BlockRef, RefCode> {
        let table = self.tables.get(&head.table).ok_or(RefCode::TableUnknown)?;
        self.route_in(table, head, key)
    }

    fn route_in(
        &self,
        table: &TableRoute,
        head: &mut Operation,
        key: &[u8],
    ) -> Result<BlockRef, RefCode> {
        head.fragment = table.spread.fragment_of(key);
        let node = self.view.route(head.fragment)?;
        if self.silent.contains(node) {
            return Err(RefCode::NodeSilent);
        }
        Ok(BlockRef::ldm(node, self.view.ldm_instance(head.fragment)))
    }

    /// Answers the request that is being worked on.
    pub(crate) fn answer(&mut self, id: TransactionId, committed: bool, ctx: &mut Ctx<'_>) {
        let Some(t) = self.transactions.get_mut(&id) else { return };
        let (Some(request), Some(client)) = (t.request.take(), t.client) else { return };
        let conf = TcKeyConf {
            transaction: id,
            request: request.id,
            epoch: t.epoch,
            result_count: request.outcome_count,
            flags: if committed { FLAG_COMMITTED } else { 0 },
            restarts: self.view.restarts,
            reserved: 0,
        };
        ctx.send_with(client, &conf, &[&request.outcomes]);
        self.spare_lists.keep(request.outcomes);
    }

    pub(crate) fn on_client_gone_rep(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let slot = signal.body::<ClientGoneRep>().slot;
        let client = BlockRef::new(ctx.node(), BlockKind::Client, slot as u32);
        let orphans: Vec<TransactionId> = self
            .transactions
            .iter()
            .filter(|(_, t)| t.client == Some(client))
            .map(|(id, _)| id)
            .collect();
        for id in orphans {
            if let Some(t) = self.transactions.get_mut(&id) {
                t.client = None;
            }
            self.abort(id, RefCode::TransactionAborted.into(), ctx);
        }
        self.queries.retain(|_, q| q.client != client);
        self.held.forget_client(client);
    }
}
