//! Plans as they run: expressions over slots of rows, and an operator for each step.

use crate::ir::{ColumnId, JoinKind, SetOp, SourceId, WindowFunction};
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use lats_values::aggregate::AggregateSpec;
use lats_values::{Collation, ColumnType, Expr};

/// Numbers of [`Expr::Column`] from here on are parameters of the instance: columns of a row around it.
pub const PARAM_BASE: u32 = 1 << 30;

/// A plan that is ready to run, many times if wanted.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The operators.
    pub root: Op,
    /// The tables that it reads, by [`Op::Source`]'s number.
    pub sources: Vec<SourceSpec>,
}

/// What is read of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceSpec {
    /// Which mention of a table.
    pub source: SourceId,
    /// The positions of the columns that are wanted, in the table.
    pub columns: Vec<u32>,
    /// Rows for which this is not true are left out. Columns are positions in the table; the parameters of a request are
    /// numbers from [`PARAM_BASE`] on.
    pub condition: Option<Expr>,
    /// How many parameters a request has.
    pub params: usize,
    /// The columns of other rows that they are.
    pub given: Vec<ColumnId>,
    /// A request's rows have different keys: at most one row comes for each.
    pub by_key: bool,
    /// The columns of the index by which the rows of requests are best found.
    pub index: Option<Vec<u32>>,
    /// How many rows a request comes to, as was estimated.
    pub touched: Touched,
    /// One row of those that a request may come to is enough.
    pub one_is_enough: bool,
}

/// How many rows of a table a request comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Touched {
    /// Rows that data nodes look at.
    pub looked_at: f64,
    /// Rows that they give.
    pub found: f64,
}

/// How values of two sides are made comparable by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyClass {
    /// Whole numbers.
    Integer,
    /// Exact numbers.
    Decimal,
    /// Numbers, one of them inexact.
    Double,
    /// Text in a collation.
    Text(Collation),
    /// Bytes.
    Bytes,
    /// Days and moments.
    Moment,
    /// Times.
    Time,
}

/// A pair of expressions that a join takes as equal.
#[derive(Clone, Debug, PartialEq)]
pub struct EqualPair {
    /// Over rows of the left side.
    pub left: Expr,
    /// Over rows of the right side.
    pub right: Expr,
    /// How they compare.
    pub class: KeyClass,
    /// NULL equals NULL.
    pub null_safe: bool,
}

/// A key of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// What is compared.
    pub value: Expr,
    /// The type of it.
    pub column_type: ColumnType,
    /// Great values come first.
    pub descending: bool,
}

/// An aggregate function.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    /// The function.
    pub spec: Arc<AggregateSpec>,
    /// Its arguments and their types.
    pub args: Vec<(Expr, ColumnType)>,
}

/// A window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// The function.
    pub function: WindowFunction,
    /// Its arguments and their types.
    pub args: Vec<(Expr, ColumnType)>,
    /// The type of its result.
    pub column_type: ColumnType,
    /// The rows that it sees; expressions in it are over the row.
    pub frame: crate::ir::Frame,
}

/// How a join by lookups goes on when many more rows ask than was thought: the right side is read once, and kept.
#[derive(Clone, Debug)]
pub struct Beyond {
    /// So many rows ask before.
    pub asked: u64,
    /// The rows that are kept.
    pub right: Op,
    /// What is equal.
    pub pairs: Vec<EqualPair>,
    /// The rest of the condition, over both rows.
    pub residual: Option<Expr>,
}

/// What an Apply gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOutput {
    /// Rows of both sides.
    Join(JoinKind),
    /// Whether the condition holds for a row.
    Mark,
    /// The values of the one row.
    Single,
}

