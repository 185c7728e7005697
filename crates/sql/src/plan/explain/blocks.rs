//! The query blocks of a plan, and how each of their tables is read: what MySQL's formats of EXPLAIN show.

use crate::access::{Access, Constraint};
use crate::expr::{EXTERNAL_BASE, visit_columns};
use crate::plan::query::{QueryPlan, TableSource};
use crate::table::Table;
use lats_base::IndexId;
use lats_client::api::PRIMARY_INDEX;
use lats_engine::ir::SetOp;
use lats_engine::physical::{ApplyOutput, Op, Touched};
use lats_values::{Expr, Value};

/// A query block.
#[derive(Default)]
pub(super) struct Block {
    /// Its number.
    pub(super) id: u32,
    /// `SIMPLE`, `PRIMARY`, `SUBQUERY` and the like.
    pub(super) select_type: String,
    /// It is another one for each row around it.
    pub(super) is_dependent: bool,
    /// Its tables, in the order in which they are read.
    pub(super) lines: Vec<Line>,
    /// Its rows are sorted.
    pub(super) sorts: bool,
    /// Groups are made of its rows.
    pub(super) groups: bool,
    /// Its rows are told apart.
    pub(super) distinct: bool,
    /// It has window functions.
    pub(super) windows: bool,
    /// The blocks in it.
    pub(super) inner: Vec<Block>,
    /// The blocks of which a UNION or the like is made.
    pub(super) united: Option<United>,
}

/// UNION, INTERSECT or EXCEPT.
pub(super) struct United {
    /// `union`, `intersect` or `except`.
    pub(super) word: &'static str,
    /// Duplicates are left out.
    pub(super) distinct: bool,
    /// What is united.
    pub(super) parts: Vec<Block>,
    /// The number of the result.
    pub(super) id: u32,
}

/// How a table is read.
pub(super) struct Line {
    /// The table's name in the statement.
    pub(super) table: String,
    /// `ALL`, `ref` and the like.
    pub(super) kind: &'static str,
    /// The indexes that could be used.
    pub(super) possible: Vec<String>,
    /// The index.
    pub(super) key: Option<String>,
    /// The columns of the index that are used.
    pub(super) key_columns: Vec<String>,
    /// How long a key of these columns is.
    pub(super) key_bytes: usize,
    /// What the columns are equal to.
    pub(super) given: Vec<String>,
    /// How many rows it was taken to be.
    pub(super) touched: Option<Touched>,
    /// The condition that data nodes check.
    pub(super) condition: Option<String>,
    /// The columns that are read.
    pub(super) columns: Vec<String>,
    /// It is kept for a hash join.
    pub(super) is_hashed: bool,
}

/// What a table's condition says from outside.
pub(super) struct Outside<'a> {
    /// Values from outside the statement, as far as they are known.
    pub(super) values: &'a [Value],
    /// How many of them there are, before the values of other rows.
    pub(super) constants: u32,
    /// The names of values of other rows.
    pub(super) given: &'a [String],
}

impl Outside<'_> {
    fn name(&self, at: u32) -> Option<String> {
        match at.checked_sub(self.constants) {
            Some(at) => self.given.get(at as usize).cloned(),
            None => self.values.get(at as usize).map(|value| match value {
                Value::Text(..) | Value::Bytes(_) => format!("'{}'", value.to_display()),
                other => other.to_display(),
            }),
        }
    }

    /// What stands in the column `ref` for a value.
    fn reference(&self, value: &Expr) -> String {
        let mut of_rows = false;
        visit_columns(value, &mut |number| {
            let at = number.checked_sub(EXTERNAL_BASE);
            of_rows |= at.is_some_and(|at| at >= self.constants);
        });
        match value {
            _ if !of_rows => "const".to_owned(),
            Expr::Column(number) => {
                self.name(number - EXTERNAL_BASE).unwrap_or_else(|| "func".to_owned())
            }
            _ => "func".to_owned(),
        }
    }
}

