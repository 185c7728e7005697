//! What SHOW lists that is not in the catalog.

use super::{Rows, Subject, number_type, text_type};
use crate::error::{self, Failure};
use crate::session::Session;
use crate::sessions::{Doing, Listed};
use crate::store::Store;
use crate::variables::Variables;
use lats_values::{Collation, ColumnType, Value};

pub(super) const TRIGGERS: [&str; 11] = [
    "Trigger",
    "Event",
    "Table",
    "Statement",
    "Timing",
    "Created",
    "sql_mode",
    "Definer",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];
pub(super) const EVENTS: [&str; 15] = [
    "Db",
    "Name",
    "Definer",
    "Time zone",
    "Type",
    "Execute at",
    "Interval value",
    "Interval field",
    "Starts",
    "Ends",
    "Status",
    "Originator",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];
pub(super) const ROUTINES: [&str; 11] = [
    "Db",
    "Name",
    "Type",
    "Definer",
    "Modified",
    "Created",
    "Security_type",
    "Comment",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];
const FULL_COLUMNS: [&str; 9] =
    ["Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment"];
const INDEX: [&str; 15] = [
    "Table",
    "#Non_unique",
    "Key_name",
    "#Seq_in_index",
    "Column_name",
    "Collation",
    "#Cardinality",
    "#Sub_part",
    "Packed",
    "Null",
    "Index_type",
    "Comment",
    "Index_comment",
    "Visible",
    "Expression",
];
const TABLE_STATUS: [&str; 18] = [
    "Name",
    "Engine",
    "#Version",
    "Row_format",
    "#Rows",
    "#Avg_row_length",
    "#Data_length",
    "#Max_data_length",
    "#Index_length",
    "#Data_free",
    "#Auto_increment",
    "Create_time",
    "Update_time",
    "Check_time",
    "Collation",
    "#Checksum",
    "Create_options",
    "Comment",
];
pub(super) const OPEN_TABLES: [&str; 4] = ["Database", "Table", "In_use", "Name_locked"];
pub(super) const PROFILES: [&str; 3] = ["#Query_ID", "Duration", "Query"];

/// The columns of what is shown.
pub(super) fn columns(subject: &Subject) -> Vec<(String, ColumnType)> {
    if let Subject::Tables { database, full } = subject {
        let mut columns = vec![(format!("Tables_in_{database}"), text_type())];
        if *full {
            columns.push(("Table_type".to_owned(), text_type()));
        }
        return columns;
    }
    let typed = |name: &&str| match name.strip_prefix('#') {
        Some(number) => (number.to_owned(), number_type()),
        None => ((*name).to_owned(), text_type()),
    };
    names(subject).iter().map(typed).collect()
}

/// The names of the columns; `#` marks a number.
fn names(subject: &Subject) -> &'static [&'static str] {
    match subject {
        Subject::Variables { .. } | Subject::Status => &["Variable_name", "Value"],
        Subject::Databases => &["Database"],
        Subject::Tables { .. } => &[],
        Subject::Columns { full: false, .. } => {
            &["Field", "Type", "Null", "Key", "Default", "Extra"]
        }
        Subject::Columns { full: true, .. } => &FULL_COLUMNS,
        Subject::CreateTable { .. } => &["Table", "Create Table"],
        Subject::CreateView { .. } => {
            &["View", "Create View", "character_set_client", "collation_connection"]
        }
        Subject::CreateDatabase { .. } => &["Database", "Create Database"],
        Subject::Index { .. } => &INDEX,
        Subject::TableStatus { .. } => &TABLE_STATUS,
        Subject::Engines => &["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"],
        Subject::Collation => {
            &["Collation", "Charset", "#Id", "Default", "Compiled", "#Sortlen", "Pad_attribute"]
        }
        Subject::Charset => &["Charset", "Description", "Default collation", "#Maxlen"],
        Subject::Warnings { .. } => &["Level", "#Code", "Message"],
        Subject::Count { errors_only: false } => &["#@@session.warning_count"],
        Subject::Count { errors_only: true } => &["#@@session.error_count"],
        Subject::ProcessList { .. } => {
            &["#Id", "User", "Host", "db", "Command", "#Time", "State", "Info"]
        }
        Subject::Plugins => &["Name", "Status", "Type", "Library", "License"],
        Subject::Privileges => &["Privilege", "Context", "Comment"],
        Subject::Grants { .. } => &["Grants"],
        Subject::Empty { columns, .. } => columns,
    }
}

pub(super) fn texts(values: &[&str]) -> Vec<Value> {
    values.iter().map(|value| Value::text(value)).collect()
}

