//! One data manager alone with an executor: what it does between two slices of long work.

use crate::{Ldm, LdmConfig, OUTCOME_KEPT, OUTCOMES_MAX, Slices, Table, outcomes::REFUSED_KEPT};
use lats_base::{
    ClientId, Duration, Epoch, FragmentId, Incarnation, IndexId, Instant, NodeId, RefCode, RowId,
    SortedMap, TableId, TransactionId, ViewNumber,
};
use lats_catalog::{
    Catalog, Change, ClusterConfig, ColumnDef, Group, Member, PRIMARY_INDEX, Replica, Roles,
    Spread, TableDef, View,
};
use lats_kernel::{Executor, Fault, Faults, ctx::Identity, executor::Budget};
use lats_signals::{
    BlockKind, BlockRef, Body, Signal, SignalNumber,
    buffer::Route,
    commit::{
        ABORT_AS_PRIMARY, AbortReq, CANCEL_WAIT, Carry, CommitReq, CompleteEntry, CompleteOrd,
        OUTCOME_ABORTED, OUTCOME_COMMITTED, OUTCOME_FORGOTTEN, OutcomeFindConf, OutcomeFindReq,
        PrepareConf, PrepareReq, ReplicateReq, TAKE_OVER_DECIDED, TAKE_OVER_PREPARED, TakeOverRep,
    },
    control::{CatalogOrd, InstallConf, LeaseOrd, ViewOrd},
    copy::{AdoptOrd, CopySinceReq},
    list::{self, Operation, OperationKind, Range},
    query::{
        ReadConf, ReadRef, ReadReq, SCAN_FEW, SCAN_FIRST, SCAN_TO_LOCK, ScanConf, ScanNextReq,
        ScanRef, ScanReq,
    },
};
use lats_values::{ColumnType, RowLayout, TypeKind, Value, encode_key_value};
use std::{string::ToString, vec, vec::Vec};
use zerocopy::{FromZeros, IntoBytes};

const NODE: NodeId = NodeId::new(1);
const ROWS: i64 = 40;
const SLICE: usize = 4;

struct Bench {
    executor: Executor,
    catalog: Catalog,
    table: TableId,
    layout: RowLayout,
    transactions: u64,
    now: Instant,
}

fn view() -> View {
    let member = Member {
        node: NODE,
        incarnation: Incarnation::new(1),
        roles: Roles { data: true, sql: true },
        alive: true,
        ..Member::default()
    };
    View {
        number: ViewNumber::new(1),
        restarts: 0,
        config: ClusterConfig {
            cluster_id: 1,
            replicas: 1,
            ldm_instances: 1,
            tc_instances: 1,
            lease_ms: 300,
            lock_wait_ms: 100,
            keeps: false,
            to_disk: false,
        },
        members: vec![member],
        groups: vec![Group {
            nodes: vec![NODE],
            replicas: vec![Replica { node: NODE, in_sync: true }],
            primaries: vec![NODE],
            next: vec![],
            last: vec![],
        }],
    }
}

fn number() -> ColumnType {
    ColumnType::new(TypeKind::BigInt).not_null()
}

/// A table of two numbers, the first of them its key.
fn creation() -> Change {
    let column = |name: &str| ColumnDef::new(name, number());
    let table = TableDef {
        id: TableId::new(0),
        schema_version: 0,
        database: "test".to_string(),
        name: "t".to_string(),
        columns: vec![column("id"), column("n")],
        primary_key: vec![0],
        indexes: Vec::new(),
        fragment_count: 0,
        comment: "".to_string(),
        partition_key: Vec::new(),
        index_of: None,
    };
    Change::CreateTable { table, if_not_exists: false }
}

/// A catalog with that table.
fn catalog() -> (Catalog, TableId) {
    let mut catalog = Catalog::default();
    let database = Change::CreateDatabase { name: "test".to_string(), if_not_exists: true };
    catalog.apply(&database, 1).unwrap();
    catalog.apply(&creation(), 1).unwrap();
    let table = catalog.table("test", "t").unwrap().id;
    (catalog, table)
}

/// The table as a data manager holds it, with this version of its definition.
pub(crate) fn table(schema_version: u32) -> Table {
    let (catalog, id) = catalog();
    let def = TableDef { schema_version, ..TableDef::clone(&catalog.tables[&id]) };
    let layout = RowLayout::new(&[number(), number()]);
    Table { layout, spread: Spread::of(&def), fragments: SortedMap::new(), def }
}

