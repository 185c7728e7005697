//! ANALYZE TABLE: looks at tables at once. Without it, tables are looked at when a join of them is planned, and again while
//! they are used.

use super::{Outcome, Session, Sink};
use crate::error::{self, Failure};
use crate::plan::ColumnMeta;
use crate::store::Store;
use crate::syntax::split_name;
use crate::table::find;
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{TableAdmin, TableName};
use lats_values::{ColumnType, SqlError, TypeKind, Value};

impl<S: Store> Session<S> {
    pub(super) async fn analyze_tables(
        &mut self,
        tree: &Tree,
        admin: &TableAdmin,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        if admin.options.is_some() {
            return Err(error::not_supported("histograms").into());
        }
        self.commit().await?;
        let mut rows = Vec::with_capacity(admin.tables.len());
        for table in &admin.tables {
            let (database, name) = split_name(tree, table, self.database.as_deref())?;
            let shown = format!("{database}.{name}");
            match self.look_at(tree, table).await {
                Ok(()) => rows.push([shown, "status".into(), "OK".into()]),
                Err(error) => {
                    rows.push([shown.clone(), "Error".into(), error.message]);
                    rows.push([shown, "status".into(), "Operation failed".into()]);
                }
            }
        }
        let of = ColumnType::new(TypeKind::VarChar { chars: 512 });
        let names = ["Table", "Op", "Msg_type", "Msg_text"];
        let columns = names.iter().map(|name| ColumnMeta::expression(name, of.clone())).collect();
        sink.begin(&columns);
        for [table, kind, text] in rows {
            sink.row(&[table, "analyze".into(), kind, text].map(|text| Value::text(&text)))?;
        }
        Ok(Outcome::Rows)
    }

    async fn look_at(&mut self, tree: &Tree, table: &TableName) -> Result<(), SqlError> {
        let (database, name) = split_name(tree, table, self.database.as_deref())?;
        let catalog = self.catalog();
        let id = find(&catalog, &database, &name)?.id;
        match self.shared.store.take_statistics(id).await {
            Some(_) => Ok(()),
            None => {
                Err(error::make(1105, "HY000", "The nodes that have the table do not answer now"))
            }
        }
    }
}
