//! The relational form of a query.

pub mod types;
pub mod walk;

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use lats_values::aggregate::AggregateSpec;
use lats_values::{ColumnType, Expr};

/// A column of a statement; its number is unique in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// A table of a statement: each mention of a table is one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// An expression over columns. [`Expr::Column`] holds a [`ColumnId`], or a number from [`EXTERNAL_BASE`] on.
pub type Scalar = Expr;

/// Numbers of [`Expr::Column`] from here on are values from outside the statement's rows, such as `?`.
pub const EXTERNAL_BASE: u32 = 1 << 31;

impl ColumnId {
    /// The column as an expression.
    pub fn scalar(self) -> Scalar {
        Expr::Column(self.0)
    }
}

/// A column's type, by the column's number.
pub type Types = [ColumnType];

/// Rows of a table, as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// Which mention of a table.
    pub source: SourceId,
    /// The number of the table's first column; the others follow.
    pub first: ColumnId,
    /// How many columns the table has.
    pub width: u32,
    /// The columns that are read, in the order of the table.
    pub columns: Vec<ColumnId>,
    /// Sets of columns of which no two rows have the same values, NULLs aside; the primary key is the first.
    pub keys: Vec<Vec<ColumnId>>,
    /// The columns of indexes by which rows may be found.
    pub indexes: Vec<Vec<ColumnId>>,
    /// Rows for which this is not true are left out. It sees all columns of the table.
    pub condition: Option<Scalar>,
}

impl Scan {
    /// True for the columns of this mention of the table.
    pub fn has(&self, column: ColumnId) -> bool {
        (self.first.0..self.first.0 + self.width).contains(&column.0)
    }
}

/// What a join keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs of rows.
    Inner,
    /// Pairs, and rows of the left side without a partner beside NULLs.
    Left,
    /// Rows of the left side that have a partner.
    Semi,
    /// Rows of the left side that have none. An unknown condition is no partner.
    Anti,
}

/// What a subquery gives for a row of the left side.
#[derive(Clone, Debug, PartialEq)]
pub enum ApplyKind {
    /// Its rows beside the row (LATERAL).
    Join(JoinKind),
    /// One more column: is there a row for which the condition holds? NULL if it is unknown for some and holds for none.
    Mark(ColumnId),
    /// More columns: the values of the one row, NULL without a row, error 1242 for more rows.
    Single {
        /// The new columns, and of each the subquery's column.
        columns: Vec<(ColumnId, ColumnId)>,
    },
}

impl ApplyKind {
    /// The columns that it makes itself.
    pub fn made(&self) -> Vec<ColumnId> {
        match self {
            Self::Join(_) => Vec::new(),
            Self::Mark(column) => Vec::from([*column]),
            Self::Single { columns } => columns.iter().map(|(column, _)| *column).collect(),
        }
    }
}

/// A call of an aggregate function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The column of its result.
    pub column: ColumnId,
    /// The function with its clauses.
    pub spec: AggregateSpec,
    /// Its arguments; those of ORDER BY follow.
    pub args: Vec<Scalar>,
}

/// A key of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// What is compared.
    pub value: Scalar,
    /// Great values come first.
    pub descending: bool,
}

/// A set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// UNION.
    Union,
    /// INTERSECT.
    Intersect,
    /// EXCEPT.
    Except,
}

