//! The simulated clients: transfers between accounts, registers with one writer each, and readers
//! of these at any replica, and of snapshots of the accounts. They keep the ledger that the
//! checkers compare with.

mod badges;
mod lists;
mod locks;
mod passes;
mod shown;
mod snapshots;
mod surveys;
mod sweep;

pub use badges::Badges;
pub use lists::Lists;

use crate::tables::Numbers;
use lats_base::{ClientId, Duration, Epoch, ErrorClass, Instant, NodeId, RefCode, prng::Prng};
use lats_catalog::Change;
use lats_client::{
    api::{Committed, LockMode, LockWait, RowOutcome, RowResult},
    core::{Answer, ClientCore, Then, Ticket},
};
use std::collections::BTreeMap;

/// What a run writes to and what it has promised.
#[derive(Debug)]
pub struct Ledger {
    /// Accounts: id, balance.
    pub accounts: Numbers,
    /// History: id, source, target, amount.
    pub history: Numbers,
    /// Registers: id, value.
    pub registers: Numbers,
    /// Badges, which are unique.
    pub badges: Badges,
    /// Passes: id, pass.
    pub passes: Numbers,
    /// Lists, and the history of what was done with them.
    pub lists: Lists,
    /// Passes have a unique index, complete or not.
    pub pass_index: bool,
    /// How many accounts there are.
    pub account_count: i64,
    /// How many registers there are.
    pub register_count: i64,
    /// History rows by what the client was told: true committed, false rolled back.
    pub told: BTreeMap<i64, bool>,
    /// All transfers that were tried, by their row of the history: from, to, amount.
    pub transfers: BTreeMap<i64, (i64, i64, i64)>,
    /// History rows of which the client was told that the outcome is unknown.
    pub unknown: Vec<i64>,
    /// Per register: the newest value that was acknowledged, and the newest that was attempted.
    pub acknowledged: Vec<i64>,
    /// See `acknowledged`.
    pub attempted: Vec<i64>,
    /// Values whose write was surely rolled back: nobody may ever see them.
    pub refused: Vec<Vec<i64>>,
    /// Per register: the newest value that a finished read has returned.
    pub seen: Vec<i64>,
    /// Epochs of acknowledged transfers, by history row.
    pub transfer_epochs: BTreeMap<i64, Epoch>,
    /// Their receipts.
    pub receipts: BTreeMap<i64, Committed>,
    /// The newest epoch that a client was told to be durable.
    pub on_disk: Epoch,
    /// What a client that has lived through a blackout was told: this transfer is durable, or it is not.
    pub heard: Vec<(i64, bool)>,
    /// So many transfers were on disk when their clients went on.
    pub waits: u64,
    /// Values of registers that were shown as durable, and what was durable then (READ-7).
    shown: BTreeMap<(i64, i64), Epoch>,
    /// Epochs of acknowledged writes, by register and value.
    pub value_epochs: BTreeMap<(i64, i64), Epoch>,
    /// What clients had read (register, value) before they committed in an epoch.
    pub causes: Vec<(i64, i64, Epoch)>,
    /// The newest epoch that was ever called complete.
    pub complete: Epoch,
    /// What was found wrong while the run went on.
    pub violations: Vec<String>,
    /// Committed transactions.
    pub commits: u64,
    /// Refused transactions.
    pub aborts: u64,
    /// Finished reads.
    pub reads: u64,
    /// What victims of deadlocks were told, for who watches.
    pub victims: Vec<String>,
    /// Statements that were refused in transactions that went on.
    pub refusals: u64,
    /// Snapshots that were read.
    pub snapshots: u64,
    /// Indexes that were created or dropped.
    pub index_changes: u64,
    /// A node group is dead, or about to die.
    pub outage: bool,
    /// What was refused because a node group is lost.
    pub refused_as_lost: u64,
    /// Requests refused because the node that could answer is silent.
    pub refused_as_silent: u64,
    /// Nodes are, or were, cut off for long.
    pub silence: bool,
}

