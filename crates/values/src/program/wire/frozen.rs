//! The numbers that stand for the variants of what programs are made of. Nodes of two versions talk to
//! each other, so a number never changes its meaning: new variants come at the end, and none goes.

use super::Node;
use crate::{
    BinaryOp as B, Collation as C, ColumnType, Comparator as By, Date, DateTime, Decimal,
    Function as F, IntervalUnit as U, Time, TypeKind as T, UnaryOp, Value as V,
};
use alloc::{string::String, vec::Vec};
use core::fmt::Debug;
use serde::{Serialize, de::DeserializeOwned};

fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, Vec::new()).unwrap()
}

/// Each value's number is its place in the list, and the list has every variant.
fn numbered<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: &[T]) {
    for (number, value) in values.iter().enumerate() {
        let found = bytes(value);
        assert!(found.starts_with(&bytes(&(number as u32))), "{value:?} has another number");
        assert_eq!(postcard::from_bytes::<T>(&found).as_ref(), Ok(value));
    }
    let mut next = bytes(&(values.len() as u32));
    next.extend([0; 16]);
    let unknown = postcard::take_from_bytes::<T>(&next).is_err();
    assert!(unknown, "a variant is missing after {:?}", values.last());
}

#[test]
fn operators_have_their_numbers() {
    numbered(&[UnaryOp::Minus, UnaryOp::Not, UnaryOp::BitNot]);
    numbered(&[
        B::Add,
        B::Subtract,
        B::Multiply,
        B::Divide,
        B::IntDivide,
        B::Modulo,
        B::Equal,
        B::NullSafeEqual,
        B::NotEqual,
        B::Less,
        B::LessOrEqual,
        B::Greater,
        B::GreaterOrEqual,
        B::And,
        B::Or,
        B::Xor,
        B::BitAnd,
        B::BitOr,
        B::BitXor,
        B::ShiftLeft,
        B::ShiftRight,
    ]);
}

#[test]
fn comparators_have_their_numbers() {
    numbered(&[
        By::ByValues,
        By::Binary,
        By::Text(C::Utf8mb4Bin),
        By::Integer,
        By::Decimal,
        By::Double,
        By::Moment,
        By::Time,
    ]);
    assert_eq!(bytes(&By::Text(C::Utf8mb4_0900AiCi)), [2, 3]);
}

const FUNCTIONS: &[F] = &[
    F::Abs,
    F::Ceil,
    F::Floor,
    F::Round,
    F::Truncate,
    F::Mod,
    F::Sign,
    F::Pow,
    F::Sqrt,
    F::Exp,
    F::Ln,
    F::Log,
    F::Log2,
    F::Log10,
    F::Pi,
    F::Sin,
    F::Cos,
    F::Tan,
    F::Asin,
    F::Acos,
    F::Atan,
    F::Degrees,
    F::Radians,
    F::BitCount,
    F::Crc32,
    F::Greatest,
    F::Least,
    F::If,
    F::IfNull,
    F::NullIf,
    F::Coalesce,
    F::IsNull,
    F::Concat,
    F::ConcatWs,
    F::Length,
    F::BitLength,
    F::CharLength,
    F::Lower,
    F::Upper,
    F::Left,
    F::Right,
    F::Substring,
    F::SubstringIndex,
    F::Trim,
    F::LTrim,
    F::RTrim,
    F::Replace,
    F::Insert,
    F::Reverse,
    F::Repeat,
    F::Lpad,
    F::Rpad,
    F::Locate,
    F::Instr,
    F::Hex,
    F::Unhex,
    F::Bin,
    F::Oct,
    F::Conv,
    F::Char,
    F::Ord,
    F::Quote,
    F::Format,
    F::Strcmp,
    F::Field,
    F::Elt,
    F::FindInSet,
    F::Ascii,
    F::Space,
    F::Date,
    F::Time,
    F::Timestamp,
    F::Year,
    F::Quarter,
    F::Month,
    F::MonthName,
    F::Day,
    F::DayName,
    F::Hour,
    F::Minute,
    F::Second,
    F::Microsecond,
    F::DayOfWeek,
    F::Weekday,
    F::DayOfYear,
    F::Week,
    F::YearWeek,
    F::LastDay,
    F::ToDays,
    F::FromDays,
    F::MakeDate,
    F::TimeToSec,
    F::SecToTime,
    F::DateDiff,
    F::TimeDiff,
    F::DateAdd { unit: U::Day },
    F::DateSub { unit: U::Day },
    F::TimestampDiff { unit: U::Day },
    F::Extract { unit: U::Day },
    F::DateFormat,
    F::UnixTimestamp,
    F::FromUnixtime,
    F::StrToDate,
    F::AddTime,
    F::SubTime,
    F::MakeTime,
    F::TimeFormat,
    F::PeriodAdd,
    F::PeriodDiff,
    F::WeekOfYear,
    F::ToSeconds,
    F::ConvertTz,
    F::InetAton,
    F::InetNtoa,
    F::Inet6Aton,
    F::Inet6Ntoa,
    F::IsIpv4,
    F::IsIpv6,
    F::IsIpv4Compat,
    F::IsIpv4Mapped,
    F::IsUuid,
    F::UuidToBin,
    F::BinToUuid,
    F::Md5,
    F::Sha1,
    F::Sha2,
    F::ToBase64,
    F::FromBase64,
    F::Soundex,
    F::Interval,
    F::MakeSet,
    F::ExportSet,
    F::Charset,
    F::CollationOf,
    F::Coercibility,
    F::FormatBytes,
    F::FormatPicoTime,
    F::GetFormat,
    F::Cot,
    F::Rand,
    F::Random,
    F::Uuid,
    F::RandomBytes,
    F::RegexpLike,
    F::RegexpInstr,
    F::RegexpReplace,
    F::RegexpSubstr,
    F::Compress,
    F::Uncompress,
    F::UncompressedLength,
    F::AesEncrypt,
    F::AesDecrypt,
    F::SetVariable,
    F::GetVariable,
];

