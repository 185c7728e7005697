//! Running plans. Operators ask for rows of tables, and are stepped again when answers are there.

mod aggregate;
mod apply;
mod distinct;
mod hash_join;
mod keys;
mod lookup_join;
mod nested_join;
mod once;
mod recursive;
mod rows;
mod set;
mod sort;
mod source;
mod window;

use crate::physical::{Op, PARAM_BASE, Plan};
use alloc::collections::BTreeMap;
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use lats_values::{ColumnSource, EvalContext, Expr, SqlError, Value};

/// A row: a value for each slot.
pub type Row = Vec<Value>;

/// Values of a row around an instance of operators.
pub type Params = Arc<[Value]>;

/// The number of a request for rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// What operators ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Rows of a source for each of these lists of parameters.
    Read {
        /// Names the answer.
        id: AskId,
        /// Which of the plan's sources.
        source: usize,
        /// The parameters.
        requests: Vec<Row>,
    },
    /// More rows of the same.
    More(AskId),
    /// No more rows are wanted.
    Close(AskId),
}

/// Rows that were asked for.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Rows, and which of the requests each belongs to.
    pub rows: Vec<(u32, Row)>,
    /// There may be more.
    pub more: bool,
}

/// What a step gave.
#[derive(Debug)]
pub enum Poll {
    /// Some rows, at least one.
    Rows(Vec<Row>),
    /// Answers are waited for.
    Pending,
    /// Others may work now; then the next step is due.
    Yield,
    /// There are no more rows.
    Done,
}

/// What a run of a plan has beside its operators.
pub struct Run<'r> {
    /// Values from outside.
    pub externals: &'r [Value],
    /// Warnings, and whether they are errors.
    pub context: EvalContext,
    /// What is asked for since this was last looked at.
    pub asks: Vec<Ask>,
    /// Answers that were not taken yet.
    answers: BTreeMap<AskId, Answer>,
    next_ask: u64,
    /// Rows that recursions found last.
    working: BTreeMap<u32, Arc<Vec<Row>>>,
    /// Steps of recursions at most.
    recursion_max: u64,
    bytes: usize,
    bytes_max: usize,
    out_of_memory: fn() -> SqlError,
    /// Rows handled since the last pause.
    spent: usize,
}

/// Rows that a run handles before it lets others work.
const ROWS_PER_TURN: usize = 2_048;

impl<'r> Run<'r> {
    /// A run with so many bytes of memory at most; the function gives the error for more.
    pub fn new(
        externals: &'r [Value],
        context: EvalContext,
        (bytes_max, out_of_memory): (usize, fn() -> SqlError),
        recursion_max: u64,
    ) -> Self {
        Self {
            externals,
            context,
            asks: Vec::new(),
            answers: BTreeMap::new(),
            next_ask: 0,
            working: BTreeMap::new(),
            recursion_max,
            bytes: 0,
            bytes_max,
            out_of_memory,
            spent: 0,
        }
    }

    /// Gives an answer.
    pub fn answer(&mut self, id: AskId, answer: Answer) {
        let before = self.answers.entry(id).or_default();
        before.rows.extend(answer.rows);
        before.more = answer.more;
    }

    fn ask(&mut self, source: usize, requests: Vec<Row>) -> AskId {
        let id = AskId(self.next_ask);
        self.next_ask += 1;
        self.asks.push(Ask::Read { id, source, requests });
        id
    }

    fn take(&mut self, id: AskId) -> Option<Answer> {
        self.answers.remove(&id)
    }

    /// Counts memory that is held until the end of the run, or until it is released.
    fn hold(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            return Err((self.out_of_memory)());
        }
        Ok(())
    }

    fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts rows that were handled; true if it is time to let others work.
    fn spend(&mut self, rows: usize) -> bool {
        self.spent += rows.max(1);
        self.spent >= ROWS_PER_TURN
    }

    fn eval(&mut self, expr: &Expr, row: &[Value], params: &[Value]) -> Result<Value, SqlError> {
        self.eval_pair(expr, (row, &[]), params)
    }

    fn eval_pair(
        &mut self,
        expr: &Expr,
        (left, right): (&[Value], &[Value]),
        params: &[Value],
    ) -> Result<Value, SqlError> {
        let env = Env { left, right, params, externals: self.externals };
        match expr {
            Expr::Column(number) => Ok(env.column(*number)),
            other => lats_values::eval(other, &env, &mut self.context),
        }
    }

    fn is_true(
        &mut self,
        expr: &Expr,
        (left, right): (&[Value], &[Value]),
        params: &[Value],
    ) -> Result<bool, SqlError> {
        let env = Env { left, right, params, externals: self.externals };
        lats_values::is_true(expr, &env, &mut self.context)
    }

    /// A number of rows, of LIMIT.
    fn count(&mut self, expr: &Expr, params: &[Value]) -> Result<u64, SqlError> {
        match self.eval(expr, &[], params)? {
            Value::UInt(count) => Ok(count),
            Value::Int(count) if count >= 0 => Ok(count.unsigned_abs()),
            Value::Text(text, _) if text.parse::<u64>().is_ok() => {
                Ok(text.parse().unwrap_or(u64::MAX))
            }
            _ => Err(SqlError::new(1210, *b"HY000", "Incorrect arguments to LIMIT".into())),
        }
    }
}

/// Where expressions find values: in a row of two parts, in parameters, and outside.
struct Env<'e> {
    left: &'e [Value],
    right: &'e [Value],
    params: &'e [Value],
    externals: &'e [Value],
}

