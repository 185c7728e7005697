//! The types of aggregates.

use super::{AggregateKind, AggregateSpec, GROUP_CONCAT_BYTES_MAX};
use crate::{ColumnType, TypeKind, compare::common_collation};

/// The type of an aggregate over values of type `input`.
pub fn result_type(kind: AggregateKind, input: &ColumnType) -> ColumnType {
    of_parts(kind, core::slice::from_ref(input), GROUP_CONCAT_BYTES_MAX)
}

pub(super) fn of_spec(spec: &AggregateSpec) -> ColumnType {
    of_parts(spec.kind, &spec.args, spec.max_bytes)
}

fn of_parts(kind: AggregateKind, args: &[ColumnType], max_bytes: usize) -> ColumnType {
    use AggregateKind::*;
    let bigint = || ColumnType::new(TypeKind::BigInt);
    let input = args.first().cloned().unwrap_or_else(bigint);
    match kind {
        CountStar | Count => bigint().not_null(),
        Min | Max | AnyValue => ColumnType { nullable: true, ..input },
        Sum | Avg => sum_type(&input, kind == Avg),
        StdPop | StdSamp | VarPop | VarSamp => ColumnType::new(TypeKind::Double),
        BitAnd | BitOr | BitXor
            if input.kind.is_bytes() && input.kind != (TypeKind::VarBinary { bytes: 0 }) =>
        {
            input.not_null()
        }
        BitAnd | BitOr | BitXor => bigint().unsigned().not_null(),
        GroupConcat => concat_type(args, max_bytes),
    }
}

fn sum_type(input: &ColumnType, average: bool) -> ColumnType {
    let Some((whole, scale)) = exact_digits(input) else {
        return ColumnType::new(TypeKind::Double);
    };
    let (whole, scale) = if average { (whole, scale + 4) } else { (whole + 22, scale) };
    let scale = scale.min(30);
    let precision = (whole + scale).min(65);
    ColumnType::new(TypeKind::Decimal { precision, scale })
}

/// Text unless an argument is bytes, as long as it may become.
fn concat_type(args: &[ColumnType], max_bytes: usize) -> ColumnType {
    let bytes = args.iter().any(|arg| arg.kind.is_bytes());
    let kind = match (max_bytes, bytes) {
        (..=65_535, false) => TypeKind::Text,
        (..=65_535, true) => TypeKind::Blob,
        (..=0xff_ffff, false) => TypeKind::MediumText,
        (..=0xff_ffff, true) => TypeKind::MediumBlob,
        (_, false) => TypeKind::LongText,
        (_, true) => TypeKind::LongBlob,
    };
    let texts = args.iter().filter(|arg| arg.kind.is_text()).map(|arg| arg.collation);
    match texts.reduce(common_collation) {
        Some(collation) if !bytes => ColumnType::new(kind).collated(collation),
        _ => ColumnType::new(kind),
    }
}

/// Digits before and behind the point of an exact type.
pub(super) fn exact_digits(input: &ColumnType) -> Option<(u8, u8)> {
    Some(match input.kind {
        TypeKind::TinyInt => (3, 0),
        TypeKind::SmallInt => (5, 0),
        TypeKind::MediumInt => (8, 0),
        TypeKind::Int => (10, 0),
        TypeKind::BigInt => (if input.unsigned { 20 } else { 19 }, 0),
        TypeKind::Year => (4, 0),
        TypeKind::Decimal { precision, scale } => (precision.saturating_sub(scale), scale),
        TypeKind::Date => (8, 0),
        TypeKind::Time { fsp } => (7, fsp),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => (14, fsp),
        _ => return None,
    })
}
