//! A cluster of such nodes, and a client.

use crate::node::{Node, Peer};
use anyhow::{Context, bail};
use lats_base::{ClientId, Epoch, Incarnation, Instant, NodeId, ViewNumber};
use lats_catalog::{
    Catalog, CatalogUpdate, Change, ClusterConfig, ClusterMap, ColumnDef, Group, Member, Replica,
    Roles, TableDef, View,
};
use lats_client::core::{Answer, ClientCore, Ticket};
use lats_signals::{
    BlockKind, BlockRef, Body, SignalBuffer,
    buffer::{Route, parse},
    control::{CatalogOrd, LeaseOrd, MapConf, ViewOrd},
};
use lats_values::{ColumnType, TypeKind};

const VIEW: ViewNumber = ViewNumber::new(1);
const LDM_INSTANCES: u32 = 1;
/// Bytes of the column beside the key.
pub(crate) const COLUMN_BYTES: u16 = 100;

pub(crate) struct Cluster {
    nodes: Vec<Node>,
    client: ClientCore,
    now: Instant,
    pub(crate) table: TableDef,
    /// Buffers that go to and fro, as those of the runtime do.
    spare: Vec<u8>,
    /// It is warm: what it does now counts.
    pub(crate) counts: bool,
}

/// All that is counted: a data node's work from bytes to bytes. `cargo xtask cost` knows it by its name.
#[inline(never)]
fn counted(node: &mut Node, packet: (Peer, &[u8]), now: Instant) -> anyhow::Result<()> {
    node.receive(packet.0, packet.1, now)
}

fn deliver(
    node: &mut Node,
    packet: (Peer, &[u8]),
    now: Instant,
    counts: bool,
) -> anyhow::Result<()> {
    if counts { counted(node, packet, now) } else { node.receive(packet.0, packet.1, now) }
}

impl Cluster {
    /// One that serves, with an empty table.
    pub(crate) fn new(replicas: u16, logs: bool) -> anyhow::Result<Self> {
        let catalog = catalog(replicas)?;
        let table = catalog.table("test", "flex").context("no table")?.clone();
        let ids = (1..=replicas).map(NodeId::new);
        let mut cluster = Self {
            nodes: ids.clone().map(|id| Node::new(id, LDM_INSTANCES, logs)).collect(),
            client: ClientCore::new(ClientId::new(1), None),
            now: Instant::from_nanos(1),
            table,
            spare: Vec::new(),
            counts: false,
        };
        let view = view(replicas);
        for id in ids {
            cluster.client.link_up(id);
            cluster.order(
                id,
                &CatalogOrd { catalog_version: catalog.version },
                &catalog.update_since(0),
            )?;
            cluster.order(id, &ViewOrd { view: VIEW }, &lats_catalog::encode(&view))?;
            let (valid_until, epoch) = (u64::MAX, Epoch::new(5));
            let lease = LeaseOrd { valid_until, epoch, seal: epoch, ..LeaseOrd::default() };
            cluster.order(id, &lease, &[])?;
        }
        while cluster.client.outgoing().pop().is_some() {}
        let map = ClusterMap { view, catalog_version: catalog.version, silent: Vec::new() };
        let conf = MapConf { request: 0, view: VIEW, catalog_version: catalog.version };
        cluster.client.learn_catalog(CatalogUpdate::Whole(catalog.clone()));
        let mut told = SignalBuffer::new();
        let nobody = BlockRef::default();
        let route = Route { sender: nobody, receiver: nobody, incarnation: 1 };
        told.push(route, &conf, &[&lats_catalog::encode(&map)]);
        if let Some(signal) = told.pop() {
            cluster.client.receive(&signal);
        }
        Ok(cluster)
    }

    /// What control tells all blocks of a node.
    fn order<B: Body>(&mut self, to: NodeId, body: &B, payload: &[u8]) -> anyhow::Result<()> {
        let ldms = (0..LDM_INSTANCES).map(|i| BlockRef::new(to, BlockKind::Ldm, i));
        let mut orders = SignalBuffer::new();
        for receiver in std::iter::once(BlockRef::tc(to, 0)).chain(ldms) {
            let route = Route { sender: BlockRef::control(to), receiver, incarnation: 1 };
            orders.push(route, body, &[payload]);
        }
        let mut bytes = Vec::new();
        while let Some(signal) = orders.pop() {
            bytes.extend_from_slice(signal.bytes());
        }
        self.node(to)?.receive(Peer::Node(to), &bytes, Instant::from_nanos(1))?;
        self.carry()
    }

    fn node(&mut self, id: NodeId) -> anyhow::Result<&mut Node> {
        self.nodes.get_mut(usize::from(id.get()).wrapping_sub(1)).context("no such node")
    }

