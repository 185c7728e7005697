//! What SHOW tells of databases and tables.

use super::{Subject, default_text, key_text, lists::texts, now_text};
use crate::error::{self, Failure};
use crate::session::Session;
use crate::store::Store;
use crate::table::find;
use lats_catalog::{Catalog, ColumnDef, DefaultValue, IndexDef, TableDef};
use lats_values::{Collation, Value};
use std::fmt::Write as _;

impl<S: Store> Session<S> {
    pub(super) fn show_catalog(&self, subject: &Subject) -> Result<Vec<Vec<Value>>, Failure> {
        let catalog = match subject {
            // Lists of tables are without those of the session.
            Subject::Tables { .. } | Subject::TableStatus { .. } => self.shared.store.catalog(),
            _ => self.catalog(),
        };
        let known = |database: &str| {
            if catalog.has_database(database) || super::is_virtual_database(database) {
                Ok(())
            } else {
                Err(error::unknown_database(database))
            }
        };
        Ok(match subject {
            Subject::Databases => {
                let mut names: Vec<&str> = catalog.databases.iter().map(String::as_str).collect();
                names.push("information_schema");
                names.sort_unstable();
                names.dedup();
                names.into_iter().map(|name| texts(&[name])).collect()
            }
            Subject::Tables { database, full } => {
                known(database)?;
                show_tables(&catalog, database, *full)
            }
            Subject::Columns { database, table, full, extended } => {
                match catalog.view(database, table) {
                    Some(view) => {
                        let base = self.shared.store.catalog();
                        let columns = self.columns_of_view(&base, view)?;
                        let table = TableDef::new(database, table, columns, Vec::new());
                        show_columns(&table, *full, *extended)
                    }
                    None => show_columns(find(&catalog, database, table)?, *full, *extended),
                }
            }
            Subject::CreateView { database, view, current } => {
                let Some(found) = catalog.view(database, view) else {
                    find(&catalog, database, view)?;
                    return Err(error::wrong_object(database, view, "VIEW").into());
                };
                vec![super::views::show_create(found, current.as_deref())]
            }
            Subject::Index { database, table, .. } if catalog.view(database, table).is_some() => {
                Vec::new()
            }
            Subject::CreateTable { database, table } => {
                let def = find(&catalog, database, table)?;
                let text = create_table(def);
                let text = match self.temporaries.has(database, table) {
                    true => text.replacen("CREATE TABLE", "CREATE TEMPORARY TABLE", 1),
                    false => text,
                };
                vec![texts(&[table, &text])]
            }
            Subject::CreateDatabase { database, if_not_exists } => {
                known(database)?;
                vec![texts(&[database, &create_database(database, *if_not_exists)])]
            }
            Subject::Index { database, table, extended } => {
                show_index(find(&catalog, database, table)?, *extended)
            }
            Subject::TableStatus { database } => {
                known(database)?;
                show_status(&catalog, database)
            }
            Subject::Empty { database: Some(database), .. } => {
                known(database)?;
                Vec::new()
            }
            _ => Vec::new(),
        })
    }
}

