//! The clients of `flex`: each transaction in flight has rows of its own, so that none waits for another.

use super::{FlexArgs, Stage, rows::Rows};
use crate::{Place, distinct, measure::Measure, native};
use anyhow::Context;
use lats_base::{Duration, ErrorClass, Instant, prng::Prng};
use lats_client::{
    api::{RowOutcome, RowResult, StoreError},
    net::Client,
};
use std::sync::{Arc, Barrier};

/// Runs a stage in all client threads; what they measured, and how long it took.
pub(super) fn run(
    stage: Stage,
    args: &FlexArgs,
    place: &Place,
    rows: &Arc<Rows>,
) -> anyhow::Result<(Measure, Duration)> {
    let ready = Arc::new(Barrier::new(args.client_threads as usize));
    let threads: Vec<_> = (0..args.client_threads)
        .map(|number| {
            let (args, place, rows) = (args.clone(), place.clone(), rows.clone());
            let ready = ready.clone();
            let name = format!("bench-{number}");
            let work = move || client_thread(number, stage, &args, &place, (rows, ready));
            std::thread::Builder::new().name(name).spawn(work)
        })
        .collect::<Result<_, _>>()
        .context("cannot start a client thread")?;
    let mut all = Measure::new()?;
    let (mut begun, mut ended) = (None::<Instant>, Instant::ZERO);
    for thread in threads {
        let done = thread.join().map_err(|_| anyhow::anyhow!("a client thread has died"))??;
        all.add(done.measure);
        begun = Some(begun.map_or(done.begun, |at| at.min(done.begun)));
        ended = ended.max(done.ended);
    }
    Ok((all, ended.since(begun.unwrap_or(ended))))
}

/// What a client thread has done.
struct Done {
    measure: Measure,
    begun: Instant,
    ended: Instant,
}

fn client_thread(
    number: u32,
    stage: Stage,
    args: &FlexArgs,
    place: &Place,
    (rows, ready): (Arc<Rows>, Arc<Barrier>),
) -> anyhow::Result<Done> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let connected = tokio.map_err(anyhow::Error::from).and_then(|tokio| {
        let stage_seed = u64::from(number) << 8 | stage as u64;
        let client = tokio.block_on(native::connect(place, 1 + stage_seed))?;
        Ok((tokio, client))
    });
    // Who cannot connect must not keep the others waiting.
    ready.wait();
    let (tokio, client) = connected?;
    tokio.block_on(async {
        let begun = (place.clock)();
        let end = begun.plus(Duration::from_millis(args.seconds * 1_000));
        let tasks: Vec<_> = (0..args.transactions)
            .filter(|slot| slot % args.client_threads == number)
            .map(|slot| {
                let slot = Slot {
                    client: client.clone(),
                    clock: place.clock,
                    rows: rows.clone(),
                    stage,
                    slot: u64::from(slot),
                    slots: u64::from(args.transactions),
                    row_count: args.rows,
                    operations: args.operations as usize,
                    random: Prng::new(u64::from(slot)),
                };
                tokio::spawn(slot.work(end))
            })
            .collect();
        let mut measure = Measure::new()?;
        for task in tasks {
            measure.add(task.await.context("a client task has died")??);
        }
        Ok(Done { measure, begun, ended: (place.clock)() })
    })
}

/// One transaction in flight after the other. Row *i* belongs to slot *i* modulo their number.
struct Slot {
    client: Client,
    clock: fn() -> Instant,
    rows: Arc<Rows>,
    stage: Stage,
    slot: u64,
    slots: u64,
    row_count: u64,
    operations: usize,
    random: Prng,
}

impl Slot {
    async fn work(mut self, end: Instant) -> anyhow::Result<Measure> {
        let mut measure = Measure::new()?;
        let own = (self.row_count - self.slot).div_ceil(self.slots);
        let mut ids = Vec::with_capacity(self.operations);
        let mut next = 0;
        for number in 0_u64.. {
            ids.clear();
            if self.stage.visits_all() {
                let last = own.min(next + self.operations as u64);
                ids.extend((next..last).map(|at| at * self.slots + self.slot));
                next = last;
            } else if (self.clock)() < end {
                self.draw(own, &mut ids);
            }
            if ids.is_empty() {
                break;
            }
            self.transaction(&ids, number, &mut measure).await?;
        }
        Ok(measure)
    }

    fn draw(&mut self, own: u64, ids: &mut Vec<u64>) {
        let places = distinct(self.operations as u64, own, &mut self.random);
        ids.extend(places.map(|at| at * self.slots + self.slot));
    }

    async fn transaction(
        &self,
        ids: &[u64],
        number: u64,
        measure: &mut Measure,
    ) -> anyhow::Result<()> {
        let begun = (self.clock)();
        loop {
            let operations = self.rows.operations(self.stage, ids, number)?;
            let done = match self.stage {
                Stage::Read => self.client.read(operations).await,
                _ => self.client.begin().execute(&operations, true).await.map(|(rows, _)| rows),
            };
            let took = (self.clock)().since(begun);
            match done {
                Ok(results) => note(&results, took, measure),
                Err(error) if is_temporary(&error) && took < PATIENCE => {
                    measure.retries += 1;
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
                Err(error) => measure.fail(ids.len(), &error),
            }
            return Ok(());
        }
    }
}

/// How long a transaction is tried again after errors that pass, and what lies between two attempts.
const PATIENCE: Duration = Duration::from_millis(10_000);
const RETRY: std::time::Duration = std::time::Duration::from_millis(2);

fn is_temporary(error: &StoreError) -> bool {
    error.code.class() == ErrorClass::Temporary
}

fn note(results: &[RowResult], took: Duration, measure: &mut Measure) {
    // A column of a byte or two has few values: it may have this one already.
    let good = [RowOutcome::Done, RowOutcome::Unchanged];
    let bad = |r: &&RowResult| !good.contains(&r.outcome);
    let errors = results.iter().filter(bad).count();
    if let Some(first) = results.iter().find(bad) {
        let outcome = first.outcome;
        measure.first_error.get_or_insert(format!("an operation was {outcome:?}"));
    }
    measure.note(results.len(), errors, took);
}
