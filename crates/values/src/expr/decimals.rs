//! How many digits after the point a double is shown with, where that does not follow from its value.

use super::{BinaryOp, UnaryOp};
use crate::{ColumnType, Expr, Function, TypeKind, Value, result_type};
use alloc::vec::Vec;

/// Digits after the point of `PI()`.
const PI_DECIMALS: u8 = 6;
/// Digits that a quotient has more than what is divided.
const QUOTIENT_DECIMALS: u8 = 4;
/// Digits behind the point at most.
const DECIMALS_MAX: u8 = 30;
/// Deepest tree in which `PI()` is looked for.
const DEPTH_MAX: usize = 64;

/// The digits after the point that an expression's double is shown with: those of `PI()`, as far as
/// they last. `None`: as many as it takes to name the value. The value itself keeps all of them.
pub fn shown_decimals(expr: &Expr, columns: &[ColumnType]) -> Option<u8> {
    known_decimals(expr, columns, &|_| None)
}

/// The same where the digits of columns are known.
pub(super) fn known_decimals(
    expr: &Expr,
    columns: &[ColumnType],
    known: &dyn Fn(u32) -> Option<u8>,
) -> Option<u8> {
    let shown = Shown { columns, known };
    if shown.has_digits(expr) { shown.decimals(expr, DEPTH_MAX) } else { None }
}

struct Shown<'c> {
    columns: &'c [ColumnType],
    known: &'c dyn Fn(u32) -> Option<u8>,
}

impl Shown<'_> {
    fn has_digits(&self, expr: &Expr) -> bool {
        let mut left = Vec::from([expr]);
        while let Some(expr) = left.pop() {
            let has = match expr {
                Expr::Call { function, .. } => *function == Function::Pi,
                Expr::Column(number) => (self.known)(*number).is_some(),
                _ => false,
            };
            if has {
                return true;
            }
            left.extend(expr.children());
        }
        false
    }

    fn decimals(&self, expr: &Expr, depth: usize) -> Option<u8> {
        let below = depth.checked_sub(1)?;
        match expr {
            Expr::Column(number) => (self.known)(*number),
            Expr::Unary { op: UnaryOp::Minus, arg } => self.decimals(arg, below),
            Expr::Binary { op, left, right } => {
                let most = || self.most([&**left, right].into_iter(), below);
                match op {
                    BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Modulo => {
                        most()
                    }
                    BinaryOp::Divide => Some((most()? + QUOTIENT_DECIMALS).min(DECIMALS_MAX)),
                    _ => None,
                }
            }
            Expr::Case { branches, otherwise, .. } => {
                let results = branches.iter().map(|(_, then)| then).chain(otherwise.as_deref());
                self.most(results, below)
            }
            Expr::Call { function, args } => match (function, args.as_slice()) {
                (Function::Pi, _) => Some(PI_DECIMALS),
                (Function::Abs, [arg]) => self.decimals(arg, below),
                (Function::If, [_, results @ ..]) => self.most(results.iter(), below),
                (
                    Function::IfNull | Function::Coalesce | Function::Greatest | Function::Least,
                    results,
                ) => self.most(results.iter(), below),
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
