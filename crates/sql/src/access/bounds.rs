//! From constraints and values to ranges of encoded keys.

use super::{Constraint, Outside};
use crate::expr::RowSource;
use crate::table::Table;
use lats_base::planted::{QueryBug, errs};
use lats_client::api::KeyRange;
use lats_values::{
    Collation, ColumnType, ConvertContext, EvalContext, Expr, SqlError, TypeKind, Value,
    encode_key_value, next_prefix,
};
use std::cmp::Ordering;

/// Whole numbers up to here are exact as DOUBLE, and no other number rounds to one of them.
const EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;

/// Encoded keys from `lower` up to but without `upper`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first key.
    pub lower: Vec<u8>,
    /// The end, not included; none for the end of the index.
    pub upper: Option<Vec<u8>>,
}

/// What a constraint comes to in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// The ranges, in no order.
    pub list: Vec<ByteRange>,
    /// Each of them is a single value of the column.
    pub points: bool,
}

/// Where a value lies among a column's values.
enum Place {
    /// It is one of them.
    At(Value),
    /// Between these two, which are neighbours.
    Gap(Value, Value),
    /// Below all of them.
    Below,
    /// Above all of them.
    Above,
    /// NULL: nothing compares with it.
    Nowhere,
    /// It does not compare in the column's order.
    Elsewhere,
}

/// The ranges of a constraint; none if its values do not compare in the column's order.
///
/// # Errors
/// What computing the values gives.
pub fn ranges(
    table: &Table,
    column: u16,
    constraint: &Constraint,
    outside: Outside<'_>,
) -> Result<Option<Ranges>, SqlError> {
    let Some(column_type) = table.types.get(usize::from(column)) else { return Ok(None) };
    let resolver = Resolver { column: column_type, outside };
    let Some(list) = resolver.constraint(constraint)? else { return Ok(None) };
    Ok(Some(Ranges { list, points: matches!(constraint, Constraint::Points(_)) }))
}

/// Bytes of a usual value in a key.
pub(super) const POINT_BYTES: usize = 16;

/// Appends the value of a column to a key; false if it is none of the column's values.
///
/// # Errors
/// What computing the value gives.
pub(super) fn point(
    table: &Table,
    column: u16,
    value: &Expr,
    outside: Outside<'_>,
    key: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    let Some(column) = table.types.get(usize::from(column)) else { return Ok(false) };
    let Place::At(value) = (Resolver { column, outside }).place(value)? else { return Ok(false) };
    encode_key_value(column, &value, key);
    Ok(true)
}

struct Resolver<'a> {
    column: &'a ColumnType,
    outside: Outside<'a>,
}

type Found = Result<Option<Vec<ByteRange>>, SqlError>;

