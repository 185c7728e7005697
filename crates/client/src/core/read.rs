//! Committed reads, straight to the nearest replica of each row; repeated elsewhere if need be.

use super::{
    Answer, ClientCore, Request, Ticket, all_results, error_of, place_results, push_operation,
};
use crate::api::{Committed, RowOp, RowResult};
use lats_base::{Duration, Epoch, ErrorClass, FragmentId, Instant, NodeId, RefCode, TransactionId};
use lats_signals::{
    BlockRef, Signal,
    query::{ReadConf, ReadRef, ReadReq},
};
use std::collections::BTreeMap;

/// Nobody waits longer for rows that no node can give.
const READ_PATIENCE: Duration = Duration::from_millis(5_000);

/// Reads under way.
#[derive(Debug)]
pub(super) struct Read {
    operations: Vec<RowOp>,
    results: Vec<Option<RowResult>>,
    since: Instant,
    sent_at: Option<Instant>,
    /// Answers of earlier attempts are still good: a read has no side effect.
    pub(super) asked: Vec<NodeId>,
}

/// Who reads the rows of a fragment, for all operations of a request: of fragments with the same last bits, the last one.
#[derive(Default)]
struct Readers([Option<(FragmentId, Option<BlockRef>)>; READERS]);

const READERS: usize = 4;
/// Reserved for the operations that go to one data manager.
const RESERVED_BYTES_MAX: usize = 64 << 10;

impl Readers {
    fn of(&mut self, fragment: FragmentId, core: &ClientCore) -> Option<BlockRef> {
        let kept = &mut self.0[usize::from(fragment.get()) % READERS];
        match kept.filter(|(of, _)| *of == fragment) {
            Some((_, to)) => to,
            None => {
                let to = core.replica_for(fragment).map(|node| core.ldm_of(node, fragment));
                kept.insert((fragment, to)).1
            }
        }
    }
}

impl ClientCore {
    /// Reads committed rows outside any transaction.
    pub fn read(&mut self, operations: Vec<RowOp>) -> Ticket {
        let ticket = self.ticket();
        let read = Read {
            results: vec![None; operations.len()],
            operations,
            since: self.now,
            sent_at: None,
            asked: Vec::new(),
        };
        if !super::fit(&read.operations) {
            self.fail(ticket, RefCode::RequestTooLarge);
            return ticket;
        }
        if read.operations.is_empty() {
            self.finish(ticket, Answer::Rows { results: Vec::new(), committed: None });
            return ticket;
        }
        self.requests.insert(ticket, Request::Read(read));
        self.send_read(ticket);
        ticket
    }

    /// Sends what is not answered yet to the best replicas known now.
    fn send_read(&mut self, ticket: Ticket) {
        let now = self.now;
        let Some(Request::Read(mut read)) = self.requests.remove(&ticket) else { return };
        if self.reads_of_lost_rows(&read) {
            return self.fail(ticket, RefCode::NodeGroupLost);
        }
        let mut parts: BTreeMap<BlockRef, (u32, Vec<u8>)> = BTreeMap::new();
        let mut readers = Readers::default();
        let bytes = super::bytes_of(&read.operations).min(RESERVED_BYTES_MAX);
        read.sent_at = Some(now);
        read.asked.clear();
        for (index, op) in read.operations.iter().enumerate() {
            if read.results[index].is_some() {
                continue;
            }
            let fragment = self.fragment_of(op);
            let Some(to) = readers.of(fragment, self) else { continue };
            let part = parts.entry(to).or_insert_with(|| (0, Vec::with_capacity(bytes)));
            part.0 += 1;
            push_operation(&mut part.1, op, fragment, index);
        }
        for (to, (operation_count, operations)) in parts {
            read.asked.push(to.node);
            let body = ReadReq {
                transaction: TransactionId::NONE,
                request: ticket,
                reply_to: BlockRef::default(),
                as_of: Epoch::default(),
                operation_count,
                hops: 0,
            };
            self.send(to, &body, &[&operations]);
        }
        self.requests.insert(ticket, Request::Read(read));
    }

    /// LOST-1: nobody has some of the rows any more.
    fn reads_of_lost_rows(&self, read: &Read) -> bool {
        let lost = |op: &RowOp| {
            let known = self.routes.contains_key(&op.table);
            known && self.map.view.route(self.fragment_of(op)) == Err(RefCode::NodeGroupLost)
        };
        self.map.view.lost_groups().next().is_some() && read.operations.iter().any(lost)
    }

