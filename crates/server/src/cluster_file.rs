//! `cluster.json` in the data directory: what `start` has founded there, for the other commands.

use crate::settings::LEASES_MS;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// A cluster on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClusterFile {
    /// Version of this file's format.
    pub(crate) format: u32,
    /// Tells clusters apart.
    pub(crate) cluster_id: u64,
    pub(crate) replicas: u16,
    /// LDM and TC instances of every node.
    pub(crate) ldm_instances: u32,
    pub(crate) tc_instances: u32,
    /// Memory for rows and indexes of each data node, in MiB.
    pub(crate) memory_mib: usize,
    /// How long a lease lasts, in ms.
    #[serde(default = "usual_lease_ms")]
    pub(crate) lease_ms: u64,
    /// Data nodes keep what is committed on disk.
    #[serde(default)]
    pub(crate) keeps: bool,
    /// Founded so that commits are answered when they are on disk; from then on the view says it.
    #[serde(default)]
    pub(crate) to_disk: bool,
    /// Data nodes archive their redo logs there.
    #[serde(default)]
    pub(crate) archive: Option<PathBuf>,
    /// Drawn when the cluster was founded last: tells its founders from those of a cluster that was here before.
    #[serde(default)]
    pub(crate) founding: u64,
    pub(crate) nodes: Vec<NodeEntry>,
}

/// A node of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeEntry {
    pub(crate) node_id: u16,
    /// It holds data and serves SQL; else it is a witness.
    pub(crate) data: bool,
    pub(crate) native_address: SocketAddr,
    pub(crate) sql_address: Option<SocketAddr>,
    /// Its location domain.
    #[serde(default)]
    pub(crate) location: String,
}

impl NodeEntry {
    /// True if the node has something on disk here.
    pub(crate) fn has_files(&self, data_dir: &Path) -> bool {
        let files = std::fs::read_dir(crate::node::node_directory(data_dir, self.node_id));
        files.into_iter().flatten().flatten().any(|file| {
            let name = file.file_name();
            name.to_str().and_then(lats_runtime::files::parse_file_name).is_some()
        })
    }
}

const FORMAT: u32 = 1;

impl ClusterFile {
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("cluster.json")
    }

    pub(crate) fn new(cluster_id: u64, replicas: u16, nodes: Vec<NodeEntry>) -> Self {
        Self {
            format: FORMAT,
            cluster_id,
            replicas,
            ldm_instances: 1,
            tc_instances: 1,
            memory_mib: 0,
            lease_ms: LEASE_MS,
            keeps: false,
            to_disk: false,
            archive: None,
            founding: 0,
            nodes,
        }
    }

    /// Reads the file of a data directory.
    pub(crate) fn read(data_dir: &Path) -> anyhow::Result<Self> {
        let path = Self::path(data_dir);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "there is no cluster in {} (no readable cluster.json); name its directory with \
                 --data-dir, or start one with `latsdb start`",
                data_dir.display()
            )
        })?;
        let file: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged, or not a LatsDB file", path.display()))?;
        if file.format != FORMAT {
            bail!(
                "{} has format {}; this version of LatsDB reads format {FORMAT}",
                path.display(),
                file.format
            );
        }
        if !LEASES_MS.contains(&file.lease_ms) {
            bail!(
                "{} names leases of {} ms, and {} to {} are allowed: put back what `latsdb start` wrote there",
                path.display(),
                file.lease_ms,
                LEASES_MS.start(),
                LEASES_MS.end()
            );
        }
        Ok(file)
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn write(&self, data_dir: &Path) -> anyhow::Result<()> {
        let path = Self::path(data_dir);
        let fresh = path.with_extension("new");
        let bytes = serde_json::to_vec_pretty(self)?;
        let write = || {
            let mut file = std::fs::File::create(&fresh)?;
            std::io::Write::write_all(&mut file, &bytes)?;
            // Without it nobody knows which cluster the nodes' files belong to.
            file.sync_all()?;
            std::fs::rename(&fresh, &path)?;
            std::fs::File::open(data_dir)?.sync_all()
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// True if some node has something on disk here.
    pub(crate) fn has_files(&self, data_dir: &Path) -> bool {
        self.nodes.iter().any(|node| node.has_files(data_dir))
    }

    /// The addresses where native clients can begin.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().filter(|n| n.data).map(|n| n.native_address).collect()
    }

    /// The founding record of the control group: the same for all its founders.
    pub(crate) fn founding(&self) -> lats_node::control::Founding {
        use lats_base::{Incarnation, NodeId};
        use lats_catalog::{ClusterConfig, Member, Roles};
        let member = |n: &NodeEntry| Member {
            node: NodeId::new(n.node_id),
            incarnation: Incarnation::new(1),
            roles: Roles { data: n.data, sql: n.data },
            native_address: n.native_address.to_string(),
            sql_address: n.sql_address.map(|a| a.to_string()).unwrap_or_default(),
            location: n.location.clone(),
            ..Member::default()
        };
        lats_node::control::Founding {
            config: ClusterConfig {
                cluster_id: self.cluster_id,
                replicas: self.replicas,
                ldm_instances: self.ldm_instances,
                tc_instances: self.tc_instances,
                lease_ms: self.lease_ms,
                lock_wait_ms: LOCK_WAIT_MS,
                keeps: self.keeps,
                to_disk: self.to_disk,
            },
            members: self.nodes.iter().map(member).collect(),
            number: self.founding,
        }
    }
}

/// A node that was not heard for so long is removed: three renewals may be missed.
pub(crate) const LEASE_MS: u64 = 300;
/// The last resort (LOCK-6): deadlocks are found in milliseconds by looking for them.
const LOCK_WAIT_MS: u64 = 1_000;

/// Clusters that were founded before there was a setting have this one.
fn usual_lease_ms() -> u64 {
    LEASE_MS
}
