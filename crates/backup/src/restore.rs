//! Filling a cluster from a backup, and from an archive with what happened later. The tables are created there anew, so that
//! its shape does not matter.

mod source;

use crate::{
    BackupError, Manifest, Place, Progress,
    archive::{Archive, Moment},
    blocking,
    format::rows,
    read::{self, Block},
    take::name_of,
};
use lats_base::{Epoch, ErrorClass, RefCode, TableId};
use lats_catalog::{
    Catalog, Change, ChangeErrorKind, IndexDef, PutWay, SEQUENCES_TABLE, SYSTEM_DATABASE, TableDef,
    Unique, ViewDef,
};
use lats_client::{
    api::{Committed, LockWait, RowOp, RowOpKind, RowOutcome, RowResult, StoreError},
    net::Client,
};
use lats_values::{RowLayout, Value};
use source::Source;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::{
        Mutex,
        mpsc::{self, Receiver},
    },
    task::JoinSet,
    time::Instant,
};

/// What is to be restored: nothing named means all.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Databases,
    pub databases: Vec<String>,
    /// and tables, as `database.table`.
    pub tables: Vec<String>,
}

impl Wanted {
    /// True if nothing is named.
    fn is_all(&self) -> bool {
        self.databases.is_empty() && self.tables.is_empty()
    }
}

/// Rows are wanted as of a moment after the backup.
pub struct Later {
    /// What has become of them by then.
    pub archive: Archive,
    /// The moment.
    pub moment: Moment,
    /// Memory for changed rows; if they need more, all files are read several times.
    pub bytes_max: usize,
}

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    /// What the backup says of itself.
    pub manifest: Manifest,
    /// The rows are those of this epoch.
    pub epoch: Epoch,
    /// The tables, and how many rows each has.
    pub tables: Vec<(String, u64)>,
    /// The views.
    pub views: Vec<String>,
}

/// Transactions under way at once, and what is in each.
const WORKERS: usize = 16;
const ROWS_MAX: usize = 128;
const BYTES_MAX: usize = 128 << 10;
/// Blocks that wait for being written.
const BLOCKS_WAITING: usize = 16;
/// How long one thing is tried that fails for the moment.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A table that is being filled, by its id in the backup.
struct Target {
    table: TableId,
    schema_version: u32,
    primary_key: Vec<u16>,
    layout: RowLayout,
}

type Targets = BTreeMap<TableId, Target>;

/// Creates the tables of a backup, and writes their rows. Rows that are restored are on disk when it ends, if the cluster keeps
/// any.
///
/// # Errors
/// If one of the tables is there already, or the backup is damaged; what the cluster refuses. What was created by then stays.
pub async fn restore(
    client: &Client,
    place: &Place,
    wanted: &Wanted,
    later: Option<Later>,
    progress: &Arc<Progress>,
) -> Result<Restored, BackupError> {
    let from = place.clone();
    let manifest = blocking(move || read::manifest(&from)).await?;
    let (epoch, catalog) = match &later {
        Some(Later { moment, .. }) => (moment.epoch, moment.kept.catalog.clone()),
        None => (manifest.epoch, manifest.catalog.clone()),
    };
    let tables = choose(&catalog, wanted)?;
    let views = choose_views(&catalog, wanted);
    client.fetch_catalog().await?;
    refuse_existing(&client.catalog(), &tables, &views)?;
    let mut made = Vec::new();
    let source = (place, &manifest, later);
    let what = What { catalog: &catalog, wanted, tables: &tables, views: &views };
    let filled = fill(client, source, (what, &mut made), progress).await;
    match filled {
        Ok(counts) => {
            let user = tables.iter().filter(|def| def.id != SEQUENCES_TABLE);
            let rows = |def: &TableDef| counts.get(&def.id).copied().unwrap_or_default();
            let tables = user.map(|def| (name_of(def), rows(def))).collect();
            let views = views.iter().map(name_of_view).collect();
            Ok(Restored { manifest, epoch, tables, views })
        }
        Err(error) if made.is_empty() => Err(error),
        Err(error) => Err(BackupError::Incomplete { error: Box::new(error), tables: made }),
    }
}

