//! The table of the gauge, and its two operations: read a row by its key, and count it up.

use super::LatsArgs;
use crate::{
    mysql::Server,
    native::{self, DATABASE},
    patience::Patience,
};
use anyhow::Context;
use lats_base::{ErrorClass, RefCode, prng::Prng};
use lats_catalog::{ColumnDef, TableDef};
use lats_client::{
    api::{
        AsOf, KeyRange, LockMode, PRIMARY_INDEX, RowOp, RowOpKind, RowOutcome, Scan, StoreError,
    },
    net::Client,
    program::RowProgram,
};
use lats_values::{ColumnType, RowLayout, TypeKind, Value};
use mysql_async::{Conn, Statement, Value as Sent, prelude::Queryable};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

pub(super) const TABLE: &str = "lats";
/// Rows that are inserted together.
pub(super) const LOADED_AT_ONCE: u64 = 200;

/// What became of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was done; what a read has shown.
    Done(u64),
    /// It was done, and there is no such row.
    NoRow,
    /// Nothing was done; it may succeed another time.
    Temporary,
    /// Nothing was done.
    Refused(String),
    /// Nobody knows.
    Unknown(String),
}

/// The table, through the native client.
#[derive(Debug)]
pub(super) struct Table {
    def: TableDef,
    layout: RowLayout,
    bytes: u16,
}

impl Table {
    /// Makes it, anew if it is there.
    pub(super) async fn create(client: &Client, args: &LatsArgs) -> anyhow::Result<Arc<Self>> {
        let number = || ColumnType::new(TypeKind::BigInt).unsigned().not_null();
        let bytes = ColumnType::new(TypeKind::VarBinary { bytes: args.row_bytes }).not_null();
        let columns = vec![
            ColumnDef::new("id", number()),
            ColumnDef::new("n", number()),
            ColumnDef::new("field", bytes),
        ];
        native::create_table(client, native::definition(TABLE, columns)).await?;
        let catalog = client.catalog();
        let def = catalog.table(DATABASE, TABLE).context("the table is not there")?.clone();
        Ok(Arc::new(Self { layout: def.layout(), def, bytes: args.row_bytes }))
    }

    /// Inserts rows with these numbers. A cluster that has just begun may not serve for a moment.
    pub(super) async fn insert(
        &self,
        client: &Client,
        rows: std::ops::Range<u64>,
        mut patience: Patience,
    ) -> anyhow::Result<()> {
        let mut operations = Vec::new();
        let mut random = Prng::new(rows.start);
        for row in rows {
            let mut image = Vec::new();
            let values = [Value::UInt(row), Value::UInt(0), content(self.bytes, &mut random)];
            let encoded = self.layout.encode(&values, &mut image);
            encoded.map_err(|error| anyhow::anyhow!("{}", error.message))?;
            let operation = RowProgram::new(&self.def).operation(RowOpKind::Insert, &values[..1]);
            operations.push(RowOp { row: image, program: Arc::default(), ..operation });
        }
        loop {
            match client.begin().execute(&operations, true).await {
                Ok(_) => return Ok(()),
                Err(error)
                    if error.code.class() == ErrorClass::Temporary && patience.again().await => {}
                Err(error) => return Err(error).context("rows cannot be inserted"),
            }
        }
    }

    /// All rows: number and counter.
    pub(super) async fn all(&self, client: &Client) -> Result<Vec<(u64, u64)>, StoreError> {
        let program = RowProgram::new(&self.def).returning(&["id", "n"])?;
        let scan = Scan {
            table: self.def.id,
            schema_version: self.def.schema_version,
            index: PRIMARY_INDEX,
            ranges: vec![KeyRange::default()],
            ordered: false,
            reverse: false,
            primary_keys: false,
            program: program.encode().into(),
            limit: None,
            pending: false,
            to_lock: false,
            few: false,
            first_of_range: false,
            as_of: AsOf::Newest,
        };
        let mut stream = client.scan(scan);
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await? {
            for found in batch.iter() {
                if let [Value::UInt(row), Value::UInt(n)] = program.answered(found.row)[..] {
                    rows.push((row, n));
                }
            }
        }
        Ok(rows)
    }