fn key(id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key_value(&number(), &Value::Int(id), &mut key);
    key
}

/// A batch with a statement of its own.
fn batch(transaction: TransactionId, batch: u32, count: usize) -> PrepareReq {
    PrepareReq {
        transaction,
        view: ViewNumber::new(1),
        epoch: Epoch::new(1),
        batch,
        statement: batch,
        operation_count: count as u32,
        flags: 0,
        carry_parts: 0,
    }
}

impl Bench {
    /// A data manager with an empty table, which this planted bug is in.
    fn new(bug: Option<Fault>) -> Self {
        let mut bench = Self::just_begun(bug);
        bench.send_catalog();
        let bytes = lats_catalog::encode(&view());
        bench.send(&ViewOrd { view: ViewNumber::new(1) }, &bytes);
        let (valid_until, epoch) = (u64::MAX, Epoch::new(1));
        bench.send(&LeaseOrd { valid_until, epoch, ..LeaseOrd::default() }, &[]);
        bench.run();
        bench
    }

    /// One that has not heard of any view or catalog yet.
    fn just_begun(bug: Option<Fault>) -> Self {
        let mut faults = Faults::default();
        if let Some(bug) = bug {
            faults.arm(bug, 1);
        }
        let identity = Identity { node: NODE, incarnation: Incarnation::new(1) };
        let mut executor = Executor::new(identity, 1, faults);
        let config = LdmConfig {
            memory_bytes: 1 << 20,
            slices: Slices { rows: SLICE, ..Slices::default() },
            redo: None,
            outcome_kept: OUTCOME_KEPT,
        };
        executor.add(BlockKind::Ldm, 0, std::boxed::Box::new(Ldm::new(0, config)));
        let (catalog, table) = catalog();
        let layout = RowLayout::new(&[number(), number()]);
        Self { executor, catalog, table, layout, transactions: 0, now: Instant::from_nanos(1) }
    }

    fn send<B: Body>(&mut self, body: &B, payload: &[u8]) {
        self.send_from(BlockRef::tc(NODE, 0), body, payload);
    }

    fn send_from<B: Body>(&mut self, sender: BlockRef, body: &B, payload: &[u8]) {
        let route = Route { sender, receiver: BlockRef::ldm(NODE, 0), incarnation: 1 };
        self.executor.mailbox().push(route, body, &[payload]);
    }

    fn send_catalog(&mut self) {
        let bytes = self.catalog.update_since(0);
        self.send(&CatalogOrd { catalog_version: self.catalog.version }, &bytes);
    }

    /// Lets it do one thing; what it has sent to others.
    fn turn(&mut self) -> Vec<(SignalNumber, Vec<u8>)> {
        self.executor.step(self.now, Budget { signals: 1 });
        let mut sent = Vec::new();
        while let Some(signal) = self.executor.outgoing().pop() {
            sent.push((signal.number().unwrap(), signal.bytes().to_vec()));
        }
        sent
    }

    /// Lets it work until nothing is left to be done: what it has sent, and in which turn.
    fn run(&mut self) -> Vec<(usize, SignalNumber, Vec<u8>)> {
        let mut sent = Vec::new();
        for turn in 0.. {
            sent.extend(self.turn().into_iter().map(|(number, bytes)| (turn, number, bytes)));
            if !self.executor.has_work() {
                break;
            }
        }
        sent
    }

    fn ldm(&self) -> &Ldm {
        let block = self.executor.block(BlockKind::Ldm, 0).unwrap();
        block.as_any().downcast_ref().unwrap()
    }

    fn next_transaction(&mut self) -> TransactionId {
        self.transactions += 1;
        TransactionId { client: ClientId::new(1), sequence: self.transactions }
    }

    fn schema_version(&self) -> u32 {
        self.catalog.tables[&self.table].schema_version
    }

    fn operation(&self, kind: OperationKind, key: &[u8], row: &[u8]) -> Operation {
        Operation {
            table: self.table,
            schema_version: self.schema_version(),
            fragment: FragmentId::new(0),
            kind: kind as u16,
            key_bytes: key.len() as u32,
            row_bytes: row.len() as u32,
            ..Operation::default()
        }
    }

