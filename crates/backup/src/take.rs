//! Taking a backup: a snapshot of all tables, read at once.
//!
//! All tables are read side by side, so that the scans that are still open hold the epoch's versions of rows everywhere until
//! the end (SNAP-4), and no scan waits so long that its data node forgets it.

use crate::{
    BackupError, Manifest, Progress, TableEntry, blocking, format::push_row, place::Place,
    write::Writer,
};
use lats_base::{ErrorClass, RefCode};
use lats_catalog::{Catalog, PRIMARY_INDEX, TableDef};
use lats_client::{
    api::{AsOf, Committed, KeyRange, Scan, StoreError},
    net::Client,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{
        Semaphore,
        mpsc::{self, Receiver, Sender},
    },
    task::JoinSet,
    time::Instant,
};

/// How often it begins anew when something comes in between: a node dies, a table is changed.
const TRIES: u64 = 10;
const PAUSE: Duration = Duration::from_millis(500);
/// How long a disk may be full or slow until the backup ends without it.
const DURABLE_PATIENCE: Duration = Duration::from_secs(30);
/// Rows are compressed and checked by so many bytes.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that wait for being written.
const BLOCKS_WAITING: usize = 16;

/// So many tables send their first rows at once: from each of their fragments some, which wait for the client in the data nodes.
const OPENED_AT_ONCE: usize = 16;

/// Rows of a table, on their way into a file.
struct Rows {
    table: usize,
    count: u32,
    block: Vec<u8>,
}

/// Writes all rows as of one epoch, and all definitions, of this cluster to a new place; `taken_at_ms`: in ms since 1970; `restarts` asks how often the cluster has been restarted; none: it
/// does not say. If something comes in between it begins anew.
///
/// # Errors
/// If there is something, or it cannot be written; what the cluster refuses again and again.
pub async fn take(
    client: &Client,
    (cluster, taken_at_ms): (u64, u64),
    place: &Place,
    restarts: impl AsyncFn() -> Option<u32>,
    progress: &Arc<Progress>,
) -> Result<Manifest, BackupError> {
    let to = place.clone();
    blocking(move || to.prepare()).await?;
    let of = (cluster, taken_at_ms);
    let taken = take_in_the_end(client, of, place, &restarts, progress).await;
    let (to, has_failed) = (place.clone(), taken.is_err());
    let left = blocking(move || {
        // The mark stays as long as anything else does.
        if has_failed { to.clear().and_then(|()| to.release()) } else { to.release() }
    });
    match (taken, left.await) {
        (taken, Ok(())) => taken,
        (Ok(_), Err(left)) => Err(BackupError::Refused(format!(
            "the backup in {place} is whole; but the mark of those that are not stays there: {left}"
        ))),
        (Err(error), Err(left)) => Err(BackupError::left(&error, place, &left)),
    }
}

/// Tries until nothing comes in between.
async fn take_in_the_end(
    client: &Client,
    (cluster, taken_at_ms): (u64, u64),
    place: &Place,
    restarts: &impl AsyncFn() -> Option<u32>,
    progress: &Arc<Progress>,
) -> Result<Manifest, BackupError> {
    loop {
        progress.begin_anew();
        let tried = try_take(client, (cluster, taken_at_ms), place, restarts, progress).await;
        let tries = progress.tries.load(std::sync::atomic::Ordering::Relaxed);
        match tried {
            Err(BackupError::Store(error)) if passes(&error) && tries < TRIES => {
                let to = place.clone();
                blocking(move || to.clear()).await?;
                tokio::time::sleep(PAUSE).await;
            }
            Err(BackupError::Store(error)) => return Err(in_words(error)),
            ended => return ended,
        }
    }
}

/// True if another attempt may succeed: tables may have been changed or dropped as well.
fn passes(error: &StoreError) -> bool {
    let changed = [RefCode::TableUnknown, RefCode::SchemaVersionOld, RefCode::SnapshotTooOld];
    error.class() == ErrorClass::Temporary || changed.contains(&error.code)
}

/// What a person can do about it.
fn in_words(error: StoreError) -> BackupError {
    let advice = match error.code {
        RefCode::TableUnknown | RefCode::SchemaVersionOld => {
            "tables were changed, dropped or truncated each time: take it while that rests"
        }
        RefCode::SnapshotTooOld => {
            "the data nodes could not keep what changed meanwhile: give them more memory, or take it while less is written"
        }
        _ => return error.into(),
    };
    BackupError::Refused(format!("it was tried {TRIES} times; {advice} ({error})"))
}

async fn try_take(
    client: &Client,
    of: (u64, u64),
    place: &Place,
    restarts: &impl AsyncFn() -> Option<u32>,
    progress: &Arc<Progress>,
) -> Result<Manifest, BackupError> {
    let Some(before) = in_the_end(restarts).await else {
        return Err(BackupError::Refused("the cluster does not tell its state".to_string()));
    };
    let (writer, mut manifest) = write_rows(client, of, place, progress).await?;
    let rows = Committed { epoch: manifest.epoch, restarts: before, changes: None };
    manifest.is_durable = is_durable(client, rows).await?;
    blocking(move || writer.finish(manifest)).await
}

