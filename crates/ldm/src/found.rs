//! Rows as they were found in a log, by their ids. They are kept as the rows of a fragment are, so that a page of them becomes a
//! page of the fragment as it is.

use crate::{
    Fragment,
    ahead::GROUP,
    key::Key,
    row::{Image, Row},
    row_table::{PAGE_ROWS, RowPage, empty_page},
};
use alloc::{collections::BTreeMap, vec::Vec};
use core::hint::black_box;
use lats_base::{Epoch, FragmentId, RowId, TableId, hash::partition_hash};
use lats_values::RowLayout;

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
    /// The newest change of rows that have one of a later epoch than is wanted.
    later: BTreeMap<RowId, Newest>,
}

/// The number of a row's newest change of all, and whether it is a deletion.
pub(crate) type Newest = (u64, bool);

/// Rows, as long as there are any: each as it was changed last up to some epoch. One without an image was deleted, or there was none.
struct Page {
    rows: RowPage,
    count: usize,
}

/// Which rows of a page, a bit each.
type PageSet = [u64; PAGE_ROWS as usize / u64::BITS as usize];

/// The page of a row, and its place there.
fn place(id: RowId) -> (usize, usize) {
    ((id.get() / PAGE_ROWS) as usize, (id.get() % PAGE_ROWS) as usize)
}

fn set_of(ids: &[RowId]) -> PageSet {
    let mut set = PageSet::default();
    for (_, at) in ids.iter().map(|id| place(*id)) {
        set[at / u64::BITS as usize] |= 1 << (at % u64::BITS as usize);
    }
    set
}

fn is_in(set: &PageSet, at: usize) -> bool {
    set[at / u64::BITS as usize] & 1 << (at % u64::BITS as usize) != 0
}

impl FragmentRows {
    /// The row, which has no change yet if it is new.
    fn entry(&mut self, id: RowId, key: &[u8]) -> &mut Row {
        let (page, at) = place(id);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        self.first = self.first.min(page);
        let page_count = &mut self.page_count;
        let page = self.pages[page].get_or_insert_with(|| {
            *page_count += 1;
            Page { rows: empty_page(), count: 0 }
        });
        let row = &mut page.rows[at];
        page.count += usize::from(row.is_none());
        row.get_or_insert_with(|| Row::new(key))
    }

    /// A change of a row: of those up to an epoch the one with the largest number counts, for they need not stand in that order.
    pub(crate) fn note(
        &mut self,
        id: RowId,
        (number, epoch): (u64, Epoch),
        (key, image): (&[u8], Option<&[u8]>),
        upto: Epoch,
    ) {
        let row = self.entry(id, key);
        if epoch > upto {
            let newest = self.later.entry(id).or_default();
            *newest = (number, image.is_none()).max(*newest);
            return;
        }
        if row.number >= number {
            return;
        }
        if *row.key != *key {
            row.key = Key::new(key);
        }
        (row.number, row.epoch) = (number, epoch);
        row.committed = image.map(|image| Image { bytes: image.into() });
    }

    pub(crate) fn get(&self, id: RowId) -> Option<&Row> {
        let (page, at) = place(id);
        self.pages.get(page)?.as_ref()?.rows[at].as_ref()
    }

    /// Takes a row; and its newest change of all.
    #[inline]
    pub(crate) fn take(&mut self, id: RowId) -> Option<(Row, Newest)> {
        let (at, row) = place(id);
        let page = self.pages.get_mut(at)?.as_mut()?;
        let found = page.rows[row].take()?;
        page.count -= 1;
        if page.count == 0 {
            self.pages[at] = None;
            self.page_count -= 1;
        }
        let later = self.later.remove(&id).unwrap_or_default();
        let newest = (found.number, found.committed.is_none()).max(later);
        Some((found, newest))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.page_count == 0
    }

    /// The ids of the rows of the first page.
    pub(crate) fn first_ids(&mut self) -> Vec<RowId> {
        if self.is_empty() {
            // Nobody looks for what was taken row by row.
            self.first = self.pages.len();
        }
        let pages = self.pages.iter().enumerate().skip(self.first);
        let Some((at, page)) = pages.filter_map(|(at, page)| Some((at, page.as_ref()?))).next()
        else {
            return Vec::new();
        };
        self.first = at;
        let rows = (at as u64 * PAGE_ROWS..).zip(&page.rows);
        rows.filter(|(_, found)| found.is_some()).map(|(id, _)| RowId::new(id)).collect()
    }

    /// Takes the rows of the first page; and the newest changes of all of them.
    pub(crate) fn take_first(&mut self) -> Vec<(RowId, Row, Newest)> {
        let ids = self.first_ids();
        let taken = ids.into_iter().filter_map(|id| Some((id, self.take(id)?)));
        taken.map(|(id, (row, newest))| (id, row, newest)).collect()
    }

