//! Committed reads at any replica, without locks (READ-1, READ-2).

use crate::{
    Fragment, Ldm, Refusal, Table,
    prepare::{Reading, push_outcome},
    programs::Programs,
    row::Row,
};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use lats_base::{Epoch, FragmentId, NodeId, RefCode, TableId, TransactionId, limits};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    list::{self, Operation, OperationKind, OutcomeKind},
    query::{ReadConf, ReadRef, ReadReq},
};

/// How often a read may be passed on before the client has to look at its map again.
const HOPS_MAX: u32 = 3;

enum Found<'r> {
    /// The row that may be shown, if there is one.
    Row(&'r Table, Option<&'r [u8]>),
    /// Whose an entry of a unique index is.
    Entry(OutcomeKind, Option<Vec<u8>>),
    /// Another replica must answer: this one cannot know the newest version.
    Ask(NodeId),
}

/// Where rows are that a request reads.
#[derive(Clone, Copy)]
struct Place<'l> {
    of: (TableId, u32, FragmentId),
    table: &'l Table,
    rows: Option<&'l Fragment>,
    primary: Result<NodeId, RefCode>,
    /// This node is the primary.
    is_mine: bool,
    is_in_sync: bool,
}

/// Places that a request has looked at: of those with the same last bits, the last one. Mostly its rows are in few of them.
#[derive(Default)]
struct Places<'l>([Option<Place<'l>>; PLACES]);

const PLACES: usize = 4;

impl<'l> Places<'l> {
    fn get(
        &mut self,
        head: &Operation,
        look: impl FnOnce() -> Result<Place<'l>, RefCode>,
    ) -> Result<Place<'l>, RefCode> {
        let kept = &mut self.0[usize::from(head.fragment.get()) % PLACES];
        let of = (head.table, head.schema_version, head.fragment);
        match kept.filter(|place| place.of == of) {
            Some(place) => Ok(place),
            None => Ok(*kept.insert(look()?)),
        }
    }
}

/// What one who reads keeps from one request to the next.
#[derive(Debug, Default)]
pub struct Reader {
    answer: Vec<u8>,
    /// What the answer shows is durable with this epoch (READ-7).
    changed: Epoch,
    /// None before the first one is read: a reader goes from hand to hand.
    programs: Option<Box<Programs>>,
    /// Rows read without locks.
    pub(crate) reads: u64,
}

impl Reader {
    /// How many rows it has read since the last call.
    pub fn take_reads(&mut self) -> u64 {
        core::mem::take(&mut self.reads)
    }
}

