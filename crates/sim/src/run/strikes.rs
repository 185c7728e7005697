//! Any set of nodes may fail at any instant: they die, stand still, get little processor time, or are cut off from the others, some of them in
//! more ways than one.
//! Only one full replica of each group is left alive each time. Judged: all becomes whole when machines and cables are back, clients are
//! served then, nothing acknowledged is lost, and no row is taken from disks (rules E and R; `docs/protocols/reform.md`).

use super::{HEAL_MS, Run};
use crate::{checkers, clients::SimClient, faults::Disturbance, network::End, world::Event};
use lats_base::{Duration, NodeId, prng::Prng};
use lats_client::core::Ticket;

/// How many strikes there are in a run, at most.
const STRIKES_MAX: u64 = 6;
/// How long nodes are cut off, or stand still, at most, in ms: mostly for less than a lease, now and then for many.
const LONGEST_MS: [u64; 4] = [250, 700, 2_500, 9_000];
/// From the first blow of a strike to the last one, at most, in ms.
const APART_MS: [u64; 4] = [0, 3, 50, 600];
/// So many numbers draw a way to be struck.
const WAYS: u64 = 7;
/// Clients commit something in this time when all is whole.
const SERVED: Duration = Duration::from_millis(1_500);

/// Whatever was asked before is answered in this time.
const ANSWERED: Duration = Duration::from_millis(10_000);

/// What happens to a node.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// Its process dies, and starts again after so many ms.
    Death(u64),
    /// It stands still for so many ms.
    Pause(u64),
    /// Nobody of the other side hears it for so many ms, nor is heard by it; connections end, too, or they do not.
    Cut(u64, bool),
    /// Its connections end.
    Reset,
    /// It gets little processor time for so many ms.
    Slow(u64),
    /// Its threads do nothing for so many ms, but for the one of control.
    Busy(u64),
}

impl Run {
    /// Strikes again and again.
    pub(super) fn strike(&mut self, random: &mut Prng) -> Result<(), String> {
        let restarts = checkers::restarts(&self.world);
        for _ in 0..random.between(1, STRIKES_MAX) {
            self.run_for(Duration::from_millis(random.between(20, 600)))?;
            self.strike_once(random)?;
            let asked: Vec<Option<Ticket>> = self.clients.iter().map(SimClient::awaits).collect();
            // Nobody becomes whole, and no definition is written, on disks that fail or are full again and again.
            let ways = &mut self.world.disk_ways;
            let (fails, fills) =
                (std::mem::take(&mut ways.fails_once_in), std::mem::take(&mut ways.full_once_in));
            let judged = self.judge(&asked);
            let ways = &mut self.world.disk_ways;
            (ways.fails_once_in, ways.full_once_in) = (fails, fills);
            judged?;
        }
        if checkers::restarts(&self.world) != restarts {
            return Err(
                "rows were taken from disks, though each group had a living full replica".into()
            );
        }
        Ok(())
    }

    fn strike_once(&mut self, random: &mut Prng) -> Result<(), String> {
        let nodes: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let (struck, others): (Vec<NodeId>, Vec<NodeId>) =
            nodes.into_iter().partition(|_| random.chance(1, 2));
        let mixed = random.chance(1, 3);
        let (way, longest) = (random.below(WAYS), LONGEST_MS[random.below(4) as usize]);
        let apart_ms = APART_MS[random.below(4) as usize];
        let mut blows: Vec<(u64, NodeId, Blow)> = Vec::new();
        for node in &struck {
            for _ in 0..=u64::from(mixed && random.chance(1, 2)) {
                let way = if mixed { random.below(WAYS) } else { way };
                let at_ms = random.between(0, apart_ms);
                blows.push((at_ms, *node, draw(way, longest, random)));
            }
        }
        if random.chance(1, 4) {
            // A machine that all of them share has too much to do.
            let slow_ms = apart_ms + random.between(1, longest);
            blows.extend(struck.iter().chain(&others).map(|node| (0, *node, Blow::Slow(slow_ms))));
        }
        blows.sort_by_key(|(at_ms, ..)| *at_ms);
        self.say(&format!("strike at {struck:?}: {blows:?}"));
        let mut now_ms = 0;
        for (at_ms, node, blow) in blows {
            self.run_for(Duration::from_millis(at_ms - now_ms))?;
            now_ms = at_ms;
            self.blow(node, blow, &others);
        }
        self.run_for(Duration::from_millis(random.between(1, longest)))
    }

