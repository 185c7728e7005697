//! What the state machine does with maps and catalogs that are not what it hopes for.

use super::{Answer, ClientCore, Then};
use crate::api::{LockWait, RowOp, RowOpKind};
use lats_base::{ClientId, Duration, Incarnation, Instant, NodeId, RefCode, TableId, ViewNumber};
use lats_catalog::{
    Catalog, CatalogUpdate, ClusterMap, Group, Member, Replica, Roles, SEQUENCES_TABLE, TableDef,
    View,
};
use lats_signals::{
    BlockRef, SignalBuffer, SignalNumber,
    buffer::Route,
    commit::{
        CHANGES_UNKNOWN, OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_FORGOTTEN, OutcomeConf,
        OutcomeReq, TcKeyReq,
    },
    control::{CatalogConf, MapConf},
};
use std::sync::Arc;

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
        last: vec![],
    };
    let view = View {
        number: ViewNumber::new(1),
        members: vec![member(1, true), member(2, false)],
        groups: vec![group],
        ..View::default()
    };
    ClusterMap { view, catalog_version: 1, silent: vec![] }
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
        program: Arc::default(),
        wait: LockWait::Wait,
    };
    while core.outgoing().pop().is_some() {}
    let sequence = core.begin();
    let ticket = core.step(sequence, std::slice::from_ref(&op), Then::Commit);
    assert!(core.next_answer().is_none() && core.outgoing().pop().is_none(), "it waits");
    // The link to a node with a coordinator comes: the request goes there, with its own number.
    core.link_up(NodeId::new(1));
    let mut sent = Vec::new();
    while let Some(signal) = core.outgoing().pop() {
        if signal.number() == Some(SignalNumber::TcKeyReq) {
            sent.push((signal.header.receiver.node, signal.body::<TcKeyReq>().request));
        }
    }
    assert_eq!(sent, [(NodeId::new(1), ticket)]);
    let sequence = core.begin();
    core.step(sequence, &[op], Then::Commit);
    assert!(core.next_answer().is_none());
}

