//! The type that MySQL reports for an expression's result.

use super::{BinaryOp, UnaryOp};
use crate::{Collation, ColumnType, Expr, Function, TypeKind, Value, functions};
use alloc::vec::Vec;

/// The type of an expression over these columns.
pub fn result_type(expr: &Expr, columns: &[ColumnType]) -> ColumnType {
    let of = |e: &Expr| result_type(e, columns);
    match expr {
        Expr::Literal(value) => literal(value),
        Expr::Column(index) => columns.get(*index as usize).cloned().unwrap_or_else(null_type),
        Expr::Unary { op: UnaryOp::Minus, arg } if super::negation_is_decimal(arg) => {
            ColumnType::new(decimal(20, 0)).not_null()
        }
        Expr::Unary { op: UnaryOp::Minus, arg } => negated(&of(arg)),
        Expr::Unary { op: UnaryOp::BitNot, arg } => with_nulls(bigint().unsigned(), &[of(arg)]),
        Expr::Binary { op, left, right } => binary(*op, left, right, columns),
        Expr::IsNull { .. } => bigint().not_null(),
        Expr::Unary { op: UnaryOp::Not, arg } => with_nulls(bigint(), &[of(arg)]),
        Expr::Between { arg, low, high, .. } => {
            let operands = [of(arg), of(low), of(high)];
            if mixes_moments(&operands) { bigint() } else { with_nulls(bigint(), &operands) }
        }
        Expr::Like { arg, pattern, .. } => with_nulls(bigint(), &[of(arg), of(pattern)]),
        Expr::In { arg, list, .. } => {
            // Of a long list, nobody looks at each item.
            let is_long = list.len() > LIST_LOOKED_AT;
            if is_long {
                return bigint();
            }
            let operands: Vec<ColumnType> = core::iter::once(&**arg).chain(list).map(of).collect();
            if mixes_moments(&operands) { bigint() } else { with_nulls(bigint(), &operands) }
        }
        Expr::Compare { op, left, right, .. } => binary(*op, left, right, columns),
        Expr::Case { branches, otherwise, .. } => {
            let results = branches.iter().map(|(_, then)| then).chain(otherwise.as_deref());
            ColumnType { nullable: true, ..common(results.map(of)) }
        }
        Expr::Cast { to, arg } => cast_type(to, &of(arg)),
        Expr::Call { function, args } => call(*function, args, columns),
        Expr::Collate { arg, collation } => {
            let inner = of(arg);
            let kind = if inner.kind.is_text() {
                inner.kind
            } else {
                TypeKind::VarChar { chars: chars_of(&inner) }
            };
            ColumnType { nullable: inner.nullable, ..ColumnType::new(kind).collated(*collation) }
        }
    }
}

pub(crate) fn bigint() -> ColumnType {
    ColumnType::new(TypeKind::BigInt)
}

/// Items of IN that are looked at for NULLs.
const LIST_LOOKED_AT: usize = 64;

/// NULL only if one of these is.
fn with_nulls(of: ColumnType, operands: &[ColumnType]) -> ColumnType {
    ColumnType { nullable: operands.iter().any(|operand| operand.nullable), ..of }
}

/// True if moments are compared with something else: a text that is no moment is NULL beside one.
fn mixes_moments(operands: &[ColumnType]) -> bool {
    let is_moment = |of: &ColumnType| of.kind.is_temporal();
    operands.iter().any(is_moment) && !operands.iter().all(is_moment)
}

fn null_type() -> ColumnType {
    ColumnType::new(TypeKind::VarBinary { bytes: 0 })
}

fn is_null_type(kind: &ColumnType) -> bool {
    kind.kind == TypeKind::VarBinary { bytes: 0 }
}

fn literal(value: &Value) -> ColumnType {
    let kind = match value {
        Value::Null => return null_type(),
        Value::Int(_) => TypeKind::BigInt,
        Value::UInt(_) => return bigint().unsigned().not_null(),
        Value::Float(_) => TypeKind::Float,
        Value::Double(_) => TypeKind::Double,
        Value::Decimal(v) => decimal(v.whole_digits(), v.shown_scale().into()),
        Value::Text(text, collation) => {
            return text_type(text.chars().count()).collated(*collation).not_null();
        }
        Value::Bytes(bytes) => match u16::try_from(bytes.len()) {
            Ok(bytes) => TypeKind::VarBinary { bytes },
            Err(_) => TypeKind::LongBlob,
        },
        Value::Date(_) => TypeKind::Date,
        Value::Time(v) => TypeKind::Time { fsp: v.fsp },
        Value::DateTime(v) => TypeKind::DateTime { fsp: v.fsp },
    };
    ColumnType::new(kind).not_null()
}

