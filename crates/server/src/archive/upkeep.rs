//! `latsdb archive`: what nodes have archived, and removal of what is not needed any more.

use super::{MARKER, directory_of_cluster, is_directory, now_ms};
use crate::{
    backup::{manifest, open_archive},
    cluster_file::ClusterFile,
    say::say,
};
use anyhow::{Context, bail};
use lats_backup::archive::{Archive, Share, clusters, in_words};
use lats_base::{Epoch, NodeId};
use serde_json::{Value, json};
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// See what nodes have archived, and remove what is not needed any more.
#[derive(clap::Args)]
pub(crate) struct ArchiveArgs {
    #[command(subcommand)]
    command: ArchiveCommand,
}

#[derive(clap::Subcommand)]
enum ArchiveCommand {
    /// Show which nodes have archived what, how far behind they are, and as of which moments rows can be restored.
    Show {
        #[command(flatten)]
        place: ArchivePlace,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove what is not needed to restore rows with the backups that you keep, as of any moment since.
    Prune {
        #[command(flatten)]
        place: ArchivePlace,
        /// A backup that you keep, a directory or a URL; may be given more than once. What is older than all of them goes.
        #[arg(long = "keep", required = true, value_name = "BACKUP")]
        keep: Vec<String>,
        /// Say what would be removed, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// Which archive.
#[derive(clap::Args)]
struct ArchivePlace {
    /// The directory of the archive, as `latsdb start --archive` was told; by default that of the cluster in --data-dir.
    directory: Option<PathBuf>,
    /// The cluster's directory.
    #[arg(long, default_value = "./latsdb-data")]
    data_dir: PathBuf,
}

impl ArchivePlace {
    fn directory(&self) -> anyhow::Result<PathBuf> {
        if let Some(directory) = &self.directory {
            is_directory(directory)?;
            return Ok(directory.clone());
        }
        let cluster = ClusterFile::read(&self.data_dir)?;
        cluster.archive.with_context(|| {
            format!(
                "the cluster in {} does not archive: name the directory of an archive",
                self.data_dir.display()
            )
        })
    }
}

const MIB: u64 = 1 << 20;

pub(crate) fn run(args: &ArchiveArgs) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        match &args.command {
            ArchiveCommand::Show { place, json } => show(&place.directory()?, *json).await,
            ArchiveCommand::Prune { place, keep, dry_run } => {
                prune(&place.directory()?, keep, *dry_run).await
            }
        }
    })
}

async fn show(directory: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let directories = [directory.to_path_buf()];
    let clusters = clusters(&directories)?;
    if clusters.is_empty() {
        bail!("nothing has been archived into {}", directory.display());
    }
    let mut records = Vec::new();
    let mut status = ExitCode::SUCCESS;
    for cluster in clusters {
        match (open_archive(directories.to_vec(), cluster).await, as_json) {
            (Ok(archive), true) => records.push(record(cluster, &archive)?),
            (Ok(archive), false) => print(cluster, &archive)?,
            // The others are shown all the same.
            (Err(error), _) => {
                status = ExitCode::FAILURE;
                eprintln!("latsdb: archive of cluster {cluster:016x}: {error:#}");
            }
        }
    }
    if as_json {
        say!("{:#}", Value::from(records));
    }
    Ok(status)
}

fn record(cluster: u64, archive: &Archive) -> anyhow::Result<Value> {
    let nodes = archive.shares().into_iter().map(|(node, share)| {
        json!({
            "node_id": node.get(),
            "segments": share.segments,
            "bytes": share.bytes,
            "epoch": share.upto.get(),
            "noted_ms": share.noted_ms,
        })
    });
    let nodes: Vec<Value> = nodes.collect();
    let mut ranges = Vec::new();
    for range in archive.ranges() {
        ranges.push(json!({
            "from_epoch": range.after.get(),
            "to_epoch": range.upto.get(),
            "to_ms": archive.ended_at(range.upto)?,
        }));
    }
    Ok(json!({ "cluster": format!("{cluster:016x}"), "nodes": nodes, "ranges": ranges }))
}

fn print(cluster: u64, archive: &Archive) -> anyhow::Result<()> {
    say!("archive of cluster {cluster:016x}");
    for (node, share) in archive.shares() {
        print_share(node, &share);
    }
    for range in archive.ranges() {
        say!(
            "  with a backup as of epoch {} to {}{} rows can be restored as of any moment since, up to epoch {}{}",
            range.after,
            range.upto,
            at(archive, range.after, " (", ")")?,
            range.upto,
            at(archive, range.upto, ", ", " (UTC)")?
        );
    }
    if archive.ranges().is_empty() {
        say!("  there are no epochs of which everything is told: no rows can be restored from it");
    }
    Ok(())
}

fn print_share(node: NodeId, share: &Share) {
    let noted = share.noted_ms.map(|noted_ms| {
        let ago = now_ms().saturating_sub(noted_ms) as f64 / 1_000.0;
        format!(", at work until {} (UTC), {ago:.1} s ago", in_words(noted_ms))
    });
    let Share { segments, bytes, upto, .. } = share;
    let mib = bytes.div_ceil(MIB);
    say!(
        "  node {node}: {segments} segments, {mib} MiB, up to epoch {upto}{}",
        noted.unwrap_or_default()
    );
}

/// When an epoch had ended, as far as that is known.
fn at(archive: &Archive, epoch: Epoch, before: &str, behind: &str) -> anyhow::Result<String> {
    let ended = archive.ended_at(epoch)?;
    Ok(ended.map(|ms| format!("{before}{}{behind}", in_words(ms))).unwrap_or_default())
}

async fn prune(directory: &Path, keep: &[String], dry_run: bool) -> anyhow::Result<ExitCode> {
    // The files of a node look alike, and must stay.
    if !directory.join(MARKER).exists() {
        bail!(
            "{} is no archive: it has no file {MARKER}; name the directory that --archive has named",
            directory.display()
        );
    }
    let mut of = None;
    for backup in keep {
        let manifest = manifest(backup).await?;
        let (cluster, epoch) = of.get_or_insert((manifest.cluster, manifest.epoch));
        if *cluster != manifest.cluster {
            bail!("{backup} was taken of another cluster than {}", keep[0]);
        }
        *epoch = manifest.epoch.min(*epoch);
    }
    let Some((cluster, oldest)) = of else { bail!("name a backup with --keep") };
    let archive = open_archive(vec![directory.to_path_buf()], cluster).await?;
    let (mut files, mut bytes) = (0, 0);
    // Files that nodes work with look alike, and may lie within the archive.
    let ours = directory_of_cluster(directory, cluster);
    let is_ours = |path: &PathBuf| path.ancestors().nth(2) == Some(&ours);
    for path in archive.superfluous(oldest).into_iter().filter(is_ours) {
        let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        match if dry_run { Ok(()) } else { fs::remove_file(&path) } {
            Ok(()) => (files, bytes) = (files + 1, bytes + length),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
        }
    }
    let done = if dry_run { "would be removed" } else { "removed" };
    say!(
        "latsdb: {files} files {done}, {} MiB: they are older than epoch {oldest}",
        bytes.div_ceil(MIB)
    );
    if archive.moment(oldest, lats_backup::archive::Until::End).is_err() {
        say!(
            "latsdb: the archive does not go on with all of these backups, before or now: see latsdb archive show"
        );
    }
    Ok(ExitCode::SUCCESS)
}