#[test]
fn a_request_without_a_coordinator_waits_for_so_long_and_can_be_interrupted() {
    let mut core = client();
    let failed = |core: &mut ClientCore| match core.next_answer() {
        Some((ticket, Answer::Failed(e))) => Some((ticket, e.code)),
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    let first = core.begin();
    let late = core.step(first, &[], Then::GoOn);
    let second = core.begin();
    let ended = core.step(second, &[], Then::GoOn);
    core.interrupt(ended);
    assert_eq!(failed(&mut core), Some((ended, RefCode::Interrupted)));
    assert!(!core.is_open(second));
    core.tick(Instant::ZERO.plus(Duration::from_millis(1_900)));
    assert_eq!(failed(&mut core), None);
    core.tick(Instant::ZERO.plus(Duration::from_millis(2_100)));
    assert_eq!(failed(&mut core), Some((late, RefCode::NotServing)));
    assert!(!core.is_open(first));
    // Nobody who holds data lives: nobody can come.
    let mut map = map();
    (map.view.number, map.view.members[0].alive) = (ViewNumber::new(2), false);
    let body = MapConf { request: 0, view: ViewNumber::new(2), catalog_version: 1 };
    receive(&mut core, &body, &lats_catalog::encode(&map));
    let third = core.begin();
    let ticket = core.step(third, &[], Then::GoOn);
    assert_eq!(failed(&mut core), Some((ticket, RefCode::NotServing)));
}

#[test]
fn an_older_catalog_is_not_believed() {
    let mut core = client();
    let mut newer = Catalog::initial();
    newer.version = 9;
    let sequences = TableDef::clone(&newer.tables[&SEQUENCES_TABLE]);
    newer.tables.insert(TableDef { fragment_count: 4, ..sequences });
    let count = |core: &ClientCore| core.fragment_count(SEQUENCES_TABLE);
    core.learn_catalog(CatalogUpdate::Whole(newer.clone()));
    let fragments = count(&core);
    assert_eq!(fragments, 4);
    let ticket = core.fetch_catalog();
    // A node that has just started knows nothing yet.
    let body = CatalogConf { request: ticket, catalog_version: 0 };
    let mut older = Catalog::initial();
    older.version = 0;
    receive(&mut core, &body, &older.update_since(0));
    assert_eq!(count(&core), fragments);
    assert!(core.next_answer().is_none(), "it asks again instead");
    let body = CatalogConf { request: ticket, catalog_version: 9 };
    receive(&mut core, &body, &newer.update_since(0));
    assert!(matches!(core.next_answer(), Some((t, Answer::Catalog(_))) if t == ticket));
}

/// Three replicas, in the north, the south and the south; node 2 is primary.
fn spread_out() -> ClusterMap {
    let mut map = map();
    let member = |(node, location): (u16, &str)| Member {
        node: NodeId::new(node),
        incarnation: Incarnation::new(1),
        roles: Roles { data: true, sql: true },
        location: location.to_string(),
        alive: true,
        ..Member::default()
    };
    map.view.members = [(1, "north"), (2, "south"), (3, "south")].map(member).to_vec();
    let nodes: Vec<NodeId> = [1, 2, 3].map(NodeId::new).to_vec();
    map.view.groups[0].replicas =
        nodes.iter().map(|n| Replica { node: *n, in_sync: true }).collect();
    map.view.groups[0].primaries = vec![NodeId::new(2)];
    map.view.groups[0].nodes = nodes;
    map
}

#[test]
fn reads_go_to_the_nearest_replica() {
    let read_at = |home: Option<u16>, location: &str, near: Option<u16>, lost: &[u16]| {
        let mut core = ClientCore::new(ClientId::new(1), home.map(NodeId::new));
        core.set_location(location);
        (1..=3).for_each(|n| core.link_up(NodeId::new(n)));
        let body = MapConf { request: 0, view: ViewNumber::new(1), catalog_version: 1 };
        receive(&mut core, &body, &lats_catalog::encode(&spread_out()));
        near.into_iter().for_each(|n| core.note_near(NodeId::new(n)));
        lost.iter().for_each(|n| core.link_down(NodeId::new(*n)));
        while core.outgoing().pop().is_some() {}
        core.read(vec![RowOp {
            table: TableId::new(7),
            schema_version: 1,
            kind: RowOpKind::Read(crate::api::LockMode::Committed),
            key: vec![1],
            row: Vec::new(),
            program: Arc::default(),
            wait: LockWait::Wait,
        }]);
        core.outgoing().pop().map(|signal| signal.header.receiver.node.get())
    };
    assert_eq!(read_at(None, "", None, &[]), Some(2), "the primary, if nothing is known");
    assert_eq!(read_at(Some(3), "", None, &[]), Some(3), "the own process");
    assert_eq!(read_at(None, "north", None, &[]), Some(1), "the own location");
    assert_eq!(read_at(None, "north", Some(3), &[]), Some(3), "the own host before it");
    assert_eq!(read_at(None, "south", None, &[2]), Some(3), "another one there");
    assert_eq!(read_at(Some(3), "", None, &[3]), Some(2), "the home's location");
    assert_eq!(read_at(None, "east", None, &[2]), Some(1), "anywhere");
}

#[test]
fn what_is_larger_than_a_message_is_refused_and_harms_nothing() {
    let mut core = client();
    core.link_up(NodeId::new(1));
    while core.outgoing().pop().is_some() {}
    let op = |kind, key: usize, row: usize, program: usize| RowOp {
        table: TableId::new(7),
        schema_version: 1,
        kind,
        key: vec![1; key],
        row: vec![1; row],
        program: vec![1; program].into(),
        wait: LockWait::Wait,
    };
    let read = RowOpKind::Read(crate::api::LockMode::Committed);
    let tickets = [
        core.read(vec![op(read, 5 << 20, 0, 0)]),
        core.read(vec![op(read, 8, 0, 5 << 20)]),
        core.read((0..3_000).map(|_| op(read, 8, 0, 2_000)).collect()),
    ];
    let sequence = core.begin();
    let step = core.step(sequence, &[op(RowOpKind::Insert, 8, 5 << 20, 0)], Then::Commit);
    for ticket in tickets.into_iter().chain([step]) {
        match core.next_answer() {
            Some((of, Answer::Failed(error))) => {
                assert_eq!((of, error.code), (ticket, RefCode::RequestTooLarge));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(core.outgoing().pop().is_none(), "nothing is sent");
    // The transaction is as it was: a smaller request goes on with it.
    assert!(core.is_open(sequence));
    core.step(sequence, &[op(RowOpKind::Insert, 8, 1_000, 0)], Then::Commit);
    let sent = core.outgoing().pop().and_then(|signal| signal.number());
    assert_eq!(sent, Some(SignalNumber::TcKeyReq));
}

/// A client whose whole transaction commits at node 1, which it loses 10 ms later; node 1 is there again then. The questions that it
/// asks, and how to answer them.
struct Lost {
    core: ClientCore,
    ticket: super::Ticket,
    sequence: u64,
}

fn at(ms: u64) -> Instant {
    Instant::ZERO.plus(Duration::from_millis(ms))
}

impl Lost {
    fn new() -> Self {
        let mut core = client();
        core.set_time(at(1_000));
        core.link_up(NodeId::new(1));
        let op = RowOp {
            table: TableId::new(7),
            schema_version: 1,
            kind: RowOpKind::Delete,
            key: vec![1],
            row: Vec::new(),
            program: Arc::default(),
            wait: LockWait::Wait,
        };
        let sequence = core.begin();
        let ticket = core.step(sequence, &[op], Then::Commit);
        core.set_time(at(1_010));
        core.link_down(NodeId::new(1));
        core.link_up(NodeId::new(1));
        Self { core, ticket, sequence }
    }

    /// The age in the newest question.
    fn age_ms(&mut self) -> Option<u64> {
        let mut age = None;
        while let Some(signal) = self.core.outgoing().pop() {
            if signal.number() == Some(SignalNumber::OutcomeReq) {
                age = Some(signal.body::<OutcomeReq>().age_ms);
            }
        }
        age
    }

    fn hear(&mut self, outcome: u32, remembered_ms: u32, changes: u32) -> Option<Answer> {
        let transaction = self.core.transaction_id(self.sequence);
        let (request, epoch, restarts) = (self.ticket, lats_base::Epoch::new(9), 0);
        let body =
            OutcomeConf { transaction, request, epoch, outcome, restarts, remembered_ms, changes };
        receive(&mut self.core, &body, &[]);
        self.core.next_answer().map(|(_, answer)| answer)
    }
}

fn code(answer: Option<Answer>) -> Option<RefCode> {
    match answer {
        Some(Answer::Failed(error)) => Some(error.code),
        None => None,
        other => panic!("{other:?}"),
    }
}

/// OUTCOME-8.
#[test]
fn what_is_older_than_the_memory_of_others_is_unknown() {
    let told = |asked_ms: u64, outcome, remembered_ms| {
        let mut lost = Lost::new();
        assert_eq!(lost.age_ms(), Some(11));
        lost.core.set_time(at(1_000 + asked_ms));
        code(lost.hear(outcome, remembered_ms, CHANGES_UNKNOWN))
    };
    let (unknown, rolled_back) = (RefCode::OutcomeUnknown, RefCode::CoordinatorFailed);
    assert_eq!(told(20, OUTCOME_ABORTED, 60_000), Some(rolled_back));
    assert_eq!(told(47_000, OUTCOME_ABORTED, 60_000), Some(rolled_back));
    assert_eq!(told(49_000, OUTCOME_ABORTED, 60_000), Some(unknown), "clocks may differ");
    assert_eq!(told(66_000, OUTCOME_ABORTED, 60_000), Some(unknown));
    assert_eq!(told(20, OUTCOME_ABORTED, 21), Some(unknown), "they have just begun");
    assert_eq!(told(20, OUTCOME_FORGOTTEN, 60_000), Some(unknown));
    // The clock has not counted it.
    let mut lost = Lost::new();
    lost.core.set_suspended(Duration::from_millis(70_000));
    assert_eq!(code(lost.hear(OUTCOME_ABORTED, 60_000, CHANGES_UNKNOWN)), Some(unknown));
}

/// OUTCOME-9.
#[test]
fn whoever_has_committed_asks_for_its_changes_for_a_while() {
    let told = |answer: Option<Answer>| match answer {
        Some(Answer::Rows { results, committed: Some(receipt) }) if results.is_empty() => {
            Some(receipt.changes)
        }
        None => None,
        other => panic!("{other:?}"),
    };
    let mut lost = Lost::new();
    assert_eq!(told(lost.hear(OUTCOME_COMMITTED, 60_000, CHANGES_UNKNOWN)), None);
    assert_eq!(told(lost.hear(OUTCOME_COMMITTED, 60_000, 1)), Some(Some(1)));
    let mut lost = Lost::new();
    lost.core.set_time(at(1_600));
    assert_eq!(told(lost.hear(OUTCOME_COMMITTED, 60_000, CHANGES_UNKNOWN)), Some(None));
    // Those who know of changes may have forgotten it.
    let mut lost = Lost::new();
    lost.core.set_time(at(1_900));
    assert_eq!(told(lost.hear(OUTCOME_COMMITTED, 1_000, 0)), Some(None));
    assert_eq!(told(Lost::new().hear(OUTCOME_COMMITTED, 1_000, 0)), Some(Some(0)));
}