    async fn read(&self, client: &Client, row: u64) -> Outcome {
        let program = RowProgram::new(&self.def);
        let kind = RowOpKind::Read(LockMode::Committed);
        let answer = client.read(vec![program.operation(kind, &[Value::UInt(row)])]).await;
        let results = match answer {
            Ok(results) => results,
            Err(error) => return error.into(),
        };
        let image = results.first().and_then(|result| result.row.as_ref());
        match image.map(|image| program.answered(image)).as_deref() {
            Some([_, Value::UInt(n), _]) => Outcome::Done(*n),
            _ => Outcome::NoRow,
        }
    }

    async fn update(&self, client: &Client, row: u64, random: &mut Prng) -> Outcome {
        let operation = match self.counting_up(row, random) {
            Ok(operation) => operation,
            Err(code) => return Outcome::Refused(code.to_string()),
        };
        match client.begin().execute(&[operation], true).await {
            Err(error) => error.into(),
            Ok((results, _)) => match results.first().map(|result| result.outcome) {
                Some(RowOutcome::Done) => Outcome::Done(0),
                Some(_) => Outcome::NoRow,
                // Committed, and nobody knows how many rows were changed.
                None => Outcome::Unknown(RefCode::ResultsLost.to_string()),
            },
        }
    }

    fn counting_up(&self, row: u64, random: &mut Prng) -> Result<RowOp, RefCode> {
        let program = RowProgram::new(&self.def);
        let next = program.column("n")? + 1;
        let program = program.set("n", next)?.set("field", content(self.bytes, random))?;
        Ok(program.operation(RowOpKind::Update, &[Value::UInt(row)]))
    }
}

fn content(bytes: u16, random: &mut Prng) -> Value {
    Value::Bytes((0..bytes).map(|_| b' ' + random.below(95) as u8).collect())
}

impl From<StoreError> for Outcome {
    fn from(error: StoreError) -> Self {
        match error.class() {
            ErrorClass::Temporary => Self::Temporary,
            ErrorClass::UnknownOutcome => Self::Unknown(error.to_string()),
            ErrorClass::Permanent | ErrorClass::Constraint => Self::Refused(error.to_string()),
        }
    }
}

/// How operations reach the table.
#[derive(Clone)]
pub(super) enum Access {
    Native(Client, Arc<Table>),
    Sql(Arc<Pool>),
    /// What becomes of an operation on a row, and whether it is an update; none: it never ends.
    #[cfg(test)]
    Planned(fn(u64, bool) -> Option<Outcome>),
}

impl Access {
    pub(super) async fn read(&self, row: u64) -> Outcome {
        match self {
            Self::Native(client, table) => table.read(client, row).await,
            Self::Sql(pool) => pool.read(row).await,
            #[cfg(test)]
            Self::Planned(plan) => planned(plan(row, false)).await,
        }
    }

    /// Counts the row up, and fills its other column with what `random` gives.
    pub(super) async fn update(&self, row: u64, random: &mut Prng) -> Outcome {
        match self {
            Self::Native(client, table) => table.update(client, row, random).await,
            Self::Sql(pool) => pool.update(row, random).await,
            #[cfg(test)]
            Self::Planned(plan) => planned(plan(row, true)).await,
        }
    }
}

#[cfg(test)]
async fn planned(outcome: Option<Outcome>) -> Outcome {
    match outcome {
        Some(outcome) => outcome,
        None => std::future::pending().await,
    }
}

/// SQL connections, each for one statement at a time.
pub(super) struct Pool {
    server: Server,
    bytes: u16,
    free: tokio::sync::Mutex<Vec<Session>>,
    tickets: tokio::sync::Semaphore,
    opened: AtomicUsize,
}

struct Session {
    conn: Conn,
    read: Statement,
    update: Statement,
}