impl Ldm {
    pub(crate) fn on_read_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let mut reader = core::mem::take(&mut self.reader);
        self.read(signal, &mut reader, ctx);
        self.reader = reader;
    }

    /// Reads without changing anything, so that others may do it, too (QUERY-1).
    pub(crate) fn read(&self, signal: &Signal<'_>, reader: &mut Reader, ctx: &mut Ctx<'_>) {
        let req = signal.body::<ReadReq>();
        if !self.may_serve(ctx) {
            return refuse(&req, &RefCode::NotServing.into(), ctx);
        }
        if req.as_of != Epoch::default() {
            return refuse(&req, &RefCode::SnapshotTooOld.into(), ctx);
        }
        reader.changed = Epoch::default();
        self.read_rows(&req, signal.payload(), reader, ctx);
        reader.answer.clear();
    }

    fn read_rows(&self, req: &ReadReq, payload: &[u8], reader: &mut Reader, ctx: &mut Ctx<'_>) {
        let outcomes = &mut reader.answer;
        let mut count = 0;
        let mut reading = Reading::new(limits::PROGRAM_WORK_MAX);
        // A single read finds nothing in what others have looked at.
        let mut places = (req.operation_count > 1).then(Places::default);
        let mut passed: BTreeMap<NodeId, (u32, Vec<u8>)> = BTreeMap::new();
        for (head, strings) in list::items::<Operation>(payload) {
            reader.reads += 1;
            let (operation, changed) = ((&head, strings[0]), &mut reader.changed);
            match self.read_one(operation, places.as_mut(), req.transaction, changed, ctx) {
                Ok(Found::Row(table, image)) => {
                    let program = reader
                        .programs
                        .get_or_insert_default()
                        .read(table, strings[2])
                        .map_err(Refusal::from);
                    let pushed = program.and_then(|program| {
                        reading.push(outcomes, head.index, (table, program.as_deref()), image)
                    });
                    if let Err(refusal) = pushed {
                        return refuse(req, &refusal, ctx);
                    }
                    count += 1;
                }
                Ok(Found::Entry(kind, holders)) => {
                    push_outcome(outcomes, (head.index, 0), kind, holders.as_deref());
                    count += 1;
                }
                Ok(Found::Ask(node)) => {
                    let entry = passed.entry(node).or_default();
                    entry.0 += 1;
                    list::push(&mut entry.1, &head, strings);
                }
                Err(code) => return refuse(req, &code.into(), ctx),
            }
            if outcomes.len() > limits::SCAN_BATCH_BYTES {
                let count = core::mem::take(&mut count);
                self.answer_read(req, (count, reader.changed), outcomes, ctx);
                outcomes.clear();
            }
        }
        if !passed.is_empty() && req.hops >= HOPS_MAX {
            return refuse(req, &RefCode::StaleView.into(), ctx);
        }
        for (node, (operation_count, operations)) in passed {
            let body = ReadReq { operation_count, hops: req.hops + 1, ..*req };
            ctx.send_with(BlockRef::ldm(node, self.instance), &body, &[&operations]);
        }
        if count > 0 || req.operation_count == 0 {
            self.answer_read(req, (count, reader.changed), outcomes, ctx);
        }
    }

    /// Sends results: a part of them, if there are many.
    fn answer_read(
        &self,
        req: &ReadReq,
        (result_count, changed): (u32, Epoch),
        outcomes: &[u8],
        ctx: &mut Ctx<'_>,
    ) {
        let (request, epoch) = (req.request, self.epoch);
        let changed = if ctx.fault(Fault::BugShowUndurable) { Epoch::default() } else { changed };
        let body = ReadConf { request, epoch, changed, result_count, reserved: 0 };
        ctx.rests_on_lease(self.lease_until);
        ctx.send_with(req.reply_to, &body, &[outcomes]);
    }

    /// Where the rows of an operation are, and what this node may say of them.
    fn place(&self, head: &Operation, ctx: &Ctx<'_>) -> Result<Place<'_>, RefCode> {
        let table = self.tables.get(&head.table).ok_or(RefCode::TableUnknown)?;
        if table.def.schema_version != head.schema_version {
            return Err(RefCode::SchemaVersionOld);
        }
        let primary = self.view.route(head.fragment);
        let is_mine = primary == Ok(ctx.node());
        Ok(Place {
            of: (head.table, head.schema_version, head.fragment),
            table,
            rows: table.fragments.get(&head.fragment),
            primary,
            is_mine,
            // Only who is in sync becomes primary.
            is_in_sync: is_mine || self.view.in_sync(head.fragment).contains(ctx.node()),
        })
    }

    fn read_one<'l>(
        &'l self,
        (head, key): (&Operation, &[u8]),
        places: Option<&mut Places<'l>>,
        transaction: TransactionId,
        changed: &mut Epoch,
        ctx: &mut Ctx<'_>,
    ) -> Result<Found<'l>, RefCode> {
        if OperationKind::from_number(head.kind) != Some(OperationKind::Read) {
            return Err(RefCode::RequestMalformed);
        }
        let place = match places {
            Some(places) => places.get(head, || self.place(head, ctx))?,
            None => self.place(head, ctx)?,
        };
        let (table, rows) = (place.table, place.rows);
        // Whoever errs about the fragment must not be told that there is no such row.
        let (fragment, hash) = table.spread.place_of(key);
        if fragment != head.fragment {
            return Err(RefCode::StaleView);
        }
        let primary = place.primary?;
        if table.def.index_of.is_some() {
            if !place.is_in_sync {
                return Ok(Found::Ask(primary));
            }
            let (kind, holders) = self.read_holders(head, key)?;
            *changed = rows.map_or(*changed, |f| f.changed.max(*changed));
            return Ok(Found::Entry(kind, holders));
        }
        let stale = !place.is_mine && ctx.fault(Fault::BugReadStaleBackup);
        let asks = !place.is_mine && !stale;
        let Some(rows) = rows.filter(|_| !asks || place.is_in_sync) else {
            return if asks { Ok(Found::Ask(primary)) } else { Err(RefCode::StaleView) };
        };
        let row = rows.find_hashed(key, hash).and_then(|id| rows.row(id));
        if asks && row.is_some_and(|row| !row.pending().is_empty()) {
            // READ-1: a backup knows the newest version that anyone can have seen if it is in sync and holds no tentative or decided
            // version of the row.
            return Ok(Found::Ask(primary));
        }
        let image = match row {
            Some(row) if stale => row.committed.as_ref().map(|i| &*i.bytes),
            _ => self.committed_row((rows, fragment), row, transaction, changed)?,
        };
        Ok(Found::Row(table, image))
    }

    /// The image of a row that a committed read sees, at the primary or where the newest version is known (READ-1). It is durable with
    /// the epoch `changed` (READ-7).
    fn committed_row<'l>(
        &'l self,
        (rows, id): (&'l Fragment, FragmentId),
        row: Option<&'l Row>,
        transaction: TransactionId,
        changed: &mut Epoch,
    ) -> Result<Option<&'l [u8]>, RefCode> {
        *changed = rows.changed.max(*changed);
        let Some(row) = row else { return Ok(None) };
        if row.busy.is_some() {
            *changed = self.decided_in(row).max(*changed);
        }
        self.visible(row, id, transaction)
    }

    /// The same for a key.
    pub(crate) fn committed_read<'r>(
        &'r self,
        table: &'r Table,
        fragment: FragmentId,
        (key, hash): (&[u8], u64),
        transaction: TransactionId,
        changed: &mut Epoch,
    ) -> Result<Option<&'r [u8]>, RefCode> {
        let rows = table.fragments.get(&fragment).ok_or(RefCode::StaleView)?;
        let row = rows.find_hashed(key, hash).and_then(|id| rows.row(id));
        self.committed_row((rows, fragment), row, transaction, changed)
    }

    /// The epoch of a row's newest version, if that is decided and not committed here: [`Self::visible`] may show it.
    pub(crate) fn decided_in(&self, row: &crate::row::Row) -> Epoch {
        let Some(top) = row.pending().last() else { return Epoch::default() };
        self.transactions.get(&top.transaction).and_then(|t| t.decided).unwrap_or_default()
    }

    /// What the transaction sees of a row: its own change, else the committed image.
    ///
    /// READ-2: the row of a promoted primary may carry a version that is decided but not yet
    /// committed. It may be shown only when no other replica could forget it. One that is decided if others
    /// hold their part (CARRY-4) may be neither shown nor passed over.
    pub(crate) fn visible<'r>(
        &self,
        row: &'r crate::row::Row,
        fragment: lats_base::FragmentId,
        transaction: TransactionId,
    ) -> Result<Option<&'r [u8]>, RefCode> {
        let Some(top) = row.pending().last() else { return Ok(row.seen_by(transaction)) };
        if top.transaction == transaction {
            return Ok(row.seen_by(transaction));
        }
        let writer = self.transactions.get(&top.transaction).filter(|_| top.replicated);
        let decided = writer.is_some_and(|t| t.decided.is_some());
        let open = !decided && writer.is_some_and(|t| t.carry.is_some());
        if !decided && !open {
            return Ok(row.seen_by(transaction));
        }
        if open || self.view.in_sync(fragment).len() > 1 {
            return Err(RefCode::StaleView);
        }
        Ok(top.image.as_deref())
    }
}

fn refuse(req: &ReadReq, refusal: &Refusal, ctx: &mut Ctx<'_>) {
    let (errno, text) = refusal.parts();
    let body = ReadRef { request: req.request, code: u32::from(refusal.code.number()), errno };
    ctx.send_with(req.reply_to, &body, &[&text]);
}
