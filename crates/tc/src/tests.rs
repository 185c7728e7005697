//! One coordinator alone with an executor: orders of answers that seldom come about.

use crate::Tc;
use lats_base::{
    ClientId, Epoch, Incarnation, Instant, NodeId, NodeSet, RefCode, TransactionId, ViewNumber,
};
use lats_catalog::{
    Catalog, ClusterConfig, Group, Member, Replica, Roles, SEQUENCES_TABLE, TableDef, View,
};
use lats_kernel::{Executor, Faults, ctx::Identity, executor::Budget};
use lats_signals::{
    BlockKind, BlockRef, Body, SignalNumber,
    buffer::{Route, parse},
    commit::{
        AbortConf, AbortReq, CommitConf, CommitReq, DecideReq, FLAG_COMMIT, PrepareConf,
        PrepareReq, ReplicateConf, TAKE_OVER_PREPARED, TakeOverEndRep, TakeOverRep, TcKeyConf,
        TcKeyRef, TcKeyReq,
    },
    control::{CLOSE_ALL, CLOSE_BEGUN, CatalogOrd, LeaseOrd, QuietRep, ViewOrd},
    copy::{AdoptOrd, AdoptReq},
    deadlock::{Blocker, LockWaitRep, ProbeOrd, Waiter},
    list::{self, Operation, OperationKind},
};
use std::{boxed::Box, vec, vec::Vec};
use zerocopy::{FromZeros, IntoBytes};

const VIEW: ViewNumber = ViewNumber::new(1);
const TRANSACTION: TransactionId = TransactionId { client: ClientId::new(1), sequence: 1 };

fn node(number: u16) -> NodeId {
    NodeId::new(number)
}

/// Node 1 is primary, node 2 its backup, and node 3 is being filled.
fn view() -> View {
    let member = |number| Member {
        node: node(number),
        incarnation: Incarnation::new(1),
        roles: Roles { data: true, sql: true },
        alive: true,
        ..Member::default()
    };
    let replicas = [(1, true), (2, true), (3, false)];
    View {
        number: VIEW,
        restarts: 0,
        config: ClusterConfig {
            replicas: 3,
            ldm_instances: 1,
            tc_instances: 1,
            ..ClusterConfig::default()
        },
        members: vec![member(1), member(2), member(3)],
        groups: vec![Group {
            nodes: vec![node(1), node(2), node(3)],
            replicas: replicas
                .map(|(number, in_sync)| Replica { node: node(number), in_sync })
                .to_vec(),
            primaries: vec![node(1)],
            next: vec![],
            last: vec![],
        }],
    }
}

struct Bench {
    executor: Executor,
}

type Sent = Vec<(SignalNumber, Vec<u8>)>;

impl Bench {
    /// A coordinator that serves.
    fn new() -> Self {
        let mut bench = Self::just_begun();
        bench.serve(&view());
        bench
    }

    /// One that has not heard of any view yet.
    fn just_begun() -> Self {
        let identity = Identity { node: node(1), incarnation: Incarnation::new(1) };
        let mut executor = Executor::new(identity, 1, Faults::default());
        executor.add(BlockKind::Tc, 0, Box::new(Tc::new()));
        Self { executor }
    }

    fn serve(&mut self, view: &View) -> Sent {
        let control = BlockRef::control(node(1));
        let catalog = Catalog::initial();
        let order = CatalogOrd { catalog_version: catalog.version };
        self.hear(control, &order, &catalog.update_since(0));
        let sent = self.hear(control, &ViewOrd { view: view.number }, &lats_catalog::encode(view));
        self.grant(NodeSet::EMPTY);
        sent
    }

    /// A lease without end, while these nodes are silent.
    fn grant(&mut self, silent: NodeSet) -> Sent {
        let (valid_until, epoch) = (u64::MAX, Epoch::new(5));
        let lease = LeaseOrd { valid_until, epoch, silent, ..LeaseOrd::default() };
        self.hear(BlockRef::control(node(1)), &lease, &[])
    }

