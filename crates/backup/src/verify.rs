//! Is a backup whole?

use crate::{
    BackupError, Manifest, Progress, TableEntry,
    format::{part_name, rows},
    place::Place,
    read::{self, Block},
};
use lats_base::TableId;
use lats_values::RowLayout;
use std::collections::BTreeMap;

/// What was found.
#[derive(Debug)]
pub struct Verified {
    /// What the backup says of itself.
    pub manifest: Manifest,
    /// What is wrong with it: nothing, if it is whole.
    pub faults: Vec<String>,
}

/// Reads all of a backup, and checks every block and every row.
///
/// # Errors
/// If it cannot be read at all.
pub fn verify(place: &Place, progress: &Progress) -> Result<Verified, BackupError> {
    let manifest = read::manifest(place)?;
    let mut check = Check::of(&manifest);
    for entry in &manifest.parts {
        if let Err(error) = check.part(place, &manifest, entry, progress) {
            check.faults.push(error.to_string());
        }
    }
    for entry in &manifest.tables {
        let found = check.found.get(&entry.table).copied().unwrap_or_default();
        if (found.rows, found.bytes) != (entry.rows, entry.bytes) {
            let name =
                manifest.catalog.tables.get(&entry.table).map(|def| crate::take::name_of(def));
            let name = name.unwrap_or_default();
            check
                .faults
                .push(format!("table {name} has {} of its {} rows", found.rows, entry.rows));
        }
    }
    let faults = check.faults;
    Ok(Verified { manifest, faults })
}

struct Check {
    layouts: BTreeMap<TableId, RowLayout>,
    found: BTreeMap<TableId, TableEntry>,
    faults: Vec<String>,
}

impl Check {
    fn of(manifest: &Manifest) -> Self {
        let tables = manifest.catalog.tables.values();
        let layouts = tables.map(|def| (def.id, def.layout())).collect();
        Self { layouts, found: BTreeMap::new(), faults: Vec::new() }
    }

    fn part(
        &mut self,
        place: &Place,
        manifest: &Manifest,
        entry: &crate::PartEntry,
        progress: &Progress,
    ) -> Result<(), BackupError> {
        let path = place.path(&part_name(entry.number));
        let mut part = read::open_part(place, manifest, entry)?;
        while let Some(block) = part.next()? {
            self.block(&block).map_err(|why| {
                BackupError::damaged(&path, format!("block {}: {why}", part.blocks()))
            })?;
            progress.add(u64::from(block.rows), block.bytes.len() as u64, 0);
        }
        part.is_whole(entry)
    }

    fn block(&mut self, block: &Block) -> Result<(), &'static str> {
        let layout = self.layouts.get(&block.table).ok_or("nobody knows its table")?;
        let found = self.found.entry(block.table).or_default();
        let mut count = 0;
        for row in rows(&block.bytes) {
            let row = row?;
            layout.validate(row).map_err(|_| "a row is none of its table")?;
            found.rows += 1;
            found.bytes += row.len() as u64;
            count += 1;
        }
        if count == block.rows { Ok(()) } else { Err("rows of it are missing") }
    }
}
