//! A fragment: its rows with their versions, the hash index on the primary key, the ordered
//! indexes. One LDM owns it and is its only writer.
//!
//! A row is found by its row id, which the primary gives and which is equal on all replicas. Its
//! committed image is what others see; tentative and decided versions stand on a stack above it,
//! in the primary's order. Index entries exist for every version, so a scan looks at an entry's
//! row and takes it only if the version it may see has that entry's key.

use crate::{
    key::Key,
    key_index::KeyIndex,
    lock::Lock,
    ordered::Ordered,
    row::{Busy, Image, Row, Version},
    row_table::{RowPage, RowTable},
    snapshot::Older,
    spare::Spare,
};
use alloc::{boxed::Box, collections::BTreeSet, format, string::String, vec::Vec};
use lats_base::{Epoch, IndexId, RowId, TransactionId, hash::partition_hash, require};
use lats_catalog::{PRIMARY_INDEX, TableDef};
use lats_values::RowLayout;

struct Index {
    id: IndexId,
    /// Its columns and then the primary key's.
    columns: Vec<u16>,
    entries: Ordered,
    /// Bytes of the entries' keys.
    key_bytes: usize,
    /// The row to go on with while it is being built; none: all rows are in it, and scans may use it.
    next_row: Option<u64>,
}

impl Index {
    /// Bytes that the entry adds; none if it is there already.
    fn enter(&mut self, entry: Key, id: RowId) -> usize {
        let length = entry.len();
        if !self.entries.insert(entry, id) {
            return 0;
        }
        self.key_bytes += length;
        length + ENTRY_OVERHEAD_BYTES
    }

    /// Bytes that are free now; none if the entry was not there (INDEX-1).
    fn leave(&mut self, entry: &[u8]) -> usize {
        if !self.entries.remove(entry) {
            return 0;
        }
        self.key_bytes -= entry.len();
        entry.len() + ENTRY_OVERHEAD_BYTES
    }
}

/// What a row with this key and image has in an index.
fn entry_of(index: &Index, key: &Key, image: &[u8], layout: &RowLayout) -> Key {
    if index.id == PRIMARY_INDEX {
        return key.clone();
    }
    let mut entry = Vec::with_capacity(key.len() + image.len().min(64));
    layout.key_of(image, &index.columns, &mut entry);
    entry.into()
}

/// Enters a row that is not there yet into ordered indexes; the bytes that it takes with its entries.
fn enter_whole(indexes: &mut [Index], row: &Row, id: RowId, layout: &RowLayout) -> usize {
    let mut bytes = row.key.len() + ROW_OVERHEAD_BYTES;
    if let Some(image) = &row.committed {
        bytes += image.bytes.len();
        for index in indexes {
            let entry = entry_of(index, &row.key, &image.bytes, layout);
            bytes += index.enter(entry, id);
        }
    }
    bytes
}

/// What is left of a dropped fragment or of dropped indexes, to be freed in slices.
pub(crate) struct Rubble {
    rows: RowTable,
    indexes: Vec<Index>,
}

impl Rubble {
    /// Frees some of it; true if nothing is left.
    pub(crate) fn clear_away(&mut self, rows: usize) -> bool {
        if !self.rows.clear_away(rows) {
            return false;
        }
        let Some(index) = self.indexes.last_mut() else { return true };
        if index.entries.clear_away(rows) {
            self.indexes.pop();
        }
        false
    }
}

/// Rows and indexes of one fragment.
pub struct Fragment {
    rows: RowTable,
    by_key: KeyIndex,
    indexes: Vec<Index>,
    next_number: u64,
    bytes: usize,
    /// Being filled: deletions leave a mark, so that a late copy cannot bring a row back.
    pub(crate) syncing: bool,
    /// The rows that are such marks, or were.
    deletion_marks: BTreeSet<RowId>,
    /// Older versions are missing here for snapshots of epochs before this one (SNAP-3).
    pub(crate) snapshot_floor: Epoch,
    /// No change that can be seen here is of a later epoch (READ-7), but for versions that are decided and not committed.
    pub(crate) changed: Epoch,
    spare: Spare,
    /// Memory for entries that are to be compared.
    entry_room: [Vec<u8>; 2],
    /// It holds entries of a unique index.
    pub(crate) of_index: bool,
}

/// Bytes that come into a processor's cache together, and how much of an image is fetched ahead of its use.
const CACHE_LINE: usize = 64;
const IMAGE_LINES: usize = 4;

