//! How many digits after the point a double is shown with, where that does not follow from its value.

use super::{BinaryOp, UnaryOp};
use crate::{ColumnType, Expr, Function, TypeKind, Value, result_type};
use alloc::vec::Vec;

/// Digits after the point of `PI()`.
const PI_DECIMALS: u8 = 6;
/// Deepest tree in which `PI()` is looked for.
const DEPTH_MAX: usize = 64;

/// The digits after the point that an expression's double is shown with: those of `PI()`, as far as
/// they last. `None`: as many as it takes to name the value. The value itself keeps all of them.
pub fn shown_decimals(expr: &Expr, columns: &[ColumnType]) -> Option<u8> {
    if has_pi(expr) { Shown { columns }.decimals(expr, DEPTH_MAX) } else { None }
}

fn has_pi(expr: &Expr) -> bool {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        if matches!(expr, Expr::Call { function: Function::Pi, .. }) {
            return true;
        }
        left.extend(expr.children());
    }
    false
}

struct Shown<'c> {
    columns: &'c [ColumnType],
}

impl Shown<'_> {
    fn decimals(&self, expr: &Expr, depth: usize) -> Option<u8> {
        let below = depth.checked_sub(1)?;
        match expr {
            Expr::Unary { op: UnaryOp::Minus, arg } => self.decimals(arg, below),
            Expr::Binary { op: BinaryOp::Add | BinaryOp::Subtract, left, right } => {
                self.most([&**left, right].into_iter(), below)
            }
            Expr::Case { branches, otherwise, .. } => {
                let results = branches.iter().map(|(_, then)| then).chain(otherwise.as_deref());
                self.most(results, below)
            }
            Expr::Call { function, args } => match (function, args.as_slice()) {
                (Function::Pi, _) => Some(PI_DECIMALS),
                (Function::Abs, [arg]) => self.decimals(arg, below),
                (Function::If, [_, results @ ..]) => self.most(results.iter(), below),
                (Function::IfNull | Function::Coalesce, results) => {
                    self.most(results.iter(), below)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The most of several operands, if one has its digits fixed and the others are exact.
    fn most<'e>(&self, operands: impl Iterator<Item = &'e Expr>, depth: usize) -> Option<u8> {
        let mut fixed = false;
        let mut most = 0;
        for operand in operands {
            let decimals = match self.decimals(operand, depth) {
                Some(decimals) => {
                    fixed = true;
                    decimals
                }
                None => self.exact_scale(operand)?,
            };
            most = most.max(decimals);
        }
        fixed.then_some(most)
    }

    fn exact_scale(&self, expr: &Expr) -> Option<u8> {
        if let Expr::Literal(Value::Null) = expr {
            return Some(0);
        }
        match result_type(expr, self.columns).kind {
            TypeKind::Decimal { scale, .. } => Some(scale),
            kind => kind.is_integer().then_some(0),
        }
    }
}
