//! What is restored: the rows of a backup, or with the changes of an archive those of a later moment. Each key is given once, with
//! its last row: so no unique index sees two rows in an order that there never was.

use super::{Later, Targets};
use crate::{
    BackupError, Manifest, TableEntry,
    archive::{Changes, Passes},
    format::{push_row, rows},
    place::Place,
    read::{self, Block},
    take::name_of,
};
use lats_base::TableId;
use lats_files::redo::Span;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::mpsc::Sender;

/// A backup, and what happened later.
pub(super) struct Source {
    pub(super) place: Place,
    pub(super) manifest: Manifest,
    pub(super) later: Option<Later>,
    /// Whose rows are wanted.
    pub(super) targets: Arc<Targets>,
}

/// How many rows of each table were given.
type Counts = BTreeMap<TableId, u64>;

/// Changed rows are given in blocks of so many bytes.
const BLOCK_BYTES: usize = 128 << 10;

impl Source {
    /// Gives all rows.
    pub(super) fn send_all(&self, sender: &Sender<Block>) -> Result<Counts, BackupError> {
        let mut given: Counts = self.targets.keys().map(|table| (*table, 0)).collect();
        let send = |block: Block, given: &mut Counts| {
            if block.rows == 0 {
                return Ok(());
            }
            *given.entry(block.table).or_default() += u64::from(block.rows);
            // If nobody takes it any more, they say why.
            let given_up = |_| BackupError::Refused("the restore was given up".to_string());
            sender.blocking_send(block).map_err(given_up)
        };
        let Some(later) = &self.later else {
            self.read_backup(|block| send(block, &mut given))?;
            return Ok(given);
        };
        let wanted = Span { after: self.manifest.epoch, upto: later.moment.epoch };
        let mut passes = Passes::new();
        loop {
            let of = (wanted, |table| self.targets.contains_key(&table));
            let changes = Changes::read(&later.archive, of, &mut passes, later.bytes_max)?;
            let Some(changes) = changes else { return Ok(given) };
            self.read_backup(|block| send(self.left_of(&block, &changes)?, &mut given))?;
            changed_blocks(&changes, |block| send(block, &mut given))?;
        }
    }

    /// Reads the wanted rows of the backup: all must be there.
    fn read_backup(
        &self,
        mut take: impl FnMut(Block) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let Self { place, manifest, .. } = self;
        let mut found: Counts = self.targets.keys().map(|table| (*table, 0)).collect();
        for entry in &manifest.parts {
            let mut part = read::open_part(place, manifest, entry)?;
            while let Some(block) = part.next()? {
                let Some(count) = found.get_mut(&block.table) else { continue };
                *count += u64::from(block.rows);
                take(block)?;
            }
            part.is_whole(entry)?;
        }
        let lacks = |t: &&TableEntry| found.get(&t.table).is_some_and(|count| *count != t.rows);
        let Some(entry) = manifest.tables.iter().find(lacks) else { return Ok(()) };
        let name =
            manifest.catalog.tables.get(&entry.table).map(|def| name_of(def)).unwrap_or_default();
        let count = found.get(&entry.table).copied().unwrap_or_default();
        let why = format!("it has {count} of the {} rows of table {name}", entry.rows);
        Err(BackupError::damaged(&place.path(""), why))
    }

    /// The rows of a block that nobody has changed since.
    fn left_of(&self, block: &Block, changes: &Changes) -> Result<Block, BackupError> {
        let mut left = Block { table: block.table, rows: 0, bytes: Vec::new() };
        let Some(target) = self.targets.get(&block.table) else { return Ok(left) };
        let (mut key, mut count) = (Vec::new(), 0);
        for row in rows(&block.bytes) {
            let row = row.map_err(|why| BackupError::Refused(why.to_string()))?;
            target.layout.validate(row).map_err(super::malformed)?;
            count += 1;
            key.clear();
            target.layout.key_of(row, &target.primary_key, &mut key);
            if changes.leaves(block.table, &key) {
                push_row(&mut left.bytes, row);
                left.rows += 1;
            }
        }
        if count != block.rows {
            return Err(BackupError::Refused("a block of the backup has lost rows".to_string()));
        }
        Ok(left)
    }
}

/// Gives the rows that were changed, and are there.
fn changed_blocks(
    changes: &Changes,
    mut take: impl FnMut(Block) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut block = Block { table: TableId::default(), rows: 0, bytes: Vec::new() };
    for (table, row) in changes.rows() {
        if table != block.table || block.bytes.len() >= BLOCK_BYTES {
            take(std::mem::replace(&mut block, Block { table, rows: 0, bytes: Vec::new() }))?;
        }
        push_row(&mut block.bytes, row);
        block.rows += 1;
    }
    take(block)
}
