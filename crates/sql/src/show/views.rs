//! What SHOW tells of views.

use super::tables::{COMMENT_OF_STATUS, quoted};
use crate::bind::Binder;
use crate::error::{self, Failure};
use crate::session::Session;
use crate::store::Store;
use crate::syntax::Context;
use crate::views::{View, Views};
use lats_catalog::{
    Catalog, CheckOption, ColumnDef, DefaultValue, ViewAlgorithm, ViewDef, ViewSecurity,
};
use lats_mysql_syntax::print::canonical::{Resolved, canonical};
use lats_mysql_syntax::{Mode, Tree};
use lats_values::{ColumnType, SqlError, TypeKind, Value};
use std::sync::Arc;

impl<S: Store> Session<S> {
    /// Puts what is wrong with views into the place of their comments. Others go on between two views, and rows that are not
    /// shown are not looked at.
    pub(super) async fn look_at_views(
        &mut self,
        database: &str,
        filter: super::Filter<'_>,
        rows: &mut [Vec<Value>],
    ) -> Result<(), Failure> {
        let catalog = self.shared.store.catalog();
        let handle = Arc::clone(&self.client.handle);
        let mut of_comment = false;
        if let (Some(filter), _) = filter {
            let mut is_comment = |number| of_comment |= number as usize == COMMENT_OF_STATUS;
            crate::expr::visit_columns(filter, &mut is_comment);
        }
        for row in rows {
            let Some(Value::Text(name, _)) = row.first() else { continue };
            let Some(view) = catalog.view(database, name) else { continue };
            if !of_comment && !super::matches(filter, row)? {
                continue;
            }
            handle.check()?;
            if let Err(error) = self.columns_of_view(&catalog, view)
                && let Some(comment) = row.get_mut(COMMENT_OF_STATUS)
            {
                *comment = Value::text(&error.message);
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The columns that a view has now, with the defaults that MySQL shows.
    ///
    /// # Errors
    /// 1356 if what it names is gone.
    pub(crate) fn columns_of_view(
        &self,
        catalog: &Catalog,
        view: &ViewDef,
    ) -> Result<Vec<ColumnDef>, SqlError> {
        let views = Views::of_one(catalog, &view.database, &view.name)?;
        let nothing = crate::syntax::parse(b"SELECT 1", Mode::default())?;
        let context = self.context(catalog, Some(&view.database), (b"", &nothing), &views);
        // It is there, whatever mode it was made in.
        let context = Context { full_group_by: false, ..context };
        let mut binder = Binder::new(&context);
        let found = views.get(&view.database, &view.name);
        let found = found.ok_or_else(|| error::unknown_table(&view.database, &view.name))?;
        binder.view(found, &view.name)?;
        let used = binder.views.pop().ok_or_else(|| error::internal("a view was expected"))?;
        let columns = used.columns.iter().map(|(name, id)| {
            let found = binder.type_of(&id.scalar());
            let look = binder.columns.get(id.0 as usize).map(|column| column.look);
            let kind = look.and_then(|look| look.declared_in_view()).unwrap_or(found.kind);
            let column_type = ColumnType { kind, ..found };
            let origin = binder.columns.get(id.0 as usize).and_then(|column| column.origin);
            let of = origin.and_then(|origin| {
                let table = &binder.sources.get(origin.source.0 as usize)?.table;
                table.def.columns.get(usize::from(origin.position))
            });
            column(name, column_type, of)
        });
        Ok(columns.collect())
    }
}

/// A column of a view: the default is that of the table's column, or what the type has for one that is never NULL.
fn column(name: &str, column_type: ColumnType, of: Option<&ColumnDef>) -> ColumnDef {
    let default = match of {
        Some(of) => of.default.clone(),
        None if column_type.nullable => DefaultValue::None,
        None => DefaultValue::Literal(implicit(&column_type)),
    };
    ColumnDef { default, ..ColumnDef::new(name, column_type) }
}

fn implicit(column_type: &ColumnType) -> Value {
    let fraction = |digits: u8| match digits {
        0 => String::new(),
        digits => format!(".{}", "0".repeat(usize::from(digits))),
    };
    Value::text(&match column_type.kind {
        TypeKind::Date => "0000-00-00".to_owned(),
        TypeKind::Time { fsp } => format!("00:00:00{}", fraction(fsp)),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            format!("0000-00-00 00:00:00{}", fraction(fsp))
        }
        TypeKind::Year => "0000".to_owned(),
        TypeKind::Decimal { scale, .. } => format!("0{}", fraction(scale)),
        kind if kind.is_text() || kind.is_bytes() => String::new(),
        _ => "0".to_owned(),
    })
}

/// The row of SHOW CREATE VIEW.
pub(super) fn show_create(view: &ViewDef, current: Option<&str>) -> Vec<Value> {
    let (set, collation) = &view.character_set;
    let text = statement(view, current);
    vec![Value::text(&view.name), Value::text(&text), Value::text(set), Value::text(collation)]
}

/// The statement that makes the view again. In its own database, names stand without it.
fn statement(view: &ViewDef, current: Option<&str>) -> String {
    let is_here = current == Some(view.database.as_str());
    let place = match is_here {
        true => quoted(&view.name),
        false => format!("{}.{}", quoted(&view.database), quoted(&view.name)),
    };
    let columns = match view.columns.as_slice() {
        [] => String::new(),
        names => {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            format!(" ({})", names.join(","))
        }
    };
    let hidden = is_here.then_some(view.database.as_str());
    format!(
        "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {} VIEW {place}{columns} AS {}{}",
        algorithm(view.algorithm),
        quoted(&view.definer.0),
        quoted(&view.definer.1),
        security(view.security),
        query(view, hidden),
        match view.check {
            CheckOption::None => "",
            CheckOption::Local => " WITH LOCAL CHECK OPTION",
            CheckOption::Cascaded => " WITH CASCADED CHECK OPTION",
        }
    )
}

fn algorithm(of: ViewAlgorithm) -> &'static str {
    match of {
        ViewAlgorithm::Undefined => "UNDEFINED",
        ViewAlgorithm::Merge => "MERGE",
        ViewAlgorithm::TempTable => "TEMPTABLE",
    }
}

fn security(of: ViewSecurity) -> &'static str {
    match of {
        ViewSecurity::Definer => "DEFINER",
        ViewSecurity::Invoker => "INVOKER",
    }
}

/// The text of a view's query; a database may be left out where all tables are in it.
fn query(view: &ViewDef, hidden: Option<&str>) -> String {
    let (Some(hidden), Some((parsed, id))) = (hidden, View::new(view).query) else {
        return view.query.clone();
    };
    if !is_all_in(&parsed.tree, hidden) {
        return view.query.clone();
    }
    let text = canonical(&parsed.tree, id, &Resolved::default(), Some(hidden));
    String::from_utf8(text).unwrap_or_else(|_| view.query.clone())
}

/// True if no table of a query is in another database.
fn is_all_in(tree: &Tree, database: &str) -> bool {
    let mut names = tree.table_names();
    names.all(|name| name.schema.is_none() || tree.text(name.schema) == database.as_bytes())
}
