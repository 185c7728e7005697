//! The last act of a run: all nodes die at once, more than once, with or without what they had not made safe on their disks,
//! and start again one after the other, while some die again (RESTART-1 to RESTART-5; `docs/protocols/restart.md`). What is
//! there then must be the state of one epoch, not older than any that was called durable.

use super::Run;
use crate::{
    checkers,
    clients::{Ledger, SimClient},
    disk::Disk,
    durability::Dark,
    network::End,
    world::{Event, SimNode, World},
};
use lats_base::{ClientId, Duration, Epoch, NodeId, prng::Prng};
use lats_catalog::{Change, Group};
use lats_client::{
    api::Committed,
    core::{Answer, ClientCore},
};
use lats_signals::{
    control::DeclareDeadReq,
    io::{FILE_CONTROL, FILE_REDO},
};
use std::collections::BTreeSet;

/// How long a cluster may take to be up again when all its nodes are started for good.
const UP: Duration = Duration::from_millis(20_000);
/// When a person looks after what does not come up by itself.
const A_PERSON_LOOKS: Duration = Duration::from_millis(6_000);
/// So long is waited for a change of definitions, in ms.
const CHANGE_MS: u64 = 500;
/// So long is waited for a node to be filled, in ms.
const FILL_MS: u64 = 2_000;
/// Whoever lives through a blackout asks about one of so many that were committed last.
const LAST: usize = 20;
/// So many transfers are asked about after a restart.
const ASKED: u64 = 8;
/// That a node is dead is known after so long.
const NOTICED_MS: u64 = 1_000;
/// From the first start on nodes may die again for so long, in ms.
const UNSTEADY_MS: u64 = 3_000;

impl Run {
    pub(super) fn black_out(&mut self, random: &mut Prng) -> Result<(), String> {
        for round in 1..=random.between(1, 3) {
            // What the first restart has made void must not come back with the next one: not all begin anew.
            if round > 1 && random.chance(1, 2) {
                self.begin_anew(round)?;
            }
            self.clients.iter_mut().for_each(|c| c.stopped = false);
            self.run_for(Duration::from_millis(random.between(1, 1_500)))?;
            if random.chance(1, 3) {
                self.outrun_definitions(random)?;
            }
            self.lose_all(random)?;
            self.come_back(random)?;
        }
        Ok(())
    }

    /// Redo logs get ahead of what the disks know of definitions (RESTART-6).
    fn outrun_definitions(&mut self, random: &mut Prng) -> Result<(), String> {
        let version = |world: &World| {
            checkers::newest_control(world, |_| true).map(|c| c.state().catalog.version)
        };
        self.world.disk_ways.control_slowness = 1_000;
        let before = version(&self.world);
        for _ in 0..CHANGE_MS {
            self.run_for(Duration::from_millis(1))?;
            if version(&self.world) != before {
                return self.run_for(Duration::from_millis(random.between(5, 150)));
            }
        }
        Ok(())
    }

    /// All nodes die. Now and then one has died before, so that the others have gone on without it.
    fn lose_all(&mut self, random: &mut Prng) -> Result<(), String> {
        let mut nodes: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        if random.chance(1, 2) {
            let first = nodes.remove(random.below(nodes.len() as u64) as usize);
            self.say(&format!("node {first} dies"));
            self.world.kill(first);
            self.world.tally.note("death");
            self.run_for(Duration::from_millis(random.between(0, 900)))?;
            if random.chance(1, 2) {
                self.begin_to_fill(first, random)?;
            }
        }
        let dark = Dark::falls(&self.world, &self.ledger);
        // Now and then one lives on, and finds that nobody can lead it.
        let all: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let spared = random.chance(1, 4).then(|| all[random.below(all.len() as u64) as usize]);
        let rotten = if random.chance(1, 4) { self.who_may_rot(spared, random) } else { None };
        let without = if spared.or(rotten).is_none() { self.whose_disk_may_go() } else { None };
        for node in all.into_iter().filter(|n| Some(*n) != spared) {
            self.world.kill(node);
        }
        self.world.disk_ways.control_slowness = 0;
        self.world.tally.note("blackout");
        let power = random.chance(2, 3);
        self.say(&format!("all nodes die{}", if power { ", power is lost" } else { "" }));
        let dead = |node: &NodeId| power && Some(*node) != spared;
        let all: Vec<NodeId> = self.world.disks.keys().copied().filter(dead).collect();
        all.into_iter().for_each(|node| self.world.lose_power(node, random));
        let rots = rotten.is_some_and(|node| self.rot(node, random));
        if let Some(node) = without {
            self.say(&format!(
                "the disk of node {node} is gone; a person lets the others begin without it"
            ));
            self.world.tally.note("lost disk");
            self.world.disks.entry(node).or_default().replace();
        }
        self.world.partial = without.is_some();
        let dark = dark.with_disks(&self.world, spared);
        self.dark = Some(if rots { dark.with_rot() } else { dark });
        // Nobody is left to hear of what follows, but for one who asks now and then.
        self.dismiss_clients(spared);
        let mut random = Prng::new(self.world.digest);
        if random.chance(1, 2) {
            self.let_one_survive(spared, &mut random);
        }
        Ok(())
    }

