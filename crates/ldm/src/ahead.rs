//! Fetches the memory of rows before they are worked on. A row that nobody has used lately is five cache misses deep,
//! one after the other: place in the hash table, id, record, key, image. Looked at for many rows at once, step by step,
//! the misses of a step overlap, and a batch waits for about as long as one row did.
//!
//! After S. Chen, A. Ailamaki, P. Gibbons, T. Mowry: "Improving Hash Join Performance through Prefetching" (2004): group
//! prefetching; with plain loads, whose results nobody waits for.

use crate::{Fragment, Ldm, transaction::Op};
use core::hint::black_box;
use lats_base::{FragmentId, TableId, hash::partition_hash};
use lats_signals::{
    BlockKind, Signal, SignalNumber,
    buffer::Upcoming,
    list::{self, Change, Operation},
};

/// Rows that are looked at together.
pub(crate) const GROUP: usize = 32;
/// Rows that are fetched at once: they must still be in the processor's cache when it is their turn.
const ROWS_MAX: usize = 8 * GROUP;

/// How a row is found.
#[derive(Clone, Copy)]
enum Wanted {
    Id(u64),
    /// By the hash of its key.
    Hash(u64),
    /// By its id; its newest version, which is about to become the committed one.
    Version(u64),
}

/// Rows that will be needed.
struct Group<'a> {
    fragments: [&'a Fragment; GROUP],
    rows: [Wanted; GROUP],
    count: usize,
}

impl Ldm {
    /// Fetches what the next signals need of rows.
    pub(crate) fn fetch_ahead(&self, upcoming: Upcoming<'_>) {
        let mut fetcher = Fetcher { ldm: self, last: None, group: None, rows: 0 };
        for signal in upcoming {
            let to = signal.header.receiver;
            let reads = matches!(to.kind(), Some(BlockKind::Ldm | BlockKind::Query));
            if reads && to.instance == self.instance {
                fetcher.want_rows_of(&signal);
            }
        }
        fetcher.fetch();
    }

    /// Fetches the next rows whose changes a transaction's end deals with.
    pub(crate) fn fetch_versions<'o>(&self, ops: impl Iterator<Item = &'o Op>) {
        let mut fetcher = Fetcher { ldm: self, last: None, group: None, rows: 0 };
        for op in ops.filter(|op| op.version != 0) {
            fetcher.want((op.table, op.fragment), Wanted::Version(op.row.get()));
        }
        fetcher.fetch();
    }
}

/// Collects rows, and fetches them group by group.
struct Fetcher<'a> {
    ldm: &'a Ldm,
    /// The fragment of the row before: mostly that of the next one, too.
    last: Option<(TableId, FragmentId, &'a Fragment)>,
    group: Option<Group<'a>>,
    rows: usize,
}

impl<'a> Fetcher<'a> {
    fn want_rows_of(&mut self, signal: &Signal<'_>) {
        match signal.number() {
            Some(SignalNumber::ReadReq | SignalNumber::PrepareReq) => {
                let rows = list::items::<Operation>(signal.payload());
                rows.take(ROWS_MAX).for_each(|(head, [key, ..])| {
                    self.want((head.table, head.fragment), Wanted::Hash(partition_hash(key)));
                });
            }
            Some(SignalNumber::ReplicateReq) => {
                let rows = list::items::<Change>(signal.payload());
                rows.take(ROWS_MAX).for_each(|(head, _)| {
                    self.want((head.table, head.fragment), Wanted::Id(head.row_id.get()));
                });
            }
            _ => {}
        }
    }

    fn want(&mut self, (table, id): (TableId, FragmentId), row: Wanted) {
        if self.rows >= ROWS_MAX {
            return;
        }
        let fragment = match self.last {
            Some((t, f, fragment)) if (t, f) == (table, id) => fragment,
            _ => {
                let Some(fragment) = self.ldm.fragment(table, id) else { return };
                self.last = Some((table, id, fragment));
                fragment
            }
        };
        self.rows += 1;
        let empty =
            || Group { fragments: [fragment; GROUP], rows: [Wanted::Id(0); GROUP], count: 0 };
        let group = self.group.get_or_insert_with(empty);
        group.fragments[group.count] = fragment;
        group.rows[group.count] = row;
        group.count += 1;
        if group.count == GROUP {
            self.fetch();
        }
    }

    fn fetch(&mut self) {
        if let Some(group) = &mut self.group {
            group.fetch();
            group.count = 0;
        }
    }
}

impl Group<'_> {
    fn fetch(&self) {
        let mut ids = [0; GROUP];
        let wanted = self.fragments.iter().zip(&self.rows).take(self.count);
        for ((fragment, row), id) in wanted.zip(&mut ids) {
            *id = match row {
                Wanted::Id(id) | Wanted::Version(id) => *id,
                Wanted::Hash(hash) => fragment.guess(*hash),
            };
        }
        let found = || self.fragments.iter().zip(ids).zip(&self.rows).take(self.count);
        let records = found().map(|((fragment, id), _)| fragment.touch_record(id)).fold(0, xor);
        let images = found().map(|((fragment, id), row)| match row {
            Wanted::Version(_) => fragment.touch_version(id),
            _ => fragment.touch_image(id),
        });
        black_box(records ^ images.fold(0, xor));
    }
}

fn xor(a: u64, b: u64) -> u64 {
    a ^ b
}