    /// What it sends when it hears this.
    fn hear<B: Body>(&mut self, sender: BlockRef, body: &B, payload: &[u8]) -> Sent {
        let route = Route { sender, receiver: BlockRef::tc(node(1), 0), incarnation: 1 };
        self.executor.mailbox().push(route, body, &[payload]);
        let mut sent = Vec::new();
        while self.executor.has_work() {
            self.executor.step(Instant::from_nanos(1), Budget { signals: 1 });
            while let Some(signal) = self.executor.outgoing().pop() {
                sent.push((signal.number().unwrap(), signal.bytes().to_vec()));
            }
        }
        sent
    }

    /// The last request of a transaction: it writes a row.
    fn ask(&mut self) -> Sent {
        self.ask_with(FLAG_COMMIT)
    }

    /// A request that writes a row.
    fn ask_with(&mut self, flags: u32) -> Sent {
        let catalog = Catalog::initial();
        let table: &TableDef = &catalog.tables[&SEQUENCES_TABLE];
        let head = Operation {
            table: table.id,
            schema_version: table.schema_version,
            kind: OperationKind::Write as u16,
            key_bytes: 3,
            row_bytes: 3,
            ..Operation::default()
        };
        let mut operations = Vec::new();
        list::push(&mut operations, &head, [b"key", b"row", &[]]);
        let req = TcKeyReq {
            transaction: TRANSACTION,
            request: 7,
            statement: 1,
            operation_count: 1,
            flags,
            ..TcKeyReq::new_zeroed()
        };
        self.hear(BlockRef::new(node(1), BlockKind::Client, 1), &req, &operations)
    }
}

fn ldm(number: u16) -> BlockRef {
    BlockRef::ldm(node(number), 0)
}

fn prepared(batch: u32, epoch: u64, backup: u16) -> PrepareConf {
    PrepareConf {
        transaction: TRANSACTION,
        epoch: Epoch::new(epoch),
        backups: [node(backup)].into_iter().collect::<NodeSet>(),
        view: VIEW,
        batch,
        holds: 1,
        ..PrepareConf::new_zeroed()
    }
}

/// The body of the only signal of this kind.
fn only<B: Body>(sent: &Sent, number: SignalNumber) -> B {
    let mut found = sent.iter().filter(|(n, _)| *n == number);
    let bytes = &found.next().unwrap_or_else(|| panic!("no {number:?} in {sent:?}")).1;
    assert!(found.next().is_none(), "more than one {number:?} in {sent:?}");
    parse(bytes).unwrap().unwrap().body::<B>()
}

/// EPOCH-4, REJOIN-5: the primary has decided the transaction with its images; then its epoch goes on, and it
/// sends the same changes to the replica that is being filled.
#[test]
fn what_is_adopted_after_the_decision_does_not_move_its_epoch() {
    let mut bench = Bench::new();
    let asked: PrepareReq = only(&bench.ask(), SignalNumber::PrepareReq);
    assert_eq!((asked.carry_parts, asked.epoch), (1, Epoch::new(5)));
    let adopts = AdoptReq { transaction: TRANSACTION, view: VIEW, target: 3 };
    let sent = bench.hear(ldm(1), &adopts, &[]);
    let adopt: AdoptOrd = only(&sent, SignalNumber::AdoptOrd);
    let carried = PrepareConf { carried: 1, ..prepared(asked.batch, 5, 2) };
    bench.hear(ldm(1), &carried, &[]);
    bench.hear(ldm(1), &prepared(adopt.batch, 6, 3), &[]);
    let confirmed = |batch| ReplicateConf { transaction: TRANSACTION, batch, reserved: 0 };
    bench.hear(ldm(3), &confirmed(adopt.batch), &[]);
    let sent = bench.hear(ldm(2), &confirmed(asked.batch), &[]);
    let commit: CommitReq = only(&sent, SignalNumber::CommitReq);
    assert_eq!(commit.epoch, Epoch::new(5));
    let done = CommitConf { transaction: TRANSACTION, view: VIEW };
    let told: TcKeyConf = only(&bench.hear(ldm(1), &done, &[]), SignalNumber::TcKeyConf);
    assert_eq!((told.request, told.epoch), (7, Epoch::new(5)));
}