    /// All nodes die and lose their power; of what they had not synced nothing is left.
    pub(crate) fn lose_all_at_once(&mut self) {
        let dark = Dark::falls(&self.world, &self.ledger);
        let nodes: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        // What is left of the rest when power is lost would be drawn.
        self.world.disks.values_mut().for_each(Disk::forget_unsynced);
        nodes.iter().for_each(|node| self.world.kill(*node));
        self.world.disk_ways.control_slowness = 0;
        self.world.tally.note("blackout");
        self.say("all nodes die, power is lost");
        let mut random = Prng::new(self.world.digest);
        for node in nodes {
            self.world.lose_power(node, &mut random);
        }
        self.dark = Some(dark.with_disks(&self.world, None));
        self.dismiss_clients(None);
    }

    /// DURABLE-7: it asks about a transfer from before, and goes on asking while nodes come back.
    fn let_one_survive(&mut self, spared: Option<NodeId>, random: &mut Prng) {
        let receipts = &self.ledger.receipts;
        if receipts.is_empty() {
            return;
        }
        // What was committed last is what may be lost.
        let from = receipts.len() - receipts.len().min(LAST);
        let at = random.between(from as u64, receipts.len() as u64 - 1) as usize;
        let mut newest: Vec<(i64, Committed)> = receipts.iter().map(|(r, c)| (*r, *c)).collect();
        newest.sort_by_key(|(row, receipt)| (receipt.restarts, receipt.epoch, *row));
        let (row, receipt) = newest[at];
        self.add_asker(random);
        self.clients[0].survive(row, receipt);
        if let Some(node) = spared {
            self.world.at(Duration::ZERO, Event::Connect(End::Client(1), End::Node(node)));
        }
        self.world.at(Duration::from_millis(1), Event::Client(1));
    }

    /// A client that does nothing but ask.
    fn add_asker(&mut self, random: &mut Prng) {
        let nodes = self.data_nodes();
        let home = Some(nodes[random.below(nodes.len() as u64) as usize]);
        let mut asker = SimClient::new(1, home, random.next_u64());
        asker.core = ClientCore::new(ClientId::new(random.next_u64() | 1 << 40), home);
        self.clients.push(asker);
        self.world.client_count = 1;
    }

    /// Clients end, and with them their links to these nodes.
    pub(super) fn dismiss_clients(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        for node in nodes {
            for client in &self.clients {
                self.world.disconnect(End::Client(client.number), End::Node(node));
            }
        }
        self.clients.clear();
        self.world.client_count = 0;
        self.world.readers.clear();
        self.world.for_clients.clear();
    }

