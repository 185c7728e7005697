//! Names, argument counts and families of the functions, and the units of intervals.

use super::Function;
use serde::{Deserialize, Serialize};

/// What belongs to a function: name, other names, fewest and most arguments, family.
struct Entry {
    function: Function,
    name: &'static str,
    aliases: &'static [&'static str],
    arity: (usize, usize),
    family: Family,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Math,
    Text,
    Date,
}

const MANY: usize = usize::MAX;

const fn entry(
    function: Function,
    name: &'static str,
    aliases: &'static [&'static str],
    arity: (usize, usize),
    family: Family,
) -> Entry {
    Entry { function, name, aliases, arity, family }
}

#[rustfmt::skip]
static ENTRIES: &[Entry] = &[
    entry(Function::Abs, "ABS", &[], (1, 1), Family::Math),
    entry(Function::Ceil, "CEIL", &["CEILING"], (1, 1), Family::Math),
    entry(Function::Floor, "FLOOR", &[], (1, 1), Family::Math),
    entry(Function::Round, "ROUND", &[], (1, 2), Family::Math),
    entry(Function::Truncate, "TRUNCATE", &[], (2, 2), Family::Math),
    entry(Function::Mod, "MOD", &[], (2, 2), Family::Math),
    entry(Function::Sign, "SIGN", &[], (1, 1), Family::Math),
    entry(Function::Pow, "POW", &["POWER"], (2, 2), Family::Math),
    entry(Function::Sqrt, "SQRT", &[], (1, 1), Family::Math),
    entry(Function::Exp, "EXP", &[], (1, 1), Family::Math),
    entry(Function::Ln, "LN", &[], (1, 1), Family::Math),
    entry(Function::Log, "LOG", &[], (1, 2), Family::Math),
    entry(Function::Log2, "LOG2", &[], (1, 1), Family::Math),
    entry(Function::Log10, "LOG10", &[], (1, 1), Family::Math),
    entry(Function::Pi, "PI", &[], (0, 0), Family::Math),
    entry(Function::Sin, "SIN", &[], (1, 1), Family::Math),
    entry(Function::Cos, "COS", &[], (1, 1), Family::Math),
    entry(Function::Tan, "TAN", &[], (1, 1), Family::Math),
    entry(Function::Asin, "ASIN", &[], (1, 1), Family::Math),
    entry(Function::Acos, "ACOS", &[], (1, 1), Family::Math),
    entry(Function::Atan, "ATAN", &["ATAN2"], (1, 2), Family::Math),
    entry(Function::Degrees, "DEGREES", &[], (1, 1), Family::Math),
    entry(Function::Radians, "RADIANS", &[], (1, 1), Family::Math),
    entry(Function::BitCount, "BIT_COUNT", &[], (1, 1), Family::Math),
    entry(Function::Crc32, "CRC32", &[], (1, 1), Family::Math),
    entry(Function::Greatest, "GREATEST", &[], (2, MANY), Family::Math),
    entry(Function::Least, "LEAST", &[], (2, MANY), Family::Math),
    entry(Function::If, "IF", &[], (3, 3), Family::Text),
    entry(Function::IfNull, "IFNULL", &[], (2, 2), Family::Text),
    entry(Function::NullIf, "NULLIF", &[], (2, 2), Family::Text),
    entry(Function::Coalesce, "COALESCE", &[], (1, MANY), Family::Text),
    entry(Function::IsNull, "ISNULL", &[], (1, 1), Family::Text),
    entry(Function::Concat, "CONCAT", &[], (1, MANY), Family::Text),
    entry(Function::ConcatWs, "CONCAT_WS", &[], (2, MANY), Family::Text),
    entry(Function::Length, "LENGTH", &["OCTET_LENGTH"], (1, 1), Family::Text),
    entry(Function::BitLength, "BIT_LENGTH", &[], (1, 1), Family::Text),
    entry(Function::CharLength, "CHAR_LENGTH", &["CHARACTER_LENGTH"], (1, 1), Family::Text),
    entry(Function::Lower, "LOWER", &["LCASE"], (1, 1), Family::Text),
    entry(Function::Upper, "UPPER", &["UCASE"], (1, 1), Family::Text),
    entry(Function::Left, "LEFT", &[], (2, 2), Family::Text),
    entry(Function::Right, "RIGHT", &[], (2, 2), Family::Text),
    entry(Function::Substring, "SUBSTRING", &["SUBSTR", "MID"], (2, 3), Family::Text),
    entry(Function::SubstringIndex, "SUBSTRING_INDEX", &[], (3, 3), Family::Text),
    entry(Function::Trim, "TRIM", &[], (1, 2), Family::Text),
    entry(Function::LTrim, "LTRIM", &[], (1, 2), Family::Text),
    entry(Function::RTrim, "RTRIM", &[], (1, 2), Family::Text),
    entry(Function::Replace, "REPLACE", &[], (3, 3), Family::Text),
    entry(Function::Insert, "INSERT", &[], (4, 4), Family::Text),
    entry(Function::Reverse, "REVERSE", &[], (1, 1), Family::Text),
    entry(Function::Repeat, "REPEAT", &[], (2, 2), Family::Text),
    entry(Function::Lpad, "LPAD", &[], (3, 3), Family::Text),
    entry(Function::Rpad, "RPAD", &[], (3, 3), Family::Text),
    entry(Function::Locate, "LOCATE", &["POSITION"], (2, 3), Family::Text),
    entry(Function::Instr, "INSTR", &[], (2, 2), Family::Text),
    entry(Function::Hex, "HEX", &[], (1, 1), Family::Text),
    entry(Function::Unhex, "UNHEX", &[], (1, 1), Family::Text),
    entry(Function::Bin, "BIN", &[], (1, 1), Family::Text),
    entry(Function::Oct, "OCT", &[], (1, 1), Family::Text),
    entry(Function::Conv, "CONV", &[], (3, 3), Family::Text),
    entry(Function::Char, "CHAR", &[], (1, MANY), Family::Text),
    entry(Function::Ord, "ORD", &[], (1, 1), Family::Text),
    entry(Function::Quote, "QUOTE", &[], (1, 1), Family::Text),
    entry(Function::Format, "FORMAT", &[], (2, 3), Family::Text),
    entry(Function::Strcmp, "STRCMP", &[], (2, 2), Family::Text),
    entry(Function::Field, "FIELD", &[], (2, MANY), Family::Text),
    entry(Function::Elt, "ELT", &[], (2, MANY), Family::Text),
    entry(Function::FindInSet, "FIND_IN_SET", &[], (2, 2), Family::Text),
    entry(Function::Ascii, "ASCII", &[], (1, 1), Family::Text),
    entry(Function::Space, "SPACE", &[], (1, 1), Family::Text),
    entry(Function::Date, "DATE", &[], (1, 1), Family::Date),
    entry(Function::Time, "TIME", &[], (1, 1), Family::Date),
    entry(Function::Timestamp, "TIMESTAMP", &[], (1, 2), Family::Date),
    entry(Function::Year, "YEAR", &[], (1, 1), Family::Date),
    entry(Function::Quarter, "QUARTER", &[], (1, 1), Family::Date),
    entry(Function::Month, "MONTH", &[], (1, 1), Family::Date),
    entry(Function::MonthName, "MONTHNAME", &[], (1, 1), Family::Date),
    entry(Function::Day, "DAYOFMONTH", &["DAY"], (1, 1), Family::Date),
    entry(Function::DayName, "DAYNAME", &[], (1, 1), Family::Date),
    entry(Function::Hour, "HOUR", &[], (1, 1), Family::Date),
    entry(Function::Minute, "MINUTE", &[], (1, 1), Family::Date),
    entry(Function::Second, "SECOND", &[], (1, 1), Family::Date),
    entry(Function::Microsecond, "MICROSECOND", &[], (1, 1), Family::Date),
    entry(Function::DayOfWeek, "DAYOFWEEK", &[], (1, 1), Family::Date),
    entry(Function::Weekday, "WEEKDAY", &[], (1, 1), Family::Date),
    entry(Function::DayOfYear, "DAYOFYEAR", &[], (1, 1), Family::Date),
    entry(Function::Week, "WEEK", &[], (1, 2), Family::Date),
    entry(Function::YearWeek, "YEARWEEK", &[], (1, 2), Family::Date),
    entry(Function::LastDay, "LAST_DAY", &[], (1, 1), Family::Date),
    entry(Function::ToDays, "TO_DAYS", &[], (1, 1), Family::Date),
    entry(Function::FromDays, "FROM_DAYS", &[], (1, 1), Family::Date),
    entry(Function::MakeDate, "MAKEDATE", &[], (2, 2), Family::Date),
    entry(Function::TimeToSec, "TIME_TO_SEC", &[], (1, 1), Family::Date),
    entry(Function::SecToTime, "SEC_TO_TIME", &[], (1, 1), Family::Date),
    entry(Function::DateDiff, "DATEDIFF", &[], (2, 2), Family::Date),
    entry(Function::TimeDiff, "TIMEDIFF", &[], (2, 2), Family::Date),
    entry(Function::DateFormat, "DATE_FORMAT", &[], (2, 2), Family::Date),
    entry(Function::UnixTimestamp, "UNIX_TIMESTAMP", &[], (1, 1), Family::Date),
    entry(Function::FromUnixtime, "FROM_UNIXTIME", &[], (1, 2), Family::Date),
    entry(Function::StrToDate, "STR_TO_DATE", &[], (2, 2), Family::Date),
    entry(Function::AddTime, "ADDTIME", &[], (2, 2), Family::Date),
    entry(Function::SubTime, "SUBTIME", &[], (2, 2), Family::Date),
    entry(Function::MakeTime, "MAKETIME", &[], (3, 3), Family::Date),
    entry(Function::TimeFormat, "TIME_FORMAT", &[], (2, 2), Family::Date),
    entry(Function::PeriodAdd, "PERIOD_ADD", &[], (2, 2), Family::Date),
    entry(Function::PeriodDiff, "PERIOD_DIFF", &[], (2, 2), Family::Date),
    entry(Function::WeekOfYear, "WEEKOFYEAR", &[], (1, 1), Family::Date),
    entry(Function::ToSeconds, "TO_SECONDS", &[], (1, 1), Family::Date),
    entry(Function::ConvertTz, "CONVERT_TZ", &[], (3, 3), Family::Date),
    entry(Function::InetAton, "INET_ATON", &[], (1, 1), Family::Text),
    entry(Function::InetNtoa, "INET_NTOA", &[], (1, 1), Family::Text),
    entry(Function::Inet6Aton, "INET6_ATON", &[], (1, 1), Family::Text),
    entry(Function::Inet6Ntoa, "INET6_NTOA", &[], (1, 1), Family::Text),
    entry(Function::IsIpv4, "IS_IPV4", &[], (1, 1), Family::Text),
    entry(Function::IsIpv6, "IS_IPV6", &[], (1, 1), Family::Text),
    entry(Function::IsIpv4Compat, "IS_IPV4_COMPAT", &[], (1, 1), Family::Text),
    entry(Function::IsIpv4Mapped, "IS_IPV4_MAPPED", &[], (1, 1), Family::Text),
    entry(Function::IsUuid, "IS_UUID", &[], (1, 1), Family::Text),
    entry(Function::UuidToBin, "UUID_TO_BIN", &[], (1, 2), Family::Text),
    entry(Function::BinToUuid, "BIN_TO_UUID", &[], (1, 2), Family::Text),
    entry(Function::Md5, "MD5", &[], (1, 1), Family::Text),
    entry(Function::Sha1, "SHA1", &["SHA"], (1, 1), Family::Text),
    entry(Function::Sha2, "SHA2", &[], (2, 2), Family::Text),
    entry(Function::ToBase64, "TO_BASE64", &[], (1, 1), Family::Text),
    entry(Function::FromBase64, "FROM_BASE64", &[], (1, 1), Family::Text),
    entry(Function::Soundex, "SOUNDEX", &[], (1, 1), Family::Text),
    entry(Function::Interval, "INTERVAL", &[], (2, MANY), Family::Math),
    entry(Function::MakeSet, "MAKE_SET", &[], (2, MANY), Family::Text),
    entry(Function::ExportSet, "EXPORT_SET", &[], (3, 5), Family::Text),
    entry(Function::Charset, "CHARSET", &[], (1, 1), Family::Text),
    entry(Function::CollationOf, "COLLATION", &[], (1, 1), Family::Text),
    entry(Function::Coercibility, "COERCIBILITY", &[], (1, 1), Family::Text),
    entry(Function::FormatBytes, "FORMAT_BYTES", &[], (1, 1), Family::Text),
    entry(Function::FormatPicoTime, "FORMAT_PICO_TIME", &[], (1, 1), Family::Text),
    entry(Function::GetFormat, "GET_FORMAT", &[], (2, 2), Family::Date),
    entry(Function::Cot, "COT", &[], (1, 1), Family::Math),
    entry(Function::Rand, "RAND", &[], (2, 2), Family::Math),
    entry(Function::Random, "RAND", &[], (2, 2), Family::Math),
    entry(Function::Uuid, "UUID", &[], (3, 3), Family::Text),
    entry(Function::RandomBytes, "RANDOM_BYTES", &[], (3, 3), Family::Text),
    entry(Function::RegexpLike, "REGEXP_LIKE", &[], (2, 3), Family::Text),
    entry(Function::RegexpInstr, "REGEXP_INSTR", &[], (2, 6), Family::Text),
    entry(Function::RegexpReplace, "REGEXP_REPLACE", &[], (3, 6), Family::Text),
    entry(Function::RegexpSubstr, "REGEXP_SUBSTR", &[], (2, 5), Family::Text),
    entry(Function::Compress, "COMPRESS", &[], (1, 1), Family::Text),
    entry(Function::Uncompress, "UNCOMPRESS", &[], (1, 1), Family::Text),
    entry(Function::UncompressedLength, "UNCOMPRESSED_LENGTH", &[], (1, 1), Family::Text),
    entry(Function::AesEncrypt, "AES_ENCRYPT", &[], (2, 2), Family::Text),
    entry(Function::AesDecrypt, "AES_DECRYPT", &[], (2, 2), Family::Text),
    entry(Function::SetVariable, ":=", &[], (2, 2), Family::Math),
    entry(Function::GetVariable, "@", &[], (3, 3), Family::Math),
];

