//! One run: found a cluster, load it, disturb it, let it come to rest, check it.

use crate::{
    archive::Backup,
    checkers,
    clients::{Ledger, SimClient},
    deadlocks::Watch,
    durability,
    faults::{self, Menu},
    network::End,
    outcome::{Counts, Outcome},
    planted::Planted,
    scenarios,
    world::{CRASH_POINT, Event, ForClient, World},
};
use lats_base::{Duration, Instant, NodeId, ViewNumber, prng::Prng};
use lats_client::core::{Answer, Then};
use lats_kernel::Faults;

mod blackout;
mod closing;
mod draw;
mod outage;
mod silence;
mod strikes;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Decides everything else.
    pub seed: u64,
    /// A planted bug that some checker must find.
    pub bug: Option<&'static Planted>,
    /// Which runs.
    pub kind: Kind,
    /// Print what happens.
    pub verbose: bool,
}

/// Which runs there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// All shapes; a few faults, now and then many.
    #[default]
    Mixed,
    /// Long storms of faults.
    Storm,
    /// Two node groups, one of which is lost soon.
    Outage,
    /// Two node groups, which die at once soon.
    Blackout,
    /// All nodes are told to end soon.
    Closing,
    /// Any set of nodes fails at any instant, but for one full replica of each group.
    AnySet,
    /// A scenario: what happens is written down, only delays are drawn.
    Scenario(&'static str),
}

impl Kind {
    /// What chooses it on the command line.
    pub fn option(self) -> String {
        match self {
            Self::Mixed => String::new(),
            Self::Storm => " --storm".to_string(),
            Self::Outage => " --outage".to_string(),
            Self::Blackout => " --blackout".to_string(),
            Self::Closing => " --closing".to_string(),
            Self::AnySet => " --any-set".to_string(),
            Self::Scenario(name) => format!(" --scenario {name}"),
        }
    }
}

pub(crate) struct Run {
    pub(crate) world: World,
    pub(crate) clients: Vec<SimClient>,
    pub(crate) ledger: Ledger,
    verbose: bool,
    kind: Kind,
    failovers_us: Vec<u64>,
    watch: Watch,
    /// The hand-over that is under way: its view, its group, and who is to be primary of its slots.
    moving: Option<(ViewNumber, usize, Vec<NodeId>)>,
    hand_overs: (u64, u64),
    /// What sleeping clients have not read.
    unread: Vec<ForClient>,
    /// Ends of connections that clients have not read yet.
    ended_asleep: Vec<(u32, NodeId)>,
    /// All nodes are dead.
    dark: Option<durability::Dark>,
    /// The newest backup, and how often what archives tell on top of it was all that there was.
    backup: Option<Backup>,
    restores: u64,
}

/// The table ids that a new cluster gives first.
pub(crate) const FIRST_TABLE: u32 = 2;
/// How long a cluster may take to become whole after the last fault, in virtual ms.
const HEAL_MS: u64 = 30_000;

/// Disturbances that are drawn for a storm. Some are of kinds that the run does not have.
const STORM: u64 = 300;

