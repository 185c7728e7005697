//! CREATE TABLE … SELECT: a table with the columns and the rows of a query.

use super::place;
use crate::error::{self, Failure};
use crate::plan::insert::{InsertPlan, OnConflict};
use crate::plan::query::QueryPlan;
use crate::plan::{ColumnMeta, CreateAsPlan};
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use crate::table::{Table, find};
use lats_catalog::{Change, ColumnDef};
use lats_mysql_syntax::Keyword as K;
use lats_mysql_syntax::tree::{CreateTable, Statement, TableContent};
use lats_values::{ColumnType, TypeKind, Value};
use std::sync::Arc;

impl<S: Store> Session<S> {
    pub(crate) async fn create_as(
        &mut self,
        plan: &CreateAsPlan,
        externals: &[Value],
    ) -> Result<Outcome, Failure> {
        self.check_writable()?;
        let tree = &plan.parsed.tree;
        let Statement::CreateTable(create) = &plan.parsed.statement else {
            return Err(error::internal("CREATE TABLE was expected").into());
        };
        if !create.is_temporary {
            self.commit().await?;
        }
        let selected: Vec<ColumnDef> = plan.query.columns.iter().map(column).collect();
        for column in &selected {
            super::check_name(&column.name, 1166, "column")?;
        }
        let (database, name) = place(tree, &create.table, self.database.as_deref())?;
        let (outcome, existed, catalog) = if create.is_temporary {
            let existed = self.temporaries.has(&database, &name);
            let outcome = self.create_temporary(tree, create, &selected).await?;
            (outcome, existed, self.catalog())
        } else {
            let existed = self.shared.store.catalog().has_relation(&database, &name);
            let outcome = self.create_table(tree, create, &selected).await?;
            (outcome, existed, self.shared.store.catalog())
        };
        if existed {
            return Ok(outcome);
        }
        let table = Arc::new(Table::new(find(&catalog, &database, &name)?));
        match self.fill(create, table, &plan.query, externals).await {
            Ok(done) => Ok(done),
            // As if it had never been made.
            Err(failure) if create.is_temporary => {
                self.drop_temporary(&(database, name)).await;
                Err(failure)
            }
            Err(failure) => {
                let change = Change::DropTable { database, name, if_exists: true };
                self.change(change, true).await?;
                Err(failure)
            }
        }
    }

    async fn fill(
        &mut self,
        create: &CreateTable,
        table: Arc<Table>,
        query: &Arc<QueryPlan>,
        externals: &[Value],
    ) -> Result<Outcome, Failure> {
        let duplicates = match &create.content {
            TableContent::Elements { duplicates, .. } => *duplicates,
            TableContent::Like { .. } => K::None,
        };
        let place_of = |name: &str| {
            query.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
        };
        let columns = table.def.columns.iter();
        let sources =
            columns.map(|column| place_of(&column.name).filter(|_| !column.hidden)).collect();
        let plan = InsertPlan {
            sources,
            rows: Vec::new(),
            query: Some(Arc::clone(query)),
            names_columns: false,
            conflict: match duplicates {
                K::IGNORE => OnConflict::Ignore,
                K::REPLACE => OnConflict::Replace,
                _ => OnConflict::Error,
            },
            strict: duplicates != K::IGNORE,
            view: None,
            check: None,
            tells_ids: true,
            table,
        };
        match self.insert(&plan, externals, None).await? {
            Outcome::Done(done) => Ok(Outcome::Done(Done { last_insert_id: 0, ..done })),
            other => Ok(other),
        }
    }
}

/// The column of a table that holds a column of a result.
fn column(of: &ColumnMeta) -> ColumnDef {
    let kind = match of.look.declared.unwrap_or(of.column_type.kind) {
        // A column of NULLs.
        TypeKind::VarBinary { bytes: 0 } => TypeKind::Binary { bytes: 0 },
        TypeKind::VarChar { chars } if chars > 16_383 => TypeKind::LongText,
        kind => kind,
    };
    ColumnDef::new(&of.name, ColumnType { kind, ..of.column_type.clone() })
}
