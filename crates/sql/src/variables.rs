//! System variables: their names, defaults, and what they may be set to.

use crate::error;
use crate::optimizer_switch::Rules;
use lats_base::map::Map;
use lats_values::{SqlError, Value};
use std::collections::BTreeMap;

/// The default `sql_mode`, as MySQL 8.4 has it.
pub const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                            ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
/// What the server calls itself.
pub const VERSION: &str = lats_mysql_wire::SERVER_VERSION;
/// The comment beside it.
pub const VERSION_COMMENT: &str = "LatsDB";
/// Bytes of the largest request.
pub const MAX_ALLOWED_PACKET: i64 = 64 << 20;

/// The values of `durability`.
pub const REPLICATED: &str = "replicated";
/// See [`REPLICATED`].
pub const DISK: &str = "disk";

#[derive(Clone, Copy)]
enum Kind {
    /// Cannot be set.
    Fixed,
    /// A whole number.
    Number,
    /// ON or OFF.
    Switch,
    /// Text.
    Text,
    /// A character set that we can speak.
    Charset,
    /// A collation.
    Collation,
    /// `sql_mode`.
    Mode,
    /// An isolation level.
    Isolation,
    /// Only UTC.
    Zone,
    /// What NOW() gives, in seconds; 0 for the clock.
    Moment,
    /// What a commit waits for.
    Durability,
    /// `optimizer_switch`.
    Rules,
    /// YES or NO.
    Consent,
}