/// Runs a seed.
pub fn run(options: &Options) -> Outcome {
    if let Kind::Scenario(name) = options.kind {
        return scenarios::play(name, options);
    }
    let mut random = Prng::new(options.seed);
    let mut shape = draw::shape(&mut random);
    if matches!(options.kind, Kind::Outage | Kind::Blackout) {
        (shape.data_nodes, shape.replicas) = (4, 2);
    }
    let mut crash_points = draw::crash_points(&mut random);
    if options.kind == Kind::AnySet {
        // Nobody dies but those that are struck: a full replica of each group lives.
        crash_points = Faults::default();
    }
    let mut bugs = Faults::default();
    if let Some(Planted { fault, once_in, death, .. }) = options.bug {
        // Nodes must die at the right moment for some planted bugs to show.
        death.iter().for_each(|(point, once_in)| crash_points.arm(*point, *once_in));
        bugs.arm(*fault, *once_in);
        crash_points.arm(*fault, *once_in);
    }
    let mut world = World::new(&shape, random.next_u64(), bugs);
    world.crash_points = crash_points;
    world.disk_ways = draw::disk_ways(&mut random.clone());
    let client_count = random.between(2, 6) as u32;
    world.client_count = client_count;
    let leisure = draw::leisure(&mut random, options.kind == Kind::Storm);
    let clients = draw::clients(&mut world, &shape, leisure, &mut random);
    let ledger = Ledger::new(FIRST_TABLE, random.between(4, 30) as i64, client_count.into());
    let mut run = Run::new(world, clients, ledger, options);
    run.say(&format!("{shape:?}"));
    let ended = run.go(&mut random);
    run.outcome(ended)
}

/// Runs a seed; a panic inside a node is a failure of the run.
pub fn run_caught(options: &Options) -> Outcome {
    std::panic::catch_unwind(|| run(options)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
        let failure = format!("panic: {}", text.unwrap_or_default());
        Outcome { failure: Some(failure), ..Outcome::default() }
    })
}

impl Run {
    pub(crate) fn new(
        world: World,
        clients: Vec<SimClient>,
        ledger: Ledger,
        options: &Options,
    ) -> Self {
        Self {
            world,
            clients,
            ledger,
            verbose: options.verbose,
            kind: options.kind,
            failovers_us: Vec::new(),
            watch: Watch::default(),
            moving: None,
            hand_overs: (0, 0),
            unread: Vec::new(),
            ended_asleep: Vec::new(),
            dark: None,
            backup: None,
            restores: 0,
        }
    }

    pub(crate) fn outcome(self, ended: Result<(), String>) -> Outcome {
        let counts = Counts {
            runs: 1,
            signals: self.world.delivered,
            commits: self.ledger.commits,
            aborts: self.ledger.aborts,
            reads: self.ledger.reads,
            refusals: self.ledger.refusals,
            snapshots: self.ledger.snapshots,
            restores: self.restores,
            waits: self.ledger.waits,
            index_changes: self.ledger.index_changes,
            hand_overs: self.hand_overs,
            unknown: self.ledger.unknown.len() as u64,
            views: checkers::newest_view(&self.world)
                .map_or(0, |v| v.number.get().saturating_sub(1)),
            virtual_ms: self.world.now.as_nanos() / 1_000_000,
            failovers_us: self.failovers_us,
            deadlock_victims: self.watch.victims,
            deadlocks_us: self.watch.lasted_us,
            faults: self.world.tally,
        };
        let violation = self.ledger.violations.first().cloned();
        Outcome { failure: ended.err().or(violation), digest: self.world.digest, counts }
    }

    /// Clients find the cluster and make their tables.
    pub(crate) fn found(&mut self) -> Result<(), String> {
        self.connect_clients();
        self.wait_for_clients()?;
        self.create_tables(1_000)?;
        self.fill_accounts()
    }