/// A simulated client.
pub struct SimClient {
    /// Its number, from 1.
    pub number: u32,
    /// The node whose process it lives in.
    pub home: Option<NodeId>,
    /// Its state machine.
    pub core: ClientCore,
    random: Prng,
    now: Instant,
    doing: Doing,
    wearer: badges::Wearer,
    /// The transfer that it commits is answered when it is durable.
    to_disk: bool,
    /// An index whose making has failed here was not to be seen in this version of the catalog.
    watched: Option<u64>,
    next_row: i64,
    value: i64,
    epoch: Epoch,
    /// The newest epoch that was complete when it asked for its commit.
    complete_before: Epoch,
    /// A row that it has changed was lost when it asked for its commit.
    is_lost: bool,
    /// Since when it knows that a node group is lost.
    lost_since: Option<Instant>,
    /// What it has read since its last commit: register and value.
    reads: Vec<(i64, i64)>,
    /// The request that it has interrupted last.
    interrupted: Option<Ticket>,
    /// It starts nothing new.
    pub stopped: bool,
    /// How many times longer than others it waits between two acts.
    pub leisure: u64,
    /// It only reads, so that no transaction that hangs keeps it from looking.
    pub reader: bool,
    /// It changes what the cluster's commits wait for now and then.
    pub changes_durability: bool,
    /// It waits for disks now and then.
    pub waits_for_disks: bool,
}

/// A row of the history: its id, from, to, amount.
type Transfer = (i64, i64, i64, i64);

/// What is to be durable; and the transfer, if it is one from before a blackout.
type Asked = (Committed, Option<i64>);

#[derive(Clone, Debug)]
enum Doing {
    Nothing,
    Showing(shown::Showing),
    Badge(badges::Step),
    List(lists::Step),
    Pass(passes::Step),
    /// The first part of a transfer in two steps.
    Locking {
        sequence: u64,
        transfer: Transfer,
        ticket: Ticket,
    },
    /// The first of several requests that change something.
    Halfway {
        sequence: u64,
        transfer: Transfer,
        ticket: Ticket,
    },
    /// A request that must be refused, in the middle of a transfer.
    Stumbling {
        sequence: u64,
        transfer: Transfer,
        balance: Option<i64>,
        ticket: Ticket,
    },
    /// Two accounts are locked, to be looked at again.
    Holding {
        sequence: u64,
        accounts: [i64; 2],
        wait: LockWait,
        ticket: Ticket,
    },
    /// They are looked at again: what was locked cannot have changed.
    LookingAgain {
        sequence: u64,
        accounts: [i64; 2],
        balances: [Option<i64>; 2],
        ticket: Ticket,
    },
    /// A transaction without changes ends.
    Ending {
        ticket: Ticket,
    },
    Finishing {
        row: i64,
        /// What the first account must have then, if it was locked before.
        balance: Option<i64>,
        ticket: Ticket,
    },
    RollingBack {
        row: i64,
        ticket: Ticket,
    },
    Writing {
        register: i64,
        value: i64,
        ticket: Ticket,
    },
    Reading {
        register: i64,
        floor: i64,
        ticket: Ticket,
    },
    /// It asks which epoch is complete.
    Choosing {
        ticket: Ticket,
    },
    /// It waits until its transfer is durable.
    Waiting {
        asked: Asked,
        ticket: Ticket,
    },
    /// An index comes or goes.
    ChangingIndex {
        ticket: Ticket,
    },
    /// It looks how the tables are defined now.
    Rereading {
        ticket: Ticket,
    },
    /// It reads all accounts as of an epoch.
    Scanning(snapshots::Snapshot),
    /// It reads all registers as they are.
    Surveying(surveys::Survey),
}

/// A new view is installed at all nodes in this time, when nothing else is wrong.
const KNOWN_EVERYWHERE: Duration = Duration::from_millis(8);

impl Doing {
    /// The request whose answer it goes on with.
    fn awaits(&self) -> Option<Ticket> {
        match self {
            Self::Badge(step) => step.ticket(),
            Self::List(step) => Some(step.ticket()),
            Self::Pass(step) => step.ticket(),
            Self::Showing(showing) => Some(showing.ticket),
            Self::Nothing | Self::Scanning(_) | Self::Surveying(_) => None,
            Self::Locking { ticket, .. }
            | Self::Halfway { ticket, .. }
            | Self::Stumbling { ticket, .. }
            | Self::Holding { ticket, .. }
            | Self::LookingAgain { ticket, .. }
            | Self::Ending { ticket, .. }
            | Self::Finishing { ticket, .. }
            | Self::RollingBack { ticket, .. }
            | Self::Writing { ticket, .. }
            | Self::Reading { ticket, .. }
            | Self::ChangingIndex { ticket }
            | Self::Rereading { ticket }
            | Self::Choosing { ticket }
            | Self::Waiting { ticket, .. } => Some(*ticket),
        }
    }
}

