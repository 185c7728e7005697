//! Views come, change and go.

use super::{check_name, check_table_count, exists, next_id, refuse};
use crate::{Catalog, ChangeError, ChangeErrorKind, Place, PutWay, ViewDef};
use alloc::{format, string::String, vec::Vec};
use lats_base::limits;

pub(super) fn put(catalog: &mut Catalog, view: &ViewDef, way: PutWay) -> Result<(), ChangeError> {
    if !catalog.has_database(&view.database) {
        let message = format!("Unknown database '{}'", view.database);
        return refuse(ChangeErrorKind::DatabaseUnknown, message);
    }
    let (database, name) = (&view.database, &view.name);
    let old = catalog.view(database, name).map(|found| found.id);
    let is_table = catalog.table(database, name).is_some();
    match way {
        PutWay::New if is_table || old.is_some() => return exists(name),
        PutWay::NewOrReplace | PutWay::Replace if is_table => return no_view(database, name),
        PutWay::Replace if old.is_none() => return super::missing(database, name),
        _ => {}
    }
    check(view)?;
    if old.is_none() {
        check_table_count(catalog, 1)?;
    }
    if let Some(id) = old {
        catalog.views.remove(id);
    }
    let id = next_id(catalog);
    catalog.views.insert(ViewDef { id, ..view.clone() });
    Ok(())
}

fn check(view: &ViewDef) -> Result<(), ChangeError> {
    check_name(&view.name)?;
    view.columns.iter().try_for_each(|name| check_name(name))?;
    if view.columns.len() > limits::COLUMNS_MAX {
        let message = format!("a view has at most {} columns", limits::COLUMNS_MAX);
        return refuse(ChangeErrorKind::NotSupported, message);
    }
    Ok(())
}

pub(super) fn drop(
    catalog: &mut Catalog,
    database: &str,
    name: &str,
    if_exists: bool,
) -> Result<(), ChangeError> {
    match catalog.view(database, name).map(|view| view.id) {
        Some(id) => {
            catalog.views.remove(id);
            Ok(())
        }
        None if catalog.table(database, name).is_some() => no_view(database, name),
        None if if_exists => Ok(()),
        None => super::missing(database, name),
    }
}

/// All of them go, or none. What is missing is named as a whole.
pub(super) fn drop_all(
    catalog: &mut Catalog,
    views: &[Place],
    if_exists: bool,
) -> Result<(), ChangeError> {
    let is_table = |(database, name): &&Place| catalog.table(database, name).is_some();
    if let Some((database, name)) = views.iter().find(is_table) {
        return no_view(database, name);
    }
    let is_missing = |(database, name): &&Place| !catalog.has_relation(database, name);
    let missing: Vec<String> = views
        .iter()
        .filter(is_missing)
        .map(|(database, name)| format!("{database}.{name}"))
        .collect();
    if !if_exists && !missing.is_empty() {
        let message = format!("Unknown table '{}'", missing.join(","));
        return refuse(ChangeErrorKind::TableMissing, message);
    }
    views.iter().try_for_each(|(database, name)| drop(catalog, database, name, true))
}

fn no_view(database: &str, name: &str) -> Result<(), ChangeError> {
    refuse(ChangeErrorKind::WrongObject, format!("'{database}.{name}' is not VIEW"))
}
