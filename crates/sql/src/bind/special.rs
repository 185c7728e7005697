//! Expressions with a syntax of their own: casts, intervals, SUBSTRING, TRIM, EXTRACT.

use super::literals::{self, length};
use super::{Binder, charset_collation};
use crate::error;
use lats_mysql_syntax::Keyword as K;
use lats_mysql_syntax::tree::{self, DataType, ExprId, List, Text, TrimSide, TypeName};
use lats_values::{
    Collation, ColumnType, Expr, Function, IntervalUnit, SqlError, TypeKind, UnaryOp, Value,
};

impl Binder<'_> {
    pub(super) fn special(&mut self, id: ExprId) -> Result<Expr, SqlError> {
        use tree::Expr as E;
        match *self.tree().expr(id) {
            E::Call { schema, name, arguments } => self.named_call(id, (schema, name), arguments),
            E::Function { name: K::GROUPING, arguments, .. } => self.grouping(arguments),
            E::Function { name, arguments, .. } => self.keyword_call(name, arguments),
            E::Cast { value, data_type, zone, is_convert: _, .. } => {
                self.cast(value, self.tree().data_type(data_type), zone)
            }
            E::ConvertUsing { value, charset } => self.convert_using(value, charset),
            E::AddInterval { value, amount, unit, is_minus, .. } => {
                self.add_interval(value, amount, unit, is_minus)
            }
            E::DateArithmetic { name, value, amount, unit } => {
                let subtract = matches!(name, K::DATE_SUB | K::SUBDATE);
                self.add_interval(value, amount, unit, subtract)
            }
            E::Extract { unit, value } => {
                let unit = interval_unit(unit)?;
                let args = vec![self.bind(value)?];
                Ok(Expr::Call { function: Function::Extract { unit }, args })
            }
            E::Trim { side, list } => self.trim(side, list),
            E::Substring { list, .. } => self.call_by_name("SUBSTRING", self.tree().list(list)),
            E::Position { part, text } => self.call_by_name("LOCATE", &[part, text]),
            E::Char { list, charset } => {
                let call = self.call_by_name("CHAR", self.tree().list(list))?;
                match charset.is_some() {
                    true => self.using(call, charset),
                    false => Ok(call),
                }
            }
            E::Timestamp { name, unit, list } => self.timestamp(name, unit, list),
            E::Values(column) => self.values_call(column),
            E::Assign { variable, value } => self.assign(variable, value),
            E::Default | E::DefaultOf(_) => Err(error::not_supported("DEFAULT in expressions")),
            E::Regexp { value, is_not, pattern } => {
                let like = self.call_by_name("REGEXP_LIKE", &[value, pattern])?;
                Ok(match is_not {
                    true => Expr::Unary { op: UnaryOp::Not, arg: Box::new(like) },
                    false => like,
                })
            }
            E::Match { .. } => Err(error::not_supported("MATCH")),
            E::JsonValue(_) => Err(error::not_supported("JSON_VALUE")),
            E::Arrow { .. } => Err(error::not_supported("-> on JSON")),
            E::WeightString { .. } => Err(error::not_supported("function WEIGHT_STRING")),
            E::GetFormat { kind, style } => {
                let kind = Expr::Literal(Value::text(kind.name()));
                let args = vec![kind, self.bind(style)?];
                Ok(Expr::Call { function: Function::GetFormat, args })
            }
            E::Odbc { name, value } => self.odbc(name, value),
            E::Star { .. } => Err(error::syntax("near '*'")),
            _ => Err(error::internal("an expression of a kind that nobody binds")),
        }
    }

    fn cast(&mut self, value: ExprId, data_type: &DataType, zone: Text) -> Result<Expr, SqlError> {
        if zone.is_some() {
            return Err(error::not_supported("AT TIME ZONE"));
        }
        let to = self.cast_type(data_type)?;
        let arg = super::hex_beside(self.bind(value)?, to.kind.is_number());
        Ok(Expr::Cast { arg: Box::new(arg), to })
    }

    /// The type that CAST gives.
    fn cast_type(&self, data_type: &DataType) -> Result<ColumnType, SqlError> {
        use TypeName as T;
        if data_type.is_array {
            return Err(error::not_supported("CAST AS … ARRAY"));
        }
        let tree = self.tree();
        let chars = length(tree, data_type.length)?;
        Ok(match data_type.name {
            T::Signed => ColumnType::new(TypeKind::BigInt),
            T::Unsigned => ColumnType::new(TypeKind::BigInt).unsigned(),
            T::Char | T::NationalChar if self.is_bytes(data_type)? => bytes_type(chars),
            T::Char | T::NationalChar => {
                let plain = ColumnType::new(text_kind(chars));
                match data_type.is_binary {
                    true => plain.collated(Collation::Utf8mb4Bin),
                    false => plain,
                }
            }
            T::Binary => bytes_type(chars),
            T::Date
            | T::Time
            | T::DateTime
            | T::Decimal
            | T::Float
            | T::Double
            | T::Real
            | T::Year => literals::data_type(tree, data_type, Collation::default())?,
            other => {
                let name = format!("{other:?}").to_ascii_uppercase();
                return Err(error::not_supported(&format!("CAST AS {name}")));
            }
        })
    }

    fn is_bytes(&self, data_type: &DataType) -> Result<bool, SqlError> {
        Ok(match data_type.charset {
            tree::Charset::Byte => true,
            tree::Charset::Name(text) => charset_collation(self.name(text)?)? == Collation::Binary,
            _ => false,
        })
    }

    fn convert_using(&mut self, value: ExprId, charset: Text) -> Result<Expr, SqlError> {
        let bound = self.bind(value)?;
        self.using(bound, charset)
    }

    fn using(&self, value: Expr, charset: Text) -> Result<Expr, SqlError> {
        let to = match charset_collation(self.name(charset)?)? {
            Collation::Binary => ColumnType::new(TypeKind::LongBlob),
            _ => ColumnType::new(TypeKind::LongText),
        };
        Ok(Expr::Cast { arg: Box::new(value), to })
    }

    /// `date + INTERVAL n unit`.
    fn add_interval(
        &mut self,
        date: ExprId,
        amount: ExprId,
        unit: K,
        subtract: bool,
    ) -> Result<Expr, SqlError> {
        let unit = interval_unit(unit)?;
        let function =
            if subtract { Function::DateSub { unit } } else { Function::DateAdd { unit } };
        let args = vec![self.bind(date)?, self.bind(amount)?];
        Ok(Expr::Call { function, args })
    }

    fn trim(&mut self, side: TrimSide, list: List) -> Result<Expr, SqlError> {
        let name = match side {
            TrimSide::Leading => "LTRIM",
            TrimSide::Trailing => "RTRIM",
            TrimSide::Both | TrimSide::None => "TRIM",
        };
        match *self.tree().list(list) {
            // What is removed stands before the text.
            [what, text] => self.call_by_name(name, &[text, what]),
            [text] => self.call_by_name(name, &[text]),
            _ => Err(error::wrong_argument_count("TRIM")),
        }
    }

    fn timestamp(&mut self, name: K, unit: K, list: List) -> Result<Expr, SqlError> {
        let (unit, args) = (interval_unit(unit)?, self.tree().list(list));
        let mut bound = Vec::with_capacity(args.len());
        for arg in args {
            bound.push(self.bind(*arg)?);
        }
        if name == K::TIMESTAMPADD {
            bound.reverse();
            return Ok(Expr::Call { function: Function::DateAdd { unit }, args: bound });
        }
        Ok(Expr::Call { function: Function::TimestampDiff { unit }, args: bound })
    }

    /// `{d '2024-01-01'}`: what is in the braces; with d, t and ts a text is a moment.
    fn odbc(&mut self, name: Text, value: ExprId) -> Result<Expr, SqlError> {
        let kind = match self.name(name)?.to_ascii_lowercase().as_str() {
            "d" => TypeKind::Date,
            "t" => TypeKind::Time { fsp: 6 },
            "ts" => TypeKind::DateTime { fsp: 6 },
            _ => return self.bind(value),
        };
        let arg = Box::new(self.bind(value)?);
        Ok(Expr::Cast { arg, to: ColumnType::new(kind) })
    }
}

fn text_kind(chars: Option<u64>) -> TypeKind {
    match chars.map(u16::try_from) {
        Some(Ok(chars)) if chars <= 16_383 => TypeKind::VarChar { chars },
        _ => TypeKind::LongText,
    }
}

fn bytes_type(length: Option<u64>) -> ColumnType {
    ColumnType::new(match length.map(u16::try_from) {
        Some(Ok(bytes)) => TypeKind::Binary { bytes },
        _ => TypeKind::LongBlob,
    })
}

pub(super) fn interval_unit(unit: K) -> Result<IntervalUnit, SqlError> {
    let name = unit.name();
    // The units of ODBC have a prefix.
    let plain = name.strip_prefix("SQL_TSI_").unwrap_or(name);
    IntervalUnit::from_name(plain).ok_or_else(|| error::not_supported(&format!("unit {name}")))
}
