//! Rows as they were found in a log, by their ids.

use crate::key::Key;
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use lats_base::{Epoch, FragmentId, RowId, TableId};

/// The newest change of a row, up to some epoch.
pub(crate) struct Found {
    pub(crate) number: u64,
    pub(crate) epoch: Epoch,
    pub(crate) key: Key,
    /// None: deleted, or there was none.
    pub(crate) image: Option<Box<[u8]>>,
    /// The newest change of all, and whether it is a deletion.
    pub(crate) newest: (u64, bool),
}

/// Rows that were found, by their places.
pub(crate) type FoundRows = BTreeMap<(TableId, FragmentId), FragmentRows>;

/// Those of a fragment: in pages, for most ids are in use.
#[derive(Default)]
pub(crate) struct FragmentRows {
    pages: BTreeMap<u64, Page>,
}

/// Rows, as long as there are any.
#[derive(Default)]
struct Page {
    rows: Vec<Option<Found>>,
    count: usize,
}

/// Rows of a page: so many are loaded, or logged as gone, at once (SLICE-1).
const PAGE_ROWS: u64 = 256;

impl FragmentRows {
    /// The row, which has no change yet if it is new.
    pub(crate) fn entry(&mut self, id: RowId, key: &[u8]) -> &mut Found {
        let page = self.pages.entry(id.get() / PAGE_ROWS).or_default();
        let at = (id.get() % PAGE_ROWS) as usize;
        if at >= page.rows.len() {
            page.rows.resize_with(at + 1, || None);
        }
        let row = &mut page.rows[at];
        page.count += usize::from(row.is_none());
        row.get_or_insert_with(|| Found {
            number: 0,
            epoch: Epoch::default(),
            key: Key::new(key),
            image: None,
            newest: (0, true),
        })
    }

    pub(crate) fn get(&self, id: RowId) -> Option<&Found> {
        self.pages.get(&(id.get() / PAGE_ROWS))?.rows.get((id.get() % PAGE_ROWS) as usize)?.as_ref()
    }

    pub(crate) fn take(&mut self, id: RowId) -> Option<Found> {
        let at = id.get() / PAGE_ROWS;
        let page = self.pages.get_mut(&at)?;
        let found = page.rows.get_mut((id.get() % PAGE_ROWS) as usize)?.take()?;
        page.count -= 1;
        if page.count == 0 {
            self.pages.remove(&at);
        }
        Some(found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Takes the rows of the first page.
    pub(crate) fn take_page(&mut self) -> impl Iterator<Item = (RowId, Found)> {
        let (at, page) = self.pages.pop_first().unwrap_or_default();
        let rows = (at * PAGE_ROWS..).zip(page.rows);
        rows.filter_map(|(id, found)| Some((RowId::new(id), found?)))
    }
}

impl Found {
    /// Another change of the row: of those up to an epoch the one with the largest number counts, for they need not stand in that
    /// order.
    pub(crate) fn note(
        &mut self,
        (number, epoch): (u64, Epoch),
        key: &[u8],
        image: Option<&[u8]>,
        upto: Epoch,
    ) {
        if number > self.newest.0 {
            self.newest = (number, image.is_none());
        }
        if epoch > upto || self.number >= number {
            return;
        }
        if *self.key != *key {
            self.key = Key::new(key);
        }
        (self.number, self.epoch) = (number, epoch);
        self.image = image.map(Into::into);
    }
}
