//! `latsdb backup`, `latsdb backup verify` and `latsdb restore`.

use crate::{
    say::say,
    status::{Target, state_from},
};
use anyhow::bail;
use lats_backup::{Manifest, Progress, Wanted};
use lats_runtime::clock;
use std::{
    future::Future,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// Write all rows and definitions, as of one moment, into a new directory, while the cluster serves.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    #[command(flatten)]
    target: Target,
    /// The directory: it must be new, or empty.
    #[arg(long, required = true, value_name = "DIRECTORY")]
    to: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum BackupCommand {
    /// Check that a backup is whole: every file, block and row of it.
    Verify {
        /// Its directory.
        directory: PathBuf,
    },
}

/// Create the tables of a backup, and write their rows into them; nobody else may write there meanwhile. The cluster may have another shape than the one that
/// the backup was taken of.
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    target: Target,
    /// The directory of the backup.
    #[arg(long, value_name = "DIRECTORY")]
    from: PathBuf,
    /// Only this database; may be given more than once.
    #[arg(long = "database", value_name = "NAME")]
    databases: Vec<String>,
    /// Only this table; may be given more than once.
    #[arg(long = "table", value_name = "DATABASE.TABLE")]
    tables: Vec<String>,
}

const SHOWN_EVERY: Duration = Duration::from_secs(1);
const MIB: f64 = (1 << 20) as f64;

pub(crate) fn backup(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    if let Some(BackupCommand::Verify { directory }) = &args.command {
        return verify(directory.clone());
    }
    let Some(directory) = &args.to else { bail!("name a new directory with --to") };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        let client = args.target.connect().await?;
        let cluster = state_from(&client).await?.view.config.cluster_id;
        let progress = Arc::new(Progress::default());
        let began = Instant::now();
        let taken_at_ms = u64::try_from(clock::unix_micros() / 1_000).unwrap_or_default();
        let work = lats_backup::take(&client, (cluster, taken_at_ms), directory, &progress);
        let manifest = shown("backup", &progress, work).await?;
        let stored: u64 = manifest.parts.iter().map(|part| part.bytes).sum();
        say!(
            "latsdb: backup of {} in {}: {} MiB in {:.1} s",
            contents(&manifest),
            directory.display(),
            stored.div_ceil(1 << 20),
            began.elapsed().as_secs_f64()
        );
        Ok(ExitCode::SUCCESS)
    })
}

fn verify(directory: PathBuf) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let progress = Arc::new(Progress::default());
    let (path, counts) = (directory.clone(), progress.clone());
    let work = async move {
        let checked = tokio::task::spawn_blocking(move || lats_backup::verify(&path, &counts));
        checked.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    };
    let verified = tokio.block_on(shown("verify", &progress, work))?;
    let Manifest { software, cluster, taken_at_ms, .. } = &verified.manifest;
    say!(
        "{}: {}, taken of cluster {cluster:016x} by LatsDB {software}, {} s after 1970",
        directory.display(),
        contents(&verified.manifest),
        taken_at_ms / 1_000
    );
    for fault in &verified.faults {
        say!("  {fault}");
    }
    if verified.faults.is_empty() {
        say!("  it is whole");
        return Ok(ExitCode::SUCCESS);
    }
    say!("  it is damaged: use another backup");
    Ok(ExitCode::FAILURE)
}

pub(crate) fn restore(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        let client = args.target.connect().await?;
        let wanted = Wanted { databases: args.databases.clone(), tables: args.tables.clone() };
        let progress = Arc::new(Progress::default());
        let began = Instant::now();
        let work = lats_backup::restore(&client, &args.from, &wanted, &progress);
        let restored = shown("restore", &progress, work).await?;
        for (table, rows) in &restored.tables {
            say!("  {table}: {rows} rows");
        }
        let (tables, epoch) = (restored.tables.len(), restored.manifest.epoch);
        let seconds = began.elapsed().as_secs_f64();
        say!("latsdb: restored {tables} tables as of epoch {epoch} in {seconds:.1} s");
        Ok(ExitCode::SUCCESS)
    })
}

fn contents(manifest: &Manifest) -> String {
    let rows = manifest.tables.iter().fold(0, |all: u64, table| all.saturating_add(table.rows));
    // The cluster's own table is not counted.
    let tables = manifest.tables.len().saturating_sub(1);
    format!("{tables} tables with {rows} rows as of epoch {}", manifest.epoch)
}

/// Does the work, and says every second how far it is.
async fn shown<T>(
    what: &str,
    progress: &Progress,
    work: impl Future<Output = Result<T, lats_backup::BackupError>>,
) -> anyhow::Result<T> {
    let mut work = std::pin::pin!(work);
    let mut clock = tokio::time::interval(SHOWN_EVERY);
    clock.tick().await;
    let (mut before, mut tries) = (0, 1);
    loop {
        tokio::select! {
            done = &mut work => return done.map_err(Into::into),
            _ = clock.tick() => {
                let now_tries = progress.tries.load(Ordering::Relaxed);
                if now_tries > tries {
                    eprintln!("latsdb: {what}: something came in between; it begins anew");
                    (tries, before) = (now_tries, 0);
                }
                let bytes = progress.bytes.load(Ordering::Relaxed);
                let rows = progress.rows.load(Ordering::Relaxed);
                let speed = bytes.saturating_sub(before) as f64 / MIB;
                eprintln!("latsdb: {what}: {rows} rows, {:.0} MiB, {speed:.0} MiB/s", bytes as f64 / MIB);
                before = bytes;
            }
        }
    }
}