    /// Prepares a transaction that writes all rows.
    fn prepare(&mut self, value: i64) -> TransactionId {
        let transaction = self.next_transaction();
        let mut operations = Vec::new();
        for id in 0..ROWS {
            let (key, mut row) = (key(id), Vec::new());
            self.layout.encode(&[Value::Int(id), Value::Int(value)], &mut row).unwrap();
            let head = self.operation(OperationKind::Write, &key, &row);
            list::push(&mut operations, &head, [&key, &row, &[]]);
        }
        self.send_batch(transaction, &operations, ROWS as usize);
        transaction
    }

    /// Executes a transaction's first batch.
    fn send_batch(&mut self, transaction: TransactionId, operations: &[u8], count: usize) {
        self.send(&batch(transaction, 1, count), operations);
        self.run();
    }

    /// Lets this time pass.
    fn wait(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.run();
    }

    /// What it says became of a transaction.
    fn outcome(&mut self, transaction: TransactionId) -> u32 {
        self.outcome_of(transaction, 1)
    }

    /// The same of one that is so old.
    fn outcome_of(&mut self, transaction: TransactionId, age_ms: u64) -> u32 {
        let view = ViewNumber::new(1);
        self.send(&OutcomeFindReq { transaction, request: 1, view, age_ms }, &[]);
        let sent = self.run();
        let [(_, SignalNumber::OutcomeFindConf, bytes)] = &sent[..] else { panic!("{sent:?}") };
        lats_signals::buffer::parse(bytes).unwrap().unwrap().body::<OutcomeFindConf>().outcome
    }

    fn commit(&mut self, transaction: TransactionId) {
        let (epoch, view) = (Epoch::new(1), ViewNumber::new(1));
        self.send(&CommitReq { transaction, epoch, view }, &[]);
    }

    /// Asks for a row's value; the answer has this number.
    fn ask(&mut self, id: i64) {
        self.ask_as_of(id, Epoch::default());
    }

    fn ask_as_of(&mut self, id: i64, as_of: Epoch) {
        let key = key(id);
        let mut payload = Vec::new();
        list::push(&mut payload, &self.operation(OperationKind::Read, &key, &[]), [&key, &[], &[]]);
        let req = ReadReq {
            transaction: TransactionId::default(),
            request: id as u64,
            reply_to: BlockRef::tc(NODE, 0),
            as_of,
            operation_count: 1,
            hops: 0,
        };
        self.send(&req, &payload);
    }

    fn scan(&mut self, index: IndexId) {
        self.scan_with(index, 0);
    }

    fn scan_with(&mut self, index: IndexId, flags: u32) {
        let mut ranges = Vec::new();
        list::push(&mut ranges, &Range::default(), [&[], &[], &[]]);
        let req = ScanReq {
            transaction: TransactionId::default(),
            scan: 1,
            reply_to: BlockRef::tc(NODE, 0),
            limit: u64::MAX,
            as_of: Epoch::default(),
            table: self.table,
            schema_version: self.schema_version(),
            fragment: FragmentId::new(0),
            index,
            range_count: 1,
            program_bytes: 0,
            flags,
        };
        self.send(&req, &ranges);
    }

    fn create_index(&mut self) {
        let (database, table) = ("test".to_string(), "t".to_string());
        let name = "by_n".to_string();
        let change = Change::CreateIndex { database, table, name, columns: vec![1], builder: None };
        self.catalog.apply(&change, 1).unwrap();
        self.send_catalog();
    }
}

/// The turns in which signals of a kind were sent.
fn turns(sent: &[(usize, SignalNumber, Vec<u8>)], number: SignalNumber) -> Vec<usize> {
    sent.iter().filter(|(_, n, _)| *n == number).map(|(turn, ..)| *turn).collect()
}

/// The value in the answer to a read.
fn value_read(bench: &Bench, bytes: &[u8]) -> Option<i64> {
    let signal = lats_signals::buffer::parse(bytes).unwrap().unwrap();
    assert_eq!(signal.body::<ReadConf>().result_count, 1);
    let (_, [row, ..]) = list::items::<list::Outcome>(signal.payload()).next().unwrap();
    if row.is_empty() {
        return None;
    }
    match bench.layout.value(row, 1) {
        Value::Int(n) => Some(n),
        other => panic!("{other:?}"),
    }
}

fn rows_found(sent: &[(usize, SignalNumber, Vec<u8>)]) -> u32 {
    let confs = sent.iter().filter(|(_, n, _)| *n == SignalNumber::ScanConf);
    confs
        .map(|(_, _, bytes)| {
            let signal: Signal<'_> = lats_signals::buffer::parse(bytes).unwrap().unwrap();
            signal.body::<ScanConf>().row_count
        })
        .sum()
}