fn show_status(catalog: &Catalog, database: &str) -> Vec<Vec<Value>> {
    let of = catalog.tables.values().filter(|t| t.database == database);
    let views = catalog.views.values().filter(|v| v.database == database);
    let mut rows: Vec<(&str, Vec<Value>)> =
        of.map(|t| (t.name.as_str(), table_status(t))).collect();
    rows.extend(views.map(|view| (view.name.as_str(), view_status(&view.name))));
    rows.sort_unstable_by_key(|(name, _)| *name);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn show_tables(catalog: &Catalog, database: &str, full: bool) -> Vec<Vec<Value>> {
    let of = catalog.tables.values().filter(|t| t.database == database);
    let views = catalog.views.values().filter(|v| v.database == database);
    let mut names: Vec<(&str, &str)> = of.map(|t| (t.name.as_str(), "BASE TABLE")).collect();
    names.extend(views.map(|v| (v.name.as_str(), "VIEW")));
    names.sort_unstable();
    let row = |(name, kind)| match full {
        true => texts(&[name, kind]),
        false => texts(&[name]),
    };
    names.into_iter().map(row).collect()
}

fn create_database(database: &str, if_not_exists: bool) -> String {
    let condition = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
    format!(
        "CREATE DATABASE {condition}{} /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE \
         utf8mb4_0900_ai_ci */",
        quoted(database)
    )
}

fn visible(table: &TableDef) -> impl Iterator<Item = (&ColumnDef, u16)> {
    table.columns.iter().zip(0u16..).filter(|(column, _)| !column.hidden)
}

/// Its indexes, without those that are being built.
fn complete_indexes(table: &TableDef) -> impl Iterator<Item = &IndexDef> {
    table.indexes.iter().filter(|i| i.unique.is_none_or(|u| u.builder.is_none()))
}

fn extra(column: &ColumnDef) -> String {
    let mut words = Vec::new();
    if column.auto_increment {
        words.push("auto_increment".to_owned());
    }
    if column.default == DefaultValue::Now {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    if column.on_update_now {
        words.push(format!("on update {}", now_text(column)));
    }
    words.join(" ")
}

fn show_columns(table: &TableDef, full: bool, extended: bool) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let columns = table.columns.iter().zip(0u16..);
    for (column, at) in columns.filter(|(column, _)| extended || !column.hidden) {
        let kind = &column.column_type;
        let mut row = texts(&[&column.name, &kind.sql_name()]);
        if full {
            row.push(match kind.kind.is_text() {
                true => Value::text(kind.collation.name()),
                false => Value::Null,
            });
        }
        row.push(Value::text(if kind.nullable { "YES" } else { "NO" }));
        row.push(Value::text(key_text(table, at)));
        row.push(default_text(column).map_or(Value::Null, |text| Value::text(&text)));
        row.push(Value::text(&extra(column)));
        if full {
            row.push(Value::text("select,insert,update,references"));
            row.push(Value::text(""));
        }
        rows.push(row);
    }
    rows
}

fn show_index(table: &TableDef, extended: bool) -> Vec<Vec<Value>> {
    let hidden = |at: &u16| table.columns.get(usize::from(*at)).is_some_and(|c| c.hidden);
    let has_primary = extended || !table.primary_key.iter().any(hidden);
    let primary = has_primary.then_some(("PRIMARY", 0, &table.primary_key));
    let secondary = complete_indexes(table)
        .map(|i| (i.name.as_str(), u64::from(i.unique.is_none()), &i.columns));
    let mut rows = Vec::new();
    for (name, non_unique, columns) in primary.into_iter().chain(secondary) {
        for (at, number) in columns.iter().zip(1u64..) {
            let Some(column) = table.columns.get(usize::from(*at)) else { continue };
            let mut row = vec![
                Value::text(&table.name),
                Value::UInt(non_unique),
                Value::text(name),
                Value::UInt(number),
                Value::text(&column.name),
                Value::text("A"),
                Value::Null,
                Value::Null,
                Value::Null,
            ];
            row.push(Value::text(if column.column_type.nullable { "YES" } else { "" }));
            row.extend(texts(&["BTREE", "", "", "YES"]));
            row.push(Value::Null);
            rows.push(row);
        }
    }
    rows
}

fn table_status(table: &TableDef) -> Vec<Value> {
    let mut row = texts(&[&table.name, "LatsDB"]);
    row.push(Value::UInt(10));
    row.push(Value::text("Fixed"));
    row.extend(std::iter::repeat_n(Value::Null, 10));
    row.push(Value::text(Collation::default().name()));
    row.push(Value::Null);
    row.push(Value::text(""));
    row.push(Value::text(&table.comment));
    row
}

/// The row of a view with which nothing is wrong.
fn view_status(name: &str) -> Vec<Value> {
    let mut row = texts(&[name]);
    row.resize(COMMENT_OF_STATUS, Value::Null);
    row.push(Value::text("VIEW"));
    row
}

/// Where the comment stands in a row of SHOW TABLE STATUS.
pub(super) const COMMENT_OF_STATUS: usize = 17;

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn names(table: &TableDef, columns: &[u16]) -> String {
    let name =
        |at: &u16| table.columns.get(usize::from(*at)).map_or(String::new(), |c| quoted(&c.name));
    columns.iter().map(name).collect::<Vec<_>>().join(",")
}

/// The statement that makes the table again.
fn create_table(table: &TableDef) -> String {
    let mut lines: Vec<String> = visible(table).map(|(column, _)| column_line(column)).collect();
    let hidden = |at: &u16| table.columns.get(usize::from(*at)).is_some_and(|c| c.hidden);
    if !table.primary_key.iter().any(hidden) {
        lines.push(format!("  PRIMARY KEY ({})", names(table, &table.primary_key)));
    }
    for index in complete_indexes(table) {
        let kind = if index.unique.is_some() { "UNIQUE KEY" } else { "KEY" };
        let columns = names(table, &index.columns);
        lines.push(format!("  {kind} {} ({columns})", quoted(&index.name)));
    }
    let mut text = format!("CREATE TABLE {} (\n{}\n)", quoted(&table.name), lines.join(",\n"));
    text.push_str(" ENGINE=LatsDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci");
    if !table.comment.is_empty() {
        let _ = write!(text, " COMMENT={}", text_literal(&table.comment));
    }
    if !table.partition_key.is_empty() {
        let columns = names(table, &table.partition_key);
        let _ = write!(text, "\n/*!50100 PARTITION BY KEY ({columns}) */");
    }
    text
}

fn column_line(column: &ColumnDef) -> String {
    let kind = &column.column_type;
    let mut line = format!("  {} {}", quoted(&column.name), kind.sql_name());
    if kind.kind.is_text() && kind.collation != Collation::default() {
        let _ = write!(line, " CHARACTER SET utf8mb4 COLLATE {}", kind.collation.name());
    }
    if !kind.nullable {
        line.push_str(" NOT NULL");
    }
    match &column.default {
        DefaultValue::Literal(Value::Null) => line.push_str(" DEFAULT NULL"),
        DefaultValue::None if kind.nullable => line.push_str(" DEFAULT NULL"),
        DefaultValue::None => {}
        DefaultValue::Literal(value) => {
            let _ = write!(line, " DEFAULT {}", text_literal(&value.to_display()));
        }
        DefaultValue::Now => {
            let _ = write!(line, " DEFAULT {}", now_text(column));
        }
    }
    if column.on_update_now {
        let _ = write!(line, " ON UPDATE {}", now_text(column));
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    }
    line
}