/// A query. Its output columns are what [`Rel::columns`] says.
#[derive(Clone, Debug, PartialEq)]
pub enum Rel {
    /// Rows of a table.
    Scan(Box<Scan>),
    /// Rows of expressions.
    Values {
        /// The columns.
        columns: Vec<ColumnId>,
        /// A value for each column.
        rows: Vec<Vec<Scalar>>,
    },
    /// Rows for which the condition is true.
    Filter {
        /// The rows.
        input: Box<Rel>,
        /// The condition.
        condition: Scalar,
    },
    /// The input's columns and computed ones.
    Extend {
        /// The rows.
        input: Box<Rel>,
        /// The new columns. Later ones do not see earlier ones.
        items: Vec<(ColumnId, Scalar)>,
    },
    /// Some of the input's columns.
    Narrow {
        /// The rows.
        input: Box<Rel>,
        /// The columns that stay, in this order.
        columns: Vec<ColumnId>,
    },
    /// A join.
    Join {
        /// What it keeps.
        kind: JoinKind,
        /// The left side.
        left: Box<Rel>,
        /// The right side; it does not see the left one's columns.
        right: Box<Rel>,
        /// The condition.
        on: Option<Scalar>,
    },
    /// The right side, evaluated for each row of the left side, whose columns it sees.
    Apply {
        /// What becomes of its rows.
        kind: ApplyKind,
        /// The left side.
        left: Box<Rel>,
        /// The right side.
        right: Box<Rel>,
        /// The condition, over both sides.
        on: Option<Scalar>,
        /// Over the left side: where it is not true, nobody looks at the new columns, and the right side does not run.
        when: Option<Scalar>,
    },
    /// One row for each group: the first row of the group, and the results of aggregate functions.
    Aggregate {
        /// The rows.
        input: Box<Rel>,
        /// What rows of a group have in common; without keys all rows are one group, also if there are none.
        keys: Vec<Scalar>,
        /// WITH ROLLUP: the keys as columns, which are NULL in the rows of totals, and of each the column that says so.
        rollup: Vec<(ColumnId, ColumnId)>,
        /// The aggregate functions.
        calls: Vec<Call>,
    },
    /// Window functions over parts of the rows.
    Window {
        /// The rows.
        input: Box<Rel>,
        /// What rows of a part have in common.
        partition: Vec<Scalar>,
        /// The order within a part.
        order: Vec<SortKey>,
        /// The functions.
        calls: Vec<WindowCall>,
    },
    /// Each row once, by these columns.
    Distinct {
        /// The rows.
        input: Box<Rel>,
        /// Rows that agree in these are the same.
        columns: Vec<ColumnId>,
    },
    /// The rows in an order.
    Sort {
        /// The rows.
        input: Box<Rel>,
        /// The keys of the order.
        keys: Vec<SortKey>,
    },
    /// Some of the rows.
    Limit {
        /// The rows.
        input: Box<Rel>,
        /// How many rows; it is constant.
        count: Option<Scalar>,
        /// How many rows are left out before; it is constant.
        offset: Option<Scalar>,
    },
    /// A set operation.
    Set {
        /// Which.
        op: SetOp,
        /// With ALL.
        all: bool,
        /// The columns of the result.
        columns: Vec<ColumnId>,
        /// One side and its columns in their order.
        left: (Box<Rel>, Vec<ColumnId>),
        /// The other side.
        right: (Box<Rel>, Vec<ColumnId>),
    },
    /// WITH RECURSIVE: rows of the anchor, and then of the step over the rows found before, until it finds none.
    Recursive {
        /// Names it for [`Rel::Working`].
        id: u32,
        /// The columns of the result.
        columns: Vec<ColumnId>,
        /// The first rows.
        anchor: (Box<Rel>, Vec<ColumnId>),
        /// The further rows.
        step: (Box<Rel>, Vec<ColumnId>),
        /// Rows that were there before are left out.
        distinct: bool,
        /// Rows at most.
        limit: Option<Scalar>,
    },
    /// The rows that the recursion found last.
    Working {
        /// Which recursion.
        id: u32,
        /// The columns.
        columns: Vec<ColumnId>,
    },
    /// The same rows, or error 1242 if there is more than one.
    MaxOneRow {
        /// The rows.
        input: Box<Rel>,
    },
}

/// A window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// The column of its result.
    pub column: ColumnId,
    /// Which function.
    pub function: WindowFunction,
    /// Its arguments.
    pub args: Vec<Scalar>,
    /// The rows that it sees; none for functions that see the whole part.
    pub frame: Frame,
}

