//! The memory budget of a node (`docs/memory.md`): what its clients hold, and who may take more.
//!
//! The allocator counts what the whole process has, so that nothing is forgotten; who is about to take much asks here before.
//! What a client keeps between its statements is also counted for the client, and by kind for people.

use crate::error;
use crate::sessions::Handle;
use lats_engine::run::{Budget, Pool};
use lats_values::SqlError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a node may have where nobody has said it.
const NODE_BYTES: usize = 1 << 30;
/// What a statement may hold at most, and a part of what the node may have.
pub(crate) const STATEMENT_BYTES_MAX: usize = 256 << 20;
const STATEMENT_PART: usize = 2;
/// What a client may keep at most: as much as a statement, and a part more.
const CLIENT_PART: usize = 4;
/// Who needs no more than this is served while others have taken all: point reads, short sorts.
const SMALL_BYTES: usize = 256 << 10;
/// Who takes as much at once may wait while freed memory goes back to the system.
const LARGE_BYTES: usize = 1 << 20;
/// So much more than the node may have is kept for them.
const SMALL_RESERVE: usize = 64 << 20;
/// A text needs about so many times its bytes: it is copied, read into a tree, and planned.
const TREE_PART: usize = 3;
/// Bytes that a tree may have at most, wherever there is more.
const TREE_BYTES_MAX: usize = 256 << 20;
const TREE_BYTES_MIN: usize = 1 << 20;

/// How the memory of the process is measured.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Bytes that the process has asked for and not given back.
    pub in_use: fn() -> usize,
    /// The same for this thread: differences say what work has kept.
    pub of_thread: fn() -> i64,
    /// The most that `in_use` was.
    pub most: fn() -> usize,
    /// Tells the process what this thread has.
    pub report: fn(),
    /// So many bytes are about to be taken: what was freed, and is of no use for them, goes back to the system if the process
    /// would come near to its limit. False if the system counts too much even so.
    pub make_room: fn(usize) -> bool,
}

impl Default for Meter {
    /// Of a process that nobody measures.
    fn default() -> Self {
        let nothing = || 0;
        Self { in_use: nothing, of_thread: || 0, most: nothing, report: || (), make_room: |_| true }
    }
}

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Packets that clients send, whole or not.
    Packets,
    /// Parameters that are sent ahead of their statements.
    LongData,
    /// Prepared statements.
    Prepared,
    /// User variables.
    Variables,
    /// Rows of cursors.
    Cursors,
    /// What statements hold: sorts, groups, joins, rows that wait to be changed.
    Statements,
    /// Plans of long texts, while they are made.
    Plans,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Packets,
        Self::LongData,
        Self::Prepared,
        Self::Variables,
        Self::Cursors,
        Self::Statements,
        Self::Plans,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::LongData => "long_data",
            Self::Prepared => "prepared_statements",
            Self::Variables => "user_variables",
            Self::Cursors => "cursors",
            Self::Statements => "statements",
            Self::Plans => "plans",
        }
    }
}

/// Apart from one another: threads that count packets do not wait for those that sort.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counter {
    now: AtomicUsize,
    most: AtomicUsize,
    refused: AtomicU64,
}

impl Counter {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if now > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(now, Ordering::Relaxed);
        }
    }

    fn subtract(&self, bytes: usize) {
        let before = self.now.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "what was counted is given back once");
    }
}

/// What people see of a kind of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFigure {
    /// What it is for.
    pub name: &'static str,
    /// Bytes now.
    pub bytes: u64,
    /// The most that there was.
    pub most_bytes: u64,
    /// The most that there may be; 0: it has no limit of its own.
    pub limit_bytes: u64,
    /// How often somebody wanted more.
    pub refused: u64,
}

/// The memory of a process, for its clients.
#[derive(Debug)]
pub(crate) struct NodeMemory {
    meter: Meter,
    max: AtomicUsize,
    most: AtomicUsize,
    /// Bytes that are about to be taken.
    reserved: AtomicUsize,
    kinds: [Counter; Kind::ALL.len()],
}

/// Bytes that are about to be taken, or were while this is there.
#[derive(Debug)]
pub(crate) struct Reserved {
    node: Arc<NodeMemory>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let before = self.node.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
        debug_assert!(before >= self.bytes, "what was reserved is given back once");
    }
}