/// Reads a little of an image, so that it is in the cache.
fn touch(image: &[u8]) -> u64 {
    let mut sum = image.last().copied().unwrap_or_default();
    for at in 0..IMAGE_LINES {
        let Some(byte) = image.get(at * CACHE_LINE) else { break };
        sum ^= byte;
    }
    u64::from(sum)
}

/// What a row costs beside its images: record, hash entry, ordered entry.
const ROW_OVERHEAD_BYTES: usize = 160;
const ENTRY_OVERHEAD_BYTES: usize = 40;

impl Fragment {
    /// An empty fragment of a table.
    pub(crate) fn new(def: &TableDef) -> Self {
        let mut fragment = Self {
            rows: RowTable::default(),
            by_key: KeyIndex::new(),
            indexes: Vec::new(),
            next_number: 1,
            bytes: 0,
            syncing: false,
            deletion_marks: BTreeSet::new(),
            snapshot_floor: Epoch::default(),
            changed: Epoch::default(),
            spare: Spare::default(),
            entry_room: Default::default(),
            of_index: def.index_of.is_some(),
        };
        // Nobody scans the entries of a unique index.
        if def.index_of.is_none() {
            fragment.add_index(PRIMARY_INDEX, def.primary_key.clone());
        }
        for index in &def.indexes {
            fragment.add_index(index.id, Self::index_columns(def, &index.columns));
        }
        fragment
    }

    fn index_columns(def: &TableDef, columns: &[u16]) -> Vec<u16> {
        columns.iter().chain(&def.primary_key).copied().collect()
    }

    fn add_index(&mut self, id: IndexId, columns: Vec<u16>) {
        let next_row = (self.rows.end() > 0).then_some(0);
        self.indexes.push(Index {
            id,
            columns,
            entries: Ordered::default(),
            key_bytes: 0,
            next_row,
        });
    }

    /// Begins the indexes that the definition has and this fragment has not, and gives those up that
    /// only this fragment has. From now on every change is entered; the rows that are here are still
    /// to be (INDEX-1). Gives the indexes to build, and what is left of the others.
    pub(crate) fn change_indexes(&mut self, def: &TableDef) -> (Vec<IndexId>, Option<Rubble>) {
        // The id of a dropped index may be given again.
        let wanted = |id| def.index(id).map(|i| Self::index_columns(def, &i.columns));
        let stays = |i: &mut Index| {
            i.id == PRIMARY_INDEX || wanted(i.id).is_some_and(|columns| columns == i.columns)
        };
        let gone: Vec<Index> = self.indexes.extract_if(.., |i| !stays(i)).collect();
        for index in &gone {
            let keys: usize = index.entries.len() * ENTRY_OVERHEAD_BYTES;
            self.bytes -= keys + index.key_bytes;
        }
        for index in &def.indexes {
            if !self.indexes.iter().any(|i| i.id == index.id) {
                self.add_index(index.id, Self::index_columns(def, &index.columns));
            }
        }
        let unbuilt = self.indexes.iter().filter(|i| i.next_row.is_some()).map(|i| i.id).collect();
        let rubble = Rubble { rows: RowTable::default(), indexes: gone };
        (unbuilt, (!rubble.indexes.is_empty()).then_some(rubble))
    }

    /// INDEX-1: enters the next rows into an index that is being built; true if all are in it, or it
    /// is not wanted any more.
    pub(crate) fn build_index(&mut self, index: IndexId, rows: usize, layout: &RowLayout) -> bool {
        let Some(at) = self.indexes.iter().position(|i| i.id == index) else { return true };
        let Some(next) = self.indexes[at].next_row else { return true };
        let end = self.row_id_end().min(next.saturating_add(rows as u64));
        for id in next..end {
            self.enter_all_versions(at, RowId::new(id), layout);
        }
        self.indexes[at].next_row = (end < self.row_id_end()).then_some(end);
        self.indexes[at].next_row.is_none()
    }

    fn enter_all_versions(&mut self, at: usize, id: RowId, layout: &RowLayout) {
        let Some(row) = self.rows.get(id.get()) else { return };
        let index = &mut self.indexes[at];
        for image in row.images() {
            let mut entry = Vec::new();
            layout.key_of(image, &index.columns, &mut entry);
            self.bytes += index.enter(entry.into(), id);
        }
    }

