//! SQL values: the one place of LatsDB where they are stored, compared, coerced and computed.
//!
//! The reference is MySQL 8.4 with its default `sql_mode`. Pure: no clock, no thread, no randomness.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod aggregate;
pub mod collation;
pub mod compare;
pub mod convert;
pub mod decimal;
pub mod error;
pub mod expr;
pub mod functions;
pub mod key;
pub mod program;
pub mod row;
pub mod temporal;
#[cfg(test)]
mod testing;
pub mod text;
pub mod types;
pub mod value;

pub use aggregate::{
    Accumulator, AggregateKind, AggregateSpec, result_type as aggregate_result_type,
};
pub use compare::{common_collation, compare, group_key, sort_order};
pub use convert::{ColumnName, ConvertContext, cast, convert_to_column, present};
pub use decimal::Decimal;
pub use error::SqlError;
pub use expr::{
    BinaryOp, ColumnSource, Comparator, Ends, EvalContext, Expr, Look, RowView, UnaryOp,
    YearOperand, adapt_years, adapted_year, eval, is_true, name_comparators, result_type,
    shown_decimals, shown_expression,
};
pub use functions::{Function, IntervalUnit, VariableType, kept_in_variable};
pub use key::{encode_key_value, key_value_bytes, next_prefix};
pub use program::Program;
pub use row::RowLayout;
pub use temporal::{Date, DateTime, Time};
pub use text::{format_double, format_double_fixed, format_float};
pub use types::{Collation, ColumnType, TypeKind};
pub use value::Value;