/// Lock wait timeout, transaction rolled back, temporary error; too many connections, shutdown.
const TEMPORARY: [u16; 5] = [1205, 1213, 1297, 1040, 1053];
/// After these the connection is closed.
const ENDS: [u16; 2] = [1040, 1053];
/// Nobody knows what became of a statement, or how many rows it has changed.
const UNKNOWN: [u16; 2] = [50_029, 50_038];
/// How long a connection may take.
const CONNECT: std::time::Duration = std::time::Duration::from_millis(500);

impl Pool {
    pub(super) async fn new(server: Server, count: u32, bytes: u16) -> anyhow::Result<Arc<Self>> {
        let mut free = Vec::new();
        for number in 0..count {
            free.push(Session::open(&server, number as usize).await?);
        }
        let tickets = tokio::sync::Semaphore::new(count as usize);
        Ok(Arc::new(Self {
            server,
            bytes,
            free: tokio::sync::Mutex::new(free),
            tickets,
            opened: AtomicUsize::new(0),
        }))
    }

    async fn read(&self, row: u64) -> Outcome {
        self.run(false, async |session: &mut Session| {
            let found: Option<(u64, u64, Vec<u8>)> =
                session.conn.exec_first(&session.read, (row,)).await?;
            Ok(found.map_or(Outcome::NoRow, |(_, n, _)| Outcome::Done(n)))
        })
        .await
    }

    async fn update(&self, row: u64, random: &mut Prng) -> Outcome {
        let Value::Bytes(field) = content(self.bytes, random) else { return Outcome::NoRow };
        self.run(true, async |session: &mut Session| {
            let values = vec![Sent::Bytes(field.clone()), Sent::UInt(row)];
            session.conn.exec_drop(&session.update, values).await?;
            let changed = session.conn.affected_rows();
            Ok(if changed == 1 { Outcome::Done(0) } else { Outcome::NoRow })
        })
        .await
    }

    /// Runs a statement on a free connection, or on a new one in the place of one that has ended.
    async fn run(
        &self,
        changes: bool,
        work: impl AsyncFnOnce(&mut Session) -> mysql_async::Result<Outcome>,
    ) -> Outcome {
        let Ok(_ticket) = self.tickets.acquire().await else { return Outcome::Temporary };
        let free = self.free.lock().await.pop();
        let mut session = match free {
            Some(session) => session,
            None => match self.reopen().await {
                Some(session) => session,
                None => return Outcome::Temporary,
            },
        };
        match work(&mut session).await {
            Ok(outcome) => {
                self.free.lock().await.push(session);
                outcome
            }
            Err(mysql_async::Error::Server(said)) => {
                if !ENDS.contains(&said.code) {
                    self.free.lock().await.push(session);
                }
                match said.code {
                    code if TEMPORARY.contains(&code) => Outcome::Temporary,
                    code if UNKNOWN.contains(&code) => Outcome::Unknown(said.to_string()),
                    _ => Outcome::Refused(said.to_string()),
                }
            }
            // Its node is gone: a change that was under way may have come about.
            Err(error) if changes => Outcome::Unknown(error.to_string()),
            Err(_) => Outcome::Temporary,
        }
    }
}

impl Pool {
    /// A connection to the next node: the one that another was at may be gone.
    async fn reopen(&self) -> Option<Session> {
        let number = self.opened.fetch_add(1, Relaxed);
        let opening = Session::open(&self.server, number);
        tokio::time::timeout(CONNECT, opening).await.ok()?.ok()
    }
}

impl Session {
    async fn open(server: &Server, number: usize) -> anyhow::Result<Self> {
        let mut conn = server.connect(number).await?;
        let read = conn.prep(format!("SELECT * FROM {DATABASE}.{TABLE} WHERE id = ?")).await?;
        let update = format!("UPDATE {DATABASE}.{TABLE} SET n = n + 1, field = ? WHERE id = ?");
        let update = conn.prep(update).await?;
        Ok(Self { conn, read, update })
    }
}