impl Resolver<'_> {
    fn constraint(&self, constraint: &Constraint) -> Found {
        match constraint {
            Constraint::Points(values) => self.points(values),
            Constraint::Range { lower, upper } => self.range(lower.as_ref(), upper.as_ref()),
            Constraint::Null => {
                let lower = self.encode(&Value::Null);
                let upper = next_prefix(&lower);
                Ok(Some(vec![ByteRange { lower, upper }]))
            }
            Constraint::Any(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    let Some(ranges) = self.constraint(part)? else { return Ok(None) };
                    all.extend(ranges);
                }
                Ok(Some(all))
            }
            Constraint::All(parts) => self.all(parts),
        }
    }

    fn all(&self, parts: &[Constraint]) -> Found {
        let mut all: Option<Vec<ByteRange>> = None;
        for part in parts {
            let Some(ranges) = self.constraint(part)? else { return Ok(None) };
            all = Some(match all {
                None => ranges,
                Some(before) if before.len().saturating_mul(ranges.len()) > super::RANGES_MAX => {
                    return Ok(None);
                }
                Some(before) => before
                    .iter()
                    .flat_map(|a| ranges.iter().filter_map(move |b| intersection(a, b)))
                    .collect(),
            });
        }
        Ok(all)
    }

    fn points(&self, values: &[Expr]) -> Found {
        let mut list = Vec::with_capacity(values.len());
        for value in values {
            match self.place(value)? {
                Place::At(value) => {
                    let lower = self.encode(&value);
                    let upper = next_prefix(&lower);
                    list.push(ByteRange { lower, upper });
                }
                Place::Gap(..) | Place::Below | Place::Above | Place::Nowhere => {}
                Place::Elsewhere => return Ok(None),
            }
        }
        Ok(Some(list))
    }

    fn range(&self, lower: Option<&(Expr, bool)>, upper: Option<&(Expr, bool)>) -> Found {
        let nothing = Ok(Some(Vec::new()));
        let mut range = ByteRange {
            lower: match errs(QueryBug::IndexRangeHasNulls) {
                true => self.encode(&Value::Null),
                false => next_prefix(&self.encode(&Value::Null)).unwrap_or_default(),
            },
            upper: None,
        };
        if let Some((value, inclusive)) = lower {
            match self.place(value)? {
                Place::At(value) if *inclusive => range.lower = self.encode(&value),
                Place::At(value) => match next_prefix(&self.encode(&value)) {
                    Some(after) => range.lower = after,
                    None => return nothing,
                },
                Place::Gap(_, above) if errs(QueryBug::IndexGapLosesRow) => {
                    range.lower = next_prefix(&self.encode(&above)).unwrap_or_default();
                }
                Place::Gap(_, above) => range.lower = self.encode(&above),
                Place::Below => {}
                Place::Above | Place::Nowhere => return nothing,
                Place::Elsewhere => return Ok(None),
            }
        }
        if let Some((value, inclusive)) = upper {
            match self.place(value)? {
                Place::At(value) if *inclusive => range.upper = next_prefix(&self.encode(&value)),
                Place::At(value) => range.upper = Some(self.encode(&value)),
                Place::Gap(below, _) => range.upper = next_prefix(&self.encode(&below)),
                Place::Above => {}
                Place::Below | Place::Nowhere => return nothing,
                Place::Elsewhere => return Ok(None),
            }
        }
        if range.upper.as_ref().is_some_and(|upper| *upper <= range.lower) {
            return nothing;
        }
        Ok(Some(vec![range]))
    }

    fn encode(&self, value: &Value) -> Vec<u8> {
        let mut out = Vec::with_capacity(POINT_BYTES);
        encode_key_value(self.column, value, &mut out);
        out
    }

    fn place(&self, expr: &Expr) -> Result<Place, SqlError> {
        let source = RowSource::constant(self.outside.values);
        let value = match expr {
            Expr::Literal(value) => value.clone(),
            other => lats_values::eval(other, &source, &mut EvalContext::new(false))?,
        };
        if value.is_null() {
            return Ok(Place::Nowhere);
        }
        Ok(match self.column.kind {
            kind if kind.is_integer() => self.integer(&value),
            kind if kind.is_text() && self.is_compared_otherwise(expr, &value) => Place::Elsewhere,
            kind if kind.is_text() => self.text(value),
            kind if kind.is_bytes() => self.bytes(value),
            TypeKind::Decimal { precision, scale } => decimal(&value, precision, scale),
            TypeKind::Double => match real(&value) {
                Some(number) if number != 0.0 => Place::At(Value::Double(number)),
                _ => Place::Elsewhere,
            },
            TypeKind::Float => match real(&value) {
                Some(number) if number != 0.0 && f64::from(number as f32) == number => {
                    Place::At(Value::Float(number as f32))
                }
                _ => Place::Elsewhere,
            },
            TypeKind::Year => match value {
                Value::Int(year @ 1_901..=2_155) => Place::At(Value::UInt(year.unsigned_abs())),
                Value::UInt(1_901..=2_155) => Place::At(value),
                _ => Place::Elsewhere,
            },
            _ => self.temporal(value),
        })
    }

    fn integer(&self, value: &Value) -> Place {
        let (floor, ceiling) = match value {
            Value::Int(value) => (i128::from(*value), i128::from(*value)),
            Value::UInt(value) => (i128::from(*value), i128::from(*value)),
            Value::Decimal(value) => match (value.floor().to_i128(), value.ceil().to_i128()) {
                (Some(floor), Some(ceiling)) => (floor, ceiling),
                _ => return Place::Elsewhere,
            },
            other => match real(other) {
                Some(number) if number.abs() < EXACT_DOUBLE => {
                    (number.floor() as i128, number.ceil() as i128)
                }
                _ => return Place::Elsewhere,
            },
        };
        let (min, max) = self.integer_limits();
        if ceiling < min || (floor < min && ceiling == min) {
            return Place::Below;
        }
        if floor > max || (ceiling > max && floor == max) {
            return Place::Above;
        }
        if floor == ceiling {
            return Place::At(self.integer_value(floor));
        }
        Place::Gap(self.integer_value(floor), self.integer_value(ceiling))
    }

    fn integer_limits(&self) -> (i128, i128) {
        let bits = self.column.kind.integer_bytes().unwrap_or(8) * 8;
        match self.column.unsigned {
            true => (0, (1i128 << bits) - 1),
            false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        }
    }

    fn integer_value(&self, value: i128) -> Value {
        match self.column.unsigned {
            true => Value::UInt(u64::try_from(value).unwrap_or(0)),
            false => Value::Int(i64::try_from(value).unwrap_or(0)),
        }
    }

    /// True if the column is compared with this value in another collation than its own: that of a constant gives way, but
    /// what another row or a function gives may have a stronger one.
    fn is_compared_otherwise(&self, expr: &Expr, value: &Value) -> bool {
        let gives_way = match expr {
            Expr::Literal(_) => true,
            Expr::Column(number) => self.outside.is_constant(*number),
            _ => false,
        };
        !gives_way
            && lats_values::common_collation(self.column.collation, value.collation())
                != self.column.collation
    }

    fn text(&self, value: Value) -> Place {
        let limit = match self.column.kind {
            TypeKind::Char { chars } | TypeKind::VarChar { chars } => usize::from(chars),
            _ => usize::MAX,
        };
        match value {
            Value::Text(text, _)
                if self.column.collation != Collation::Binary
                    && (text.len() <= limit || text.chars().count() <= limit) =>
            {
                Place::At(Value::Text(text, self.column.collation))
            }
            _ => Place::Elsewhere,
        }
    }

    fn bytes(&self, value: Value) -> Place {
        let bytes = match value {
            Value::Bytes(bytes) => bytes,
            Value::Text(text, _) => text.into_bytes(),
            _ => return Place::Elsewhere,
        };
        match self.column.kind {
            TypeKind::Binary { bytes: width } if usize::from(width) != bytes.len() => {
                Place::Elsewhere
            }
            _ => Place::At(Value::Bytes(bytes)),
        }
    }

    /// Days and times: usable if the value survives its conversion to the column's type.
    fn temporal(&self, value: Value) -> Place {
        let comparable = match self.column.kind {
            TypeKind::Time { .. } => matches!(value, Value::Time(_) | Value::Text(..)),
            _ => matches!(value, Value::Date(_) | Value::DateTime(_) | Value::Text(..)),
        };
        if !comparable {
            return Place::Elsewhere;
        }
        let mut context = ConvertContext::new(true, "", 1);
        match lats_values::convert_to_column(value.clone(), self.column, &mut context) {
            Ok(converted) if !converted.is_null() => {
                match lats_values::compare(&converted, &value) {
                    Ok(Some(Ordering::Equal)) => Place::At(converted),
                    _ => Place::Elsewhere,
                }
            }
            _ => Place::Elsewhere,
        }
    }
}

