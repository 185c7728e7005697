//! Expressions as text, for the messages of range errors.

use super::{BinaryOp, UnaryOp};
use crate::{Expr, Value};
use alloc::{format, string::String, vec::Vec};

/// The sign of an operator.
pub(super) fn sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::IntDivide => "DIV",
        BinaryOp::Modulo => "%",
        BinaryOp::Equal => "=",
        BinaryOp::NullSafeEqual => "<=>",
        BinaryOp::NotEqual => "<>",
        BinaryOp::Less => "<",
        BinaryOp::LessOrEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterOrEqual => ">=",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
    }
}

/// How deep the text follows the tree.
const DEPTH: usize = 8;

/// `(a + b)`.
pub(super) fn binary(op: BinaryOp, left: &Expr, right: &Expr) -> String {
    format!("({} {} {})", at_depth(left, DEPTH), sign(op), at_depth(right, DEPTH))
}

/// An expression.
pub(super) fn expression(expr: &Expr) -> String {
    at_depth(expr, DEPTH)
}

fn at_depth(expr: &Expr, depth: usize) -> String {
    let Some(below) = depth.checked_sub(1) else { return String::from("…") };
    let inner = |e: &Expr| at_depth(e, below);
    match expr {
        Expr::Literal(value @ (Value::Text(..) | Value::Bytes(_))) => {
            format!("'{}'", value.to_display())
        }
        Expr::Literal(value) => value.to_display(),
        // Names live in the catalog; the place is what a node knows.
        Expr::Column(index) => format!("column {}", u64::from(*index) + 1),
        Expr::Unary { op: UnaryOp::Minus, arg } => format!("-({})", inner(arg)),
        Expr::Unary { op: UnaryOp::Not, arg } => format!("not({})", inner(arg)),
        Expr::Unary { op: UnaryOp::BitNot, arg } => format!("~({})", inner(arg)),
        Expr::Binary { op, left, right } => {
            format!("({} {} {})", inner(left), sign(*op), inner(right))
        }
        Expr::Cast { arg, to } => format!("cast({} as {})", inner(arg), to.sql_name()),
        Expr::Collate { arg, collation } => format!("{} collate {}", inner(arg), collation.name()),
        Expr::Call { function, args } => {
            let args: Vec<String> = args.iter().map(inner).collect();
            format!("{}({})", function.name().to_ascii_lowercase(), args.join(","))
        }
        _ => String::from("…"),
    }
}