impl Function {
    /// The function of this name, in any case. Functions of intervals have a syntax of their own
    /// and are not found by name.
    pub fn from_name(name: &str) -> Option<Self> {
        let same = |other: &&str| other.eq_ignore_ascii_case(name);
        let found = ENTRIES.iter().find(|e| same(&e.name) || e.aliases.iter().any(same));
        // Those of variables have a syntax of their own.
        found.map(|e| e.function).filter(|function| !function.is_variable())
    }

    /// Every function, with one unit for those of intervals.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let units = UNITS.iter().flat_map(|(unit, _)| {
            let unit = *unit;
            [
                Self::DateAdd { unit },
                Self::DateSub { unit },
                Self::TimestampDiff { unit },
                Self::Extract { unit },
            ]
        });
        ENTRIES.iter().map(|e| e.function).chain(units)
    }

    fn entry(self) -> Option<&'static Entry> {
        ENTRIES.iter().find(|e| e.function == self)
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::DateAdd { .. } => "DATE_ADD",
            Self::DateSub { .. } => "DATE_SUB",
            Self::TimestampDiff { .. } => "TIMESTAMPDIFF",
            Self::Extract { .. } => "EXTRACT",
            _ => self.entry().map_or("", |e| e.name),
        }
    }

    /// The fewest and the most arguments that it takes.
    pub fn arity(self) -> (usize, usize) {
        match self {
            Self::Extract { .. } => (1, 1),
            _ => self.entry().map_or((2, 2), |e| e.arity),
        }
    }

    /// Whether its value is another one each time, with the same arguments.
    pub fn is_volatile(self) -> bool {
        self.is_random() || self.is_variable()
    }

    /// Whether it reads or assigns a variable while the statement runs.
    pub fn is_variable(self) -> bool {
        matches!(self, Self::SetVariable | Self::GetVariable)
    }

    /// Whether it needs what only the SQL layer keeps between rows: data nodes do not compute it.
    pub fn is_local(self) -> bool {
        self.is_volatile() || self.is_regexp()
    }

    /// Whether it matches a text with a pattern.
    pub(crate) fn is_regexp(self) -> bool {
        matches!(
            self,
            Self::RegexpLike | Self::RegexpInstr | Self::RegexpReplace | Self::RegexpSubstr
        )
    }

    pub(super) fn is_random(self) -> bool {
        matches!(self, Self::Rand | Self::Random | Self::Uuid | Self::RandomBytes)
    }

    pub(super) fn is_math(self) -> bool {
        self.entry().is_some_and(|e| e.family == Family::Math)
    }

    /// Whether a number among its arguments counts as the text that it is shown as.
    pub(crate) fn takes_texts(self) -> bool {
        use Function::*;
        let numbers = matches!(
            self,
            IsNull
                | Hex
                | Bin
                | Oct
                | Conv
                | Char
                | Format
                | Space
                | Field
                | Elt
                | NullIf
                | Charset
                | CollationOf
                | FormatBytes
                | FormatPicoTime
                | Uuid
                | RandomBytes
                | RegexpInstr
                | RegexpReplace
                | RegexpSubstr
        );
        !numbers && self.entry().is_some_and(|e| e.family == Family::Text)
    }

    pub(super) fn is_date(self) -> bool {
        self.entry().is_none_or(|e| e.family == Family::Date)
    }
}