impl ColumnSource for Env<'_> {
    fn column(&self, index: u32) -> Value {
        let at = index as usize;
        let found = if index >= crate::ir::EXTERNAL_BASE {
            self.externals.get((index - crate::ir::EXTERNAL_BASE) as usize)
        } else if index >= PARAM_BASE {
            self.params.get((index - PARAM_BASE) as usize)
        } else if at < self.left.len() {
            self.left.get(at)
        } else {
            self.right.get(at - self.left.len())
        };
        found.cloned().unwrap_or(Value::Null)
    }
}

/// An operator while it runs.
trait Operator: Send {
    /// The next rows.
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError>;

    /// No more rows are wanted.
    fn close(&mut self, run: &mut Run<'_>);
}

type Node<'p> = Box<dyn Operator + 'p>;

/// A plan while it runs.
pub struct Machine<'p> {
    root: Node<'p>,
}

impl<'p> Machine<'p> {
    /// Ready for the first step.
    pub fn new(plan: &'p Plan) -> Self {
        Self { root: build(&plan.root, &Params::from([])) }
    }

    /// Goes on until there are rows, or answers are needed.
    ///
    /// # Errors
    /// What evaluating expressions gives, and the error for too much memory.
    pub fn step(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        run.spent = 0;
        self.root.next(run)
    }
}

/// The operators of a plan, for an instance with these parameters.
fn build<'p>(op: &'p Op, params: &Params) -> Node<'p> {
    let below = |op: &'p Op| build(op, params);
    let params = Arc::clone(params);
    match op {
        Op::Source { source, params: requests } => {
            Box::new(source::Source::new(*source, requests, params))
        }
        Op::Values { rows, types } => Box::new(rows::ValueRows::new(rows, types, params)),
        Op::Filter { input, condition } => {
            Box::new(rows::Filter { input: below(input), condition, params })
        }
        Op::Extend { input, items } => {
            Box::new(rows::Extend { input: below(input), items, params })
        }
        Op::Narrow { input, slots } => Box::new(rows::Narrow { input: below(input), slots }),
        Op::HashJoin { .. } | Op::NestedJoin { .. } | Op::LookupJoin { .. } | Op::Apply { .. } => {
            build_join(op, params)
        }
        Op::Aggregate { input, keys, rollup, calls, width } => {
            let spec = aggregate::Spec { keys, rollup: *rollup, calls, width: *width as usize };
            Box::new(aggregate::Aggregate::new(below(input), spec, params))
        }
        Op::Window { input, partition, order, calls } => {
            let spec = window::Spec { partition, order, calls };
            Box::new(window::Window::new(below(input), spec, params))
        }
        Op::Distinct { input, slots } => Box::new(distinct::Distinct::new(below(input), slots)),
        Op::Sort { input, keys, top } => {
            Box::new(sort::Sort::new(below(input), keys, top.as_ref(), params))
        }
        Op::Limit { input, count, offset } => {
            Box::new(rows::Limit::new(below(input), count.as_ref(), offset.as_ref(), params))
        }
        Op::Set { op, all, left, right } => {
            Box::new(set::Set::new(*op, *all, below(left), below(right)))
        }
        Op::Recursive { id, anchor, step, distinct, limit, types } => {
            let limit = limit.as_ref();
            let spec = recursive::Spec { id: *id, step, distinct: *distinct, limit, types };
            Box::new(recursive::Recursive::new(below(anchor), spec, params))
        }
        Op::Working { id } => Box::new(recursive::Working::new(*id)),
        Op::MaxOneRow { input } => Box::new(rows::MaxOneRow { input: below(input), seen: 0 }),
    }
}

fn build_join<'p>(op: &'p Op, params: Params) -> Node<'p> {
    let below = |op: &'p Op| build(op, &params);
    match op {
        Op::HashJoin { kind, left, right, pairs, residual, right_width } => {
            let sides = (below(left), below(right));
            let spec = hash_join::Spec {
                kind: *kind,
                pairs,
                residual: residual.as_ref(),
                right_width: *right_width as usize,
            };
            Box::new(hash_join::HashJoin::new(sides, spec, params))
        }
        Op::NestedJoin { kind, left, right, on, right_width } => {
            let sides = (below(left), below(right));
            let width = *right_width as usize;
            Box::new(nested_join::NestedJoin::new(*kind, sides, on.as_ref(), width, params))
        }
        Op::LookupJoin { kind, left, source, params: requests, right_width } => {
            let width = *right_width as usize;
            let left = below(left);
            Box::new(lookup_join::LookupJoin::new(*kind, left, *source, requests, width, params))
        }
        Op::Apply { left, .. } => {
            let left = below(left);
            match apply::Spec::of(op) {
                Some(spec) => Box::new(apply::Apply::new(left, spec, params)),
                None => left,
            }
        }
        // The caller names the joins.
        _ => build(op, &params),
    }
}

/// Memory that a row takes, about.
fn row_bytes(row: &[Value]) -> usize {
    let heap = |value: &Value| match value {
        Value::Text(text, _) => text.capacity(),
        Value::Bytes(bytes) => bytes.capacity(),
        _ => 0,
    };
    48 + row.iter().map(|value| size_of::<Value>() + heap(value)).sum::<usize>()
}

/// 1242.
fn more_than_one_row() -> SqlError {
    SqlError::new(1242, *b"21000", "Subquery returns more than 1 row".into())
}