#[test]
fn a_commit_is_confirmed_when_all_its_rows_are_visible_and_others_are_served_meanwhile() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    bench.turn();
    bench.ask(0);
    bench.ask(ROWS - 1);
    let sent = bench.run();
    let reads: Vec<Option<i64>> = sent
        .iter()
        .filter(|(_, n, _)| *n == SignalNumber::ReadConf)
        .map(|(_, _, bytes)| value_read(&bench, bytes))
        .collect();
    assert_eq!(reads, [Some(7), None], "the first slice is visible, the last one is not");
    let confirmed = turns(&sent, SignalNumber::CommitConf);
    // As many steps for the versions as for the locks.
    let slices = 2 * ROWS as usize / SLICE;
    assert_eq!(confirmed.len(), 1);
    assert!(confirmed[0] + 2 >= slices, "confirmed in turn {} of {slices}", confirmed[0]);
}

#[test]
fn the_planted_bug_confirms_too_early() {
    let mut bench = Bench::new(Some(Fault::BugConfirmFirstSlice));
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    let sent = bench.run();
    assert_eq!(turns(&sent, SignalNumber::CommitConf)[0], 0);
}

#[test]
fn an_order_that_comes_in_the_middle_begins_again_and_ends_once() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    for turns_between in 1..3 * ROWS as usize / SLICE {
        bench.commit(transaction);
        (0..turns_between % 7).for_each(|_| assert!(bench.turn().is_empty()));
    }
    let sent = bench.run();
    assert_eq!(turns(&sent, SignalNumber::CommitConf).len(), 1);
    bench.scan(PRIMARY_INDEX);
    assert_eq!(rows_found(&bench.run()), ROWS as u32);
}

#[test]
fn a_rollback_in_slices_leaves_nothing() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    let view = ViewNumber::new(1);
    let part = lats_signals::commit::ABORT_AS_PRIMARY;
    bench.send(&AbortReq { transaction, view, from_statement: 0, part }, &[]);
    let sent = bench.run();
    assert_eq!(turns(&sent, SignalNumber::AbortConf).len(), 1);
    bench.scan(PRIMARY_INDEX);
    assert_eq!(rows_found(&bench.run()), 0);
    assert_eq!(bench.executor.leaks(), None);
}

#[test]
fn an_index_is_scanned_and_confirmed_when_it_is_built() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    bench.run();
    bench.create_index();
    bench.turn();
    bench.scan(IndexId::new(1));
    let sent = bench.run();
    let installed: Vec<u64> = sent
        .iter()
        .filter(|(_, n, _)| *n == SignalNumber::InstallConf)
        .map(|(_, _, bytes)| {
            let signal = lats_signals::buffer::parse(bytes).unwrap().unwrap();
            signal.body::<InstallConf>().catalog_version
        })
        .collect();
    assert_eq!(installed, [bench.catalog.version]);
    assert!(turns(&sent, SignalNumber::InstallConf)[0] + 1 >= ROWS as usize / SLICE);
    assert_eq!(rows_found(&sent), ROWS as u32);
}

#[test]
fn the_planted_bug_scans_what_is_not_there_yet() {
    let mut bench = Bench::new(Some(Fault::BugScanUnbuiltIndex));
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    bench.run();
    bench.create_index();
    bench.turn();
    bench.scan(IndexId::new(1));
    assert!(rows_found(&bench.run()) < ROWS as u32);
}

#[test]
fn what_a_dropped_table_held_is_freed_in_slices() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    bench.run();
    let (database, name) = ("test".to_string(), "t".to_string());
    bench.catalog.apply(&Change::DropTable { database, name, if_exists: false }, 1).unwrap();
    bench.send_catalog();
    let confirmed = bench.turn().iter().any(|(n, _)| *n == SignalNumber::InstallConf);
    assert!(confirmed, "the drop is confirmed at once");
    let mut slices = 0;
    while !bench.ldm().catalog_work.rubble.is_empty() {
        bench.turn();
        slices += 1;
    }
    assert!(slices >= ROWS as usize / SLICE, "{ROWS} rows went in {slices} turns");
    assert_eq!(bench.ldm().memory_bytes(), 0);
}

