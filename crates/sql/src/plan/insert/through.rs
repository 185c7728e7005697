//! INSERT and REPLACE through a view: the table that rows go to, and the names of its columns there.

use crate::bind::Binder;
use crate::bind::scope::Scope;
use crate::bind::through::{delete_from_join, several_tables};
use crate::bind::view::ViewUse;
use crate::error;
use crate::plan::check::Check;
use crate::syntax::{Context, split_name};
use crate::table::{Table, find_table};
use lats_engine::ir::{ColumnId, SourceId};
use lats_mysql_syntax::tree::{self, ExprId, Insert, InsertSource};
use lats_values::SqlError;
use std::sync::Arc;

/// Where rows go.
pub(super) struct Target {
    /// The table.
    pub(super) table: Arc<Table>,
    /// The view that is named.
    pub(super) view: Option<(String, String)>,
    /// The columns that can be named, and their positions in the table.
    pub(super) names: Vec<(String, u16)>,
    /// WITH CHECK OPTION.
    pub(super) check: Option<Check>,
}

impl Target {
    pub(super) fn of(insert: &Insert, context: &Context<'_>) -> Result<Self, SqlError> {
        let (database, name) = split_name(context.tree(), &insert.table, context.database)?;
        let Some(view) = context.view(&database, &name) else {
            let table =
                find_table(context.catalog, context.tree(), &insert.table, context.database)?;
            let names = table.visible().map(|at| (table.column_name(at).to_owned(), at)).collect();
            return Ok(Self { table, view: None, names, check: None });
        };
        let mut binder = Binder::new(context);
        binder.view(view, &name)?;
        let used = binder.views.last().ok_or_else(|| error::internal("a view was expected"))?;
        let (base, source) = base(insert, &binder, used)?;
        let table = Arc::clone(&binder.source(source).table);
        let names = used.columns.iter().filter_map(|(name, id)| {
            let origin = binder.columns.get(id.0 as usize)?.origin?;
            (origin.source == source).then(|| (name.clone(), origin.position))
        });
        let names = names.collect();
        let check = Check::of(context, &used.place, base)?;
        if check.is_some() && !insert.on_duplicate.is_empty() && insert.is_ignore {
            let what =
                "INSERT IGNORE with ON DUPLICATE KEY UPDATE through a view WITH CHECK OPTION";
            return Err(error::not_supported(what));
        }
        Ok(Self { table, view: Some(used.place.clone()), names, check })
    }

    /// True if the column with AUTO_INCREMENT can be named, or if there is none.
    pub(super) fn has_ids(&self) -> bool {
        let mut columns = self.table.def.columns.iter().zip(0u16..);
        let ids = columns.find(|(column, _)| column.auto_increment);
        // A hidden key is nobody's to name.
        ids.is_none_or(|(column, at)| {
            column.hidden || self.names.iter().any(|(_, named)| *named == at)
        })
    }

    /// Makes the names known in a binder whose first columns are those of the table.
    pub(super) fn name_columns(&self, binder: &mut Binder<'_>) {
        let Some((database, name)) = &self.view else { return };
        let names = self.names.iter();
        let names = names.map(|(name, at)| (name.clone(), ColumnId(u32::from(*at)))).collect();
        binder.block().scope = Scope::of_table(Some(database), name, names);
    }
}

/// The table of a view that rows go to, and its number among those that can be changed.
fn base(
    insert: &Insert,
    binder: &Binder<'_>,
    view: &ViewUse,
) -> Result<(usize, SourceId), SqlError> {
    let refused = || {
        let text = format!("The target table {} of the INSERT is not insertable-into", view.alias);
        error::make(1471, "HY000", &text)
    };
    let merged = view.merged.as_ref().filter(|_| view.is_updatable()).ok_or_else(refused)?;
    let listed = match &insert.source {
        InsertSource::Set(assignments) => assignments.iter().map(|a| a.column).collect(),
        _ => insert.columns.clone().unwrap_or_default(),
    };
    let mut named: Vec<SourceId> = Vec::new();
    let on_duplicate = insert.on_duplicate.iter().map(|assignment| assignment.column);
    let all: Vec<ExprId> = listed.iter().copied().chain(on_duplicate).collect();
    for column in column_ids(&all, binder, view)? {
        let (source, _) = binder.column_of_view(view, column)?;
        if !named.contains(&source) {
            named.push(source);
        }
    }
    if listed.is_empty() && !merged.is_join {
        for (_, column) in &view.columns {
            binder.column_of_view(view, *column)?;
        }
    }
    if !merged.is_insertable {
        return Err(refused());
    }
    if merged.is_join && insert.is_replace {
        return Err(delete_from_join(view));
    }
    let (database, name) = &view.place;
    if merged.is_join && listed.is_empty() {
        let text = format!("Can not insert into join view '{database}.{name}' without fields list");
        return Err(error::make(1394, "HY000", &text));
    }
    let source = match (named.as_slice(), merged.bases.as_slice()) {
        ([_, _, ..], _) => return Err(several_tables(view)),
        ([only], _) => *only,
        ([], bases) => *bases.first().ok_or_else(refused)?,
    };
    let number = merged.bases.iter().position(|base| *base == source).ok_or_else(refused)?;
    Ok((number, source))
}

/// The columns of a view that these expressions name; what is unknown is said later.
fn column_ids(
    named: &[ExprId],
    binder: &Binder<'_>,
    view: &ViewUse,
) -> Result<Vec<ColumnId>, SqlError> {
    let mut found = Vec::with_capacity(named.len());
    for id in named {
        if let tree::Expr::Column { name, .. } = *binder.tree().expr(*id) {
            found.extend(Binder::named_in_view(view, binder.name(name)?));
        }
    }
    Ok(found)
}