/// Asks until there is an answer. None: that takes too long.
async fn in_the_end(restarts: &impl AsyncFn() -> Option<u32>) -> Option<u32> {
    let end = Instant::now() + DURABLE_PATIENCE;
    loop {
        match restarts().await {
            None if Instant::now() < end => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

/// ARCHIVE-4: an archive can go on with this epoch, because no restart of the cluster will make it void. False if nothing is kept, or
/// that takes too long.
async fn is_durable(client: &Client, rows: Committed) -> Result<bool, StoreError> {
    let end = Instant::now() + DURABLE_PATIENCE;
    loop {
        match client.durable(rows).await {
            Ok(()) => return Ok(true),
            Err(error) if error.code == RefCode::NothingKept => return Ok(false),
            Err(error) if error.code != RefCode::NotOnDisk => return Err(error),
            Err(_) if Instant::now() > end => return Ok(false),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// True for tables that a backup has: not for those that belong to an index or to a session.
fn is_kept(def: &TableDef) -> bool {
    def.index_of.is_none() && def.owner().is_none()
}

/// Writes all rows; gives what is still to be said of them.
async fn write_rows(
    client: &Client,
    (cluster, taken_at_ms): (u64, u64),
    place: &Place,
    progress: &Arc<Progress>,
) -> Result<(Writer, Manifest), BackupError> {
    let began = Instant::now();
    client.fetch_catalog().await?;
    let catalog = client.catalog();
    let tables: Vec<TableDef> =
        catalog.tables.definitions().filter(|def| is_kept(def)).cloned().collect();
    for def in &tables {
        hold_versions(client, def).await?;
    }
    let epoch = client.complete_epoch().await?;
    client.fetch_catalog().await?;
    if client.catalog().version != catalog.version {
        // Rows of the epoch may be in tables that are newer.
        return Err(StoreError::from(RefCode::SchemaVersionOld).into());
    }
    let (sender, receiver) = mpsc::channel(BLOCKS_WAITING);
    let mut readers = JoinSet::new();
    let opening = Arc::new(Semaphore::new(OPENED_AT_ONCE));
    for (at, def) in tables.iter().enumerate() {
        let (client, sender, opening) = (client.clone(), sender.clone(), opening.clone());
        let scan = whole_table(def, AsOf::Epoch(epoch));
        readers.spawn(async move { read(&client, at, scan, (&sender, &opening)).await });
    }
    drop(sender);
    let mut entries: Vec<TableEntry> =
        tables.iter().map(|def| TableEntry { table: def.id, ..TableEntry::default() }).collect();
    let (to, counts) = (place.clone(), progress.clone());
    let writer = tokio::task::spawn_blocking(move || {
        let mut writer = Writer::new(&to, (cluster, epoch))?;
        write(receiver, &mut writer, &mut entries, &counts)?;
        Ok::<_, BackupError>((writer, entries))
    });
    let mut failed = None;
    while let Some(ended) = readers.join_next().await {
        let error = match ended {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error,
            Err(error) => BackupError::died(&error),
        };
        // The others are of no use without it.
        failed.get_or_insert(error);
        readers.abort_all();
    }
    let written = writer.await.map_err(|error| BackupError::died(&error))?;
    // If it could not write, that is why the readers have failed.
    let (writer, entries) = written?;
    if let Some(error) = failed {
        return Err(error);
    }
    let manifest = Manifest {
        software: env!("CARGO_PKG_VERSION").to_string(),
        cluster,
        epoch,
        taken_at_ms,
        took_ms: began.elapsed().as_millis() as u64,
        is_durable: false,
        catalog: Catalog::clone(&catalog),
        tables: entries,
        parts: Vec::new(),
    };
    Ok((writer, manifest))
}

fn whole_table(def: &TableDef, as_of: AsOf) -> Scan {
    Scan {
        table: def.id,
        schema_version: def.schema_version,
        index: PRIMARY_INDEX,
        ranges: vec![KeyRange::default()],
        ordered: false,
        reverse: false,
        primary_keys: false,
        program: Default::default(),
        limit: None,
        pending: false,
        to_lock: false,
        few: false,
        first_of_range: false,
        as_of,
    }
}

/// SNAP-2: from now on all data managers with rows of the table keep older versions.
async fn hold_versions(client: &Client, def: &TableDef) -> Result<(), StoreError> {
    client.scan(Scan { limit: Some(1), ..whole_table(def, AsOf::Complete) }).next().await?;
    Ok(())
}

/// Reads a table.
async fn read(
    client: &Client,
    table: usize,
    scan: Scan,
    (sender, opening): (&Sender<Rows>, &Semaphore),
) -> Result<(), BackupError> {
    let mut stream = client.scan(scan);
    let mut rows = Rows { table, count: 0, block: Vec::new() };
    let mut turn = opening.acquire().await.ok();
    loop {
        let batch = stream.next().await?;
        turn.take();
        for row in batch.iter().flat_map(|batch| batch.iter()) {
            push_row(&mut rows.block, row.row);
            rows.count += 1;
        }
        if rows.block.len() >= BLOCK_BYTES || (batch.is_none() && rows.count > 0) {
            let full = std::mem::replace(&mut rows, Rows { table, count: 0, block: Vec::new() });
            if sender.send(full).await.is_err() {
                return Err(BackupError::Refused("the backup was given up".into()));
            }
        }
        if batch.is_none() {
            return Ok(());
        }
    }
}

fn write(
    mut receiver: Receiver<Rows>,
    writer: &mut Writer,
    entries: &mut [TableEntry],
    progress: &Progress,
) -> Result<(), BackupError> {
    while let Some(rows) = receiver.blocking_recv() {
        let entry = &mut entries[rows.table];
        // Without the lengths in front of them.
        let bytes = rows.block.len() as u64 - 4 * u64::from(rows.count);
        let stored = writer.add(entry.table, rows.count, &rows.block)?;
        entry.rows += u64::from(rows.count);
        entry.bytes += bytes;
        progress.add(u64::from(rows.count), bytes, stored);
    }
    Ok(())
}

/// A table as people call it.
pub(crate) fn name_of(def: &TableDef) -> String {
    format!("{}.{}", def.database, def.name)
}
