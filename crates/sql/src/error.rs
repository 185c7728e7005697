//! MySQL's errors: numbers, states and texts; and how refusals of the cluster become such errors.

use lats_base::{ErrorClass, NodeId, RefCode};
use lats_catalog::{ChangeError, ChangeErrorKind};
use lats_client::api::StoreError;
use lats_values::SqlError;

/// Why a statement stopped, before it is known whether it can be run again.
#[derive(Debug)]
pub enum Failure {
    /// The statement is at fault.
    Sql(SqlError),
    /// The cluster refused.
    Store(StoreError),
    /// The client is gone: nobody wants an answer.
    Gone(std::io::Error),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::Interrupted {
            return Self::Store(RefCode::Interrupted.into());
        }
        Self::Gone(error)
    }
}

impl Failure {
    /// True if no node could do it now: that was waited for.
    pub(crate) fn is_not_serving(&self) -> bool {
        matches!(self, Self::Store(error) if error.code == RefCode::NotServing)
    }

    /// True if the same statement may succeed when it is run again, and nothing happened.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Store(error) => {
                let old = self.is_outdated();
                let slow = matches!(
                    error.code,
                    RefCode::LockTimeout
                        | RefCode::LockNotFree
                        | RefCode::MemoryFull
                        | RefCode::DiskFull
                        | RefCode::NodeSilent
                );
                old || (error.class() == ErrorClass::Temporary && !slow)
            }
            Self::Sql(_) | Self::Gone(_) => false,
        }
    }

    /// True if the statement was planned for a catalog or view that has changed.
    pub fn is_outdated(&self) -> bool {
        let Self::Store(error) = self else { return false };
        // A table or index that is unknown was dropped or made again.
        matches!(
            error.code,
            RefCode::TableUnknown
                | RefCode::IndexUnknown
                | RefCode::SchemaVersionOld
                | RefCode::StaleView
        )
    }

    /// The error that the client sees.
    pub fn into_sql(self) -> SqlError {
        match self {
            Self::Sql(error) => error,
            Self::Store(error) => store_error(&error),
            Self::Gone(error) => make(1158, "08S01", &error.to_string()),
        }
    }
}

/// An error with this number, state and text.
pub fn make(errno: u16, sqlstate: &str, message: &str) -> SqlError {
    let mut state = *b"HY000";
    if let Ok(given) = <[u8; 5]>::try_from(sqlstate.as_bytes()) {
        state = given;
    }
    SqlError { errno, sqlstate: state, message: message.to_owned() }
}

/// 1235: something that LatsDB does not have yet.
pub fn not_supported(what: &str) -> SqlError {
    make(1235, "42000", &format!("This version of LatsDB doesn't yet support '{what}'"))
}

/// 1064: the text is not SQL.
pub fn syntax(message: &str) -> SqlError {
    make(
        1064,
        "42000",
        &format!(
            "You have an error in your SQL syntax; check the manual that corresponds to your \
             MySQL server version for the right syntax to use: {message}"
        ),
    )
}

/// 1065: a statement of nothing but blanks and comments.
pub fn empty_query() -> SqlError {
    make(1065, "42000", "Query was empty")
}

/// 1046: a table without a database, and none is selected.
pub fn no_database() -> SqlError {
    make(1046, "3D000", "No database selected")
}

/// 1049: no such database.
pub fn unknown_database(name: &str) -> SqlError {
    make(1049, "42000", &format!("Unknown database '{name}'"))
}

/// 1815: something here is wrong, and not with the statement.
pub fn internal(what: &str) -> SqlError {
    make(1815, "HY000", &format!("Internal error: {what}"))
}

/// 1091: an index is gone before it was ready.
pub fn dropped_index(name: &str) -> SqlError {
    make(1091, "42000", &format!("Index '{name}' was dropped before it was ready"))
}

/// 1146: no such table.
pub fn unknown_table(database: &str, table: &str) -> SqlError {
    make(1146, "42S02", &format!("Table '{database}.{table}' doesn't exist"))
}

/// 1347: a table where a view is meant, or the other way round.
pub fn wrong_object(database: &str, name: &str, wanted: &str) -> SqlError {
    make(1347, "HY000", &format!("'{database}.{name}' is not {wanted}"))
}

/// 1356: what a view names is gone.
pub fn invalid_view(database: &str, name: &str) -> SqlError {
    let text = format!(
        "View '{database}.{name}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights \
         to use them"
    );
    make(1356, "HY000", &text)
}

/// 1054: no such column.
pub fn unknown_column(name: &str, clause: &str) -> SqlError {
    make(1054, "42S22", &format!("Unknown column '{name}' in '{clause}'"))
}