    /// True if scans by this index must wait for it to be built.
    pub(crate) fn is_being_built(&self, index: IndexId) -> bool {
        self.indexes.iter().any(|i| i.id == index && i.next_row.is_some())
    }

    /// What is left of a fragment of a dropped table.
    pub(crate) fn into_rubble(self) -> Rubble {
        Rubble { rows: self.rows, indexes: self.indexes }
    }

    /// Bytes of rows and indexes, estimated.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The row with this id.
    pub(crate) fn row(&self, id: RowId) -> Option<&Row> {
        self.rows.get(id.get())
    }

    pub(crate) fn row_mut(&mut self, id: RowId) -> Option<&mut Row> {
        self.rows.get_mut(id.get())
    }

    /// The id of the row with this key, if there is a record for it.
    pub(crate) fn find(&self, key: &[u8]) -> Option<RowId> {
        self.find_hashed(key, partition_hash(key))
    }

    /// As [`Self::find`], with the key's hash.
    pub(crate) fn find_hashed(&self, key: &[u8], hash: u64) -> Option<RowId> {
        let rows = &self.rows;
        let has_key = |id| rows.get(id).is_some_and(|r| *r.key == *key);
        self.by_key.find(hash, has_key).map(RowId::new)
    }

    /// The id that a key with this hash most likely has; 0 if there is none.
    pub(crate) fn guess(&self, hash: u64) -> u64 {
        self.by_key.guess(hash).unwrap_or_default()
    }

    /// Reads a little of a row's record, if there is one, so that it is in the cache.
    pub(crate) fn touch_record(&self, id: u64) -> u64 {
        self.rows.get(id).map_or(0, |row| row.number ^ row.pending().len() as u64)
    }

    /// Reads a little of a row's key and committed image.
    pub(crate) fn touch_image(&self, id: u64) -> u64 {
        let Some(row) = self.rows.get(id) else { return 0 };
        let image = row.committed.as_ref().map_or(&[][..], |i| &i.bytes);
        touch(image) ^ u64::from(row.key.first().copied().unwrap_or_default())
    }

    /// Reads a little of a row's newest version, and of the image that it will replace.
    pub(crate) fn touch_version(&self, id: u64) -> u64 {
        let Some(row) = self.rows.get(id) else { return 0 };
        let newest = row.pending().last().and_then(|v| v.image.as_deref()).unwrap_or_default();
        let replaced = row.committed.as_ref().and_then(|i| i.bytes.first());
        touch(newest) ^ u64::from(replaced.copied().unwrap_or_default())
    }

    /// Ids below this may be in use.
    pub(crate) fn row_id_end(&self) -> u64 {
        self.rows.end()
    }

    /// A new record for a key that has none, at a free id that the primary chooses.
    pub(crate) fn create(&mut self, key: &[u8], hash: u64) -> RowId {
        let id = RowId::new(self.rows.first_free());
        self.put_row(id, key, hash);
        id
    }

    /// A new record at the id that the primary has chosen.
    pub(crate) fn create_at(&mut self, id: RowId, key: &[u8]) {
        self.put_row(id, key, partition_hash(key));
    }

    pub(crate) fn put_row(&mut self, id: RowId, key: &[u8], hash: u64) {
        self.rows.put(id.get(), Row::new(key));
        self.bytes += key.len() + ROW_OVERHEAD_BYTES;
        self.by_key.insert(hash, id.get());
    }

    /// Puts a row with its committed image where there is none, and no other with its key. It is not looked at once it is there: a
    /// processor that reads what it has just written waits for memory.
    pub(crate) fn put_whole_row(&mut self, id: RowId, row: Row, hash: u64, layout: &RowLayout) {
        self.changed = self.changed.max(row.epoch);
        self.bytes += enter_whole(&mut self.indexes, &row, id, layout);
        self.by_key.insert(hash, id.get());
        self.rows.put(id.get(), row);
    }

    /// True if there are, or were, rows in this page.
    pub(crate) fn has_page(&self, at: usize) -> bool {
        self.rows.has_page(at)
    }

    /// Takes a page of rows with committed images where there is none; [`Self::enter_row`] is to follow for each of them.
    pub(crate) fn adopt_page(&mut self, at: usize, page: RowPage) {
        self.rows.adopt(at, page);
    }