/// The line of a table.
pub(super) fn line(
    (table, alias, access): (&Table, &str, &Access),
    projection: Option<&[u16]>,
    outside: &Outside<'_>,
) -> Line {
    let singles: Option<Vec<String>> = access
        .columns
        .iter()
        .map(|(_, constraint)| match constraint {
            Constraint::Points(list) => match list.as_slice() {
                [value] => Some(outside.reference(value)),
                _ => None,
            },
            Constraint::Null => Some("const".to_owned()),
            _ => None,
        })
        .collect();
    let is_unique = access.is_key_lookup || access.is_unique_lookup;
    let kind = match &singles {
        Some(given) if is_unique && given.iter().all(|of| of == "const") => "const",
        Some(_) if is_unique => "eq_ref",
        Some(given) if !given.is_empty() => "ref",
        _ if !access.columns.is_empty() => "range",
        _ if access.index != PRIMARY_INDEX => "index",
        _ => "ALL",
    };
    let used = access.columns.iter().map(|(column, _)| *column);
    let all = table.def.index(access.index).map_or(&[][..], |index| &index.columns);
    let used: Vec<u16> = if kind == "index" { all.to_vec() } else { used.collect() };
    let bytes = |column: &u16| {
        let of = table.types.get(usize::from(*column));
        of.map_or(0, |of| of.max_bytes() + usize::from(of.nullable))
    };
    let width = u16::try_from(table.types.len()).unwrap_or(u16::MAX);
    let read = projection.map_or_else(|| (0..width).collect(), <[u16]>::to_vec);
    let name = |column: &u16| table.column_name(*column).to_owned();
    Line {
        table: alias.to_owned(),
        kind,
        possible: access.possible(table).into_iter().map(|id| index_name(table, id)).collect(),
        key: (kind != "ALL").then(|| index_name(table, access.index)),
        key_columns: used.iter().map(name).collect(),
        key_bytes: used.iter().map(bytes).sum(),
        given: singles.unwrap_or_default(),
        touched: None,
        condition: access
            .residual
            .as_ref()
            .map(|residual| condition(residual, table, alias, outside)),
        columns: read.iter().map(name).collect(),
        is_hashed: false,
    }
}

fn index_name(table: &Table, index: IndexId) -> String {
    let found = table.def.index(index).map(|index| index.name.clone());
    found.unwrap_or_else(|| "PRIMARY".to_owned())
}

/// A condition with the names of columns.
fn condition(residual: &Expr, table: &Table, alias: &str, outside: &Outside<'_>) -> String {
    lats_values::shown_expression(residual, &|number| match number.checked_sub(EXTERNAL_BASE) {
        Some(at) => outside.name(at),
        None => {
            let column = u16::try_from(number).unwrap_or(u16::MAX);
            Some(format!("`{alias}`.`{}`", table.column_name(column)))
        }
    })
}

/// The blocks of a query.
pub(super) struct Blocks<'p> {
    plan: &'p QueryPlan,
    values: &'p [Value],
    last: u32,
}

impl<'p> Blocks<'p> {
    pub(super) fn new(plan: &'p QueryPlan, values: &'p [Value]) -> Self {
        Self { plan, values, last: 0 }
    }

    /// The outermost block.
    pub(super) fn root(&mut self, select_type: &str) -> Block {
        let mut block = self.block(&self.plan.plan.root, select_type, false);
        let has_others = block.united.is_some() || !block.inner.is_empty();
        if select_type == "SIMPLE" && has_others {
            "PRIMARY".clone_into(&mut block.select_type);
            if let Some(first) = block.united.as_mut().and_then(|united| united.parts.first_mut()) {
                "PRIMARY".clone_into(&mut first.select_type);
            }
        }
        block
    }

    fn block(&mut self, op: &Op, select_type: &str, is_dependent: bool) -> Block {
        let select_type = select_type.to_owned();
        let mut block = Block { select_type, is_dependent, ..Block::default() };
        let mut top = op;
        while let Op::Limit { input, .. }
        | Op::Sort { input, .. }
        | Op::Narrow { input, .. }
        | Op::Extend { input, .. } = top
        {
            block.sorts |= matches!(top, Op::Sort { .. });
            top = input;
        }
        if matches!(top, Op::Set { .. }) {
            block.united = Some(self.united(top, &block.select_type));
            return block;
        }
        self.last += 1;
        block.id = self.last;
        self.add(top, &mut block, false);
        block
    }

