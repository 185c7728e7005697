//! The types of the functions' results.

use super::{Function, date::parse};
use crate::{
    Collation, ColumnType, Expr, TypeKind, Value,
    expr::result::{arithmetic, bigint, chars_of, common, text_type},
};

/// The type of a function's result, by the types of its arguments.
pub(crate) fn result_type(function: Function, args: &[Expr], types: &[ColumnType]) -> ColumnType {
    use Function as F;
    let of = type_of(function, args, types);
    match function {
        F::IsNull | F::Field | F::Coercibility | F::Interval | F::Pi => of.not_null(),
        _ if passes_nulls(function) => {
            ColumnType { nullable: types.iter().any(|of| of.nullable), ..of }
        }
        _ => of,
    }
}

/// True for functions that give NULL only for NULL.
fn passes_nulls(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::Length
            | F::CharLength
            | F::BitLength
            | F::Ascii
            | F::Ord
            | F::Strcmp
            | F::Instr
            | F::Locate
            | F::FindInSet
            | F::Crc32
            | F::BitCount
            | F::Abs
            | F::Ceil
            | F::Floor
            | F::Round
            | F::Truncate
            | F::Sign
            | F::Degrees
            | F::Radians
    )
}

fn type_of(function: Function, args: &[Expr], types: &[ColumnType]) -> ColumnType {
    use Function as F;
    let first = || types.first().cloned().unwrap_or_else(bigint);
    match function {
        F::If => nullable(common(types.iter().skip(1).cloned())),
        F::IfNull | F::Coalesce => {
            let united = common(types.iter().cloned());
            ColumnType { nullable: types.iter().all(|t| t.nullable), ..united }
        }
        F::Greatest | F::Least => nullable(common(types.iter().cloned())),
        F::NullIf => nullable(first()),
        F::SetVariable => super::variables::kept_type(types.get(1)),
        F::GetVariable => nullable(super::variables::kept_type(types.get(1))),
        F::Abs | F::Ceil | F::Floor | F::Round | F::Truncate => rounded(function, args, &first()),
        F::Mod => match types {
            [a, b] => arithmetic(crate::BinaryOp::Modulo, a, b),
            _ => bigint(),
        },
        _ if function.is_math() => math_type(function),
        _ if function.is_date() => date_type(function, args, types),
        _ => string_type(function, args, types),
    }
}

fn nullable(of: ColumnType) -> ColumnType {
    ColumnType { nullable: true, ..of }
}

fn math_type(function: Function) -> ColumnType {
    match function {
        Function::Sign | Function::BitCount | Function::Interval => bigint(),
        Function::Crc32 => bigint().unsigned(),
        _ => ColumnType::new(TypeKind::Double),
    }
}

/// Whole numbers and doubles keep their class; decimals lose digits behind the point.
fn rounded(function: Function, args: &[Expr], of: &ColumnType) -> ColumnType {
    let kind = match of.kind {
        kind if kind.is_integer() || kind == TypeKind::Year || kind == TypeKind::Date => {
            let whole = bigint();
            return if of.unsigned { whole.unsigned() } else { whole };
        }
        TypeKind::Decimal { precision, scale } => {
            let whole = precision.saturating_sub(scale);
            let scale = match (function, args.get(1)) {
                (Function::Abs, _) => return nullable(of.clone()),
                (Function::Ceil | Function::Floor, _) if whole < 18 => return bigint(),
                (Function::Ceil | Function::Floor, _) => 0,
                (_, Some(Expr::Literal(Value::Int(places)))) => (*places).clamp(0, 30) as u8,
                (_, Some(_)) => scale,
                (_, None) => 0,
            };
            let precision = (whole + u8::from(function == Function::Round) + scale).clamp(1, 65);
            TypeKind::Decimal { precision, scale }
        }
        _ => TypeKind::Double,
    };
    ColumnType::new(kind)
}