    fn go(&mut self, random: &mut Prng) -> Result<(), String> {
        self.found()?;
        for number in 1..=self.clients.len() as u32 {
            self.world.at(Duration::from_millis(1), Event::Client(number));
        }
        self.clients.iter_mut().for_each(|c| c.stopped = false);
        if self.kind == Kind::AnySet {
            self.strike(random)?;
            self.heal();
            self.come_to_rest()?;
            return self.check_all();
        }
        let menu = Menu::draw(random);
        let count = match self.kind {
            Kind::Mixed => faults::draw_count(random),
            Kind::Storm => STORM,
            Kind::Outage | Kind::Blackout | Kind::Closing | Kind::AnySet | Kind::Scenario(_) => 1,
        };
        let length_ms = faults::plan(&mut self.world, menu, count, random);
        self.run_and_check_disks(Duration::from_millis(length_ms + 300), &mut random.clone())?;
        self.heal();
        self.come_to_rest()?;
        self.check_all()?;
        if self.kind == Kind::Closing {
            return self.close_and_come_back(random);
        }
        // Its own numbers: what follows is the same for a seed with it and without.
        if self.silence_a_group(&mut random.clone())? {
            return Ok(());
        }
        let has_several = checkers::newest_view(&self.world).is_some_and(|v| v.groups.len() > 1);
        let loses_one = match self.kind {
            Kind::Mixed | Kind::Storm | Kind::Scenario(_) => random.clone().chance(1, 2),
            Kind::Outage => true,
            Kind::Blackout | Kind::Closing | Kind::AnySet => false,
        };
        match has_several && loses_one {
            true => self.lose_a_group(random),
            false => self.black_out(random),
        }
    }

    /// Without all node groups nothing becomes durable: commits wait for no disks from now on.
    fn commit_replicated(&mut self) -> Result<(), String> {
        self.clients.iter_mut().for_each(|client| client.changes_durability = false);
        if !checkers::newest_view(&self.world).is_some_and(|view| view.config.to_disk) {
            return Ok(());
        }
        self.clients[0].commit_replicated();
        self.flush(0);
        let end = self.world.now.plus(Duration::from_millis(20_000));
        while self.clients.iter().any(|c| c.commits_to_disk() || !c.is_idle()) {
            if self.world.now > end {
                return Err("a client still commits to disk".to_string());
            }
            self.run_for(Duration::from_millis(1))?;
        }
        Ok(())
    }

    /// Now and then it is looked at what a loss of all power would leave.
    fn run_and_check_disks(&mut self, span: Duration, random: &mut Prng) -> Result<(), String> {
        let end = self.world.now.plus(span);
        while self.world.now < end {
            let pause = Duration::from_nanos(random.between(1_000_000, span.as_nanos() / 4));
            let next = self.world.now.plus(pause).min(end);
            while self.world.now < next {
                let step = self.world.now.plus(Duration::from_millis(5));
                self.run_until(step.min(next))?;
                durability::backlog_is_bounded(&self.world)?;
            }
            durability::survives_power_loss(&self.world, &self.ledger, random)?;
            self.back_up()?;
        }
        Ok(())
    }

    /// Now and then there is a new backup.
    fn back_up(&mut self) -> Result<(), String> {
        let mut random = Prng::new(self.world.digest);
        if self.world.archives && random.chance(1, 2) {
            self.backup = Backup::take(&self.world, &mut random)?.or(self.backup.take());
        }
        Ok(())
    }

    /// In peace everything becomes durable.
    fn wait_for_disks(&mut self) -> Result<(), String> {
        let end = self.world.now.plus(Duration::from_millis(5_000));
        while !durability::all_is_durable(&self.world) && self.world.now < end {
            self.run_for(Duration::from_millis(20))?;
        }
        let mut random = Prng::new(self.world.digest);
        durability::survives_power_loss(&self.world, &self.ledger, &mut random)?;
        durability::disks_match_memory(&self.world, &mut random)?;
        if let Some(backup) = &self.backup {
            self.restores += u64::from(backup.restores(&self.world, &mut random)?);
        }
        Ok(())
    }

    pub(crate) fn check_all(&mut self) -> Result<(), String> {
        checkers::nothing_left(&self.world)?;
        checkers::epochs_move(&self.world)?;
        checkers::replicas_equal(&self.world)?;
        checkers::indexes_match(&self.world)?;
        checkers::unique_indexes_match(&self.world)?;
        checkers::ledger_holds(&self.world, &self.ledger)?;
        self.wait_for_disks()?;
        checkers::lists_hold(&self.world, &mut self.ledger)
    }