    /// Enters a row that came with a page into the indexes. False if there is another one with its key: then it is gone.
    pub(crate) fn enter_row(&mut self, id: RowId, hash: u64, layout: &RowLayout) -> bool {
        let Some(row) = self.rows.get(id.get()) else { return true };
        if self.find_hashed(&row.key, hash).is_some() {
            self.rows.take(id.get());
            return false;
        }
        self.changed = self.changed.max(row.epoch);
        self.bytes += enter_whole(&mut self.indexes, row, id, layout);
        self.by_key.insert(hash, id.get());
        true
    }

    /// Forgets the record if nothing is left of the row.
    pub(crate) fn collect(&mut self, id: RowId) {
        let syncing = self.syncing;
        let Some(row) = self.row(id) else { return };
        let busy = row.busy.as_ref().is_some_and(|busy| !busy.is_over());
        let deletion_kept = syncing && row.number > 0;
        if row.committed.is_some() || busy {
            return;
        }
        if deletion_kept {
            self.deletion_marks.insert(id);
            return;
        }
        if let Some(key) = self.rows.take(id.get()).map(|r| r.key) {
            self.bytes -= key.len() + ROW_OVERHEAD_BYTES;
            let found = self.by_key.remove(partition_hash(&key), id.get());
            require!(found, "row {id} is in the hash index");
        }
    }

    /// The whole of a syncing fragment is here: marks of deletions are not needed any more.
    pub(crate) fn end_sync(&mut self) {
        self.syncing = false;
        for id in core::mem::take(&mut self.deletion_marks) {
            self.collect(id);
        }
    }

    /// The number of the next change; only the primary gives numbers.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Makes sure that numbers given from now on are larger than one that was seen.
    pub(crate) fn hear_number(&mut self, number: u64) {
        self.next_number = self.next_number.max(number + 1);
    }

    /// Puts a version on top of the row's stack.
    pub(crate) fn push_version(&mut self, id: RowId, version: Version, layout: &RowLayout) {
        self.note_version(id, &version, layout);
        let Some(busy) = self.busy_mut(id) else { return };
        let above = busy.pending.last().is_none_or(|top| top.number < version.number);
        require!(above, "COMMIT-8: version {} of row {id} comes late", version.number);
        busy.pending.push(version);
    }

    /// Puts a version into the row's stack, maybe below newer ones (REJOIN-5).
    pub(crate) fn insert_version(&mut self, id: RowId, version: Version, layout: &RowLayout) {
        self.note_version(id, &version, layout);
        if let Some(busy) = self.busy_mut(id) {
            let at = busy.pending.partition_point(|v| v.number < version.number);
            busy.pending.insert(at, version);
        }
    }

    fn note_version(&mut self, id: RowId, version: &Version, layout: &RowLayout) {
        self.hear_number(version.number);
        if let Some(image) = version.image.as_deref() {
            self.enter(id, image, layout);
            self.bytes += image.len();
        }
    }

    fn busy_mut(&mut self, id: RowId) -> Option<&mut Busy> {
        let row = self.rows.get_mut(id.get())?;
        Some(row.busy.get_or_insert_with(|| self.spare.busy()))
    }

    /// The row's lock.
    pub(crate) fn lock_mut(&mut self, id: RowId) -> Option<&mut Lock> {
        self.busy_mut(id).map(|busy| &mut busy.lock)
    }

    /// A row of which nothing is pending is at rest.
    pub(crate) fn come_to_rest(&mut self, id: RowId) {
        let Some(row) = self.rows.get_mut(id.get()) else { return };
        if let Some(busy) = row.busy.take_if(|busy| busy.is_over()) {
            self.spare.keep_busy(busy);
        }
    }

    /// Takes the version with this number away: it never happened.
    pub(crate) fn drop_version(&mut self, id: RowId, number: u64, layout: &RowLayout) {
        let Some(busy) = self.row_mut(id).and_then(|row| row.busy.as_mut()) else { return };
        let Some(at) = busy.pending.iter().rposition(|v| v.number == number) else { return };
        let version = busy.pending.remove(at);
        self.come_to_rest(id);
        if let Some(image) = version.image {
            self.forget_images(id, core::iter::once(image), layout);
        }
        self.collect(id);
    }

    /// Takes back all versions that a transaction has of a row.
    pub(crate) fn drop_versions_of(&mut self, row: RowId, of: TransactionId, layout: &RowLayout) {
        let numbers: Vec<u64> = self.row(row).map_or(Vec::new(), |r| {
            r.pending().iter().filter(|v| v.transaction == of).map(|v| v.number).collect()
        });
        numbers.into_iter().for_each(|number| self.drop_version(row, number, layout));
    }

