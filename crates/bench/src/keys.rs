//! `keys`: SQL transactions of many statements, each of which reads many rows by an `IN` list of keys. (What M. Ronström
//! measured in "5.5M Key Lookups per second on 16 VCPU VMs", 2021, with sysbench.)

use crate::{
    Place, distinct,
    measure::Measure,
    mysql::Server,
    report,
    threads::{self, Load, Measures},
};
use anyhow::Context;
use lats_base::{Duration, Instant, prng::Prng};
use mysql_async::{Conn, Statement, Value, prelude::Queryable};
use serde_json::{Map, json};
use std::{fmt::Write as _, io::Write};

/// Read rows by lists of keys through SQL, and measure it; beside another MySQL server if one is named. Makes the table
/// `bench.lookup`, anew if it is there, and drops it afterwards. The exit status is 1 if there were errors.
#[derive(clap::Args, Clone, Debug)]
pub struct KeysArgs {
    /// Keys in the `IN` list of a statement.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub keys: u32,
    /// Statements of a transaction.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub statements: u32,
    /// Connections, each with one transaction at a time; they go round the nodes.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Threads of the client.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub client_threads: u32,
    /// Rows of the table, each of some 190 bytes.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub rows: u32,
    /// How long rows are read.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Send statements as texts, instead of preparing them once.
    #[arg(long)]
    pub text: bool,
    /// Do the same with another MySQL server, and compare: mysql://USER:PASSWORD@HOST:PORT.
    #[arg(long, value_name = "URL")]
    pub peer: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become the text of the command's help")]
    pub output: report::Output,
}

const TABLE: &str = "lookup";
const COLUMNS: &str =
    "id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL";
/// Rows that one statement inserts.
const INSERTED_AT_ONCE: u32 = 500;

/// Runs the benchmark, and says what it has measured. How many keys were looked up in vain.
///
/// # Errors
/// If a server does not answer or refuses the table, or the result cannot be written.
pub fn run(args: &KeysArgs, place: &Place, out: &mut impl Write) -> anyhow::Result<u64> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut servers = vec![tokio.block_on(Server::ours(place))?];
    servers.extend(args.peer.as_deref().map(Server::peer).transpose()?);
    let prints_table = args.output.prints_table();
    if prints_table {
        report::head(out)?;
    }
    let (mut record, mut errors, mut rates) = (Map::new(), 0, Vec::new());
    for server in servers {
        tokio.block_on(load(&server, args))?;
        let load = Lookups { server: server.clone(), args: args.clone(), clock: place.clock };
        let measured = threads::run(&load, args.client_threads, place.clock);
        let dropped = tokio.block_on(server.drop_table(TABLE));
        let (mut measures, took) = measured?;
        dropped?;
        let measure = threads::of(&mut measures, KIND)?;
        if prints_table {
            report::line(server.name, measure, took, out)?;
        }
        errors += measure.errors;
        rates.push(measure.operations_per_second(took));
        record.insert(server.name.to_string(), measure.record(took));
    }
    if let [ours, peer] = rates[..] {
        record.insert("ratio".to_string(), json!(ours / peer.max(1.0)));
        if prints_table {
            writeln!(out, "{:.2} times the peer", ours / peer.max(1.0))?;
        }
    }
    record.insert("config".to_string(), args.as_json());
    report::write("keys", record, &args.output, out)?;
    Ok(errors)
}

impl KeysArgs {
    fn as_json(&self) -> serde_json::Value {
        json!({
            "keys": self.keys,
            "statements": self.statements,
            "connections": self.connections,
            "client_threads": self.client_threads,
            "rows": self.rows,
            "seconds": self.seconds,
            "text": self.text,
            "peer": self.peer.is_some(),
        })
    }
}