    pub(crate) fn client(&mut self) -> &mut ClientCore {
        &mut self.client
    }

    /// Delivers what the client has sent, and all that comes of it.
    ///
    /// # Errors
    /// If a request fails.
    pub(crate) fn answer(&mut self, mut expected: Vec<Ticket>) -> anyhow::Result<()> {
        let mut packets: Vec<Vec<u8>> = vec![Vec::new(); self.nodes.len()];
        while let Some(signal) = self.client.outgoing().pop() {
            let to = usize::from(signal.header.receiver.node.get()) - 1;
            packets[to].extend_from_slice(signal.bytes());
        }
        self.client.outgoing().compact();
        // Time passes between two turns of a node.
        self.now = self.now.plus(lats_base::Duration::from_micros(50));
        for (node, packet) in self.nodes.iter_mut().zip(&packets).filter(|(_, p)| !p.is_empty()) {
            deliver(node, (Peer::Client, packet), self.now, self.counts)?;
        }
        self.carry()?;
        while let Some((ticket, answer)) = self.client.next_answer() {
            expected.retain(|t| *t != ticket);
            if let Answer::Failed(error) = answer {
                bail!("a request is refused: {error:?}");
            }
        }
        if !expected.is_empty() {
            bail!("{} requests are not answered", expected.len());
        }
        Ok(())
    }

    /// Carries bytes between the nodes and to the client until all is quiet.
    fn carry(&mut self) -> anyhow::Result<()> {
        let mut moved = true;
        while moved {
            moved = false;
            for from in 0..self.nodes.len() {
                for to in (0..self.nodes.len()).filter(|to| *to != from) {
                    let [sender, receiver] = [from, to].map(|at| NodeId::new(at as u16 + 1));
                    let spare = core::mem::take(&mut self.spare);
                    let bytes = self.nodes[from].take_output(Peer::Node(receiver), spare);
                    moved |= !bytes.is_empty();
                    if !bytes.is_empty() {
                        let packet = (Peer::Node(sender), &bytes[..]);
                        deliver(&mut self.nodes[to], packet, self.now, self.counts)?;
                    }
                    self.give_back(bytes);
                }
                let spare = core::mem::take(&mut self.spare);
                let bytes = self.nodes[from].take_output(Peer::Client, spare);
                let mut rest = &bytes[..];
                while let Some(signal) = parse(rest).map_err(|m| anyhow::anyhow!("{m}"))? {
                    self.client.receive(&signal);
                    rest = &rest[signal.bytes().len()..];
                }
                self.give_back(bytes);
            }
        }
        Ok(())
    }

    fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        self.spare = bytes;
    }
}

/// One node group of so many replicas; node 1 is primary of everything, so that all measured work of primaries
/// is in one node.
fn view(replicas: u16) -> View {
    let nodes: Vec<NodeId> = (1..=replicas).map(NodeId::new).collect();
    let member = |node: &NodeId| Member {
        node: *node,
        incarnation: Incarnation::new(1),
        roles: Roles { data: true, sql: true },
        alive: true,
        joined_in: VIEW,
        ..Member::default()
    };
    View {
        number: VIEW,
        restarts: 0,
        config: ClusterConfig {
            cluster_id: 1,
            replicas,
            ldm_instances: LDM_INSTANCES,
            tc_instances: 1,
            lease_ms: 300,
            lock_wait_ms: 1_000,
            keeps: false,
            to_disk: false,
        },
        members: nodes.iter().map(member).collect(),
        groups: vec![Group {
            replicas: nodes.iter().map(|n| Replica { node: *n, in_sync: true }).collect(),
            primaries: vec![NodeId::new(1)],
            nodes,
            next: vec![],
            last: vec![],
        }],
    }
}

/// A table as `latsdb bench flex` has it.
fn catalog(replicas: u16) -> anyhow::Result<Catalog> {
    let mut catalog = Catalog::initial();
    let key = ColumnDef::new("id", ColumnType::new(TypeKind::BigInt).unsigned().not_null());
    let bytes = ColumnType::new(TypeKind::VarBinary { bytes: COLUMN_BYTES }).not_null();
    let columns = vec![key, ColumnDef::new("c0", bytes)];
    let table = TableDef::new("test", "flex", columns, vec![0]);
    let create = Change::CreateDatabase { name: "test".to_string(), if_not_exists: true };
    let changes = [create, Change::CreateTable { table, if_not_exists: false }];
    for change in changes {
        let refused = catalog.apply(&change, view(replicas).fragments_per_table()).err();
        if let Some(error) = refused {
            bail!("the table is refused: {}", error.message);
        }
    }
    Ok(catalog)
}