    /// Makes the version with this number the committed one. What stood below it was committed
    /// before (COMMIT-6): the primary let nobody write above an undecided version. With `keep` the
    /// version that it replaces is kept for snapshots, else those that it replaced are let go of, too.
    /// True if the row has older versions that nobody needs any more once `epoch` is out of use (SNAP-4).
    pub(crate) fn commit_version(
        &mut self,
        id: RowId,
        number: u64,
        epoch: Epoch,
        layout: &RowLayout,
        keep: bool,
    ) -> bool {
        self.changed = self.changed.max(epoch);
        if !keep
            && let Some(old) = self.rows.get_mut(id.get()).and_then(|r| r.settle(number, epoch))
        {
            self.come_to_rest(id);
            if let Some(old) = old {
                self.forget_image(id, old, layout);
            }
            return false;
        }
        let Some(row) = self.row_mut(id) else { return false };
        let at = row.pending().iter().position(|v| v.number == number);
        let (Some(at), Some(busy)) = (at, &mut row.busy) else {
            // It was passed before all parts of its epoch were known (CARRY-4).
            let later = row.number == number && row.epoch < epoch;
            if later {
                row.epoch = epoch;
            }
            let kept = later && !row.older().is_empty();
            self.come_to_rest(id);
            self.collect(id);
            return kept;
        };
        let newest = busy.pending.remove(at);
        let passed: Vec<Version> = busy.pending.drain(..at).collect();
        let passes_others = passed.iter().any(|v| v.transaction != newest.transaction);
        let mut old = row.committed.take().map(|i| i.bytes);
        // Nobody can have seen, or will see, what came and went within an epoch.
        let seen = row.epoch < epoch && (old.is_some() || !busy.older.is_empty());
        if keep && seen {
            busy.older.push(Older { epoch: row.epoch, image: old.take() });
        }
        let older = if keep { Vec::new() } else { core::mem::take(&mut busy.older) };
        row.number = number;
        row.epoch = epoch;
        row.committed = newest.image.map(|bytes| Image { bytes });
        self.come_to_rest(id);
        if passes_others {
            // Versions of other epochs are passed over, whose completion comes late.
            self.snapshot_floor = self.snapshot_floor.max(epoch);
        }
        let gone = passed.into_iter().filter_map(|v| v.image).chain(old);
        self.forget_images(id, gone.chain(older.into_iter().filter_map(|o| o.image)), layout);
        self.collect(id);
        keep && seen
    }

    /// Images of a row's versions that are no more.
    pub(crate) fn forget_images(
        &mut self,
        id: RowId,
        gone: impl Iterator<Item = Box<[u8]>>,
        layout: &RowLayout,
    ) {
        gone.for_each(|image| self.forget_image(id, image, layout));
    }

    fn forget_image(&mut self, id: RowId, image: Box<[u8]>, layout: &RowLayout) {
        self.bytes -= image.len();
        self.leave(id, &image, layout);
        self.spare.keep_image(image);
    }

    /// Memory for a new image of a row: of `length`, else as long as the row is now.
    pub(crate) fn room(&mut self, id: RowId, length: Option<usize>) -> Vec<u8> {
        let now = || Some(self.rows.get(id.get())?.committed.as_ref()?.bytes.len());
        let length = length.or_else(now).unwrap_or_default();
        self.spare.room(length)
    }

    /// A copy of these bytes, as an image of the row.
    pub(crate) fn image_of(&mut self, id: RowId, bytes: &[u8]) -> Box<[u8]> {
        let mut room = self.room(id, Some(bytes.len()));
        room.extend_from_slice(bytes);
        room.into_boxed_slice()
    }

    /// Stores a copied committed row; false if a newer change is here already.
    pub(crate) fn store_copy(
        &mut self,
        id: RowId,
        number: u64,
        epoch: Epoch,
        bytes: Box<[u8]>,
        layout: &RowLayout,
    ) -> bool {
        self.hear_number(number);
        if self.row(id).is_none_or(|row| row.number >= number) {
            return false;
        }
        self.changed = self.changed.max(epoch);
        self.bytes += bytes.len();
        self.enter(id, &bytes, layout);
        let Some(row) = self.row_mut(id) else { return false };
        row.number = number;
        row.epoch = epoch;
        let old = row.committed.take();
        row.committed = Some(Image { bytes });
        if let Some(old) = old {
            self.bytes -= old.bytes.len();
            self.leave(id, &old.bytes, layout);
        }
        true
    }

