//! The table of YCSB, through the native client or through SQL.

use crate::{Place, mysql::Server, native};
use anyhow::Context;
use lats_base::{ErrorClass, prng::Prng};
use lats_catalog::{ColumnDef, TableDef};
use lats_client::{
    api::{
        AsOf, KeyRange, LockMode, LockWait, PRIMARY_INDEX, RowOp, RowOpKind, RowOutcome, Scan,
        StoreError,
    },
    net::Client,
    program::RowProgram,
};
use lats_values::{ColumnType, TypeKind, Value, encode_key_value};
use mysql_async::{Conn, Statement, Value as Sent, prelude::Queryable};
use std::sync::Arc;

pub(super) const TABLE: &str = "usertable";
const FIELDS: usize = 10;
const FIELD_BYTES: u16 = 100;
const KEY_BYTES: u16 = 64;

/// What went wrong.
pub(super) enum Failure {
    /// It may go well when it is tried again.
    Temporary,
    Other(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Temporary => f.write_str("temporary errors, for ten seconds"),
            Self::Other(said) => f.write_str(said),
        }
    }
}

/// How many records an operation has found or changed.
type Found = Result<usize, Failure>;

/// Where the table is.
#[derive(Clone)]
pub(super) enum Target {
    Native(Place),
    Sql(Server),
}

/// A connection, or several that work as one.
pub(super) enum Db {
    Native(Native),
    Sql(Box<Sql>),
}

impl Target {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Native(_) => "latsdb",
            Self::Sql(server) => server.name,
        }
    }

    /// Makes the table, anew if it is there.
    pub(super) async fn create(&self) -> anyhow::Result<()> {
        match self {
            Self::Native(place) => {
                native::create_table(&native::connect(place, 0).await?, definition()).await
            }
            Self::Sql(server) => {
                let mut conn = server.connect(0).await?;
                server.create_table(&mut conn, TABLE, &columns()).await?;
                Ok(conn.disconnect().await?)
            }
        }
    }

    pub(super) async fn drop_table(&self) -> anyhow::Result<()> {
        match self {
            Self::Native(place) => {
                native::drop_table(&native::connect(place, u64::MAX).await?, TABLE).await
            }
            Self::Sql(server) => server.drop_table(TABLE).await,
        }
    }

    /// Connections for one client thread: one native client for all, or one for each in SQL.
    /// Clients of different stages are different ones: their transactions must not have the same ids.
    pub(super) async fn connect(
        &self,
        (stage, thread): (u64, u32),
        count: usize,
    ) -> anyhow::Result<Vec<Db>> {
        let mut connections = Vec::with_capacity(count);
        match self {
            Self::Native(place) => {
                let client = native::connect(place, 1 + (u64::from(thread) << 8 | stage)).await?;
                let catalog = client.catalog();
                let def = catalog.table(native::DATABASE, TABLE).context("the table is gone")?;
                let def = Arc::new(def.clone());
                for _ in 0..count {
                    let native = Native { client: client.clone(), def: def.clone() };
                    connections.push(Db::Native(native));
                }
            }
            Self::Sql(server) => {
                for number in 0..count {
                    let conn = server.connect(thread as usize + number).await?;
                    connections.push(Db::Sql(Box::new(Sql::prepare(conn).await?)));
                }
            }
        }
        Ok(connections)
    }
}

impl Db {
    /// Inserts records before the measurement, together.
    pub(super) async fn load(&mut self, records: &[u64], random: &mut Prng) -> Found {
        match self {
            Self::Native(native) => native.insert(records, random).await,
            Self::Sql(sql) => sql.load(records, random).await,
        }
    }

    pub(super) async fn insert(&mut self, record: u64, random: &mut Prng) -> Found {
        match self {
            Self::Native(native) => native.insert(&[record], random).await,
            Self::Sql(sql) => sql.insert(record, random).await,
        }
    }

    pub(super) async fn read(&mut self, record: u64) -> Found {
        match self {
            Self::Native(native) => native.read(record).await,
            Self::Sql(sql) => sql.read(record).await,
        }
    }