    /// True if what is missing can be read at silent nodes only.
    fn only_the_silent_know(&self, read: &Read) -> bool {
        let missing = read.operations.iter().zip(&read.results).filter(|(_, r)| r.is_none());
        let mut fragments = missing.map(|(op, _)| self.fragment_of(op));
        fragments.any(|fragment| self.is_at_silent_nodes(fragment))
    }

    /// True if nobody who could be asked has the fragment, and a silent node has.
    pub(super) fn is_at_silent_nodes(&self, fragment: FragmentId) -> bool {
        let replicas = self.map.view.in_sync(fragment);
        let (now, resend_after) = (self.now, self.resend_after());
        let unheard = |n| self.silence.is_unheard(n, now, resend_after);
        let silent = |n: NodeId| self.silence.is_silent(n) && unheard(n);
        replicas.iter().any(silent) && !replicas.iter().any(|n| self.is_up(n) && !silent(n))
    }

    /// The nearest replica that may answer; of those as near the primary, which knows most.
    pub(super) fn replica_for(&self, fragment: FragmentId) -> Option<NodeId> {
        let view = &self.map.view;
        let primary = view.primary(fragment);
        let replicas = view.in_sync(fragment);
        let up = replicas.iter().filter(|n| self.is_up(*n));
        let silent = |n| self.silence.is_silent(n);
        up.min_by_key(|n| (silent(*n), self.distance(*n), Some(*n) != primary))
    }

    pub(super) fn on_read_conf(&mut self, signal: &Signal<'_>) {
        let conf = signal.body::<ReadConf>();
        self.note_shown(conf.changed);
        let Some(Request::Read(read)) = self.requests.get_mut(&conf.request) else { return };
        place_results(signal.payload(), &mut read.results);
        self.epoch_seen = self.epoch_seen.max(conf.epoch);
        if let Some(results) = all_results(&mut read.results) {
            self.finish(conf.request, Answer::Rows { results, committed: None });
        }
    }

    /// READ-7: something was read that is durable with this epoch.
    pub(super) fn note_shown(&mut self, changed: Epoch) {
        let restarts = self.map.view.restarts;
        if restarts != self.shown.restarts {
            // Epochs of before say nothing of what is durable since.
            self.shown = Committed { restarts, ..Committed::default() };
            self.durable_seen = Epoch::default();
        }
        self.shown.epoch = self.shown.epoch.max(changed);
    }

    /// READ-7: an epoch of this number of restarts is durable.
    pub(super) fn note_durable(&mut self, durable: Epoch, restarts: u32) {
        if restarts == self.shown.restarts {
            self.durable_seen = self.durable_seen.max(durable);
        }
    }

    /// All that this client has read by now without locks, in whatever session, is durable when this is; none: it is known to be
    /// (READ-7).
    pub fn shown(&self) -> Option<Committed> {
        Some(self.shown).filter(|shown| shown.epoch > self.durable_seen)
    }

    /// The newest epoch that this client knows to be durable.
    pub fn durable_seen(&self) -> Epoch {
        self.durable_seen
    }

    pub(super) fn on_read_ref(&mut self, signal: &Signal<'_>) {
        let body = signal.body::<ReadRef>();
        let error = error_of(body.code, body.errno, signal.payload());
        let retry = error.class() == ErrorClass::Temporary
            && !matches!(error.code, RefCode::SchemaVersionOld);
        let Some(Request::Read(read)) = self.requests.get_mut(&body.request) else { return };
        if !retry {
            return self.fail(body.request, error);
        }
        // Not at once: the view that it waits for is on its way.
        read.sent_at = None;
    }

    pub(super) fn tick_read(&mut self, ticket: Ticket) {
        let now = self.now;
        let Some(Request::Read(read)) = self.requests.get(&ticket) else { return };
        if now.since(read.since) > READ_PATIENCE {
            return self.fail(ticket, RefCode::NotServing);
        }
        let resend_after = self.resend_after();
        if read.sent_at.is_none_or(|at| now.since(at) > resend_after) {
            // SILENT-3: it was asked, whatever others say of it, and did not answer either.
            if now.since(read.since) > resend_after && self.only_the_silent_know(read) {
                return self.fail(ticket, RefCode::NodeSilent);
            }
            self.send_read(ticket);
        }
    }

    pub(super) fn lose_read(&mut self, ticket: Ticket, node: NodeId) {
        if let Some(Request::Read(read)) = self.requests.get_mut(&ticket)
            && read.asked.contains(&node)
        {
            self.send_read(ticket);
        }
    }
}