#[derive(Clone, Copy)]
enum Default {
    Number(i64),
    Text(&'static str),
    Null,
}

struct Variable {
    name: &'static str,
    default: Default,
    kind: Kind,
}

const fn number(name: &'static str, default: i64) -> Variable {
    Variable { name, default: Default::Number(default), kind: Kind::Number }
}

const fn switch(name: &'static str, on: bool) -> Variable {
    Variable { name, default: Default::Number(on as i64), kind: Kind::Switch }
}

const fn text(name: &'static str, default: &'static str, kind: Kind) -> Variable {
    Variable { name, default: Default::Text(default), kind }
}

const fn fixed(name: &'static str, default: i64) -> Variable {
    Variable { name, default: Default::Number(default), kind: Kind::Fixed }
}

/// Ascending by name.
const VARIABLES: &[Variable] = &[
    number("auto_increment_increment", 1),
    number("auto_increment_offset", 1),
    switch("autocommit", true),
    switch("big_tables", false),
    number("bulk_insert_buffer_size", 8_388_608),
    text("character_set_client", "utf8mb4", Kind::Charset),
    text("character_set_connection", "utf8mb4", Kind::Charset),
    text("character_set_database", "utf8mb4", Kind::Charset),
    text("character_set_filesystem", "binary", Kind::Fixed),
    text("character_set_results", "utf8mb4", Kind::Charset),
    text("character_set_server", "utf8mb4", Kind::Charset),
    text("character_set_system", "utf8mb3", Kind::Fixed),
    text("collation_connection", "utf8mb4_0900_ai_ci", Kind::Collation),
    text("collation_database", "utf8mb4_0900_ai_ci", Kind::Collation),
    text("collation_server", "utf8mb4_0900_ai_ci", Kind::Collation),
    text("completion_type", "NO_CHAIN", Kind::Text),
    number("connect_timeout", 10),
    number("cte_max_recursion_depth", 1_000),
    text("default_collation_for_utf8mb4", "utf8mb4_0900_ai_ci", Kind::Collation),
    text("default_storage_engine", "LatsDB", Kind::Text),
    number("default_week_format", 0),
    number("div_precision_increment", 4),
    // replicated: a commit is answered when all replicas have it in memory; disk: when it is on all their disks.
    text("durability", REPLICATED, Kind::Durability),
    number("eq_range_index_dive_limit", 200),
    switch("explicit_defaults_for_timestamp", true),
    switch("foreign_key_checks", true),
    number("group_concat_max_len", 1_024),
    text("have_ssl", "DISABLED", Kind::Fixed),
    number("histogram_generation_max_mem_size", 20_000_000),
    text("hostname", "localhost", Kind::Fixed),
    text("init_connect", "", Kind::Text),
    // The cluster's own; see docs/protocols/locks.md.
    number("innodb_lock_wait_timeout", 1),
    switch("innodb_read_only", false),
    switch("innodb_stats_persistent", true),
    number("innodb_stats_persistent_sample_pages", 20),
    number("interactive_timeout", 28_800),
    number("join_buffer_size", 262_144),
    text("lc_messages", "en_US", Kind::Text),
    text("lc_time_names", "en_US", Kind::Text),
    text("license", "Apache-2.0", Kind::Fixed),
    number("lock_wait_timeout", 31_536_000),
    number("long_query_time", 10),
    switch("low_priority_updates", false),
    fixed("lower_case_file_system", 0),
    fixed("lower_case_table_names", 0),
    number("max_allowed_packet", MAX_ALLOWED_PACKET),
    number("max_connections", 4_096),
    number("max_execution_time", 0),
    number("max_heap_table_size", 16_777_216),
    number("max_length_for_sort_data", 4_096),
    number("max_prepared_stmt_count", 16_382),
    number("max_sort_length", 1_024),
    number("min_examined_row_limit", 0),
    number("net_buffer_length", 16_384),
    number("net_read_timeout", 30),
    number("net_retry_count", 10),
    number("net_write_timeout", 60),
    number("optimizer_prune_level", 1),
    number("optimizer_search_depth", 62),
    // What plans may do: see optimizer_switch.rs. Empty for all.
    text("optimizer_switch", "", Kind::Rules),
    number("optimizer_trace_limit", 1),
    switch("performance_schema", false),
    fixed("port", 4_306),
    number("preload_buffer_size", 32_768),
    number("profiling_history_size", 15),
    fixed("protocol_version", 10),
    number("query_alloc_block_size", 8_192),
    number("query_cache_size", 0),
    text("query_cache_type", "OFF", Kind::Text),
    number("query_prealloc_size", 8_192),
    number("range_alloc_block_size", 4_096),
    number("range_optimizer_max_mem_size", 8_388_608),
    number("read_buffer_size", 131_072),
    switch("read_only", false),
    number("read_rnd_buffer_size", 262_144),
    switch("session_track_schema", true),
    text("session_track_system_variables", "*", Kind::Text),
    number("sort_buffer_size", 262_144),
    switch("sql_auto_is_null", false),
    switch("sql_big_selects", true),
    switch("sql_buffer_result", false),
    switch("sql_log_bin", true),
    text("sql_mode", SQL_MODE, Kind::Mode),
    switch("sql_notes", true),
    switch("sql_quote_show_create", true),
    switch("sql_require_primary_key", false),
    switch("sql_safe_updates", false),
    number("sql_select_limit", i64::MAX),
    switch("sql_warnings", false),
    text("storage_engine", "LatsDB", Kind::Text),
    switch("super_read_only", false),
    text("system_time_zone", "UTC", Kind::Fixed),
    text("time_zone", "SYSTEM", Kind::Zone),
    Variable { name: "timestamp", default: Default::Number(0), kind: Kind::Moment },
    number("tmp_table_size", 16_777_216),
    number("transaction_alloc_block_size", 8_192),
    text("transaction_isolation", "READ-COMMITTED", Kind::Isolation),
    number("transaction_prealloc_size", 4_096),
    switch("transaction_read_only", false),
    text("tx_isolation", "READ-COMMITTED", Kind::Isolation),
    switch("tx_read_only", false),
    switch("unique_checks", true),
    text("updatable_views_with_limit", "YES", Kind::Consent),
    text("version", VERSION, Kind::Fixed),
    text("version_comment", VERSION_COMMENT, Kind::Fixed),
    text("version_compile_machine", "x86_64", Kind::Fixed),
    text("version_compile_os", "Linux", Kind::Fixed),
    number("wait_timeout", 28_800),
    switch("windowing_use_high_precision", true),
    Variable { name: "warning_count", default: Default::Number(0), kind: Kind::Fixed },
    Variable { name: "error_count", default: Default::Number(0), kind: Kind::Fixed },
    Variable { name: "last_insert_id", default: Default::Number(0), kind: Kind::Fixed },
    Variable { name: "identity", default: Default::Number(0), kind: Kind::Fixed },
    Variable { name: "proxy_user", default: Default::Null, kind: Kind::Fixed },
];

fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|v| v.name == name)
}

/// True if there is a variable with this name (in lower case).
pub fn is_known(name: &str) -> bool {
    find(name).is_some()
}

/// Values of variables that differ from their defaults.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    changed: BTreeMap<&'static str, Value>,
}

impl Variables {
    /// A variable's value.
    pub fn get(&self, name: &str) -> Value {
        if let Some(value) = self.changed.get(name) {
            return value.clone();
        }
        match find(name).map(|v| v.default) {
            Some(Default::Number(number)) => Value::Int(number),
            Some(Default::Text("")) if name == "optimizer_switch" => {
                Value::text(&Rules::default().shown())
            }
            Some(Default::Text(text)) => Value::text(text),
            Some(Default::Null) | None => Value::Null,
        }
    }

    /// A value that is not the default: each statement asks for some, and looks for no default.
    pub(crate) fn changed(&self, name: &str) -> Option<&Value> {
        self.changed.get(name)
    }