/// An operator and those below it. Slots of a join's rows are those of the left side and then of the right one.
#[derive(Clone, Debug)]
pub enum Op {
    /// Rows of a table.
    Source {
        /// Which of the plan's sources.
        source: usize,
        /// The parameters of the request.
        params: Vec<Expr>,
    },
    /// Rows of expressions, and their types.
    Values {
        /// The rows.
        rows: Vec<Vec<Expr>>,
        /// The types.
        types: Vec<ColumnType>,
    },
    /// Rows for which the condition is true.
    Filter {
        /// The rows.
        input: Box<Op>,
        /// The condition.
        condition: Expr,
    },
    /// Computed values behind the row's.
    Extend {
        /// The rows.
        input: Box<Op>,
        /// The values and their types.
        items: Vec<(Expr, ColumnType)>,
    },
    /// Some slots.
    Narrow {
        /// The rows.
        input: Box<Op>,
        /// Which.
        slots: Vec<u32>,
    },
    /// A join by equal values, of which the right side is kept in a table.
    HashJoin {
        /// What it keeps.
        kind: JoinKind,
        /// The rows that are looked up.
        left: Box<Op>,
        /// The rows that are kept.
        right: Box<Op>,
        /// What is equal.
        pairs: Vec<EqualPair>,
        /// The rest of the condition, over both rows.
        residual: Option<Expr>,
        /// Slots of the right side.
        right_width: u32,
    },
    /// A join that looks at all pairs; the right side is kept.
    NestedJoin {
        /// What it keeps.
        kind: JoinKind,
        /// One side.
        left: Box<Op>,
        /// The side that is kept.
        right: Box<Op>,
        /// The condition, over both rows.
        on: Option<Expr>,
        /// Slots of the right side.
        right_width: u32,
    },
    /// A join with rows of a table that are asked for with values of the left side, many at once.
    LookupJoin {
        /// What it keeps.
        kind: JoinKind,
        /// The left side.
        left: Box<Op>,
        /// Which of the plan's sources.
        source: usize,
        /// The parameters of the requests, over rows of the left side.
        params: Vec<Expr>,
        /// The rest of the condition, over both rows.
        residual: Option<Expr>,
        /// How many rows ask at once, at most.
        at_once: u32,
        /// What it does if more rows ask than was thought.
        beyond: Option<Box<Beyond>>,
        /// Slots of the right side.
        right_width: u32,
    },
    /// The right side for each row of the left one.
    Apply {
        /// What it gives.
        output: ApplyOutput,
        /// The left side.
        left: Box<Op>,
        /// The right side.
        right: Box<Op>,
        /// The right side's parameters, over rows of the left side.
        params: Vec<Expr>,
        /// The condition, over both rows.
        on: Option<Expr>,
        /// Slots of the right side.
        right_width: u32,
        /// Results are kept for rows with the same parameters.
        keeps: bool,
        /// The right side is the same for all rows: it runs once.
        once: bool,
        /// The slots of the values of a single row.
        slots: Vec<u32>,
        /// Over rows of the left side: where it is not true, the right side does not run.
        when: Option<Box<Expr>>,
        /// The condition is this equality: the right side's values are looked up.
        equal: Option<EqualPair>,
    },
    /// Groups: the first row of each, and the results.
    Aggregate {
        /// The rows.
        input: Box<Op>,
        /// The keys and their types.
        keys: Vec<(Expr, ColumnType)>,
        /// Rows of totals too; keys and what tells totals stand before the results.
        rollup: bool,
        /// The functions.
        calls: Vec<AggregateCall>,
        /// Slots of the rows.
        width: u32,
    },
    /// Window functions.
    Window {
        /// The rows.
        input: Box<Op>,
        /// What a part has in common, and its types.
        partition: Vec<(Expr, ColumnType)>,
        /// The order in a part.
        order: Vec<OrderKey>,
        /// The functions.
        calls: Vec<WindowCall>,
    },
    /// Each row once, by these slots.
    Distinct {
        /// The rows.
        input: Box<Op>,
        /// The slots.
        slots: Vec<u32>,
    },
    /// An order.
    Sort {
        /// The rows.
        input: Box<Op>,
        /// The keys.
        keys: Vec<OrderKey>,
        /// No more rows than this are wanted: count and offset.
        top: Option<(Expr, Option<Expr>)>,
    },
    /// Some rows.
    Limit {
        /// The rows.
        input: Box<Op>,
        /// How many.
        count: Option<Expr>,
        /// How many before are left out.
        offset: Option<Expr>,
    },
    /// A set operation; both sides have slots in the same order.
    Set {
        /// Which.
        op: SetOp,
        /// With ALL.
        all: bool,
        /// One side.
        left: Box<Op>,
        /// The other side.
        right: Box<Op>,
    },
    /// A recursion.
    Recursive {
        /// Names it.
        id: u32,
        /// The first rows.
        anchor: Box<Op>,
        /// The further rows.
        step: Box<Op>,
        /// Rows that were there before are left out.
        distinct: bool,
        /// Rows at most.
        limit: Option<Expr>,
        /// The types of the columns.
        types: Vec<ColumnType>,
    },
    /// The rows that a recursion found last.
    Working {
        /// Which.
        id: u32,
    },
    /// The same rows, at most one.
    MaxOneRow {
        /// The rows.
        input: Box<Op>,
    },
}

impl Op {
    /// The operators right below it.
    pub fn inputs(&self) -> Vec<&Self> {
        match self {
            Self::Source { .. } | Self::Values { .. } | Self::Working { .. } => Vec::new(),
            Self::Filter { input, .. }
            | Self::Extend { input, .. }
            | Self::Narrow { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Window { input, .. }
            | Self::Distinct { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::MaxOneRow { input }
            | Self::LookupJoin { left: input, .. } => Vec::from([&**input]),
            Self::HashJoin { left, right, .. }
            | Self::NestedJoin { left, right, .. }
            | Self::Apply { left, right, .. }
            | Self::Set { left, right, .. }
            | Self::Recursive { anchor: left, step: right, .. } => Vec::from([&**left, &**right]),
        }
    }
}