    /// All images of a row have the same primary key: its entry is there as long as there is one.
    fn has_primary_entry(&self, id: RowId) -> bool {
        self.row(id).is_some_and(|row| row.committed.is_some() || row.images().next().is_some())
    }

    fn has_primary_only(&self) -> bool {
        matches!(&self.indexes[..], [only] if only.id == PRIMARY_INDEX)
    }

    /// Enters the keys of an image that the row is about to get into the ordered indexes.
    fn enter(&mut self, id: RowId, image: &[u8], layout: &RowLayout) {
        let known = self.has_primary_entry(id);
        if known && self.has_primary_only() {
            return;
        }
        let Some(row) = self.rows.get(id.get()) else { return };
        for index in self.indexes.iter_mut().filter(|i| !known || i.id != PRIMARY_INDEX) {
            let entry = entry_of(index, &row.key, image, layout);
            self.bytes += index.enter(entry, id);
        }
    }

    /// Takes the keys of an image that the row has no more out of the ordered indexes, unless another version
    /// has them too.
    fn leave(&mut self, id: RowId, image: &[u8], layout: &RowLayout) {
        let kept = self.has_primary_entry(id);
        if kept && self.has_primary_only() {
            return;
        }
        for at in 0..self.indexes.len() {
            if self.indexes[at].id == PRIMARY_INDEX {
                if let Some(row) = self.rows.get(id.get()).filter(|_| !kept) {
                    self.bytes -= self.indexes[at].leave(&row.key);
                }
                continue;
            }
            let [mut entry, mut other] = core::mem::take(&mut self.entry_room);
            entry.clear();
            layout.key_of(image, &self.indexes[at].columns, &mut entry);
            if !self.is_entry_used(at, id, (&entry, &mut other), layout) {
                self.bytes -= self.indexes[at].leave(&entry);
            }
            self.entry_room = [entry, other];
        }
    }

    /// True if an image of the row has this entry; `other` is memory for theirs.
    fn is_entry_used(
        &self,
        at: usize,
        id: RowId,
        (entry, other): (&[u8], &mut Vec<u8>),
        layout: &RowLayout,
    ) -> bool {
        let Some(row) = self.row(id) else { return false };
        row.images().any(|image| {
            other.clear();
            layout.key_of(image, &self.indexes[at].columns, other);
            other == entry
        })
    }

    /// The entries of an index from `lower` (included) to `upper` (excluded).
    pub(crate) fn range<'r>(
        &'r self,
        index: IndexId,
        lower: &'r [u8],
        upper: Option<&'r [u8]>,
    ) -> Option<impl DoubleEndedIterator<Item = (&'r [u8], RowId)>> {
        let index = self.indexes.iter().find(|i| i.id == index)?;
        Some(index.entries.range(lower, upper))
    }

    /// All entries of an index.
    pub(crate) fn entries(&self, index: IndexId) -> Option<&crate::ordered::Ordered> {
        self.indexes.iter().find(|i| i.id == index).map(|i| &i.entries)
    }

    /// The columns of an index, its own and then the primary key's.
    pub(crate) fn index_key(&self, index: IndexId) -> Option<&[u16]> {
        self.indexes.iter().find(|i| i.id == index).map(|i| &i.columns[..])
    }

    /// The committed rows in row-id order, for checkers: key, image, number, epoch.
    pub fn committed_rows(&self) -> impl Iterator<Item = (RowId, &[u8], &[u8], u64, Epoch)> {
        self.rows.iter().filter_map(|(id, row)| {
            let image = row.committed.as_ref()?;
            Some((RowId::new(id), &*row.key, &*image.bytes, row.number, row.epoch))
        })
    }

    /// The number of entries of each ordered index, for checkers.
    pub fn index_entry_counts(&self) -> impl Iterator<Item = usize> {
        self.indexes.iter().map(|i| i.entries.len())
    }

    /// What is left over although nothing goes on.
    pub(crate) fn leaks(&self) -> Option<String> {
        self.rows.iter().find_map(|(_, row)| {
            let busy = row.busy.as_ref()?;
            Some(format!("row {:?} is not at rest: {busy:?}", &*row.key))
        })
    }
}