    /// Sets one field.
    pub(super) async fn update(&mut self, record: u64, random: &mut Prng) -> Found {
        match self {
            Self::Native(native) => native.update(record, random).await,
            Self::Sql(sql) => sql.update(record, random).await,
        }
    }

    /// Reads so many records in the order of their keys, from one on; fewer at the end of the table.
    pub(super) async fn scan(&mut self, record: u64, count: u64) -> Found {
        match self {
            Self::Native(native) => native.scan(record, count).await,
            Self::Sql(sql) => sql.scan(record, count).await,
        }
    }
}

fn definition() -> TableDef {
    let bytes = |bytes| ColumnType::new(TypeKind::VarBinary { bytes }).not_null();
    let fields = (0..FIELDS).map(|at| ColumnDef::new(&field(at), bytes(FIELD_BYTES)));
    let key = ColumnDef::new("ycsb_key", bytes(KEY_BYTES));
    native::definition(TABLE, std::iter::once(key).chain(fields).collect())
}

fn columns() -> String {
    let fields = (0..FIELDS).map(|at| format!(", {} VARBINARY({FIELD_BYTES}) NOT NULL", field(at)));
    format!("ycsb_key VARBINARY({KEY_BYTES}) NOT NULL PRIMARY KEY{}", fields.collect::<String>())
}

fn field(at: usize) -> String {
    format!("field{at}")
}

fn content(random: &mut Prng) -> Vec<u8> {
    (0..FIELD_BYTES).map(|_| b' ' + random.below(95) as u8).collect()
}