impl Default for NodeMemory {
    fn default() -> Self {
        Self::new(NODE_BYTES, Meter::default())
    }
}

impl NodeMemory {
    /// So many bytes for all.
    pub(crate) fn new(bytes: usize, meter: Meter) -> Self {
        let kinds = std::array::from_fn(|_| Counter::default());
        let (max, most, reserved) =
            (AtomicUsize::new(bytes), AtomicUsize::new(0), AtomicUsize::new(0));
        Self { meter, max, most, reserved, kinds }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.meter
    }

    #[cfg(test)]
    pub(crate) fn limit(&self, bytes: usize) {
        self.max.store(bytes, Ordering::Relaxed);
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// What one statement may hold.
    pub(crate) fn statement_max(&self) -> usize {
        (self.max() / STATEMENT_PART).min(STATEMENT_BYTES_MAX)
    }

    /// What one client may keep.
    pub(crate) fn client_max(&self) -> usize {
        let statement = self.statement_max();
        (statement + statement / CLIENT_PART).max(SMALL_BYTES)
    }

    /// What the engine may hold for a statement.
    pub(crate) fn budget(self: &Arc<Self>) -> Budget {
        Budget {
            bytes_max: self.statement_max(),
            too_much: error::out_of_statement_memory,
            pool: Some(Arc::clone(self) as Arc<dyn Pool>),
        }
    }

    /// What the process has, or its clients by kind where nobody measures: a sum of kinds is more than there is, because clients
    /// share plans.
    fn in_use(&self) -> usize {
        let measured = (self.meter.in_use)();
        if measured > 0 {
            return measured;
        }
        let counted = self.kinds.iter().map(|kind| kind.now.load(Ordering::Relaxed)).sum();
        self.most.fetch_max(counted, Ordering::Relaxed);
        counted
    }

    /// True if there are so many bytes more for somebody who then has `all`.
    fn has_room(&self, bytes: usize, all: usize) -> bool {
        let reserve = if all <= SMALL_BYTES { SMALL_RESERVE } else { 0 };
        let expected = self.in_use().saturating_add(self.reserved.load(Ordering::Relaxed));
        let has_room = expected.saturating_add(bytes) <= self.max().saturating_add(reserve);
        has_room && (bytes < LARGE_BYTES || (self.meter.make_room)(bytes))
    }

    /// The same of a statement. Short sorts go on where rows have taken more than they should: they are what makes room.
    fn has_room_for_statement(&self, bytes: usize, all: usize) -> bool {
        let few = || self.counter(Kind::Statements).now.load(Ordering::Relaxed) < SMALL_RESERVE;
        self.has_room(bytes, all) || (all <= SMALL_BYTES && few())
    }

    fn left(&self) -> usize {
        self.max().saturating_add(SMALL_RESERVE / 2).saturating_sub(self.in_use())
    }

    /// How many bytes a statement's tree may have now, and its plan.
    pub(crate) fn tree_max(&self) -> usize {
        (self.left() / TREE_PART).clamp(TREE_BYTES_MIN, TREE_BYTES_MAX)
    }

    /// What a text needs at most while it is read and planned: its copy, and its tree and plan within their limit.
    pub(crate) fn planning_bytes(&self, text_bytes: usize) -> usize {
        // A token has a byte at least; expressions have two.
        const PER_BYTE: usize = 48;
        text_bytes.saturating_add(text_bytes.saturating_mul(PER_BYTE).min(self.tree_max()))
    }

    /// The same for rows of literals, of which so many statements are read at a time.
    pub(crate) fn rows_max(&self, at_once: usize) -> usize {
        (self.left() / at_once).clamp(TREE_BYTES_MIN, self.statement_max().max(TREE_BYTES_MIN))
    }

    /// Planning has taken so much for a moment.
    pub(crate) fn note_planned(&self, bytes: usize) {
        if bytes > SMALL_BYTES {
            self.counter(Kind::Plans).add(bytes);
            self.counter(Kind::Plans).subtract(bytes);
        }
    }

    /// Somebody has been refused memory of this kind.
    pub(crate) fn refuse(&self, kind: Kind) {
        self.counter(kind).refused.fetch_add(1, Ordering::Relaxed);
    }

    fn counter(&self, kind: Kind) -> &Counter {
        &self.kinds[kind as usize]
    }

    /// Makes sure that a statement may take so many bytes at once, which are counted nowhere else.
    ///
    /// # Errors
    /// 4082.
    pub(crate) fn admit(&self, kind: Kind, bytes: usize) -> Result<(), SqlError> {
        if bytes <= SMALL_BYTES || self.has_room(bytes, bytes) {
            return Ok(());
        }
        self.refuse(kind);
        Err(error::out_of_node_memory(self.max()))
    }

    /// The same of operations on rows: a statement that makes room goes on where rows have taken more than they should.
    ///
    /// # Errors
    /// 4082.
    pub(crate) fn admit_operations(&self, bytes: usize) -> Result<(), SqlError> {
        if self.has_room_for_statement(bytes, bytes.min(SMALL_BYTES)) {
            return Ok(());
        }
        self.refuse(Kind::Statements);
        Err(error::out_of_node_memory(self.max()))
    }

    /// The same, and nobody else gets them until what is returned is dropped.
    ///
    /// # Errors
    /// 4082.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        kind: Kind,
        bytes: usize,
    ) -> Result<Reserved, SqlError> {
        // Who is refused takes nothing from others, not even for a moment.
        let with_it = |reserved: usize| {
            let all = self.in_use().saturating_add(reserved).saturating_add(bytes);
            (bytes <= SMALL_BYTES || all <= self.max()).then_some(reserved.saturating_add(bytes))
        };
        let fits = with_it(self.reserved.load(Ordering::Relaxed)).is_some()
            && (bytes < LARGE_BYTES || (self.meter.make_room)(bytes));
        if !fits
            || self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it).is_err()
        {
            self.refuse(kind);
            return Err(error::out_of_node_memory(self.max()));
        }
        Ok(Reserved { node: Arc::clone(self), bytes })
    }

    /// The same for copies of values that a statement is about to make: until they are there, and no more than a statement may have.
    ///
    /// # Errors
    /// 1038, 4082.
    pub(crate) fn reserve_copies(
        self: &Arc<Self>,
        bytes: usize,
    ) -> Result<Option<Reserved>, SqlError> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        if bytes > self.statement_max() {
            self.refuse(Kind::Statements);
            return Err(error::out_of_statement_memory());
        }
        self.reserve(Kind::Statements, bytes).map(Some)
    }

    /// What people see of it.
    pub(crate) fn figures(&self) -> Vec<MemoryFigure> {
        let number = |bytes: usize| bytes as u64;
        let in_use = self.in_use();
        let mut figures = vec![MemoryFigure {
            name: "all",
            bytes: number(in_use),
            most_bytes: number((self.meter.most)().max(self.most.load(Ordering::Relaxed))),
            limit_bytes: number(self.max()),
            refused: self.kinds.iter().map(|kind| kind.refused.load(Ordering::Relaxed)).sum(),
        }];
        figures.extend(Kind::ALL.iter().map(|kind| {
            let counter = self.counter(*kind);
            MemoryFigure {
                name: kind.name(),
                bytes: number(counter.now.load(Ordering::Relaxed)),
                most_bytes: number(counter.most.load(Ordering::Relaxed)),
                limit_bytes: match kind {
                    Kind::Statements => number(self.statement_max()),
                    Kind::Plans => number(TREE_BYTES_MAX.min(self.max() / TREE_PART)),
                    _ => number(self.client_max()),
                },
                refused: counter.refused.load(Ordering::Relaxed),
            }
        }));
        figures
    }
}

