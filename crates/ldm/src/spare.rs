//! Memory that rows have only while they are being changed: it goes from one row to the next, so that a steady
//! flow of changes allocates nothing, and rows at rest hold none.

use crate::row::Busy;
use alloc::{boxed::Box, vec, vec::Vec};
use lats_base::SortedMap;

/// What is kept of each kind at most.
const SPARE_MAX: usize = 256;
/// Lengths of images that memory is kept for at most, and the longest: what is longer is seldom changed in a batch.
const LENGTHS_MAX: usize = 16;
const IMAGE_BYTES_MAX: usize = 1 << 10;

/// Of one fragment.
#[derive(Default)]
pub(crate) struct Spare {
    #[expect(clippy::vec_box, reason = "rows own them by a pointer")]
    busy: Vec<Box<Busy>>,
    /// By their length. The one that was freed last goes first: it is still in the processor's cache.
    images: SortedMap<usize, Vec<Box<[u8]>>, 1>,
}

impl Spare {
    /// For a row that is not at rest any more.
    pub(crate) fn busy(&mut self) -> Box<Busy> {
        self.busy.pop().unwrap_or_default()
    }

    /// Keeps what a row at rest does not need. Large ones are freed.
    pub(crate) fn keep_busy(&mut self, busy: Box<Busy>) {
        if self.busy.len() < SPARE_MAX && busy.is_over() && busy.is_small() {
            self.busy.push(busy);
        }
    }

    /// Empty memory for an image that is likely to have this length.
    pub(crate) fn room(&mut self, length: usize) -> Vec<u8> {
        let spare = self.images.get_mut(&length).and_then(Vec::pop);
        let mut room = spare.map_or_else(|| Vec::with_capacity(length), Vec::from);
        room.clear();
        room
    }

    /// Keeps the memory of an image that is no more.
    pub(crate) fn keep_image(&mut self, image: Box<[u8]>) {
        let length = image.len();
        if length == 0 || length > IMAGE_BYTES_MAX {
            return;
        }
        if let Some(same) = self.images.get_mut(&length) {
            if same.len() < SPARE_MAX {
                same.push(image);
            }
            return;
        }
        if self.images.len() >= LENGTHS_MAX {
            self.images = SortedMap::new();
        }
        self.images.insert(length, vec![image]);
    }
}