impl<S: Store> Session<S> {
    pub(super) fn shown(&self, subject: &Subject) -> Result<Rows, Failure> {
        let rows = match subject {
            Subject::Variables { global } => self.show_variables(*global),
            Subject::Status => status(),
            Subject::Engines => vec![texts(&[
                "LatsDB",
                "DEFAULT",
                "Replicated in-memory tables",
                "YES",
                "NO",
                "YES",
            ])],
            Subject::Collation => collations(),
            Subject::Charset => charsets(),
            Subject::Warnings { errors_only } => self.show_warnings(*errors_only),
            Subject::Count { errors_only } => {
                let count = self.show_warnings(*errors_only).len();
                vec![vec![Value::UInt(u64::try_from(count).unwrap_or(u64::MAX))]]
            }
            Subject::Grants { user } => self.show_grants(user.as_ref())?,
            Subject::Plugins | Subject::Privileges => Vec::new(),
            other => self.show_catalog(other)?,
        };
        Ok(Rows { columns: columns(subject), rows })
    }

    fn show_variables(&self, global: bool) -> Vec<Vec<Value>> {
        let fresh = self.global_variables();
        let source = if global { &fresh } else { &self.variables };
        let row = |name: &'static str| texts(&[name, &source.shown(name)]);
        Variables::names().into_iter().map(row).collect()
    }

    fn show_warnings(&self, errors_only: bool) -> Vec<Vec<Value>> {
        let error = self.has_failed().then(|| self.warnings.len().saturating_sub(1));
        let level = |(at, errno): (usize, u16)| match errno {
            _ if error == Some(at) => "Error",
            1003 | 1007 | 1008 | 1050 | 1051 | 1305 | 1355 => "Note",
            _ => "Warning",
        };
        self.warnings
            .iter()
            .enumerate()
            .map(|(at, warning)| (level((at, warning.errno)), warning))
            .filter(|(level, _)| !errors_only || *level == "Error")
            .map(|(level, warning)| {
                let code = Value::UInt(u64::from(warning.errno));
                vec![Value::text(level), code, Value::text(&warning.message)]
            })
            .collect()
    }

    /// There is one account, which may do everything.
    fn show_grants(
        &self,
        user: Option<&(String, Option<String>)>,
    ) -> Result<Vec<Vec<Value>>, Failure> {
        let (own, host) = (&self.client.user, &self.client.host);
        if let Some((user, at)) = user
            && (user != own || at.as_ref().is_some_and(|at| at != "%" && at != host))
        {
            let at = at.as_deref().unwrap_or("%");
            let text = format!("There is no such grant defined for user '{user}' on host '{at}'");
            return Err(error::make(1141, "42000", &text).into());
        }
        Ok(vec![texts(&[&format!("GRANT ALL PRIVILEGES ON *.* TO `{own}`@`{host}`")])])
    }

    /// The sessions of all nodes.
    pub(super) async fn show_processes(&mut self, full: bool) -> Result<Rows, Failure> {
        let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::text);
        let shown = |statement: String| match full {
            true => statement,
            false => statement.chars().take(SHOWN_CHARS).collect(),
        };
        let row = |listed: Listed| {
            vec![
                Value::UInt(u64::from(listed.id)),
                Value::text(&listed.user),
                Value::text(&listed.host),
                text(&listed.database),
                Value::text(match listed.doing {
                    Doing::Rests => "Sleep",
                    Doing::Queries => "Query",
                    Doing::Executes => "Execute",
                }),
                Value::UInt(listed.seconds),
                Value::text(if listed.doing == Doing::Rests { "" } else { "executing" }),
                text(&listed.statement.map(shown)),
            ]
        };
        let subject = Subject::ProcessList { full };
        let rows = self.all_sessions().await?.into_iter().map(row).collect();
        Ok(Rows { columns: columns(&subject), rows })
    }
}

/// Characters of a statement that SHOW PROCESSLIST shows without FULL, as in MySQL.
const SHOWN_CHARS: usize = 100;

fn status() -> Vec<Vec<Value>> {
    ["Compression", "Ssl_cipher", "Ssl_version"]
        .iter()
        .map(|name| texts(&[name, if *name == "Compression" { "OFF" } else { "" }]))
        .collect()
}

fn collations() -> Vec<Vec<Value>> {
    Collation::ALL
        .iter()
        .map(|c| {
            let default = matches!(c, Collation::Utf8mb4_0900AiCi | Collation::Binary);
            let pad = if c.pads_space() { "PAD SPACE" } else { "NO PAD" };
            vec![
                Value::text(c.name()),
                Value::text(c.charset()),
                Value::UInt(u64::from(c.id())),
                Value::text(if default { "Yes" } else { "" }),
                Value::text("Yes"),
                Value::UInt(if default { 0 } else { 1 }),
                Value::text(pad),
            ]
        })
        .collect()
}

fn charsets() -> Vec<Vec<Value>> {
    let row = |name, description, collation, bytes| {
        vec![
            Value::text(name),
            Value::text(description),
            Value::text(collation),
            Value::UInt(bytes),
        ]
    };
    vec![
        row("binary", "Binary pseudo charset", "binary", 1),
        row("utf8mb4", "UTF-8 Unicode", "utf8mb4_0900_ai_ci", 4),
    ]
}