    /// A number that is not the default.
    pub(crate) fn changed_number(&self, name: &str) -> Option<i64> {
        match self.changed.get(name) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// What NOW() gives, if that is fixed, in microseconds.
    pub(crate) fn fixed_micros(&self) -> Option<i64> {
        match self.changed.get("timestamp") {
            Some(Value::Double(seconds)) if *seconds > 0.0 => Some((seconds * 1e6).round() as i64),
            _ => None,
        }
    }

    /// The session begins with `interactive_timeout` as its `wait_timeout`.
    pub(crate) fn wait_as_interactive(&mut self) {
        self.changed.insert("wait_timeout", self.get("interactive_timeout"));
    }

    /// How many clients may be connected.
    pub(crate) fn describe_places(&mut self, count: usize) {
        self.changed
            .insert("max_connections", Value::Int(i64::try_from(count).unwrap_or(i64::MAX)));
    }

    /// What this server's process is like.
    pub(crate) fn describe(&mut self, port: u16) {
        self.changed.insert("port", Value::Int(i64::from(port)));
    }

    /// What sessions wait for unless they, or SET GLOBAL, say otherwise.
    pub(crate) fn wait_for_disks_by_default(&mut self) {
        self.changed.entry("durability").or_insert_with(|| Value::text(DISK));
    }

    /// True if commits wait for disks.
    pub(crate) fn wants_disk(&self) -> bool {
        matches!(self.changed.get("durability"), Some(Value::Text(text, _)) if text == DISK)
    }

    /// DEFAULT is what sessions that begin now have.
    pub(crate) fn take_default(&mut self, name: &str, defaults: &Self) {
        if let Some((name, value)) = defaults.changed.get_key_value(name) {
            self.changed.insert(name, value.clone());
        }
    }

    /// A variable's value as `SHOW VARIABLES` prints it.
    pub fn shown(&self, name: &str) -> String {
        let value = self.get(name);
        match (find(name).map(|v| v.kind), &value) {
            (Some(Kind::Switch), Value::Int(0)) => "OFF".to_owned(),
            (Some(Kind::Switch), Value::Int(_)) => "ON".to_owned(),
            (_, Value::Null) => String::new(),
            _ => value.to_display(),
        }
    }

    /// Names of all variables, ascending.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&'static str> = VARIABLES.iter().map(|v| v.name).collect();
        names.sort_unstable();
        names
    }

    /// Sets a variable; none for its default. Gives what it was set to.
    ///
    /// # Errors
    /// 1193 for unknown names, 1238 for those that cannot be set, 1231 for other values.
    pub fn set(&mut self, name: &str, value: Option<&Value>) -> Result<Value, SqlError> {
        let variable = find(name).ok_or_else(|| error::unknown_variable(name))?;
        if matches!(variable.kind, Kind::Fixed) {
            let text = format!("Variable '{name}' is a read only variable");
            return Err(error::make(1238, "HY000", &text));
        }
        match value {
            None => {
                self.changed.remove(variable.name);
            }
            Some(value) => {
                let checked = match variable.kind {
                    Kind::Rules => {
                        let now = Rules::of(&self.get(name).to_display());
                        Value::text(&now.with(&value.to_display())?.shown())
                    }
                    _ => check(variable, value)?,
                };
                for alias in aliases(variable.name) {
                    self.changed.insert(alias, checked.clone());
                }
            }
        }
        Ok(self.get(name))
    }
}