fn date_type(function: Function, args: &[Expr], types: &[ColumnType]) -> ColumnType {
    use Function as F;
    let fsp = types.iter().map(|t| t.kind.fsp()).max().unwrap_or(0);
    let text_fsp = args.iter().zip(types).map(|(arg, t)| shown_fsp(arg, t)).max().unwrap_or(0);
    ColumnType::new(match function {
        F::Date | F::LastDay | F::FromDays | F::MakeDate => TypeKind::Date,
        F::Time | F::TimeDiff | F::SecToTime => TypeKind::Time { fsp: text_fsp },
        F::Timestamp => TypeKind::DateTime { fsp: text_fsp },
        F::FromUnixtime if args.len() > 1 => return text_type(255),
        F::FromUnixtime => TypeKind::DateTime {
            fsp: match types.first().map(|t| t.kind) {
                Some(TypeKind::Decimal { scale, .. }) => scale.min(6),
                Some(kind) if kind.is_integer() => 0,
                _ => 6,
            },
        },
        F::UnixTimestamp if fsp > 0 => TypeKind::Decimal { precision: 11 + fsp, scale: fsp },
        F::MakeTime => TypeKind::Time { fsp: seconds_fsp(args, types) },
        F::StrToDate => match args.get(1) {
            Some(Expr::Literal(format)) => parse::kind_of(&format.to_display()),
            _ => TypeKind::DateTime { fsp: 6 },
        },
        F::AddTime | F::SubTime => match types.first().map(|t| t.kind) {
            Some(TypeKind::Time { .. }) => TypeKind::Time { fsp: text_fsp },
            Some(kind) if kind.is_temporal() => TypeKind::DateTime { fsp: text_fsp },
            _ => return text_type(29),
        },
        F::ConvertTz => {
            let fsp = args.first().zip(types.first()).map_or(6, |(arg, t)| shown_fsp(arg, t));
            TypeKind::DateTime { fsp }
        }
        F::MonthName | F::DayName => return text_type(9),
        F::GetFormat => return text_type(17),
        F::DateFormat | F::TimeFormat => return text_type(255),
        F::DateAdd { unit } | F::DateSub { unit } => match types.first().map(|t| t.kind) {
            Some(TypeKind::Date) if !unit.has_time() => TypeKind::Date,
            Some(kind) if kind.is_temporal() => {
                let fsp = if unit.has_micros() { 6 } else { amount_fsp(args, kind.fsp()) };
                match kind {
                    TypeKind::Time { .. } => TypeKind::Time { fsp },
                    _ => TypeKind::DateTime { fsp },
                }
            }
            _ => return text_type(29),
        },
        _ => return bigint(),
    })
}

/// Decimals of a TIME that is made of its parts.
fn seconds_fsp(args: &[Expr], types: &[ColumnType]) -> u8 {
    match (args.get(2), types.get(2).map(|t| t.kind)) {
        (_, Some(TypeKind::Decimal { scale, .. })) => scale.min(6),
        (_, Some(kind)) if kind.is_integer() => 0,
        _ => 6,
    }
}

/// A constant text shows its own digits behind the point; another one may have any.
fn shown_fsp(arg: &Expr, of: &ColumnType) -> u8 {
    match arg {
        Expr::Literal(Value::Text(text, _)) => {
            let behind = text.split_once('.').map_or("", |(_, behind)| behind);
            behind.bytes().take_while(u8::is_ascii_digit).take(6).count() as u8
        }
        _ if of.kind.is_text() => 6,
        _ => of.kind.fsp(),
    }
}

/// `INTERVAL 1.5 SECOND` adds a fraction.
fn amount_fsp(args: &[Expr], base: u8) -> u8 {
    match args.get(1) {
        Some(Expr::Literal(Value::Decimal(amount))) => base.max(amount.shown_scale().min(6)),
        _ => base,
    }
}

/// True of functions of texts that give whole numbers.
fn gives_number(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::IsNull
            | F::Length
            | F::BitLength
            | F::CharLength
            | F::Ascii
            | F::Ord
            | F::Strcmp
            | F::Field
            | F::FindInSet
            | F::Locate
            | F::IsIpv4
            | F::IsIpv6
            | F::IsIpv4Compat
            | F::IsIpv4Mapped
            | F::IsUuid
            | F::Coercibility
            | F::RegexpLike
            | F::RegexpInstr
            | F::UncompressedLength
            | F::Instr
    )
}