/// Through the native client.
pub(super) struct Native {
    client: Client,
    def: Arc<TableDef>,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error.code.class() {
            ErrorClass::Temporary => Self::Temporary,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl Native {
    fn key(&self, record: u64) -> Vec<u8> {
        let mut key = Vec::new();
        let value = Value::Bytes(super::choose::key(record));
        encode_key_value(&self.def.columns[0].column_type, &value, &mut key);
        key
    }

    fn op(&self, kind: RowOpKind, record: u64, row: Vec<u8>, program: Vec<u8>) -> RowOp {
        let (table, schema_version) = (self.def.id, self.def.schema_version);
        let (key, wait) = (self.key(record), LockWait::Wait);
        RowOp { table, schema_version, kind, key, row, program: program.into(), wait }
    }

    async fn execute(&self, operations: Vec<RowOp>) -> Found {
        let mut transaction = self.client.begin();
        let (results, _) = transaction.execute(&operations, true).await?;
        Ok(results.iter().filter(|r| r.outcome == RowOutcome::Done).count())
    }

    async fn insert(&self, records: &[u64], random: &mut Prng) -> Found {
        let layout = self.def.layout();
        let mut operations = Vec::with_capacity(records.len());
        for record in records {
            let key = Value::Bytes(super::choose::key(*record));
            let fields = (0..FIELDS).map(|_| Value::Bytes(content(random)));
            let values: Vec<Value> = std::iter::once(key).chain(fields).collect();
            let mut row = Vec::new();
            layout.encode(&values, &mut row).map_err(|e| Failure::Other(e.message.to_string()))?;
            operations.push(self.op(RowOpKind::Insert, *record, row, Vec::new()));
        }
        self.execute(operations).await
    }

    async fn read(&self, record: u64) -> Found {
        let kind = RowOpKind::Read(LockMode::Committed);
        let results = self.client.read(vec![self.op(kind, record, Vec::new(), Vec::new())]).await?;
        Ok(results.iter().filter(|r| r.outcome == RowOutcome::Done).count())
    }

    async fn update(&self, record: u64, random: &mut Prng) -> Found {
        let name = field(random.below(FIELDS as u64) as usize);
        let value = Value::Bytes(content(random));
        let program = RowProgram::new(&self.def).set(&name, value);
        let program = program.map_err(|code| Failure::Other(code.to_string()))?.encode();
        self.execute(vec![self.op(RowOpKind::Update, record, Vec::new(), program)]).await
    }

    async fn scan(&self, record: u64, count: u64) -> Found {
        let scan = Scan {
            table: self.def.id,
            schema_version: self.def.schema_version,
            index: PRIMARY_INDEX,
            ranges: vec![KeyRange { lower: self.key(record), upper: None }],
            ordered: true,
            reverse: false,
            primary_keys: false,
            program: Default::default(),
            limit: Some(count),
            pending: false,
            to_lock: false,
            few: false,
            first_of_range: false,
            as_of: AsOf::Newest,
        };
        let mut stream = self.client.scan(scan);
        let mut found = 0;
        while let Some(batch) = stream.next().await? {
            found += batch.len();
        }
        Ok(found)
    }
}

/// Through SQL, with prepared statements.
pub(super) struct Sql {
    conn: Conn,
    insert: Statement,
    read: Statement,
    updates: Vec<Statement>,
    scan: Statement,
}

/// Lock wait timeout and deadlock: errors that ask for another attempt.
const TRY_AGAIN: [u16; 2] = [1205, 1213];

impl From<mysql_async::Error> for Failure {
    fn from(error: mysql_async::Error) -> Self {
        match &error {
            mysql_async::Error::Server(said) if TRY_AGAIN.contains(&said.code) => Self::Temporary,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl Sql {
    async fn prepare(mut conn: Conn) -> anyhow::Result<Self> {
        let marks = ["?"; FIELDS + 1].join(",");
        let insert = conn.prep(format!("INSERT INTO bench.{TABLE} VALUES ({marks})")).await?;
        let read = conn.prep(format!("SELECT * FROM bench.{TABLE} WHERE ycsb_key = ?")).await?;
        let mut updates = Vec::new();
        for at in 0..FIELDS {
            let name = field(at);
            let text = format!("UPDATE bench.{TABLE} SET {name} = ? WHERE ycsb_key = ?");
            updates.push(conn.prep(text).await?);
        }
        let scan =
            format!("SELECT * FROM bench.{TABLE} WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?");
        let scan = conn.prep(scan).await?;
        Ok(Self { conn, insert, read, updates, scan })
    }

    fn row(record: u64, random: &mut Prng) -> Vec<Sent> {
        let fields = (0..FIELDS).map(|_| Sent::Bytes(content(random)));
        std::iter::once(Sent::Bytes(super::choose::key(record))).chain(fields).collect()
    }

    async fn load(&mut self, records: &[u64], random: &mut Prng) -> Found {
        let marks = format!("({})", ["?"; FIELDS + 1].join(","));
        let rows = vec![&*marks; records.len()].join(",");
        let values: Vec<Sent> = records.iter().flat_map(|r| Self::row(*r, random)).collect();
        self.conn.exec_drop(format!("INSERT INTO bench.{TABLE} VALUES {rows}"), values).await?;
        Ok(self.conn.affected_rows() as usize)
    }

    async fn insert(&mut self, record: u64, random: &mut Prng) -> Found {
        self.conn.exec_drop(&self.insert, Self::row(record, random)).await?;
        Ok(self.conn.affected_rows() as usize)
    }

    async fn read(&mut self, record: u64) -> Found {
        let key = vec![Sent::Bytes(super::choose::key(record))];
        count(self.conn.exec_iter(&self.read, key).await?).await
    }

    async fn update(&mut self, record: u64, random: &mut Prng) -> Found {
        let at = random.below(FIELDS as u64) as usize;
        let key = Sent::Bytes(super::choose::key(record));
        self.conn.exec_drop(&self.updates[at], vec![Sent::Bytes(content(random)), key]).await?;
        Ok(self.conn.affected_rows() as usize)
    }

    async fn scan(&mut self, record: u64, rows: u64) -> Found {
        let from = Sent::Bytes(super::choose::key(record));
        count(self.conn.exec_iter(&self.scan, vec![from, Sent::UInt(rows)]).await?).await
    }
}

async fn count(
    result: mysql_async::QueryResult<'_, 'static, mysql_async::BinaryProtocol>,
) -> Found {
    let mut found = 0;
    result.for_each_and_drop(|_| found += 1).await?;
    Ok(found)
}
