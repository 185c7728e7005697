//! The encoding of programs.
//!
//! A variant's number is its place in its enum, for nodes, operators, functions, units, types, collations and values alike:
//! new ones come at the end. `frozen.rs` pins the numbers.

#[cfg(test)]
mod frozen;

use super::Program;
use crate::{BinaryOp, Collation, ColumnType, Comparator, Expr, Function, UnaryOp, Value};
use alloc::{boxed::Box, vec::Vec};
use lats_base::limits;
use serde::{Deserialize, Serialize};

/// First byte of every program; another encoding gets another number.
const FORMAT: u8 = 1;

/// One node of a tree; its children stand before it.
#[derive(Serialize, Deserialize)]
enum Node {
    Literal(Value),
    Column(u16),
    Unary(UnaryOp),
    Binary(BinaryOp),
    IsNull { negated: bool },
    Between { negated: bool },
    In { count: u32, negated: bool },
    Like { escape: Option<char>, negated: bool },
    Case { operand: bool, branches: u32, otherwise: bool },
    Cast(ColumnType),
    Call { function: Function, count: u32 },
    Collate(Collation),
    Compare { op: BinaryOp, by: Comparator },
}

#[derive(Serialize, Deserialize)]
struct Wire {
    filter: Option<Vec<Node>>,
    assignments: Vec<(u16, Vec<Node>)>,
    projection: Option<Vec<u16>>,
    strict: bool,
}

pub(super) fn encode(program: &Program) -> Vec<u8> {
    let wire = Wire {
        filter: program.filter.as_ref().map(flatten),
        assignments: program.assignments.iter().map(|(c, e)| (*c, flatten(e))).collect(),
        projection: program.projection.clone(),
        strict: program.strict,
    };
    // Writing to a vector cannot fail; an empty program would be refused by the reader.
    postcard::to_extend(&wire, Vec::from([FORMAT])).unwrap_or_default()
}

/// What is left to do while a tree is written: go down into it, or write its own node.
enum Task<'e> {
    Visit(&'e Expr),
    Chain(BinaryOp, Vec<&'e Expr>),
    Emit(Node),
}

fn flatten(expr: &Expr) -> Vec<Node> {
    let mut out = Vec::new();
    let mut tasks = Vec::from([Task::Visit(expr)]);
    while let Some(task) = tasks.pop() {
        match task {
            Task::Emit(node) => out.push(node),
            Task::Visit(expr) => visit(expr, &mut tasks),
            Task::Chain(op, operands) => split(op, operands, &mut tasks),
        }
    }
    out
}

/// Writes a chain of AND or OR as a balanced tree: order and meaning stay, the depth shrinks.
fn split<'e>(op: BinaryOp, mut operands: Vec<&'e Expr>, tasks: &mut Vec<Task<'e>>) {
    if let [one] = operands.as_slice() {
        tasks.push(Task::Visit(one));
        return;
    }
    let right = operands.split_off(operands.len() / 2);
    tasks.push(Task::Emit(Node::Binary(op)));
    tasks.push(Task::Chain(op, right));
    tasks.push(Task::Chain(op, operands));
}

/// A chain of the same operator that is longer than this is balanced.
const CHAIN_MIN: usize = 16;

fn chain_of(op: BinaryOp, expr: &Expr) -> Vec<&Expr> {
    let mut operands = Vec::new();
    let mut rest = expr;
    while let Expr::Binary { op: inner, left, right } = rest
        && *inner == op
    {
        operands.push(&**right);
        rest = left;
    }
    operands.push(rest);
    operands.reverse();
    operands
}

fn visit<'e>(expr: &'e Expr, tasks: &mut Vec<Task<'e>>) {
    if let Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), .. } = expr {
        let operands = chain_of(*op, expr);
        if operands.len() > CHAIN_MIN {
            tasks.push(Task::Chain(*op, operands));
            return;
        }
    }
    let (node, children) = parts(expr);
    tasks.push(Task::Emit(node));
    tasks.extend(children.into_iter().rev().map(Task::Visit));
}

fn parts(expr: &Expr) -> (Node, Vec<&Expr>) {
    match expr {
        Expr::Literal(value) => (Node::Literal(value.clone()), Vec::new()),
        // No table has so many columns: the reader refuses the number.
        Expr::Column(index) => {
            (Node::Column(u16::try_from(*index).unwrap_or(u16::MAX)), Vec::new())
        }
        Expr::Unary { op, arg } => (Node::Unary(*op), Vec::from([&**arg])),
        Expr::Binary { op, left, right } => (Node::Binary(*op), Vec::from([&**left, right])),
        Expr::IsNull { arg, negated } => (Node::IsNull { negated: *negated }, Vec::from([&**arg])),
        Expr::Between { arg, low, high, negated } => {
            (Node::Between { negated: *negated }, Vec::from([&**arg, low, high]))
        }
        Expr::In { arg, list, negated } => {
            let node = Node::In { count: list.len() as u32, negated: *negated };
            (node, core::iter::once(&**arg).chain(list).collect())
        }
        Expr::Like { arg, pattern, escape, negated } => {
            let node = Node::Like { escape: *escape, negated: *negated };
            (node, Vec::from([&**arg, pattern]))
        }
        Expr::Case { operand, branches, otherwise } => {
            let node = Node::Case {
                operand: operand.is_some(),
                branches: branches.len() as u32,
                otherwise: otherwise.is_some(),
            };
            let pairs = branches.iter().flat_map(|(when, then)| [when, then]);
            (
                node,
                operand.as_deref().into_iter().chain(pairs).chain(otherwise.as_deref()).collect(),
            )
        }
        Expr::Cast { arg, to } => (Node::Cast(to.clone()), Vec::from([&**arg])),
        Expr::Call { function, args } => {
            let node = Node::Call { function: *function, count: args.len() as u32 };
            (node, args.iter().collect())
        }
        Expr::Collate { arg, collation } => (Node::Collate(*collation), Vec::from([&**arg])),
        Expr::Compare { op, by, left, right } => {
            (Node::Compare { op: *op, by: *by }, Vec::from([&**left, right]))
        }
    }
}

