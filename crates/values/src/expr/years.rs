//! Constants that are compared with YEAR columns.

use super::logic::is_comparison;
use crate::{
    ColumnType, ConvertContext, Expr, SqlError, TypeKind, Value, convert::convert_to_column,
};
use alloc::vec::Vec;

/// Makes years of the constants that are compared with YEAR columns: `year_column = 99` asks for 1999, and
/// `'0'` for 2000. As in MySQL, the list of an IN is left as it is. To be called once for an expression,
/// where the types of the columns are known.
pub fn adapt_years(expr: &mut Expr, columns: &[ColumnType]) {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Binary { op, left: a, right: b } if is_comparison(*op) => {
                if is_year(a, columns) {
                    adapt(b);
                } else if is_year(b, columns) {
                    adapt(a);
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

/// What a YEAR column would keep of a constant; a constant that is out of its range stays.
fn adapt(expr: &mut Expr) {
    let Expr::Literal(value) = expr else { return };
    if value.is_null() {
        return;
    }
    let mut ctx = ConvertContext::new(false, "", 1);
    let to = ColumnType::new(TypeKind::Year);
    let year: Result<Value, SqlError> = convert_to_column(value.clone(), &to, &mut ctx);
    if let Ok(year) = year
        && ctx.warnings.iter().all(|w| w.errno == SqlError::truncated("", 1).errno)
    {
        *value = year;
    }
}