fn string_type(function: Function, args: &[Expr], types: &[ColumnType]) -> ColumnType {
    use Function as F;
    let widths = || types.iter().map(|t| usize::from(chars_of(t)));
    let first = || widths().next().unwrap_or(0);
    if let Some(fixed) = coded_type(function, first()) {
        return fixed;
    }
    let chars = match function {
        _ if gives_number(function) => return bigint(),
        F::RegexpReplace => 16_384,
        F::RegexpSubstr => {
            let (args, types) =
                (args.get(..1).unwrap_or_default(), types.get(..1).unwrap_or_default());
            return string_type(F::Lower, args, types);
        }
        F::Compress | F::Uncompress | F::AesDecrypt => {
            return ColumnType::new(TypeKind::LongBlob);
        }
        F::AesEncrypt => {
            let bytes = u16::try_from(4 * first() / 16 * 16 + 16).unwrap_or(u16::MAX);
            return ColumnType::new(TypeKind::VarBinary { bytes });
        }
        F::Soundex => first().max(4),
        F::MakeSet => widths().skip(1).sum::<usize>() + types.len().saturating_sub(2),
        F::ExportSet => {
            let most = widths().skip(1).take(2).max().unwrap_or(0);
            64 * most + 63 * widths().nth(3).unwrap_or(1)
        }
        F::Unhex => {
            return ColumnType::new(TypeKind::VarBinary { bytes: (first() / 2 + 1) as u16 });
        }
        F::Char => {
            let bytes = (types.len() * 4).min(16_383) as u16;
            return ColumnType::new(TypeKind::VarBinary { bytes });
        }
        F::Hex => {
            return text_type(match types.first() {
                Some(of) if of.kind.is_text() => first() * 8,
                Some(of) if of.kind.is_bytes() => first() * 2,
                _ => 16,
            });
        }
        F::Bin | F::Oct | F::Conv => return text_type(65),
        F::Format => return text_type(first() + 40),
        F::ConcatWs => widths().skip(1).sum::<usize>() + first() * types.len().saturating_sub(2),
        F::Concat | F::Insert | F::Replace => widths().sum(),
        F::Quote => first() * 2 + 2,
        F::Left | F::Right | F::Substring => part_chars(function, args, first()),
        F::Lpad | F::Rpad => constant(args.get(1)).map_or(LONG_CHARS, chars_of_number),
        F::Space => constant(args.first()).map_or(LONG_CHARS, chars_of_number),
        F::Repeat => constant(args.get(1))
            .map_or(LONG_CHARS, |times| first().saturating_mul(chars_of_number(times))),
        F::Elt => widths().skip(1).max().unwrap_or(0),
        _ => first(),
    };
    // NULL has no type of its own.
    let is_null = |arg: &Expr| matches!(arg, Expr::Literal(Value::Null));
    let typed = || types.iter().zip(args).filter(|(_, arg)| !is_null(arg)).map(|(of, _)| of);
    if typed().any(|t| t.kind.is_bytes()) {
        return ColumnType::new(match u16::try_from(chars) {
            Ok(bytes) => TypeKind::VarBinary { bytes },
            Err(_) => TypeKind::LongBlob,
        });
    }
    let collations = types.iter().filter(|t| t.kind.is_text()).map(|t| t.collation);
    let collation = collations.reduce(crate::compare::common_collation);
    text_type(chars).collated(collation.unwrap_or(Collation::default()))
}

/// More characters than a VARCHAR has.
const LONG_CHARS: usize = 16_384;

/// A constant whole number.
fn constant(arg: Option<&Expr>) -> Option<i64> {
    match arg? {
        Expr::Literal(Value::Int(value)) => Some(*value),
        _ => None,
    }
}

fn chars_of_number(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0).min(LONG_CHARS)
}

/// The characters of a part of a text at most.
fn part_chars(function: Function, args: &[Expr], whole: usize) -> usize {
    let rest = match (function, constant(args.get(1))) {
        (_, None) => whole,
        (Function::Substring, Some(from @ 1..)) => {
            whole.saturating_sub(usize::try_from(from - 1).unwrap_or(usize::MAX))
        }
        (Function::Substring, Some(from)) => {
            whole.min(usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX))
        }
        (_, Some(count)) => whole.min(chars_of_number(count)),
    };
    match (function, constant(args.get(2))) {
        (Function::Substring, Some(count)) => rest.min(chars_of_number(count)),
        _ => rest,
    }
}

/// The types of texts in some code, by the characters of the first argument.
fn coded_type(function: Function, first: usize) -> Option<ColumnType> {
    use Function as F;
    Some(match function {
        F::InetAton => bigint().unsigned(),
        F::Inet6Aton | F::UuidToBin => ColumnType::new(TypeKind::VarBinary { bytes: 16 }),
        F::FromBase64 => {
            let bytes = u16::try_from(first / 4 * 3 + 3).unwrap_or(u16::MAX);
            ColumnType::new(TypeKind::VarBinary { bytes })
        }
        F::InetNtoa => text_type(31),
        F::Inet6Ntoa => text_type(39),
        F::BinToUuid | F::Uuid => text_type(36),
        F::RandomBytes => ColumnType::new(TypeKind::VarBinary { bytes: 1_024 }),
        F::Md5 => text_type(32),
        F::Sha1 => text_type(40),
        F::Sha2 => text_type(128),
        F::ToBase64 => {
            let chars = first.div_ceil(3) * 4;
            text_type(chars + chars / 76)
        }
        F::Charset | F::CollationOf => text_type(64),
        F::FormatBytes | F::FormatPicoTime => text_type(11),
        _ => return None,
    })
}