impl Ledger {
    /// A client was told that this is durable.
    fn note_on_disk(&mut self, receipt: Committed) {
        self.on_disk = self.on_disk.max(receipt.epoch);
        self.waits += 1;
    }

    /// A ledger for tables that will get these ids.
    pub fn new(first_table: u32, account_count: i64, register_count: i64) -> Self {
        let registers = register_count as usize;
        Self {
            accounts: Numbers::new(first_table, "accounts", &["id", "balance"], None),
            history: Numbers::new(
                first_table + 1,
                "history",
                &["id", "source", "target", "amount"],
                Some(1),
            ),
            registers: Numbers::new(first_table + 2, "registers", &["id", "value"], None),
            badges: Badges::new(first_table + 3, registers),
            // The badges' index has a table of its own.
            passes: passes::table(first_table + 5),
            lists: Lists::new(first_table + 6),
            pass_index: false,
            account_count,
            register_count,
            told: BTreeMap::new(),
            transfers: BTreeMap::new(),
            unknown: Vec::new(),
            acknowledged: vec![0; registers],
            attempted: vec![0; registers],
            refused: vec![Vec::new(); registers],
            seen: vec![0; registers],
            shown: BTreeMap::new(),
            transfer_epochs: BTreeMap::new(),
            receipts: BTreeMap::new(),
            on_disk: Epoch::default(),
            heard: Vec::new(),
            waits: 0,
            value_epochs: BTreeMap::new(),
            causes: Vec::new(),
            complete: Epoch::default(),
            violations: Vec::new(),
            commits: 0,
            aborts: 0,
            reads: 0,
            victims: Vec::new(),
            refusals: 0,
            snapshots: 0,
            index_changes: 0,
            outage: false,
            refused_as_lost: 0,
            refused_as_silent: 0,
            silence: false,
        }
    }

    fn violate(&mut self, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(what);
        }
    }

    /// A read of a register has returned `value`; it began when `floor` was known.
    fn check_read(&mut self, register: i64, value: i64, floor: i64) {
        let at = register as usize;
        self.reads += 1;
        if value < floor {
            self.violate(format!(
                "register {register}: read {value}, although {floor} was seen or acknowledged \
                 before the read began"
            ));
        }
        if value > self.attempted[at] || self.refused[at].contains(&value) {
            self.violate(format!("register {register}: read {value}, which was never committed"));
        }
        self.seen[at] = self.seen[at].max(value);
    }

    /// The balance in an image of an account.
    fn balance_in(&self, image: &[u8]) -> i64 {
        self.accounts.numbers(image)[1]
    }

    fn floor(&self, register: i64) -> i64 {
        let at = register as usize;
        self.acknowledged[at].max(self.seen[at])
    }
}

impl SimClient {
    /// A client; those with a home prefer that node.
    pub fn new(number: u32, home: Option<NodeId>, seed: u64) -> Self {
        Self {
            number,
            home,
            core: ClientCore::new(ClientId::new(u64::from(number)), home),
            random: Prng::new(seed),
            now: Instant::ZERO,
            doing: Doing::Nothing,
            wearer: badges::Wearer::default(),
            watched: None,
            next_row: 1,
            value: 0,
            epoch: Epoch::default(),
            complete_before: Epoch::default(),
            is_lost: false,
            to_disk: false,
            lost_since: None,
            reads: Vec::new(),
            interrupted: None,
            stopped: true,
            leisure: 1,
            reader: false,
            changes_durability: false,
            waits_for_disks: number == 1,
        }
    }

    /// What time it is, for a scenario that has it do something between two looks.
    pub fn set_time(&mut self, now: Instant) {
        self.now = now;
        self.core.set_time(now);
    }

    /// True if it waits for no answer by itself: a scenario takes the answers.
    pub fn is_scripted(&self) -> bool {
        matches!(self.doing, Doing::Nothing)
    }

    /// True if nothing is under way.
    pub fn is_idle(&self) -> bool {
        matches!(self.doing, Doing::Nothing) && self.core.pending() == 0
    }

    /// The request whose answer it waits for.
    pub fn awaits(&self) -> Option<Ticket> {
        self.doing.awaits()
    }

    /// What it waits for, for a person.
    pub fn describe(&self) -> String {
        format!("client {}: {}; {:?}", self.number, self.core.describe(), self.doing)
    }

