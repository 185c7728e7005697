//! The built-in functions: their names, and where each is computed.

mod date;
mod local;
mod math;
mod names;
mod random;
pub(crate) mod regexp;
mod result;
mod strings;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use local::Local;
pub use names::IntervalUnit;
pub(crate) use result::result_type;
pub(crate) use strings::coercibility;
pub use variables::{VariableType, kept as kept_in_variable};

use crate::{EvalContext, SqlError, Value};
use serde::{Deserialize, Serialize};

/// Longest result of a function, in bytes. A row is far shorter, so a longer text is a mistake.
pub const RESULT_BYTES_MAX: usize = 4 << 20;

/// A built-in function. None reads a clock: the SQL layer puts the statement's time in as a
/// literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// `ABS(x)`.
    Abs,
    /// `CEIL(x)`.
    Ceil,
    /// `FLOOR(x)`.
    Floor,
    /// `ROUND(x[, places])`.
    Round,
    /// `TRUNCATE(x, places)`.
    Truncate,
    /// `MOD(a, b)`.
    Mod,
    /// `SIGN(x)`.
    Sign,
    /// `POW(x, y)`.
    Pow,
    /// `SQRT(x)`.
    Sqrt,
    /// `EXP(x)`.
    Exp,
    /// `LN(x)`.
    Ln,
    /// `LOG([base, ]x)`.
    Log,
    /// `LOG2(x)`.
    Log2,
    /// `LOG10(x)`.
    Log10,
    /// `PI()`.
    Pi,
    /// `SIN(x)`.
    Sin,
    /// `COS(x)`.
    Cos,
    /// `TAN(x)`.
    Tan,
    /// `ASIN(x)`.
    Asin,
    /// `ACOS(x)`.
    Acos,
    /// `ATAN(x[, y])`.
    Atan,
    /// `DEGREES(x)`.
    Degrees,
    /// `RADIANS(x)`.
    Radians,
    /// `BIT_COUNT(x)`.
    BitCount,
    /// `CRC32(x)`.
    Crc32,
    /// `GREATEST(a, b, …)`.
    Greatest,
    /// `LEAST(a, b, …)`.
    Least,
    /// `IF(condition, a, b)`.
    If,
    /// `IFNULL(a, b)`.
    IfNull,
    /// `NULLIF(a, b)`.
    NullIf,
    /// `COALESCE(a, …)`.
    Coalesce,
    /// `ISNULL(x)`.
    IsNull,
    /// `CONCAT(a, …)`.
    Concat,
    /// `CONCAT_WS(separator, a, …)`.
    ConcatWs,
    /// `LENGTH(x)`: bytes.
    Length,
    /// `BIT_LENGTH(x)`.
    BitLength,
    /// `CHAR_LENGTH(x)`.
    CharLength,
    /// `LOWER(x)`.
    Lower,
    /// `UPPER(x)`.
    Upper,
    /// `LEFT(x, n)`.
    Left,
    /// `RIGHT(x, n)`.
    Right,
    /// `SUBSTRING(x, from[, length])`.
    Substring,
    /// `SUBSTRING_INDEX(x, delimiter, count)`.
    SubstringIndex,
    /// `TRIM([what])` at both ends: `(x[, what])`.
    Trim,
    /// At the start.
    LTrim,
    /// At the end.
    RTrim,
    /// `REPLACE(x, from, to)`.
    Replace,
    /// `INSERT(x, position, length, new)`.
    Insert,
    /// `REVERSE(x)`.
    Reverse,
    /// `REPEAT(x, n)`.
    Repeat,
    /// `LPAD(x, length, pad)`.
    Lpad,
    /// `RPAD(x, length, pad)`.
    Rpad,
    /// `LOCATE(what, x[, from])`.
    Locate,
    /// `INSTR(x, what)`.
    Instr,
    /// `HEX(x)`.
    Hex,
    /// `UNHEX(x)`.
    Unhex,
    /// `BIN(x)`.
    Bin,
    /// `OCT(x)`.
    Oct,
    /// `CONV(x, from, to)`.
    Conv,
    /// `CHAR(n, …)`.
    Char,
    /// `ORD(x)`.
    Ord,
    /// `QUOTE(x)`.
    Quote,
    /// `FORMAT(x, decimals)`.
    Format,
    /// `STRCMP(a, b)`.
    Strcmp,
    /// `FIELD(x, a, …)`.
    Field,
    /// `ELT(n, a, …)`.
    Elt,
    /// `FIND_IN_SET(x, list)`.
    FindInSet,
    /// `ASCII(x)`.
    Ascii,
    /// `SPACE(n)`.
    Space,
    /// `DATE(x)`.
    Date,
    /// `TIME(x)`.
    Time,
    /// `TIMESTAMP(x[, time])`.
    Timestamp,
    /// `YEAR(x)`.
    Year,
    /// `QUARTER(x)`.
    Quarter,
    /// `MONTH(x)`.
    Month,
    /// `MONTHNAME(x)`.
    MonthName,
    /// `DAYOFMONTH(x)`.
    Day,
    /// `DAYNAME(x)`.
    DayName,
    /// `HOUR(x)`.
    Hour,
    /// `MINUTE(x)`.
    Minute,
    /// `SECOND(x)`.
    Second,
    /// `MICROSECOND(x)`.
    Microsecond,
    /// `DAYOFWEEK(x)`: 1 is Sunday.
    DayOfWeek,
    /// `WEEKDAY(x)`: 0 is Monday.
    Weekday,
    /// `DAYOFYEAR(x)`.
    DayOfYear,
    /// `WEEK(x[, mode])`.
    Week,
    /// `YEARWEEK(x[, mode])`.
    YearWeek,
    /// `LAST_DAY(x)`.
    LastDay,
    /// `TO_DAYS(x)`.
    ToDays,
    /// `FROM_DAYS(n)`.
    FromDays,
    /// `MAKEDATE(year, day)`.
    MakeDate,
    /// `TIME_TO_SEC(x)`.
    TimeToSec,
    /// `SEC_TO_TIME(x)`.
    SecToTime,
    /// `DATEDIFF(a, b)`.
    DateDiff,
    /// `TIMEDIFF(a, b)`.
    TimeDiff,
    /// `DATE_ADD(x, INTERVAL amount unit)`: `(x, amount)`.
    DateAdd {
        /// The unit.
        unit: IntervalUnit,
    },
    /// `DATE_SUB(x, INTERVAL amount unit)`: `(x, amount)`.
    DateSub {
        /// The unit.
        unit: IntervalUnit,
    },
    /// `TIMESTAMPDIFF(unit, from, to)`: `(from, to)`.
    TimestampDiff {
        /// The unit.
        unit: IntervalUnit,
    },
    /// `EXTRACT(unit FROM x)`: `(x)`.
    Extract {
        /// The unit.
        unit: IntervalUnit,
    },
    /// `DATE_FORMAT(x, format)`.
    DateFormat,
    /// `UNIX_TIMESTAMP(x)`.
    UnixTimestamp,
    /// `FROM_UNIXTIME(x[, format])`.
    FromUnixtime,
    /// `STR_TO_DATE(x, format)`.
    StrToDate,
    /// `ADDTIME(x, span)`.
    AddTime,
    /// `SUBTIME(x, span)`.
    SubTime,
    /// `MAKETIME(hour, minute, second)`.
    MakeTime,
    /// `TIME_FORMAT(x, format)`.
    TimeFormat,
    /// `PERIOD_ADD(period, months)`.
    PeriodAdd,
    /// `PERIOD_DIFF(a, b)`.
    PeriodDiff,
    /// `WEEKOFYEAR(x)`.
    WeekOfYear,
    /// `TO_SECONDS(x)`.
    ToSeconds,
    /// `CONVERT_TZ(x, from, to)`: between offsets from UTC.
    ConvertTz,
    /// `INET_ATON(x)`.
    InetAton,
    /// `INET_NTOA(n)`.
    InetNtoa,
    /// `INET6_ATON(x)`.
    Inet6Aton,
    /// `INET6_NTOA(bytes)`.
    Inet6Ntoa,
    /// `IS_IPV4(x)`.
    IsIpv4,
    /// `IS_IPV6(x)`.
    IsIpv6,
    /// `IS_IPV4_COMPAT(bytes)`.
    IsIpv4Compat,
    /// `IS_IPV4_MAPPED(bytes)`.
    IsIpv4Mapped,
    /// `IS_UUID(x)`.
    IsUuid,
    /// `UUID_TO_BIN(x[, swap])`.
    UuidToBin,
    /// `BIN_TO_UUID(bytes[, swap])`.
    BinToUuid,
    /// `MD5(x)`.
    Md5,
    /// `SHA1(x)`.
    Sha1,
    /// `SHA2(x, bits)`.
    Sha2,
    /// `TO_BASE64(x)`.
    ToBase64,
    /// `FROM_BASE64(x)`.
    FromBase64,
    /// `SOUNDEX(x)`.
    Soundex,
    /// `INTERVAL(n, a, b, …)`: how many of the ascending numbers are not above n.
    Interval,
    /// `MAKE_SET(bits, a, …)`.
    MakeSet,
    /// `EXPORT_SET(bits, on, off[, separator[, count]])`.
    ExportSet,
    /// `CHARSET(x)`.
    Charset,
    /// `COLLATION(x)`.
    CollationOf,
    /// `COERCIBILITY(x)`.
    Coercibility,
    /// `FORMAT_BYTES(x)`.
    FormatBytes,
    /// `FORMAT_PICO_TIME(x)`.
    FormatPicoTime,
    /// `GET_FORMAT(kind, region)`: `('DATE' | 'TIME' | 'DATETIME', region)`.
    GetFormat,
    /// `COT(x)`.
    Cot,
    /// `RAND(seed)`: `(place, seed)`; a place that is NULL begins anew with each row.
    Rand,
    /// `RAND()`: `(place, random bytes)`.
    Random,
    /// `UUID()`: `(place, random bytes, now)`.
    Uuid,
    /// `RANDOM_BYTES(n)`: `(n, place, random bytes)`.
    RandomBytes,
    /// `REGEXP_LIKE(x, pattern[, options])`.
    RegexpLike,
    /// `REGEXP_INSTR(x, pattern[, from[, occurrence[, end[, options]]]])`.
    RegexpInstr,
    /// `REGEXP_REPLACE(x, pattern, new[, from[, occurrence[, options]]])`.
    RegexpReplace,
    /// `REGEXP_SUBSTR(x, pattern[, from[, occurrence[, options]]])`.
    RegexpSubstr,
    /// `COMPRESS(x)`.
    Compress,
    /// `UNCOMPRESS(x)`.
    Uncompress,
    /// `UNCOMPRESSED_LENGTH(x)`.
    UncompressedLength,
    /// `AES_ENCRYPT(x, key)`.
    AesEncrypt,
    /// `AES_DECRYPT(x, key)`.
    AesDecrypt,
    /// `@name := value`: `(name, value)`.
    SetVariable,
    /// `@name` in a statement that assigns it: `(name, its value before the statement, a type)`. The type is that of the value
    /// before, where it counts: [`VariableType`] as a number.
    GetVariable,
}

/// Computes a function of values. Those that must not compute all their arguments (`IF`, `IFNULL`,
/// `COALESCE`) never come here.
pub(crate) fn call(
    function: Function,
    args: &[Value],
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let (low, high) = function.arity();
    if args.len() < low || args.len() > high {
        return Err(SqlError::wrong_argument_count(function.name()));
    }
    let result = if function.is_variable() {
        variables::call(function, args, ctx)
    } else if function.is_random() {
        random::call(function, args, ctx)
    } else if function.is_math() {
        math::call(function, args, ctx)
    } else if function.is_date() {
        date::call(function, args, ctx)
    } else {
        strings::call(function, args, ctx)
    }?;
    // Calls inside calls must not grow without bound.
    if result.is_string() && result.as_bytes().is_some_and(|b| b.len() > RESULT_BYTES_MAX) {
        ctx.warn(SqlError::result_too_long(&function.name().to_ascii_lowercase()))?;
        return Ok(Value::Null);
    }
    Ok(result)
}