/// What of a backup is restored.
#[derive(Clone, Copy)]
struct What<'a> {
    catalog: &'a Catalog,
    wanted: &'a Wanted,
    tables: &'a [TableDef],
    views: &'a [ViewDef],
}

/// Creates the tables and views, and writes the tables' rows; gives how many each has.
async fn fill(
    client: &Client,
    (place, manifest, later): (&Place, &Manifest, Option<Later>),
    (what, made): (What<'_>, &mut Vec<String>),
    progress: &Arc<Progress>,
) -> Result<BTreeMap<TableId, u64>, BackupError> {
    let before = client.committed_by_now().await?.restarts;
    create(client, what, made).await?;
    let targets = Arc::new(targets(&client.catalog(), what.tables)?);
    let (sender, receiver) = mpsc::channel(BLOCKS_WAITING);
    let (place, manifest, of) = (place.clone(), manifest.clone(), targets.clone());
    let source = Source { place, manifest, later, targets: of };
    let reader = tokio::task::spawn_blocking(move || source.send_all(&sender));
    write_all(client, receiver, &targets, progress).await?;
    let counts = reader.await.map_err(|error| BackupError::died(&error))??;
    // Of rows that were written before a restart of the cluster some may be gone.
    let epoch = client.committed_by_now().await?.epoch;
    match client.durable(Committed { epoch, restarts: before, changes: None }).await {
        Err(error) if error.code == RefCode::MadeVoid => Err(BackupError::Refused(
            "all nodes have died meanwhile, and the cluster was restarted: some of the rows may be missing".to_string(),
        )),
        Err(error) if error.code != RefCode::NothingKept => Err(error.into()),
        _ => Ok(counts),
    }
}

/// Writes all blocks that come.
async fn write_all(
    client: &Client,
    receiver: Receiver<Block>,
    targets: &Arc<Targets>,
    progress: &Arc<Progress>,
) -> Result<(), BackupError> {
    let receiver = Arc::new(Mutex::new(receiver));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (client, receiver) = (client.clone(), receiver.clone());
        let (targets, progress) = (targets.clone(), progress.clone());
        workers.spawn(async move { work(&client, &receiver, &targets, &progress).await });
    }
    drop(receiver);
    let mut failed = None;
    while let Some(ended) = workers.join_next().await {
        let error = match ended {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error,
            Err(error) => BackupError::died(&error),
        };
        failed.get_or_insert(error);
        workers.abort_all();
    }
    failed.map_or(Ok(()), Err)
}

/// The names of the tables that would be restored.
///
/// # Errors
/// If something is wanted that is not there.
pub fn would_restore(catalog: &Catalog, wanted: &Wanted) -> Result<Vec<String>, BackupError> {
    let tables = choose(catalog, wanted)?;
    let user = tables.iter().filter(|def| def.id != SEQUENCES_TABLE);
    let views = choose_views(catalog, wanted);
    Ok(user.map(name_of).chain(views.iter().map(name_of_view)).collect())
}

fn name_of_view(view: &ViewDef) -> String {
    format!("{}.{}", view.database, view.name)
}

/// The views that are wanted; a view may be named as a table is.
fn choose_views(catalog: &Catalog, wanted: &Wanted) -> Vec<ViewDef> {
    let all = wanted.is_all();
    let is_wanted = |view: &&ViewDef| {
        all || wanted.databases.contains(&view.database)
            || wanted.tables.contains(&name_of_view(view))
    };
    catalog.views.definitions().filter(is_wanted).cloned().collect()
}