/// `DECIMAL` with so many digits before and behind the point, as far as a decimal goes.
fn decimal(whole: usize, scale: usize) -> TypeKind {
    let scale = scale.min(30);
    let precision = (whole + scale).clamp(scale.max(1), 65);
    TypeKind::Decimal { precision: precision as u8, scale: scale as u8 }
}

/// VARCHAR, or LONGTEXT where it would be too long.
pub(crate) fn text_type(chars: usize) -> ColumnType {
    match u16::try_from(chars) {
        Ok(chars) if chars <= 16_383 => ColumnType::new(TypeKind::VarChar { chars }),
        _ => ColumnType::new(TypeKind::LongText),
    }
}

/// How a type takes part in arithmetic: digits before the point and behind it, or not exact.
enum Class {
    Int { digits: usize, unsigned: bool },
    Decimal { whole: usize, scale: usize },
    Real,
}

fn class(of: &ColumnType) -> Class {
    let int = |digits| Class::Int { digits, unsigned: of.unsigned };
    let fraction = |digits: usize, fsp: u8| match fsp {
        0 => int(digits),
        _ => Class::Decimal { whole: digits, scale: fsp.into() },
    };
    match of.kind {
        TypeKind::TinyInt => int(3),
        TypeKind::SmallInt => int(5),
        TypeKind::MediumInt => int(8),
        TypeKind::Int => int(10),
        TypeKind::BigInt => int(if of.unsigned { 20 } else { 19 }),
        TypeKind::Year => Class::Int { digits: 4, unsigned: true },
        TypeKind::Decimal { precision, scale } => {
            Class::Decimal { whole: (precision - scale.min(precision)).into(), scale: scale.into() }
        }
        TypeKind::Date => int(8),
        TypeKind::Time { fsp } => fraction(7, fsp),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => fraction(14, fsp),
        _ if is_null_type(of) => int(1),
        _ => Class::Real,
    }
}

fn exact_parts(class: &Class) -> Option<(usize, usize)> {
    match class {
        Class::Int { digits, .. } => Some((*digits, 0)),
        Class::Decimal { whole, scale } => Some((*whole, *scale)),
        Class::Real => None,
    }
}

fn negated(arg: &ColumnType) -> ColumnType {
    let kind = match class(arg) {
        Class::Int { .. } => TypeKind::BigInt,
        Class::Decimal { whole, scale } => decimal(whole, scale),
        Class::Real => TypeKind::Double,
    };
    ColumnType { nullable: arg.nullable, ..ColumnType::new(kind) }
}

fn binary(op: BinaryOp, left: &Expr, right: &Expr, columns: &[ColumnType]) -> ColumnType {
    use BinaryOp::*;
    let (a, b) = (result_type(left, columns), result_type(right, columns));
    // A constant has only the digits that it shows.
    let class_of = |expr: &Expr, of: &ColumnType| match expr {
        Expr::Literal(Value::Int(value)) => {
            Class::Int { digits: digits_of(value.unsigned_abs()), unsigned: false }
        }
        _ => class(of),
    };
    let computed = || {
        let classes = (class_of(left, &a), class_of(right, &b));
        arithmetic_of(op, classes, a.unsigned || b.unsigned)
    };
    let result = match op {
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => bigint().unsigned(),
        Add | Subtract | Multiply => computed(),
        // By zero, they are NULL.
        Divide | IntDivide | Modulo => return computed(),
        NullSafeEqual => return bigint().not_null(),
        // A text that is no moment is NULL beside one.
        _ if a.kind.is_temporal() != b.kind.is_temporal() => return bigint(),
        _ => bigint(),
    };
    with_nulls(result, &[a, b])
}

/// The type of an arithmetic operator's result.
pub(crate) fn arithmetic(op: BinaryOp, a: &ColumnType, b: &ColumnType) -> ColumnType {
    arithmetic_of(op, (class(a), class(b)), a.unsigned || b.unsigned)
}

