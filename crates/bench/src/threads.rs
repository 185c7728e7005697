//! Client threads: each connects by itself, all begin together, and what they have measured is added.

use crate::measure::Measure;
use anyhow::Context;
use lats_base::{Duration, Instant};
use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier},
};

/// What clients have measured, by the kind of what they did.
pub(crate) type Measures = BTreeMap<&'static str, Measure>;

/// What a client thread does, in a runtime of its own.
pub(crate) trait Load: Clone + Send + 'static {
    /// Its connections.
    type Clients;

    async fn connect(&self, thread: u32) -> anyhow::Result<Self::Clients>;

    async fn work(&self, clients: Self::Clients) -> anyhow::Result<Measures>;
}

/// Has so many threads work; what they have measured, and how long it took.
pub(crate) fn run(
    load: &impl Load,
    count: u32,
    clock: fn() -> Instant,
) -> anyhow::Result<(Measures, Duration)> {
    let ready = Arc::new(Barrier::new(count as usize));
    let threads: Vec<_> = (0..count)
        .map(|number| {
            let (load, ready) = (load.clone(), ready.clone());
            let work = move || thread(number, &load, clock, &ready);
            std::thread::Builder::new().name(format!("bench-{number}")).spawn(work)
        })
        .collect::<Result<_, _>>()
        .context("cannot start a client thread")?;
    let (mut all, mut longest) = (Measures::new(), Duration::from_millis(0));
    for thread in threads {
        let joined = thread.join().map_err(|_| anyhow::anyhow!("a client thread has died"))?;
        let (measures, took) = joined?;
        add(&mut all, measures)?;
        longest = longest.max(took);
    }
    Ok((all, longest))
}

fn thread<L: Load>(
    number: u32,
    load: &L,
    clock: fn() -> Instant,
    ready: &Barrier,
) -> anyhow::Result<(Measures, Duration)> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let connected = tokio.map_err(anyhow::Error::from).and_then(|tokio| {
        let clients = tokio.block_on(load.connect(number))?;
        Ok((tokio, clients))
    });
    // Who cannot connect must not keep the others waiting.
    ready.wait();
    let (tokio, clients) = connected?;
    let begun = clock();
    let measures = tokio.block_on(load.work(clients))?;
    Ok((measures, clock().since(begun)))
}

/// Adds what others have measured.
pub(crate) fn add(all: &mut Measures, more: Measures) -> anyhow::Result<()> {
    for (kind, measure) in more {
        of(all, kind)?.add(measure);
    }
    Ok(())
}

/// The measure of a kind.
pub(crate) fn of<'m>(all: &'m mut Measures, kind: &'static str) -> anyhow::Result<&'m mut Measure> {
    if !all.contains_key(kind) {
        all.insert(kind, Measure::new()?);
    }
    all.get_mut(kind).context("it was put there")
}
