//! CREATE INDEX and DROP INDEX.

use super::{build, keys, partition, place};
use crate::error::{self, Failure};
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use crate::syntax::name;
use crate::table::{check_not_system, find};
use lats_catalog::Change;
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{AlterAction, CreateIndex, KeyKind, TableName, Text};
use lats_values::SqlError;
use std::sync::Arc;

impl<S: Store> Session<S> {
    pub(super) async fn create_index(
        &mut self,
        tree: &Tree,
        create: &CreateIndex,
    ) -> Result<Outcome, Failure> {
        let key = &create.key;
        keys::check_form(key)?;
        check_way(tree, &create.lock_and_algorithm)?;
        let name = name(tree, key.name)?.to_owned();
        let (database, table) = place(tree, &create.table, self.database.as_deref())?;
        check_not_system(&database)?;
        let catalog = self.catalog();
        let def = find(&catalog, &database, &table)?;
        keys::check_name(&name)?;
        if def.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(&name)) {
            return Err(keys::duplicate_index(&name).into());
        }
        let columns = keys::key_columns(tree, &key.parts, &def.columns)?;
        let unique = key.kind == KeyKind::Unique;
        if unique {
            partition::check_unique_index(def, &columns)?;
        }
        let (database, table) = self.stored((database, table));
        let builder = unique.then(|| self.shared.store.builder());
        let place = (database.clone(), table.clone(), name.clone());
        let change = Change::CreateIndex { database, table, name, columns, builder };
        let changed = self.change(change, false).await;
        let Some(builder) = builder else { return changed.map(no_records) };
        match changed {
            Err(Failure::Store(error)) => {
                // It may have been made all the same, and nobody would fill it.
                self.abandon_index(place, builder);
                return Err(error.into());
            }
            Err(other) => return Err(other),
            Ok(_) => {}
        }
        // It cleans up also when this session is no more.
        let handle = Arc::clone(&self.client.handle);
        let build = build::build(self.shared.store.clone(), place, builder, handle);
        let building = tokio::spawn(build);
        building.await.map_err(|_| error::internal("the building of the index has ended"))??;
        Ok(no_records(Done::nothing()))
    }

    /// Watches for an index whose making has failed, if not too many are watched already.
    fn abandon_index(&self, place: (String, String, String), builder: lats_catalog::Builder) {
        match self.shared.watch() {
            Some(watch) => {
                let store = self.shared.store.clone();
                tokio::spawn(build::abandon(store, place, builder, watch));
            }
            None => tracing::warn!(
                index = place.2,
                "too many indexes could not be made lately: if this one turns up after all, drop it"
            ),
        }
    }

    pub(super) async fn drop_index(
        &mut self,
        tree: &Tree,
        index: Text,
        table: &TableName,
    ) -> Result<Outcome, Failure> {
        let name = name(tree, index)?.to_owned();
        let (database, table) = place(tree, table, self.database.as_deref())?;
        check_not_system(&database)?;
        if name.eq_ignore_ascii_case("PRIMARY") {
            return Err(error::not_supported("dropping a primary key").into());
        }
        let catalog = self.catalog();
        let mut left = find(&catalog, &database, &table)?.clone();
        left.indexes.retain(|i| !i.name.eq_ignore_ascii_case(&name));
        keys::check_automatic(&left)?;
        let (database, table) = self.stored((database, table));
        self.change(Change::DropIndex { database, table, name }, true).await.map(no_records)
    }
}

/// Indexes are made in place, while others write: what asks for more than that is refused.
pub(super) fn check_way(tree: &Tree, actions: &[AlterAction]) -> Result<(), SqlError> {
    for action in actions {
        let (word, text, known, taken): (_, _, &[&str], &[&str]) = match action {
            AlterAction::Algorithm(text) => {
                ("ALGORITHM", *text, &["INSTANT"], &["DEFAULT", "INPLACE", "COPY"])
            }
            AlterAction::Lock(text) => {
                ("LOCK", *text, &["SHARED", "EXCLUSIVE"], &["DEFAULT", "NONE"])
            }
            _ => continue,
        };
        let value = name(tree, text)?;
        let has = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(value));
        if has(taken) {
            continue;
        }
        if has(known) {
            return Err(error::not_supported(&format!("{word}={}", value.to_ascii_uppercase())));
        }
        return Err(match word {
            "LOCK" => error::make(1801, "HY000", &format!("Unknown LOCK type '{value}'")),
            _ => error::make(1800, "HY000", &format!("Unknown ALGORITHM '{value}'")),
        });
    }
    Ok(())
}

/// What MySQL says of changes that copy no rows into a new table.
fn no_records(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done(done) => {
            let info = "Records: 0  Duplicates: 0  Warnings: 0".to_owned();
            Outcome::Done(Done { info, ..done })
        }
        other => other,
    }
}
