//! What statements cost the SQL layer: from the bytes of a client's packet to the bytes of the answer, without data nodes and
//! sockets.

mod store;

use anyhow::{Context, bail};
use lats_catalog::statistics::TableStatistics;
use lats_catalog::{Catalog, Change, ColumnDef, TableDef};
use lats_sql::connection::{Options, serve};
use lats_sql::session::Shared;
use lats_values::{ColumnType, TypeKind, Value, encode_key_value};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Poll, Waker};
use store::{Rows, Tables};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A statement that is measured.
pub(crate) struct Statement {
    pub(crate) name: &'static str,
    text: &'static str,
    is_prepared: bool,
}

const POINT: &str = "SELECT c FROM sbtest1 WHERE id=";
const JOIN3: &str = "SELECT o.amount, c.name, k.name FROM orders o JOIN customer c ON c.id = o.customer \
     JOIN country k ON k.id = c.country WHERE o.id = ";
/// Rows of each table.
const ROWS: u32 = 1_000;
/// Statements before it is measured.
const WARM_UP: u64 = 100;
/// Statements of a round.
const PER_ROUND: u64 = 20;
/// More than any answer has.
const ANSWER_BYTES: usize = 16 << 10;

/// COM_QUERY, COM_STMT_PREPARE and COM_STMT_EXECUTE.
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

const fn statement(name: &'static str, text: &'static str, is_prepared: bool) -> Statement {
    Statement { name, text, is_prepared }
}

/// All that is counted, besides [`crate::cluster`]'s. `cargo xtask cost` knows it by its name.
#[inline(never)]
fn counted(task: Pin<&mut dyn Future<Output = std::io::Result<()>>>) -> Poll<std::io::Result<()>> {
    task.poll(&mut std::task::Context::from_waker(Waker::noop()))
}

/// What data nodes would do is not counted: `valgrind` stops counting here, and goes on afterwards.
#[inline(never)]
fn uncounted<R>(work: impl FnOnce() -> R) -> R {
    work()
}

type Task = Pin<Box<dyn Future<Output = std::io::Result<()>>>>;

/// A client and the task that serves it.
struct Client {
    task: Task,
    io: DuplexStream,
    store: Rows,
    answer: Vec<u8>,
}

impl Client {
    /// Sends a command, and has it answered.
    fn command(&mut self, payload: &[u8]) -> anyhow::Result<&[u8]> {
        let length = u32::try_from(payload.len())?.to_le_bytes();
        self.send(&[&length[..3], &[0], payload].concat())
    }

    fn send(&mut self, packet: &[u8]) -> anyhow::Result<&[u8]> {
        now(self.io.write_all(packet)).context("the client cannot write")??;
        self.answer.clear();
        // No data node takes time, so that it has always something to do until its answer is there.
        for _ in 0..1_000 {
            let polled = match self.store.counts() {
                true => counted(self.task.as_mut()),
                false => {
                    self.task.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()))
                }
            };
            if let Poll::Ready(over) = polled {
                over?;
                bail!("the session has ended");
            }
            let mut some = [0; ANSWER_BYTES];
            if let Some(count) = now(self.io.read(&mut some)) {
                self.answer.extend_from_slice(some.get(..count?).unwrap_or_default());
                return Ok(&self.answer);
            }
        }
        bail!("no answer")
    }
}

/// What is ready at once, if it is.
fn now<R>(future: impl Future<Output = R>) -> Option<R> {
    match std::pin::pin!(future).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

impl Statement {
    pub(crate) const ALL: &[Self] = &[
        statement("sql-point-text", POINT, false),
        statement("sql-point-prepared", POINT, true),
        statement("sql-join3-text", JOIN3, false),
        statement("sql-join3-prepared", JOIN3, true),
    ];

    /// Runs it so many times; how often that was.
    pub(crate) fn run(&self, rounds: u64) -> anyhow::Result<u64> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let _entered = runtime.enter();
        let mut client = log_in(Rows(Arc::new(tables()?)))?;
        if self.is_prepared {
            let text = format!("{}?", self.text);
            let answer = client.command(&[&[PREPARE], text.as_bytes()].concat())?;
            if answer.get(4) != Some(&0) {
                bail!("not prepared: {}", String::from_utf8_lossy(answer));
            }
        }
        for number in 0..WARM_UP {
            self.once(&mut client, number)?;
        }
        client.store.count();
        for number in 0..rounds * PER_ROUND {
            self.once(&mut client, number)?;
        }
        Ok(rounds * PER_ROUND)
    }

    fn once(&self, client: &mut Client, number: u64) -> anyhow::Result<()> {
        let id = u32::try_from(number)? * 7_919 % ROWS;
        let command = match self.is_prepared {
            false => [&[QUERY], format!("{}{id}", self.text).as_bytes()].concat(),
            // Statement 1, no cursor, once; no NULL; the type INT; the value.
            true => {
                let head = [EXECUTE, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0];
                [&head[..], &id.to_le_bytes()].concat()
            }
        };
        let answer = client.command(&command)?;
        if !answer.windows(ANSWER.len()).any(|part| part == ANSWER) {
            bail!("{} has a wrong answer: {}", self.name, String::from_utf8_lossy(answer));
        }
        Ok(())
    }
}

