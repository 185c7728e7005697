//! User variables in expressions: an assignment is seen by what is computed after it, in this row and in the next ones.

use super::Function;
use crate::{ColumnType, EvalContext, SqlError, TypeKind, Value, expr::result::bigint};
use alloc::string::String;

/// As what the value of a variable is read. As in MySQL, a variable has the type that it had before the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableType {
    /// As it was assigned.
    Any,
    /// A whole number.
    Integer,
    /// A whole number without a sign.
    Unsigned,
    /// A double.
    Double,
    /// A text.
    Text,
}

impl VariableType {
    /// As an argument of [`Function::GetVariable`].
    pub fn number(self) -> i64 {
        self as i64
    }

    fn wanted(number: &Value) -> Option<ColumnType> {
        let number = match number {
            Value::Int(number) => *number,
            _ => 0,
        };
        let all = [Self::Integer, Self::Unsigned, Self::Double, Self::Text];
        let found = all.into_iter().find(|of| of.number() == number)?;
        Some(match found {
            Self::Integer => bigint(),
            Self::Unsigned => bigint().unsigned(),
            Self::Double => ColumnType::new(TypeKind::Double),
            Self::Text | Self::Any => ColumnType::new(TypeKind::LongText),
        })
    }
}

pub(super) fn call(
    function: Function,
    args: &[Value],
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    match (function, args) {
        (Function::GetVariable, [Value::Text(name, _), before, wanted]) => {
            let found = ctx.local()?.variables.get(name.as_str()).unwrap_or(before).clone();
            read_as(found, wanted)
        }
        (Function::SetVariable, [Value::Text(name, _), value]) => {
            let value = kept(value.clone());
            ctx.local()?.variables.insert(String::from(name.as_str()), value.clone());
            Ok(value)
        }
        _ => Err(SqlError::wrong_argument_count(function.name())),
    }
}

/// A value as another type. What is lost is nobody's concern.
fn read_as(value: Value, wanted: &Value) -> Result<Value, SqlError> {
    match (VariableType::wanted(wanted), &value) {
        (None, _) | (_, Value::Null) => Ok(value),
        (Some(to), Value::Text(..) | Value::Bytes(_)) if to.kind == TypeKind::LongText => Ok(value),
        (Some(to), _) => crate::convert::cast(value, &to, &mut EvalContext::new(false)),
    }
}

/// A value as a variable keeps it: moments are texts.
pub fn kept(value: Value) -> Value {
    match value {
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) => Value::text(&value.to_display()),
        other => other,
    }
}

/// The type of a variable that keeps values of a type.
pub(super) fn kept_type(of: Option<&ColumnType>) -> ColumnType {
    use TypeKind as K;
    let Some(of) = of else { return ColumnType::new(K::LongText) };
    let kind = match of.kind {
        K::Date => K::VarChar { chars: 10 },
        K::Time { .. } | K::DateTime { .. } | K::Timestamp { .. } => K::VarChar { chars: 26 },
        // It has had no value yet.
        K::VarBinary { bytes: 0 } => K::LongText,
        _ => return of.clone(),
    };
    ColumnType { nullable: of.nullable, ..ColumnType::new(kind) }
}