/// What a client keeps of one kind.
#[derive(Debug)]
pub(crate) struct Kept {
    node: Arc<NodeMemory>,
    client: Arc<Handle>,
    kind: Kind,
    bytes: usize,
}

impl Kept {
    /// Nothing so far.
    pub(crate) fn nothing(node: &Arc<NodeMemory>, client: &Arc<Handle>, kind: Kind) -> Self {
        Self { node: Arc::clone(node), client: Arc::clone(client), kind, bytes: 0 }
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of it, for somebody else to keep; nothing is left here.
    pub(crate) fn take(&mut self) -> Self {
        let nothing = Self::nothing(&self.node, &self.client, self.kind);
        std::mem::replace(self, nothing)
    }

    /// The client keeps so many bytes from now on.
    ///
    /// # Errors
    /// 4081: more than a client may keep; 4082: more than the node has. Nothing has changed then.
    pub(crate) fn becomes(&mut self, bytes: usize) -> Result<(), SqlError> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            self.shrink_to(bytes);
            return Ok(());
        }
        let max = self.node.client_max();
        let refusal = if self.client.kept_bytes().saturating_add(more) > max {
            Some(error::out_of_client_memory(max))
        } else {
            let is_full = !self.node.has_room(more, bytes);
            is_full.then(|| error::out_of_node_memory(self.node.max()))
        };
        if let Some(refusal) = refusal {
            self.node.refuse(self.kind);
            return Err(refusal);
        }
        self.client.keep(more);
        self.node.counter(self.kind).add(more);
        self.bytes = bytes;
        Ok(())
    }

    /// So many bytes more.
    ///
    /// # Errors
    /// As [`Self::becomes`].
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.becomes(self.bytes.saturating_add(bytes))
    }

    /// The client has so many bytes, whoever has been asked.
    pub(crate) fn is_now(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.bytes);
        self.client.keep(more);
        self.node.counter(self.kind).add(more);
        self.bytes += more;
        self.shrink_to(bytes);
    }

    /// So many bytes fewer.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.shrink_to(self.bytes.saturating_sub(bytes));
    }

    /// No more than so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if less > 0 {
            self.client.forget(less);
            self.node.counter(self.kind).subtract(less);
            self.bytes -= less;
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// So much is taken at once.
const SHARE_BYTES: usize = 256 << 10;

