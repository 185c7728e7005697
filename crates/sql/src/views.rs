//! The views that a statement names: their queries are parsed before anything is bound, so that the binder goes no deeper for them
//! than it goes for other queries.

use crate::error;
use lats_catalog::{Catalog, ViewDef};
use lats_mysql_syntax::tree::{DeleteFrom, ExplainWhat, QueryId, Statement, TableName};
use lats_mysql_syntax::{Mode, Parsed};
use lats_values::SqlError;
use std::collections::BTreeMap;

/// Views that a statement may name, also by others.
const VIEWS_MAX: usize = 256;

/// Views by database and name.
#[derive(Debug, Default)]
pub struct Views {
    found: BTreeMap<(String, String), View>,
}

/// A view.
#[derive(Debug)]
pub struct View {
    /// Its definition.
    pub def: ViewDef,
    /// Its query; none if this version cannot read it.
    pub query: Option<(Parsed, QueryId)>,
}

impl View {
    /// Reads a view's query.
    pub fn new(def: &ViewDef) -> Self {
        let parsed = crate::syntax::parse(def.query.as_bytes(), Mode::default()).ok();
        let query = parsed.and_then(|parsed| match parsed.statement {
            Statement::Query(id) => Some((parsed, id)),
            _ => None,
        });
        Self { def: def.clone(), query }
    }
}

impl Views {
    /// The views that a statement names, those that they name, and so on.
    ///
    /// # Errors
    /// 1235 for more than there may be, 1300.
    pub fn of(
        catalog: &Catalog,
        parsed: &Parsed,
        database: Option<&str>,
    ) -> Result<Self, SqlError> {
        let mut views = Self::default();
        if catalog.views.is_empty() {
            return Ok(views);
        }
        let mut wanted: Vec<(String, String)> = Vec::new();
        for name in parsed.tree.table_names().chain(target_names(&parsed.statement)) {
            add(parsed, name, database, &mut wanted)?;
        }
        views.gather(catalog, wanted)?;
        Ok(views)
    }

    /// One view, and those that it names.
    ///
    /// # Errors
    /// As [`Views::of`].
    pub fn of_one(catalog: &Catalog, database: &str, name: &str) -> Result<Self, SqlError> {
        let mut views = Self::default();
        views.gather(catalog, vec![(database.to_owned(), name.to_owned())])?;
        Ok(views)
    }

    fn gather(
        &mut self,
        catalog: &Catalog,
        mut wanted: Vec<(String, String)>,
    ) -> Result<(), SqlError> {
        while let Some(place) = wanted.pop() {
            if self.found.contains_key(&place) {
                continue;
            }
            let Some(def) = catalog.view(&place.0, &place.1) else { continue };
            if self.found.len() == VIEWS_MAX {
                let what = format!("more than {VIEWS_MAX} views in a statement");
                return Err(error::not_supported(&what));
            }
            let view = View::new(def);
            if let Some((parsed, _)) = &view.query {
                for name in parsed.tree.table_names() {
                    add(parsed, name, Some(&def.database), &mut wanted)?;
                }
            }
            self.found.insert(place, view);
        }
        Ok(())
    }

    /// The view with this name, if it is one that the statement names.
    pub fn get(&self, database: &str, name: &str) -> Option<&View> {
        if self.found.is_empty() {
            return None;
        }
        self.found.get(&(database.to_owned(), name.to_owned()))
    }
}

fn add(
    parsed: &Parsed,
    name: TableName,
    database: Option<&str>,
    wanted: &mut Vec<(String, String)>,
) -> Result<(), SqlError> {
    if name.schema.is_none() && database.is_none() {
        return Ok(());
    }
    wanted.push(crate::syntax::split_name(&parsed.tree, &name, database)?);
    Ok(())
}

/// The tables that a statement changes, where they do not stand in a list of tables.
fn target_names(statement: &Statement) -> Vec<TableName> {
    let mut at = statement;
    while let Statement::Explain(explain) = at
        && let ExplainWhat::Statement(inner) = &explain.what
    {
        at = inner;
    }
    match at {
        Statement::Insert(insert) => vec![insert.table],
        Statement::Delete(delete) => match &delete.from {
            DeleteFrom::One { table, .. } => vec![*table],
            DeleteFrom::Many { .. } => Vec::new(),
        },
        _ => Vec::new(),
    }
}