    fn blow(&mut self, node: NodeId, blow: Blow, others: &[NodeId]) {
        match blow {
            Blow::Death(down_ms) => {
                if !self.may_die(node) {
                    return;
                }
                self.world.tally.note("struck: death");
                self.world.note_unrest();
                self.world.kill(node);
                let back = Event::Disturb(Disturbance::Restart(node));
                self.world.at(Duration::from_millis(down_ms), back);
            }
            Blow::Pause(ms) => {
                self.world.tally.note("struck: pause");
                self.world.note_unrest();
                self.world.pause(node, Duration::from_millis(ms));
            }
            Blow::Cut(ms, ends) => {
                self.world.tally.note("struck: cut");
                self.world.note_unrest();
                for other in others {
                    let pair = (End::Node(node), End::Node(*other));
                    if ends {
                        self.world.disconnect(pair.0, pair.1);
                    }
                    self.world.cut(pair.0, pair.1, true, ms);
                }
            }
            Blow::Reset => {
                self.world.tally.note("struck: resets");
                for other in others {
                    self.world.disconnect(End::Node(node), End::Node(*other));
                }
            }
            Blow::Slow(ms) => {
                self.world.tally.note("struck: slow process");
                self.world.note_unrest();
                self.world.starve(node, Duration::from_millis(ms));
            }
            Blow::Busy(ms) => {
                self.world.tally.note("struck: busy threads");
                self.world.keep_busy(node, Duration::from_millis(ms));
            }
        }
    }

    /// True if each group has another full replica that lives.
    fn may_die(&self, node: NodeId) -> bool {
        let Some(view) = checkers::newest_view(&self.world) else { return false };
        let lives = |other: &NodeId| {
            self.world.nodes.get(other).is_some_and(|n| {
                n.is_alive() && view.is_alive(*other, n.life()) && view.is_in_sync(*other)
            })
        };
        let of = |nodes: &[NodeId]| nodes.iter().any(|other| *other != node && lives(other));
        view.groups.iter().all(|group| !group.nodes.contains(&node) || of(&group.nodes))
    }

    fn judge(&mut self, asked: &[Option<Ticket>]) -> Result<(), String> {
        self.become_whole()?;
        self.check_service()?;
        self.check_answers(asked)
    }

    /// Machines and cables come back by themselves; then the cluster must be whole.
    fn become_whole(&mut self) -> Result<(), String> {
        let end = self.world.now.plus(Duration::from_millis(2 * HEAL_MS));
        let mut state = Err("not looked at".to_string());
        while self.world.now < end {
            self.run_for(Duration::from_millis(50))?;
            state = checkers::whole(&self.world);
            // Cables may be out still, without anybody having noticed.
            if state.is_ok() && self.world.is_whole() {
                return Ok(());
            }
        }
        self.describe_nodes();
        state.map_err(|why| format!("{} ms after a strike: {why}", 2 * HEAL_MS))
    }

    /// What was asked before all was whole is answered, with a refusal at least.
    fn check_answers(&mut self, asked: &[Option<Ticket>]) -> Result<(), String> {
        let end = self.world.now.plus(ANSWERED);
        loop {
            let open = |(client, asked): (&SimClient, &Option<Ticket>)| {
                (asked.is_some() && client.awaits() == *asked).then(|| client.describe())
            };
            let waits: Vec<String> = self.clients.iter().zip(asked).filter_map(open).collect();
            if waits.is_empty() {
                return Ok(());
            }
            if self.world.now >= end {
                return Err(format!(
                    "{ANSWERED:?} after all is whole nobody has answered: {waits:?}"
                ));
            }
            self.run_for(Duration::from_millis(20))?;
        }
    }

    /// Somebody commits something.
    fn check_service(&mut self) -> Result<(), String> {
        let commits = self.ledger.commits;
        let end = self.world.now.plus(SERVED);
        while self.world.now < end {
            self.run_for(Duration::from_millis(10))?;
            if self.ledger.commits > commits {
                return Ok(());
            }
        }
        let clients: Vec<String> = self.clients.iter().map(|c| c.describe()).collect();
        Err(format!("all is whole, and nothing was committed in {SERVED:?}: {clients:?}"))
    }
}

fn draw(way: u64, longest: u64, random: &mut Prng) -> Blow {
    match way {
        0 | 1 => Blow::Death(random.between(1, longest.max(600))),
        2 => Blow::Pause(random.between(5, longest)),
        3 => Blow::Cut(random.between(5, longest), random.chance(1, 2)),
        4 => Blow::Slow(random.between(5, longest)),
        5 => Blow::Busy(random.between(5, longest)),
        _ => Blow::Reset,
    }
}