    /// DURABLE-7: whoever has lived through it asks what became of its transfers.
    fn ask_what_is_left(&mut self, random: &mut Prng) -> Result<(), String> {
        let all: Vec<(i64, Committed)> =
            self.ledger.receipts.iter().map(|(r, c)| (*r, *c)).collect();
        if all.is_empty() {
            return Ok(());
        }
        if self.clients.is_empty() {
            self.add_asker(random);
            self.connect_clients();
            self.wait_for_clients()?;
            self.world.at(Duration::from_millis(1), Event::Client(1));
        }
        self.wait_for_asker()?;
        for _ in 0..ASKED {
            let (row, receipt) = all[random.below(all.len() as u64) as usize];
            self.clients[0].survive(row, receipt);
            self.flush(0);
            self.wait_for_asker()?;
        }
        let nodes = self.data_nodes().into_iter();
        let rows: Vec<_> = nodes.flat_map(|node| checkers::rows(&self.world, node)).collect();
        let history = rows.iter().filter(|((table, _), _)| *table == self.ledger.history.id);
        let images = history.flat_map(|(_, rows)| rows.values());
        let there: BTreeSet<i64> =
            images.map(|(image, ..)| self.ledger.history.numbers(image)[0]).collect();
        for (row, said) in std::mem::take(&mut self.ledger.heard) {
            if said != there.contains(&row) {
                let not = if said { "" } else { "not " };
                let receipt = self.ledger.receipts.get(&row);
                return Err(format!(
                    "a client asked about transfer {row} of {receipt:?} after a restart, and was told: it is {not}durable"
                ));
            }
        }
        Ok(())
    }

    fn wait_for_asker(&mut self) -> Result<(), String> {
        let end = self.world.now.plus(Duration::from_millis(20_000));
        while !self.clients[0].is_idle() {
            if self.world.now >= end {
                return Err(format!("nobody answers {}", self.clients[0].describe()));
            }
            self.run_for(Duration::from_millis(1))?;
        }
        Ok(())
    }

    /// A full replica beside which there is another one.
    fn who_may_rot(&self, spared: Option<NodeId>, random: &mut Prng) -> Option<NodeId> {
        let control = checkers::newest_control(&self.world, |_| true)?;
        let groups = control.state().view.groups.iter().map(|group| {
            let full = group.replicas.iter().filter(|r| r.in_sync);
            full.map(|r| r.node).collect::<Vec<NodeId>>()
        });
        let several = groups.filter(|full| full.len() > 1).flatten();
        let may: Vec<NodeId> = several.filter(|node| Some(*node) != spared).collect();
        (!may.is_empty()).then(|| may[random.below(may.len() as u64) as usize])
    }

    /// RESTART-1: now and then one of the nodes loses its disk when all die, and the others are started with `--partial`. All replicas
    /// were full ones then, so that the others have all that was durable.
    fn whose_disk_may_go(&self) -> Option<NodeId> {
        let mut random = Prng::new(self.world.digest.rotate_left(7));
        if !random.chance(1, 4) {
            return None;
        }
        let view = &checkers::newest_control(&self.world, |_| true)?.state().view;
        let is_up = |node: NodeId| {
            let life = self.world.nodes.get(&node).filter(|n| n.is_alive()).map(SimNode::life);
            life.is_some_and(|life| view.is_alive(node, life))
        };
        let whole = |group: &Group| {
            let full = group.replicas.iter().filter(|r| r.in_sync && is_up(r.node));
            full.count() == group.nodes.len()
        };
        let several = view.groups.iter().filter(|group| group.nodes.len() > 1);
        let may: Vec<NodeId> = several.flat_map(|group| group.nodes.iter().copied()).collect();
        let all_whole = view.groups.iter().all(whole) && !may.is_empty();
        all_whole.then(|| may[random.below(may.len() as u64) as usize])
    }

    /// A bit on its disk turns over, or a whole log is gone. True if it is one of a redo log.
    fn rot(&mut self, node: NodeId, random: &mut Prng) -> bool {
        let Some(disk) = self.world.disks.get_mut(&node) else { return false };
        if random.chance(1, 4) {
            let lost = disk.lose_log(random.below(2) as u16);
            if lost {
                self.say(&format!("a redo log of node {node} is gone"));
                self.world.tally.note("lost log");
            }
            return lost;
        }
        let (kind, instance) = if random.chance(1, 4) {
            (FILE_CONTROL, 0)
        } else {
            (FILE_REDO, random.below(2) as u16)
        };
        let rots = disk.rot(kind, instance, random);
        if rots {
            let what = if kind == FILE_CONTROL { "control" } else { "redo" };
            self.say(&format!("a bit of the {what} files of node {node} turns over"));
            self.world.tally.note("bit rot");
        }
        rots && kind == FILE_REDO
    }