/// 1175: `sql_safe_updates` is set.
pub fn unsafe_update() -> SqlError {
    let text = "You are using safe update mode and you tried to update a table without a WHERE that \
                uses a KEY column.";
    make(1175, "HY000", text)
}

/// 1305: no such function.
pub fn unknown_function(name: &str) -> SqlError {
    make(1305, "42000", &format!("FUNCTION {name} does not exist"))
}

/// 1582: a function that takes other arguments.
pub fn wrong_argument_count(name: &str) -> SqlError {
    make(
        1582,
        "42000",
        &format!("Incorrect parameter count in the call to native function '{name}'"),
    )
}

/// 1193: no such variable.
pub fn unknown_variable(name: &str) -> SqlError {
    make(1193, "HY000", &format!("Unknown system variable '{name}'"))
}

/// 1231: a value that the variable does not take.
pub fn wrong_variable_value(name: &str, value: &str) -> SqlError {
    make(1231, "42000", &format!("Variable '{name}' can't be set to the value of '{value}'"))
}

/// 1062: the key is taken.
pub fn duplicate_entry(key: &str, table: &str, index: &str) -> SqlError {
    make(1062, "23000", &format!("Duplicate entry '{key}' for key '{table}.{index}'"))
}

/// 1364: a column that must be given.
pub fn no_default(column: &str) -> SqlError {
    make(1364, "HY000", &format!("Field '{column}' doesn't have a default value"))
}

/// 1423: a column that must be given, behind a view.
pub fn no_default_in_view(database: &str, view: &str) -> SqlError {
    let text =
        format!("Field of view '{database}.{view}' underlying table doesn't have a default value");
    make(1423, "HY000", &text)
}

/// 1048: NULL for a column that does not take it.
pub fn null_not_allowed(column: &str) -> SqlError {
    make(1048, "23000", &format!("Column '{column}' cannot be null"))
}

/// 1136: a row of the wrong length.
pub fn value_count(row: usize) -> SqlError {
    make(1136, "21S01", &format!("Column count doesn't match value count at row {row}"))
}

/// 1038: a statement that wants to hold too much.
pub fn out_of_statement_memory() -> SqlError {
    make(
        1038,
        "HY001",
        "Out of memory for this statement (256 MiB, or half of the node's memory if that is less); ask for fewer rows, or in an index's order",
    )
}

/// 1317: KILL.
pub fn interrupted() -> SqlError {
    make(1317, "70100", "Query execution was interrupted")
}

/// 3024: `max_execution_time`.
pub fn out_of_time() -> SqlError {
    let text = "Query execution was interrupted, maximum statement execution time exceeded";
    make(3024, "HY000", text)
}

/// 4082: the node has no more memory.
pub fn out_of_node_memory(bytes: usize) -> SqlError {
    let text = format!(
        "Out of memory on this node ({} MiB for rows, statements and clients together); try again when fewer statements run, \
         ask for less at once, or start nodes with more --memory-mib",
        bytes >> 20
    );
    make(4082, "HY000", &text)
}

/// 4081: a client keeps too much.
pub fn out_of_client_memory(bytes: usize) -> SqlError {
    let text = format!(
        "Out of memory for this connection ({} MiB); close prepared statements and cursors, set large user variables to NULL, \
         or send less at once",
        bytes >> 20
    );
    make(4081, "HY000", &text)
}

/// 3170: a statement whose tree or plan is too large.
pub fn out_of_parser_memory(bytes: usize) -> SqlError {
    let text = format!(
        "Memory capacity of {bytes} bytes for 'parser_max_mem_size' exceeded. Parser bailed out for this query. Send fewer values in one \
             statement"
    );
    make(3170, "HY000", &text)
}

/// 1213: the transaction was rolled back before.
pub fn transaction_lost() -> SqlError {
    make(
        1213,
        "40001",
        "The transaction was rolled back by an earlier error; send ROLLBACK and begin it again",
    )
}

/// Nobody knows whether a transaction or a definition has taken effect. MySQL leaves the numbers from 50,000 to 51,999 to others; no
/// driver takes this one for a reason to run the statement again.
pub const OUTCOME_UNKNOWN: u16 = 50_029;
/// A statement has taken effect, and nobody knows on how many rows.
pub const RESULTS_LOST: u16 = 50_038;

/// 50029, with the standard's state "transaction resolution unknown".
fn unknown_outcome(why: &str) -> SqlError {
    make(OUTCOME_UNKNOWN, "08007", &format!("It is not known whether this took effect: {why}"))
}

