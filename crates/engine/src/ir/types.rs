//! The types of expressions.

use super::{EXTERNAL_BASE, Scalar, Types, walk};
use alloc::vec::Vec;
use lats_values::{ColumnType, Expr, TypeKind, Value};

/// The type of an expression over columns, and values from outside of which the types are known as far as the list goes.
pub fn type_with(expr: &Scalar, types: &Types, externals: &Types) -> ColumnType {
    if let Expr::Column(number) = expr {
        let known = match number.checked_sub(EXTERNAL_BASE) {
            None => types.get(*number as usize),
            Some(at) => externals.get(at as usize),
        };
        return known.cloned().unwrap_or_else(unknown);
    }
    let mut outside = false;
    walk::visit_numbers(expr, &mut |number| outside |= number >= EXTERNAL_BASE);
    if !outside {
        return lats_values::result_type(expr, types);
    }
    // Values from outside become columns behind those of the statement.
    let base = types.len() as u32;
    let renumbered = walk::map_columns(expr, &|number| {
        let at = number.checked_sub(EXTERNAL_BASE)?;
        Some(match externals.get(at as usize) {
            Some(_) => Expr::Column(base + at),
            None => Expr::Literal(Value::Null),
        })
    });
    let all: Vec<ColumnType> = types.iter().chain(externals).cloned().collect();
    lats_values::result_type(&renumbered, &all)
}

/// What is not known yet has the type of NULL.
pub fn unknown() -> ColumnType {
    ColumnType::new(TypeKind::VarBinary { bytes: 0 })
}