    /// Takes the page of these rows, if most of what is in it is meant: others stay.
    fn take_page(&mut self, ids: &[RowId]) -> Option<(usize, RowPage)> {
        let (at, _) = place(*ids.first()?);
        let page = self.pages.get_mut(at)?.take_if(|page| page.count <= ids.len() * 2)?;
        self.page_count -= 1;
        for id in ids {
            self.later.remove(id);
        }
        let (mut rows, set) = (page.rows, set_of(ids));
        let others = rows.iter_mut().enumerate().filter(|(place, _)| !is_in(&set, *place));
        for (place, row) in others {
            if let Some(row) = row.take() {
                let id = RowId::new(at as u64 * PAGE_ROWS + place as u64);
                *self.entry(id, &[]) = row;
            }
        }
        Some((at, rows))
    }
}

impl Fragment {
    /// Makes these rows of the fragment, but for those that are deleted, or not there any more. The ids are in their order. False if
    /// there is another or a newer row where one of them belongs: that one is left out.
    pub(crate) fn store_found(
        &mut self,
        rows: &mut FragmentRows,
        ids: &[RowId],
        layout: &RowLayout,
    ) -> bool {
        let mut fits = true;
        for ids in ids.chunk_by(|a, b| place(*a).0 == place(*b).0) {
            let is_free = !self.has_page(place(ids[0]).0);
            let page = if is_free { rows.take_page(ids) } else { None };
            fits &= match page {
                Some((at, page)) => self.store_page(at, page, layout),
                None => self.store_some(rows, ids, layout),
            };
        }
        fits
    }

    /// Takes a page as it is.
    fn store_page(&mut self, at: usize, mut page: RowPage, layout: &RowLayout) -> bool {
        let numbers = page.iter().flatten().map(|row| row.number);
        self.hear_number(numbers.max().unwrap_or_default());
        for row in &mut page {
            row.take_if(|row| row.committed.is_none());
        }
        let rows = (at as u64 * PAGE_ROWS..).zip(&page).filter(|(_, row)| row.is_some());
        let ids: Vec<RowId> = rows.map(|(id, _)| RowId::new(id)).collect();
        self.adopt_page(at, page);
        let mut fits = true;
        for ids in ids.chunks(GROUP) {
            let hashes = self.hashes_of(ids, |fragment, id| fragment.row(id).map(|row| &*row.key));
            for (hash, id) in hashes.into_iter().zip(ids) {
                fits &= self.enter_row(*id, hash, layout);
            }
        }
        fits
    }

    /// Takes rows one by one.
    fn store_some(&mut self, rows: &mut FragmentRows, ids: &[RowId], layout: &RowLayout) -> bool {
        let mut fits = true;
        for ids in ids.chunks(GROUP) {
            let hashes = self.hashes_of(ids, |_, id| rows.get(id).map(|found| &*found.key));
            for (hash, id) in hashes.into_iter().zip(ids) {
                if let Some((found, _)) = rows.take(*id) {
                    fits &= self.store_one_found(*id, found, hash, layout);
                }
            }
        }
        fits
    }

    /// The hashes of rows' keys. Their places are fetched at once (see `ahead.rs`).
    fn hashes_of<'f>(
        &'f self,
        ids: &[RowId],
        key: impl Fn(&'f Self, RowId) -> Option<&'f [u8]>,
    ) -> [u64; GROUP] {
        let mut hashes = [0; GROUP];
        for (hash, id) in hashes.iter_mut().zip(ids) {
            *hash = key(self, *id).map_or(0, partition_hash);
        }
        let places = hashes.iter().take(ids.len()).map(|hash| self.guess(*hash));
        black_box(places.fold(0, |all, id| all ^ id));
        hashes
    }