    /// Goes on: takes answers, starts the next thing.
    pub fn act(&mut self, now: Instant, ledger: &mut Ledger) {
        self.now = now;
        self.core.tick(now);
        if self.lost_since.is_none() && self.core.map().view.lost_groups().next().is_some() {
            self.lost_since = Some(now);
        }
        while let Some((ticket, answer)) = self.core.next_answer() {
            self.on_answer(ticket, answer, ledger);
        }
        self.go_on_looking();
        self.go_on_building(ledger);
        if matches!(self.doing, Doing::Nothing) && !self.stopped && self.core.is_ready() {
            self.start(ledger);
        }
    }

    /// True if it goes on as soon as it hears something.
    pub fn is_eager(&mut self) -> bool {
        !self.stopped && self.random.chance(1, 4 * self.leisure)
    }

    /// How long it waits before it acts again.
    pub fn pause(&mut self) -> Duration {
        Duration::from_micros(self.leisure * self.random.between(50, 3_000))
    }

    fn start(&mut self, ledger: &mut Ledger) {
        match self.random.below(19) {
            _ if self.random.chance(1, 40) => {
                let ticket = self.core.fetch_epochs();
                self.doing = Doing::Choosing { ticket };
            }
            10..14 => self.start_badge(ledger),
            16.. => self.start_list(ledger),
            _ if self.reader => self.start_read(ledger),
            14.. => self.start_pass(ledger),
            _ if self.number == 1 && self.random.chance(1, 30) => {
                let change = match self.changes_durability && self.random.chance(1, 2) {
                    true => Change::SetDurability { to_disk: !self.commits_to_disk() },
                    false => ledger.accounts.index_change(),
                };
                let ticket = self.core.change(self.random.next_u64(), change);
                self.doing = Doing::ChangingIndex { ticket };
            }
            // Some hear of an index before it is built everywhere.
            _ if self.random.chance(1, 30) => {
                self.doing = Doing::Rereading { ticket: self.core.fetch_catalog() };
            }
            0..3 => self.start_transfer(ledger),
            3 => self.start_holding(ledger),
            4..6 => self.start_write(ledger),
            _ => self.start_read(ledger),
        }
    }

    fn start_transfer(&mut self, ledger: &mut Ledger) {
        let from = self.random.below(ledger.account_count as u64) as i64;
        let to = (from + 1 + self.random.below(ledger.account_count as u64 - 1) as i64)
            % ledger.account_count;
        let amount = self.random.between(1, 100) as i64;
        if self.random.chance(1, 2) {
            self.transfer(ledger, from, to, amount);
            if let Doing::Finishing { ticket, .. } = self.doing {
                self.interrupt_some(ticket);
            }
            return;
        }
        if self.random.chance(1, 2) {
            return self.transfer_in_halves(ledger, from, to, amount);
        }
        let locks = [
            ledger.accounts.read(from, LockMode::Exclusive),
            ledger.accounts.read(to, LockMode::Shared),
        ];
        let transfer = self.new_transfer(ledger, from, to, amount);
        let sequence = self.core.begin();
        let ticket = self.core.step(sequence, &locks, Then::GoOn);
        self.doing = Doing::Locking { sequence, transfer, ticket };
    }

    /// The row of the history that its next transfer makes.
    fn row(&self) -> i64 {
        i64::from(self.number) * 1_000_000 + self.next_row
    }

    /// Its next transfer makes a row that fits, for a scenario.
    pub fn skip_rows(&mut self, fits: impl Fn(i64) -> bool) {
        while !fits(self.row()) {
            self.next_row += 1;
        }
    }

    fn new_transfer(&mut self, ledger: &mut Ledger, from: i64, to: i64, amount: i64) -> Transfer {
        let row = self.row();
        self.next_row += 1;
        ledger.transfers.insert(row, (from, to, amount));
        (row, from, to, amount)
    }

    /// Moves an amount from one account to another, all in one request.
    pub fn transfer(&mut self, ledger: &mut Ledger, from: i64, to: i64, amount: i64) {
        let transfer = self.new_transfer(ledger, from, to, amount);
        let sequence = self.core.begin();
        let ticket = self.finish_transfer(ledger, sequence, transfer);
        self.doing = Doing::Finishing { row: transfer.0, balance: None, ticket };
    }

