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
/// How deep it does where the names are known.
const DEPTH_SHOWN: usize = 32;

/// The name of a column, where one is known.
type Names<'n> = &'n dyn Fn(u32) -> Option<String>;

/// `(a + b)`.
pub(super) fn binary(op: BinaryOp, left: &Expr, right: &Expr) -> String {
    let side = |side| at_depth(side, DEPTH, &|_| None);
    format!("({} {} {})", side(left), sign(op), side(right))
}

/// An expression.
pub(super) fn expression(expr: &Expr) -> String {
    at_depth(expr, DEPTH, &|_| None)
}

/// An expression as EXPLAIN shows it; deep parts are left out.
pub fn shown_expression(expr: &Expr, names: &dyn Fn(u32) -> Option<String>) -> String {
    at_depth(expr, DEPTH_SHOWN, names)
}

fn at_depth(expr: &Expr, depth: usize, names: Names<'_>) -> String {
    let Some(below) = depth.checked_sub(1) else { return String::from("…") };
    let inner = |e: &Expr| at_depth(e, below, names);
    let not = |negated: bool| if negated { "not " } else { "" };
    match expr {
        Expr::Literal(value @ (Value::Text(..) | Value::Bytes(_))) => {
            format!("'{}'", value.to_display())
        }
        Expr::Literal(value) => value.to_display(),
        // Names live in the catalog; the place is what a node knows.
        Expr::Column(index) => {
            names(*index).unwrap_or_else(|| format!("column {}", u64::from(*index) + 1))
        }
        Expr::Unary { op: UnaryOp::Minus, arg } => format!("-({})", inner(arg)),
        Expr::Unary { op: UnaryOp::Not, arg } => format!("not({})", inner(arg)),
        Expr::Unary { op: UnaryOp::BitNot, arg } => format!("~({})", inner(arg)),
        Expr::Binary { op, left, right } | Expr::Compare { op, left, right, .. } => {
            format!("({} {} {})", inner(left), sign(*op), inner(right))
        }
        Expr::IsNull { arg, negated } => format!("({} is {}null)", inner(arg), not(*negated)),
        Expr::Between { arg, low, high, negated } => {
            let (low, high) = (inner(low), inner(high));
            format!("({} {}between {low} and {high})", inner(arg), not(*negated))
        }
        Expr::In { arg, list, negated } => {
            let shown: Vec<String> = list.iter().take(LIST_SHOWN).map(inner).collect();
            let more = if list.len() > LIST_SHOWN { ",…" } else { "" };
            format!("({} {}in ({}{more}))", inner(arg), not(*negated), shown.join(","))
        }
        Expr::Like { arg, pattern, negated, .. } => {
            format!("({} {}like {})", inner(arg), not(*negated), inner(pattern))
        }
        Expr::Cast { arg, to } => format!("cast({} as {})", inner(arg), to.sql_name()),
        Expr::Collate { arg, collation } => {
            format!("({} collate {})", inner(arg), collation.name())
        }
        Expr::Call { function, args } => {
            let args: Vec<String> = args.iter().map(inner).collect();
            format!("{}({})", function.name().to_ascii_lowercase(), args.join(","))
        }
        Expr::Case { .. } => String::from("…"),
    }
}

/// Items of a list that are shown.
const LIST_SHOWN: usize = 64;
