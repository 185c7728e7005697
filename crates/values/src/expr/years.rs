//! Constants that are compared with YEAR columns.

use super::logic::is_comparison;
use super::{EvalContext, eval};
use crate::{
    ColumnSource, ColumnType, ConvertContext, Expr, SqlError, TypeKind, Value,
    convert::convert_to_column,
};
use alloc::vec::Vec;

/// Makes years of the constants that are compared with YEAR columns: `year_column = 99` asks for 1999, and
/// `'0'` for 2000. As in MySQL, the list of an IN is left as it is, and so are parameters in BETWEEN. To be called where the types
/// of the columns are known; `outside` gives what stands for a parameter as a year.
pub fn adapt_years(
    expr: &mut Expr,
    columns: &[ColumnType],
    outside: &mut dyn FnMut(u32) -> Option<Expr>,
) {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Binary { op, left: a, right: b } if is_comparison(*op) => {
                if is_year(a, columns) {
                    compared(b, outside);
                } else if is_year(b, columns) {
                    compared(a, outside);
                }
            }
            Expr::Between { arg, low, high, .. } if is_year(arg, columns) => {
                adapt(low);
                adapt(high);
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

fn compared(expr: &mut Expr, outside: &mut dyn FnMut(u32) -> Option<Expr>) {
    match expr {
        Expr::Column(number) => {
            if let Some(year) = outside(*number) {
                *expr = year;
            }
        }
        // `98 + 1` is a constant, too.
        Expr::Unary { .. } | Expr::Binary { .. } if is_of_literals(expr) => {
            let mut ctx = EvalContext::new(true);
            if let Ok(value) = eval(expr, &NoColumns, &mut ctx)
                && ctx.warnings.is_empty()
            {
                *expr = Expr::Literal(adapted_year(value));
            }
        }
        other => adapt(other),
    }
}

fn is_of_literals(expr: &Expr) -> bool {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Literal(_) => {}
            Expr::Unary { arg, .. } => left.push(arg),
            Expr::Binary { left: a, right: b, .. } => left.extend([&**a, &**b]),
            _ => return false,
        }
    }
    true
}

struct NoColumns;

impl ColumnSource for NoColumns {
    fn column(&self, _: u32) -> Value {
        Value::Null
    }
}

fn adapt(expr: &mut Expr) {
    if let Expr::Literal(value) = expr {
        *value = adapted_year(core::mem::replace(value, Value::Null));
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