    /// The same in two requests: the first changes one account, the second all else, and commits.
    pub fn transfer_in_halves(&mut self, ledger: &mut Ledger, from: i64, to: i64, amount: i64) {
        let transfer = self.new_transfer(ledger, from, to, amount);
        let sequence = self.core.begin();
        let half = [ledger.accounts.add(from, 1, -amount)];
        let ticket = self.core.step(sequence, &half, Then::GoOn);
        self.doing = Doing::Halfway { sequence, transfer, ticket };
    }

    fn finish_transfer(
        &mut self,
        ledger: &Ledger,
        sequence: u64,
        (row, from, to, amount): Transfer,
    ) -> Ticket {
        let operations = [
            ledger.accounts.add(from, 1, -amount),
            ledger.accounts.add(to, 1, amount),
            ledger.history.insert(&[row, from, to, amount]),
        ];
        let (accounts, history) = (&ledger.accounts, &ledger.history);
        self.note_lost_rows(&[(accounts, from), (accounts, to), (history, row)]);
        self.complete_before = ledger.complete;
        // DURABLE-6.
        let asks = self.waits_for_disks && row % 3 == 0;
        if asks {
            self.core.commit_to_disk(sequence, true);
        }
        self.to_disk = asks || self.commits_to_disk();
        self.core.step(sequence, &operations, Then::Commit)
    }

    /// Nobody will answer it any more.
    pub fn give_up(&mut self, ledger: &mut Ledger) {
        let row = match &self.doing {
            Doing::Finishing { row, .. } => Some(*row),
            Doing::Halfway { transfer, .. } => Some(transfer.0),
            _ => None,
        };
        ledger.unknown.extend(row);
    }

    /// It has the cluster's commits wait for no disks.
    pub fn commit_replicated(&mut self) {
        let change = Change::SetDurability { to_disk: false };
        let ticket = self.core.change(self.random.next_u64(), change);
        self.doing = Doing::ChangingIndex { ticket };
    }

    /// What the cluster's commits wait for, as far as this client knows.
    pub fn commits_to_disk(&self) -> bool {
        self.core.map().view.config.to_disk
    }

    /// LOST-5: what has a row in a lost group must not be committed any more, once all coordinators know.
    fn note_lost_rows(&mut self, rows: &[(&Numbers, i64)]) {
        let view = &self.core.map().view;
        if self.lost_since.is_none_or(|since| self.now.since(since) < KNOWN_EVERYWHERE) {
            return;
        }
        let count = view.fragments_per_table();
        self.is_lost = rows.iter().any(|(table, id)| {
            view.route(table.fragment(*id, count)) == Err(RefCode::NodeGroupLost)
        });
    }

    fn start_write(&mut self, ledger: &mut Ledger) {
        // Each client writes the registers that are its own, so that their order is known.
        let register = i64::from(self.number - 1);
        if register >= ledger.register_count {
            return self.start_read(ledger);
        }
        self.write(ledger, register);
    }

    /// Writes its next value to a register that nobody else writes to.
    pub fn write(&mut self, ledger: &mut Ledger, register: i64) {
        self.value += 1;
        let value = self.value;
        ledger.attempted[register as usize] = value;
        let sequence = self.core.begin();
        let write = [ledger.registers.write(&[register, value])];
        self.complete_before = ledger.complete;
        let ticket = self.core.step(sequence, &write, Then::Commit);
        self.doing = Doing::Writing { register, value, ticket };
    }

    fn start_read(&mut self, ledger: &mut Ledger) {
        if self.random.chance(1, 5) {
            return self.start_survey(ledger);
        }
        let register = self.random.below(ledger.register_count as u64) as i64;
        self.read(ledger, register);
    }

    /// Reads a register, wherever that is done soonest.
    pub fn read(&mut self, ledger: &Ledger, register: i64) {
        let floor = ledger.floor(register);
        let ticket = self.core.read(vec![ledger.registers.read(register, LockMode::Committed)]);
        self.doing = Doing::Reading { register, floor, ticket };
    }

