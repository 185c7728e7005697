//! The course of events: waits for a whole and calm cluster, strikes a node, watches what the others say, and has the node come back.

use super::{
    figures::{Event, Sight, What, ms},
    logs::{self, Life},
    scene::{Blow, Scene, Seen},
};
use anyhow::{Context, bail};
use lats_base::{Duration, Instant, NodeId, prng::Prng};
use lats_client::net::Client;
use std::collections::BTreeMap;

/// How long the cluster may take for what must come about.
const PATIENCE: Duration = Duration::from_millis(120_000);
/// How long the others may take to agree on a view without a node.
const AGREED: Duration = Duration::from_millis(10_000);
/// A node that was away so shortly that it was not removed is watched so long.
const STAYS: Duration = Duration::from_millis(1_000);
/// What a status shows is in the log within this.
const LOGGED: Duration = Duration::from_millis(500);
/// Between two questions to a node.
const ASK_AGAIN: std::time::Duration = std::time::Duration::from_millis(1);
const ANSWER: std::time::Duration = std::time::Duration::from_millis(200);
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);

/// Who has it all happen.
pub(super) struct Course<'s> {
    pub(super) scene: &'s mut dyn Scene,
    /// A client that asks for the state, and nothing else.
    pub(super) client: Client,
    pub(super) clock: fn() -> Instant,
    pub(super) random: Prng,
    pub(super) calm: Duration,
    pub(super) away: Duration,
    pub(super) lasts: Duration,
    /// When the load began, and when all was whole last after something had happened.
    pub(super) begun: Instant,
    pub(super) whole_at: Instant,
}

/// When something began, by all the clocks that it is measured with.
#[derive(Clone, Copy)]
struct Origin {
    at: Instant,
    wall_us: i64,
    /// How long the log was.
    logged: u64,
}

impl Origin {
    /// What the log shows of it.
    fn logged(self, at_us: i64, from: &str) -> Sight {
        let from = format!("log, by the time of the first line: {from}");
        Sight { ms: (at_us - self.wall_us) as f64 / 1_000.0, not_yet_ms: None, from }
    }
}

/// What the others have said of a node, when they were asked for their status.
#[derive(Default)]
struct Said {
    silent: Option<Sight>,
    removed: Option<Sight>,
    view: Option<u64>,
    asked: Asked,
}

/// When each node was asked last that has answered, in ms after an event.
#[derive(Default)]
struct Asked(BTreeMap<u16, f64>);

impl Asked {
    /// The node shows something, and did not when it was asked last.
    fn sight(&self, node: u16, ms: f64, what: &str) -> Sight {
        let from = format!("status of node {node}: {what}");
        Sight { ms, not_yet_ms: self.0.get(&node).copied(), from }
    }
}

