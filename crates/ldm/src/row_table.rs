//! The rows of a fragment by their ids: pages that come as they are needed, and the ids that are free.
//!
//! No single step takes long, however many rows there are: an array would move all of them when it grows,
//! and a new replica gets rows with large ids first.

use crate::row::Row;
use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;
use lats_base::require;
use rangemap::RangeSet;

/// Rows of one page: a power of two. A page takes 16 kB. So many rows of a log are loaded, or logged as gone, at once (SLICE-1).
pub(crate) const PAGE_ROWS: u64 = 256;

/// A page of rows.
pub(crate) type RowPage = Box<[Option<Row>]>;

/// Rows by id.
#[derive(Default)]
pub(crate) struct RowTable {
    pages: Vec<Option<RowPage>>,
    /// Ids below this have been given out.
    end: u64,
    /// Those of them that are free, in ranges.
    free: RangeSet<u64>,
}

impl RowTable {
    /// Ids below this may be in use.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Row> {
        self.pages.get((id / PAGE_ROWS) as usize)?.as_ref()?[(id % PAGE_ROWS) as usize].as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Row> {
        let page = self.pages.get_mut((id / PAGE_ROWS) as usize)?.as_mut()?;
        page[(id % PAGE_ROWS) as usize].as_mut()
    }

    /// The lowest id that is free.
    pub(crate) fn first_free(&self) -> u64 {
        self.free.first().map_or(self.end, |range| range.start)
    }

    /// Puts a row at an id that is free, maybe far behind all others.
    pub(crate) fn put(&mut self, id: u64, row: Row) {
        if id >= self.end {
            if id > self.end {
                self.free.insert(self.end..id);
            }
            self.end = id + 1;
        } else {
            self.free.remove(one(id));
        }
        let at = (id / PAGE_ROWS) as usize;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(empty_page);
        let place = &mut page[(id % PAGE_ROWS) as usize];
        require!(place.is_none(), "row id {id} is taken");
        *place = Some(row);
    }

    /// True if there is a page of this number, be it empty.
    pub(crate) fn has_page(&self, at: usize) -> bool {
        self.pages.get(at).is_some_and(Option::is_some)
    }

    /// Makes a page one of this table, where it has none.
    pub(crate) fn adopt(&mut self, at: usize, page: RowPage) {
        let first = at as u64 * PAGE_ROWS;
        let Some(last) = page.iter().rposition(Option::is_some) else { return };
        require!(!self.has_page(at), "page {at} is taken");
        let end = first + last as u64 + 1;
        if end > self.end {
            self.free.insert(self.end..end);
            self.end = end;
        }
        let mut id = first;
        for run in page.chunk_by(|a, b| a.is_some() == b.is_some()) {
            let behind = id + run.len() as u64;
            if run[0].is_some() {
                self.free.remove(id..behind);
            }
            id = behind;
        }
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        self.pages[at] = Some(page);
    }

    /// Takes a row away; its id is free then.
    pub(crate) fn take(&mut self, id: u64) -> Option<Row> {
        let page = self.pages.get_mut((id / PAGE_ROWS) as usize)?.as_mut()?;
        let row = page[(id % PAGE_ROWS) as usize].take()?;
        self.free.insert(one(id));
        Some(row)
    }

    /// The rows in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Row)> {
        let pages = (0u64..).zip(&self.pages);
        pages.filter_map(|(at, page)| Some((at, page.as_ref()?))).flat_map(|(at, page)| {
            let rows = (at * PAGE_ROWS..).zip(page.iter());
            rows.filter_map(|(id, row)| Some((id, row.as_ref()?)))
        })
    }

    /// Frees about so many of its last rows; true if none is left.
    pub(crate) fn clear_away(&mut self, rows: usize) -> bool {
        let pages = rows.div_ceil(PAGE_ROWS as usize);
        self.pages.truncate(self.pages.len().saturating_sub(pages));
        for _ in 0..rows {
            let Some(last) = self.free.last().cloned() else { break };
            self.free.remove(last);
        }
        self.pages.is_empty() && self.free.is_empty()
    }
}

fn one(id: u64) -> Range<u64> {
    id..id + 1
}

pub(crate) fn empty_page() -> RowPage {
    let mut page = Vec::new();
    page.resize_with(PAGE_ROWS as usize, || None);
    page.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeMap, vec};
    use lats_base::prng::Prng;

    fn row(id: u64) -> Row {
        Row::new(&id.to_le_bytes())
    }

    #[test]
    fn rows_are_where_they_were_put_and_the_lowest_free_id_comes_first() {
        let mut random = Prng::new(1);
        let (mut table, mut model) = (RowTable::default(), BTreeMap::new());
        for step in 0..20_000 {
            let id = random.below(3_000) * [1, 40][random.below(2) as usize];
            match model.remove(&id) {
                Some(()) => assert!(table.take(id).is_some()),
                None => {
                    table.put(id, row(id));
                    model.insert(id, ());
                }
            }
            if step % 100 == 0 {
                let free = (0..).find(|id| !model.contains_key(id)).unwrap();
                assert_eq!(table.first_free(), free);
                let held: Vec<u64> = table.iter().map(|(id, _)| id).collect();
                assert_eq!(held, model.keys().copied().collect::<Vec<u64>>());
            }
        }
        for (id, ()) in &model {
            assert_eq!(*table.get(*id).unwrap().key, id.to_le_bytes());
        }
        while !table.clear_away(100) {}
    }

    #[test]
    fn a_page_is_as_if_its_rows_had_been_put() {
        let mut random = Prng::new(2);
        for _ in 0..200 {
            let (mut adopted, mut put) = (RowTable::default(), RowTable::default());
            let mut numbers: Vec<usize> = (0..8).collect();
            while !numbers.is_empty() {
                let at = numbers.swap_remove(random.below(numbers.len() as u64) as usize);
                let mut page = empty_page();
                let share = random.below(5);
                let ids = (0..PAGE_ROWS).filter(|_| random.below(4) < share);
                for (at, id) in ids.map(|i| (i as usize, at as u64 * PAGE_ROWS + i)) {
                    page[at] = Some(row(id));
                    put.put(id, row(id));
                }
                adopted.adopt(at, page);
            }
            assert_eq!((adopted.first_free(), adopted.end()), (put.first_free(), put.end()));
            assert_eq!(adopted.free, put.free);
            let ids = |table: &RowTable| table.iter().map(|(id, _)| id).collect::<Vec<_>>();
            assert_eq!(ids(&adopted), ids(&put));
        }
    }

    #[test]
    fn a_row_far_behind_costs_no_more_than_another() {
        let mut table = RowTable::default();
        table.put(50_000_000, row(1));
        assert_eq!(table.pages.iter().flatten().count(), 1);
        assert_eq!((table.first_free(), table.end()), (0, 50_000_001));
        table.put(0, row(2));
        assert_eq!(table.first_free(), 1);
        assert_eq!(table.iter().map(|(id, _)| id).collect::<Vec<_>>(), vec![0, 50_000_000]);
    }
}