#[test]
fn functions_have_their_numbers() {
    numbered(FUNCTIONS);
}

#[test]
fn units_have_their_numbers() {
    numbered(&[
        U::Microsecond,
        U::Second,
        U::Minute,
        U::Hour,
        U::Day,
        U::Week,
        U::Month,
        U::Quarter,
        U::Year,
        U::SecondMicrosecond,
        U::MinuteMicrosecond,
        U::MinuteSecond,
        U::HourMicrosecond,
        U::HourSecond,
        U::HourMinute,
        U::DayMicrosecond,
        U::DaySecond,
        U::DayMinute,
        U::DayHour,
        U::YearMonth,
    ]);
}

#[test]
fn types_have_their_numbers() {
    numbered(&[C::Binary, C::Utf8mb4Bin, C::Utf8mb4GeneralCi, C::Utf8mb4_0900AiCi]);
    numbered(&[
        T::TinyInt,
        T::SmallInt,
        T::MediumInt,
        T::Int,
        T::BigInt,
        T::Float,
        T::Double,
        T::Decimal { precision: 1, scale: 0 },
        T::Char { chars: 1 },
        T::VarChar { chars: 1 },
        T::Binary { bytes: 1 },
        T::VarBinary { bytes: 1 },
        T::TinyText,
        T::Text,
        T::MediumText,
        T::LongText,
        T::TinyBlob,
        T::Blob,
        T::MediumBlob,
        T::LongBlob,
        T::Date,
        T::Time { fsp: 1 },
        T::DateTime { fsp: 1 },
        T::Timestamp { fsp: 1 },
        T::Year,
        T::Enum,
        T::Set,
        T::Bit { bits: 1 },
        T::Json,
    ]);
    let decimal = ColumnType::new(T::Decimal { precision: 10, scale: 2 }).unsigned().not_null();
    assert_eq!(bytes(&decimal), [7, 10, 2, 1, 0, 0, 0]);
    let text = ColumnType::new(T::VarChar { chars: 300 });
    assert_eq!(bytes(&text), [9, 0xac, 2, 0, 1, 3, 0]);
    // What has members lists them at the end.
    let members = Vec::from(["a", "bc"].map(String::from));
    let one = ColumnType::new(T::Enum).collated(C::Utf8mb4Bin).with_members(members.clone());
    let golden = [25, 0, 1, 1, 0, 2, 1, b'a', 2, b'b', b'c'];
    assert_eq!(bytes(&one), golden);
    assert_eq!(postcard::from_bytes(&golden), Ok(one));
    let some = ColumnType::new(T::Set).not_null().with_members(members);
    assert_eq!(bytes(&some), [26, 0, 0, 0, 0, 2, 1, b'a', 2, b'b', b'c']);
    assert_eq!(bytes(&ColumnType::new(T::Bit { bits: 7 })), [27, 7, 0, 1, 0, 0]);
    assert_eq!(bytes(&ColumnType::new(T::Json)), [28, 0, 1, 0, 0]);
    assert!(postcard::from_bytes::<ColumnType>(&golden[..8]).is_err(), "cut off");
    let mut many = [25, 0, 1, 1, 0, 0x80, 0x80, 4].to_vec();
    many.resize(many.len() + 65_536, 0);
    assert!(postcard::from_bytes::<ColumnType>(&many).is_err(), "too many members");
}

/// Types that have a number only are no types of columns, nor of CAST.
#[test]
fn types_without_values_are_refused() {
    use crate::{Expr, Program};
    for kind in [T::Enum, T::Set, T::Bit { bits: 8 }, T::Json] {
        assert!(!kind.is_supported() && !kind.is_valid());
        let arg = alloc::boxed::Box::new(Expr::Literal(V::Int(1)));
        let filter = Some(Expr::Cast { arg, to: ColumnType::new(kind) });
        let program = Program { filter, ..Program::default() };
        assert!(Program::decode(&program.encode(), &[]).is_err(), "{kind:?}");
    }
}

