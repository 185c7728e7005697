//! The rows of a fragment by their ids: pages that come as they are needed, and the ids that are free.
//!
//! No single step takes long, however many rows there are: an array would move all of them when it grows,
//! and a new replica gets rows with large ids first.

use crate::row::Row;
use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;
use lats_base::require;
use rangemap::RangeSet;

/// Rows of one page: a power of two. A page takes 16 kB.
const PAGE_ROWS: u64 = 256;

/// Rows by id.
#[derive(Default)]
pub(crate) struct RowTable {
    pages: Vec<Option<Box<[Option<Row>]>>>,
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

fn empty_page() -> Box<[Option<Row>]> {
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