    fn on_answer(&mut self, ticket: Ticket, answer: Answer, ledger: &mut Ledger) {
        let doing = std::mem::replace(&mut self.doing, Doing::Nothing);
        let doing = match doing {
            Doing::Scanning(snapshot) => {
                return self.on_snapshot_answer(snapshot, ticket, &answer, ledger);
            }
            Doing::Surveying(survey) => {
                return self.on_survey_answer(survey, ticket, &answer, ledger);
            }
            doing if doing.awaits() != Some(ticket) => {
                self.doing = doing;
                return;
            }
            doing => doing,
        };
        if let Answer::Failed(e) = &answer
            && e.code == RefCode::Deadlock
        {
            ledger.victims.push(e.to_string());
        }
        if !matches!(doing, Doing::Stumbling { .. }) {
            self.check_answer(&doing, &answer, ledger);
        }
        match doing {
            Doing::Nothing | Doing::Scanning(_) | Doing::Surveying(_) | Doing::Ending { .. } => {}
            Doing::Choosing { .. } => {
                if let Answer::Epochs { complete, .. } = &answer {
                    self.start_snapshot(*complete, ledger);
                }
            }
            Doing::Waiting { asked, .. } => self.after_waiting(asked, &answer, ledger),
            Doing::Showing(showing) => Self::after_showing(&showing, &answer, ledger),
            Doing::ChangingIndex { .. } => {
                ledger.index_changes += u64::from(matches!(answer, Answer::Changed(Ok(_))));
                self.doing = Doing::Rereading { ticket: self.core.fetch_catalog() };
            }
            Doing::Rereading { .. } => self.after_rereading(&answer, ledger),
            Doing::Badge(step) => self.after_badge(step, answer, ledger),
            Doing::List(step) => self.after_list(step, &answer, ledger),
            Doing::Pass(step) => self.after_pass(step, answer, ledger),
            Doing::Locking { sequence, transfer, .. } => {
                self.after_locking(sequence, transfer, &answer, ledger);
            }
            Doing::Halfway { sequence, transfer, .. } => {
                self.after_half(sequence, transfer, &answer, ledger);
            }
            Doing::Stumbling { sequence, transfer, balance, .. } => {
                self.after_stumbling(sequence, transfer, balance, &answer, ledger);
            }
            Doing::Holding { sequence, accounts, wait, .. } => {
                self.after_holding(sequence, accounts, wait, &answer, ledger);
            }
            Doing::LookingAgain { sequence, accounts, balances, .. } => {
                self.after_looking_again(sequence, accounts, balances, &answer, ledger);
            }
            Doing::Finishing { row, balance, .. } => {
                self.after_transfer(row, balance, &answer, ledger);
            }
            Doing::RollingBack { row, .. } => {
                ledger.told.insert(row, false);
            }
            Doing::Writing { register, value, .. } => {
                Self::after_write(register, value, &answer, ledger);
            }
            Doing::Reading { register, floor, .. } => {
                self.after_reading(register, floor, &answer, ledger);
            }
        }
    }

    fn after_reading(&mut self, register: i64, floor: i64, answer: &Answer, ledger: &mut Ledger) {
        let Answer::Rows { results, .. } = answer else { return };
        let value = results[0].row.as_deref().map(|r| ledger.registers.numbers(r)[1]);
        let value = value.unwrap_or(0);
        ledger.check_read(register, value, floor);
        self.reads.push((register, value));
        if self.waits_for_disks && self.random.chance(1, 2) {
            self.show(register, value, ledger);
        }
    }

    /// Who has just heard of an index reads by it, be it built or not.
    fn after_rereading(&mut self, answer: &Answer, ledger: &mut Ledger) {
        let before = ledger.accounts.by_second;
        if let Answer::Catalog(catalog) = answer {
            ledger.accounts.learn(catalog);
        }
        if ledger.accounts.by_second.is_some() && before.is_none() {
            self.doing = Doing::Choosing { ticket: self.core.fetch_epochs() };
        }
    }

    /// What holds for every answer.
    fn check_answer(&mut self, doing: &Doing, answer: &Answer, ledger: &mut Ledger) {
        match answer {
            Answer::Rows { committed: Some(receipt), .. } => {
                if receipt.epoch < self.epoch {
                    ledger.violate(format!(
                        "client {}: epoch {} after {}",
                        self.number, receipt.epoch, self.epoch
                    ));
                }
                if receipt.epoch <= self.complete_before {
                    ledger.violate(format!(
                        "client {}: committed in epoch {}; {} was complete before it asked",
                        self.number, receipt.epoch, self.complete_before
                    ));
                }
                self.epoch = receipt.epoch;
                let reads = std::mem::take(&mut self.reads);
                ledger.causes.extend(reads.into_iter().map(|(r, v)| (r, v, receipt.epoch)));
            }
            Answer::Failed(e) if e.code == RefCode::NodeGroupLost && ledger.outage => {
                ledger.refused_as_lost += 1;
            }
            Answer::Failed(e) if e.code == RefCode::NodeSilent => ledger.refused_as_silent += 1,
            Answer::Failed(e)
                if e.code == RefCode::Interrupted && doing.may_be_interrupted(self.interrupted) => {
            }
            Answer::Failed(e) if e.class() == ErrorClass::Permanent => {
                ledger.violate(format!("client {}, {doing:?}: permanent error: {e}", self.number));
            }
            _ => {}
        }
    }

