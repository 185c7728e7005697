//! CREATE, DROP and TRUNCATE: changes of the catalog.

mod build;
mod columns;
pub(crate) mod engine;
mod index;
mod keys;
mod options;
mod partition;
mod selected;
mod table;
mod temporary;
#[cfg(test)]
mod tests;
mod view;

use crate::error::{self, Failure, change_error};
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use crate::syntax::{name, split_name};
use crate::table::{check_not_system, find};
use lats_base::{RefCode, TableId};
use lats_catalog::{Change, ChangeErrorKind, ColumnDef, TableDef};
use lats_client::api::StoreError;
use lats_mysql_syntax::tree::{CreateTable, Statement, TableContent, TableName, TableOption, Text};
use lats_mysql_syntax::{Parsed, Tree};
use lats_values::SqlError;
pub(crate) use options::wrong_collation;
use std::collections::BTreeSet;

impl<S: Store> Session<S> {
    /// A change of definitions. As in MySQL, it commits what is open before it is tried; and it waits for disks as a
    /// commit does.
    pub(crate) async fn define(&mut self, parsed: &Parsed) -> Result<Outcome, Failure> {
        self.check_writable()?;
        if let Some(outcome) = self.define_temporary(parsed).await? {
            return Ok(outcome);
        }
        self.commit().await?;
        let tree = &parsed.tree;
        let outcome = match &parsed.statement {
            Statement::CreateTable(create) => self.create_table(tree, create, &[]).await,
            Statement::CreateIndex(create) => self.create_index(tree, create).await,
            Statement::CreateDatabase { if_not_exists, name, options } => {
                self.create_database(tree, *name, *if_not_exists, options).await
            }
            Statement::DropTables { if_exists, tables, .. } => {
                self.drop_tables(tree, tables, *if_exists).await
            }
            Statement::DropIndex { name, table, lock_and_algorithm } => {
                index::check_way(tree, lock_and_algorithm)?;
                self.drop_index(tree, *name, table).await
            }
            Statement::DropDatabase { if_exists, name } => {
                self.drop_database(tree, *name, *if_exists).await
            }
            Statement::DropViews { if_exists, views } => {
                self.drop_views(tree, views, *if_exists).await
            }
            Statement::Truncate(table) => self.truncate(tree, table).await,
            Statement::RenameTables(pairs) => self.rename_tables(tree, pairs).await,
            _ => Err(error::internal("a statement that nobody runs").into()),
        }?;
        if self.variables.wants_disk() {
            self.shared.store.all_durable().await?;
        }
        Ok(outcome)
    }

    async fn change(&mut self, change: Change, dropping: bool) -> Result<Outcome, Failure> {
        match self.shared.store.change(change).await? {
            Ok(()) => {
                self.has_defined = true;
                Ok(Done::nothing())
            }
            // It was waited for: it is not simply done again.
            Err(refused) if refused.kind == ChangeErrorKind::Temporary => {
                let sql = Some(change_error(&refused, dropping));
                Err(StoreError { code: RefCode::NodeSilent, sql }.into())
            }
            Err(refused) => Err(change_error(&refused, dropping).into()),
        }
    }

    async fn create_database(
        &mut self,
        tree: &Tree,
        database: Text,
        if_not_exists: bool,
        options: &[TableOption],
    ) -> Result<Outcome, Failure> {
        let name = name(tree, database)?.to_owned();
        check_name(&name, 1102, "database")?;
        options::check_database(tree, options)?;
        check_not_system(&name)?;
        if if_not_exists && self.shared.store.catalog().has_database(&name) {
            let text = format!("Can't create database '{name}'; database exists");
            self.add_warnings(vec![error::make(1007, "HY000", &text)]);
        }
        self.change(Change::CreateDatabase { name, if_not_exists }, false).await.map(one_row)
    }

    async fn create_table(
        &mut self,
        tree: &Tree,
        create: &CreateTable,
        selected: &[ColumnDef],
    ) -> Result<Outcome, Failure> {
        let (database, name) = place(tree, &create.table, self.database.as_deref())?;
        check_not_system(&database)?;
        let catalog = self.shared.store.catalog();
        if !catalog.has_database(&database) {
            return Err(error::unknown_database(&database).into());
        }
        let existed = catalog.has_relation(&database, &name);
        if create.if_not_exists && existed {
            let text = format!("Table '{name}' already exists");
            self.add_warnings(vec![error::make(1050, "42S01", &text)]);
        }
        let place = (database, name);
        let (table, start) = self.definition(tree, create, selected, &place)?;
        let if_not_exists = create.if_not_exists;
        let outcome = self.change(Change::CreateTable { table, if_not_exists }, false).await?;
        if !existed {
            let catalog = self.shared.store.catalog();
            let id = find(&catalog, &place.0, &place.1)?.id;
            self.begin_ids(id, start).await?;
        }
        Ok(outcome)
    }

    /// The definition of a table, and where its AUTO_INCREMENT begins.
    fn definition(
        &mut self,
        tree: &Tree,
        create: &CreateTable,
        selected: &[ColumnDef],
        place: &(String, String),
    ) -> Result<(TableDef, Option<u64>), Failure> {
        Ok(match &create.content {
            TableContent::Like { table, .. } => (self.table_like(tree, table, place)?, None),
            TableContent::Elements { elements, options, partitioning, .. } => {
                let options = options::table_options(tree, options)?;
                self.check_engine(&options, &place.1)?;
                let start = options.auto_increment;
                let partitioning = partitioning.as_deref();
                let columns = (elements.as_slice(), selected);
                (table::table_def(tree, columns, options, partitioning, place.clone())?, start)
            }
        })
    }

