//! The clients of `ycsb`.

use super::{
    Workload, YcsbArgs,
    choose::{Records, Zipfian},
    db::{Db, Failure, Target},
};
use crate::{
    patience::Patience,
    threads::{self, Load, Measures},
};
use anyhow::Context;
use lats_base::{Duration, Instant, hash::partition_hash, prng::Prng};
use std::sync::Arc;

/// Records that are inserted together before the measurement.
const LOADED_AT_ONCE: usize = 100;
/// Records that a scan reads at most.
const SCAN_MAX: u64 = 100;

/// A workload on the table, or its loading.
#[derive(Clone)]
pub(super) struct Run {
    target: Target,
    args: YcsbArgs,
    clock: fn() -> Instant,
    records: Arc<Records>,
    zipfian: Arc<Zipfian>,
    /// None: the records of the beginning are inserted.
    workload: Option<Workload>,
}

impl Run {
    /// Loads the table.
    pub(super) fn new(target: &Target, args: &YcsbArgs, clock: fn() -> Instant) -> Self {
        let records = Arc::new(Records::new(args.records));
        let zipfian = Arc::new(Zipfian::new(args.records));
        Self { target: target.clone(), args: args.clone(), clock, records, zipfian, workload: None }
    }

    /// Runs a workload on the table, as those before it have left it.
    pub(super) fn with(&self, workload: Option<Workload>) -> Self {
        Self { workload, ..self.clone() }
    }
}

impl Load for Run {
    type Clients = Vec<Client>;

    async fn connect(&self, thread: u32) -> anyhow::Result<Vec<Client>> {
        let (all, threads) = (self.args.connections, self.args.client_threads);
        let own: Vec<u32> = (0..all).filter(|number| number % threads == thread).collect();
        let stage = self.workload.map_or(0, |w| 1 + w as u64);
        let connections = self.target.connect((stage, thread), own.len()).await?;
        let clients = own.into_iter().zip(connections).map(|(number, db)| {
            let seed = u64::from(number) << 8 | stage;
            Client { number: number.into(), db, run: self.clone(), random: Prng::new(seed) }
        });
        Ok(clients.collect())
    }

    async fn work(&self, clients: Vec<Client>) -> anyhow::Result<Measures> {
        let end = (self.clock)().plus(Duration::from_millis(self.args.seconds * 1_000));
        let mut tasks = Vec::new();
        for client in clients {
            tasks.push(match self.workload {
                None => tokio::spawn(client.load()),
                Some(workload) => tokio::spawn(client.work(workload, end)),
            });
        }
        let mut measures = Measures::new();
        for task in tasks {
            threads::add(&mut measures, task.await.context("a client task has died")??)?;
        }
        Ok(measures)
    }
}

/// One operation after the other.
pub(super) struct Client {
    number: u64,
    db: Db,
    run: Run,
    random: Prng,
}

/// What an operation is.
#[derive(Clone, Copy)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadAndUpdate,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadAndUpdate => "read+update",
        }
    }
}

impl Client {
    /// Inserts its part of the records.
    async fn load(mut self) -> anyhow::Result<Measures> {
        let mut measures = Measures::new();
        let (all, records) = (u64::from(self.run.args.connections), self.run.args.records);
        let own: Vec<u64> = (self.number..records).step_by(all as usize).collect();
        for some in own.chunks(LOADED_AT_ONCE) {
            let mut patience = Patience::new(self.run.clock);
            let done = loop {
                let done = self.db.load(some, &mut self.random).await;
                if !(is_temporary(&done) && patience.again().await) {
                    break done;
                }
            };
            note(&mut measures, Operation::Insert, some.len(), done, &patience)?;
        }
        Ok(measures)
    }

    async fn work(mut self, workload: Workload, end: Instant) -> anyhow::Result<Measures> {
        let mut measures = Measures::new();
        while (self.run.clock)() < end {
            let operation = self.choose(workload);
            let record = match operation {
                Operation::Insert => self.run.records.begin_insert(),
                _ => self.record(workload),
            };
            let mut patience = Patience::new(self.run.clock);
            let done = loop {
                let done = self.execute(operation, record).await;
                if !(is_temporary(&done) && patience.again().await) {
                    break done;
                }
            };
            if let (Operation::Insert, Ok(1)) = (operation, &done) {
                self.run.records.end_insert(record);
            }
            // A scan finds many.
            note(&mut measures, operation, 1, done.map(|found| found.min(1)), &patience)?;
        }
        Ok(measures)
    }

    fn choose(&mut self, workload: Workload) -> Operation {
        let hundredth = self.random.below(100);
        match workload {
            Workload::A if hundredth < 50 => Operation::Update,
            Workload::B if hundredth < 5 => Operation::Update,
            Workload::D | Workload::E if hundredth < 5 => Operation::Insert,
            Workload::E => Operation::Scan,
            Workload::F if hundredth < 50 => Operation::ReadAndUpdate,
            _ => Operation::Read,
        }
    }

    async fn execute(&mut self, operation: Operation, record: u64) -> Result<usize, Failure> {
        match operation {
            Operation::Read => self.db.read(record).await,
            Operation::Update => self.db.update(record, &mut self.random).await,
            Operation::Scan => {
                let count = 1 + self.random.below(SCAN_MAX);
                self.db.scan(record, count).await
            }
            Operation::ReadAndUpdate => {
                self.db.read(record).await?;
                self.db.update(record, &mut self.random).await
            }
            Operation::Insert => self.db.insert(record, &mut self.random).await,
        }
    }

    /// A record that is there.
    fn record(&mut self, workload: Workload) -> u64 {
        let there = self.run.records.there();
        let drawn = self.run.zipfian.draw(&mut self.random);
        match workload {
            Workload::D => there - 1 - drawn.min(there - 1),
            _ => partition_hash(&drawn.to_be_bytes()) % there,
        }
    }
}

fn is_temporary(done: &Result<usize, Failure>) -> bool {
    matches!(done, Err(Failure::Temporary))
}

/// Notes an attempt at so many operations, of which as many as it says were done.
fn note(
    measures: &mut Measures,
    operation: Operation,
    wanted: usize,
    done: Result<usize, Failure>,
    patience: &Patience,
) -> anyhow::Result<()> {
    let measure = threads::of(measures, operation.name())?;
    measure.retries += patience.retries;
    match done {
        Ok(done) => measure.note(wanted, wanted.saturating_sub(done), patience.took()),
        Err(failure) => measure.fail(wanted, &failure),
    }
    Ok(())
}
