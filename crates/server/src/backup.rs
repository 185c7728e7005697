//! `latsdb backup`, `latsdb backup verify` and `latsdb restore`.

use crate::{
    archive, machine,
    say::say,
    settings,
    status::{Target, state_from},
};
use anyhow::bail;
use lats_backup::{
    Later, Manifest, Place, Progress, Wanted,
    archive::{Archive, Doubt, Until, in_words},
};
use lats_base::Epoch;
use lats_catalog::Catalog;
use lats_runtime::clock;
use lats_values::temporal::parse_datetime;
use std::{
    future::Future,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// Write all rows and definitions, as of one moment, into a new directory or an object store, while the cluster serves.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    #[command(flatten)]
    target: Target,
    /// The directory: it must be new, or empty. Or s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH; from the environment are read AWS_ACCESS_KEY_ID,
    /// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP, and AWS_CONDITIONAL_PUT=disabled for stores that cannot make
    /// an object only if it is not there; GOOGLE_SERVICE_ACCOUNT (a file); AZURE_STORAGE_ACCOUNT_NAME,
    /// AZURE_STORAGE_ACCOUNT_KEY.
    #[arg(long, required = true, value_name = "DIRECTORY or URL")]
    to: Option<String>,
}

#[derive(clap::Subcommand)]
enum BackupCommand {
    /// Check that a backup is whole: every file, block and row of it.
    Verify {
        /// Its directory, or URL.
        place: String,
    },
}