impl Course<'_> {
    /// The next event, at a drawn time or at one that was asked for, and the rejoin after it if there is one.
    pub(super) async fn next(
        &mut self,
        what: What,
        planned_s: Option<f64>,
    ) -> anyhow::Result<Vec<Event>> {
        let calm_ns = self.calm.as_nanos();
        let drawn = Duration::from_nanos(self.random.between(calm_ns, 2 * calm_ns));
        let seen = self.calm(planned_s, drawn).await?;
        let members = seen.lives();
        let victim = members.get(self.random.below(members.len().max(1) as u64) as usize);
        let victim = *victim.context("there is no data node")?;
        let others = members.into_iter().map(|(node, _)| node).filter(|node| *node != victim.0);
        let others: Vec<u16> = others.collect();
        let (mut event, is_removed) = self.strike(what, victim, &others).await?;
        event.planned_s = planned_s;
        if !is_removed {
            self.whole_at = (self.clock)();
            return Ok(vec![event]);
        }
        let rejoin = self.rejoin(victim, &others).await?;
        event.until = rejoin.at;
        self.wait_whole().await?;
        self.whole_at = (self.clock)();
        Ok(vec![event, rejoin])
    }

    /// Waits for the moment of the next event. What goes away by itself meanwhile must be back, and then it is waited as long again.
    async fn calm(&mut self, planned_s: Option<f64>, drawn: Duration) -> anyhow::Result<Seen> {
        loop {
            let before = self.wait_whole().await?;
            let at = match planned_s {
                Some(seconds) => self.begun.plus(Duration::from_nanos((seconds * 1e9) as u64)),
                None => self.whole_at.plus(drawn),
            };
            self.wait_for(at).await;
            let now = self.wait_whole().await?;
            if now.lives() == before.lives() {
                return Ok(now);
            }
            self.whole_at = (self.clock)();
        }
    }

    fn origin(&self) -> anyhow::Result<Origin> {
        let ground = self.scene.ground();
        let logged = ground.log_length()?;
        Ok(Origin { at: (self.clock)(), wall_us: (ground.wall_us)(), logged })
    }

    async fn strike(
        &mut self,
        what: What,
        victim: Life,
        others: &[u16],
    ) -> anyhow::Result<(Event, bool)> {
        let (blow, mend) = match what {
            What::Kill | What::Rejoin => (Blow::Kill, None),
            What::Freeze => (Blow::Freeze, Some(Blow::Thaw)),
            What::Silent => (Blow::Cut, Some(Blow::Heal)),
        };
        let node = victim.0;
        self.scene.aim(node)?;
        let mut origin = self.origin()?;
        self.scene.strike(node, blow)?;
        if blow == Blow::Cut {
            // It takes some ms, in which clients still get on.
            origin = self.origin()?;
        }
        let at = origin.at;
        let mut said = Said::default();
        let mut lasted_ms = None;
        if let Some(mend) = mend {
            let end = at.plus(self.lasts);
            self.watch(victim, others, (at, end), &mut said).await;
            self.wait_for(end).await;
            self.scene.strike(node, mend)?;
            lasted_ms = Some(ms((self.clock)().since(at)));
            self.watch(victim, others, (at, end.plus(STAYS)), &mut said).await;
            self.settle(victim, others, at, &mut said).await?;
            if said.removed.is_some() {
                self.wait_for(end.plus(self.away)).await;
            }
        } else {
            self.watch(victim, others, (at, at.plus(AGREED)), &mut said).await;
            if said.removed.is_none() {
                bail!(
                    "the others have not agreed on a view without node {node}, {} s after it was killed; see {}",
                    AGREED.as_millis() / 1_000,
                    self.scene.ground().log.display()
                );
            }
            self.wait_for(at.plus(self.away)).await;
        }
        let is_removed = said.removed.is_some();
        let (detected, agreed, view) = self.sights_of_removal(origin, victim, said).await?;
        let until = (self.clock)();
        let planned_s = None;
        let event = Event { what, node, at, until, planned_s, detected, agreed, view, lasted_ms };
        Ok((event, is_removed))
    }

    /// When it was decided to go on without a node, when the others did, and by which view: from the log, and from what they said if that is
    /// silent.
    async fn sights_of_removal(
        &self,
        origin: Origin,
        victim: Life,
        said: Said,
    ) -> anyhow::Result<(Option<Sight>, Option<Sight>, Option<u64>)> {
        let Said { silent, removed, view, .. } = said;
        if removed.is_none() {
            return Ok((silent, None, None));
        }
        let both = |log: &str| {
            let decided = logs::removal(log, victim, origin.wall_us);
            let decided = decided.map(|(at, why)| {
                origin.logged(at, &format!("the cluster is to go on without it: {why}"))
            });
            let without = logs::view_without(log, victim, origin.wall_us);
            let without = without.map(|(at, number)| {
                (origin.logged(at, &format!("view {number}, in which it is no member")), number)
            });
            (decided, without)
        };
        let is_all = |found: &(Option<_>, Option<_>)| found.0.is_some() && found.1.is_some();
        let (decided, without) = self.search(origin, both, is_all).await?;
        let (agreed, view) = match without {
            Some((sight, number)) => (Some(sight), Some(number)),
            None => (removed, view),
        };
        Ok((decided.or(silent), agreed, view))
    }

    /// Looks into the log since the beginning of something, until all is found or it will not come any more.
    async fn search<T>(
        &self,
        origin: Origin,
        find: impl Fn(&str) -> T,
        is_all: impl Fn(&T) -> bool,
    ) -> anyhow::Result<T> {
        let end = (self.clock)().plus(LOGGED);
        loop {
            let is_last = (self.clock)() >= end;
            let found = find(&self.scene.ground().log_from(origin.logged)?);
            if is_last || is_all(&found) {
                return Ok(found);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Asks the others again and again, until one says that the node is removed or the time is over.
    async fn watch(
        &self,
        (node, life): Life,
        others: &[u16],
        (at, end): (Instant, Instant),
        said: &mut Said,
    ) {
        while said.removed.is_none() && (self.clock)() < end {
            for other in others {
                let asked_ms = ms((self.clock)().since(at));
                let Some(seen) = self.ask(*other).await else { continue };
                let now_ms = ms((self.clock)().since(at));
                if !seen.is_alive(node, life) {
                    let what = "a view without it";
                    said.removed = Some(said.asked.sight(*other, now_ms, what));
                    said.view = Some(seen.view);
                    return;
                }
                if said.silent.is_none() && seen.node(node).is_some_and(|n| n.silent) {
                    said.silent = Some(said.asked.sight(*other, now_ms, "it is not heard"));
                }
                said.asked.0.insert(*other, asked_ms);
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// A node that was not removed: waits until all serve, or until it is removed after all.
    async fn settle(
        &self,
        victim: Life,
        others: &[u16],
        at: Instant,
        said: &mut Said,
    ) -> anyhow::Result<()> {
        let since = (self.clock)();
        while said.removed.is_none() && self.whole().await.is_none() {
            let soon = (self.clock)().plus(Duration::from_nanos(LOOK_AGAIN.as_nanos() as u64));
            self.watch(victim, others, (at, soon), said).await;
            fail_if_over((since, (self.clock)()), "not all nodes serve", self.scene)?;
        }
        Ok(())
    }

    /// Starts the node again, and waits until it is a full replica.
    async fn rejoin(&mut self, victim: Life, others: &[u16]) -> anyhow::Result<Event> {
        let (node, former) = victim;
        let origin = self.origin()?;
        let at = origin.at;
        self.scene.start_node(node)?;
        let (mut joined, mut full, mut view) = (None, None, None);
        let mut asked = Asked::default();
        while full.is_none() {
            for other in others {
                let asked_ms = ms((self.clock)().since(at));
                let Some(seen) = self.ask(*other).await else { continue };
                let now_ms = ms((self.clock)().since(at));
                if let Some(now) = seen.node(node).filter(|n| n.alive && n.life != former) {
                    view = view.or(Some(seen.view));
                    joined.get_or_insert_with(|| asked.sight(*other, now_ms, "it is a member"));
                    if now.in_sync && full.is_none() {
                        full = Some(asked.sight(*other, now_ms, "it is a full replica"));
                    }
                }
                asked.0.insert(*other, asked_ms);
            }
            let what = format!("node {node} is not a full replica again");
            fail_if_over((at, (self.clock)()), &what, self.scene)?;
            tokio::time::sleep(ASK_AGAIN).await;
        }
        let until = (self.clock)();
        let sight = |(at, number): (i64, u64), what: &str| {
            (origin.logged(at, &format!("view {number}, in which it is {what}")), number)
        };
        let both = |log: &str| {
            let found = |full| logs::view_with(log, victim, origin.wall_us, full);
            let joined = found(false).map(|found| sight(found, "a member"));
            (joined, found(true).map(|found| sight(found, "a full replica").0))
        };
        let is_all = |found: &(Option<_>, Option<_>)| found.0.is_some() && found.1.is_some();
        let (logged, logged_full) = self.search(origin, both, is_all).await?;
        let (detected, view) = match logged {
            Some((sight, number)) => (Some(sight), Some(number)),
            None => (joined, view),
        };
        let (what, planned_s, lasted_ms) = (What::Rejoin, None, None);
        let agreed = logged_full.or(full);
        Ok(Event { what, node, at, until, planned_s, detected, agreed, view, lasted_ms })
    }

    /// What a node says.
    async fn ask(&self, node: u16) -> Option<Seen> {
        ask(&self.client, self.scene, node).await
    }

    /// The state, if all nodes serve.
    async fn whole(&self) -> Option<Seen> {
        whole(&self.client, self.scene).await
    }

    async fn wait_whole(&self) -> anyhow::Result<Seen> {
        wait_whole(&self.client, self.scene, self.clock).await
    }

    async fn wait_for(&self, at: Instant) {
        let left = at.since((self.clock)());
        if left > Duration::ZERO {
            tokio::time::sleep(std::time::Duration::from_nanos(left.as_nanos())).await;
        }
    }
}

async fn ask(client: &Client, scene: &dyn Scene, node: u16) -> Option<Seen> {
    let status = client.status_of(NodeId::new(node));
    let bytes = tokio::time::timeout(ANSWER, status).await.ok()?.ok()?;
    (scene.ground().read)(&bytes)
}

/// The state, if each data node says that all nodes serve: one that was cut off may not know yet what has become of it.
async fn whole(client: &Client, scene: &dyn Scene) -> Option<Seen> {
    let ground = scene.ground();
    let status = tokio::time::timeout(ANSWER, client.status()).await;
    let first = (ground.read)(&status.ok()?.ok()?)?;
    for (node, _) in first.lives() {
        let seen = ask(client, scene, node).await?;
        if seen.view != first.view || !seen.is_whole(ground.data_nodes) {
            return None;
        }
    }
    Some(first).filter(|seen| seen.is_whole(ground.data_nodes))
}

/// Waits until all nodes serve; gives the state.
pub(super) async fn wait_whole(
    client: &Client,
    scene: &dyn Scene,
    clock: fn() -> Instant,
) -> anyhow::Result<Seen> {
    let since = clock();
    loop {
        if let Some(seen) = whole(client, scene).await {
            return Ok(seen);
        }
        fail_if_over((since, clock()), "not all nodes serve", scene)?;
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn fail_if_over(
    (since, now): (Instant, Instant),
    what: &str,
    scene: &dyn Scene,
) -> anyhow::Result<()> {
    if now.since(since) > PATIENCE {
        let (seconds, log) = (PATIENCE.as_millis() / 1_000, scene.ground().log.display());
        bail!("{what} after {seconds} s: {log} says why; on a busy machine, try a lower --rate");
    }
    Ok(())
}