    /// The node comes back, and is being filled while disks are slow: of what it is told then little survives.
    fn begin_to_fill(&mut self, node: NodeId, random: &mut Prng) -> Result<(), String> {
        let is_filled = |world: &World| {
            let life = world.nodes[&node].life();
            let control = checkers::newest_control(world, |_| true);
            control.is_some_and(|c| {
                let view = &c.state().view;
                view.is_alive(node, life) && !view.is_in_sync(node)
            })
        };
        for _ in 0..FILL_MS {
            self.run_for(Duration::from_millis(1))?;
            if is_filled(&self.world) {
                let slowness = core::mem::replace(&mut self.world.disk_ways.slowness, 1_000);
                let ended = self.run_for(Duration::from_millis(random.between(0, 40)));
                self.world.disk_ways.slowness = slowness;
                return ended;
            }
        }
        Ok(())
    }

    /// Whoever had the only copy may have died when the restart had begun: waits until that is known.
    fn wait_for_lost_group(&mut self) -> Result<bool, String> {
        if self.is_whole() {
            return Ok(false);
        }
        self.run_for(Duration::from_millis(NOTICED_MS))?;
        let view = checkers::newest_view(&self.world).ok_or("no node lives")?;
        Ok(view.groups.iter().any(Group::is_lost))
    }

    /// True if the newest view knows the lives that there are now. (One that has died may have been started again before that was noticed.)
    fn is_whole(&self) -> bool {
        let view = checkers::newest_view(&self.world);
        let known = |(id, node): (&NodeId, &SimNode)| {
            let member = view.as_ref().is_some_and(|view| view.is_alive(*id, node.life()));
            node.is_alive() && member
        };
        self.world.nodes.iter().all(known)
    }

    /// REFORM-5: a survivor waits for a life that nobody can ask, as its disk is damaged or belongs to another life. A person
    /// sees that its process has ended, or ends it, and says so.
    fn give_word(&mut self) {
        let mut words = Vec::new();
        for (id, node) in &self.world.nodes {
            let Some(control) = checkers::control(node).filter(|c| !c.knows_leader()) else {
                continue;
            };
            words.extend(control.misses().iter().map(|missed| (*id, *missed)));
        }
        for (to, (node, life)) in words {
            let other = &self.world.nodes[&node];
            if other.is_alive() && other.life() == life {
                self.world.kill(node);
                continue;
            }
            let (node, incarnation) = (u64::from(node.get()), u64::from(life.get()));
            let body = DeclareDeadReq { node, incarnation, give_up_rows: 1 };
            self.world.tell_control(to, &body);
        }
    }

    /// Waits until the cluster is up; gives the epoch that it was restarted with, if it was.
    pub(crate) fn wait_for_restart(&mut self) -> Result<Option<Epoch>, String> {
        let end = self.world.now.plus(UP);
        let mut asked_at = self.world.now.plus(A_PERSON_LOOKS);
        while self.dark.as_ref().is_some_and(|dark| !dark.is_over(&self.world))
            && self.world.now < end
        {
            self.run_for(Duration::from_millis(1))?;
            if self.world.now >= asked_at {
                asked_at = self.world.now.plus(Duration::from_millis(500));
                self.give_word();
            }
        }
        let dark = self.dark.take().ok_or("no blackout")?;
        if !dark.is_over(&self.world) {
            self.describe_nodes();
            return Err(format!(
                "{} s after a blackout the cluster is not up",
                UP.as_millis() / 1_000
            ));
        }
        let restarted_at = dark.check(&self.world, &self.ledger)?;
        if let Some(epoch) = restarted_at {
            self.ledger.transfer_epochs.retain(|_, at| *at <= epoch);
            self.ledger.on_disk = self.ledger.on_disk.min(epoch);
        }
        Ok(restarted_at)
    }

    /// All processes end.
    pub(crate) fn end_all(&mut self) {
        let dark = Dark::falls(&self.world, &self.ledger);
        let nodes: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        nodes.into_iter().for_each(|node| self.world.kill(node));
        self.dark = Some(dark.with_disks(&self.world, None));
    }

