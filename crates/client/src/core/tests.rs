//! What the state machine does with maps and catalogs that are not what it hopes for.

use super::{Answer, ClientCore, Then};
use crate::api::{LockWait, RowOp, RowOpKind};
use lats_base::{ClientId, Incarnation, NodeId, RefCode, TableId, ViewNumber};
use lats_catalog::{Catalog, ClusterMap, Group, Member, Replica, Roles, SEQUENCES_TABLE, View};
use lats_signals::{
    BlockRef, SignalBuffer,
    buffer::Route,
    control::{CatalogConf, MapConf},
};

/// A data node and a witness.
fn map() -> ClusterMap {
    let member = |node, data| Member {
        node: NodeId::new(node),
        incarnation: Incarnation::new(1),
        roles: Roles { data, sql: data },
        alive: true,
        ..Member::default()
    };
    let node = NodeId::new(1);
    let group = Group {
        nodes: vec![node],
        replicas: vec![Replica { node, in_sync: true }],
        primaries: vec![node],
        next: vec![],
    };
    let view = View {
        number: ViewNumber::new(1),
        members: vec![member(1, true), member(2, false)],
        groups: vec![group],
        ..View::default()
    };
    ClusterMap { view, catalog_version: 1 }
}

fn receive<B: lats_signals::Body>(core: &mut ClientCore, body: &B, payload: &[u8]) {
    let route =
        Route { sender: BlockRef::default(), receiver: BlockRef::default(), incarnation: 1 };
    let mut buffer = SignalBuffer::new();
    buffer.push(route, body, &[payload]);
    if let Some(signal) = buffer.pop() {
        core.receive(&signal);
    }
}

fn client() -> ClientCore {
    let mut core = ClientCore::new(ClientId::new(1), None);
    core.link_up(NodeId::new(2));
    receive(
        &mut core,
        &MapConf { request: 0, view: ViewNumber::new(1), catalog_version: 1 },
        &lats_catalog::encode(&map()),
    );
    core
}

#[test]
fn a_witness_coordinates_nothing() {
    let mut core = client();
    let op = RowOp {
        table: TableId::new(7),
        schema_version: 1,
        kind: RowOpKind::Delete,
        key: vec![1],
        row: Vec::new(),
        program: Vec::new(),
        wait: LockWait::Wait,
    };
    let sequence = core.begin();
    let ticket = core.step(sequence, std::slice::from_ref(&op), Then::Commit);
    match core.next_answer() {
        Some((answered, Answer::Failed(e))) => {
            assert_eq!((answered, e.code), (ticket, RefCode::NotServing));
        }
        other => panic!("{other:?}"),
    }
    core.link_up(NodeId::new(1));
    let sequence = core.begin();
    core.step(sequence, &[op], Then::Commit);
    assert!(core.next_answer().is_none());
}

#[test]
fn an_older_catalog_is_not_believed() {
    let mut core = client();
    let mut newer = Catalog { version: 9, ..Catalog::initial() };
    newer.tables.values_mut().for_each(|t| t.fragment_count = 4);
    let count = |core: &ClientCore| core.fragment_count(SEQUENCES_TABLE);
    core.learn_catalog(&newer);
    let fragments = count(&core);
    assert_eq!(fragments, 4);
    let ticket = core.fetch_catalog();
    // A node that has just started knows nothing yet.
    let body = CatalogConf { request: ticket, catalog_version: 0 };
    receive(&mut core, &body, &Catalog { version: 0, ..Catalog::initial() }.encode());
    assert_eq!(count(&core), fragments);
    assert!(core.next_answer().is_none(), "it asks again instead");
    let body = CatalogConf { request: ticket, catalog_version: 9 };
    receive(&mut core, &body, &newer.encode());
    assert!(matches!(core.next_answer(), Some((t, Answer::Catalog(_))) if t == ticket));
}
