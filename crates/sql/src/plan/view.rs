//! CREATE VIEW and ALTER VIEW: the query is looked at, and written down with full names.

mod names;

use crate::bind::Binder;
use crate::bind::view::{ViewUse, could_merge};
use crate::ddl::place;
use crate::error;
use crate::syntax::{Context, name, optional_name};
use crate::table::check_not_system;
use crate::views::View;
use lats_catalog::{CheckOption, PutWay, ViewAlgorithm, ViewDef, ViewSecurity};
use lats_mysql_syntax::print::canonical::canonical;
use lats_mysql_syntax::tree::{self, Account, Body, CreateView, Expr, QueryId, Tree};
use lats_mysql_syntax::{Keyword as K, Mode};
use lats_values::SqlError;
use names::{check_names, column_name, name_items};

/// A view that is to be made.
#[derive(Debug)]
pub struct CreateViewPlan {
    /// The view; what the session knows is still missing.
    pub def: ViewDef,
    /// What may stand under its name.
    pub way: PutWay,
    /// Its DEFINER, if it is not whoever makes it.
    pub definer: Option<(String, String)>,
    /// What is to be warned about.
    pub warnings: Vec<SqlError>,
}

/// Plans a CREATE VIEW or ALTER VIEW.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_create(create: &CreateView, context: &Context<'_>) -> Result<CreateViewPlan, SqlError> {
    let tree = context.tree();
    refuse_values_from_outside(tree)?;
    refuse_into(tree, create.query)?;
    let (database, view) = place(tree, &create.view, context.database)?;
    check_not_system(&database)?;
    if !context.catalog.has_database(&database) {
        return Err(error::unknown_database(&database));
    }
    let way = match (create.is_alter, create.or_replace) {
        (true, _) => PutWay::Replace,
        (false, true) => PutWay::NewOrReplace,
        (false, false) => PutWay::New,
    };
    let mut def = ViewDef::new(&database, &view, "");
    for column in &create.columns {
        def.columns.push(column_name(name(tree, *column)?)?.to_owned());
    }
    let mut binder = Binder::new(context);
    binder.take_notes();
    let bound = binder.bind_query(create.query, 0);
    // What is replaced cannot be a part of itself; a name of WITH may be the same.
    let is_itself = |used: &ViewUse| (&used.place.0, &used.place.1) == (&database, &view);
    let names_itself = match &bound {
        Ok(_) => binder.views.iter().any(is_itself),
        Err(_) => context.views.get(&database, &view).is_some(),
    };
    if way != PutWay::New && names_itself {
        return Err(error::unknown_table(&database, &view));
    }
    let bound = bound?;
    refuse_temporary(&binder, context)?;
    let mut warnings = Vec::new();
    def.algorithm = match create.algorithm {
        K::TEMPTABLE => ViewAlgorithm::TempTable,
        K::MERGE if could_merge(tree, create.query, &bound) => ViewAlgorithm::Merge,
        K::MERGE => {
            let text =
                "View merge algorithm can't be used here for now (assumed undefined algorithm)";
            warnings.push(error::make(1354, "HY000", text));
            ViewAlgorithm::Undefined
        }
        _ => ViewAlgorithm::Undefined,
    };
    if create.security == K::INVOKER {
        def.security = ViewSecurity::Invoker;
    }
    def.check = match create.check {
        tree::CheckOption::None => CheckOption::None,
        tree::CheckOption::Local => CheckOption::Local,
        tree::CheckOption::Cascaded => CheckOption::Cascaded,
    };
    let mut resolved = binder.notes.take().map(|notes| notes.resolved).unwrap_or_default();
    name_items(tree, create.query, &mut resolved)?;
    check_names(&def, (tree, create.query), &bound, &mut resolved)?;
    let text = canonical(tree, create.query, &resolved, None);
    def.query = String::from_utf8(text)
        .map_err(|_| error::not_supported("texts in views that are no utf8mb4"))?;
    check_written(&def, context)?;
    Ok(CreateViewPlan { def, way, definer: definer(create, tree)?, warnings })
}

/// 1351: a view's query is the same for everybody.
fn refuse_values_from_outside(tree: &Tree) -> Result<(), SqlError> {
    let is_outside = |expr: &Expr| {
        matches!(
            expr,
            Expr::UserVariable(_)
                | Expr::SystemVariable { .. }
                | Expr::Assign { .. }
                | Expr::Parameter(_)
        )
    };
    match tree.all_exprs().any(is_outside) {
        true => Err(error::make(1351, "HY000", "View's SELECT contains a variable or parameter")),
        false => Ok(()),
    }
}

/// 1352: a view outlives the tables of the session.
fn refuse_temporary(binder: &Binder<'_>, context: &Context<'_>) -> Result<(), SqlError> {
    for def in binder.sources.iter().map(|source| &source.table.def) {
        let stored = context.base.tables.get(&def.id);
        if stored.is_some_and(|stored| stored.owner().is_some()) {
            let text = format!("View's SELECT refers to a temporary table '{}'", def.name);
            return Err(error::make(1352, "HY000", &text));
        }
    }
    Ok(())
}

fn refuse_into(tree: &Tree, id: QueryId) -> Result<(), SqlError> {
    let query = tree.query(id);
    let inner = match tree.body(query.body) {
        Body::Select(select) => select.into.is_some(),
        _ => false,
    };
    if query.into.is_some() || inner {
        return Err(error::make(1350, "HY000", "View's SELECT contains a 'INTO' clause"));
    }
    Ok(())
}

/// What was written down is read again as it will be; 1368 if it is to check rows that nobody can change.
fn check_written(def: &ViewDef, context: &Context<'_>) -> Result<(), SqlError> {
    let view = View::new(def);
    if view.query.is_none() {
        // Written with all its parentheses it may be nested too deep.
        crate::syntax::parse(def.query.as_bytes(), Mode::default())?;
    }
    let mut binder = Binder::new(context);
    binder.view(&view, &def.name)?;
    let merged = binder.views.last().and_then(|view| view.merged.as_ref());
    if def.check != CheckOption::None && !merged.is_some_and(|merged| merged.takes_check) {
        let text = format!("CHECK OPTION on non-updatable view '{}.{}'", def.database, def.name);
        return Err(error::make(1368, "HY000", &text));
    }
    Ok(())
}

fn definer(create: &CreateView, tree: &Tree) -> Result<Option<(String, String)>, SqlError> {
    match create.definer {
        None | Some(Account::Current) => Ok(None),
        Some(Account::Name { user, host }) => {
            let host = optional_name(tree, host)?.unwrap_or("%");
            Ok(Some((name(tree, user)?.to_owned(), host.to_owned())))
        }
    }
}
