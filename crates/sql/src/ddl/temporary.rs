//! CREATE TEMPORARY TABLE and DROP TEMPORARY TABLE. As in MySQL, they commit nothing.

use super::{place, places};
use crate::error::{self, Failure};
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use crate::table::{check_not_system, find};
use lats_catalog::{Change, ColumnDef, TableDef};
use lats_mysql_syntax::tree::{CreateTable, Statement, TableName};
use lats_mysql_syntax::{Parsed, Tree};

impl<S: Store> Session<S> {
    /// The definition, if it is about temporary tables.
    pub(super) async fn define_temporary(
        &mut self,
        parsed: &Parsed,
    ) -> Result<Option<Outcome>, Failure> {
        let tree = &parsed.tree;
        match &parsed.statement {
            Statement::CreateTable(create) if create.is_temporary => {
                self.create_temporary(tree, create, &[]).await.map(Some)
            }
            Statement::DropTables { is_temporary: true, if_exists, tables } => {
                self.drop_temporaries(tree, tables, *if_exists).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(super) async fn create_temporary(
        &mut self,
        tree: &Tree,
        create: &CreateTable,
        selected: &[ColumnDef],
    ) -> Result<Outcome, Failure> {
        let to = place(tree, &create.table, self.database.as_deref())?;
        check_not_system(&to.0)?;
        if !self.catalog().has_database(&to.0) {
            return Err(error::unknown_database(&to.0).into());
        }
        if self.temporaries.has(&to.0, &to.1) {
            let text = format!("Table '{}' already exists", to.1);
            let exists = error::make(1050, "42S01", &text);
            if !create.if_not_exists {
                return Err(exists.into());
            }
            self.add_warnings(vec![exists]);
            return Ok(Done::nothing());
        }
        let (table, start) = self.definition(tree, create, selected, &to)?;
        let stored = self.new_temporary()?;
        let table = TableDef { database: String::new(), name: stored.clone(), ..table };
        // Whoever waits for the change may go at any moment, and what is told of it may be lost.
        let left = self.left(stored.clone());
        match self.change(Change::CreateTemporary { table }, false).await {
            Ok(_) => {
                self.add_temporary(to.clone(), stored);
                left.forget();
            }
            Err(failure) => {
                if !matches!(failure, Failure::Store(_)) {
                    left.forget();
                }
                return Err(failure);
            }
        }
        let id = find(&self.catalog(), &to.0, &to.1)?.id;
        self.begin_ids(id, start).await?;
        Ok(Done::nothing())
    }

    async fn drop_temporaries(
        &mut self,
        tree: &Tree,
        names: &[TableName],
        if_exists: bool,
    ) -> Result<Outcome, Failure> {
        let places = places(tree, names, self.database.as_deref())?;
        let missing: Vec<String> = places
            .iter()
            .filter(|(database, name)| !self.temporaries.has(database, name))
            .map(|(database, name)| format!("{database}.{name}"))
            .collect();
        self.note_missing(&missing, if_exists)?;
        for place in &places {
            self.drop_temporary(place).await;
        }
        Ok(Done::nothing())
    }
}
