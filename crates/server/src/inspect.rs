//! `latsdb inspect`: what is in the files of a node, for people.

use crate::say::say;
use anyhow::{Context, bail};
use lats_backup::{
    BackupError, MANIFEST_FILE, PartEntry, Place, TableEntry,
    archive::{in_words, times_in},
};
use lats_files::{
    control,
    redo::{End, Record, RecordKind, SEGMENT_HEAD_BYTES, Seal, Segment},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Print what is in redo logs, control files, archives and backups. The files of a running node may be read as well.
#[derive(clap::Args)]
pub(crate) struct InspectArgs {
    /// Files, or directories of nodes (as `latsdb-data/node-1`), of their archives, or of backups.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print every record of redo logs, and every change.
    #[arg(long)]
    records: bool,
}

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<ExitCode> {
    let mut damaged = false;
    for path in &args.paths {
        for file in files(path)? {
            if let Some(is_damaged) = inspect_backup(&file)? {
                damaged |= is_damaged;
                continue;
            }
            let bytes =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            say!("{} ({} bytes)", file.display(), bytes.len());
            damaged |= match bytes.get(..8) {
                Some(magic) if magic == control::MAGIC => inspect_control(&bytes),
                _ if is_of_times(&file) => inspect_times(&bytes),
                _ if is_never_begun(&file, &bytes) => {
                    say!("  it was never begun");
                    false
                }
                _ => inspect_redo(&bytes, args.records),
            };
        }
    }
    Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What files of nodes, of archives, and of backups are called.
const PREFIXES: [&str; 5] = ["control-", "redo-", "times-", "rows-", MANIFEST_FILE];

fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_ours).collect();
    files.sort();
    if files.is_empty() {
        bail!(
            "{} has no files of a node, of its archive, or of a backup; name a directory like latsdb-data/node-1",
            path.display()
        );
    }
    Ok(files)
}

/// A segment gets its file, which may have been used before, before anything stands in it.
fn is_never_begun(path: &Path, bytes: &[u8]) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let (is_of_node, head) =
        (path.extension().is_some_and(|e| e == "log"), bytes.get(..SEGMENT_HEAD_BYTES as usize));
    is_of_node
        && name.is_some_and(|name| name.starts_with("redo-"))
        && (bytes.is_empty() || head.is_some_and(|head| head.iter().all(|byte| *byte == 0)))
}

fn is_of_times(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("times-"))
}

/// None: it is no file of a backup. True if it is damaged. Parts may be as large as a GiB: they are read block by block.
fn inspect_backup(file: &Path) -> anyhow::Result<Option<bool>> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_part = name.starts_with("rows-");
    if name != MANIFEST_FILE && !is_part {
        return Ok(None);
    }
    let metadata = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
    say!("{} ({} bytes)", file.display(), metadata.len());
    let shown = if is_part { show_part(file) } else { show_manifest(file) };
    Ok(Some(shown.unwrap_or_else(|error| {
        say!("  cannot be used: {error}");
        true
    })))
}

fn show_manifest(file: &Path) -> Result<bool, BackupError> {
    let place = Place::directory(file.parent().unwrap_or(Path::new("")));
    let manifest = lats_backup::manifest(&place)?;
    say!(
        "  backup of cluster {:016x} as of epoch {}, begun at {} (UTC), taken in {} ms by LatsDB {}",
        manifest.cluster,
        manifest.epoch,
        in_words(manifest.taken_at_ms),
        manifest.took_ms,
        manifest.software
    );
    let is_durable = if manifest.is_durable {
        "can go on with it"
    } else {
        "cannot go on with it: it was not on the disks of all replicas"
    };
    say!("  an archive {is_durable}");
    for TableEntry { table, rows, bytes } in &manifest.tables {
        let def = manifest.catalog.tables.get(table);
        let name = def.map(|def| format!("{}.{}", def.database, def.name)).unwrap_or_default();
        say!("  table {table}: {name}, {rows} rows, {bytes} bytes");
    }
    for view in manifest.catalog.views.values() {
        say!("  view {}: {}.{}", view.id, view.database, view.name);
    }
    for PartEntry { number, blocks, .. } in &manifest.parts {
        say!("  part {number}: {blocks} blocks");
    }
    Ok(false)
}

fn show_part(file: &Path) -> Result<bool, BackupError> {
    let part = lats_backup::survey_part(file)?;
    say!(
        "  part {} of a backup of cluster {:016x} as of epoch {}: {} blocks",
        part.number,
        part.cluster,
        part.epoch,
        part.blocks
    );
    for (table, TableEntry { rows, bytes, .. }) in &part.tables {
        say!("  table {table}: {rows} rows, {bytes} bytes");
    }
    if let Some(fault) = &part.fault {
        say!("  nothing that can be used behind that: {fault}");
    }
    Ok(part.fault.is_some())
}