    fn store_one_found(&mut self, id: RowId, found: Row, hash: u64, layout: &RowLayout) -> bool {
        self.hear_number(found.number);
        let Row { key, committed: Some(image), number, epoch, .. } = found else { return true };
        if let Some(row) = self.row(id) {
            return *row.key == *key && self.store_copy(id, number, epoch, image.bytes, layout);
        }
        if self.find_hashed(&key, hash).is_some() {
            return false;
        }
        let committed = Some(image);
        self.put_whole_row(id, Row { key, committed, number, epoch, busy: None }, hash, layout);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::table;
    use lats_base::prng::Prng;
    use std::vec;

    const ENDS: u64 = PAGE_ROWS * 5;

    fn key(id: u64) -> Vec<u8> {
        let mut key = id.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
        key.resize(8 + (id % 20) as usize, 7);
        key
    }

    /// Rows of which some are deleted, and some are changed later than is wanted; and their newest changes.
    fn found(random: &mut Prng) -> (FragmentRows, BTreeMap<RowId, Newest>) {
        let (mut rows, share) = (FragmentRows::default(), random.between(1, 9));
        let mut newest = BTreeMap::new();
        for id in (0..ENDS).filter(|_| random.below(10) < share).collect::<Vec<_>>() {
            let image = vec![id as u8; (id % 50) as usize];
            let mut numbers = [id + 1, id + 1 + ENDS];
            numbers.rotate_left(random.below(2) as usize);
            let count = random.between(1, 2) as usize;
            for number in &numbers[..count] {
                let image = random.chance(7, 8).then_some(&image[..]);
                let epoch = Epoch::new(random.between(1, 9));
                rows.note(RowId::new(id), (*number, epoch), (&key(id), image), Epoch::new(6));
                let newest: &mut Newest = newest.entry(RowId::new(id)).or_default();
                if *number > newest.0 {
                    *newest = (*number, image.is_none());
                }
            }
        }
        (rows, newest)
    }

    fn put(fragment: &mut Fragment, id: u64, layout: &RowLayout) {
        let committed = Some(Image { bytes: vec![1; 9].into() });
        let row = Row { committed, number: id + 1, ..Row::new(&key(id)) };
        fragment.put_whole_row(RowId::new(id), row, partition_hash(&key(id)), layout);
    }

    type Shown = Vec<(u64, Vec<u8>, Vec<u8>, u64, Epoch)>;

    /// What it has, and what its rows cost.
    fn shown(fragment: &Fragment) -> (Shown, Vec<usize>, usize, u64) {
        let rows = fragment.committed_rows().map(|(id, key, image, number, epoch)| {
            (id.get(), key.to_vec(), image.to_vec(), number, epoch)
        });
        let rows: Shown = rows.collect();
        for (id, key, ..) in &rows {
            assert_eq!(fragment.find(key), Some(RowId::new(*id)));
        }
        let counts = fragment.index_entry_counts().collect();
        (rows, counts, fragment.bytes(), fragment.row_id_end())
    }

    #[test]
    fn pages_bring_the_same_rows_as_one_by_one() {
        let (table, mut stayed) = (table(1), 0);
        for seed in 0..150 {
            let mut random = Prng::new(seed);
            let (mut by_pages, _) = found(&mut random.clone());
            let (mut one_by_one, mut newest) = found(&mut random);
            let [mut pages, mut single] = [(); 2].map(|()| Fragment::new(&table.def));
            for _ in 0..random.below(3) {
                // There is a page already, with another row in it.
                let id = random.below(ENDS);
                if by_pages.get(RowId::new(id)).is_none() && pages.row(RowId::new(id)).is_none() {
                    put(&mut pages, id, &table.layout);
                    put(&mut single, id, &table.layout);
                }
            }
            let share = random.between(1, 10);
            let ids = (0..ENDS).filter(|_| random.below(10) < share).map(RowId::new);
            let ids: Vec<RowId> = ids.collect();
            let (some, rest) = ids.split_at(random.below(ids.len() as u64 + 1) as usize);
            for ids in [some, rest] {
                assert!(pages.store_found(&mut by_pages, ids, &table.layout));
                for id in ids {
                    assert!(single.store_some(&mut one_by_one, &[*id], &table.layout));
                }
                assert_eq!(shown(&pages), shown(&single), "seed {seed}");
                assert_eq!(pages.next_number(), single.next_number(), "seed {seed}");
                let left = (0..).zip(&by_pages.pages).filter(|(_, page)| page.is_some());
                stayed += left.filter(|(at, _)| pages.has_page(*at)).count();
            }
            assert_eq!(by_pages.later, one_by_one.later, "seed {seed}");
            newest.retain(|id, _| !ids.contains(id));
            for rows in [by_pages, one_by_one] {
                assert!(left(rows).into_iter().eq(newest.clone()), "seed {seed}");
            }
        }
        assert!(stayed > 100, "{stayed}");
    }

    fn left(mut rows: FragmentRows) -> Vec<(RowId, Newest)> {
        let mut left = Vec::new();
        while !rows.is_empty() {
            left.extend(rows.take_first().into_iter().map(|(id, _, newest)| (id, newest)));
        }
        assert!(rows.later.is_empty() && rows.take_first().is_empty());
        left
    }

    #[test]
    fn a_key_that_two_rows_have_is_noticed_in_a_page_and_between_pages() {
        let table = table(1);
        for (first, second) in [(1, 2), (1, PAGE_ROWS + 2)] {
            let mut rows = FragmentRows::default();
            let ids = [first, second].map(RowId::new);
            for (number, id) in (1..).zip(ids) {
                rows.note(id, (number, Epoch::new(1)), (b"key", Some(b"row")), Epoch::new(1));
            }
            let mut fragment = Fragment::new(&table.def);
            assert!(!fragment.store_found(&mut rows, &ids, &table.layout));
            let (rows, counts, ..) = shown(&fragment);
            assert_eq!((rows.len(), counts), (1, vec![1]));
        }
    }
}