    /// A table's sequence begins with this number.
    async fn begin_ids(&mut self, table: TableId, start: Option<u64>) -> Result<(), Failure> {
        match start.and_then(|start| start.checked_sub(1)).filter(|last| *last > 0) {
            Some(last) => self.observe(table, last).await,
            None => Ok(()),
        }
    }

    /// As in MySQL: an engine that does not exist is an error, unless `sql_mode` lets another one take its place.
    fn check_engine(
        &mut self,
        options: &options::TableOptions,
        table: &str,
    ) -> Result<(), SqlError> {
        let Some(name) = &options.unknown_engine else { return Ok(()) };
        let modes = self.variables.get("sql_mode").to_display();
        if modes.split(',').any(|mode| mode == "NO_ENGINE_SUBSTITUTION") {
            return Err(engine::unknown(name));
        }
        let text = format!("Using storage engine LatsDB for table '{table}'");
        self.add_warnings(vec![engine::unknown(name), error::make(1266, "HY000", &text)]);
        Ok(())
    }

    async fn drop_database(
        &mut self,
        tree: &Tree,
        database: Text,
        if_exists: bool,
    ) -> Result<Outcome, Failure> {
        let name = name(tree, database)?.to_owned();
        check_name(&name, 1102, "database")?;
        check_not_system(&name)?;
        if if_exists && !self.shared.store.catalog().has_database(&name) {
            let text = format!("Can't drop database '{name}'; database doesn't exist");
            self.add_warnings(vec![error::make(1008, "HY000", &text)]);
        }
        let change = Change::DropDatabase { name: name.clone(), if_exists };
        let outcome = self.change(change, true).await?;
        if self.database.as_deref() == Some(&name) {
            self.database = None;
        }
        Ok(outcome)
    }

    async fn drop_tables(
        &mut self,
        tree: &Tree,
        names: &[TableName],
        if_exists: bool,
    ) -> Result<Outcome, Failure> {
        let tables = places(tree, names, self.database.as_deref())?;
        tables.iter().try_for_each(|place| check_not_system(&place.0))?;
        let catalog = self.shared.store.catalog();
        let missing: Vec<String> = tables
            .iter()
            .filter(|(database, table)| catalog.table(database, table).is_none())
            .filter(|(database, table)| !self.temporaries.has(database, table))
            .map(|(database, table)| format!("{database}.{table}"))
            .collect();
        self.note_missing(&missing, if_exists)?;
        for place in tables {
            if self.drop_temporary(&place).await {
                continue;
            }
            let (database, name) = place;
            self.change(Change::DropTable { database, name, if_exists }, true).await?;
        }
        Ok(Done::nothing())
    }

    /// 1051 for tables that are not there; a warning with IF EXISTS.
    fn note_missing(&mut self, missing: &[String], if_exists: bool) -> Result<(), SqlError> {
        let unknown = |names: &str| error::make(1051, "42S02", &format!("Unknown table '{names}'"));
        if !missing.is_empty() && !if_exists {
            return Err(unknown(&missing.join(",")));
        }
        self.add_warnings(missing.iter().map(|name| unknown(name)).collect());
        Ok(())
    }

    /// RENAME TABLE: tables and views.
    async fn rename_tables(
        &mut self,
        tree: &Tree,
        pairs: &[(TableName, TableName)],
    ) -> Result<Outcome, Failure> {
        let mut places = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            let from = place(tree, from, self.database.as_deref())?;
            let to = place(tree, to, self.database.as_deref())?;
            check_not_system(&from.0)?;
            check_not_system(&to.0)?;
            places.push((from, to));
        }
        self.change(Change::Rename { pairs: places }, false).await
    }

    async fn truncate(&mut self, tree: &Tree, table: &TableName) -> Result<Outcome, Failure> {
        let (database, name) = place(tree, table, self.database.as_deref())?;
        check_not_system(&database)?;
        let catalog = self.catalog();
        if catalog.view(&database, &name).is_some() {
            return Err(error::unknown_table(&database, &name).into());
        }
        find(&catalog, &database, &name)?;
        let (database, name) = self.stored((database, name));
        self.change(Change::TruncateTable { database, name }, false).await
    }
}

/// A table's database and name, which must be names that tables can have.
///
/// # Errors
/// 1046 without a database, 1102, 1103, 1300.
pub(crate) fn place(
    tree: &Tree,
    table: &TableName,
    database: Option<&str>,
) -> Result<(String, String), SqlError> {
    let (database, name) = split_name(tree, table, database)?;
    check_name(&name, 1103, "table")?;
    check_name(&database, 1102, "database")?;
    Ok((database, name))
}

/// Where the tables or views are that a DROP names, each of them once.
fn places(
    tree: &Tree,
    names: &[TableName],
    database: Option<&str>,
) -> Result<Vec<(String, String)>, SqlError> {
    let mut seen = BTreeSet::new();
    let place = |name| {
        let place = place(tree, name, database)?;
        match seen.insert(place.clone()) {
            true => Ok(place),
            false => Err(not_unique(&place.1)),
        }
    };
    names.iter().map(place).collect()
}

fn check_name(name: &str, errno: u16, what: &str) -> Result<(), SqlError> {
    let ends_blank = name.ends_with(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    if name.is_empty() || ends_blank || name.contains('\0') {
        return Err(error::make(errno, "42000", &format!("Incorrect {what} name '{name}'")));
    }
    Ok(())
}

fn not_unique(table: &str) -> SqlError {
    error::make(1066, "42000", &format!("Not unique table/alias: '{table}'"))
}

fn one_row(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done(done) => Outcome::Done(Done { affected_rows: 1, ..done }),
        other => other,
    }
}
