//! Running plans. Operators ask for rows of tables, and are stepped again when answers are there.

mod aggregate;
mod apply;
mod distinct;
mod hash_join;
mod keys;
mod lookup_join;
mod memory;
mod nested_join;
mod once;
mod ordered;
mod profile;
mod recursive;
mod rows;
mod set;
mod sort;
mod source;
#[cfg(test)]
mod tests;
mod window;

pub use memory::{Budget, LEFT_BYTES_MIN, Leftovers, Pool};
pub use ordered::{Sorter, Top};
pub use profile::{OpProfile, Profile};

use crate::ir::SetOp;
use crate::physical::{Op, PARAM_BASE, Plan};
use alloc::collections::BTreeMap;
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use lats_values::{ColumnSource, EvalContext, Expr, SqlError, Value};
use memory::Memory;

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
        /// So many rows may be enough: whoever reads may begin with as few.
        first: Option<u32>,
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
    /// Joins by lookups may turn to reading their right side once; not where what is read is locked.
    pub switches: bool,
    /// What is counted for EXPLAIN ANALYZE.
    pub profile: Option<Profile>,
    /// A row goes through all operators before the next one does: expressions see what those of the rows before have assigned.
    pub one_by_one: bool,
    /// Answers that were not taken yet, and the memory that they take.
    answers: BTreeMap<AskId, (Answer, usize)>,
    next_ask: u64,
    /// Rows that recursions found last.
    working: BTreeMap<u32, Arc<Vec<Row>>>,
    /// Steps of recursions at most.
    recursion_max: u64,
    /// No more rows are wanted of the whole run; what its operators left, which goes before what is counted for it.
    is_ending: bool,
    left: Vec<Box<dyn Send>>,
    left_bytes: usize,
    memory: Memory,
    /// What was done since the last pause.
    rows_done: u64,
    /// What expressions could still do then.
    work_left: u64,
}

/// What a run does before it lets others work: well below a millisecond. Evaluating a node of an expression is a unit.
const STEP_WORK: u64 = 16_384;
/// What handling a row is beside the expressions.
const ROW_WORK: u64 = 8;

impl<'r> Run<'r> {
    /// A run that may hold so much.
    pub fn new(
        externals: &'r [Value],
        context: EvalContext,
        budget: Budget,
        recursion_max: u64,
    ) -> Self {
        Self {
            externals,
            work_left: context.work_left(),
            context,
            asks: Vec::new(),
            switches: true,
            profile: None,
            one_by_one: false,
            answers: BTreeMap::new(),
            next_ask: 0,
            working: BTreeMap::new(),
            recursion_max,
            memory: Memory::new(budget),
            is_ending: false,
            left: Vec::new(),
            left_bytes: 0,
            rows_done: 0,
        }
    }

    /// What is left when its machine is closed.
    pub fn leftovers(self) -> Leftovers {
        Leftovers::new(self.left, self.memory)
    }

    /// Gives an answer.
    ///
    /// # Errors
    /// The error for too much memory.
    pub fn answer(&mut self, id: AskId, answer: Answer) -> Result<(), SqlError> {
        let bytes = answer.rows.iter().map(|(_, row)| row_bytes(row)).sum();
        self.memory.hold(bytes)?;
        let (before, held) = self.answers.entry(id).or_default();
        *held += bytes;
        before.rows.extend(answer.rows);
        before.more = answer.more;
        Ok(())
    }

    /// Bytes that are held now.
    pub fn used(&self) -> usize {
        self.memory.used()
    }

    /// The most bytes that were held at a time.
    pub fn peak(&self) -> usize {
        self.memory.peak()
    }

    fn ask(&mut self, source: usize, requests: Vec<Row>, first: Option<u32>) -> AskId {
        let id = AskId(self.next_ask);
        self.next_ask += 1;
        self.asks.push(Ask::Read { id, source, requests, first });
        id
    }

    fn take(&mut self, id: AskId) -> Option<Answer> {
        let (answer, held) = self.answers.remove(&id)?;
        self.memory.release(held);
        Some(answer)
    }

