//! What scenarios are written with: a cluster, clients that do what they are told, links that hold signals back.

mod blackout;

use super::Scenario;
use crate::{
    Options, Outcome, checkers,
    clients::{Ledger, SimClient},
    durability,
    network::End,
    run::{FIRST_TABLE, Run},
    tables::Numbers,
    world::{SimNode, Trap, World},
};
use lats_base::{Duration, Epoch, FragmentId, Incarnation, Instant, NodeId, prng::Prng};
use lats_catalog::{Catalog, Change};
use lats_client::{
    api::RowOp,
    core::{Answer, Then, Ticket},
};
use lats_kernel::Faults;
use lats_node::control::Control;
use lats_signals::{SignalNumber, buffer::parse};
use std::collections::BTreeMap;

/// Accounts that clients move money between.
const ACCOUNTS: i64 = 32;
/// Longer than anything takes that is waited for, in ms.
const PATIENCE_MS: u64 = 20_000;
/// After so long all has arrived that is on its way.
const QUIET: Duration = Duration::from_millis(20);
/// Clients look for answers so often.
const STEP: Duration = Duration::from_micros(20);
/// It is looked so often at what waits for disks.
const LOOK: Duration = Duration::from_millis(5);
/// Changes of definitions have numbers from this one on: those before made the tables.
const FIRST_CHANGE: u64 = 2_000;

/// A cluster in which a scenario happens.
pub struct Bench {
    run: Run,
    answers: BTreeMap<(usize, Ticket), Answer>,
    /// The last change of definitions that was asked for.
    changes: u64,
    /// When it was last looked at what waits for disks.
    looked_at: Instant,
}

impl Bench {
    pub(super) fn play(scenario: &Scenario, options: &Options) -> Outcome {
        let mut faults = Faults::default();
        if let Some(planted) = options.bug {
            faults.arm(planted.fault, 1);
        }
        let mut world = World::new(&(scenario.shape)(), options.seed, faults);
        (world.archives, world.replaces_disks, world.changes_durability) = (false, false, false);
        world.client_count = scenario.clients;
        let mut random = Prng::new(options.seed);
        let client = |number: u32| {
            let home = Some(NodeId::new(number as u16));
            let mut client = SimClient::new(number, home, random.next_u64());
            client.waits_for_disks = false;
            client
        };
        let clients: Vec<SimClient> = (1..=scenario.clients).map(client).collect();
        let ledger = Ledger::new(FIRST_TABLE, ACCOUNTS, scenario.clients.into());
        let run = Run::new(world, clients, ledger, options);
        let (answers, changes, looked_at) = (BTreeMap::new(), FIRST_CHANGE, Instant::ZERO);
        let mut bench = Self { run, answers, changes, looked_at };
        let ended = bench.begin().and_then(|()| (scenario.play)(&mut bench));
        let ended = ended.and_then(|()| bench.come_to_rest());
        bench.run.outcome(ended)
    }

    fn begin(&mut self) -> Result<(), String> {
        self.run.found()?;
        self.settle()?;
        // Replicas hear late that the first rows are committed: a trap must not meet that.
        self.pass(QUIET)
    }

    /// The end of every scenario: all links are whole, the cluster becomes whole, and all checkers look at it.
    fn come_to_rest(&mut self) -> Result<(), String> {
        self.run.world.traps.clear();
        self.run.heal();
        // What a scenario had asked for itself is answered, too.
        self.settle()?;
        self.run.come_to_rest()?;
        self.run.check_all()
    }

    /// The cluster, to look at.
    pub fn world(&self) -> &World {
        &self.run.world
    }

    /// Who leads the control group now.
    pub fn leader(&self) -> Result<NodeId, String> {
        let leads = |n: &&SimNode| checkers::control(n).is_some_and(Control::is_leader);
        let leader = self.run.world.nodes.values().find(leads);
        leader.map(|n| n.config.node).ok_or("nobody leads".to_string())
    }

