//! Constants that are compared with YEAR columns.

use super::{EvalContext, eval};
use crate::{
    ColumnSource, ColumnType, ConvertContext, Expr, SqlError, TypeKind, Value,
    convert::convert_to_column,
};
use alloc::{boxed::Box, vec::Vec};

/// What a column that is none of the YEAR columns' tables stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum YearOperand {
    /// A value of a row: it is compared as it is.
    Row,
    /// A value that is the same for all rows.
    Constant,
    /// The same, and this is what it is as a year.
    Year(Expr),
}

/// Makes years of the constants that are compared with YEAR columns: `year_column = 99` asks for 1999, and
/// `'0'` for 2000. As in MySQL, the list of an IN is left as it is, and so are parameters in BETWEEN. To be called where the types
/// of the columns are known; `outside` says what a column stands for.
pub fn adapt_years(
    expr: &mut Expr,
    columns: &[ColumnType],
    outside: &mut dyn FnMut(u32) -> YearOperand,
) {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Binary { op, left: a, right: b } if op.is_comparison() => {
                if is_year(a, columns) {
                    compared(b, outside);
                } else if is_year(b, columns) {
                    compared(a, outside);
                }
            }
            Expr::Between { arg, low, high, .. } if is_year(arg, columns) => {
                for bound in [low, high] {
                    let is_parameter = match **bound {
                        Expr::Column(number) => matches!(outside(number), YearOperand::Year(_)),
                        _ => false,
                    };
                    if !is_parameter {
                        compared(bound, outside);
                    }
                }
            }
            _ => {}
        }
        left.extend(expr.children_mut());
    }
}

fn is_year(expr: &Expr, columns: &[ColumnType]) -> bool {
    let Expr::Column(index) = expr else { return false };
    columns.get(*index as usize).is_some_and(|of| of.kind == TypeKind::Year)
}

fn compared(expr: &mut Expr, outside: &mut dyn FnMut(u32) -> YearOperand) {
    if let Expr::Column(number) = expr {
        match outside(*number) {
            YearOperand::Row => {}
            YearOperand::Constant => wrap(expr),
            YearOperand::Year(year) => *expr = year,
        }
        return;
    }
    match constancy(expr, outside) {
        Constancy::Literal => {
            let mut ctx = EvalContext::new(true);
            if let Ok(value) = eval(expr, &NoColumns, &mut ctx)
                && ctx.warnings.is_empty()
            {
                *expr = Expr::Literal(adapted_year(value));
            }
        }
        Constancy::Outside => wrap(expr),
        Constancy::Row => {}
    }
}

/// What a value is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Constancy {
    Literal,
    Outside,
    Row,
}

fn constancy(expr: &Expr, outside: &mut dyn FnMut(u32) -> YearOperand) -> Constancy {
    let mut found = Constancy::Literal;
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Column(number) if outside(*number) == YearOperand::Row => return Constancy::Row,
            Expr::Column(_) => found = Constancy::Outside,
            Expr::Call { function, .. } if function.is_volatile() => return Constancy::Row,
            other => left.extend(other.children()),
        }
    }
    found
}

/// The year of a value that is not known yet: of a number below 100, and the value itself of others.
fn wrap(expr: &mut Expr) {
    let value = core::mem::replace(expr, Expr::Literal(Value::Null));
    let boxed = |value| Box::new(Expr::Literal(Value::Int(value)));
    let when = Expr::Between {
        arg: Box::new(value.clone()),
        low: boxed(0),
        high: boxed(99),
        negated: false,
    };
    let to = ColumnType::new(TypeKind::Year);
    let year = Expr::Cast { arg: Box::new(value.clone()), to };
    let (branches, otherwise) = (Vec::from([(when, year)]), Some(Box::new(value)));
    *expr = Expr::Case { operand: None, branches, otherwise };
}

struct NoColumns;

impl ColumnSource for NoColumns {
    fn column(&self, _: u32) -> Value {
        Value::Null
    }
}

/// What a YEAR column would keep of a constant that is compared with it; a constant that is out of its range stays.
pub fn adapted_year(value: Value) -> Value {
    if value.is_null() {
        return value;
    }
    let mut ctx = ConvertContext::new(false, "", 1);
    let to = ColumnType::new(TypeKind::Year);
    let year: Result<Value, SqlError> = convert_to_column(value.clone(), &to, &mut ctx);
    match year {
        Ok(year) if ctx.warnings.iter().all(|w| w.errno == SqlError::truncated("", 1).errno) => {
            year
        }
        _ => value,
    }
}