/// What a window function computes.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    /// ROW_NUMBER().
    RowNumber,
    /// RANK().
    Rank,
    /// DENSE_RANK().
    DenseRank,
    /// PERCENT_RANK().
    PercentRank,
    /// CUME_DIST().
    CumeDist,
    /// NTILE(n).
    Ntile,
    /// LAG(value, n, default).
    Lag,
    /// LEAD(value, n, default).
    Lead,
    /// FIRST_VALUE(value).
    FirstValue,
    /// LAST_VALUE(value).
    LastValue,
    /// NTH_VALUE(value, n).
    NthValue,
    /// An aggregate function over the frame.
    Aggregate(Arc<AggregateSpec>),
}

/// The rows around one that its window function sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// RANGE: bounds are values and peers belong together; otherwise ROWS.
    pub is_range: bool,
    /// The first row.
    pub start: Bound,
    /// The last row.
    pub end: Bound,
}

/// A bound of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// The first or last row of the part.
    Unbounded,
    /// The row itself.
    CurrentRow,
    /// So many rows before.
    Preceding(Scalar),
    /// So many rows behind.
    Following(Scalar),
    /// RANGE: rows up to this value of the order, both before the row and behind it. NULL has only its peers.
    Value {
        /// How far it is from the row's own value; it may not be negative.
        distance: Scalar,
        /// The value itself.
        limit: Scalar,
    },
}

impl Bound {
    /// Its expressions.
    pub fn scalars(&self) -> Vec<&Scalar> {
        match self {
            Self::Unbounded | Self::CurrentRow => Vec::new(),
            Self::Preceding(value) | Self::Following(value) => Vec::from([value]),
            Self::Value { distance, limit } => Vec::from([distance, limit]),
        }
    }

    /// The same, to be changed.
    pub fn scalars_mut(&mut self) -> Vec<&mut Scalar> {
        match self {
            Self::Unbounded | Self::CurrentRow => Vec::new(),
            Self::Preceding(value) | Self::Following(value) => Vec::from([value]),
            Self::Value { distance, limit } => Vec::from([distance, limit]),
        }
    }
}

impl Rel {
    /// One row without columns.
    pub fn one_row() -> Self {
        Self::Values { columns: Vec::new(), rows: Vec::from([Vec::new()]) }
    }

    /// No rows of these columns.
    pub fn no_rows(columns: Vec<ColumnId>) -> Self {
        Self::Values { columns, rows: Vec::new() }
    }

    /// The rows for which a condition is true.
    #[must_use]
    pub fn filter(self, condition: Option<Scalar>) -> Self {
        match condition {
            Some(condition) => Self::Filter { input: Box::new(self), condition },
            None => self,
        }
    }

    /// The columns of its rows, in their order.
    pub fn columns(&self) -> Vec<ColumnId> {
        match self {
            Self::Scan(scan) => scan.columns.clone(),
            Self::Filter { input, .. }
            | Self::Distinct { input, .. }
            | Self::Sort { input, .. }
            | Self::MaxOneRow { input }
            | Self::Limit { input, .. } => input.columns(),
            Self::Extend { input, items } => {
                let mut columns = input.columns();
                columns.extend(items.iter().map(|(column, _)| *column));
                columns
            }
            Self::Join { kind, left, right, .. }
            | Self::Apply { kind: ApplyKind::Join(kind), left, right, .. } => {
                let mut columns = left.columns();
                if matches!(kind, JoinKind::Inner | JoinKind::Left) {
                    columns.extend(right.columns());
                }
                columns
            }
            Self::Apply { kind, left, .. } => {
                let mut columns = left.columns();
                columns.extend(kind.made());
                columns
            }
            Self::Aggregate { input, rollup, calls, .. } => {
                let mut columns = input.columns();
                columns.extend(rollup.iter().flat_map(|(key, total)| [*key, *total]));
                columns.extend(calls.iter().map(|call| call.column));
                columns
            }
            Self::Window { input, calls, .. } => {
                let mut columns = input.columns();
                columns.extend(calls.iter().map(|call| call.column));
                columns
            }
            Self::Values { columns, .. }
            | Self::Narrow { columns, .. }
            | Self::Set { columns, .. }
            | Self::Recursive { columns, .. }
            | Self::Working { columns, .. } => columns.clone(),
        }
    }
}
