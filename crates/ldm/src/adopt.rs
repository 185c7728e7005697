//! Open transactions that are older than a syncing replica: their changes are copied as such, and the
//! replica takes part in them from then on (REJOIN-5; `docs/protocols/rejoin.md`).

use crate::{Ldm, copy::CopyOut, transaction::Transaction};
use alloc::{collections::BTreeSet, vec::Vec};
use lats_base::{Duration, Incarnation, NodeId, NodeSet, RowId, TransactionId};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal,
    commit::{PrepareConf, ReplicateConf},
    copy::{AdoptChangesReq, AdoptOrd, AdoptReq},
    list::{self, Change, OpenChange},
};

/// Transactions that end within this time need no adoption.
const ADOPT_AFTER: Duration = Duration::from_millis(5);
/// Who was asked and has not ordered anything is asked again after this.
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// Rows that one look for transactions in the way, or one adoption, goes through.
const LOOKS: usize = 1_024;
/// Bytes of changes after which an adoption is full.
const ADOPT_BYTES: usize = 128 << 10;

impl Ldm {
    /// Only rows of open transactions are left to be copied: asks for their adoption if they stay.
    pub(crate) fn ask_for_adoption(&self, copy: &mut CopyOut, target: NodeId, ctx: &mut Ctx<'_>) {
        let since = *copy.waits_since.get_or_insert(ctx.now());
        let due = copy.asked_at.is_none_or(|at| ctx.now().since(at) >= ASK_AGAIN);
        if ctx.now().since(since) < ADOPT_AFTER || !due {
            return;
        }
        copy.asked_at = Some(ctx.now());
        let Some((table, fragment)) = copy.left.front() else { return };
        let Some(held) = self.fragment(*table, *fragment) else { return };
        let rows = copy.passed_over.iter().take(LOOKS).filter_map(|id| held.row(RowId::new(*id)));
        let holders = rows.flat_map(|row| row.pending().iter().map(|v| v.transaction));
        let (view, target) = (self.view.number, u64::from(target.get()));
        for transaction in holders.collect::<BTreeSet<TransactionId>>() {
            if let Some(t) = self.transactions.get(&transaction).filter(|t| t.is_open()) {
                ctx.send(t.coordinator, &AdoptReq { transaction, view, target });
            }
        }
    }

    /// The coordinator waits with the transaction's end until the replica has confirmed this batch.
    pub(crate) fn on_adopt_ord(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let ord = signal.body::<AdoptOrd>();
        if self.park_newer(ord.view, signal) {
            return;
        }
        let target = NodeId::new(ord.target as u16);
        let (changes, change_count) = self.changes_to_adopt(ord.transaction, target);
        let mut backups = NodeSet::EMPTY;
        let forgets = ctx.fault(Fault::BugForgetOpenChange);
        if let Some(t) =
            self.transactions.get(&ord.transaction).filter(|_| change_count > 0 && !forgets)
        {
            let body = AdoptChangesReq {
                transaction: ord.transaction,
                coordinator: signal.sender(),
                view: self.view.number,
                batch: ord.batch,
                change_count,
                coordinator_incarnation: t.coordinator_life.get(),
                reserved: 0,
            };
            ctx.send_with(BlockRef::ldm(target, self.instance), &body, &[&changes]);
            backups.insert(target);
        }
        let conf = PrepareConf {
            transaction: ord.transaction,
            epoch: self.epoch,
            backups,
            view: self.view.number,
            batch: ord.batch,
            result_count: 0,
            holds: 1,
            carried: 0,
            index_change_count: 0,
            // What is adopted are changes.
            change_count: 1,
        };
        ctx.send(signal.sender(), &conf);
    }

    /// The transaction's changes that the replica was not sent when they were made; how many.
    fn changes_to_adopt(&mut self, id: TransactionId, target: NodeId) -> (Vec<u8>, u32) {
        let open = self.transactions.get(&id).is_some_and(Transaction::is_open);
        let Some(mut copy) = self.copies.remove(&target) else { return Default::default() };
        copy.asked_at = None;
        let changes = if open { self.collect_open(id, &mut copy) } else { Default::default() };
        self.copies.insert(target, copy);
        changes
    }

    /// The next of them in the fragment that is being copied.
    fn collect_open(&self, id: TransactionId, copy: &mut CopyOut) -> (Vec<u8>, u32) {
        let (mut out, mut count) = (Vec::new(), 0);
        let Some((table, fragment)) = copy.left.front().copied() else { return (out, count) };
        let Some(held) = self.fragment(table, fragment) else { return (out, count) };
        let ids = copy.passed_over.iter().take(LOOKS).map(|id| RowId::new(*id));
        for (row_id, row) in ids.filter_map(|id| Some((id, held.row(id)?))) {
            let sent = copy.adopted.get(&row_id.get()).copied().unwrap_or_default();
            let from = row.pending().partition_point(|v| v.number <= sent);
            let missing = row.pending()[from..].iter().take_while(|v| v.number < copy.first_number);
            for version in missing.filter(|v| v.transaction == id) {
                if out.len() > ADOPT_BYTES {
                    return (out, count);
                }
                let image = version.image.as_deref();
                let change = OpenChange {
                    table,
                    fragment,
                    deleted: u16::from(image.is_none()),
                    row_id,
                    version: version.number,
                    statement: version.statement,
                    key_bytes: row.key.len() as u32,
                    row_bytes: image.map_or(0, <[u8]>::len) as u32,
                    reserved: 0,
                };
                list::push(&mut out, &change, [&row.key, image.unwrap_or_default(), &[]]);
                count += 1;
                copy.adopted.insert(row_id.get(), version.number);
            }
        }
        (out, count)
    }

    /// A syncing replica gets changes of an open transaction: it holds them like a backup.
    pub(crate) fn on_adopt_changes_req(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let req = signal.body::<AdoptChangesReq>();
        let newest = list::items::<OpenChange>(signal.payload()).map(|(c, _)| c.table).max();
        let life = Incarnation::new(req.coordinator_incarnation);
        let sender = (req.transaction, req.coordinator, life);
        if !self.takes_part(sender, (req.view, newest), signal) {
            return;
        }
        for (open, [key, row, _]) in list::items::<OpenChange>(signal.payload()) {
            let change = Change {
                table: open.table,
                fragment: open.fragment,
                deleted: open.deleted,
                row_id: open.row_id,
                version: open.version,
                over: 0,
                epoch: 0,
                key_bytes: open.key_bytes,
                row_bytes: open.row_bytes,
            };
            self.hold((req.transaction, open.statement), &change, [key, row], true, ctx);
        }
        let (transaction, batch) = (req.transaction, req.batch);
        ctx.send(req.coordinator, &ReplicateConf { transaction, batch, reserved: 0 });
    }
}

impl Transaction {
    /// True while its outcome is open, and it is not being taken back.
    fn is_open(&self) -> bool {
        self.decided.is_none() && !self.committed && self.ending.is_none()
    }
}
