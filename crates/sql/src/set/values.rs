//! Values of variables that can be written in several ways.

use crate::ddl::engine;
use crate::error;
use lats_values::{SqlError, Value};

/// The modes of `sql_mode` by their bits, as MySQL numbers them.
const MODE_BITS: [(u32, &str); 21] = [
    (0, "REAL_AS_FLOAT"),
    (1, "PIPES_AS_CONCAT"),
    (2, "ANSI_QUOTES"),
    (3, "IGNORE_SPACE"),
    (5, "ONLY_FULL_GROUP_BY"),
    (6, "NO_UNSIGNED_SUBTRACTION"),
    (7, "NO_DIR_IN_CREATE"),
    (18, "ANSI"),
    (19, "NO_AUTO_VALUE_ON_ZERO"),
    (20, "NO_BACKSLASH_ESCAPES"),
    (21, "STRICT_TRANS_TABLES"),
    (22, "STRICT_ALL_TABLES"),
    (23, "NO_ZERO_IN_DATE"),
    (24, "NO_ZERO_DATE"),
    (25, "ALLOW_INVALID_DATES"),
    (26, "ERROR_FOR_DIVISION_BY_ZERO"),
    (27, "TRADITIONAL"),
    (29, "HIGH_NOT_PRECEDENCE"),
    (30, "NO_ENGINE_SUBSTITUTION"),
    (31, "PAD_CHAR_TO_FULL_LENGTH"),
    (32, "TIME_TRUNCATE_FRACTIONAL"),
];
/// Bits of modes that MySQL once had.
const REMOVED_MODES: u64 = 0x1003_FF00;
const MODE_BIT_COUNT: u32 = 33;
/// The value of `completion_type` with which a transaction follows each other.
pub(crate) const COMPLETION_CHAIN: &str = "CHAIN";

/// A variable's value as it is kept: `sql_mode` may be given in bits, and words have a spelling of their own.
///
/// # Errors
/// 1231, 1286 and 3899 for values that do not exist, 1235 for those that LatsDB does not have.
pub(crate) fn settled(name: &str, value: Value) -> Result<Value, SqlError> {
    match (name, &value) {
        ("sql_mode", Value::Int(bits)) => {
            let wrong = || error::wrong_variable_value(name, &bits.to_string());
            modes(u64::try_from(*bits).map_err(|_| wrong())?)
        }
        ("sql_mode", Value::UInt(bits)) => modes(*bits),
        ("default_storage_engine" | "storage_engine", Value::Text(text, _)) => {
            let found = engine::find(text)?.ok_or_else(|| engine::unknown(text))?;
            Ok(Value::text(found))
        }
        ("completion_type", value) => completion(&value.to_display()),
        _ => Ok(value),
    }
}

fn completion(text: &str) -> Result<Value, SqlError> {
    match text.to_ascii_uppercase().as_str() {
        "NO_CHAIN" | "0" => Ok(Value::text("NO_CHAIN")),
        COMPLETION_CHAIN | "1" => Ok(Value::text(COMPLETION_CHAIN)),
        "RELEASE" | "2" => Err(error::not_supported("completion_type RELEASE")),
        _ => Err(error::wrong_variable_value("completion_type", text)),
    }
}

/// The modes in the order of their bits, each once.
///
/// # Errors
/// 1231 for a name that is no mode's.
pub(crate) fn ordered_modes(names: &[String]) -> Result<String, SqlError> {
    let known = |name: &&String| !MODE_BITS.iter().any(|(_, mode)| mode == name);
    if let Some(unknown) = names.iter().find(known) {
        return Err(error::wrong_variable_value("sql_mode", unknown));
    }
    let modes = MODE_BITS.iter().map(|(_, mode)| *mode);
    let modes = modes.filter(|mode| names.iter().any(|name| name == mode));
    Ok(modes.collect::<Vec<_>>().join(","))
}

/// The names of the modes with these bits.
fn modes(bits: u64) -> Result<Value, SqlError> {
    if bits >> MODE_BIT_COUNT != 0 {
        return Err(error::wrong_variable_value("sql_mode", &bits.to_string()));
    }
    let removed = bits & REMOVED_MODES;
    if removed != 0 {
        let text = format!("sql_mode=0x{removed:08x} is not supported.");
        return Err(error::make(3899, "HY000", &text));
    }
    let names = MODE_BITS.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name);
    Ok(Value::text(&names.collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(bits: i64) -> Result<String, u16> {
        settled("sql_mode", Value::Int(bits)).map(|v| v.to_display()).map_err(|e| e.errno)
    }

    #[test]
    fn numbers_are_bits_of_sql_mode() {
        assert_eq!(mode(0).as_deref(), Ok(""));
        assert_eq!(mode(32).as_deref(), Ok("ONLY_FULL_GROUP_BY"));
        assert_eq!(
            mode((1 << 22) | (1 << 19)).as_deref(),
            Ok("NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES")
        );
        assert_eq!(mode(-1), Err(1231));
        assert_eq!(mode(1 << 33), Err(1231));
        assert_eq!(mode(1 << 28), Err(3899));
    }

    #[test]
    fn engines_have_their_own_spelling() {
        let engine = |name: &str| settled("default_storage_engine", Value::text(name));
        assert_eq!(engine("innodb"), Ok(Value::text("InnoDB")));
        assert_eq!(engine("heap"), Ok(Value::text("MEMORY")));
        assert_eq!(engine("nonesuch").map_err(|e| e.errno), Err(1286));
    }
}