    /// No more of this is wanted.
    fn forget(&mut self, id: AskId) {
        // What nobody has looked at yet need not be read.
        self.asks.retain(
            |ask| !matches!(ask, Ask::Read { id: other, .. } | Ask::More(other) if *other == id),
        );
        self.asks.push(Ask::Close(id));
        self.take(id);
    }

    /// Counts rows that were handled; true if it is time to let others work.
    fn spend(&mut self, rows: usize) -> bool {
        self.rows_done += rows as u64;
        self.is_tired()
    }

    /// True if the last step has done so much that it is time to let others work, whatever it gave.
    pub fn is_tired(&self) -> bool {
        let evaluated = self.work_left.saturating_sub(self.context.work_left());
        evaluated + self.rows_done * ROW_WORK >= STEP_WORK
    }

    fn rest(&mut self) {
        self.rows_done = 0;
        self.work_left = self.context.work_left();
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
            Expr::Column(number) => self.context.kept(env.column(*number)),
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

    /// No more rows are wanted, or there are none: what is held is released. Whoever has an operator closes it before dropping it.
    fn close(&mut self, run: &mut Run<'_>);
}

type Node<'p> = Box<dyn Operator + 'p>;

/// How many rows of an operator are needed.
#[derive(Clone)]
enum Goal<'p> {
    /// All.
    All,
    /// One, most likely.
    First,
    /// Those of a LIMIT, whose expressions see these parameters.
    Limit(&'p Expr, Option<&'p Expr>, Params),
}

impl Goal<'_> {
    /// How many rows are to be read first; none if all are needed.
    fn first_rows(&self, run: &mut Run<'_>) -> Result<Option<u32>, SqlError> {
        let rows = match self {
            Self::All => return Ok(None),
            Self::First => 1,
            Self::Limit(count, offset, params) => {
                let offset = offset.map(|offset| run.count(offset, params)).transpose()?;
                run.count(count, params)?.saturating_add(offset.unwrap_or(0))
            }
        };
        let few = rows < memory::CHUNK_ROWS as u64;
        Ok(few.then(|| u32::try_from(rows.max(1)).unwrap_or(1)))
    }
}

/// A plan while it runs.
pub struct Machine<'p> {
    plan: &'p Plan,
    /// The operators, from the first step on.
    root: Option<Node<'p>>,
}

impl<'p> Machine<'p> {
    /// Ready for the first step.
    pub fn new(plan: &'p Plan) -> Self {
        Self { plan, root: None }
    }

    /// Goes on until there are rows, answers are needed, or it is time to let others work.
    ///
    /// # Errors
    /// What evaluating expressions gives, and the error for too much memory.
    pub fn step(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        run.rest();
        let plan = self.plan;
        let root =
            self.root.get_or_insert_with(|| build(run, &plan.root, &Params::from([]), &Goal::All));
        let polled = root.next(run)?;
        if matches!(polled, Poll::Done) {
            run.is_ending = true;
            root.close(run);
        }
        Ok(polled)
    }

    /// No more rows are wanted.
    pub fn close(&mut self, run: &mut Run<'_>) {
        run.is_ending = true;
        if let Some(root) = &mut self.root {
            root.close(run);
        }
    }
}

/// The operators of a plan, for an instance with these parameters.
fn build<'p>(run: &Run<'_>, op: &'p Op, params: &Params, goal: &Goal<'p>) -> Node<'p> {
    let node = build_op(run, op, params, goal);
    match &run.profile {
        None => node,
        Some(profile) => profile.measured(op, node),
    }
}

