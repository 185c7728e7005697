//! The table of `flex`, and operations on its rows.

use super::{FlexArgs, Stage};
use crate::{
    Place,
    native::{self, DATABASE},
};
use anyhow::Context;
use lats_catalog::{ColumnDef, TableDef};
use lats_client::{
    api::{LockMode, LockWait, RowOp, RowOpKind},
    net::Client,
    program::RowProgram,
};
use lats_values::{ColumnType, RowLayout, TypeKind, Value, encode_key_value};

const TABLE: &str = "flex";

/// The table.
#[derive(Debug)]
pub(super) struct Rows {
    def: TableDef,
    layout: RowLayout,
    columns: usize,
    column_bytes: usize,
}

pub(super) async fn create_table(client: &Client, args: &FlexArgs) -> anyhow::Result<Rows> {
    native::create_table(client, definition(args)).await?;
    let catalog = client.catalog();
    let def = catalog.table(DATABASE, TABLE).context("the table is not there")?.clone();
    let (columns, column_bytes) = (usize::from(args.columns), usize::from(args.column_bytes));
    Ok(Rows { layout: def.layout(), def, columns, column_bytes })
}

pub(super) async fn drop_table(place: &Place) -> anyhow::Result<()> {
    native::drop_table(&native::connect(place, u64::MAX).await?, TABLE).await
}

fn definition(args: &FlexArgs) -> TableDef {
    let key = ColumnDef::new("id", ColumnType::new(TypeKind::BigInt).unsigned().not_null());
    let bytes = TypeKind::VarBinary { bytes: args.column_bytes };
    let values = (0..args.columns)
        .map(|at| ColumnDef::new(&column_name(at.into()), ColumnType::new(bytes).not_null()));
    native::definition(TABLE, std::iter::once(key).chain(values).collect())
}

fn column_name(at: usize) -> String {
    format!("c{at}")
}

impl Rows {
    /// What a stage does with these rows in its transaction of this number.
    pub(super) fn operations(
        &self,
        stage: Stage,
        ids: &[u64],
        number: u64,
    ) -> anyhow::Result<Vec<RowOp>> {
        let program = match stage {
            Stage::Update => self.update(number)?,
            Stage::Insert | Stage::Read | Stage::Delete => Vec::new(),
        };
        ids.iter().map(|id| self.operation(stage, *id, &program)).collect()
    }

    fn operation(&self, stage: Stage, id: u64, program: &[u8]) -> anyhow::Result<RowOp> {
        let mut key = Vec::with_capacity(9);
        encode_key_value(&self.def.columns[0].column_type, &Value::UInt(id), &mut key);
        let (kind, row) = match stage {
            Stage::Insert => (RowOpKind::Insert, self.row(id)?),
            Stage::Read => (RowOpKind::Read(LockMode::Committed), Vec::new()),
            Stage::Update => (RowOpKind::Update, Vec::new()),
            Stage::Delete => (RowOpKind::Delete, Vec::new()),
        };
        let (table, schema_version) = (self.def.id, self.def.schema_version);
        let (program, wait) = (program.into(), LockWait::Wait);
        Ok(RowOp { table, schema_version, kind, key, row, program, wait })
    }

    /// Bytes that differ from one number to the next.
    fn value(&self, number: u64) -> Value {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        Value::Bytes(mixed.into_iter().cycle().take(self.column_bytes).collect())
    }

    fn row(&self, id: u64) -> anyhow::Result<Vec<u8>> {
        let values = std::iter::repeat_with(|| self.value(id)).take(self.columns);
        let values: Vec<Value> = std::iter::once(Value::UInt(id)).chain(values).collect();
        let mut row = Vec::new();
        let encoded = self.layout.encode(&values, &mut row);
        encoded.map_err(|error| anyhow::anyhow!("{}", error.message))?;
        Ok(row)
    }

    /// Sets every column to something that no insert and no other transaction has given it.
    fn update(&self, number: u64) -> anyhow::Result<Vec<u8>> {
        let mut program = RowProgram::new(&self.def);
        for at in 0..self.columns {
            let set = program.set(&column_name(at), self.value(!number));
            program = set.map_err(|code| anyhow::anyhow!("{code}"))?;
        }
        Ok(program.encode())
    }
}
