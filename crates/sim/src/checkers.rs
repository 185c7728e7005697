//! What must hold when a run has come to rest. One function per property.

use crate::{
    clients::Ledger,
    tables::Numbers,
    world::{SimNode, World},
};
use lats_base::{Epoch, FragmentId, NodeId, TableId};
use lats_catalog::{View, unique};
use lats_node::{LdmView, control::Control};
use lats_signals::BlockKind;
use std::collections::BTreeMap;

/// The control block of a node, if it lives.
pub fn control(node: &SimNode) -> Option<&Control> {
    let executor = node.executors.iter().find(|e| e.hosts(BlockKind::Control, 0))?;
    executor.block(BlockKind::Control, 0)?.as_any().downcast_ref::<Control>()
}

/// The newest view that a live node has.
pub fn newest_view(world: &World) -> Option<&View> {
    let views = world.nodes.values().filter_map(|n| Some(&control(n)?.state().view));
    views.max_by_key(|v| v.number)
}

/// The control block of the node that has the newest view; of these nodes only.
pub fn newest_control(world: &World, among: impl Fn(NodeId) -> bool) -> Option<&Control> {
    let known = world.nodes.iter().filter(|(id, _)| among(**id)).filter_map(|(_, n)| control(n));
    known.max_by_key(|c| c.state().view.number)
}

/// How often rows were taken from disks. Where survivors have gone on nothing was (REFORM-1): such an entry is the last of all epochs.
pub fn restarts(world: &World) -> usize {
    let from_disks = |epoch: &&Epoch| epoch.get() != u64::MAX;
    let restored = newest_control(world, |_| true).map(|control| &control.state().restored);
    restored.map_or(0, |restored| restored.iter().filter(from_disks).count())
}

/// The local data managers of a node, if it lives.
pub fn ldms(world: &World, node: NodeId) -> Vec<LdmView<'_>> {
    let Some(n) = world.nodes.get(&node) else { return Vec::new() };
    let instances = 0..n.config.ldm_instances;
    instances
        .filter_map(|i| {
            let executor = n.executors.iter().find(|e| e.hosts(BlockKind::Ldm, i))?;
            lats_node::ldm_in(executor, i)
        })
        .collect()
}

/// Rows of a fragment: by row id and key, image, number and epoch.
pub(crate) type Rows = BTreeMap<(u64, Vec<u8>), (Vec<u8>, u64, Epoch)>;
/// The rows of fragments.
pub(crate) type AllRows = BTreeMap<(TableId, FragmentId), Rows>;

/// The newest epoch that any node has called complete.
pub fn complete_epoch(world: &World) -> Epoch {
    let known = world.nodes.values().filter_map(|n| Some(control(n)?.epochs().1));
    known.max().unwrap_or_default()
}

/// In peace epochs become complete soon after they began (EPOCH-4).
pub fn epochs_move(world: &World) -> Result<(), String> {
    let view = newest_view(world);
    for (id, node) in &world.nodes {
        if !view.is_some_and(|view| view.is_alive(*id, node.life())) {
            continue;
        }
        let Some((current, complete)) = control(node).map(Control::epochs) else { continue };
        if current.get() - complete.get().min(current.get()) > 20 {
            return Err(format!("node {id}: epoch {current}, complete only up to {complete}"));
        }
    }
    Ok(())
}

/// The committed rows of a node: by row id and key, image, version and epoch.
pub(crate) fn rows(world: &World, node: NodeId) -> AllRows {
    let mut all = BTreeMap::new();
    for (table, id, fragment) in ldms(world, node).iter().flat_map(|ldm| ldm.fragments()) {
        let rows = fragment
            .committed_rows()
            .map(|(row, key, image, number, epoch)| {
                ((row.get(), key.to_vec()), (image.to_vec(), number, epoch))
            })
            .collect();
        all.insert((table, id), rows);
    }
    all
}

/// After the faults: every node is a member, and every replica is in sync.
pub fn whole(world: &World) -> Result<(), String> {
    let view = newest_view(world).ok_or("no node lives")?;
    for (id, node) in &world.nodes {
        if !node.is_alive() || !view.is_alive(*id, node.life()) {
            return Err(format!("node {id} is not a member of view {}", view.number));
        }
        if node.config.holds_data && !view.is_in_sync(*id) {
            return Err(format!("node {id} is not in sync in view {}", view.number));
        }
        if view.is_stopping(*id) {
            return Err(format!("node {id} is leaving in view {}", view.number));
        }
    }
    // HANDOVER-1: every node is primary of what was made for it again.
    let balanced = |g: &&lats_catalog::Group| view.balanced_primaries(g) == g.primaries;
    if view.hands_over() || !view.groups.iter().all(|g| balanced(&g)) {
        return Err(format!(
            "primaries are not balanced in view {}: {:?}",
            view.number, view.groups
        ));
    }
    Ok(())
}