fn digits_of(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn arithmetic_of(op: BinaryOp, (x, y): (Class, Class), is_unsigned: bool) -> ColumnType {
    let unsigned = |c: &Class| matches!(c, Class::Int { unsigned: true, .. });
    let ints = matches!((&x, &y), (Class::Int { .. }, Class::Int { .. }));
    let whole = |is_unsigned: bool| if is_unsigned { bigint().unsigned() } else { bigint() };
    if op == BinaryOp::IntDivide {
        return whole(is_unsigned);
    }
    let (Some((w1, s1)), Some((w2, s2))) = (exact_parts(&x), exact_parts(&y)) else {
        return ColumnType::new(TypeKind::Double);
    };
    ColumnType::new(match op {
        BinaryOp::Divide => decimal(w1 + s2, s1 + 4),
        BinaryOp::Modulo if ints => return whole(unsigned(&x)),
        _ if ints => return whole(unsigned(&x) || unsigned(&y)),
        BinaryOp::Modulo => decimal(w1.max(w2), s1.max(s2)),
        BinaryOp::Multiply => decimal(w1 + w2, s1 + s2),
        _ => decimal(w1.max(w2) + 1, s1.max(s2)),
    })
}

/// The type that holds values of all these types.
pub(crate) fn common(types: impl Iterator<Item = ColumnType>) -> ColumnType {
    types.reduce(|a, b| unite(&a, &b)).unwrap_or_else(null_type)
}

fn unite(a: &ColumnType, b: &ColumnType) -> ColumnType {
    let nullable = a.nullable || b.nullable;
    if is_null_type(a) || is_null_type(b) {
        let other = if is_null_type(a) { b } else { a };
        return ColumnType { nullable: true, ..other.clone() };
    }
    let united = if a.kind.is_temporal() || b.kind.is_temporal() {
        unite_temporal(a, b)
    } else {
        unite_others(a, b)
    };
    ColumnType { nullable, ..united }
}

fn unite_temporal(a: &ColumnType, b: &ColumnType) -> ColumnType {
    let fsp = a.kind.fsp().max(b.kind.fsp());
    match (a.kind, b.kind) {
        (TypeKind::Date, TypeKind::Date) => ColumnType::new(TypeKind::Date),
        (TypeKind::Time { .. }, TypeKind::Time { .. }) => ColumnType::new(TypeKind::Time { fsp }),
        (x, y) if x.is_temporal() && y.is_temporal() => ColumnType::new(TypeKind::DateTime { fsp }),
        _ => unite_strings(a, b),
    }
}

fn unite_others(a: &ColumnType, b: &ColumnType) -> ColumnType {
    let numeric = |t: &ColumnType| !t.kind.is_text() && !t.kind.is_bytes();
    if !numeric(a) || !numeric(b) {
        return unite_strings(a, b);
    }
    if a.kind == b.kind && a.unsigned == b.unsigned {
        return a.clone();
    }
    if let Some(kind) = unite_floats(a.kind, b.kind) {
        return ColumnType::new(kind);
    }
    if let Some(united) = unite_years(a, b) {
        return united;
    }
    let (x, y) = (class(a), class(b));
    match (exact_parts(&x), exact_parts(&y)) {
        (Some((w1, 0)), Some((w2, 0))) if a.kind.is_integer() && b.kind.is_integer() => {
            let mixed = a.unsigned != b.unsigned;
            let is_widest = |of: &ColumnType| of.unsigned && of.kind == TypeKind::BigInt;
            if mixed && (is_widest(a) || is_widest(b)) {
                return ColumnType::new(decimal(20, 0));
            }
            let wider = if w1 > w2 || (w1 == w2 && a.unsigned) { a } else { b };
            // With both signs the next larger type has room for all values, if the unsigned one is not the smaller.
            let kind = match mixed && wider.unsigned {
                true => next_integer(wider.kind),
                false => wider.kind,
            };
            let united = ColumnType::new(kind);
            if mixed || !a.unsigned { united } else { united.unsigned() }
        }
        (Some((w1, s1)), Some((w2, s2))) => ColumnType::new(decimal(w1.max(w2), s1.max(s2))),
        _ => ColumnType::new(TypeKind::Double),
    }
}

fn next_integer(kind: TypeKind) -> TypeKind {
    match kind {
        TypeKind::TinyInt => TypeKind::SmallInt,
        TypeKind::SmallInt => TypeKind::MediumInt,
        TypeKind::MediumInt => TypeKind::Int,
        _ => TypeKind::BigInt,
    }
}

/// FLOAT beside small whole numbers stays FLOAT; a BIGINT behind it, too.
fn unite_floats(a: TypeKind, b: TypeKind) -> Option<TypeKind> {
    use TypeKind as K;
    let is_small = |kind| matches!(kind, K::TinyInt | K::SmallInt | K::MediumInt | K::Year);
    let is_kept = match (a, b) {
        (K::Float, K::BigInt) => true,
        (K::Float, other) | (other, K::Float) => is_small(other),
        _ => false,
    };
    is_kept.then_some(K::Float)
}

/// YEAR beside a whole number is a small one without a sign.
fn unite_years(a: &ColumnType, b: &ColumnType) -> Option<ColumnType> {
    let other = match (a.kind, b.kind) {
        (TypeKind::Year, _) => b,
        (_, TypeKind::Year) => a,
        _ => return None,
    };
    let kind = if other.kind == TypeKind::TinyInt { TypeKind::SmallInt } else { other.kind };
    other.kind.is_integer().then(|| ColumnType { kind, ..other.clone() })
}

fn unite_strings(a: &ColumnType, b: &ColumnType) -> ColumnType {
    if a.kind.is_bytes() || b.kind.is_bytes() {
        let bytes = a.kind.max_variable_bytes().max(b.kind.max_variable_bytes()).max(40);
        return ColumnType::new(match u16::try_from(bytes) {
            Ok(bytes) => TypeKind::VarBinary { bytes },
            Err(_) => TypeKind::LongBlob,
        });
    }
    let collation = match (a.kind.is_text(), b.kind.is_text()) {
        (true, true) => crate::compare::common_collation(a.collation, b.collation),
        (true, false) => a.collation,
        (false, true) => b.collation,
        (false, false) => Collation::default(),
    };
    let long = |t: &ColumnType| t.kind.is_text() && is_long(t);
    if long(a) || long(b) {
        return ColumnType::new(TypeKind::LongText).collated(collation);
    }
    text_type(chars_of(a).max(chars_of(b)).into()).collated(collation)
}

/// True for types of texts and bytes that are longer than a VARCHAR may be.
fn is_long(of: &ColumnType) -> bool {
    let is_string = of.kind.is_text() || of.kind.is_bytes();
    is_string && !is_null_type(of) && of.kind.max_variable_bytes() > 16_383 * 4
}

/// The most characters that a value of the type is written in.
pub(crate) fn chars_of(of: &ColumnType) -> u16 {
    let with_point = |fsp: u8| if fsp > 0 { u16::from(fsp) + 1 } else { 0 };
    match of.kind {
        TypeKind::TinyInt => 4,
        TypeKind::SmallInt => 6,
        TypeKind::MediumInt => 9,
        TypeKind::Int => 11,
        TypeKind::BigInt => 20,
        TypeKind::Float => 12,
        TypeKind::Double => 23,
        TypeKind::Decimal { precision, .. } => u16::from(precision) + 2,
        TypeKind::Date => 10,
        TypeKind::Time { fsp } => 10 + with_point(fsp),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => 19 + with_point(fsp),
        TypeKind::Year => 4,
        TypeKind::Char { chars } | TypeKind::VarChar { chars } => chars,
        TypeKind::Binary { bytes } | TypeKind::VarBinary { bytes } => bytes,
        TypeKind::TinyText | TypeKind::TinyBlob => 255,
        _ => u16::MAX,
    }
}

/// CAST keeps the collation of text that it is given.
fn cast_type(to: &ColumnType, arg: &ColumnType) -> ColumnType {
    let collation =
        if to.kind.is_text() && arg.kind.is_text() { arg.collation } else { to.collation };
    let kind = match to.kind {
        // Without a length it is as long as the argument may be.
        TypeKind::LongText if !is_long(arg) => TypeKind::VarChar { chars: chars_of(arg) },
        TypeKind::LongBlob if !is_long(arg) => {
            let bytes = if arg.kind.is_text() { 4 } else { 1 };
            TypeKind::VarBinary { bytes: chars_of(arg).saturating_mul(bytes) }
        }
        TypeKind::Char { chars } => TypeKind::VarChar { chars },
        TypeKind::Binary { bytes } => TypeKind::VarBinary { bytes },
        kind => kind,
    };
    ColumnType { kind, collation, nullable: true, ..to.clone() }
}

fn call(function: Function, args: &[Expr], columns: &[ColumnType]) -> ColumnType {
    let types: alloc::vec::Vec<ColumnType> =
        args.iter().map(|arg| result_type(arg, columns)).collect();
    functions::result_type(function, args, &types)
}