    /// The lives of the members, by the newest view.
    pub fn lives(&self) -> Vec<(NodeId, Incarnation)> {
        let view = checkers::newest_view(&self.run.world);
        let members = view.into_iter().flat_map(|view| &view.members);
        members.filter(|m| m.alive).map(|m| (m.node, m.incarnation)).collect()
    }

    /// The newest epoch that a node calls complete.
    pub fn complete_epoch(&self) -> Epoch {
        checkers::complete_epoch(&self.run.world)
    }

    /// The cluster, to change.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.run.world
    }

    /// What clients were told.
    pub fn ledger(&mut self) -> &mut Ledger {
        &mut self.run.ledger
    }

    /// Says what happens, if anybody wants to hear it.
    pub fn say(&self, what: &str) {
        self.run.say(what);
    }

    /// Time passes; clients take their answers.
    pub fn pass(&mut self, span: Duration) -> Result<(), String> {
        let end = self.run.world.now.plus(span);
        while self.run.world.now < end {
            let next = self.run.world.now.plus(STEP).min(end);
            self.run.run_until(next)?;
            self.let_clients_act();
            if self.run.world.now.since(self.looked_at) >= LOOK {
                self.looked_at = self.run.world.now;
                durability::backlog_is_bounded(&self.run.world)?;
            }
        }
        Ok(())
    }

    /// Time passes until something holds; what is waited for is said if it does not come.
    pub fn until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), String> {
        let end = self.run.world.now.plus(Duration::from_millis(PATIENCE_MS));
        while !holds(self) {
            if self.run.world.now >= end {
                return Err(format!("the scenario waits in vain for this: {what}"));
            }
            self.pass(STEP)?;
        }
        self.say(what);
        Ok(())
    }

    /// If all power was lost now, disks would have the state of one epoch that is not older than the durable one.
    pub fn check_disks(&self) -> Result<(), String> {
        let mut random = Prng::new(self.run.world.digest);
        durability::survives_power_loss(&self.run.world, &self.run.ledger, &mut random)
    }

    fn let_clients_act(&mut self) {
        let now: Instant = self.run.world.now;
        for index in 0..self.run.clients.len() {
            let client = &mut self.run.clients[index];
            if self.run.world.sleeps(client.number) {
                continue;
            }
            if client.is_scripted() {
                client.core.tick(now);
                while let Some((ticket, answer)) = client.core.next_answer() {
                    self.answers.insert((index, ticket), answer);
                }
            } else {
                client.act(now, &mut self.run.ledger);
            }
            self.run.flush(index);
        }
    }

    /// An account whose primary is this node, the `nth` of them.
    pub fn account_of(&self, node: NodeId, nth: usize) -> Result<i64, String> {
        let view = checkers::newest_view(&self.run.world).ok_or("no node lives")?;
        let (accounts, count) = (&self.run.ledger.accounts, view.fragments_per_table());
        let is_there = |id: &i64| view.primary(accounts.fragment(*id, count)) == Some(node);
        (0..ACCOUNTS).filter(is_there).nth(nth).ok_or(format!("node {node} has too few accounts"))
    }

    /// Account `nth` of this node that belongs to one of its data managers.
    pub fn account_of_ldm(&self, node: NodeId, ldm: u32, nth: usize) -> Result<i64, String> {
        let view = checkers::newest_view(&self.run.world).ok_or("no node lives")?;
        let (accounts, count) = (&self.run.ledger.accounts, view.fragments_per_table());
        let is_there = |id: &i64| {
            let fragment = accounts.fragment(*id, count);
            view.primary(fragment) == Some(node) && view.ldm_instance(fragment) == ldm
        };
        let found = (0..ACCOUNTS).filter(is_there).nth(nth);
        found.ok_or(format!("data manager {ldm} of node {node} has too few accounts"))
    }

    /// The row of the history that a client's next transfer makes belongs to this data manager of the node.
    pub fn next_row_of_ldm(&mut self, client: usize, node: NodeId, ldm: u32) -> Result<(), String> {
        let view = checkers::newest_view(&self.run.world).ok_or("no node lives")?;
        let (history, count) = (&self.run.ledger.history, view.fragments_per_table());
        self.run.clients[client].skip_rows(|row| {
            let fragment = history.fragment(row, count);
            view.primary(fragment) == Some(node) && view.ldm_instance(fragment) == ldm
        });
        Ok(())
    }

    /// A client moves money, in one request. What it is told the ledger keeps.
    pub fn transfer(&mut self, client: usize, from: i64, to: i64) {
        let (run, amount) = (&mut self.run, 1);
        run.clients[client].set_time(run.world.now);
        run.clients[client].transfer(&mut run.ledger, from, to, amount);
        run.flush(client);
    }

    /// A client wants the end of what moves its money.
    pub fn interrupt(&mut self, client: usize) {
        self.say(&format!("client {} interrupts its transfer", client + 1));
        let run = &mut self.run;
        run.clients[client].set_time(run.world.now);
        run.clients[client].interrupt_transfer();
        run.flush(client);
    }

    /// A client moves money, in two requests.
    pub fn transfer_in_halves(&mut self, client: usize, from: i64, to: i64) {
        let (run, amount) = (&mut self.run, 1);
        run.clients[client].set_time(run.world.now);
        run.clients[client].transfer_in_halves(&mut run.ledger, from, to, amount);
        run.flush(client);
    }

    /// A register that has its primary elsewhere.
    pub fn register_beside(&self, node: NodeId) -> Result<i64, String> {
        let view = checkers::newest_view(&self.run.world).ok_or("no node lives")?;
        let (ledger, count) = (&self.run.ledger, view.fragments_per_table());
        let is_there = |id: &i64| view.primary(ledger.registers.fragment(*id, count)) != Some(node);
        let found = (0..ledger.register_count).find(is_there);
        found.ok_or(format!("node {node} is primary of all registers"))
    }

    /// A register that has its primary at this node.
    pub fn register_at(&self, node: NodeId) -> Result<i64, String> {
        let view = checkers::newest_view(&self.run.world).ok_or("no node lives")?;
        let (ledger, count) = (&self.run.ledger, view.fragments_per_table());
        let is_there = |id: &i64| view.primary(ledger.registers.fragment(*id, count)) == Some(node);
        let found = (0..ledger.register_count).find(is_there);
        found.ok_or(format!("node {node} is primary of no register"))
    }

    /// A client writes its next value to a register that nobody else writes to.
    pub fn write(&mut self, client: usize, register: i64) {
        let run = &mut self.run;
        run.clients[client].set_time(run.world.now);
        run.clients[client].write(&mut run.ledger, register);
        run.flush(client);
    }

    /// A client reads a register; what it may read the ledger knows.
    pub fn read(&mut self, client: usize, register: i64) {
        let run = &mut self.run;
        run.clients[client].set_time(run.world.now);
        run.clients[client].read(&run.ledger, register);
        run.flush(client);
    }

    /// Waits until a client has nothing under way.
    pub fn wait_for(&mut self, client: usize) -> Result<(), String> {
        let what = format!("client {} has its answer", client + 1);
        self.until(&what, |bench| bench.run.clients[client].is_idle())
    }

    /// True if a client has nothing under way.
    pub fn is_idle(&self, client: usize) -> bool {
        self.run.clients[client].is_idle()
    }

    /// Waits until all clients have their answers.
    pub fn settle(&mut self) -> Result<(), String> {
        let idle = |bench: &mut Self| bench.run.clients.iter().all(SimClient::is_idle);
        self.until("all clients have their answers", idle)
    }

    /// A client begins a transaction of which the ledger knows nothing.
    pub fn begin_transaction(&mut self, client: usize) -> u64 {
        self.run.clients[client].core.begin()
    }

    /// It does something in such a transaction.
    pub fn step(
        &mut self,
        client: usize,
        sequence: u64,
        operations: &[RowOp],
        then: Then,
    ) -> Ticket {
        let now = self.run.world.now;
        let core = &mut self.run.clients[client].core;
        core.set_time(now);
        let ticket = core.step(sequence, operations, then);
        self.run.flush(client);
        ticket
    }

    /// The answer to that, if it is there.
    pub fn answer(&mut self, client: usize, ticket: Ticket) -> Option<Answer> {
        self.answers.remove(&(client, ticket))
    }

    /// Waits for the answer.
    pub fn wait_for_answer(&mut self, client: usize, ticket: Ticket) -> Result<Answer, String> {
        let there = |bench: &mut Self| bench.answers.contains_key(&(client, ticket));
        self.until("an answer", there)?;
        self.answer(client, ticket).ok_or("the answer is gone".to_string())
    }

    /// A client changes definitions, and reads them then.
    pub fn change(&mut self, client: usize, change: Change) -> Result<Catalog, String> {
        let ticket = self.ask_for_change(client, change);
        match self.wait_for_answer(client, ticket)? {
            Answer::Changed(Ok(_)) => {}
            other => return Err(format!("a change of definitions: {other:?}")),
        }
        self.definitions(client)
    }

    /// A client asks for a change of definitions.
    pub fn ask_for_change(&mut self, client: usize, change: Change) -> Ticket {
        self.changes += 1;
        let now = self.run.world.now;
        let core = &mut self.run.clients[client].core;
        core.set_time(now);
        let ticket = core.change(self.changes, change);
        self.run.flush(client);
        ticket
    }

    /// What a client reads of the definitions.
    pub fn definitions(&mut self, client: usize) -> Result<Catalog, String> {
        let ticket = self.run.clients[client].core.fetch_catalog();
        self.run.flush(client);
        match self.wait_for_answer(client, ticket)? {
            Answer::Catalog(catalog) => Ok(Catalog::clone(&catalog)),
            other => Err(format!("the definitions: {other:?}")),
        }
    }

    /// A client reads all rows of a table as they are, one fragment after the other.
    pub fn scan(&mut self, client: usize, table: &Numbers) -> Result<Vec<Vec<i64>>, String> {
        let mut found = Vec::new();
        for fragment in 0..self.run.clients[client].core.fragment_count(table.id) {
            self.scan_fragment(client, table, FragmentId::new(fragment), &mut found)?;
        }
        Ok(found)
    }

    fn scan_fragment(
        &mut self,
        client: usize,
        table: &Numbers,
        fragment: FragmentId,
        found: &mut Vec<Vec<i64>>,
    ) -> Result<(), String> {
        let opened = self.run.clients[client].core.open_scan(&table.scan(), fragment, None, None);
        let (handle, _) = opened.map_err(|code| format!("a scan: {code:?}"))?;
        loop {
            let asked = self.run.world.now;
            self.run.flush(client);
            match self.wait_for_answer(client, handle.ticket())? {
                Answer::Batch { rows, done } => {
                    found.extend(rows.iter().map(|row| table.numbers(row.row)));
                    if done {
                        return Ok(());
                    }
                }
                other => {
                    let ms = self.run.world.now.since(asked).as_millis();
                    return Err(format!(
                        "a scan of {} ends after {ms} ms: {other:?}",
                        table.name()
                    ));
                }
            }
            self.run.clients[client].core.next_batch(handle);
        }
    }

    /// From now on the first signal of this number from one node to another stays on its way, and what follows it on this link.
    pub fn hold(&mut self, from: NodeId, to: NodeId, number: SignalNumber) {
        self.hold_ends(End::Node(from), End::Node(to), number);
    }

    /// As [`Self::hold`], for links with clients.
    pub fn hold_ends(&mut self, from: End, to: End, number: SignalNumber) {
        self.run.world.traps.push(Trap { from, to, number, pass: 0 });
    }

    /// All from one node to another stays on its way from now on.
    pub fn hold_all(&mut self, from: NodeId, to: NodeId) {
        self.run.world.network.cut(End::Node(from), End::Node(to), false);
    }

    /// Nothing passes any more between these nodes and clients, and all the others.
    pub fn isolate(&mut self, inside: &[End]) {
        self.say(&format!("{inside:?} are cut off"));
        let nodes = self.run.world.nodes.keys().map(|node| End::Node(*node));
        let clients = self.run.clients.iter().map(|client| End::Client(client.number));
        let all: Vec<End> = nodes.chain(clients).collect();
        for outside in all.iter().filter(|end| !inside.contains(end)) {
            inside.iter().for_each(|end| self.run.world.network.cut(*end, *outside, true));
        }
    }

    /// Waits until a signal of this number is held between two nodes.
    pub fn until_held(
        &mut self,
        from: NodeId,
        to: NodeId,
        number: SignalNumber,
    ) -> Result<(), String> {
        let what = format!("{number:?} of node {from} is on its way to node {to}");
        self.until(&what, |bench| bench.holds(End::Node(from), End::Node(to), number))
    }

    /// True if a signal of this number is held on a link.
    pub fn holds(&self, from: End, to: End, number: SignalNumber) -> bool {
        self.count_held(from, to, number) > 0
    }

    /// How many signals of this number are held on a link.
    pub fn count_held(&self, from: End, to: End, number: SignalNumber) -> usize {
        let is_one = |packet: &&Vec<u8>| match parse(packet) {
            Ok(Some(signal)) => signal.number() == Some(number),
            _ => false,
        };
        self.run.world.network.held(from, to).iter().filter(is_one).count()
    }

    /// Lets the first signals through that are held on a link, and holds the rest.
    pub fn let_through(&mut self, from: NodeId, to: NodeId, count: usize) {
        self.run.world.let_through(End::Node(from), End::Node(to), Some(count));
    }

    /// Lets all through.
    pub fn release(&mut self, from: NodeId, to: NodeId) {
        self.run.world.let_through(End::Node(from), End::Node(to), None);
    }

    /// Everything passes again.
    pub fn release_all(&mut self) {
        self.say("nobody is cut off any more");
        self.run.heal();
    }

    /// What is held on a link is lost, and the link holds nothing any more; for a sender that dies at this moment.
    pub fn lose(&mut self, from: End, to: End) {
        self.run.world.traps.retain(|trap| (trap.from, trap.to) != (from, to));
        self.run.world.network.let_through(from, to, None);
    }

    /// A process gets no processor for a while.
    pub fn pause(&mut self, node: NodeId, span: Duration) {
        self.say(&format!("node {node} stands still for {span:?}"));
        self.run.world.tally.note("pause");
        let until = self.run.world.now.plus(span);
        if let Some(n) = self.run.world.nodes.get_mut(&node) {
            n.paused_until = until;
        }
    }

    /// The process of a client does nothing for a while.
    pub fn put_to_sleep(&mut self, client: usize, span: Duration) {
        let number = self.run.clients[client].number;
        self.say(&format!("client {number} sleeps for {span:?}"));
        let until = self.run.world.now.plus(span);
        self.run.world.asleep.insert(number, until);
    }

    /// True if it does.
    pub fn sleeps(&self, client: usize) -> bool {
        self.run.world.sleeps(self.run.clients[client].number)
    }

    /// The threads of a process stand still for a while, each inside its next round; all but the first one inside the round in
    /// which they handle such a signal.
    pub fn stick(&mut self, node: NodeId, span: Duration, number: SignalNumber) {
        self.say(&format!("node {node} stands still for {span:?}, with a {number:?}"));
        self.run.world.tally.note("pause");
        self.run.world.note_unrest();
        let until = self.run.world.now.plus(span);
        if let Some(n) = self.run.world.nodes.get_mut(&node) {
            (n.stuck.until, n.stuck.at) = (until, Some(number));
        }
    }

    /// A process ends at once; the supervisor starts it again a second later. What is held on its links is lost.
    pub fn kill(&mut self, node: NodeId) {
        self.say(&format!("node {node} dies"));
        self.run.world.tally.note("death");
        self.run.world.kill(node);
    }
}
