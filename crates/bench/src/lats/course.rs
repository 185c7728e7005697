//! The course of events: waits for a whole and calm cluster, strikes a node, watches what the others say, and has the node come back.

use super::{
    figures::{Event, Sight, What},
    logs,
    scene::{Blow, Scene, Seen},
};
use anyhow::{Context, bail};
use lats_base::{Duration, Instant, NodeId, prng::Prng};
use lats_client::net::Client;

/// How long the cluster may take for what must come about.
const PATIENCE: Duration = Duration::from_millis(120_000);
/// How long the others may take to agree on a view without a node.
const AGREED: Duration = Duration::from_millis(10_000);
/// A node that was away so shortly that it was not removed is watched so long.
const STAYS: Duration = Duration::from_millis(1_000);
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
    /// When the load began, and when all was whole last.
    pub(super) begun: Instant,
    pub(super) whole_at: Instant,
}

/// What the others have said of a node.
#[derive(Default)]
struct Said {
    silent: Option<Sight>,
    removed: Option<Sight>,
    view: Option<u64>,
}

impl Course<'_> {
    /// The next event, at a drawn time or at one that was asked for, and the rejoin after it if there is one.
    pub(super) async fn next(
        &mut self,
        what: What,
        planned_s: Option<f64>,
    ) -> anyhow::Result<Vec<Event>> {
        let seen = self.wait_whole().await?;
        let calm_ns = self.calm.as_nanos();
        let drawn = self.random.between(calm_ns, 2 * calm_ns);
        let at = match planned_s {
            Some(seconds) => self.begun.plus(Duration::from_nanos((seconds * 1e9) as u64)),
            None => self.whole_at.plus(Duration::from_nanos(drawn)),
        };
        self.wait_for(at).await;
        let members: Vec<_> = seen.nodes.iter().filter(|n| n.data).collect();
        let victim = members.get(self.random.below(members.len().max(1) as u64) as usize);
        let (node, life) = victim.map(|n| (n.node, n.life)).context("there is no data node")?;
        let others: Vec<u16> = members.iter().map(|n| n.node).filter(|n| *n != node).collect();
        let (mut event, is_removed) = self.strike(what, (node, life), &others).await?;
        event.planned_s = planned_s;
        if !is_removed {
            return Ok(vec![event]);
        }
        let rejoin = self.rejoin((node, life), &others).await?;
        event.until = rejoin.at;
        Ok(vec![event, rejoin])
    }

    async fn strike(
        &mut self,
        what: What,
        victim: (u16, u32),
        others: &[u16],
    ) -> anyhow::Result<(Event, bool)> {
        let (blow, mend) = match what {
            What::Kill | What::Rejoin => (Blow::Kill, None),
            What::Freeze => (Blow::Freeze, Some(Blow::Thaw)),
            What::Silent => (Blow::Cut, Some(Blow::Heal)),
        };
        let node = victim.0;
        self.scene.aim(node)?;
        let (mut wall_us, mut at) = (self.scene.wall_us(), (self.clock)());
        self.scene.strike(node, blow)?;
        if blow == Blow::Cut {
            // It takes some ms, in which clients still get on.
            (wall_us, at) = (self.scene.wall_us(), (self.clock)());
        }
        let mut said = Said::default();
        let mut lasted_ms = None;
        if let Some(mend) = mend {
            let end = at.plus(self.lasts);
            self.watch(victim, others, (at, end), &mut said).await;
            self.wait_for(end).await;
            self.scene.strike(node, mend)?;
            lasted_ms = Some(ms((self.clock)().since(at)));
            self.watch(victim, others, (at, end.plus(STAYS)), &mut said).await;
            if said.removed.is_some() {
                self.wait_for(end.plus(self.away)).await;
            }
        } else {
            self.watch(victim, others, (at, at.plus(AGREED)), &mut said).await;
            if said.removed.is_none() {
                bail!(
                    "the others have not agreed on a view without node {node}, {} s after it was killed; see {}",
                    AGREED.as_millis() / 1_000,
                    self.scene.log_path()
                );
            }
            self.wait_for(at.plus(self.away)).await;
        }
        let logged = logs::certain_end(&self.scene.log(), node, wall_us).map(|logged_us| Sight {
            ms: (logged_us - wall_us) as f64 / 1_000.0,
            from: "log of a node: the process has ended for certain".to_string(),
        });
        let sights = [logged, said.silent, said.removed.clone()];
        let detected = sights.into_iter().flatten().min_by(|a, b| a.ms.total_cmp(&b.ms));
        let is_removed = said.removed.is_some();
        let until = (self.clock)();
        let (view, agreed, planned_s) = (said.view, said.removed, None);
        Ok((
            Event { what, node, at, until, planned_s, detected, agreed, view, lasted_ms },
            is_removed,
        ))
    }

    /// Asks the others again and again, until one says that the node is removed or the time is over.
    async fn watch(
        &self,
        (node, life): (u16, u32),
        others: &[u16],
        (at, end): (Instant, Instant),
        said: &mut Said,
    ) {
        while said.removed.is_none() && (self.clock)() < end {
            for other in others {
                let Some(seen) = self.ask(*other).await else { continue };
                let sight = |what: &str| Sight {
                    ms: ms((self.clock)().since(at)),
                    from: format!("status of node {other}, asked each ms: {what}"),
                };
                if !seen.is_alive(node, life) {
                    said.removed = Some(sight("a view without it"));
                    said.view = Some(seen.view);
                    return;
                }
                if said.silent.is_none() && seen.node(node).is_some_and(|n| n.silent) {
                    said.silent = Some(sight("it is not heard"));
                }
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Starts the node again, and waits until it is a full replica.
    async fn rejoin(
        &mut self,
        (node, former): (u16, u32),
        others: &[u16],
    ) -> anyhow::Result<Event> {
        let at = (self.clock)();
        self.scene.start_node(node)?;
        let (mut detected, mut agreed, mut view) = (None, None, None);
        while agreed.is_none() {
            for other in others {
                let Some(seen) = self.ask(*other).await else { continue };
                let Some(now) = seen.node(node).filter(|n| n.alive && n.life != former) else {
                    continue;
                };
                let from = format!("status of node {other}, asked each ms");
                let sight = Sight { ms: ms((self.clock)().since(at)), from };
                view = view.or(Some(seen.view));
                detected.get_or_insert_with(|| sight.clone());
                if now.in_sync && agreed.is_none() {
                    agreed = Some(sight);
                }
            }
            self.fail_if_over(at, &format!("node {node} is not a full replica again"))?;
            tokio::time::sleep(ASK_AGAIN).await;
        }
        let until = (self.clock)();
        self.whole_at = until;
        let (what, planned_s, lasted_ms) = (What::Rejoin, None, None);
        Ok(Event { what, node, at, until, planned_s, detected, agreed, view, lasted_ms })
    }

    /// What a node says.
    async fn ask(&self, node: u16) -> Option<Seen> {
        let status = self.client.status_of(NodeId::new(node));
        let bytes = tokio::time::timeout(ANSWER, status).await.ok()?.ok()?;
        self.scene.read(&bytes)
    }

    async fn wait_whole(&self) -> anyhow::Result<Seen> {
        wait_whole(&self.client, self.scene, self.clock).await
    }

    fn fail_if_over(&self, since: Instant, what: &str) -> anyhow::Result<()> {
        fail_if_over((since, (self.clock)()), what, self.scene)
    }

    async fn wait_for(&self, at: Instant) {
        let left = at.since((self.clock)());
        if left > Duration::ZERO {
            tokio::time::sleep(std::time::Duration::from_nanos(left.as_nanos())).await;
        }
    }
}

/// Waits until all nodes serve; gives the state.
pub(super) async fn wait_whole(
    client: &Client,
    scene: &dyn Scene,
    clock: fn() -> Instant,
) -> anyhow::Result<Seen> {
    let since = clock();
    loop {
        let status = tokio::time::timeout(ANSWER, client.status()).await;
        let seen = status.ok().and_then(Result::ok).and_then(|bytes| scene.read(&bytes));
        if let Some(seen) = seen.filter(Seen::is_whole) {
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
        let (seconds, log) = (PATIENCE.as_millis() / 1_000, scene.log_path());
        bail!("{what} after {seconds} s: {log} says why; on a busy machine, try a lower --rate");
    }
    Ok(())
}

fn ms(span: Duration) -> f64 {
    (span.as_nanos() / 1_000) as f64 / 1_000.0
}
