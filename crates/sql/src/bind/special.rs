//! Expressions with a syntax of their own: casts, intervals, SUBSTRING, TRIM, EXTRACT.

use super::{Binder, literals};
use crate::error;
use lats_values::{
    Collation, ColumnType, EvalContext, Expr, Function, IntervalUnit, SqlError, TypeKind, Value,
};
use sqlparser::ast::{self, CeilFloorKind, DataType, DateTimeField, TrimWhereField};

impl Binder<'_> {
    pub(super) fn special(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        use ast::Expr as E;
        match expr {
            E::Cast { kind: ast::CastKind::Cast, expr, data_type, array: false, format: None } => {
                let to = cast_type(data_type)?;
                // `BINARY a = b` comes as a cast of the whole comparison.
                if matches!(data_type, DataType::Binary(_)) && !super::operators::is_primary(expr) {
                    return Err(error::not_supported("BINARY before expressions"));
                }
                Ok(Expr::Cast { arg: Box::new(self.bind(expr)?), to })
            }
            E::Convert {
                is_try: false,
                expr,
                data_type: Some(data_type),
                charset: None,
                target_before_value: false,
                styles,
            } if styles.is_empty() => {
                let to = cast_type(data_type)?;
                Ok(Expr::Cast { arg: Box::new(self.bind(expr)?), to })
            }
            E::TypedString(typed) if !typed.uses_odbc_syntax => typed_string(typed),
            E::Extract { field, expr, .. } => {
                let unit = interval_unit(Some(field))?;
                let args = vec![self.bind(expr)?];
                Ok(Expr::Call { function: Function::Extract { unit }, args })
            }
            E::Ceil { expr, field } => self.whole("CEIL", expr, field),
            E::Floor { expr, field } => self.whole("FLOOR", expr, field),
            E::Position { expr, r#in } => self.value_function("LOCATE", &[expr, r#in]),
            E::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                let mut args = vec![&**expr, &**from];
                args.extend(substring_for.as_deref());
                self.value_function("SUBSTRING", &args)
            }
            E::Trim { trim_where, trim_what: None, expr, trim_characters: None } => {
                self.value_function(trim_name(*trim_where), &[expr])
            }
            E::Trim { trim_where, trim_what: Some(what), expr, trim_characters: None } => {
                self.value_function(trim_name(*trim_where), &[expr, what])
            }
            E::Prefixed { prefix, value } if is_introducer(&prefix.value) => self.bind(value),
            E::Subquery(_) | E::Exists { .. } | E::InSubquery { .. } => {
                Err(error::not_supported("subqueries"))
            }
            E::Tuple(_) => Err(error::not_supported("row values")),
            other => {
                let text: String = other.to_string().chars().take(100).collect();
                Err(error::not_supported(&text))
            }
        }
    }

    fn whole(
        &mut self,
        name: &str,
        expr: &ast::Expr,
        field: &CeilFloorKind,
    ) -> Result<Expr, SqlError> {
        match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {
                self.value_function(name, &[expr])
            }
            _ => Err(error::wrong_argument_count(name)),
        }
    }

    /// `date + INTERVAL n unit`.
    pub(super) fn add_interval(
        &mut self,
        date: &ast::Expr,
        interval: &ast::Interval,
        subtract: bool,
    ) -> Result<Expr, SqlError> {
        if interval.leading_precision.is_some()
            || interval.last_field.is_some()
            || interval.fractional_seconds_precision.is_some()
        {
            return Err(error::not_supported("this form of INTERVAL"));
        }
        let unit = interval_unit(interval.leading_field.as_ref())?;
        let function =
            if subtract { Function::DateSub { unit } } else { Function::DateAdd { unit } };
        let args = vec![self.bind(date)?, self.bind(&interval.value)?];
        Ok(Expr::Call { function, args })
    }
}

fn interval_unit(field: Option<&DateTimeField>) -> Result<IntervalUnit, SqlError> {
    let Some(field) = field else { return Err(error::syntax("INTERVAL needs a unit")) };
    let name = field.to_string();
    IntervalUnit::from_name(&name).ok_or_else(|| error::not_supported(&format!("unit {name}")))
}

fn trim_name(side: Option<TrimWhereField>) -> &'static str {
    match side {
        Some(TrimWhereField::Leading) => "LTRIM",
        Some(TrimWhereField::Trailing) => "RTRIM",
        Some(TrimWhereField::Both) | None => "TRIM",
    }
}

/// `_utf8mb4'text'`: our text is always of this character set.
fn is_introducer(prefix: &str) -> bool {
    prefix.eq_ignore_ascii_case("_utf8mb4") || prefix.eq_ignore_ascii_case("_utf8")
}

fn typed_string(typed: &ast::TypedString) -> Result<Expr, SqlError> {
    let (kind, name) = match typed.data_type {
        DataType::Date => (TypeKind::Date, "DATE"),
        DataType::Time(None, _) => (TypeKind::Time { fsp: 6 }, "TIME"),
        DataType::Timestamp(None, _) => (TypeKind::DateTime { fsp: 6 }, "DATETIME"),
        _ => return Err(error::not_supported(&format!("literal {}", typed.data_type))),
    };
    let text = literals::literal(&typed.value.value)?;
    // The literal has as many digits of a fraction as were written.
    let shown = text.to_display();
    let digits = shown.split_once('.').map_or(0, |(_, digits)| digits.len().min(6));
    let fsp = u8::try_from(digits).unwrap_or(6);
    let kind = match kind {
        TypeKind::Time { .. } => TypeKind::Time { fsp },
        TypeKind::DateTime { .. } => TypeKind::DateTime { fsp },
        other => other,
    };
    let cast = Expr::Cast { arg: Box::new(Expr::Literal(text)), to: ColumnType::new(kind) };
    let mut context = EvalContext::new(false);
    let none: &[Value] = &[];
    match lats_values::eval(
        &cast,
        &crate::expr::ValuesSource { row: none, externals: none },
        &mut context,
    )? {
        Value::Null => {
            Err(error::make(1525, "HY000", &format!("Incorrect {name} value: '{shown}'")))
        }
        value => Ok(Expr::Literal(value)),
    }
}

/// The type that CAST gives.
pub(crate) fn cast_type(data_type: &DataType) -> Result<ColumnType, SqlError> {
    Ok(match data_type {
        DataType::Signed | DataType::SignedInteger => ColumnType::new(TypeKind::BigInt),
        DataType::Unsigned | DataType::UnsignedInteger => {
            ColumnType::new(TypeKind::BigInt).unsigned()
        }
        DataType::Char(None) | DataType::Character(None) => ColumnType::new(TypeKind::LongText),
        DataType::Char(Some(ast::CharacterLength::IntegerLength { length, unit: None })) => {
            let chars = u16::try_from(*length)
                .map_err(|_| error::not_supported("CAST to so long a CHAR"))?;
            ColumnType::new(TypeKind::VarChar { chars })
        }
        DataType::Binary(None) => ColumnType::new(TypeKind::LongBlob),
        DataType::Date
        | DataType::Time(..)
        | DataType::Datetime(_)
        | DataType::Decimal(_)
        | DataType::Float(_)
        | DataType::Double(_)
        | DataType::Custom(..) => literals::data_type(data_type, Collation::default())?,
        other => return Err(error::not_supported(&format!("CAST AS {other}"))),
    })
}