fn build_op<'p>(run: &Run<'_>, op: &'p Op, params: &Params, goal: &Goal<'p>) -> Node<'p> {
    // What hands on rows as they come needs as many as are needed of it.
    let some = |op: &'p Op| build(run, op, params, goal);
    let all = |op: &'p Op| build(run, op, params, &Goal::All);
    let own = || Arc::clone(params);
    match op {
        Op::Source { source, params: requests } => {
            Box::new(source::Source::new(*source, requests, own(), goal.clone()))
        }
        Op::Values { rows, types } => Box::new(rows::ValueRows::new(rows, types, own())),
        Op::Filter { input, condition } => {
            Box::new(rows::Filter::new(some(input), condition, own()))
        }
        Op::Extend { input, items } => Box::new(rows::Extend::new(some(input), items, own())),
        Op::Narrow { input, slots } => Box::new(rows::Narrow { input: some(input), slots }),
        Op::HashJoin { .. } | Op::NestedJoin { .. } | Op::LookupJoin { .. } | Op::Apply { .. } => {
            build_join(run, op, params, goal)
        }
        Op::Aggregate { input, keys, rollup, calls, width } => {
            let spec = aggregate::Spec { keys, rollup: *rollup, calls, width: *width as usize };
            Box::new(aggregate::Aggregate::new(all(input), spec, own()))
        }
        Op::Window { input, partition, order, calls } => {
            let spec = window::Spec { partition, order, calls };
            Box::new(window::Window::new(all(input), spec, own()))
        }
        Op::Distinct { input, slots } => Box::new(distinct::Distinct::new(some(input), slots)),
        Op::Sort { input, keys, top } => {
            Box::new(sort::Sort::new(all(input), keys, top.as_ref(), own()))
        }
        Op::Limit { input, count, offset } => {
            let (count, offset) = (count.as_ref(), offset.as_ref());
            let below = match (goal, count) {
                (Goal::First, _) | (_, None) => goal,
                (_, Some(count)) => &Goal::Limit(count, offset, own()),
            };
            let input = build(run, input, params, below);
            Box::new(rows::Limit::new(input, count, offset, own()))
        }
        Op::Set { op, all: keeps_all, left, right } => {
            let right = if *op == SetOp::Union { some(right) } else { all(right) };
            Box::new(set::Set::new(*op, *keeps_all, some(left), right))
        }
        Op::Recursive { id, anchor, step, distinct, limit, types } => {
            let limit = limit.as_ref();
            let spec = recursive::Spec { id: *id, step, distinct: *distinct, limit, types };
            Box::new(recursive::Recursive::new(all(anchor), spec, own()))
        }
        Op::Working { id } => Box::new(recursive::Working::new(*id)),
        Op::MaxOneRow { input } => Box::new(rows::MaxOneRow { input: some(input), seen: 0 }),
    }
}

fn build_join<'p>(run: &Run<'_>, op: &'p Op, params: &Params, goal: &Goal<'p>) -> Node<'p> {
    let some = |op: &'p Op| build(run, op, params, goal);
    let all = |op: &'p Op| build(run, op, params, &Goal::All);
    let own = Arc::clone(params);
    match op {
        Op::HashJoin { kind, left, right, pairs, residual, right_width } => {
            let sides = (some(left), all(right));
            let spec = hash_join::Spec {
                kind: *kind,
                pairs,
                residual: residual.as_ref(),
                right_width: *right_width as usize,
            };
            Box::new(hash_join::HashJoin::new(sides, spec, own))
        }
        Op::NestedJoin { kind, left, right, on, right_width } => {
            let sides = (some(left), all(right));
            let width = *right_width as usize;
            Box::new(nested_join::NestedJoin::new(*kind, sides, on.as_ref(), width, own))
        }
        Op::LookupJoin { kind, left, source, params, residual, at_once, beyond, right_width } => {
            let spec = lookup_join::Spec {
                kind: *kind,
                source: *source,
                requests: params,
                most: *at_once as usize,
                residual: residual.as_ref(),
                right_width: *right_width as usize,
                goal: goal.clone(),
                beyond: beyond.as_deref(),
            };
            Box::new(lookup_join::LookupJoin::new(some(left), spec, own))
        }
        Op::Apply { left, .. } => {
            let left = some(left);
            match apply::Spec::of(op) {
                Some(spec) => Box::new(apply::Apply::new(left, spec, (own, goal.clone()))),
                None => left,
            }
        }
        // The caller names the joins.
        _ => build_op(run, op, params, goal),
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