/// Create the tables of a backup, and write their rows into them; nobody else may write there meanwhile. The cluster may have another shape than the one that
/// the backup was taken of.
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    target: Target,
    /// The directory of the backup, or its URL.
    #[arg(long, value_name = "DIRECTORY or URL")]
    from: String,
    /// What the cluster has archived (`start --archive`): rows are restored as they were in the end, or with --until at a time. May
    /// be given more than once, and directories of nodes may be named as well.
    #[arg(long = "archive", value_name = "DIRECTORY")]
    archives: Vec<PathBuf>,
    /// As of which moment: a time (UTC), or `epoch:NUMBER`. What happened later is left out.
    #[arg(long, requires = "archives", value_name = "YYYY-MM-DD HH:MM:SS[.FFF]", value_parser = until)]
    until: Option<Until>,
    /// Say which tables would be restored, and as of when, and do nothing.
    #[arg(long)]
    dry_run: bool,
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
    if let Some(BackupCommand::Verify { place }) = &args.command {
        return verify(place);
    }
    let Some(to) = &args.to else { bail!("name a new directory with --to") };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        let place = Place::named(to, variables())?;
        let client = args.target.connect().await?;
        let config = state_from(&client).await?.view.config;
        let (cluster, keeps) = (config.cluster_id, config.keeps);
        let progress = Arc::new(Progress::default());
        let began = Instant::now();
        let taken_at_ms = u64::try_from(clock::unix_micros() / 1_000).unwrap_or_default();
        let restarts = async || Some(state_from(&client).await.ok()?.view.restarts);
        let of = (cluster, taken_at_ms);
        let work = lats_backup::take(&client, of, &place, restarts, &progress);
        let manifest = shown("backup", &progress, work).await?;
        let stored: u64 = manifest.parts.iter().map(|part| part.bytes).sum();
        say!(
            "latsdb: backup of {} in {place}: {} MiB in {:.1} s",
            contents(&manifest),
            stored.div_ceil(1 << 20),
            began.elapsed().as_secs_f64()
        );
        if keeps && !manifest.is_durable {
            say!(
                "latsdb: it is not known that these rows were on the disks of all nodes by then (one may be full, or slow): the backup is whole, but restoring with an archive needs another one"
            );
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn verify(place: &str) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let progress = Arc::new(Progress::default());
    let counts = progress.clone();
    let work = async move {
        let place = Place::named(place, variables())?;
        blocking(move || lats_backup::verify(&place, &counts)).await
    };
    let verified = tokio.block_on(shown("verify", &progress, work))?;
    let Manifest { software, cluster, taken_at_ms, .. } = &verified.manifest;
    say!(
        "{place}: {}, taken of cluster {cluster:016x} by LatsDB {software}, {} s after 1970",
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
        let place = Place::named(&args.from, variables())?;
        let (catalog, later) = later(args, &place).await?;
        let wanted = Wanted { databases: args.databases.clone(), tables: args.tables.clone() };
        if args.dry_run {
            for table in lats_backup::would_restore(&catalog, &wanted)? {
                say!("  {table}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        let client = args.target.connect().await?;
        let progress = Arc::new(Progress::default());
        let began = Instant::now();
        let work = lats_backup::restore(&client, &place, &wanted, later, &progress);
        let restored = shown("restore", &progress, work).await?;
        for (table, rows) in &restored.tables {
            say!("  {table}: {rows} rows");
        }
        for view in &restored.views {
            say!("  {view}: a view");
        }
        let (tables, epoch) = (restored.tables.len(), restored.epoch);
        let seconds = began.elapsed().as_secs_f64();
        let views = and_views(restored.views.len());
        say!("latsdb: restored {tables} tables{views} as of epoch {epoch} in {seconds:.1} s");
        Ok(ExitCode::SUCCESS)
    })
}

/// The environment, as far as it is text.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// What a backup says of itself.
pub(crate) async fn manifest(from: &str) -> anyhow::Result<Manifest> {
    let place = Place::named(from, variables())?;
    Ok(blocking(move || lats_backup::manifest(&place)).await?)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Reads what a cluster has archived.
pub(crate) async fn open_archive(
    directories: Vec<PathBuf>,
    cluster: u64,
) -> anyhow::Result<Archive> {
    let progress = Arc::new(Progress::default());
    let read = progress.clone();
    let told = move |bytes| {
        read.bytes.fetch_add(bytes, Ordering::Relaxed);
    };
    let open = move || Archive::open(&directories, cluster, archive::decode, told);
    shown("archive", &progress, blocking(open)).await
}

/// The definitions that are wanted; and what an archive says of the rows of a backup.
async fn later(args: &RestoreArgs, place: &Place) -> anyhow::Result<(Catalog, Option<Later>)> {
    args.archives.iter().try_for_each(|path| archive::is_directory(path))?;
    let manifest = manifest(&args.from).await?;
    if args.archives.is_empty() {
        say!("latsdb: {place} with {}", contents(&manifest));
        return Ok((manifest.catalog, None));
    }
    if !manifest.is_durable {
        bail!(
            "the rows of {place} were not on the disks of all nodes when the backup ended: a restart of the cluster may have made some void, and no \
             archive goes on with them; use another backup, or leave out --archive"
        );
    }
    let archive = open_archive(args.archives.clone(), manifest.cluster).await?;
    let moment = archive.moment(manifest.epoch, args.until.unwrap_or(Until::End))?;
    let time = moment.at_ms.map(|at_ms| format!(", {} (UTC)", in_words(at_ms)));
    say!(
        "latsdb: a backup of {}, and an archive that tells what happened up to epoch {}{}",
        contents(&manifest),
        moment.epoch,
        time.unwrap_or_default()
    );
    if let Some((epoch, at_ms)) = moment.later {
        let time = at_ms.map(|at_ms| format!(", {} (UTC)", in_words(at_ms)));
        say!(
            "latsdb: some of its logs go on up to epoch {epoch}{}, others do not: what happened in between is left out",
            time.unwrap_or_default()
        );
    }
    if let Some(Doubt { slow, fast }) = moment.doubt {
        say!(
            "latsdb: THE NODES' CLOCKS DID NOT AGREE: by then node {} had noted epoch {}, and node {} only epoch {}; taken is the later one. If that is too \
             late, restore --until epoch:N of something in between",
            fast.0,
            fast.1,
            slow.0,
            slow.1
        );
    }
    let bytes_max = settings::default_memory_mib(1, &machine::memory()) << 20;
    Ok((moment.kept.catalog.clone(), Some(Later { archive, moment, bytes_max })))
}

/// A time is written so; a fraction may follow.
const LIKE: &str = "0000-00-00 00:00:00";

/// What `--until` says.
fn until(text: &str) -> Result<Until, String> {
    if let Some(number) = text.strip_prefix("epoch:") {
        let number = number.parse().map_err(|_| "an epoch is a number".to_string())?;
        return Ok(Until::Epoch(Epoch::new(number)));
    }
    let malformed = "write a time like '2026-03-01 14:05:00', in UTC, or epoch:NUMBER";
    let is_like = |(byte, like): (u8, u8)| match like {
        b'0' => byte.is_ascii_digit(),
        b' ' => byte == b' ' || byte == b'T',
        like => byte == like,
    };
    // What SQL makes of less than that is not for here.
    let (seconds, fraction) = text.split_at_checked(LIKE.len()).unwrap_or_default();
    let is_fraction = fraction.strip_prefix('.').map_or(fraction.is_empty(), |digits| {
        (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if seconds.is_empty() || !seconds.bytes().zip(LIKE.bytes()).all(is_like) || !is_fraction {
        return Err(malformed.to_string());
    }
    let time = parse_datetime(text).filter(|parsed| parsed.complete && !parsed.clipped);
    let micros = time.and_then(|parsed| parsed.value.to_unix_micros());
    let at_ms = micros.and_then(|micros| u64::try_from(micros / 1_000).ok());
    at_ms.map(Until::Time).ok_or_else(|| malformed.to_string())
}

fn contents(manifest: &Manifest) -> String {
    let rows = manifest.tables.iter().fold(0, |all: u64, table| all.saturating_add(table.rows));
    // The cluster's own table is not counted.
    let tables = manifest.tables.len().saturating_sub(1);
    let views = and_views(manifest.catalog.views.len());
    format!("{tables} tables with {rows} rows{views} as of epoch {}", manifest.epoch)
}

fn and_views(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and {count} views") }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_and_without_a_zone() {
        assert_eq!(until("1970-01-01 00:00:01.25"), Ok(Until::Time(1_250)));
        assert_eq!(until("1970-01-02T00:00:00"), Ok(Until::Time(86_400_000)));
        assert_eq!(until("epoch:17"), Ok(Until::Epoch(Epoch::new(17))));
        let others =
            ["", "2026-03-01", "26-03-01 14:05:00", "2026-03-01 14:05-05", "2026-02-30 14:05:00"];
        let zones = [
            "2026-03-01 14:05:00Z",
            "2026-03-01 14:05:00+01:00",
            "2026-03-01 14:05:00.",
            "epoch:x",
        ];
        for text in others.into_iter().chain(zones) {
            assert!(until(text).is_err(), "{text}");
        }
    }
}