/// VIEW-11: an heir that has died was told of a transaction; what comes to its next life has been resolved by
/// another heir.
#[test]
fn a_new_life_does_not_resolve_what_its_former_one_was_to_inherit() {
    let resolves = |reported_in: u64, joined_in: u64| {
        let mut bench = Bench::just_begun();
        let report = TakeOverRep {
            transaction: TRANSACTION,
            view: ViewNumber::new(reported_in),
            state: TAKE_OVER_PREPARED,
            ..TakeOverRep::new_zeroed()
        };
        bench.hear(ldm(2), &report, &[]);
        let mut view = View { number: ViewNumber::new(3), ..view() };
        view.members.iter_mut().for_each(|m| m.joined_in = VIEW);
        view.members[0].joined_in = ViewNumber::new(joined_in);
        bench.serve(&view);
        let end = TakeOverEndRep { view: view.number };
        let sent: Vec<Sent> = (1..=3).map(|n| bench.hear(ldm(n), &end, &[])).collect();
        sent.iter().flatten().any(|(number, _)| *number == SignalNumber::AbortReq)
    };
    assert!(!resolves(2, 3), "meant for the former life");
    assert!(resolves(3, 3), "meant for this one");
    assert!(resolves(2, 1), "and this, too");
}

/// SILENT-2, ABORT-2: while the only other replica is silent, a table of an open transaction is dropped. Its client, who asks
/// for the commit then or much later, must not be told that nothing was committed well.
#[test]
fn an_open_transaction_that_was_rolled_back_without_the_silent_is_not_committed() {
    let commits_after = |is_over: bool| {
        let mut bench = Bench::just_begun();
        let mut view = view();
        view.groups[0].primaries = vec![node(2)];
        bench.serve(&view);
        let asked: PrepareReq = only(&bench.ask_with(0), SignalNumber::PrepareReq);
        let conf = PrepareConf { backups: NodeSet::EMPTY, ..prepared(asked.batch, 5, 3) };
        let _: TcKeyConf = only(&bench.hear(ldm(2), &conf, &[]), SignalNumber::TcKeyConf);
        bench.grant(NodeSet::of(node(2)));
        let mut catalog = Catalog::initial();
        catalog.tables.clear();
        catalog.version += 1;
        let order = CatalogOrd { catalog_version: catalog.version };
        let sent = bench.hear(BlockRef::control(node(1)), &order, &catalog.update_since(0));
        let abort: AbortReq = only(&sent, SignalNumber::AbortReq);
        if is_over {
            bench.grant(NodeSet::EMPTY);
            let (from_statement, part) = (abort.from_statement, abort.part);
            let conf =
                AbortConf { transaction: TRANSACTION, view: abort.view, from_statement, part };
            bench.hear(ldm(2), &conf, &[]);
        }
        let req = TcKeyReq {
            transaction: TRANSACTION,
            request: 8,
            statement: 2,
            flags: FLAG_COMMIT,
            ..TcKeyReq::new_zeroed()
        };
        let sent = bench.hear(BlockRef::new(node(1), BlockKind::Client, 1), &req, &[]);
        let refused: TcKeyRef = only(&sent, SignalNumber::TcKeyRef);
        assert_eq!((refused.request, refused.flags), (8, 0));
    };
    commits_after(false);
    commits_after(true);
}

/// CLOSE-2: a node that ends begins nothing, and says that it has nothing to do when what is not decided is rolled back.
#[test]
fn a_coordinator_that_ends_begins_nothing_and_rolls_back_what_is_open() {
    let closes = |bench: &mut Bench, closing| {
        let (valid_until, epoch) = (u64::MAX, Epoch::new(5));
        let lease = LeaseOrd { valid_until, epoch, closing, ..LeaseOrd::default() };
        bench.hear(BlockRef::control(node(1)), &lease, &[])
    };
    let mut bench = Bench::new();
    let sent = closes(&mut bench, CLOSE_BEGUN);
    let quiet: QuietRep = only(&sent, SignalNumber::QuietRep);
    assert_eq!((quiet.closing, quiet.epoch), (CLOSE_BEGUN, Epoch::new(5)));
    let refused: TcKeyRef = only(&bench.ask(), SignalNumber::TcKeyRef);
    assert_eq!(refused.code, u32::from(RefCode::ShuttingDown.number()));

    let mut bench = Bench::new();
    let asked: PrepareReq = only(&bench.ask_with(0), SignalNumber::PrepareReq);
    let sent = closes(&mut bench, CLOSE_BEGUN);
    assert!(sent.iter().all(|(n, _)| *n != SignalNumber::QuietRep), "a transaction is open");
    bench.hear(ldm(1), &prepared(asked.batch, 5, 2), &[]);
    let confirmed = ReplicateConf { transaction: TRANSACTION, batch: asked.batch, reserved: 0 };
    bench.hear(ldm(2), &confirmed, &[]);
    let sent = closes(&mut bench, CLOSE_ALL);
    assert!(sent.iter().any(|(n, _)| *n == SignalNumber::AbortReq), "it is rolled back: {sent:?}");
    assert!(sent.iter().all(|(n, _)| *n != SignalNumber::QuietRep), "that is under way");
}

