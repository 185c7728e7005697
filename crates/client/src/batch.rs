//! Rows that a scan found, many in one buffer.

use lats_signals::list::{self, FoundRow};

/// A row that a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanRow<'a> {
    /// Its key in the scanned index; empty unless rows of many fragments are put in order.
    pub index_key: &'a [u8],
    /// Its primary key; empty unless it was asked for.
    pub primary_key: &'a [u8],
    /// The (projected) row image.
    pub row: &'a [u8],
    /// Which of the scan's ranges it was found in.
    pub range: u32,
}

/// Rows in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanBatch {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Where a row's strings are: one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    start: usize,
    index_key_end: usize,
    primary_key_end: usize,
    end: usize,
    range: u32,
}

impl ScanBatch {
    /// The rows of a payload of [`FoundRow`]s that was checked at the door.
    pub fn from_payload(payload: &[u8], row_count: u32) -> Self {
        let mut places = Vec::with_capacity(row_count as usize);
        let mut items = list::items::<FoundRow>(payload);
        let mut start = size_of::<FoundRow>();
        while let Some((head, [index_key, primary_key, row])) = items.next() {
            let index_key_end = start + index_key.len();
            let primary_key_end = index_key_end + primary_key.len();
            places.push(Place {
                start,
                index_key_end,
                primary_key_end,
                end: primary_key_end + row.len(),
                range: head.range,
            });
            start = payload.len() - items.rest().len() + size_of::<FoundRow>();
        }
        Self { bytes: payload.to_vec(), places }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The row at this place.
    pub fn get(&self, at: usize) -> Option<ScanRow<'_>> {
        self.places.get(at).map(|place| self.row(place))
    }

    /// The rows.
    pub fn iter(&self) -> impl Iterator<Item = ScanRow<'_>> {
        self.places.iter().map(|place| self.row(place))
    }

    /// Appends a row.
    pub fn push(&mut self, row: ScanRow<'_>) {
        let start = self.bytes.len();
        for part in [row.index_key, row.primary_key, row.row] {
            self.bytes.extend_from_slice(part);
        }
        let index_key_end = start + row.index_key.len();
        let primary_key_end = index_key_end + row.primary_key.len();
        let end = self.bytes.len();
        let range = row.range;
        self.places.push(Place { start, index_key_end, primary_key_end, end, range });
    }

    /// Keeps no more rows than this.
    pub fn truncate(&mut self, rows: usize) {
        self.places.truncate(rows);
    }

    fn row(&self, place: &Place) -> ScanRow<'_> {
        let part = |from: usize, to: usize| self.bytes.get(from..to).unwrap_or(&[]);
        ScanRow {
            index_key: part(place.start, place.index_key_end),
            primary_key: part(place.index_key_end, place.primary_key_end),
            row: part(place.primary_key_end, place.end),
            range: place.range,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_payload_and_pushed_rows_are_the_same() {
        let rows = [["a", "", "row"], ["", "key", ""], ["index", "primary", "a longer row"]];
        let (mut payload, mut pushed) = (Vec::new(), ScanBatch::default());
        for (row, range) in rows.into_iter().zip(5..) {
            let [index_key, primary_key, row] = row.map(str::as_bytes);
            let head = FoundRow {
                index_key_bytes: index_key.len() as u32,
                primary_key_bytes: primary_key.len() as u32,
                row_bytes: row.len() as u32,
                range,
            };
            list::push(&mut payload, &head, [index_key, primary_key, row]);
            pushed.push(ScanRow { index_key, primary_key, row, range });
        }
        let read = ScanBatch::from_payload(&payload, 3);
        assert!(read.iter().eq(pushed.iter()));
        assert_eq!(read.get(2).unwrap().row, b"a longer row");
        assert_eq!(read.get(2).unwrap().range, 7);
        assert_eq!((read.len(), read.get(3)), (3, None));
        pushed.truncate(1);
        assert_eq!(pushed.iter().count(), 1);
    }
}
