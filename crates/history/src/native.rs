//! The load of the native client: lists in a table `lists (id BIGINT PRIMARY KEY, elements VARBINARY)`,
//! elements as decimal numbers with a comma behind each.

use anyhow::{Context, bail};
use lats_base::{ErrorClass, Instant, RefCode, prng::Prng};
use lats_catalog::TableDef;
use lats_client::{
    api::{LockMode, LockWait, RowOp, RowOpKind, RowResult, StoreError},
    net::{Client, ClientOptions},
};
use lats_history::{Action, Outcome, Transaction};
use lats_values::{RowLayout, Value, encode_key_value};
use std::{
    io::Write, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration,
};

/// What to do, where, and for how long.
#[derive(clap::Args)]
pub(crate) struct NativeArgs {
    /// Native addresses of nodes.
    #[arg(long = "address", value_name = "HOST:PORT", required = true)]
    addresses: Vec<SocketAddr>,
    /// The cluster's id.
    #[arg(long)]
    cluster_id: u64,
    /// The file with the cluster's secret.
    #[arg(long)]
    secret_file: PathBuf,
    /// The database with the table.
    #[arg(long, default_value = "test")]
    database: String,
    /// For how long.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Transactions at a time.
    #[arg(long, default_value_t = 4)]
    clients: u64,
    /// The number of the first client: its elements begin with it.
    #[arg(long, default_value_t = 100)]
    first_client: u64,
    /// Lists that are in use at a time, and how many there are of each: ids are `place * 1000 + number`.
    #[arg(long, default_value_t = 6)]
    places: u64,
    /// See `places`.
    #[arg(long, default_value_t = 200)]
    per_place: u64,
    /// Where the history goes.
    #[arg(long)]
    out: PathBuf,
}

/// Elements after which a list is left for the next.
const LENGTH_MAX: usize = 40;
/// Elements of a client are its number times this, and more.
const ELEMENTS_PER_CLIENT: u64 = 10_000_000;

/// The clock that all clients on this machine share.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn now() -> Instant {
    Instant::from_nanos(now_ns())
}

struct Lists {
    def: TableDef,
    layout: RowLayout,
}

impl Lists {
    fn operation(&self, kind: RowOpKind, list: u64, row: Vec<u8>) -> RowOp {
        let mut key = Vec::new();
        let id = Value::Int(list as i64);
        encode_key_value(&self.def.columns[0].column_type, &id, &mut key);
        let (table, schema_version) = (self.def.id, self.def.schema_version);
        RowOp {
            table,
            schema_version,
            kind,
            key,
            row,
            program: Default::default(),
            wait: LockWait::Wait,
        }
    }

    fn read(&self, list: u64, mode: LockMode) -> RowOp {
        self.operation(RowOpKind::Read(mode), list, Vec::new())
    }

    fn elements(&self, result: &RowResult) -> anyhow::Result<Vec<u64>> {
        let row = result.row.as_ref().context("a list is not there")?;
        let Value::Bytes(text) = self.layout.value(row, 1) else { bail!("elements are no bytes") };
        let text = String::from_utf8_lossy(&text).into_owned();
        let numbers = text.split(',').filter(|part| !part.is_empty());
        numbers.map(|n| n.parse().with_context(|| format!("element {n:?}"))).collect()
    }

    fn write(&self, list: u64, elements: &[u64]) -> anyhow::Result<RowOp> {
        let text: String = elements.iter().map(|e| format!("{e},")).collect();
        let mut row = Vec::new();
        let values = [Value::Int(list as i64), Value::Bytes(text.into_bytes())];
        self.layout.encode(&values, &mut row).map_err(|e| anyhow::anyhow!("{}", e.message))?;
        Ok(self.operation(RowOpKind::Write, list, row))
    }
}

struct Worker {
    client: Client,
    lists: Arc<Lists>,
    number: u64,
    random: Prng,
    next_element: u64,
    current: Vec<u64>,
    per_place: u64,
    history: Vec<Transaction>,
}