/// True if it is damaged.
fn inspect_times(bytes: &[u8]) -> bool {
    let (entries, whole) = times_in(bytes);
    for (at, words) in [("from", entries.first()), ("to", entries.last())] {
        if let Some((at_ms, epoch)) = words {
            say!("  {at} {} (UTC): epoch {epoch}", in_words(*at_ms));
        }
    }
    say!("  {} times", entries.len());
    !whole
}

/// True if it is damaged.
fn inspect_control(bytes: &[u8]) -> bool {
    let read = control::open(bytes)
        .and_then(|(owner, content)| Ok((owner, lats_node::control::decode_kept(content)?)));
    let (owner, kept) = match read {
        Ok(read) => read,
        Err(error) => {
            say!("  cannot be used: {}", error.why());
            return true;
        }
    };
    let (state, promised) = (&kept.state, kept.promised);
    let view = &state.view;
    say!(
        "  control state of node {} in cluster {}, after {} commands",
        owner.node,
        owner.cluster,
        state.commands
    );
    say!(
        "  view {}, catalog {}, epochs up to {}, of which those up to {} were durable",
        view.number,
        state.catalog.version,
        state.epoch_ceiling,
        kept.durable
    );
    let restored: Vec<String> = state.restored.iter().map(ToString::to_string).collect();
    say!(
        "  restarts: {} (at epochs: {}); promised: {promised}",
        restored.len(),
        restored.join(", ")
    );
    for member in &view.members {
        let what = match (member.alive, member.roles.data) {
            (false, _) => "dead",
            (true, false) => "witness",
            (true, true) if view.is_in_sync(member.node) => "full replica",
            (true, true) => "being filled",
        };
        say!(
            "  node {} (life {}): {what}, {}",
            member.node,
            member.incarnation,
            member.native_address
        );
    }
    for table in state.catalog.tables.values() {
        say!(
            "  table {}: {}.{}, {} fragments",
            table.id,
            table.database,
            table.name,
            table.fragment_count
        );
    }
    for view in state.catalog.views.values() {
        say!("  view {}: {}.{}", view.id, view.database, view.name);
    }
    false
}

/// True if there is damage. What stands behind the last record may be the torn end of a log.
fn inspect_redo(bytes: &[u8], shows_records: bool) -> bool {
    let mut segment = match Segment::open(bytes) {
        Ok(segment) => segment,
        Err(why) => {
            say!("  cannot be used: {why}");
            return true;
        }
    };
    let log = segment.log;
    say!(
        "  redo log of data manager {} of node {} (life {}) in cluster {}: segment {}, after {} restarts",
        log.instance,
        log.node,
        log.life,
        log.cluster,
        segment.number,
        segment.restarts
    );
    say!(
        "  the log begins with segment {}; records from {} on",
        segment.origin,
        segment.next_record()
    );
    let (mut records, mut changes, mut sealed) = (0_u64, 0_u64, None);
    for record in segment.by_ref() {
        records += 1;
        changes += record.changes().count() as u64;
        if record.kind == RecordKind::Seal {
            sealed = Some(record.seal);
        }
        if shows_records {
            show(&record);
        }
    }
    say!("  {records} records with {changes} changes");
    if let Some(Seal { epoch, durable, .. }) = sealed {
        say!("  sealed up to epoch {epoch}; then known to be durable everywhere: {durable}");
    }
    match segment.end() {
        End::Clean | End::Zeros => false,
        End::Broken { at, why } => {
            say!("  nothing that can be used from byte {at} on: {why}");
            true
        }
    }
}

fn show(record: &Record<'_>) {
    match record.kind {
        RecordKind::Seal => say!(
            "  {}: seal of epoch {}, for states that know {} commands{}",
            record.number,
            record.epoch,
            record.seal.commands,
            if record.seal.whole { "" } else { "; rows were still being copied from other nodes" }
        ),
        RecordKind::Changes => {
            let of = record.transaction;
            say!(
                "  {}: epoch {}, transaction {:x}/{}",
                record.number,
                record.epoch,
                of.client.get(),
                of.sequence
            );
        }
    }
    for change in record.changes() {
        let what = change.image.map_or_else(|| "deleted".to_string(), hex);
        say!(
            "      table {} fragment {} row {} change {}: key {} {what}",
            change.table,
            change.fragment,
            change.row,
            change.number,
            hex(change.key)
        );
    }
}

fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut text: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > SHOWN {
        text.push_str(&format!("… ({} bytes)", bytes.len()));
    }
    text
}
