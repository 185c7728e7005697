//! Rows as they were found in a log, by their ids.

use crate::{
    Fragment,
    ahead::GROUP,
    key::Key,
    row::{Image, Row},
};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::hint::black_box;
use lats_base::{Epoch, FragmentId, RowId, TableId, hash::partition_hash};
use lats_values::RowLayout;

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
    /// By number; none where there are no rows, or none any more.
    pages: Vec<Option<Page>>,
    /// Before this page there is none.
    first: usize,
    page_count: usize,
}

/// Rows, as long as there are any.
struct Page {
    rows: Box<[Option<Found>]>,
    count: usize,
}

/// Rows of a page: so many are loaded, or logged as gone, at once (SLICE-1).
const PAGE_ROWS: u64 = 256;

/// The page of a row, and its place there.
fn place(id: RowId) -> (usize, usize) {
    ((id.get() / PAGE_ROWS) as usize, (id.get() % PAGE_ROWS) as usize)
}

impl Page {
    fn new() -> Self {
        let mut rows = Vec::new();
        rows.resize_with(PAGE_ROWS as usize, || None);
        Self { rows: rows.into_boxed_slice(), count: 0 }
    }
}

impl FragmentRows {
    /// The row, which has no change yet if it is new.
    pub(crate) fn entry(&mut self, id: RowId, key: &[u8]) -> &mut Found {
        let (page, at) = place(id);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        self.first = self.first.min(page);
        let page_count = &mut self.page_count;
        let page = self.pages[page].get_or_insert_with(|| {
            *page_count += 1;
            Page::new()
        });
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
        let (page, at) = place(id);
        self.pages.get(page)?.as_ref()?.rows[at].as_ref()
    }

    #[inline]
    pub(crate) fn take(&mut self, id: RowId) -> Option<Found> {
        let (at, row) = place(id);
        let page = self.pages.get_mut(at)?.as_mut()?;
        let found = page.rows[row].take()?;
        page.count -= 1;
        if page.count == 0 {
            self.pages[at] = None;
            self.page_count -= 1;
        }
        Some(found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.page_count == 0
    }

    /// The ids of the rows of the first page.
    pub(crate) fn first_ids(&mut self) -> Vec<RowId> {
        let pages = self.pages.iter().enumerate().skip(self.first);
        let Some((at, page)) = pages.filter_map(|(at, page)| Some((at, page.as_ref()?))).next()
        else {
            return Vec::new();
        };
        self.first = at;
        let rows = (at as u64 * PAGE_ROWS..).zip(&page.rows);
        rows.filter(|(_, found)| found.is_some()).map(|(id, _)| RowId::new(id)).collect()
    }

    /// Takes the rows of the first page.
    pub(crate) fn take_page(&mut self) -> impl Iterator<Item = (RowId, Found)> {
        if self.page_count == 0 {
            // Nobody looks for what was taken row by row.
            self.first = self.pages.len();
        }
        let pages = self.pages.iter_mut().enumerate().skip(self.first);
        let first = pages.filter_map(|(at, page)| Some((at, page.take()?))).next();
        self.first = first.as_ref().map_or(self.pages.len(), |(at, _)| at + 1);
        self.page_count -= usize::from(first.is_some());
        first.into_iter().flat_map(|(at, page)| {
            let rows = (at as u64 * PAGE_ROWS..).zip(page.rows);
            rows.filter_map(|(id, found)| Some((RowId::new(id), found?)))
        })
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

impl Fragment {
    /// Makes these rows of the fragment, but for those that are deleted, or not there any more. False if there is another or a newer
    /// row where one of them belongs: that one is left out.
    pub(crate) fn store_found(
        &mut self,
        rows: &mut FragmentRows,
        ids: &[RowId],
        layout: &RowLayout,
    ) -> bool {
        let mut fits = true;
        for ids in ids.chunks(GROUP) {
            let mut hashes = [0; GROUP];
            for (hash, id) in hashes.iter_mut().zip(ids) {
                *hash = rows.get(*id).map_or(0, |found| partition_hash(&found.key));
            }
            // The places of many keys are fetched at once (see `ahead.rs`).
            let places = hashes.iter().map(|hash| self.guess(*hash));
            black_box(places.fold(0, |all, id| all ^ id));
            for (hash, id) in hashes.into_iter().zip(ids) {
                if let Some(found) = rows.take(*id) {
                    fits &= self.store_one_found(*id, found, hash, layout);
                }
            }
        }
        fits
    }

    fn store_one_found(&mut self, id: RowId, found: Found, hash: u64, layout: &RowLayout) -> bool {
        self.hear_number(found.number);
        let Found { number, epoch, key, image: Some(image), .. } = found else { return true };
        if let Some(row) = self.row(id) {
            return *row.key == *key && self.store_copy(id, number, epoch, image, layout);
        }
        if self.find_hashed(&key, hash).is_some() {
            return false;
        }
        let committed = Some(Image { bytes: image });
        self.put_whole_row(id, Row { key, committed, number, epoch, busy: None }, hash, layout);
        true
    }
}
