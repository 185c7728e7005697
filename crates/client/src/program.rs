//! Programs for rows, by the names of their columns: conditions, arithmetic, what is answered.
//!
//! They run in the data node, in one round trip, while it holds the row's lock
//! (`docs/protocols/program.md`).
//!
//! ```ignore
//! let program = RowProgram::new(&table);
//! let balance = program.column("balance")?;
//! let withdraw = program
//!     .when(balance.clone().at_least(100))
//!     .set("balance", balance - 100)?
//!     .returning(&["balance"])?
//!     .encode();
//! ```

use crate::api::{LockWait, RowOp, RowOpKind};
use lats_base::RefCode;
use lats_catalog::TableDef;
use lats_values::{BinaryOp, Expr, Program, RowLayout, UnaryOp, Value, encode_key_value};
use std::ops::{Add, Mul, Sub};

/// A column, a value, or what is computed from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Term(Expr);

impl From<Value> for Term {
    fn from(value: Value) -> Self {
        Self(Expr::Literal(value))
    }
}

impl From<i64> for Term {
    fn from(value: i64) -> Self {
        Value::Int(value).into()
    }
}

impl From<&str> for Term {
    fn from(value: &str) -> Self {
        Value::text(value).into()
    }
}

impl<T: Into<Self>> Add<T> for Term {
    type Output = Self;

    fn add(self, other: T) -> Self {
        self.with(BinaryOp::Add, other)
    }
}

impl<T: Into<Self>> Sub<T> for Term {
    type Output = Self;

    fn sub(self, other: T) -> Self {
        self.with(BinaryOp::Subtract, other)
    }
}

impl<T: Into<Self>> Mul<T> for Term {
    type Output = Self;

    fn mul(self, other: T) -> Self {
        self.with(BinaryOp::Multiply, other)
    }
}

impl Term {
    /// Any operator of MySQL.
    #[must_use]
    pub fn with(self, op: BinaryOp, other: impl Into<Self>) -> Self {
        let (left, right) = (Box::new(self.0), Box::new(other.into().0));
        Self(Expr::Binary { op, left, right })
    }

    /// `=`.
    #[must_use]
    pub fn equals(self, other: impl Into<Self>) -> Self {
        self.with(BinaryOp::Equal, other)
    }

    /// `<`.
    #[must_use]
    pub fn below(self, other: impl Into<Self>) -> Self {
        self.with(BinaryOp::Less, other)
    }

    /// `>=`.
    #[must_use]
    pub fn at_least(self, other: impl Into<Self>) -> Self {
        self.with(BinaryOp::GreaterOrEqual, other)
    }

    /// `AND`.
    #[must_use]
    pub fn and(self, other: impl Into<Self>) -> Self {
        self.with(BinaryOp::And, other)
    }

    /// `OR`.
    #[must_use]
    pub fn or(self, other: impl Into<Self>) -> Self {
        self.with(BinaryOp::Or, other)
    }

    /// `NOT`.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(Expr::Unary { op: UnaryOp::Not, arg: Box::new(self.0) })
    }

    /// `IS NULL`.
    #[must_use]
    pub fn is_null(self) -> Self {
        Self(Expr::IsNull { arg: Box::new(self.0), negated: false })
    }
}

/// A program for the rows of a table.
#[derive(Clone, Debug)]
pub struct RowProgram<'t> {
    table: &'t TableDef,
    program: Program,
}

impl<'t> RowProgram<'t> {
    /// A program that does nothing yet. Values that do not fit their column are errors.
    pub fn new(table: &'t TableDef) -> Self {
        Self { table, program: Program { strict: true, ..Program::default() } }
    }

    fn number(&self, name: &str) -> Result<u16, RefCode> {
        let mut columns = self.table.columns.iter().zip(0..);
        let found = columns.find(|(column, _)| column.name.eq_ignore_ascii_case(name));
        found.map(|(_, number)| number).ok_or(RefCode::ProgramMalformed)
    }

