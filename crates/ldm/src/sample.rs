//! What an index is like: entries from places about equally far apart (READ-5).

use crate::{Fragment, Table, scan::Scan};
use alloc::vec::Vec;
use lats_base::RefCode;
use lats_catalog::{PRIMARY_INDEX, statistics::Sample};
use lats_signals::list::{self, FoundRow};
use lats_values::{ColumnType, key_value_bytes};

/// No more places than this are looked at: the longest keys and images of so many fit into one signal.
const SAMPLES_MAX: u64 = 256;
/// Longer rows do not go along.
const IMAGE_BYTES_MAX: usize = 1_024;

/// Adds the samples of a scan's fragment.
pub(crate) fn add(scan: &mut Scan, table: &Table, fragment: &Fragment) -> Result<(), RefCode> {
    let columns = fragment.index_key(scan.index).ok_or(RefCode::IndexUnknown)?;
    let own = table.def.key_columns(scan.index).ok_or(RefCode::IndexUnknown)?;
    let columns = columns.get(..own.len()).unwrap_or(columns);
    let types: Option<Vec<&ColumnType>> = columns
        .iter()
        .map(|column| table.def.columns.get(usize::from(*column)).map(|c| &c.column_type))
        .collect();
    let types = types.ok_or(RefCode::IndexUnknown)?;
    let entries = fragment.entries(scan.index).ok_or(RefCode::IndexUnknown)?;
    let count = usize::try_from(scan.left.min(SAMPLES_MAX)).unwrap_or(0);
    let mut row = Vec::new();
    for run in entries.sample(count) {
        let Some((key, id)) = run.first() else { continue };
        let image = fragment.row(*id).and_then(|row| row.committed.as_ref());
        let kept =
            image.filter(|i| scan.index == PRIMARY_INDEX && i.bytes.len() <= IMAGE_BYTES_MAX);
        let mut sample = Sample {
            entries: entries.len() as u64,
            row_bytes: image.map_or(0, |image| image.bytes.len() as u32),
            pairs: run.len() as u32 - 1,
            changes: alloc::vec![0; types.len()],
            image: kept.map_or_else(Vec::new, |image| image.bytes.to_vec()),
        };
        for pair in run.windows(2) {
            note_changes(&types, &pair[0].0, &pair[1].0, &mut sample.changes);
        }
        row.clear();
        sample.encode(&mut row);
        let head = FoundRow {
            index_key_bytes: key.len() as u32,
            primary_key_bytes: 0,
            row_bytes: row.len() as u32,
            range: 0,
        };
        list::push(&mut scan.batch, &head, [key, &[], &row]);
        scan.batch_rows += 1;
    }
    Ok(())
}

/// Counts the columns up to which two neighbours differ.
fn note_changes(types: &[&ColumnType], before: &[u8], key: &[u8], changes: &mut [u32]) {
    let same = before.iter().zip(key).take_while(|(a, b)| a == b).count();
    let mut end = 0;
    for (column, count) in types.iter().zip(changes) {
        let bytes = key.get(end..).and_then(|rest| key_value_bytes(column, rest));
        end = end.saturating_add(bytes.unwrap_or(usize::MAX));
        *count += u32::from(same < end);
    }
}