fn decimal(value: &Value, precision: u8, scale: u8) -> Place {
    let number = match value {
        Value::Int(value) => lats_values::Decimal::new(i128::from(*value), 0),
        Value::UInt(value) => lats_values::Decimal::new(i128::from(*value), 0),
        Value::Decimal(value) => value.clone(),
        _ => return Place::Elsewhere,
    };
    let rounded = number.round(scale);
    let fits = rounded.fits(precision, scale);
    let (rounded, number) = (Value::Decimal(rounded), Value::Decimal(number));
    match lats_values::compare(&rounded, &number) {
        Ok(Some(Ordering::Equal)) if fits => Place::At(rounded),
        _ => Place::Elsewhere,
    }
}

/// A number as DOUBLE where nothing is lost; of text only if all of it is a number.
fn real(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Int(value) => *value as f64,
        Value::UInt(value) => *value as f64,
        Value::Float(value) => f64::from(*value),
        Value::Double(value) => *value,
        Value::Decimal(value) => value.to_f64(),
        Value::Text(text, _) if is_number(text) => text.parse().ok()?,
        _ => return None,
    };
    let whole = matches!(value, Value::Int(_) | Value::UInt(_));
    (number.is_finite() && !(whole && number.abs() >= EXACT_DOUBLE)).then_some(number)
}