    fn united(&mut self, op: &Op, select_type: &str) -> United {
        let (mut parts, mut distinct) = (Vec::new(), false);
        let word = match op {
            Op::Set { op: SetOp::Intersect, .. } => "intersect",
            Op::Set { op: SetOp::Except, .. } => "except",
            _ => "union",
        };
        self.parts(op, select_type, &mut parts, &mut distinct);
        self.last += 1;
        United { word, distinct, parts, id: self.last }
    }

    fn parts(&mut self, op: &Op, select_type: &str, parts: &mut Vec<Block>, distinct: &mut bool) {
        let Op::Set { op: set, all, left, right } = op else { return };
        *distinct |= !all;
        match &**left {
            // What is united once more is united together.
            Op::Set { op: inner, .. } if inner == set => {
                self.parts(left, select_type, parts, distinct);
            }
            _ => parts.push(self.block(left, select_type, false)),
        }
        let word = match set {
            SetOp::Union => "UNION",
            SetOp::Intersect => "INTERSECT",
            SetOp::Except => "EXCEPT",
        };
        parts.push(self.block(right, word, false));
    }

    fn add(&mut self, op: &Op, block: &mut Block, joined: bool) {
        match op {
            Op::Source { source, .. } => self.source(*source, block, joined),
            Op::LookupJoin { left, source, .. } => {
                self.add(left, block, joined);
                self.source(*source, block, false);
            }
            Op::HashJoin { left, right, .. } | Op::NestedJoin { left, right, .. } => {
                self.add(left, block, joined);
                self.add(right, block, true);
            }
            Op::Apply { output, left, right, params, .. } => {
                self.add(left, block, joined);
                let what = match output {
                    ApplyOutput::Join(_) => "DERIVED",
                    ApplyOutput::Mark | ApplyOutput::Single => "SUBQUERY",
                };
                let is_dependent = !params.is_empty();
                let dependent = if is_dependent { "DEPENDENT " } else { "" };
                let inner = self.block(right, &format!("{dependent}{what}"), is_dependent);
                block.inner.push(inner);
            }
            Op::Set { .. } => {
                let inner = self.block(op, "DERIVED", false);
                block.inner.push(inner);
            }
            Op::Recursive { anchor, step, .. } => {
                let anchor = self.block(anchor, "DERIVED", false);
                let step = self.block(step, "UNION", false);
                block.inner.extend([anchor, step]);
            }
            Op::Aggregate { input, keys, .. } => {
                block.groups |= !keys.is_empty();
                self.add(input, block, joined);
            }
            Op::Distinct { input, .. } => {
                block.distinct = true;
                self.add(input, block, joined);
            }
            Op::Sort { input, .. } => {
                block.sorts = true;
                self.add(input, block, joined);
            }
            Op::Window { input, .. } => {
                block.windows = true;
                self.add(input, block, joined);
            }
            Op::Filter { input, .. }
            | Op::Extend { input, .. }
            | Op::Narrow { input, .. }
            | Op::Limit { input, .. }
            | Op::MaxOneRow { input } => self.add(input, block, joined),
            Op::Values { .. } | Op::Working { .. } => {}
        }
    }

    fn source(&self, number: usize, block: &mut Block, joined: bool) {
        let Some(source) = self.plan.sources.get(number) else { return };
        let TableSource { table, alias, access, projection, touched, .. } = source;
        let constants = source.constants;
        let outside = Outside { values: self.values, constants, given: &source.given };
        let mut line = line((table, alias, access), projection.as_deref(), &outside);
        line.touched = Some(*touched);
        line.is_hashed = joined && !matches!(line.kind, "const" | "eq_ref" | "ref");
        block.lines.push(line);
    }
}