/// The session's node does not hear the majority of the cluster.
pub fn cut_off(node: NodeId) -> SqlError {
    let text = format!(
        "Got temporary error: node {node} is cut off from the majority of the cluster and answers nothing that needs the others; use \
         another node, or mend the network (`latsdb status` at another node shows who is missing): {}",
        RefCode::NotServing
    );
    make(1297, "HY000", &text)
}

/// 1053: what a client is told between two transactions when its node is to stop (STOP-2).
pub fn sent_elsewhere() -> SqlError {
    let text = "Server shutdown in progress: this node is to stop. A statement that has come meanwhile was not run: connect again, to \
                another node, and run it there";
    make(1053, "08S01", text)
}

/// 1205: rows that a statement covers have changed each time that it looked (LOCK-7).
pub fn looked_too_often(looks: u32) -> SqlError {
    let text = format!(
        "Lock wait timeout exceeded; try restarting transaction: the statement has waited for locks in {looks} looks one after the \
         other, and each time other transactions may have changed what its conditions cover; run it again, with narrower conditions \
         if this goes on"
    );
    make(1205, "HY000", &text)
}

/// The client's view of a refusal of the cluster.
pub fn store_error(error: &StoreError) -> SqlError {
    if let Some(sql) = &error.sql {
        return sql.clone();
    }
    let text = error.code.to_string();
    match error.code {
        RefCode::LockTimeout | RefCode::LockQueueFull => make(
            1205,
            "HY000",
            &format!("Lock wait timeout exceeded; try restarting transaction: {text}"),
        ),
        RefCode::LockNotFree => make(
            3572,
            "HY000",
            "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.",
        ),
        RefCode::TableDropped => make(
            1412,
            "HY000",
            &format!("Table definition has changed, please retry transaction: {text}"),
        ),
        RefCode::DiskFull => make(1021, "HY000", &format!("Disk full: {text}")),
        RefCode::MemoryFull => make(1114, "HY000", &format!("The table is full: {text}")),
        RefCode::NodeFailed
        | RefCode::Deadlock
        | RefCode::TransactionAborted
        | RefCode::TransactionUnknown
        | RefCode::CoordinatorFailed => {
            make(1213, "40001", &format!("Transaction rolled back, try restarting it: {text}"))
        }
        RefCode::OutcomeUnknown => unknown_outcome(&text),
        RefCode::ResultsLost => {
            make(RESULTS_LOST, "HY000", &format!("The result of the statement is lost: {text}"))
        }
        RefCode::Interrupted => interrupted(),
        RefCode::ShuttingDown => {
            make(1053, "08S01", &format!("Server shutdown in progress: {text}"))
        }
        RefCode::RowTooLarge => make(1118, "42000", &format!("Row size too large: {text}")),
        RefCode::KeyTooLarge => make(1071, "42000", &format!("Specified key was too long: {text}")),
        RefCode::KeyExists => make(1022, "23000", &format!("Can't write; duplicate key: {text}")),
        code if code.class() == ErrorClass::Temporary => {
            make(1297, "HY000", &format!("Got temporary error: {text}"))
        }
        _ => make(1296, "HY000", &format!("Got error from the cluster: {text}")),
    }
}

/// The client's view of a refused change of the catalog. `dropping` a missing table has a number
/// of its own.
pub fn change_error(error: &ChangeError, dropping: bool) -> SqlError {
    let (errno, state) = match error.kind {
        ChangeErrorKind::DatabaseExists => (1007, "HY000"),
        ChangeErrorKind::DatabaseMissing => (1008, "HY000"),
        ChangeErrorKind::DatabaseUnknown => (1049, "42000"),
        ChangeErrorKind::TableExists => (1050, "42S01"),
        ChangeErrorKind::TableMissing if dropping => (1051, "42S02"),
        ChangeErrorKind::TableMissing => (1146, "42S02"),
        ChangeErrorKind::IndexMissing => (1091, "42000"),
        ChangeErrorKind::NotSupported => (1235, "42000"),
        ChangeErrorKind::Temporary => (1297, "HY000"),
        ChangeErrorKind::OutcomeUnknown => return unknown_outcome(&error.message),
        ChangeErrorKind::NameTooLong => (1059, "42000"),
        ChangeErrorKind::CommentTooLong => (1628, "HY000"),
        ChangeErrorKind::NodeGroupLost => (1296, "HY000"),
        ChangeErrorKind::WrongObject => (1347, "HY000"),
        ChangeErrorKind::SchemaChange => (1450, "HY000"),
    };
    make(errno, state, &error.message)
}