    pub(crate) fn say(&self, what: &str) {
        #[expect(clippy::print_stdout, reason = "the verbose mode of a command-line tool")]
        if self.verbose {
            println!("{:>10} us  {what}", self.world.now.as_nanos() / 1_000);
        }
    }

    fn connect_clients(&mut self) {
        let nodes: Vec<NodeId> = self.data_nodes();
        for number in 1..=self.clients.len() as u32 {
            for node in &nodes {
                let link = Event::Connect(End::Client(number), End::Node(*node));
                self.world.at(Duration::ZERO, link);
            }
        }
    }

    fn data_nodes(&self) -> Vec<NodeId> {
        let data = self.world.nodes.iter().filter(|(_, n)| n.config.holds_data);
        data.map(|(id, _)| *id).collect()
    }

    /// Runs until a client's request is answered.
    fn wait_for(&mut self, client: usize, ticket: u64) -> Result<Answer, String> {
        let end = self.world.now.plus(Duration::from_millis(20_000));
        while self.world.now < end {
            let step = self.world.now.plus(Duration::from_millis(1));
            self.run_until(step)?;
            let now = self.world.now;
            self.clients[client].core.tick(now);
            self.flush(client);
            while let Some((answered, answer)) = self.clients[client].core.next_answer() {
                if answered == ticket {
                    return Ok(answer);
                }
            }
        }
        Err(format!("request {ticket} was not answered: {}", self.clients[client].describe()))
    }

    fn wait_for_clients(&mut self) -> Result<(), String> {
        let end = self.world.now.plus(Duration::from_millis(20_000));
        while !self.clients[0].core.is_ready() {
            let step = self.world.now.plus(Duration::from_millis(1));
            self.run_until(step)?;
            if self.world.now > end {
                return Err("the cluster does not get going".to_string());
            }
        }
        Ok(())
    }

    /// `first`: the number of the first of these changes.
    fn create_tables(&mut self, first: u64) -> Result<(), String> {
        let creations = [
            self.ledger.accounts.creation(),
            self.ledger.history.creation(),
            self.ledger.registers.creation(),
            self.ledger.badges.table.creation(),
            self.ledger.passes.creation(),
            self.ledger.lists.table.creation(),
        ];
        for (number, creation) in creations.into_iter().enumerate() {
            let ticket = self.clients[0].core.change(first + number as u64, creation);
            self.flush(0);
            match self.wait_for(0, ticket)? {
                Answer::Changed(Ok(_)) => {}
                other => return Err(format!("CREATE TABLE: {other:?}")),
            }
        }
        for client in 0..self.clients.len() {
            let ticket = self.clients[client].core.fetch_catalog();
            self.flush(client);
            self.wait_for(client, ticket)?;
        }
        Ok(())
    }

    fn fill_accounts(&mut self) -> Result<(), String> {
        for _ in 0..200 {
            let count = self.ledger.account_count;
            let inserts: Vec<_> =
                (0..count).map(|id| self.ledger.accounts.write(&[id, 0])).collect();
            let core = &mut self.clients[0].core;
            let sequence = core.begin();
            let ticket = core.step(sequence, &inserts, Then::Commit);
            self.flush(0);
            if let Answer::Rows { committed: Some(_), .. } = self.wait_for(0, ticket)? {
                return Ok(());
            }
        }
        Err("the accounts could not be filled".to_string())
    }

    fn run_for(&mut self, span: Duration) -> Result<(), String> {
        let end = self.world.now.plus(span);
        self.run_until(end)
    }