    fn after_locking(
        &mut self,
        sequence: u64,
        transfer: Transfer,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        // Locks that could not be had are a refused statement: the transfer may go on.
        let balance = match answer {
            Answer::Rows { results, .. } => {
                results[0].row.as_deref().map(|r| ledger.balance_in(r) - transfer.3)
            }
            _ => None,
        };
        match self.random.below(6) {
            _ if !self.core.is_open(sequence) => {
                ledger.aborts += 1;
                ledger.told.insert(transfer.0, false);
            }
            0 => self.roll_back(sequence, transfer),
            1..3 if balance.is_none() => self.roll_back(sequence, transfer),
            3..5 => self.stumble(sequence, transfer, balance, ledger),
            _ => self.finish(sequence, transfer, balance, ledger),
        }
    }

    /// The rest of a transfer of which one account is changed: commits with it, or after it.
    fn after_half(
        &mut self,
        sequence: u64,
        transfer: Transfer,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let (row, _, to, amount) = transfer;
        if !self.core.is_open(sequence) {
            ledger.aborts += 1;
            ledger.told.insert(row, false);
        } else if matches!(answer, Answer::Rows { .. }) {
            let rest = [
                ledger.accounts.add(to, 1, amount),
                ledger.history.insert(&[row, transfer.1, to, amount]),
            ];
            let (accounts, history) = (&ledger.accounts, &ledger.history);
            self.note_lost_rows(&[(accounts, transfer.1), (accounts, to), (history, row)]);
            self.complete_before = ledger.complete;
            let ticket = self.core.step(sequence, &rest, Then::Commit);
            self.doing = Doing::Finishing { row, balance: None, ticket };
        } else {
            self.roll_back(sequence, transfer);
        }
    }

    fn finish(&mut self, sequence: u64, transfer: Transfer, balance: Option<i64>, ledger: &Ledger) {
        let ticket = self.finish_transfer(ledger, sequence, transfer);
        self.doing = Doing::Finishing { row: transfer.0, balance, ticket };
    }

    fn roll_back(&mut self, sequence: u64, transfer: Transfer) {
        let ticket = self.core.step(sequence, &[], Then::RollBack);
        self.doing = Doing::RollingBack { row: transfer.0, ticket };
    }

    /// Changes both accounts, which the history must never know of: one of the operations cannot
    /// be done.
    fn stumble(
        &mut self,
        sequence: u64,
        transfer: Transfer,
        balance: Option<i64>,
        ledger: &Ledger,
    ) {
        let (row, from, to, amount) = transfer;
        let mut operations = vec![
            ledger.accounts.add(from, 1, amount),
            ledger.history.insert(&[row, from, to, 0]),
            ledger.accounts.add(to, 1, amount),
        ];
        let at = self.random.below(4) as usize;
        operations
            .insert(at, ledger.accounts.refused(if at.is_multiple_of(2) { from } else { to }, 1));
        let ticket = self.core.step(sequence, &operations, Then::GoOn);
        self.doing = Doing::Stumbling { sequence, transfer, balance, ticket };
    }

    /// STATEMENT-1: the refused request has done nothing, and the transfer goes on.
    fn after_stumbling(
        &mut self,
        sequence: u64,
        transfer: Transfer,
        balance: Option<i64>,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let open = self.core.is_open(sequence);
        match answer {
            // The link may have been lost since the answer came.
            Answer::Failed(_) if self.core.is_lost(sequence) => {}
            Answer::Failed(e) if e.code.ends_transaction() == open => {
                ledger.violate(format!("transfer {}: {e}; still open: {open}", transfer.0));
            }
            Answer::Failed(_) => {}
            other => ledger.violate(format!("transfer {}: not refused: {other:?}", transfer.0)),
        }
        if open {
            ledger.refusals += 1;
            return self.finish(sequence, transfer, balance, ledger);
        }
        ledger.aborts += 1;
        ledger.told.insert(transfer.0, false);
    }

