//! The names of a view's columns.

use crate::bind::query::BoundQuery;
use crate::bind::scope::same_name;
use crate::bind::view::top_selects;
use crate::error;
use crate::syntax::optional_name;
use lats_catalog::ViewDef;
use lats_mysql_syntax::print::canonical::Resolved;
use lats_mysql_syntax::tree::{Body, Expr, ExprId, QueryId, Select, Tree};
use lats_values::SqlError;
use std::collections::{BTreeMap, BTreeSet};

/// A column of the query, and the item of the select list whose name can be changed.
struct Named {
    name: String,
    free: Option<ExprId>,
}

/// A name that somebody has given to a column.
pub(super) fn column_name(name: &str) -> Result<&str, SqlError> {
    if name.is_empty() || name.ends_with(' ') {
        return Err(error::make(1166, "42000", &format!("Incorrect column name '{name}'")));
    }
    Ok(name)
}

/// The columns' names, which must differ. Those that come from texts of expressions are changed where they do not.
///
/// # Errors
/// 1353, 1060.
pub(super) fn check_names(
    def: &ViewDef,
    (tree, query): (&Tree, QueryId),
    bound: &BoundQuery,
    resolved: &mut Resolved,
) -> Result<(), SqlError> {
    if def.columns.is_empty() {
        let mut names = named(tree, query, bound, resolved);
        make_unique(&mut names)?;
        for one in names {
            if let Some(id) = one.free {
                resolved.names.insert(id, one.name);
            }
        }
        return Ok(());
    }
    if def.columns.len() != bound.outputs.len() {
        let text = "In definition of view, derived table or common table expression, SELECT list and column names list have \
                    different column counts";
        return Err(error::make(1353, "HY000", text));
    }
    for (at, name) in def.columns.iter().enumerate() {
        if def.columns[..at].iter().any(|other| same_name(other, name)) {
            return Err(duplicate(name));
        }
    }
    Ok(())
}

fn duplicate(name: &str) -> SqlError {
    error::make(1060, "42S21", &format!("Duplicate column name '{name}'"))
}

/// The names that the query gives, in order.
fn named(tree: &Tree, query: QueryId, bound: &BoundQuery, resolved: &Resolved) -> Vec<Named> {
    let mut items: Vec<Option<ExprId>> = Vec::with_capacity(bound.outputs.len());
    for item in first_select(tree, query).map_or(&[][..], |select| &select.items) {
        if let Some(columns) = resolved.stars.get(&item.value) {
            items.resize(items.len() + columns.len(), None);
            continue;
        }
        let is_column = matches!(tree.expr(item.value), Expr::Column { .. });
        items.push((item.alias.is_none() && !is_column).then_some(item.value));
    }
    let mut items = items.into_iter();
    let names = bound.outputs.iter().map(|(_, name)| {
        let free = items.next().flatten();
        let changed = free.and_then(|id| resolved.names.get(&id));
        Named { name: changed.unwrap_or(name).clone(), free }
    });
    names.collect()
}

/// The SELECT whose items name the columns of a query.
fn first_select(tree: &Tree, query: QueryId) -> Option<&Select> {
    let mut body = tree.query(query).body;
    loop {
        body = match tree.body(body) {
            Body::Select(select) => return Some(select),
            Body::Set { left, .. } => *left,
            Body::Nested(inner) => tree.query(*inner).body,
            Body::Values(_) | Body::Table(_) => return None,
        };
    }
}

/// Changes names, as MySQL does: the later one of two, if it can be changed, else the earlier one.
fn make_unique(names: &mut [Named]) -> Result<(), SqlError> {
    let mut known: BTreeSet<String> = names.iter().map(|one| folded(&one.name)).collect();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
    for at in 0..names.len() {
        let key = folded(&names[at].name);
        let Some(before) = places.insert(key.clone(), at) else { continue };
        let changed = [at, before].into_iter().find(|one| names[*one].free.is_some());
        let changed = changed.ok_or_else(|| duplicate(&names[at].name))?;
        let attempt = attempts.entry(key.clone()).or_default();
        let name = loop {
            let name = match *attempt {
                0 => format!("Name_exp_{}", names[changed].name),
                attempt => format!("Name_exp_{attempt}_{}", names[changed].name),
            };
            *attempt += 1;
            // Each attempt gives another name, and there are as many names as columns.
            if known.insert(folded(&name)) {
                break name;
            }
        };
        if changed == at {
            places.insert(key, before);
        }
        places.insert(folded(&name), changed);
        names[changed].name = name;
    }
    Ok(())
}

fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// Columns whose text makes no name are numbered.
pub(super) fn name_items(
    tree: &Tree,
    query: QueryId,
    resolved: &mut Resolved,
) -> Result<(), SqlError> {
    for select in top_selects(tree, query) {
        for (item, number) in select.items.iter().zip(1u32..) {
            if let Some(alias) = optional_name(tree, item.alias)? {
                column_name(alias)?;
                continue;
            }
            let Some(name) = resolved.names.get_mut(&item.value) else { continue };
            let too_long = name.chars().count() > lats_base::limits::NAME_CHARS_MAX;
            if too_long || name.is_empty() || name.starts_with(' ') || name.ends_with(' ') {
                *name = format!("Name_exp_{number}");
            }
        }
    }
    Ok(())
}