    pub(crate) fn run_until(&mut self, end: Instant) -> Result<(), String> {
        while let Some(event) = self.world.next_event(end) {
            let commits = self.ledger.commits;
            // What has stood until now: a circle may come about in one event and be found in the next.
            self.watch.look(&self.world)?;
            self.happen(event);
            self.world.check_late()?;
            for (node, text) in std::mem::take(&mut self.world.notes) {
                self.say(&format!("node {node}: {text}"));
            }
            while let Some((node, why)) = self.world.stops.pop() {
                if why == CRASH_POINT {
                    self.world.tally.note("crash point");
                }
                self.say(&format!("node {node} is down: {why}"));
            }
            self.serve_clients();
            while let Some(text) = self.ledger.victims.pop() {
                self.watch.check_victim(&text)?;
            }
            if self.ledger.commits > commits
                && let Some(killed_at) = self.world.killed_at.take()
            {
                self.failovers_us.push(self.world.now.since(killed_at).as_nanos() / 1_000);
            }
            if let Some(violation) = self.ledger.violations.first() {
                return Err(violation.clone());
            }
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        match self.world.dispatch(event) {
            Some(Event::Client(number)) => self.let_client_act(number),
            Some(Event::Disturb(disturbance)) if self.world.disturb(disturbance) => {
                self.world.note(disturbance);
                self.say(&format!("{disturbance:?}"));
            }
            _ => {}
        }
    }

    fn let_client_act(&mut self, number: u32) {
        let index = number as usize - 1;
        self.note_complete();
        if let Some(until) = self.world.asleep.get(&number).filter(|_| self.world.sleeps(number)) {
            return self.world.at(until.since(self.world.now), Event::Client(number));
        }
        let Some(client) = self.clients.get_mut(index) else { return };
        client.act(self.world.now, &mut self.ledger);
        let pause = client.pause();
        self.flush(index);
        self.world.at(pause, Event::Client(number));
    }

    /// What any node calls complete must stay so.
    fn note_complete(&mut self) {
        let complete = checkers::complete_epoch(&self.world);
        self.ledger.complete = self.ledger.complete.max(complete);
        self.note_hand_overs();
    }

    /// Counts them, as far as one is seen between two looks.
    fn note_hand_overs(&mut self) {
        let Some(view) = checkers::newest_view(&self.world) else { return };
        if let Some((number, group, next)) = self.moving.take() {
            if number == view.number {
                self.moving = Some((number, group, next));
                return;
            }
            match view.groups.get(group).is_some_and(|g| g.primaries == next) {
                true => self.hand_overs.0 += 1,
                false => self.hand_overs.1 += 1,
            }
        }
        let moving = view.groups.iter().enumerate().find(|(_, g)| !g.next.is_empty());
        self.moving = moving.map(|(at, group)| (view.number, at, group.next.clone()));
    }

    pub(crate) fn flush(&mut self, index: usize) {
        let number = self.clients[index].number;
        let mut outgoing = std::mem::take(self.clients[index].core.outgoing());
        while let Some(signal) = outgoing.pop() {
            let to = signal.header.receiver.node;
            // It writes into a connection that has ended while it slept: only when it has read so does it make another one.
            if self.ended_asleep.contains(&(number, to)) {
                continue;
            }
            self.world.transmit(End::Client(number), End::Node(to), signal.bytes());
        }
        // The client has heard nothing from there for long.
        while let Some(node) = self.clients[index].core.next_to_close() {
            self.world.disconnect(End::Client(number), End::Node(node));
        }
    }

    /// Gives clients their packets and news of links.
    fn serve_clients(&mut self) {
        if !self.world.for_clients.is_empty() {
            self.note_complete();
        }
        // What a sleeping client has not read comes before what is new.
        let mut all = std::mem::take(&mut self.unread);
        all.append(&mut self.world.for_clients);
        let downs = all.iter().filter_map(|news| match news {
            ForClient::Down(client, node) => Some((*client, *node)),
            _ => None,
        });
        self.ended_asleep = downs.collect();
        for news in all {
            let number = match &news {
                ForClient::Packet(n, _) | ForClient::Up(n, _) | ForClient::Down(n, _) => *n,
            };
            if self.world.sleeps(number) {
                self.keep_unread(news);
                continue;
            }
            let index = number as usize - 1;
            let Some(client) = self.clients.get_mut(index) else { continue };
            let core = &mut client.core;
            core.set_time(self.world.now);
            match news {
                ForClient::Up(_, node) => core.link_up(node),
                ForClient::Down(_, node) => {
                    core.link_down(node);
                    let read = self.ended_asleep.iter().position(|end| *end == (number, node));
                    read.map(|at| self.ended_asleep.swap_remove(at));
                }
                ForClient::Packet(_, packet) => {
                    if let Ok(Some(signal)) = lats_signals::buffer::parse(&packet) {
                        core.receive(&signal);
                    }
                }
            }
            // Some go on at once, so that what they do next meets what they did before.
            if client.is_eager() {
                client.act(self.world.now, &mut self.ledger);
            }
            self.flush(index);
        }
    }

    /// What a sleeping client will read when it is awake. A connection that is reset may take with it what was not read.
    fn keep_unread(&mut self, news: ForClient) {
        if let ForClient::Down(client, node) = news
            && self.world.digest.is_multiple_of(2)
        {
            let is_lost = |unread: &ForClient| match unread {
                ForClient::Packet(of, packet) if *of == client => {
                    lats_signals::buffer::parse(packet)
                        .is_ok_and(|signal| signal.is_some_and(|s| s.sender().node == node))
                }
                _ => false,
            };
            self.unread.retain(|unread| !is_lost(unread));
        }
        self.unread.push(news);
    }

    /// The end of all faults: dead nodes start again, links are whole, nothing more is armed.
    pub(crate) fn heal(&mut self) {
        self.say("faults end");
        self.world.calm = true;
        let ids: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        for node in self.world.nodes.values_mut() {
            node.paused_until = Instant::ZERO;
            node.stuck.until = Instant::ZERO;
            node.slow_until = Instant::ZERO;
            node.busy.end(self.world.now);
        }
        let nodes = ids.iter().map(|n| End::Node(*n));
        let clients = self.clients.iter().map(|c| End::Client(c.number));
        let ends: Vec<End> = nodes.chain(clients).collect();
        for (at, a) in ends.iter().enumerate() {
            for b in &ends[at + 1..] {
                self.world.disturb(faults::Disturbance::Heal(*a, *b));
            }
        }
        self.clients.iter_mut().for_each(|c| c.stopped = true);
    }

    fn describe_nodes(&self) {
        for (id, node) in &self.world.nodes {
            let control = checkers::control(node).map(|c| c.describe());
            self.say(&format!("node {id}: {}", control.unwrap_or_else(|| "dead".to_string())));
        }
    }

    /// Primaries are spread again when a node is back: the last view of that may be on its way.
    fn let_a_view_end(&mut self) -> Result<(), String> {
        let end = self.world.now.plus(Duration::from_millis(500));
        while checkers::nothing_left(&self.world).is_err() && self.world.now < end {
            self.run_for(Duration::from_millis(10))?;
        }
        Ok(())
    }

    /// Runs until the cluster is whole and the clients have all their answers.
    pub(crate) fn come_to_rest(&mut self) -> Result<(), String> {
        let end = self.world.now.plus(Duration::from_millis(HEAL_MS));
        let mut state = Err("not looked at".to_string());
        while self.world.now < end {
            self.run_for(Duration::from_millis(200))?;
            state = checkers::whole(&self.world);
            if let Some(busy) = self.clients.iter().find(|c| !c.is_idle()) {
                state = Err(busy.describe());
            }
            if state.is_ok() {
                self.world.asleep.clear();
                // Long enough for versions that were kept for snapshots to be let go.
                self.run_for(Duration::from_millis(3_000))?;
                return self.let_a_view_end();
            }
        }
        self.describe_nodes();
        let left = checkers::nothing_left(&self.world).err().unwrap_or_default();
        state.map_err(|why| format!("{HEAL_MS} ms after the last fault: {why}; {left}"))
    }
}