/// The unit of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntervalUnit {
    /// `MICROSECOND`.
    Microsecond,
    /// `SECOND`.
    Second,
    /// `MINUTE`.
    Minute,
    /// `HOUR`.
    Hour,
    /// `DAY`.
    Day,
    /// `WEEK`.
    Week,
    /// `MONTH`.
    Month,
    /// `QUARTER`.
    Quarter,
    /// `YEAR`.
    Year,
    /// `SECOND_MICROSECOND`.
    SecondMicrosecond,
    /// `MINUTE_MICROSECOND`.
    MinuteMicrosecond,
    /// `MINUTE_SECOND`.
    MinuteSecond,
    /// `HOUR_MICROSECOND`.
    HourMicrosecond,
    /// `HOUR_SECOND`.
    HourSecond,
    /// `HOUR_MINUTE`.
    HourMinute,
    /// `DAY_MICROSECOND`.
    DayMicrosecond,
    /// `DAY_SECOND`.
    DaySecond,
    /// `DAY_MINUTE`.
    DayMinute,
    /// `DAY_HOUR`.
    DayHour,
    /// `YEAR_MONTH`.
    YearMonth,
}

static UNITS: &[(IntervalUnit, &str)] = &[
    (IntervalUnit::Microsecond, "MICROSECOND"),
    (IntervalUnit::Second, "SECOND"),
    (IntervalUnit::Minute, "MINUTE"),
    (IntervalUnit::Hour, "HOUR"),
    (IntervalUnit::Day, "DAY"),
    (IntervalUnit::Week, "WEEK"),
    (IntervalUnit::Month, "MONTH"),
    (IntervalUnit::Quarter, "QUARTER"),
    (IntervalUnit::Year, "YEAR"),
    (IntervalUnit::SecondMicrosecond, "SECOND_MICROSECOND"),
    (IntervalUnit::MinuteMicrosecond, "MINUTE_MICROSECOND"),
    (IntervalUnit::MinuteSecond, "MINUTE_SECOND"),
    (IntervalUnit::HourMicrosecond, "HOUR_MICROSECOND"),
    (IntervalUnit::HourSecond, "HOUR_SECOND"),
    (IntervalUnit::HourMinute, "HOUR_MINUTE"),
    (IntervalUnit::DayMicrosecond, "DAY_MICROSECOND"),
    (IntervalUnit::DaySecond, "DAY_SECOND"),
    (IntervalUnit::DayMinute, "DAY_MINUTE"),
    (IntervalUnit::DayHour, "DAY_HOUR"),
    (IntervalUnit::YearMonth, "YEAR_MONTH"),
];

impl IntervalUnit {
    /// The unit of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        UNITS.iter().find(|(_, other)| other.eq_ignore_ascii_case(name)).map(|(unit, _)| *unit)
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        UNITS.iter().find(|(unit, _)| *unit == self).map_or("", |(_, name)| name)
    }

    /// Whether spans of it are written as text with several numbers.
    pub fn is_compound(self) -> bool {
        self.name().contains('_')
    }

    /// Whether it reaches below a day.
    pub fn has_time(self) -> bool {
        !matches!(
            self,
            Self::Day | Self::Week | Self::Month | Self::Quarter | Self::Year | Self::YearMonth
        )
    }

    /// Whether it counts fractions of a second.
    pub fn has_micros(self) -> bool {
        self.name().ends_with("MICROSECOND")
    }
}