/// What each answer has in it.
const ANSWER: &[u8] = b"a text of row ";

/// A client that has logged in and chosen its database.
fn log_in(store: Rows) -> anyhow::Result<Client> {
    let (io, served) = tokio::io::duplex(1 << 20);
    let options = Options {
        connection_id: 1,
        random: [1; 20],
        secret: [2; 20],
        host: "localhost".to_owned(),
    };
    let (_, stopping) = tokio::sync::watch::channel(false);
    let shared = Arc::new(Shared::new(store.clone(), || 1_700_000_000_000_000));
    let task = Box::pin(serve(shared, served, options, stopping));
    let mut client = Client { task, io, store, answer: Vec::new() };
    client.send(&[])?;
    // CONNECT_WITH_DB, PROTOCOL_41, SECURE_CONNECTION; 16 MiB; utf8mb4; no password.
    let flags = 0x8208_u32.to_le_bytes();
    let head = [&flags[..], &(1_u32 << 24).to_le_bytes(), &[255], &[0; 23]].concat();
    let payload = [&head[..], b"root\0", &[0], b"test\0"].concat();
    let length = u32::try_from(payload.len())?.to_le_bytes();
    let answer = client.send(&[&length[..3], &[1], &payload].concat())?;
    match answer.get(4) {
        Some(0) => Ok(client),
        _ => bail!("no login: {}", String::from_utf8_lossy(answer)),
    }
}

/// The tables of sysbench's point select, and of `join3`.
fn tables() -> anyhow::Result<Tables> {
    let int = || ColumnType::new(TypeKind::Int).not_null();
    let text = |chars| ColumnType::new(TypeKind::VarChar { chars }).not_null();
    let number = |n: u32| Value::Int(i64::from(n));
    let named = |n: u32| Value::text(&format!("a text of row {n}, as long as sysbench has them"));
    let shapes: [(&str, Vec<(&str, ColumnType)>); 4] = [
        ("sbtest1", vec![("id", int()), ("k", int()), ("c", text(120)), ("pad", text(60))]),
        ("orders", vec![("id", int()), ("customer", int()), ("amount", int())]),
        ("customer", vec![("id", int()), ("country", int()), ("name", text(60))]),
        ("country", vec![("id", int()), ("name", text(60))]),
    ];
    let mut catalog = Catalog::initial();
    let create = Change::CreateDatabase { name: "test".to_owned(), if_not_exists: true };
    apply(&mut catalog, &create)?;
    for (name, columns) in &shapes {
        let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, of.clone())).collect();
        let table = TableDef::new("test", name, columns, vec![0]);
        apply(&mut catalog, &Change::CreateTable { table, if_not_exists: false })?;
    }
    let mut rows: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut statistics = BTreeMap::new();
    for (name, columns) in &shapes {
        let table = catalog.table("test", name).context("no table")?;
        let known = TableStatistics { rows: f64::from(ROWS), ..TableStatistics::default() };
        statistics.insert(table.id, Arc::new(known));
        for id in 0..ROWS {
            let value = |(at, (_, of)): (usize, &(&str, ColumnType))| match of.kind {
                TypeKind::Int if at == 0 => number(id),
                TypeKind::Int => number((id + 7) % ROWS),
                _ => named(id),
            };
            let values: Vec<Value> = columns.iter().enumerate().map(value).collect();
            let (mut key, mut row) = (Vec::new(), Vec::new());
            encode_key_value(&table.columns[0].column_type, &values[0], &mut key);
            let encoded = table.layout().encode(&values, &mut row);
            encoded.map_err(|error| anyhow::anyhow!("{}", error.message))?;
            rows.entry(table.id).or_default().insert(key, row);
        }
    }
    Ok(Tables { catalog: Arc::new(catalog), rows, statistics, counts: AtomicBool::new(false) })
}

fn apply(catalog: &mut Catalog, change: &Change) -> anyhow::Result<()> {
    match catalog.apply(change, 2) {
        Ok(_) => Ok(()),
        Err(refused) => bail!("refused: {}", refused.message),
    }
}