/// Rust also reads "inf" and "nan" as numbers.
fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'))
}

fn intersection(a: &ByteRange, b: &ByteRange) -> Option<ByteRange> {
    let lower = a.lower.as_slice().max(&b.lower).to_vec();
    let upper = match (&a.upper, &b.upper) {
        (Some(a), Some(b)) => Some(a.min(b).clone()),
        (one, other) => one.as_ref().or(other.as_ref()).cloned(),
    };
    upper.as_ref().is_none_or(|upper| *upper > lower).then_some(ByteRange { lower, upper })
}

/// Every prefix followed by every point.
pub fn extend(prefixes: &[Vec<u8>], points: Vec<ByteRange>) -> Vec<Vec<u8>> {
    if matches!(prefixes, [only] if only.is_empty()) {
        return points.into_iter().map(|point| point.lower).collect();
    }
    let joined = |prefix: &Vec<u8>, point: &ByteRange| [prefix, point.lower.as_slice()].concat();
    prefixes.iter().flat_map(|p| points.iter().map(move |point| joined(p, point))).collect()
}

/// Every prefix followed by every range.
pub fn combine(prefixes: &[Vec<u8>], ranges: &[ByteRange]) -> Vec<KeyRange> {
    let mut all = Vec::with_capacity(prefixes.len() * ranges.len());
    for prefix in prefixes {
        for range in ranges {
            let upper = match &range.upper {
                Some(upper) => Some([prefix.as_slice(), upper].concat()),
                None => next_prefix(prefix),
            };
            all.push(KeyRange { lower: [prefix.as_slice(), &range.lower].concat(), upper });
        }
    }
    all
}

/// The ranges of all keys with one of these prefixes.
pub fn prefix_ranges(prefixes: &[Vec<u8>]) -> Vec<KeyRange> {
    let range = |prefix: &Vec<u8>| KeyRange { lower: prefix.clone(), upper: next_prefix(prefix) };
    prefixes.iter().map(range).collect()
}

/// The same keys in ascending ranges that do not overlap.
pub fn merge(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_unstable_by(|a, b| a.lower.cmp(&b.lower));
    let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last)
                if last.upper.as_ref().is_none_or(|upper| range.lower <= *upper)
                    && !errs(QueryBug::OverlappingRangesTwice) =>
            {
                let further = match (&last.upper, &range.upper) {
                    (Some(end), Some(other)) => other > end,
                    (Some(_), None) => true,
                    (None, _) => false,
                };
                if further {
                    last.upper = range.upper;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}