/// The tables that are wanted.
fn choose(catalog: &Catalog, wanted: &Wanted) -> Result<Vec<TableDef>, BackupError> {
    let is_own = |def: &&TableDef| def.index_of.is_none() && def.owner().is_none();
    let own = || catalog.tables.definitions().filter(is_own);
    let user = || own().filter(|def| def.database != SYSTEM_DATABASE);
    let views = || catalog.views.definitions().map(name_of_view);
    for name in &wanted.tables {
        if !user().map(name_of).chain(views()).any(|known| known == *name) {
            let all: Vec<String> = user().map(name_of).chain(views()).collect();
            let all = all.join(", ");
            return Err(BackupError::Refused(format!("there is no table {name}; there are {all}")));
        }
    }
    for name in &wanted.databases {
        if !catalog.has_database(name) {
            let all = catalog.databases.join(", ");
            return Err(BackupError::Refused(format!(
                "there is no database {name}; there are {all}"
            )));
        }
    }
    let all = wanted.is_all();
    let is_wanted = |def: &&TableDef| {
        all || wanted.databases.contains(&def.database) || wanted.tables.contains(&name_of(def))
    };
    let sequences = own().filter(|def| def.id == SEQUENCES_TABLE);
    Ok(sequences.chain(user().filter(is_wanted)).cloned().collect())
}

fn refuse_existing(
    catalog: &Catalog,
    tables: &[TableDef],
    views: &[ViewDef],
) -> Result<(), BackupError> {
    let user = tables.iter().filter(|def| def.id != SEQUENCES_TABLE);
    let there = user.filter(|def| catalog.has_relation(&def.database, &def.name)).map(name_of);
    let views = views.iter().filter(|view| catalog.has_relation(&view.database, &view.name));
    let there: Vec<String> = there.chain(views.map(name_of_view)).collect();
    if there.is_empty() {
        return Ok(());
    }
    Err(BackupError::Refused(format!(
        "the cluster has tables {} already; drop them first, or name other tables with --table",
        there.join(", ")
    )))
}

async fn create(
    client: &Client,
    What { catalog, wanted, tables, views }: What<'_>,
    made: &mut Vec<String>,
) -> Result<(), BackupError> {
    let needed = |name: &String| {
        wanted.is_all()
            || tables.iter().any(|def| def.database == *name)
            || views.iter().any(|view| view.database == *name)
            || wanted.databases.contains(name)
    };
    let databases =
        catalog.databases.iter().filter(|name| *name != SYSTEM_DATABASE && needed(name));
    for name in databases {
        change(client, Change::CreateDatabase { name: name.clone(), if_not_exists: true }).await?;
    }
    for def in tables.iter().filter(|def| def.id != SEQUENCES_TABLE) {
        // It may be there, although nobody has said so.
        made.push(name_of(def));
        change(client, Change::CreateTable { table: anew(def), if_not_exists: false }).await?;
    }
    for view in views {
        made.push(name_of_view(view));
        // Whether what it names is there is asked when it is used.
        change(client, Change::PutView { view: view.clone(), way: PutWay::New }).await?;
    }
    Ok(())
}

/// The definition, as one that is to be created: ids and fragments are given to it there. Unique indexes that nobody had
/// finished are left out.
fn anew(def: &TableDef) -> TableDef {
    let finished = |i: &&IndexDef| i.unique.is_none_or(|u| u.builder.is_none());
    let indexes = def.indexes.iter().filter(finished).map(|index| IndexDef {
        unique: index.unique.map(|_| Unique { table: TableId::default(), builder: None }),
        ..index.clone()
    });
    TableDef {
        id: TableId::default(),
        schema_version: 0,
        fragment_count: 0,
        indexes: indexes.collect(),
        ..def.clone()
    }
}