/// What a part of a statement holds that the engine does not run.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<NodeMemory>,
    taken: usize,
}

impl Share {
    /// Nothing so far.
    pub(crate) fn of(pool: &Arc<NodeMemory>) -> Self {
        Self { pool: Arc::clone(pool), taken: 0 }
    }

    /// What was taken so far, to be dropped elsewhere behind what it is for, and what is to be called then.
    pub(crate) fn leave(&mut self) -> (Self, fn()) {
        let none = self.beside();
        (std::mem::replace(self, none), self.pool.meter().report)
    }

    /// Another one of the same statement.
    pub(crate) fn beside(&self) -> Self {
        Self::of(&self.pool)
    }

    /// Makes sure that so many bytes may be held.
    ///
    /// # Errors
    /// 1038: it is more than a statement may have; 4082: than the node has.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), SqlError> {
        if bytes <= self.taken {
            return Ok(());
        }
        if bytes > self.pool.statement_max() {
            self.pool.refuse(Kind::Statements);
            return Err(error::out_of_statement_memory());
        }
        let missing = bytes - self.taken;
        let share = [missing.max(SHARE_BYTES), missing];
        let share = share.into_iter().find(|share| self.pool.take(*share, self.taken + share));
        self.taken += share.ok_or_else(|| self.pool.refusal())?;
        Ok(())
    }

    /// So many bytes are held already.
    ///
    /// # Errors
    /// As [`Self::cover`].
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), SqlError> {
        if bytes > self.pool.statement_max() {
            self.pool.refuse(Kind::Statements);
            return Err(error::out_of_statement_memory());
        }
        if !self.pool.has_room_for_statement(0, bytes) {
            return Err(self.pool.refusal());
        }
        let more = bytes.saturating_sub(self.taken);
        self.pool.counter(Kind::Statements).add(more);
        self.taken += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.give_back(self.taken);
    }
}

impl Pool for NodeMemory {
    fn take(&self, bytes: usize, all: usize) -> bool {
        let has_room = self.has_room_for_statement(bytes, all);
        if has_room {
            self.counter(Kind::Statements).add(bytes);
        }
        has_room
    }

    fn give_back(&self, bytes: usize) {
        // Most statements have taken nothing: they do not meet here.
        if bytes > 0 {
            self.counter(Kind::Statements).subtract(bytes);
        }
    }

    fn refusal(&self) -> SqlError {
        self.refuse(Kind::Statements);
        error::out_of_node_memory(self.max())
    }
}

#[cfg(test)]
mod tests;