    /// They start again. Some die again on the way.
    fn come_back(&mut self, random: &mut Prng) -> Result<(), String> {
        let nodes: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        if random.chance(1, 2) {
            let end = self.world.now.plus(Duration::from_millis(UNSTEADY_MS));
            while self.world.now < end {
                self.run_for(Duration::from_millis(random.between(1, 1_200)))?;
                let node = nodes[random.below(nodes.len() as u64) as usize];
                // From now on what is there may be changed by copying.
                if self.dark.as_ref().is_none_or(|dark| dark.is_over(&self.world)) {
                    break;
                }
                self.say(&format!("node {node} dies again"));
                self.world.kill(node);
                self.world.tally.note("death on the way up");
            }
        }
        let mut restarted_at = self.wait_for_restart()?;
        // What was asked for this start does not hold for later lives.
        self.world.partial = false;
        if self.wait_for_lost_group()? {
            // LOST-1: it goes on without, until somebody starts all nodes again.
            self.say("a node group was lost on the way; all nodes are started again");
            self.end_all();
            restarted_at = self.wait_for_restart()?;
        }
        self.check_what_is_back(restarted_at, random)
    }

    /// They start again, and none dies on the way.
    pub(crate) fn come_back_at_once(&mut self) -> Result<(), String> {
        let restarted_at = self.wait_for_restart()?;
        if restarted_at.is_some() {
            // What was committed in later epochs is void, as its clients may know.
            let epochs = &self.ledger.transfer_epochs;
            self.ledger.told.retain(|row, committed| !*committed || epochs.contains_key(row));
        }
        let mut random = Prng::new(self.world.digest);
        self.check_what_is_back(restarted_at, &mut random)
    }

    /// The cluster is up again, restarted at this epoch, if it was.
    fn check_what_is_back(
        &mut self,
        restarted_at: Option<Epoch>,
        random: &mut Prng,
    ) -> Result<(), String> {
        self.say("the cluster is up again");
        self.come_to_rest()?;
        // What was taken from logs must be in them as well: the next blackout may begin with these alone.
        self.wait_for_disks()?;
        checkers::nothing_left(&self.world)?;
        checkers::epochs_move(&self.world)?;
        checkers::replicas_equal(&self.world)?;
        checkers::indexes_match(&self.world)?;
        if restarted_at.is_some() {
            // Else whoever has built one is gone, and the node that it was at lives.
            checkers::unique_indexes_match(&self.world)?;
            self.ask_what_is_left(random)?;
        }
        let nodes = self.data_nodes();
        self.dismiss_clients(nodes);
        // Its last event finds nobody: it is not taken for one of the next client's.
        self.run_for(Duration::from_millis(5))
    }

    /// New clients with a new ledger, and new tables in the place of the old ones.
    pub(super) fn begin_anew(&mut self, round: u64) -> Result<(), String> {
        let catalog = {
            let control = checkers::newest_control(&self.world, |_| true).ok_or("no node lives")?;
            control.state().catalog.clone()
        };
        let nodes = self.data_nodes();
        self.clients = (1..=2u32)
            .map(|number| {
                let home = Some(nodes[(number as usize - 1) % nodes.len()]);
                let mut client = SimClient::new(number, home, self.world.random.next_u64());
                client.core =
                    ClientCore::new(ClientId::new(round * 1_000 + u64::from(number)), home);
                client.stopped = true;
                client
            })
            .collect();
        self.world.client_count = 2;
        self.connect_clients();
        self.wait_for_clients()?;
        let old = catalog.tables.values().filter(|t| t.index_of.is_none());
        let user = old.filter(|t| t.database != lats_catalog::SYSTEM_DATABASE);
        for (at, table) in user.enumerate() {
            let (database, name) = (table.database.clone(), table.name.clone());
            let change = Change::DropTable { database, name, if_exists: true };
            let ticket = self.clients[0].core.change(round * 100_000 + at as u64, change);
            self.flush(0);
            match self.wait_for(0, ticket)? {
                Answer::Changed(Ok(_)) => {}
                other => return Err(format!("DROP TABLE: {other:?}")),
            }
        }
        self.ledger = Ledger::new(catalog.next_table_id, 8, 2);
        self.create_tables(round * 100_000 + 1_000)?;
        self.fill_accounts()?;
        for number in 1..=2 {
            self.world.at(Duration::from_millis(1), Event::Client(number));
        }
        Ok(())
    }
}