async fn load(server: &Server, args: &KeysArgs) -> anyhow::Result<()> {
    let mut conn = server.connect(0).await?;
    server.create_table(&mut conn, TABLE, COLUMNS).await?;
    let mut random = Prng::new(1);
    let mut digits = |count: usize| -> String {
        (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
    };
    for first in (0..args.rows).step_by(INSERTED_AT_ONCE as usize) {
        let mut statement = format!("INSERT INTO bench.{TABLE} VALUES ");
        for id in first..args.rows.min(first.saturating_add(INSERTED_AT_ONCE)) {
            let comma = if id == first { "" } else { "," };
            write!(statement, "{comma}({id},{},'{}','{}')", id / 2, digits(119), digits(59))?;
        }
        conn.query_drop(statement)
            .await
            .with_context(|| format!("{} takes no rows", server.name))?;
    }
    conn.disconnect().await?;
    Ok(())
}

/// What the client threads do.
#[derive(Clone)]
struct Lookups {
    server: Server,
    args: KeysArgs,
    clock: fn() -> Instant,
}

/// What is measured of a statement.
const KIND: &str = "keys";

impl Load for Lookups {
    type Clients = Vec<Reader>;

    async fn connect(&self, thread: u32) -> anyhow::Result<Vec<Reader>> {
        let own = (0..self.args.connections).filter(|c| c % self.args.client_threads == thread);
        let mut readers = Vec::new();
        for connection in own {
            readers.push(Reader::connect(&self.server, connection, &self.args, self.clock).await?);
        }
        Ok(readers)
    }

    async fn work(&self, readers: Vec<Reader>) -> anyhow::Result<Measures> {
        let end = (self.clock)().plus(Duration::from_millis(self.args.seconds * 1_000));
        let tasks: Vec<_> = readers.into_iter().map(|r| tokio::spawn(r.work(end))).collect();
        let mut measures = Measures::new();
        for task in tasks {
            let measure = task.await.context("a client task has died")??;
            threads::of(&mut measures, KIND)?.add(measure);
        }
        Ok(measures)
    }
}

/// One connection.
struct Reader {
    conn: Conn,
    prepared: Option<Statement>,
    keys: usize,
    statements: u32,
    rows: u32,
    random: Prng,
    clock: fn() -> Instant,
}

impl Reader {
    async fn connect(
        server: &Server,
        number: u32,
        args: &KeysArgs,
        clock: fn() -> Instant,
    ) -> anyhow::Result<Self> {
        let mut conn = server.connect(number as usize).await?;
        let keys = args.keys.min(args.rows) as usize;
        let marks = vec!["?"; keys].join(",");
        let prepared = match args.text {
            true => None,
            false => Some(conn.prep(select(&marks)).await?),
        };
        let random = Prng::new(u64::from(number));
        let (statements, rows) = (args.statements, args.rows);
        Ok(Self { conn, prepared, keys, statements, rows, random, clock })
    }

    async fn work(mut self, end: Instant) -> anyhow::Result<Measure> {
        let mut measure = Measure::new()?;
        while (self.clock)() < end {
            self.conn.query_drop("START TRANSACTION").await?;
            for _ in 0..self.statements {
                let begun = (self.clock)();
                let found = self.statement().await;
                let took = (self.clock)().since(begun);
                match found {
                    Ok(found) => measure.note(self.keys, self.keys.abs_diff(found), took),
                    Err(error) if error.is_fatal() => return Err(error.into()),
                    Err(error) => {
                        measure.fail(self.keys, &error);
                        break;
                    }
                }
            }
            self.conn.query_drop("COMMIT").await?;
        }
        self.conn.disconnect().await?;
        Ok(measure)
    }

    /// Looks up keys; how many were found.
    async fn statement(&mut self) -> mysql_async::Result<usize> {
        let keys = distinct(self.keys as u64, u64::from(self.rows), &mut self.random);
        let mut found = 0;
        match &self.prepared {
            Some(prepared) => {
                let keys: Vec<Value> = keys.map(Value::UInt).collect();
                let result = self.conn.exec_iter(prepared, keys).await?;
                result.for_each_and_drop(|_| found += 1).await?;
            }
            None => {
                let keys: Vec<String> = keys.map(|key| key.to_string()).collect();
                let result = self.conn.query_iter(select(&keys.join(","))).await?;
                result.for_each_and_drop(|_| found += 1).await?;
            }
        }
        Ok(found)
    }
}

fn select(keys: &str) -> String {
    format!("SELECT c FROM bench.{TABLE} WHERE id IN ({keys})")
}