/// STOP-4: what has begun needs no lease to be committed, and nothing begins without one.
#[test]
fn a_coordinator_without_a_lease_commits_what_has_begun() {
    let mut bench = Bench::new();
    let asked: PrepareReq = only(&bench.ask_with(0), SignalNumber::PrepareReq);
    bench.hear(ldm(1), &prepared(asked.batch, 5, 2), &[]);
    let confirmed = ReplicateConf { transaction: TRANSACTION, batch: asked.batch, reserved: 0 };
    bench.hear(ldm(2), &confirmed, &[]);
    let lease = LeaseOrd { valid_until: 0, epoch: Epoch::new(5), ..LeaseOrd::default() };
    bench.hear(BlockRef::control(node(1)), &lease, &[]);
    let request = |sequence: u64, statement: u32, flags: u32| TcKeyReq {
        transaction: TransactionId { sequence, ..TRANSACTION },
        request: 8,
        statement,
        flags,
        ..TcKeyReq::new_zeroed()
    };
    let client = BlockRef::new(node(1), BlockKind::Client, 1);
    let later = TRANSACTION.sequence + 1;
    let refused: TcKeyRef =
        only(&bench.hear(client, &request(later, 1, 0), &[]), SignalNumber::TcKeyRef);
    assert_eq!(refused.code, u32::from(RefCode::NotServing.number()));
    let sent = bench.hear(client, &request(TRANSACTION.sequence, 2, FLAG_COMMIT), &[]);
    let decide: DecideReq = only(&sent, SignalNumber::DecideReq);
    assert_eq!(decide.transaction, TRANSACTION);
}

/// DEADLOCK-4: who waits behind a batch in a queue does not wait for the transaction any more when that batch was refused.
#[test]
fn a_refused_batch_is_in_nobodys_way() {
    let other = TransactionId { sequence: TRANSACTION.sequence + 7, ..TRANSACTION };
    let far = BlockRef::new(node(2), BlockKind::Tc, 0);
    let probes_sent = |ahead_batch: u32, confirms: u32| {
        let mut bench = Bench::new();
        let asked: PrepareReq = only(&bench.ask_with(0), SignalNumber::PrepareReq);
        let wait = LockWaitRep {
            transaction: TRANSACTION,
            batch: asked.batch,
            blocker_count: 1,
            row_bytes: 0,
            reserved: 0,
        };
        let blocker = Blocker { transaction: other, coordinator: far, ..Blocker::default() };
        let sent = bench.hear(ldm(1), &wait, blocker.as_bytes());
        let _: ProbeOrd = only(&sent, SignalNumber::ProbeOrd);
        let waiter = |transaction, coordinator, batch, ahead_batch| Waiter {
            transaction,
            coordinator,
            batch,
            ahead_batch,
        };
        let mut path = vec![waiter(other, far, 1, ahead_batch)];
        if confirms > 0 {
            path.push(waiter(
                TRANSACTION,
                BlockRef::new(node(1), BlockKind::Tc, 0),
                asked.batch,
                0,
            ));
        }
        let path_count = path.len() as u32;
        let probe = ProbeOrd { target: TRANSACTION, operations: 0, round: 1, path_count, confirms };
        let sent = bench.hear(far, &probe, path.as_bytes());
        sent.iter().filter(|(number, _)| *number == SignalNumber::ProbeOrd).count()
    };
    for confirms in [0, 1] {
        assert_eq!(probes_sent(0, confirms), 1, "it holds the lock");
        assert_eq!(probes_sent(1, confirms), 1, "its first batch is in the queue");
        assert_eq!(probes_sent(2, confirms), 0, "that batch is not there (any more)");
    }
}
