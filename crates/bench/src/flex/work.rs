//! The clients of `flex`: each transaction in flight has rows of its own, so that none waits for another.

use super::{FlexArgs, Stage, rows::Rows};
use crate::{
    Place, distinct,
    measure::Measure,
    native,
    patience::Patience,
    threads::{self, Load, Measures},
};
use anyhow::Context;
use lats_base::{Duration, ErrorClass, Instant, prng::Prng};
use lats_client::{
    api::{RowOutcome, RowResult, StoreError},
    net::Client,
};
use std::sync::Arc;

/// What the client threads do in a stage.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) stage: Stage,
    pub(super) args: FlexArgs,
    pub(super) place: Place,
    pub(super) rows: Arc<Rows>,
}

impl Load for Work {
    type Clients = Vec<Slot>;

    async fn connect(&self, thread: u32) -> anyhow::Result<Vec<Slot>> {
        let (all, threads) = (self.args.transactions, self.args.client_threads);
        // Clients of different stages are different ones: their transactions must not have the same ids.
        let number = 1 + (u64::from(thread) << 8 | self.stage as u64);
        let client = native::connect(&self.place, number).await?;
        let slots = (0..all).filter(|slot| slot % threads == thread).map(|slot| Slot {
            client: client.clone(),
            clock: self.place.clock,
            rows: self.rows.clone(),
            stage: self.stage,
            slot: u64::from(slot),
            slots: u64::from(all),
            row_count: self.args.rows,
            operations: self.args.operations as usize,
            random: Prng::new(u64::from(slot)),
        });
        Ok(slots.collect())
    }

    async fn work(&self, slots: Vec<Slot>) -> anyhow::Result<Measures> {
        let end = (self.place.clock)().plus(Duration::from_millis(self.args.seconds * 1_000));
        let tasks: Vec<_> = slots.into_iter().map(|slot| tokio::spawn(slot.work(end))).collect();
        let mut measures = Measures::new();
        for task in tasks {
            let measure = task.await.context("a client task has died")??;
            threads::of(&mut measures, self.stage.name())?.add(measure);
        }
        Ok(measures)
    }
}

/// One transaction in flight after the other. Row *i* belongs to slot *i* modulo their number.
pub(super) struct Slot {
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
        let mut patience = Patience::new(self.clock);
        let done = loop {
            let operations = self.rows.operations(self.stage, ids, number)?;
            let done = match self.stage {
                Stage::Read => self.client.read(operations).await,
                _ => self.client.begin().execute(&operations, true).await.map(|(rows, _)| rows),
            };
            if !(done.as_ref().is_err_and(is_temporary) && patience.again().await) {
                break done;
            }
        };
        measure.retries += patience.retries;
        match done {
            Ok(results) => note(&results, patience.took(), measure),
            Err(error) => measure.fail(ids.len(), &error),
        }
        Ok(())
    }
}

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
