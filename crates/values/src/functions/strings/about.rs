//! What a value is: its character set, its collation, and how strong that is.

use super::{Function, plain};
use crate::{Expr, Value};
use alloc::string::String;

/// CHARSET and COLLATION: numbers, days and NULL are binary.
pub(super) fn call(function: Function, value: &Value) -> Value {
    let collation = value.collation();
    let name = if function == Function::Charset { collation.charset() } else { collation.name() };
    plain(String::from(name))
}

/// COERCIBILITY of an expression that gave a value: 0 is the strongest.
pub(crate) fn coercibility(expr: &Expr, value: &Value) -> i64 {
    const EXPLICIT: i64 = 0;
    const COLUMN: i64 = 2;
    const LITERAL: i64 = 4;
    const NUMBER: i64 = 5;
    const NULL: i64 = 6;
    match expr {
        _ if expr.is_converted() => COLUMN,
        Expr::Collate { .. } => EXPLICIT,
        Expr::Literal(Value::Null) => NULL,
        _ if !value.is_string() && !value.is_null() => NUMBER,
        Expr::Column(_) | Expr::Cast { .. } => COLUMN,
        Expr::Call { function, .. } if function.is_variable() => COLUMN,
        Expr::Call { args, .. } => {
            // The strongest argument decides; numbers among them are texts by then.
            let of = |arg: &Expr| match arg {
                Expr::Literal(_) => LITERAL,
                _ => coercibility(arg, value),
            };
            args.iter().map(of).min().unwrap_or(LITERAL)
        }
        _ => LITERAL,
    }
}
