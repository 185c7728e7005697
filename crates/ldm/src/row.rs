//! A row's record: one cache line, with what only rows have that are being changed, or were lately, beside it.

use crate::{key::Key, lock::Lock, snapshot::Older};
use alloc::{boxed::Box, vec::Vec};
use lats_base::{Epoch, TransactionId};

/// A committed row image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The stored row.
    pub bytes: Box<[u8]>,
}

/// A version above the committed one.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) transaction: TransactionId,
    pub(crate) number: u64,
    /// The statement that made it.
    pub(crate) statement: u32,
    /// None: the row is deleted.
    pub(crate) image: Option<Box<[u8]>>,
    /// It came from the primary; this node was a backup then.
    pub(crate) replicated: bool,
}

#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) committed: Option<Image>,
    /// The number and epoch of the committed image (or of the deletion).
    pub(crate) number: u64,
    pub(crate) epoch: Epoch,
    /// None while the row is at rest.
    pub(crate) busy: Option<Box<Busy>>,
}

/// What a row at rest does not have.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// Versions above the committed one, in the primary's order.
    pub(crate) pending: Vec<Version>,
    /// Replaced versions that snapshots may need, oldest first (SNAP-2).
    pub(crate) older: Vec<Older>,
    pub(crate) lock: Lock,
}

impl Busy {
    /// True if nothing is left of what made the row busy.
    pub(crate) fn is_over(&self) -> bool {
        self.pending.is_empty() && self.older.is_empty() && self.lock.is_free()
    }

    /// True if it takes little memory, though it may have had much to keep.
    pub(crate) fn is_small(&self) -> bool {
        self.pending.capacity() <= 8 && self.older.capacity() <= 8 && self.lock.is_small()
    }
}

impl Row {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self { key: Key::new(key), committed: None, number: 0, epoch: Epoch::default(), busy: None }
    }

    /// Versions above the committed one, in the primary's order.
    pub(crate) fn pending(&self) -> &[Version] {
        self.busy.as_ref().map_or(&[], |busy| &busy.pending)
    }

    /// Replaced versions that are kept, oldest first.
    pub(crate) fn older(&self) -> &[Older] {
        self.busy.as_ref().map_or(&[], |busy| &busy.older)
    }

    /// Its lock; none if nobody has it or waits for it.
    pub(crate) fn lock(&self) -> Option<&Lock> {
        self.busy.as_ref().map(|busy| &busy.lock).filter(|lock| !lock.is_free())
    }

    /// The images of all its versions.
    pub(crate) fn images(&self) -> impl Iterator<Item = &[u8]> {
        let pending = self.pending().iter().filter_map(|v| v.image.as_deref());
        let older = self.older().iter().filter_map(|o| o.image.as_deref());
        pending.chain(self.committed.as_ref().map(|i| &*i.bytes)).chain(older)
    }

    /// Makes its only version, which must have this number and an image, the committed one: the usual case. Gives
    /// the image that it replaces, if there is one; none if the case is another.
    pub(crate) fn settle(&mut self, number: u64, epoch: Epoch) -> Option<Option<Box<[u8]>>> {
        let busy = self.busy.as_mut()?;
        let usual =
            matches!(&busy.pending[..], [only] if only.number == number && only.image.is_some());
        if !usual || !busy.older.is_empty() {
            return None;
        }
        let bytes = busy.pending.pop()?.image?;
        (self.number, self.epoch) = (number, epoch);
        Some(self.committed.replace(Image { bytes }).map(|old| old.bytes))
    }

    /// Takes a transaction's lock away, if it has one; adds those that get it now.
    pub(crate) fn unlock(&mut self, transaction: TransactionId, granted: &mut Vec<TransactionId>) {
        if let Some(busy) = self.busy.as_mut()
            && !busy.lock.is_free()
        {
            busy.lock.release(transaction);
            granted.extend(busy.lock.grant_next());
        }
    }

    /// The number of its newest change, pending or not.
    pub(crate) fn newest_number(&self) -> u64 {
        self.pending().last().map_or(self.number, |version| version.number)
    }

    /// True if this very version is pending.
    pub(crate) fn holds_version(&self, version: &Version) -> bool {
        let pending = self.pending();
        if pending.last().is_none_or(|top| top.number < version.number) {
            return false;
        }
        let at = pending.binary_search_by_key(&version.number, |v| v.number);
        at.is_ok_and(|at| pending[at].transaction == version.transaction)
    }

    /// The image that the transaction sees at the primary: its own newest, else the committed.
    pub(crate) fn seen_by(&self, transaction: TransactionId) -> Option<&[u8]> {
        match self.pending().last() {
            Some(top) if top.transaction == transaction => top.image.as_deref(),
            _ => self.committed.as_ref().map(|i| &*i.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_cache_line_also_where_there_may_be_none() {
        assert_eq!((size_of::<Row>(), size_of::<Option<Row>>()), (64, 64));
    }
}