#[test]
fn an_index_that_gets_the_id_of_a_dropped_one_has_all_rows() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    bench.run();
    bench.create_index();
    (0..4).for_each(|_| drop(bench.turn()));
    // Both changes come in one catalog.
    let (database, table) = ("test".to_string(), "t".to_string());
    let drop_index = Change::DropIndex { database, table, name: "by_n".to_string() };
    bench.catalog.apply(&drop_index, 1).unwrap();
    let (database, table) = ("test".to_string(), "t".to_string());
    let name = "by_both".to_string();
    let create = Change::CreateIndex { database, table, name, columns: vec![1, 0], builder: None };
    bench.catalog.apply(&create, 1).unwrap();
    bench.send_catalog();
    bench.run();
    bench.scan(IndexId::new(1));
    assert_eq!(rows_found(&bench.run()), ROWS as u32);
}

#[test]
fn waits_for_locks_leave_few_timers() {
    let mut bench = Bench::new(None);
    let holder = bench.prepare(1);
    let mut waiting = Vec::new();
    for _ in 0..300 {
        let key = key(0);
        let mut head = bench.operation(OperationKind::Delete, &key, &[]);
        head.flags = 3_600_000 << list::LOCK_WAIT_SHIFT;
        let mut operations = Vec::new();
        list::push(&mut operations, &head, [&key, &[], &[]]);
        let transaction = bench.next_transaction();
        waiting.push(transaction);
        bench.send(&batch(transaction, 1, 1), &operations);
    }
    bench.run();
    let ldm = bench.executor.block(BlockKind::Ldm, 0).unwrap();
    let ldm = ldm.as_any().downcast_ref::<Ldm>().unwrap();
    assert_eq!((ldm.waits.len(), ldm.lock_timers.len()), (300, 1));
    let view = ViewNumber::new(1);
    waiting.push(holder);
    for transaction in waiting {
        for part in [CANCEL_WAIT, 0] {
            let body = AbortReq { transaction, view, from_statement: part, part: ABORT_AS_PRIMARY };
            bench.send(&body, &[]);
        }
    }
    bench.run();
    assert_eq!(bench.executor.leaks(), None);
}

#[test]
fn many_versions_of_a_row_count_as_work() {
    let mut bench = Bench::new(None);
    let transaction = bench.next_transaction();
    for statement in 1..=100 {
        let (key, mut row) = (key(1), Vec::new());
        let value = Value::Int(i64::from(statement));
        bench.layout.encode(&[Value::Int(1), value], &mut row).unwrap();
        let head = bench.operation(OperationKind::Write, &key, &row);
        let mut operations = Vec::new();
        list::push(&mut operations, &head, [&key, &row, &[]]);
        bench.send(&batch(transaction, statement, 1), &operations);
    }
    bench.run();
    bench.commit(transaction);
    bench.run();
    bench.ask(1);
    let sent = bench.run();
    assert_eq!(value_read(&bench, &sent[0].2), Some(100));
    assert_eq!(turns(&sent, SignalNumber::ReadConf).len(), 1);
}

/// Whoever asks for older rows must not get newer ones.
#[test]
fn reads_by_key_as_of_an_epoch_are_refused() {
    let mut bench = Bench::new(None);
    bench.ask_as_of(1, Epoch::new(1));
    let sent = bench.run();
    let signal = lats_signals::buffer::parse(&sent[0].2).unwrap().unwrap();
    assert_eq!(signal.body::<ReadRef>().code, u32::from(RefCode::SnapshotTooOld.number()));
}