pub(super) fn decode(bytes: &[u8], columns: &[ColumnType]) -> Option<Program> {
    let body = bytes.strip_prefix(&[FORMAT])?;
    let (wire, rest) = postcard::take_from_bytes::<Wire>(body).ok()?;
    let known = |c: u16| usize::from(c) < columns.len();
    if !rest.is_empty() || wire.assignments.len() > limits::COLUMNS_MAX {
        return None;
    }
    let filter = match wire.filter {
        Some(nodes) => Some(build(nodes, columns.len())?),
        None => None,
    };
    let mut assignments = Vec::new();
    for (column, nodes) in wire.assignments {
        if !known(column) {
            return None;
        }
        assignments.push((column, build(nodes, columns.len())?));
    }
    if let Some(projection) = &wire.projection {
        let mut sorted = projection.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != projection.len() || !sorted.iter().all(|c| known(*c)) {
            return None;
        }
    }
    Some(Program { filter, assignments, projection: wire.projection, strict: wire.strict })
}

/// True if the program asks for columns, or cannot be read.
pub(super) fn wants_row(bytes: &[u8]) -> bool {
    let body = bytes.strip_prefix(&[FORMAT]);
    let wire = body.and_then(|body| postcard::take_from_bytes::<Wire>(body).ok());
    wire.is_none_or(|(wire, _)| wire.projection.is_some())
}

/// Finished subtrees and their depths.
struct Stack {
    trees: Vec<(Expr, usize)>,
    columns: usize,
}

fn build(nodes: Vec<Node>, columns: usize) -> Option<Expr> {
    let mut stack = Stack { trees: Vec::new(), columns };
    for node in nodes {
        stack.push(node)?;
    }
    match (stack.trees.pop(), stack.trees.is_empty()) {
        (Some((tree, _)), true) => Some(tree),
        _ => None,
    }
}

impl Stack {
    fn push(&mut self, node: Node) -> Option<()> {
        let count = children(&node)?;
        let from = self.trees.len().checked_sub(count)?;
        let mut depth = 0;
        let mut args = Vec::with_capacity(count);
        for (tree, below) in self.trees.drain(from..) {
            depth = depth.max(below);
            args.push(tree);
        }
        depth += 1;
        if depth > limits::PROGRAM_DEPTH_MAX {
            return None;
        }
        let tree = self.tree(node, args)?;
        self.trees.push((tree, depth));
        Some(())
    }

    fn tree(&self, node: Node, args: Vec<Expr>) -> Option<Expr> {
        let mut args = args.into_iter();
        let mut next = || args.next().map(Box::new);
        Some(match node {
            Node::Literal(value) => Expr::Literal(finite(value)?),
            Node::Column(index) if usize::from(index) < self.columns => Expr::Column(index.into()),
            Node::Column(_) => return None,
            Node::Unary(op) => Expr::Unary { op, arg: next()? },
            Node::Binary(op) => Expr::Binary { op, left: next()?, right: next()? },
            Node::IsNull { negated } => Expr::IsNull { arg: next()?, negated },
            Node::Between { negated } => {
                Expr::Between { arg: next()?, low: next()?, high: next()?, negated }
            }
            Node::In { negated, .. } => Expr::In { arg: next()?, list: args.collect(), negated },
            Node::Like { escape, negated } => {
                Expr::Like { arg: next()?, pattern: next()?, escape, negated }
            }
            Node::Case { operand, branches, otherwise } => {
                let operand = if operand { Some(next()?) } else { None };
                let mut pairs = Vec::new();
                for _ in 0..branches {
                    pairs.push((*next()?, *next()?));
                }
                let otherwise = if otherwise { Some(next()?) } else { None };
                Expr::Case { operand, branches: pairs, otherwise }
            }
            Node::Cast(to) if to.kind.is_valid() => Expr::Cast { arg: next()?, to },
            Node::Cast(_) => return None,
            Node::Call { function, .. } => Expr::Call { function, args: args.collect() },
            Node::Collate(collation) => Expr::Collate { arg: next()?, collation },
            Node::Compare { op, by } if op.is_comparison() => {
                Expr::Compare { op, by, left: next()?, right: next()? }
            }
            Node::Compare { .. } => return None,
        })
    }
}

/// No SQL literal is infinite or not a number.
fn finite(value: Value) -> Option<Value> {
    match value {
        Value::Double(v) if !v.is_finite() => None,
        Value::Float(v) if !v.is_finite() => None,
        other => Some(other),
    }
}

/// How many finished trees a node takes; `None` for counts that no tree has.
fn children(node: &Node) -> Option<usize> {
    Some(match node {
        Node::Literal(_) | Node::Column(_) => 0,
        Node::Unary(_) | Node::IsNull { .. } | Node::Cast(_) | Node::Collate(_) => 1,
        Node::Binary(_) | Node::Like { .. } | Node::Compare { .. } => 2,
        Node::Between { .. } => 3,
        Node::In { count, .. } => usize::try_from(*count).ok()?.checked_add(1)?,
        Node::Case { operand, branches, otherwise } => usize::try_from(*branches)
            .ok()?
            .checked_mul(2)?
            .checked_add(usize::from(*operand) + usize::from(*otherwise))?,
        Node::Call { function, count } => {
            let count = usize::try_from(*count).ok()?;
            let (low, high) = function.arity();
            if count < low || count > high || function.is_local() {
                return None;
            }
            count
        }
    })
}