    /// A column of the table.
    ///
    /// # Errors
    /// [`RefCode::ProgramMalformed`] if it has none of this name.
    pub fn column(&self, name: &str) -> Result<Term, RefCode> {
        Ok(Term(Expr::Column(self.number(name)?.into())))
    }

    /// Only rows for which this is true; with the conditions given before.
    #[must_use]
    pub fn when(mut self, condition: Term) -> Self {
        let filter = match self.program.filter.take() {
            Some(before) => Term(before).and(condition),
            None => condition,
        };
        self.program.filter = Some(filter.0);
        self
    }

    /// Sets a column. Later assignments see what earlier ones have set.
    ///
    /// # Errors
    /// [`RefCode::ProgramMalformed`] for an unknown column.
    pub fn set(mut self, name: &str, value: impl Into<Term>) -> Result<Self, RefCode> {
        let number = self.number(name)?;
        self.program.assignments.push((number, value.into().0));
        Ok(self)
    }

    /// Columns of the row that are answered: of an updated row as it is then, of a deleted one as
    /// it was. Without this a change answers with no row, and a read with the whole row.
    ///
    /// # Errors
    /// [`RefCode::ProgramMalformed`] for an unknown column.
    pub fn returning(mut self, names: &[&str]) -> Result<Self, RefCode> {
        let numbers: Result<Vec<u16>, RefCode> = names.iter().map(|n| self.number(n)).collect();
        self.program.projection = Some(numbers?);
        Ok(self)
    }

    /// The operation that runs it on the row with this primary key: values of the key's columns, in their order and of their types.
    pub fn operation(&self, kind: RowOpKind, key: &[Value]) -> RowOp {
        let mut encoded = Vec::new();
        let columns = self.table.primary_key.iter().map(|at| &self.table.columns[usize::from(*at)]);
        for (column, value) in columns.zip(key) {
            encode_key_value(&column.column_type, value, &mut encoded);
        }
        RowOp {
            table: self.table.id,
            schema_version: self.table.schema_version,
            kind,
            key: encoded,
            row: Vec::new(),
            program: self.encode().into(),
            wait: LockWait::Wait,
        }
    }

    /// The values in a row that it was answered with.
    pub fn answered(&self, row: &[u8]) -> Vec<Value> {
        let all = 0..self.table.columns.len() as u16;
        let numbers = self.program.projection.clone().unwrap_or_else(|| all.collect());
        let columns =
            numbers.iter().map(|at| self.table.columns[usize::from(*at)].column_type.clone());
        RowLayout::new(&columns.collect::<Vec<_>>()).decode(row)
    }

    /// The bytes for [`crate::api::RowOp::program`].
    pub fn encode(&self) -> Vec<u8> {
        self.program.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_catalog::{Catalog, SEQUENCES_TABLE};

    #[test]
    fn a_program_by_names_is_the_program_by_numbers() {
        let catalog = Catalog::initial();
        let table = &catalog.tables[&SEQUENCES_TABLE];
        let name = table.columns[1].name.clone();
        let program = RowProgram::new(table);
        let next = program.column(&name).unwrap();
        let bounded = next.clone().below(100).or(next.clone().is_null().negated());
        let program = program
            .when(next.clone().at_least(5))
            .when(bounded)
            .set(&name, next * 2 + 1)
            .unwrap()
            .returning(&[&name])
            .unwrap();
        let layout = table.layout();
        let decoded = Program::decode(&program.encode(), layout.columns()).unwrap();
        let row = |next: u64| {
            let mut out = Vec::new();
            layout.encode(&[Value::UInt(7), Value::UInt(next)], &mut out).unwrap();
            out
        };
        assert_eq!(decoded.updated(&layout, &row(4)), Ok(None));
        assert_eq!(decoded.updated(&layout, &row(21)), Ok(Some(row(43))));
        assert_eq!(decoded.projection, Some(vec![1]));
        assert!(RowProgram::new(table).column("nothing").is_err());
        assert!(RowProgram::new(table).set("nothing", 1).is_err());
    }
}