    fn after_transfer(
        &mut self,
        row: i64,
        balance: Option<i64>,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let to_disk = std::mem::take(&mut self.to_disk);
        match answer {
            Answer::Rows { results, committed: Some(receipt) } => {
                if self.is_lost {
                    ledger.violate(format!(
                        "transfer {row} was committed without rows that are lost"
                    ));
                }
                ledger.commits += 1;
                ledger.told.insert(row, true);
                ledger.transfer_epochs.insert(row, receipt.epoch);
                ledger.receipts.insert(row, *receipt);
                match to_disk {
                    true => ledger.note_on_disk(*receipt),
                    false => self.wait_for_disks(*receipt),
                }
                // PROGRAM-2: the update answers with the row that it made.
                let after = results.first().and_then(|r| r.row.as_deref());
                let after = after.map(|r| ledger.balance_in(r));
                if balance.is_some() && !results.is_empty() && after != balance {
                    ledger.violate(format!("transfer {row}: {after:?} instead of {balance:?}"));
                }
                // OUTCOME-9: both accounts, and the row of the history.
                if receipt.changes.is_some_and(|changes| changes != 3) {
                    ledger
                        .violate(format!("transfer {row}: told of {:?} changes", receipt.changes));
                }
                let done = |r: &RowResult| r.outcome == RowOutcome::Done;
                if !results.iter().all(done) {
                    ledger
                        .violate(format!("transfer {row}: an operation was not done: {results:?}"));
                }
            }
            Answer::Failed(e) if e.class() == ErrorClass::UnknownOutcome => {
                ledger.unknown.push(row)
            }
            _ => {
                ledger.aborts += 1;
                ledger.told.insert(row, false);
            }
        }
    }

    /// One goes on now and then only when what it has done is durable (DURABLE-6). The others load disks that are slow or full.
    fn wait_for_disks(&mut self, receipt: Committed) {
        if self.waits_for_disks && self.random.chance(1, 3) {
            let ticket = self.core.wait_until_durable(receipt);
            self.doing = Doing::Waiting { asked: (receipt, None), ticket };
        }
    }

    /// It asks about a transfer from before a blackout as soon as there is anybody to ask, and until it is told.
    pub fn survive(&mut self, row: i64, receipt: Committed) {
        let ticket = self.core.wait_until_durable(receipt);
        self.doing = Doing::Waiting { asked: (receipt, Some(row)), ticket };
    }

    fn after_waiting(&mut self, (receipt, survives): Asked, answer: &Answer, ledger: &mut Ledger) {
        let said = match answer {
            Answer::Epochs { durable, .. } if *durable >= receipt.epoch => Some(true),
            // While a group is lost or silent nobody can say: it is asked again.
            Answer::Failed(e) if e.code == RefCode::MadeVoid => Some(false),
            _ => None,
        };
        if let Some(row) = survives {
            let keeps_nothing =
                matches!(answer, Answer::Epochs { durable, .. } if *durable == Epoch::default());
            return match said {
                _ if keeps_nothing => {
                    ledger.violate(format!("transfer {row}: told that nothing is kept on disks"));
                }
                Some(said) => ledger.heard.push((row, said)),
                None => self.survive(row, receipt),
            };
        }
        match answer {
            Answer::Epochs { durable, .. } if *durable >= receipt.epoch => {
                ledger.note_on_disk(receipt);
            }
            Answer::Failed(e) if e.code == RefCode::MadeVoid => {
                let number = self.number;
                ledger.violate(format!("client {number}: {receipt:?} void without a restart"));
            }
            // A node group is lost, or disks are slow: nothing was promised.
            _ => {}
        }
    }

    fn after_write(register: i64, value: i64, answer: &Answer, ledger: &mut Ledger) {
        let at = register as usize;
        match answer {
            Answer::Rows { committed: Some(receipt), .. } => {
                ledger.commits += 1;
                if receipt.changes.is_some_and(|changes| changes != 1) {
                    ledger.violate(format!("register {register}: {:?} changes", receipt.changes));
                }
                ledger.value_epochs.insert((register, value), receipt.epoch);
                ledger.check_shown((register, value));
                ledger.acknowledged[at] = ledger.acknowledged[at].max(value);
            }
            Answer::Failed(e) if e.class() == ErrorClass::UnknownOutcome => {}
            _ => {
                ledger.aborts += 1;
                ledger.refused[at].push(value);
            }
        }
    }
}