/// Else a client would believe that the table is gone (storms 18 and 21).
#[test]
fn who_has_just_begun_does_not_say_that_there_is_no_table() {
    let mut bench = Bench::just_begun(None);
    bench.scan(PRIMARY_INDEX);
    bench.ask(1);
    let codes: Vec<u32> = bench
        .run()
        .iter()
        .map(|(_, number, bytes)| {
            let signal = lats_signals::buffer::parse(bytes).unwrap().unwrap();
            match number {
                SignalNumber::ScanRef => signal.body::<ScanRef>().code,
                SignalNumber::ReadRef => signal.body::<ReadRef>().code,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert_eq!(codes, [u32::from(RefCode::NotServing.number()); 2]);
}

/// A transaction that is older than a replica, and has changed one row very often, is adopted in parts: no
/// signal is longer than a batch of copies, and every change is sent once (REJOIN-5).
#[test]
fn many_changes_of_a_row_are_adopted_in_parts() {
    const CHANGES: usize = 4_000;
    let mut bench = Bench::new(None);
    let transaction = bench.next_transaction();
    let (key, mut operations) = (key(0), Vec::new());
    for value in 0..CHANGES {
        let mut row = Vec::new();
        bench.layout.encode(&[Value::Int(0), Value::Int(value as i64)], &mut row).unwrap();
        let head = bench.operation(OperationKind::Write, &key, &row);
        list::push(&mut operations, &head, [&key, &row, &[]]);
    }
    bench.send_batch(transaction, &operations, CHANGES);
    let target = NodeId::new(2);
    let mut view = view();
    view.number = ViewNumber::new(2);
    view.members.push(Member { node: target, ..view.members[0].clone() });
    view.groups[0].nodes.push(target);
    view.groups[0].replicas.push(Replica { node: target, in_sync: false });
    bench.send(&ViewOrd { view: view.number }, &lats_catalog::encode(&view));
    let since = CopySinceReq { view: view.number, since: Epoch::default() };
    bench.send_from(BlockRef::ldm(target, 0), &since, &[]);
    bench.run();
    let mut versions = Vec::new();
    for batch in 2.. {
        let target = u64::from(target.get());
        let ord = AdoptOrd { transaction, view: view.number, target, batch, reserved: 0 };
        bench.send(&ord, &[]);
        let sent = bench.run();
        assert!(sent.iter().any(|(_, number, _)| *number == SignalNumber::PrepareConf));
        let adopted = sent.iter().find(|(_, n, _)| *n == SignalNumber::AdoptChangesReq);
        let Some((_, _, bytes)) = adopted else { break };
        assert!(bytes.len() < 200 << 10, "{} bytes in one signal", bytes.len());
        let signal = lats_signals::buffer::parse(bytes).unwrap().unwrap();
        let changes = list::items::<list::OpenChange>(signal.payload());
        versions.extend(changes.map(|(change, _)| change.version));
    }
    assert_eq!(versions.len(), CHANGES);
    assert!(versions.is_sorted());
    versions.dedup();
    assert_eq!(versions.len(), CHANGES);
}

/// A backup holds a carried image. A later change of the row names the version that its primary had before it:
/// so the backup learns whether the first one counts (CARRY-7). What it reports when both their nodes are gone.
fn reported_after_a_change_over(over: u64) -> Vec<(TransactionId, u32)> {
    const PRIMARY: NodeId = NodeId::new(2);
    const NUMBER: u64 = (1 << crate::view::NUMBERS_PER_VIEW_BITS) + 5;
    let mut bench = Bench::new(None);
    let mut view = view();
    view.number = ViewNumber::new(2);
    view.members.push(Member { node: PRIMARY, ..view.members[0].clone() });
    view.groups[0].nodes.push(PRIMARY);
    view.groups[0].replicas.push(Replica { node: PRIMARY, in_sync: true });
    view.groups[0].primaries = vec![PRIMARY];
    bench.send(&ViewOrd { view: view.number }, &lats_catalog::encode(&view));
    let (carried, later) = (bench.next_transaction(), bench.next_transaction());
    for (transaction, number, over, carried) in
        [(carried, NUMBER, 0, 1), (later, NUMBER + 7, over, 0)]
    {
        let (key, mut row, mut changes) = (key(1), Vec::new(), Vec::new());
        bench.layout.encode(&[Value::Int(1), Value::Int(1)], &mut row).unwrap();
        let change = list::Change {
            table: bench.table,
            fragment: FragmentId::new(0),
            deleted: 0,
            row_id: RowId::new(1),
            version: number,
            over,
            epoch: 0,
            key_bytes: key.len() as u32,
            row_bytes: row.len() as u32,
        };
        list::push(&mut changes, &change, [&key, &row, &[]]);
        let req = ReplicateReq {
            transaction,
            coordinator: BlockRef::tc(PRIMARY, 0),
            view: view.number,
            carry: Carry {
                epoch: Epoch::new(carried),
                sent_in: view.number,
                receivers: [NODE, NodeId::new(3)].into_iter().collect(),
                parts: 1,
                reserved: 0,
            },
            batch: 1,
            statement: 1,
            change_count: 1,
            coordinator_incarnation: 1,
        };
        bench.send_from(BlockRef::ldm(PRIMARY, 0), &req, &changes);
    }
    bench.run();
    view.number = ViewNumber::new(3);
    view.members[1].alive = false;
    view.groups[0].replicas.pop();
    view.groups[0].primaries = vec![NODE];
    bench.send(&ViewOrd { view: view.number }, &lats_catalog::encode(&view));
    let sent = bench.run();
    let reports = sent.iter().filter(|(_, number, _)| *number == SignalNumber::TakeOverRep);
    let reports = reports.map(|(_, _, bytes)| {
        let rep = lats_signals::buffer::parse(bytes).unwrap().unwrap().body::<TakeOverRep>();
        (rep.transaction, rep.state)
    });
    reports.filter(|(id, _)| *id == carried).collect()
}

#[test]
fn a_carried_change_that_a_later_one_replaced_is_decided() {
    let reports = reported_after_a_change_over((1 << crate::view::NUMBERS_PER_VIEW_BITS) + 5);
    assert!(reports.iter().all(|(_, state)| *state == TAKE_OVER_DECIDED) && !reports.is_empty());
}

#[test]
fn a_carried_change_that_a_later_one_knew_nothing_of_is_lost() {
    let reports = reported_after_a_change_over(3);
    assert!(reports.iter().all(|(_, state)| *state == TAKE_OVER_PREPARED) && !reports.is_empty());
}

/// OUTCOME-7.
#[test]
fn a_forgotten_outcome_is_not_called_rolled_back() {
    let mut bench = Bench::new(None);
    let committed: Vec<TransactionId> = (0..=OUTCOMES_MAX)
        .map(|_| {
            let transaction = bench.prepare(1);
            bench.commit(transaction);
            bench.run();
            let entry = CompleteEntry { transaction, epoch: Epoch::new(1), answered_below: 0 };
            bench.send(
                &CompleteOrd { generation: 1, ..CompleteOrd::new_zeroed() },
                entry.as_bytes(),
            );
            bench.run();
            transaction
        })
        .collect();
    let (oldest, newest) = (committed[0], committed[OUTCOMES_MAX]);
    assert_eq!(bench.outcome(oldest), OUTCOME_COMMITTED);
    bench.wait(Duration::from_millis(1_000));
    // It has just forgotten some: nothing that is known of no more was rolled back for certain, unless it is younger.
    assert_eq!(bench.outcome(oldest), OUTCOME_FORGOTTEN);
    assert_eq!(bench.outcome(newest), OUTCOME_COMMITTED);
    bench.wait(Duration::from_millis(1_000));
    let young = bench.next_transaction();
    assert_eq!(bench.outcome_of(young, 700), OUTCOME_ABORTED);
    assert_eq!(bench.outcome_of(oldest, 900), OUTCOME_FORGOTTEN);
    bench.wait(OUTCOME_KEPT);
    bench.wait(Duration::from_millis(1_000));
    assert_eq!(bench.outcome_of(newest, 60_000), OUTCOME_FORGOTTEN);
    // Refusals are kept for longer.
    assert_eq!(bench.outcome_of(young, 48_000), OUTCOME_ABORTED);
    bench.wait(REFUSED_KEPT);
    bench.wait(Duration::from_millis(1_000));
    let unknown = (0..=OUTCOMES_MAX).map(|_| bench.next_transaction());
    let unknown: Vec<TransactionId> = unknown.collect();
    let answers: Vec<u32> = unknown.iter().map(|id| bench.outcome(*id)).collect();
    // What it has refused stays refused, so there is an end to that, too (OUTCOME-2).
    let (last, refused) = answers.split_last().unwrap();
    assert!(refused.iter().all(|answer| *answer == OUTCOME_ABORTED), "{answers:?}");
    assert_eq!(*last, OUTCOME_FORGOTTEN);
}

/// A client that begins again with an id that it has used is refused; what it had committed stays.
#[test]
fn an_id_that_is_given_twice_is_refused() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    // Another batch arrives while the first transaction is being ended in slices.
    bench.turn();
    bench.send(&batch(transaction, 1, 0), &[]);
    let sent = bench.run();
    assert_eq!(turns(&sent, SignalNumber::PrepareRef).len(), 1);
    let (view, part) = (ViewNumber::new(1), ABORT_AS_PRIMARY);
    bench.send(&AbortReq { transaction, view, from_statement: 0, part }, &[]);
    let sent = bench.run();
    assert_eq!(turns(&sent, SignalNumber::AbortConf).len(), 1);
    bench.scan(PRIMARY_INDEX);
    assert_eq!(rows_found(&bench.run()), ROWS as u32);
}

#[test]
fn batches_are_small_at_first_where_few_rows_may_be_enough() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    bench.run();
    for (flags, wanted) in [(0, [40].as_slice()), (SCAN_FEW, &[16, 24])] {
        bench.scan_with(PRIMARY_INDEX, flags);
        let mut batches = Vec::new();
        while batches.iter().sum::<u32>() < ROWS as u32 {
            batches.push(rows_found(&bench.run()));
            bench.send(&ScanNextReq { scan: 1, reply_to: BlockRef::tc(NODE, 0) }, &[]);
        }
        bench.run();
        assert_eq!(batches, wanted);
    }
}

#[test]
fn one_row_of_each_range_is_enough_where_the_first_is_asked_for() {
    let mut bench = Bench::new(None);
    let transaction = bench.prepare(7);
    bench.commit(transaction);
    bench.run();
    // All rows are in one range.
    bench.scan_with(PRIMARY_INDEX, SCAN_FIRST);
    assert_eq!(rows_found(&bench.run()), 1);
}

#[test]
fn who_will_lock_finds_what_others_are_changing_and_hears_that_it_has_waited() {
    let mut bench = Bench::new(None);
    let writer = bench.prepare(1);
    for (flags, wanted) in [(0, 0), (SCAN_TO_LOCK, ROWS as u32)] {
        bench.scan_with(PRIMARY_INDEX, flags);
        assert_eq!(rows_found(&bench.run()), wanted);
    }
    let read = |bench: &mut Bench, id: i64| {
        let key = key(id);
        let head = bench.operation(OperationKind::ReadExclusive, &key, &[]);
        let mut operations = Vec::new();
        list::push(&mut operations, &head, [&key, &[], &[]]);
        let transaction = bench.next_transaction();
        bench.send(&batch(transaction, 1, 1), &operations);
        bench.run()
    };
    assert_eq!(read(&mut bench, 0), [], "it waits");
    bench.commit(writer);
    for flags in [list::OUTCOME_HAS_ROW | list::OUTCOME_WAITED, list::OUTCOME_HAS_ROW] {
        let sent = if flags == list::OUTCOME_HAS_ROW { read(&mut bench, 1) } else { bench.run() };
        let conf = sent.iter().find(|(_, n, _)| *n == SignalNumber::PrepareConf).unwrap();
        let signal: Signal<'_> = lats_signals::buffer::parse(&conf.2).unwrap().unwrap();
        assert_eq!(signal.body::<PrepareConf>().result_count, 1);
        let (outcome, _) = list::items::<list::Outcome>(signal.payload()).next().unwrap();
        assert_eq!(outcome.flags, flags);
    }
}

/// What leaves when a round in which rows are read and written ends after the lease.
fn left_after_the_lease(bug: Option<Fault>) -> Vec<SignalNumber> {
    let mut bench = Bench::new(bug);
    let writer = bench.prepare(1);
    bench.commit(writer);
    bench.run();
    let (valid_until, epoch) = (1_000, Epoch::new(1));
    bench.send(&LeaseOrd { valid_until, epoch, ..LeaseOrd::default() }, &[]);
    bench.run();
    bench.ask(1);
    bench.scan(PRIMARY_INDEX);
    for kind in [OperationKind::ReadExclusive, OperationKind::Delete] {
        let key = key(kind as i64);
        let mut operations = Vec::new();
        list::push(&mut operations, &bench.operation(kind, &key, &[]), [&key, &[], &[]]);
        let transaction = bench.next_transaction();
        bench.send(&batch(transaction, 1, 1), &operations);
    }
    while bench.executor.has_work() {
        bench.executor.step(bench.now, Budget { signals: 1 });
    }
    bench.executor.end_round(Instant::from_nanos(1_001));
    let mut left = Vec::new();
    while let Some(signal) = bench.executor.outgoing().pop() {
        left.push(signal.number().unwrap());
    }
    left.sort_by_key(|number| *number as u16);
    left
}

#[test]
fn what_was_read_leaves_only_under_a_lease_that_still_holds() {
    use SignalNumber::{PrepareConf, PrepareRef, ReadConf, ReadRef, ScanConf, ScanRef};
    let sorted = |mut all: Vec<SignalNumber>| {
        all.sort_by_key(|number| *number as u16);
        all
    };
    let refused = sorted(vec![ReadRef, ScanRef, PrepareRef, PrepareConf]);
    assert_eq!(left_after_the_lease(None), refused, "a batch with changes needs no lease");
    let answered = sorted(vec![ReadConf, ScanConf, PrepareConf, PrepareConf]);
    assert_eq!(left_after_the_lease(Some(Fault::BugCheckBeforeRead)), answered);
}
