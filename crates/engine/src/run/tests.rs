//! Operators over rows that are made as they are asked for: memory ends near its limit, and no step is long.

mod limits;
mod pauses;
mod sharing;

use super::*;
use crate::ir::{JoinKind, SourceId};
use crate::physical::{
    AggregateCall, ApplyOutput, EqualPair, KeyClass, OrderKey, SourceSpec, WindowCall,
};
use alloc::{format, string::String, vec};
use lats_values::aggregate::AggregateSpec;
use lats_values::{AggregateKind, BinaryOp, ColumnType, TypeKind};

/// A table: how many rows it has, and what they are.
#[derive(Clone, Copy)]
struct Table {
    rows: u64,
    row: fn(u64) -> Row,
}

/// A number in no order, and the row's own.
fn narrow(at: u64) -> Row {
    vec![Value::UInt(at), Value::UInt(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)]
}

/// The same with a text of a kilobyte.
fn wide(at: u64) -> Row {
    let mut row = narrow(at);
    row.push(Value::text(&format!("{at:01000}")));
    row
}

fn table(rows: u64, row: fn(u64) -> Row) -> Table {
    Table { rows, row }
}

fn bigint() -> ColumnType {
    ColumnType::new(TypeKind::BigInt).unsigned()
}

fn source(source: usize) -> Op {
    Op::Source { source, params: Vec::new() }
}

fn boxed(op: Op) -> Box<Op> {
    Box::new(op)
}

fn column(at: u32) -> Expr {
    Expr::Column(at)
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

/// A condition that is never true of two rows, over slots of both.
fn never(left: u32, right: u32) -> Expr {
    let sum = binary(BinaryOp::Add, column(left), column(right));
    binary(BinaryOp::Less, sum, Expr::Literal(Value::UInt(0)))
}

fn key(at: u32) -> OrderKey {
    OrderKey { value: column(at), column_type: bigint(), descending: false }
}

fn plan(root: Op, sources: usize) -> Plan {
    let spec = |at: usize| SourceSpec {
        source: SourceId(at as u32),
        columns: Vec::new(),
        condition: None,
        params: 0,
        given: Vec::new(),
        by_key: false,
        index: None,
        touched: crate::physical::Touched::default(),
        one_is_enough: false,
    };
    Plan { root, sources: (0..sources).map(spec).collect() }
}

/// What a run came to.
#[derive(Default)]
struct Ran {
    rows: u64,
    error: Option<String>,
    /// Rows that were read of each table, and how often rows were asked for with values of others.
    read: Vec<u64>,
    asked: Vec<u64>,
    steps: u64,
    /// The most nodes of expressions that one step has evaluated, and the most rows that it gave.
    longest: u64,
    most: usize,
    peak: usize,
    used: usize,
}

fn out_of_memory() -> SqlError {
    SqlError::new(1041, *b"HY000", "out of memory".into())
}

fn budget(bytes_max: usize) -> Budget {
    Budget { bytes_max, too_much: out_of_memory, pool: None }
}

/// Runs a plan until it has given so many rows.
fn run_until(plan: &Plan, tables: &[Table], budget: Budget, rows_max: u64) -> Ran {
    let run = Run::new(&[], EvalContext::new(false), budget, u64::MAX);
    go_on(run, plan, tables, rows_max)
}

fn go_on(mut run: Run<'_>, plan: &Plan, tables: &[Table], rows_max: u64) -> Ran {
    let mut machine = Machine::new(plan);
    let counts = vec![0; tables.len()];
    let mut ran = Ran { read: counts.clone(), asked: counts, ..Ran::default() };
    let mut open: BTreeMap<AskId, (usize, u64)> = BTreeMap::new();
    loop {
        let before = run.context.work_left();
        let polled = machine.step(&mut run);
        ran.steps += 1;
        ran.longest = ran.longest.max(before - run.context.work_left());
        match polled {
            Err(error) => {
                ran.error = Some(error.message);
                ran.peak = run.peak();
                return ran;
            }
            Ok(Poll::Rows(rows)) => {
                ran.most = ran.most.max(rows.len());
                ran.rows += rows.len() as u64;
                if ran.rows >= rows_max {
                    machine.close(&mut run);
                    break;
                }
            }
            Ok(Poll::Done) => break,
            Ok(Poll::Yield) => {}
            Ok(Poll::Pending) => {
                if let Err(error) = answer(&mut run, tables, &mut open, &mut ran) {
                    ran.error = Some(error.message);
                    ran.peak = run.peak();
                    return ran;
                }
            }
        }
    }
    (ran.peak, ran.used) = (run.peak(), run.used() - run.left_bytes);
    ran
}

fn run(plan: &Plan, tables: &[Table], bytes_max: usize) -> Ran {
    run_until(plan, tables, budget(bytes_max), u64::MAX)
}

/// Answers what is asked for: few rows at first where few may do.
fn answer(
    run: &mut Run<'_>,
    tables: &[Table],
    open: &mut BTreeMap<AskId, (usize, u64)>,
    ran: &mut Ran,
) -> Result<(), SqlError> {
    let asks = core::mem::take(&mut run.asks);
    assert!(!asks.is_empty(), "it waits for nothing");
    for ask in asks {
        let (id, count) = match ask {
            Ask::Read { id, source, requests, first } => {
                // Reads by key: a row for each request.
                if requests.len() > 1 || requests.iter().any(|request| !request.is_empty()) {
                    ran.asked[source] += requests.len() as u64;
                    let rows = (0u32..).zip(requests);
                    let rows = rows.map(|(at, _)| (at, (tables[source].row)(at.into()))).collect();
                    run.answer(id, Answer { rows, more: false })?;
                    continue;
                }
                open.insert(id, (source, 0));
                (id, first.map_or(1_000, u64::from))
            }
            Ask::More(id) => (id, 1_000),
            Ask::Close(id) => {
                open.remove(&id);
                continue;
            }
        };
        let Some((source, from)) = open.get_mut(&id) else { continue };
        let table = tables[*source];
        let to = table.rows.min(*from + count);
        let rows = (*from..to).map(|at| (0, (table.row)(at))).collect();
        ran.read[*source] += to - *from;
        *from = to;
        let more = to < table.rows;
        run.answer(id, Answer { rows, more })?;
    }
    Ok(())
}
