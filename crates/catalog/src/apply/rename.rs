//! Tables and views get other names.

use super::{check_name, exists, missing, refuse};
use crate::{Catalog, ChangeError, ChangeErrorKind, Place, SYSTEM_DATABASE};
use alloc::format;

/// One pair after the other, so that names can be exchanged; all or none.
pub(super) fn rename(catalog: &mut Catalog, pairs: &[(Place, Place)]) -> Result<(), ChangeError> {
    pairs.iter().try_for_each(|(from, to)| rename_one(catalog, from, to))
}

fn rename_one(catalog: &mut Catalog, from: &Place, to: &Place) -> Result<(), ChangeError> {
    let (database, name) = from;
    let is_view = catalog.view(database, name).is_some();
    if !is_view && catalog.table(database, name).is_none() {
        return missing(database, name);
    }
    if !catalog.has_database(&to.0) || to.0 == SYSTEM_DATABASE {
        let message = format!("Unknown database '{}'", to.0);
        return refuse(ChangeErrorKind::DatabaseUnknown, message);
    }
    if catalog.has_relation(&to.0, &to.1) {
        return exists(&to.1);
    }
    check_name(&to.1)?;
    if is_view && database != &to.0 {
        let message = format!("Changing schema from '{database}' to '{}' is not allowed.", to.0);
        return refuse(ChangeErrorKind::SchemaChange, message);
    }
    if let Some(id) = catalog.view(database, name).map(|view| view.id) {
        catalog.views.change(id, |view| view.name.clone_from(&to.1));
    }
    if let Some(id) = catalog.table(database, name).map(|table| table.id) {
        catalog.tables.change(id, |table| (table.database, table.name) = to.clone());
    }
    Ok(())
}