/// All in-sync replicas of a fragment hold the same rows, in the same places.
pub fn replicas_equal(world: &World) -> Result<(), String> {
    let view = newest_view(world).ok_or("no node lives")?;
    for group in &view.groups {
        let mut first: Option<(NodeId, BTreeMap<_, _>)> = None;
        for replica in group.replicas.iter().filter(|r| r.in_sync) {
            let own = rows(world, replica.node);
            let Some((other, theirs)) = &first else {
                first = Some((replica.node, own));
                continue;
            };
            if !own.keys().eq(theirs.keys()) {
                return Err(format!("nodes {other} and {} hold other fragments", replica.node));
            }
            for (place, rows) in &own {
                let expected = theirs.get(place);
                if expected != Some(rows) {
                    return Err(difference(*other, replica.node, *place, expected, rows));
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn difference(
    a: NodeId,
    b: NodeId,
    (table, fragment): (TableId, FragmentId),
    of_a: Option<&Rows>,
    of_b: &Rows,
) -> String {
    let empty = Rows::new();
    let of_a = of_a.unwrap_or(&empty);
    let only_a = of_a.iter().find(|(k, v)| of_b.get(*k) != Some(*v));
    let only_b = of_b.iter().find(|(k, v)| of_a.get(*k) != Some(*v));
    format!(
        "table {table} fragment {fragment}: node {a} has {} rows, node {b} has {}; first \
         difference {only_a:?} / {only_b:?}",
        of_a.len(),
        of_b.len()
    )
}

/// Every ordered index has one entry per row.
pub fn indexes_match(world: &World) -> Result<(), String> {
    for node in world.nodes.keys() {
        for (table, id, fragment) in ldms(world, *node).iter().flat_map(|ldm| ldm.fragments()) {
            let rows = fragment.committed_rows().count();
            if let Some(entries) = fragment.index_entry_counts().find(|e| *e != rows) {
                return Err(format!(
                    "node {node}: table {table} fragment {id}: {entries} index entries for {rows} rows"
                ));
            }
        }
    }
    Ok(())
}

/// Unique indexes have one entry for each row, and no two rows have the same key. (That all replicas
/// hold the same entries is seen by [`replicas_equal`].)
pub fn unique_indexes_match(world: &World) -> Result<(), String> {
    let view = newest_view(world).ok_or("no node lives")?;
    let catalogs = world.nodes.values().filter_map(|n| Some(&control(n)?.state().catalog));
    let catalog = catalogs.max_by_key(|c| c.version).ok_or("no node lives")?;
    let mut images: BTreeMap<TableId, Vec<KeyAndImage>> = BTreeMap::new();
    for node in world.nodes.keys() {
        for ((table, fragment), rows) in rows(world, *node) {
            if view.primary(fragment) == Some(*node) {
                let both = rows.into_iter().map(|((_, key), (image, ..))| (key, image));
                images.entry(table).or_default().extend(both);
            }
        }
    }
    let rows_of = |table: TableId| images.get(&table).into_iter().flatten();
    for table in catalog.tables.values() {
        let layout = table.layout();
        for (index, entries) in table.unique_indexes() {
            if entries.builder.is_some() {
                return Err(format!("an index of {} is still being built", table.name));
            }
            let mut expected = BTreeMap::new();
            for (key, image) in rows_of(table.id) {
                if index.columns.iter().any(|c| layout.is_null(image, *c)) {
                    continue;
                }
                let mut index_key = Vec::new();
                layout.key_of(image, &index.columns, &mut index_key);
                let entry = (unique::key(&index_key), key.clone());
                if let Some(other) = expected.insert(entry.0, entry.1) {
                    return Err(format!("rows {key:?} and {other:?} have the same unique key"));
                }
            }
            let found =
                rows_of(entries.table).map(|(k, image)| (k.clone(), unique::primary_key_of(image)));
            let found: BTreeMap<_, _> = found.collect();
            if expected != found {
                return Err(unmatched(&table.name, &expected, &found));
            }
        }
    }
    Ok(())
}

type KeyAndImage = (Vec<u8>, Vec<u8>);
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn unmatched(table: &str, expected: &Entries, found: &Entries) -> String {
    let lacks = expected.iter().find(|(key, row)| found.get(*key) != Some(*row));
    let excess = found.iter().find(|(key, row)| expected.get(*key) != Some(*row));
    format!(
        "unique index of {table}: {} rows, {} entries; first row without its entry {lacks:?}, first \
         entry without its row {excess:?}",
        expected.len(),
        found.len()
    )
}

/// What is left of locks, transactions, waits or queued work, for a person.
pub fn left_over(world: &World) -> String {
    let nodes = world.nodes.iter();
    let left =
        nodes.flat_map(|(id, n)| n.executors.iter().filter_map(move |e| Some((id, e.leaks()?))));
    left.map(|(id, leak)| format!("\n    node {id}: {leak}")).collect()
}

/// No locks, transactions, waits or queued work are left. What came for a process that is no member waits until it is one.
pub fn nothing_left(world: &World) -> Result<(), String> {
    let view = newest_view(world);
    let is_member = |(id, node): &(&NodeId, &SimNode)| {
        view.is_some_and(|view| view.is_alive(**id, node.life()))
    };
    for (id, node) in world.nodes.iter().filter(is_member) {
        if let Some(leak) = node.executors.iter().find_map(|e| e.leaks()) {
            return Err(format!("node {id}: {leak}"));
        }
    }
    Ok(())
}

/// What clients were told is what is there: nothing acknowledged is lost, nothing that was rolled
/// back is there, nothing is half applied.
pub fn ledger_holds(world: &World, ledger: &Ledger) -> Result<(), String> {
    let Found { balances, history, registers } = found(world, ledger)?;
    epochs_follow(ledger)?;
    promises_kept(ledger.told.iter(), &history, ledger)?;
    balances_add_up(ledger, &balances, &history)?;
    registers_hold(ledger, &registers, 0..ledger.register_count)
}

/// The rows of the tables that the ledger is about: balances by account, transfers, values by register.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) balances: BTreeMap<i64, i64>,
    pub(crate) history: BTreeMap<i64, Vec<i64>>,
    registers: BTreeMap<i64, i64>,
}

fn found(world: &World, ledger: &Ledger) -> Result<Found, String> {
    let view = newest_view(world).ok_or("no node lives")?;
    let mut all = BTreeMap::new();
    for node in world.nodes.keys() {
        let own = rows(world, *node).into_iter();
        all.extend(own.filter(|((_, fragment), _)| view.primary(*fragment) == Some(*node)));
    }
    Found::among(all.iter().map(|(place, rows)| (*place, rows)), ledger)
}

impl Found {
    pub(crate) fn among<'r>(
        all: impl Iterator<Item = ((TableId, FragmentId), &'r Rows)>,
        ledger: &Ledger,
    ) -> Result<Self, String> {
        let mut found = Self::default();
        for ((table, _), rows) in all {
            for (image, _, epoch) in rows.values() {
                if table == ledger.accounts.id {
                    let row = ledger.accounts.numbers(image);
                    found.balances.insert(row[0], row[1]);
                } else if table == ledger.history.id {
                    let row = ledger.history.numbers(image);
                    row_has_epoch(ledger.transfer_epochs.get(&row[0]), *epoch, &row)?;
                    found.history.insert(row[0], row);
                } else if table == ledger.registers.id {
                    let row = ledger.registers.numbers(image);
                    row_has_epoch(ledger.value_epochs.get(&(row[0], row[1])), *epoch, &row)?;
                    found.registers.insert(row[0], row[1]);
                }
            }
        }
        Ok(found)
    }
}

/// No order of transactions explains what clients saw of lists: see `lats_history`.
pub fn lists_hold(world: &World, ledger: &mut Ledger) -> Result<(), String> {
    let view = newest_view(world).ok_or("no node lives")?;
    let mut images: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for node in world.nodes.keys() {
        for ((table, fragment), rows) in rows(world, *node) {
            if table == ledger.lists.table.id && view.primary(fragment) == Some(*node) {
                let of = |image: &[u8]| ledger.lists.table.numbers(image)[0];
                images.extend(rows.into_values().map(|(image, ..)| (of(&image), image)));
            }
        }
    }
    ledger.lists.close(world.now, &images);
    let report = lats_history::check(&ledger.lists.history);
    report.anomalies.first().map_or(Ok(()), |anomaly| Err(format!("history: {anomaly}")))
}

/// When a node group is lost: of the rows of the others, what clients were told is what is there.
pub fn survivors_hold(world: &World, ledger: &Ledger) -> Result<(), String> {
    let view = newest_view(world).ok_or("no node lives")?;
    let count = view.fragments_per_table();
    let survives = |table: &Numbers, id: i64| view.primary(table.fragment(id, count)).is_some();
    let Found { balances, history, registers } = found(world, ledger)?;
    epochs_follow(ledger)?;
    let accounts = (0..ledger.account_count).filter(|id| survives(&ledger.accounts, *id));
    balances_follow_from_what_was_told(ledger, &balances, accounts)?;
    let told = ledger.told.iter().filter(|(row, _)| survives(&ledger.history, **row));
    promises_kept(told, &history, ledger)?;
    let kept = (0..ledger.register_count).filter(|id| survives(&ledger.registers, *id));
    registers_hold(ledger, &registers, kept)
}

/// Whatever became of the rest of a transfer: what a client was told of it holds for each account. Of accounts
/// with a transfer whose client was told nothing, nothing can be said.
fn balances_follow_from_what_was_told(
    ledger: &Ledger,
    balances: &BTreeMap<i64, i64>,
    accounts: impl Iterator<Item = i64>,
) -> Result<(), String> {
    for account in accounts {
        let touching = ledger.transfers.iter().filter(|(_, t)| t.0 == account || t.1 == account);
        let mut expected = Some(0);
        for (row, (from, _, amount)) in touching {
            let change = if *from == account { -amount } else { *amount };
            expected = match ledger.told.get(row) {
                Some(true) => expected.map(|sum: i64| sum + change),
                Some(false) => expected,
                None => None,
            };
        }
        if expected.is_some() && balances.get(&account) != expected.as_ref() {
            let found = balances.get(&account);
            return Err(format!(
                "account {account} holds {found:?}; by what clients were told {expected:?}"
            ));
        }
    }
    Ok(())
}

/// A row carries the epoch that its last writer was told.
fn row_has_epoch(told: Option<&Epoch>, epoch: Epoch, row: &[i64]) -> Result<(), String> {
    match told {
        Some(told) if *told != epoch => {
            Err(format!("row {row:?} has epoch {epoch}; its writer was told {told}"))
        }
        _ => Ok(()),
    }
}

/// If B read what A wrote, epoch(B) ≥ epoch(A) (EPOCH-2).
fn epochs_follow(ledger: &Ledger) -> Result<(), String> {
    for (register, value, epoch) in &ledger.causes {
        if let Some(cause) = ledger.value_epochs.get(&(*register, *value))
            && cause > epoch
        {
            return Err(format!(
                "a transaction of epoch {epoch} comes after a read of register {register}'s value \
                 {value}, of epoch {cause}"
            ));
        }
    }
    Ok(())
}

fn promises_kept<'l>(
    told: impl Iterator<Item = (&'l i64, &'l bool)>,
    history: &BTreeMap<i64, Vec<i64>>,
    ledger: &Ledger,
) -> Result<(), String> {
    for (row, committed) in told {
        match (committed, history.contains_key(row)) {
            (true, false) => return Err(format!("transfer {row} was acknowledged and is lost")),
            (false, true) => return Err(format!("transfer {row} was refused and is there")),
            _ => {}
        }
    }
    let untold =
        history.keys().find(|row| !ledger.told.contains_key(row) && !ledger.unknown.contains(row));
    untold.map_or(Ok(()), |row| Err(format!("transfer {row} is there, but nobody made it")))
}

pub(crate) fn balances_add_up(
    ledger: &Ledger,
    balances: &BTreeMap<i64, i64>,
    history: &BTreeMap<i64, Vec<i64>>,
) -> Result<(), String> {
    let mut expected: BTreeMap<i64, i64> =
        (0..ledger.account_count).map(|account| (account, 0)).collect();
    for row in history.values() {
        *expected.entry(row[1]).or_default() -= row[3];
        *expected.entry(row[2]).or_default() += row[3];
    }
    if &expected == balances {
        return Ok(());
    }
    let wrong = expected.iter().find(|(account, sum)| balances.get(account) != Some(sum));
    Err(format!(
        "balances do not follow from the history: expected {wrong:?}, found {:?}",
        wrong.and_then(|(account, _)| balances.get(account))
    ))
}

fn registers_hold(
    ledger: &Ledger,
    registers: &BTreeMap<i64, i64>,
    kept: impl Iterator<Item = i64>,
) -> Result<(), String> {
    for register in kept {
        let at = register as usize;
        let value = registers.get(&register).copied().unwrap_or(0);
        if value < ledger.acknowledged[at] {
            let newest = ledger.acknowledged[at];
            return Err(format!("register {register} holds {value}; {newest} was acknowledged"));
        }
        if ledger.refused[at].contains(&value) {
            return Err(format!("register {register} holds {value}, which was refused"));
        }
    }
    Ok(())
}