fn aliases(name: &'static str) -> Vec<&'static str> {
    match name {
        "transaction_isolation" | "tx_isolation" => vec!["transaction_isolation", "tx_isolation"],
        "transaction_read_only" | "tx_read_only" => vec!["transaction_read_only", "tx_read_only"],
        other => vec![other],
    }
}

/// The last second of a TIMESTAMP.
const MOMENT_MAX: f64 = 2_147_483_647.0;

/// 1232.
fn wrong_type(name: &str) -> SqlError {
    let text = format!("Incorrect argument type to variable '{name}'");
    error::make(1232, "42000", &text)
}

fn check(variable: &Variable, value: &Value) -> Result<Value, SqlError> {
    let shown = value.to_display();
    let wrong = || error::wrong_variable_value(variable.name, &shown);
    match variable.kind {
        Kind::Fixed => Err(wrong()),
        // Quotients have four digits more than what is divided, whatever one wishes.
        Kind::Number if variable.name == "div_precision_increment" && shown != "4" => {
            Err(error::not_supported("another div_precision_increment than 4"))
        }
        Kind::Number => match value {
            Value::Int(_) | Value::UInt(_) => Ok(value.clone()),
            _ => Err(wrong_type(variable.name)),
        },
        Kind::Switch => match shown.to_ascii_uppercase().as_str() {
            "1" | "ON" | "TRUE" => Ok(Value::Int(1)),
            "0" | "OFF" | "FALSE" => Ok(Value::Int(0)),
            _ => Err(wrong()),
        },
        Kind::Text => Ok(Value::text(&shown)),
        Kind::Charset if value.is_null() => Ok(Value::Null),
        Kind::Charset => charset(&shown).map(Value::text),
        Kind::Collation => {
            crate::bind::collation_named(&shown)?;
            Ok(Value::text(&shown.to_ascii_lowercase()))
        }
        Kind::Mode => sql_mode(&shown).map(|mode| Value::text(&mode)),
        Kind::Isolation => match shown.to_ascii_uppercase().replace(' ', "-").as_str() {
            "READ-UNCOMMITTED" => Ok(Value::text("READ-UNCOMMITTED")),
            "READ-COMMITTED" => Ok(Value::text("READ-COMMITTED")),
            "REPEATABLE-READ" => Ok(Value::text("REPEATABLE-READ")),
            "SERIALIZABLE" => Err(error::not_supported("ISOLATION LEVEL SERIALIZABLE")),
            _ => Err(wrong()),
        },
        Kind::Rules => Ok(value.clone()),
        Kind::Consent => match shown.to_ascii_uppercase().as_str() {
            "1" | "YES" => Ok(Value::text("YES")),
            "0" | "NO" => Ok(Value::text("NO")),
            _ => Err(wrong()),
        },
        Kind::Durability => match shown.to_ascii_lowercase().as_str() {
            REPLICATED => Ok(Value::text(REPLICATED)),
            DISK => Ok(Value::text(DISK)),
            _ => Err(wrong()),
        },
        Kind::Moment => match value {
            Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_) => {
                let seconds = shown.parse::<f64>().map_err(|_| wrong())?;
                if seconds > MOMENT_MAX {
                    Err(wrong())
                } else {
                    Ok(Value::Double(seconds.max(0.0)))
                }
            }
            _ => Err(wrong_type(variable.name)),
        },
        Kind::Zone => match shown.to_ascii_uppercase().as_str() {
            "SYSTEM" | "UTC" | "+00:00" | "+0:00" => Ok(Value::text(&shown)),
            _ => Err(error::not_supported("time zones other than UTC")),
        },
    }
}

/// The character set by its name, if it is one whose texts we can take as they are.
///
/// # Errors
/// 1115 for unknown names, 1235 for others.
pub fn charset(name: &str) -> Result<&'static str, SqlError> {
    match name.to_ascii_lowercase().as_str() {
        "utf8mb4" => Ok("utf8mb4"),
        "utf8" | "utf8mb3" => Ok("utf8mb3"),
        "binary" => Ok("binary"),
        "ascii" => Ok("ascii"),
        "latin1" | "cp1252" | "gbk" | "sjis" | "ucs2" | "utf16" | "utf32" | "latin2" => {
            Err(error::not_supported(&format!("character set {name}; use utf8mb4")))
        }
        _ => Err(error::make(1115, "42000", &format!("Unknown character set: '{name}'"))),
    }
}

/// What the mode TRADITIONAL stands for.
const TRADITIONAL: &str = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                           ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
/// What the mode ANSI stands for.
const ANSI: &str = "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY";

fn sql_mode(text: &str) -> Result<String, SqlError> {
    let mut modes = Vec::new();
    for mode in text.split(',').map(|m| m.trim().to_ascii_uppercase()) {
        match mode.as_str() {
            "NO_UNSIGNED_SUBTRACTION"
            | "ALLOW_INVALID_DATES"
            | "PAD_CHAR_TO_FULL_LENGTH"
            | "TIME_TRUNCATE_FRACTIONAL" => {
                return Err(error::not_supported(&format!("sql_mode {mode}")));
            }
            // What these stand for.
            "TRADITIONAL" => modes.extend(TRADITIONAL.split(',').map(str::to_owned)),
            "ANSI" => modes.extend(ANSI.split(',').map(str::to_owned)),
            _ => {}
        }
        if !mode.is_empty() {
            modes.push(mode);
        }
    }
    crate::set::ordered_modes(&modes)
}

/// User variables.
pub type UserVariables = Map<String, Value>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Who asks for what was changed alone relies on these.
    #[test]
    fn defaults_of_what_each_statement_asks_for() {
        let variables = Variables::default();
        assert_eq!(variables.get("autocommit"), Value::Int(1));
        assert_eq!(variables.get("max_execution_time"), Value::Int(0));
        assert_eq!(variables.get("cte_max_recursion_depth"), Value::Int(1_000));
        assert_ne!(variables.get("transaction_isolation").to_display(), "REPEATABLE-READ");
    }
}