pub(crate) fn run(args: &NativeArgs) -> anyhow::Result<ExitCode> {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let history = tokio.block_on(all_work(args))?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(&args.out)?);
    for transaction in &history {
        serde_json::to_writer(&mut file, transaction)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn all_work(args: &NativeArgs) -> anyhow::Result<Vec<Transaction>> {
    let options = ClientOptions {
        addresses: args.addresses.clone(),
        cluster_id: args.cluster_id,
        secret: Some(std::fs::read_to_string(&args.secret_file)?.parse()?),
        seed: now_ns(),
        ..ClientOptions::default()
    };
    let client = Client::start(options, now);
    client.ready(Duration::from_secs(10)).await.context("the cluster does not answer")?;
    client.fetch_catalog().await.context("the cluster does not tell its catalog")?;
    let catalog = client.catalog();
    let def = catalog.table(&args.database, "lists").context("there is no table `lists`")?.clone();
    let lists = Arc::new(Lists { layout: def.layout(), def });
    let end = now_ns() + args.seconds * 1_000_000_000;
    let mut tasks = Vec::new();
    for number in args.first_client..args.first_client + args.clients {
        let worker = Worker {
            client: client.clone(),
            lists: lists.clone(),
            number,
            random: Prng::new(now_ns() ^ number),
            next_element: number * ELEMENTS_PER_CLIENT,
            current: (0..args.places).map(|place| place * 1000).collect(),
            per_place: args.per_place,
            history: Vec::new(),
        };
        tasks.push(tokio::spawn(worker.work(end)));
    }
    let mut history = Vec::new();
    for task in tasks {
        history.extend(task.await.context("a client has ended")??);
    }
    Ok(history)
}

impl Worker {
    async fn work(mut self, end_ns: u64) -> anyhow::Result<Vec<Transaction>> {
        while now_ns() < end_ns {
            if self.random.chance(1, 3) {
                self.look().await?;
            } else {
                self.change().await?;
            }
        }
        Ok(self.history)
    }

    fn draw_list(&mut self) -> u64 {
        self.current[self.random.below(self.current.len() as u64) as usize]
    }

    fn start(&self, locks: bool) -> Transaction {
        let begun_ns = now_ns();
        let (client, outcome) = (self.number, Outcome::Unknown);
        Transaction { client, begun_ns, ended_ns: begun_ns, outcome, locks, actions: Vec::new() }
    }

    fn end(&mut self, mut seen: Transaction, outcome: Outcome) {
        seen.ended_ns = now_ns();
        seen.outcome = outcome;
        self.history.push(seen);
    }

    fn see(
        &mut self,
        list: u64,
        result: &RowResult,
        seen: &mut Transaction,
    ) -> anyhow::Result<Vec<u64>> {
        let elements = self.lists.elements(result)?;
        let place = (list / 1000) as usize;
        if elements.len() >= LENGTH_MAX && self.current[place] == list {
            let next = list + 1;
            if next % 1000 >= self.per_place {
                bail!("the lists of place {place} are full; prepare more");
            }
            self.current[place] = next;
        }
        seen.actions.push(Action::Read { list, elements: elements.clone() });
        Ok(elements)
    }

    /// Reads one list without locks, at any replica.
    async fn look(&mut self) -> anyhow::Result<()> {
        let list = self.draw_list();
        let mut seen = self.start(false);
        match self.client.read(vec![self.lists.read(list, LockMode::Committed)]).await {
            Ok(results) => {
                self.see(list, &results[0], &mut seen)?;
                self.end(seen, Outcome::Committed);
                Ok(())
            }
            Err(error) => bear(&error).await,
        }
    }

    /// Locks a few lists, reads them, and appends to some.
    async fn change(&mut self) -> anyhow::Result<()> {
        let mut plan: Vec<(u64, bool)> = Vec::new();
        for _ in 0..self.random.between(1, 3) {
            let list = self.draw_list();
            if plan.iter().all(|(other, _)| *other != list) {
                plan.push((list, self.random.chance(1, 2)));
            }
        }
        let mode = |appends| if appends { LockMode::Exclusive } else { LockMode::Shared };
        let reads: Vec<RowOp> =
            plan.iter().map(|(list, appends)| self.lists.read(*list, mode(*appends))).collect();
        let mut seen = self.start(true);
        let mut transaction = self.client.begin();
        let results = match transaction.execute(&reads, false).await {
            Ok((results, _)) => results,
            Err(error) => {
                transaction.rollback().await;
                self.end(seen, Outcome::RolledBack);
                return bear(&error).await;
            }
        };
        let mut writes = Vec::new();
        for ((list, appends), result) in plan.iter().zip(&results) {
            let mut elements = self.see(*list, result, &mut seen)?;
            if *appends {
                self.next_element += 1;
                elements.push(self.next_element);
                seen.actions.push(Action::Append { list: *list, element: self.next_element });
                writes.push(self.lists.write(*list, &elements)?);
            }
        }
        if self.random.chance(1, 10) {
            transaction.rollback().await;
            self.end(seen, Outcome::RolledBack);
            return Ok(());
        }
        match transaction.execute(&writes, true).await {
            Ok(_) => {
                self.end(seen, Outcome::Committed);
                Ok(())
            }
            Err(error) => {
                let unknown = error.code == RefCode::OutcomeUnknown;
                self.end(seen, if unknown { Outcome::Unknown } else { Outcome::RolledBack });
                bear(&error).await
            }
        }
    }
}

/// Temporary errors are to be expected; others are not.
async fn bear(error: &StoreError) -> anyhow::Result<()> {
    if error.class() == ErrorClass::Permanent {
        bail!("an error that is not temporary: {error}");
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
    Ok(())
}