#[test]
fn values_have_their_numbers() {
    let date = Date { year: 2024, month: 1, day: 31 };
    numbered(&[
        V::Null,
        V::Int(-1),
        V::UInt(1),
        V::Float(1.0),
        V::Double(1.0),
        V::Decimal(Decimal::new(15, 1)),
        V::Text(String::from("a"), C::Binary),
        V::Bytes(Vec::from([1])),
        V::Date(date),
        V::Time(Time::from_micros(1, 6)),
        V::DateTime(DateTime { hour: 1, ..date.at_midnight() }),
    ]);
    assert_eq!(bytes(&V::Int(-2)), [1, 3]);
    assert_eq!(bytes(&V::Decimal(Decimal::new(-150, 2))), [5, 2, 0xff, 0x6a, 2, 2]);
    assert_eq!(bytes(&V::text("ab")), [6, 2, b'a', b'b', 3]);
    assert_eq!(bytes(&V::Date(date)), [8, 0xe8, 0x0f, 1, 31]);
}

#[test]
fn nodes_have_their_numbers() {
    let nodes: [(Node, &[u8]); 13] = [
        (Node::Literal(V::Null), &[0, 0]),
        (Node::Column(300), &[1, 0xac, 2]),
        (Node::Unary(UnaryOp::Not), &[2, 1]),
        (Node::Binary(B::Equal), &[3, 6]),
        (Node::IsNull { negated: true }, &[4, 1]),
        (Node::Between { negated: false }, &[5, 0]),
        (Node::In { count: 3, negated: true }, &[6, 3, 1]),
        (Node::Like { escape: Some('!'), negated: false }, &[7, 1, 1, b'!', 0]),
        (Node::Case { operand: true, branches: 2, otherwise: false }, &[8, 1, 2, 0]),
        (Node::Cast(ColumnType::new(T::Date)), &[9, 20, 0, 1, 0, 0]),
        (Node::Call { function: F::Ceil, count: 1 }, &[10, 1, 1]),
        (Node::Collate(C::Utf8mb4Bin), &[11, 1]),
        (Node::Compare { op: B::Less, by: By::Text(C::Utf8mb4GeneralCi) }, &[12, 9, 2, 2]),
    ];
    for (node, expected) in &nodes {
        assert_eq!(bytes(node), *expected);
    }
    let next = [nodes.len() as u8, 0, 0, 0, 0, 0, 0, 0];
    assert!(postcard::take_from_bytes::<Node>(&next).is_err(), "a node is missing");
}

/// A whole program: `c0 < 'ab' AND c1 IN (1, 2)`, `c1 = c1 + 1.5`, and one column of the answer.
#[test]
fn a_program_has_its_bytes() {
    use crate::{Expr, Program};
    let boxed = |expr: Expr| alloc::boxed::Box::new(expr);
    let text = Expr::Compare {
        op: B::Less,
        by: By::Text(C::Utf8mb4Bin),
        left: boxed(Expr::Column(0)),
        right: boxed(Expr::Literal(V::text("ab"))),
    };
    let list = [V::Int(1), V::Int(2)].map(Expr::Literal).into_iter().collect();
    let one_of = Expr::In { arg: boxed(Expr::Column(1)), list, negated: false };
    let sum = Expr::Binary {
        op: B::Add,
        left: boxed(Expr::Column(1)),
        right: boxed(Expr::Literal(V::Decimal(Decimal::new(15, 1)))),
    };
    let program = Program {
        filter: Some(Expr::Binary { op: B::And, left: boxed(text), right: boxed(one_of) }),
        assignments: Vec::from([(1, sum)]),
        projection: Some(Vec::from([1])),
        strict: true,
    };
    let golden = [
        // The encoding's number; a filter of eight nodes: column 0, 'ab', compared by utf8mb4_bin.
        [1, 1, 8].as_slice(),
        &[1, 0],
        &[0, 6, 2, b'a', b'b', 3],
        &[12, 9, 2, 1],
        // Column 1, 1, 2: one of two; and both.
        &[1, 1],
        &[0, 1, 2],
        &[0, 1, 4],
        &[6, 2, 0],
        &[3, 13],
        // One assignment, to column 1: three nodes.
        &[1, 1, 3],
        &[1, 1],
        &[0, 5, 1, 15, 1, 1],
        &[3, 0],
        // One column of the answer, and strict.
        &[1, 1, 1],
        &[1],
    ]
    .concat();
    assert_eq!(program.encode(), golden);
    let columns = [ColumnType::new(T::VarChar { chars: 9 }), ColumnType::new(T::BigInt)];
    assert_eq!(Program::decode(&golden, &columns), Ok(program));
}