async fn change(client: &Client, mut change: Change) -> Result<(), BackupError> {
    let began = Instant::now();
    loop {
        let error = match client.change(change.clone()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) if refused.kind != ChangeErrorKind::Temporary => {
                return Err(BackupError::Refused(refused.message));
            }
            Ok(Err(refused)) => BackupError::Refused(refused.message),
            Err(error) if may_pass(&error) => {
                // It may be there already.
                match &mut change {
                    Change::CreateTable { if_not_exists, .. } => *if_not_exists = true,
                    Change::PutView { way, .. } => *way = PutWay::NewOrReplace,
                    _ => {}
                }
                error.into()
            }
            Err(error) => return Err(error.into()),
        };
        if began.elapsed() >= PATIENCE {
            return Err(error);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn targets(catalog: &Catalog, tables: &[TableDef]) -> Result<Targets, BackupError> {
    let target = |def: &TableDef| {
        let here = catalog.table(&def.database, &def.name).ok_or_else(|| {
            BackupError::Refused(format!(
                "table {} was dropped while it was restored",
                name_of(def)
            ))
        })?;
        let target = Target {
            table: here.id,
            schema_version: here.schema_version,
            primary_key: here.primary_key.clone(),
            layout: here.layout(),
        };
        Ok((def.id, target))
    };
    tables.iter().map(target).collect()
}

async fn work(
    client: &Client,
    receiver: &Mutex<Receiver<Block>>,
    targets: &Targets,
    progress: &Progress,
) -> Result<(), BackupError> {
    loop {
        let block = receiver.lock().await.recv().await;
        let Some(block) = block else { return Ok(()) };
        let mut operations: Vec<RowOp> = Vec::new();
        let (mut bytes, mut count) = (0, 0);
        for row in rows(&block.bytes) {
            let row = row.map_err(|why| BackupError::Refused(why.to_string()))?;
            count += 1;
            let Some(operation) = operation(targets, block.table, row)? else { continue };
            bytes += operation.row.len();
            operations.push(operation);
            if operations.len() >= ROWS_MAX || bytes >= BYTES_MAX {
                write(client, &mut operations, progress).await?;
                operations.clear();
                bytes = 0;
            }
        }
        if !operations.is_empty() {
            write(client, &mut operations, progress).await?;
        }
        if count != block.rows {
            return Err(BackupError::Refused("a block of the backup has lost rows".to_string()));
        }
    }
}

fn malformed(_: impl Sized) -> BackupError {
    BackupError::Refused("a row of the backup is none of its table".to_string())
}

/// Stores the row in its new table. None if nobody wants it: it is the sequence of another table.
fn operation(targets: &Targets, table: TableId, row: &[u8]) -> Result<Option<RowOp>, BackupError> {
    let Some(target) = targets.get(&table) else { return Ok(None) };
    target.layout.validate(row).map_err(malformed)?;
    let mut row = row.to_vec();
    if table == SEQUENCES_TABLE {
        let [Value::UInt(of), next] = &target.layout.decode(&row)[..] else { return Ok(None) };
        let of = u32::try_from(*of).ok().and_then(|id| targets.get(&TableId::new(id)));
        let Some(of) = of else { return Ok(None) };
        let moved = [Value::UInt(u64::from(of.table.get())), next.clone()];
        row.clear();
        let encoded = target.layout.encode(&moved, &mut row);
        encoded.map_err(|error| BackupError::Refused(error.message))?;
    }
    let mut key = Vec::new();
    target.layout.key_of(&row, &target.primary_key, &mut key);
    Ok(Some(RowOp {
        table: target.table,
        schema_version: target.schema_version,
        kind: RowOpKind::Insert,
        key,
        row,
        program: Arc::default(),
        wait: LockWait::Wait,
    }))
}

async fn write(
    client: &Client,
    operations: &mut [RowOp],
    progress: &Progress,
) -> Result<(), BackupError> {
    let began = Instant::now();
    loop {
        match client.begin_replicated().execute(operations, true).await {
            Ok((results, _)) => {
                let is_done = |r: &RowResult| r.outcome == RowOutcome::Done;
                if !results.iter().all(is_done) {
                    let why = "somebody else writes into a table that is being restored: let nobody do so meanwhile";
                    return Err(BackupError::Refused(why.to_string()));
                }
                let bytes: usize = operations.iter().map(|o| o.row.len()).sum();
                progress.add(operations.len() as u64, bytes as u64, 0);
                return Ok(());
            }
            Err(error) if began.elapsed() < PATIENCE && may_pass(&error) => {
                // The rows may be there already.
                operations.iter_mut().for_each(|operation| operation.kind = RowOpKind::Write);
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whatever has become of the rows: they are written once more.
fn may_pass(error: &StoreError) -> bool {
    let is_unknown = error.class() == ErrorClass::UnknownOutcome;
    (is_unknown || error.class() == ErrorClass::Temporary) && error.code != RefCode::MemoryFull
}
