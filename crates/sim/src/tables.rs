//! The tables of the simulated load: accounts, the history of transfers, registers.

use lats_base::{FragmentId, IndexId, TableId};
use lats_catalog::{Catalog, Change, ColumnDef, IndexDef, TableDef, Unique};
use lats_client::api::{AsOf, KeyRange, LockMode, LockWait, PRIMARY_INDEX, RowOp, RowOpKind, Scan};
use lats_client::unique::UniqueLookup;
use lats_values::{
    BinaryOp, ColumnType, Expr, Program, RowLayout, TypeKind, Value, encode_key_value,
};

/// The name of the index that comes and goes.
const BY_SECOND: &str = "by_second";

/// A table of BIGINT columns; the first is the primary key.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Its id in the catalog.
    pub id: TableId,
    name: &'static str,
    columns: &'static [&'static str],
    index: Option<u16>,
    unique: bool,
    /// The version of its definition, as far as it is known.
    pub schema_version: u32,
    layout: RowLayout,
    /// The index that comes and goes, if it is there.
    pub by_second: Option<IndexId>,
}

impl Numbers {
    /// A table that is yet to be created.
    pub fn new(
        id: u32,
        name: &'static str,
        columns: &'static [&'static str],
        index: Option<u16>,
    ) -> Self {
        let types = vec![Self::column_type(); columns.len()];
        let layout = RowLayout::new(&types);
        Self {
            id: TableId::new(id),
            name,
            columns,
            index,
            unique: false,
            schema_version: 1,
            layout,
            by_second: None,
        }
    }

    /// Its index is unique. The index's hidden table gets the next id.
    pub fn with_unique_index(self) -> Self {
        Self { unique: true, ..self }
    }

    fn column_type() -> ColumnType {
        ColumnType::new(TypeKind::BigInt).not_null()
    }

    /// The change that creates it.
    pub fn creation(&self) -> Change {
        Change::CreateTable { table: self.definition(), if_not_exists: true }
    }

    /// A search for the row with this value in its unique index.
    pub fn lookup(&self, value: i64) -> UniqueLookup {
        let table = TableDef { id: self.id, schema_version: 1, ..self.definition() };
        let lookup = UniqueLookup::new(&table, &table.indexes[0], vec![self.key(value)]);
        lookup.expect("the index is unique")
    }

    fn definition(&self) -> TableDef {
        let columns =
            self.columns.iter().map(|name| ColumnDef::new(name, Self::column_type())).collect();
        let entries = Unique { table: TableId::new(self.id.get() + 1), builder: None };
        let indexes = self.index.map(|column| IndexDef {
            id: IndexId::new(1),
            name: "by_column".to_string(),
            columns: vec![column],
            unique: self.unique.then_some(entries),
        });
        let indexes = indexes.into_iter().collect();
        TableDef { indexes, ..TableDef::new("test", self.name, columns, vec![0]) }
    }

    /// The change that brings an index on the second column, or takes it away.
    pub fn index_change(&self) -> Change {
        let (database, table) = ("test".to_string(), self.name.to_string());
        let name = BY_SECOND.to_string();
        match self.by_second {
            None => Change::CreateIndex { database, table, name, columns: vec![1], builder: None },
            Some(_) => Change::DropIndex { database, table, name },
        }
    }

    /// Works with the table as this catalog has it.
    pub fn learn(&mut self, catalog: &Catalog) {
        let def = catalog.tables.get(&self.id);
        if let Some(def) = def.filter(|d| d.schema_version >= self.schema_version) {
            self.schema_version = def.schema_version;
            let index = def.indexes.iter().find(|i| i.name == BY_SECOND);
            self.by_second = index.map(|i| i.id);
        }
    }

    /// The encoded key of a row.
    pub fn key(&self, id: i64) -> Vec<u8> {
        let mut key = Vec::new();
        encode_key_value(&Self::column_type(), &Value::Int(id), &mut key);
        key
    }

    /// The stored image of a row.
    pub fn row(&self, values: &[i64]) -> Vec<u8> {
        let values: Vec<Value> = values.iter().map(|v| Value::Int(*v)).collect();
        let mut row = Vec::new();
        let encoded = self.layout.encode(&values, &mut row);
        assert!(encoded.is_ok(), "numbers fit");
        row
    }

    /// The numbers in a stored image.
    pub fn numbers(&self, row: &[u8]) -> Vec<i64> {
        let number = |v: Value| match v {
            Value::Int(n) => n,
            other => panic!("a number, not {other:?}"),
        };
        self.layout.decode(row).into_iter().map(number).collect()
    }

    fn op(&self, kind: RowOpKind, id: i64, row: Vec<u8>, program: Vec<u8>) -> RowOp {
        let (table, key, wait) = (self.id, self.key(id), LockWait::Wait);
        let program = program.into();
        RowOp { table, schema_version: self.schema_version, kind, key, row, program, wait }
    }

    /// Reads a row.
    pub fn read(&self, id: i64, lock: LockMode) -> RowOp {
        self.op(RowOpKind::Read(lock), id, Vec::new(), Vec::new())
    }

    /// Inserts a row.
    pub fn insert(&self, values: &[i64]) -> RowOp {
        self.op(RowOpKind::Insert, values[0], self.row(values), Vec::new())
    }

    /// Stores a row.
    pub fn write(&self, values: &[i64]) -> RowOp {
        self.op(RowOpKind::Write, values[0], self.row(values), Vec::new())
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Enters a row into the index that is being built.
    pub fn reindex(&self, key: Vec<u8>) -> RowOp {
        RowOp { key, ..self.op(RowOpKind::Reindex, 0, Vec::new(), Vec::new()) }
    }

    /// Deletes a row.
    pub fn delete(&self, id: i64) -> RowOp {
        self.op(RowOpKind::Delete, id, Vec::new(), Vec::new())
    }

    /// Adds to a column of a row, in the data node.
    pub fn add(&self, id: i64, column: u16, amount: i64) -> RowOp {
        let sum = Expr::Binary {
            op: BinaryOp::Add,
            left: Box::new(Expr::Column(column.into())),
            right: Box::new(Expr::Literal(Value::Int(amount))),
        };
        let program = Program {
            assignments: vec![(column, sum)],
            projection: Some((0..self.columns.len() as u16).collect()),
            ..Program::default()
        };
        self.op(RowOpKind::Update, id, Vec::new(), program.encode())
    }

    /// An update that the data node refuses: NULL for a column that cannot be NULL.
    pub fn refused(&self, id: i64, column: u16) -> RowOp {
        let assignments = vec![(column, Expr::Literal(Value::Null))];
        let program = Program { assignments, strict: true, ..Program::default() };
        self.op(RowOpKind::Update, id, Vec::new(), program.encode())
    }

    /// A scan of the whole table.
    pub fn scan(&self) -> Scan {
        Scan {
            table: self.id,
            schema_version: self.schema_version,
            index: PRIMARY_INDEX,
            ranges: vec![KeyRange { lower: Vec::new(), upper: None }],
            ordered: false,
            reverse: false,
            primary_keys: false,
            program: Default::default(),
            limit: None,
            as_of: AsOf::Newest,
            pending: false,
            to_lock: false,
            few: false,
            first_of_range: false,
        }
    }

    /// The fragment of a row, of `count`.
    pub fn fragment(&self, id: i64, count: u16) -> FragmentId {
        let bucket = lats_base::hash::bucket_of(lats_base::hash::partition_hash(&self.key(id)));
        FragmentId::new((bucket % u32::from(count)) as u16)
    }
}
