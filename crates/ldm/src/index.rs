//! Unique indexes at the data manager: which of their entries a changed row changes, and who has a
//! key. The entries are rows of hidden tables (docs/protocols/unique-index.md).

use crate::{Ldm, Table, prepare::Run};
use alloc::vec::Vec;
use lats_base::{RefCode, limits};
use lats_catalog::{IndexDef, unique};
use lats_signals::list::{self, Holder, IndexChange, Operation, OutcomeKind};

/// The key of a row in an index; none if a column is NULL, for NULLs are never equal.
fn entry_of(table: &Table, index: &IndexDef, image: &[u8]) -> Option<Vec<u8>> {
    if index.columns.iter().any(|column| table.layout.is_null(image, *column)) {
        return None;
    }
    let mut key = Vec::new();
    table.layout.key_of(image, &index.columns, &mut key);
    Some(key)
}

impl Run {
    /// UNIQUE-1: the entries that go away and those that come, when a row's image changes.
    pub(crate) fn note_index_changes(
        &mut self,
        table: &Table,
        (operation, flags, primary_key): (u32, u32, &[u8]),
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<(), RefCode> {
        for (index, entries) in table.def.unique_indexes() {
            let before = old.and_then(|image| entry_of(table, index, image));
            let after = new.and_then(|image| entry_of(table, index, image));
            if before == after {
                continue;
            }
            let mut change = IndexChange {
                table: entries.table,
                index: index.id,
                operation,
                flags,
                ..IndexChange::default()
            };
            if let Some(index_key) = before {
                self.add_index_change(change, &index_key, primary_key)?;
            }
            if let Some(index_key) = after {
                change.inserts = 1;
                self.add_index_change(change, &index_key, primary_key)?;
            }
        }
        Ok(())
    }

    /// UNIQUE-7: the entries of a row in the indexes that are being built.
    pub(crate) fn note_entries_to_build(
        &mut self,
        table: &Table,
        operation: u32,
        primary_key: &[u8],
        image: Option<&[u8]>,
    ) -> Result<OutcomeKind, RefCode> {
        let Some(image) = image else { return Ok(OutcomeKind::Missing) };
        for (index, entries) in table.def.unique_indexes() {
            let Some(index_key) = entry_of(table, index, image) else { continue };
            if entries.builder.is_none() {
                continue;
            }
            let change = IndexChange {
                table: entries.table,
                index: index.id,
                inserts: 1,
                operation,
                ..IndexChange::default()
            };
            self.add_index_change(change, &index_key, primary_key)?;
        }
        Ok(OutcomeKind::Done)
    }

    fn add_index_change(
        &mut self,
        change: IndexChange,
        index_key: &[u8],
        primary_key: &[u8],
    ) -> Result<(), RefCode> {
        let key = unique::key(index_key);
        if key.len() > limits::KEY_BYTES_MAX {
            return Err(RefCode::KeyTooLarge);
        }
        let row = unique::row(index_key, primary_key).map_err(|_| RefCode::KeyTooLarge)?;
        let change =
            IndexChange { key_bytes: key.len() as u32, row_bytes: row.len() as u32, ..change };
        if self.index_changes.len() + key.len() + row.len() > limits::INDEX_CHANGE_BYTES_MAX {
            return Err(RefCode::OperationLimit);
        }
        list::push(&mut self.index_changes, &change, [&key, &row, &[]]);
        self.index_change_count += 1;
        Ok(())
    }
}

impl Ldm {
    /// UNIQUE-4: the rows that have a key, or are about to have it: the one that it belongs to when
    /// the topmost transaction is left out, and the one that this transaction gives it to.
    /// Any in-sync replica can tell.
    pub(crate) fn read_holders(
        &self,
        head: &Operation,
        key: &[u8],
    ) -> Result<(OutcomeKind, Option<Vec<u8>>), RefCode> {
        let fragment = self.fragment(head.table, head.fragment).ok_or(RefCode::StaleView)?;
        let Some(row) = fragment.find(key).and_then(|id| fragment.row(id)) else {
            return Ok((OutcomeKind::Missing, None));
        };
        let top = row.pending().last().map(|v| v.transaction);
        // COMMIT-6: what stands below the topmost transaction's versions is committed.
        let below = row.pending().iter().rfind(|v| Some(v.transaction) != top);
        let settled = match below {
            Some(version) => version.image.as_deref().map(|image| (version.number, image)),
            None => row.committed.as_ref().map(|image| (row.number, &*image.bytes)),
        };
        let newest = row.pending().last().and_then(|v| Some((v.number, v.image.as_deref()?)));
        let mut holders = Vec::new();
        for (version, image) in settled.into_iter().chain(newest) {
            let primary_key = unique::primary_key_of(image);
            let primary_key_bytes = primary_key.len() as u32;
            let holder = Holder { version, primary_key_bytes, reserved: 0 };
            list::push(&mut holders, &holder, [&primary_key, &[], &[]]);
        }
        if holders.is_empty() {
            return Ok((OutcomeKind::Missing, None));
        }
        Ok((OutcomeKind::Done, Some(holders)))
    }
}
