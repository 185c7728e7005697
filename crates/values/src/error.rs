//! The errors and warnings of SQL, with the numbers, states and texts of MySQL.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

/// An error or a warning as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// MySQL's number.
    pub errno: u16,
    /// The five characters of the SQL state.
    pub sqlstate: [u8; 5],
    /// The text.
    pub message: String,
}

/// Warnings that a statement keeps; later ones are dropped, as MySQL does with `max_error_count`.
pub const WARNINGS_MAX: usize = 64;

/// Keeps `warning` unless the list is full.
pub fn push_warning(warnings: &mut Vec<SqlError>, warning: SqlError) {
    if warnings.len() < WARNINGS_MAX {
        warnings.push(warning);
    }
}

impl SqlError {
    /// An error of any number.
    pub fn new(errno: u16, sqlstate: [u8; 5], message: String) -> Self {
        Self { errno, sqlstate, message }
    }

    /// 1264: the number does not fit the column.
    pub fn out_of_range(column: impl fmt::Display, row: u64) -> Self {
        let text = format!("Out of range value for column '{column}' at row {row}");
        Self::new(1264, *b"22003", text)
    }

    /// 1406: the text is longer than the column.
    pub fn data_too_long(column: impl fmt::Display, row: u64) -> Self {
        Self::new(1406, *b"22001", format!("Data too long for column '{column}' at row {row}"))
    }

    /// 1265: only a part of the value was kept.
    pub fn truncated(column: impl fmt::Display, row: u64) -> Self {
        Self::new(1265, *b"01000", format!("Data truncated for column '{column}' at row {row}"))
    }

    /// 1366: the text is no value of the column's type.
    pub fn incorrect_value(kind: &str, value: &str, column: impl fmt::Display, row: u64) -> Self {
        let value = shortened(value);
        let text = format!("Incorrect {kind} value: '{value}' for column '{column}' at row {row}");
        Self::new(1366, *b"HY000", text)
    }

    /// 1292: the text is no day or time, in a column of such a type.
    pub fn bad_datetime(kind: &str, value: &str, column: impl fmt::Display, row: u64) -> Self {
        let value = shortened(value);
        let text = format!("Incorrect {kind} value: '{value}' for column '{column}' at row {row}");
        Self::new(1292, *b"22007", text)
    }

    /// 1292: the text is no day or time, in an expression.
    pub fn wrong_datetime(kind: &str, value: &str) -> Self {
        let value = shortened(value);
        Self::new(1292, *b"22007", format!("Incorrect {kind} value: '{value}'"))
    }

    /// 1525: a constant that is compared with a day or time is none.
    pub fn wrong_value(kind: &str, value: &str) -> Self {
        let value = shortened(value);
        Self::new(1525, *b"HY000", format!("Incorrect {kind} value: '{value}'"))
    }

    /// 1292: only the front of a text is a number.
    pub fn truncated_wrong_value(kind: &str, value: &str) -> Self {
        let value = shortened(value);
        Self::new(1292, *b"22007", format!("Truncated incorrect {kind} value: '{value}'"))
    }

    /// 1048: NULL in a NOT NULL column.
    pub fn null_not_allowed(column: impl fmt::Display) -> Self {
        Self::new(1048, *b"23000", format!("Column '{column}' cannot be null"))
    }

    /// 1365: division by zero.
    pub fn division_by_zero() -> Self {
        Self::new(1365, *b"22012", String::from("Division by 0"))
    }

    /// 1690: the result does not fit its type.
    pub fn out_of_range_expr(kind: &str, expression: &str) -> Self {
        let text = format!("{kind} value is out of range in '{}'", shortened(expression));
        Self::new(1690, *b"22003", text)
    }

    /// 1235: LatsDB does not do this.
    pub fn not_supported(what: &str) -> Self {
        let text = format!("This version of LatsDB doesn't yet support '{what}'");
        Self::new(1235, *b"42000", text)
    }

    /// 3024: a program does more than a data node does for one request.
    pub fn too_much_work() -> Self {
        let text = "Query execution was interrupted: a condition or value takes more work to \
                    compute than a data node does for one request";
        Self::new(3024, *b"HY000", text.into())
    }

    /// 1118: the row is larger than a row may be.
    pub fn row_too_large() -> Self {
        let limit = lats_base::limits::ROW_BYTES_MAX;
        let text = format!(
            "Row size too large. The maximum row size for the used table type, not counting \
             BLOBs, is {limit}. This includes storage overhead, check the manual. You have to \
             change some columns to TEXT or BLOBs"
        );
        Self::new(1118, *b"42000", text)
    }

    /// 1441: a computed day lies outside the years 0 to 9999.
    pub fn datetime_overflow(kind: &str) -> Self {
        let text = format!("Datetime function: {kind} field overflow");
        Self::new(1441, *b"22008", text)
    }

    /// 1301: the result of a function is longer than a value may be.
    pub fn result_too_long(function: &str) -> Self {
        let limit = crate::functions::RESULT_BYTES_MAX;
        let text = format!(
            "Result of {function}() was larger than max_allowed_packet ({limit}) - truncated"
        );
        Self::new(1301, *b"HY000", text)
    }

    /// 1582: the function does not take that many arguments.
    pub fn wrong_argument_count(function: &str) -> Self {
        let text = format!("Incorrect parameter count in the call to native function '{function}'");
        Self::new(1582, *b"42000", text)
    }

    /// 1210: no such arguments.
    pub fn wrong_arguments(function: &str) -> Self {
        Self::new(1210, *b"HY000", format!("Incorrect arguments to {function}"))
    }

    /// 1583: a parameter that the function does not know.
    pub fn wrong_parameters(function: &str) -> Self {
        let text = format!("Incorrect parameters in the call to native function '{function}'");
        Self::new(1583, *b"42000", text)
    }

    /// 1411: the argument is no value of the kind that the function takes.
    pub fn wrong_for_function(kind: &str, value: &str, function: &str) -> Self {
        let value = shortened(value);
        let text = format!("Incorrect {kind} value: '{value}' for function {function}");
        Self::new(1411, *b"HY000", text)
    }

    /// 1270 and its relatives: the bytes are no text.
    pub fn invalid_utf8(bytes: &[u8]) -> Self {
        let hex = crate::text::hex(bytes.get(..bytes.len().min(6)).unwrap_or(bytes));
        Self::new(3988, *b"HY000", format!("Invalid utf8mb4 character string: '{hex}'"))
    }

    /// The SQL state as text.
    pub fn state(&self) -> &str {
        core::str::from_utf8(&self.sqlstate).unwrap_or("HY000")
    }
}

impl core::fmt::Display for SqlError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.errno, self.state(), self.message)
    }
}

impl core::error::Error for SqlError {}

/// The first 128 characters, as MySQL shows of a value.
fn shortened(value: &str) -> &str {
    match value.char_indices().nth(128) {
        Some((end, _)) => value.get(..end).unwrap_or(value),
        None => value,
    }
}
