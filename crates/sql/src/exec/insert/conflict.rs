//! Rows that meet another one with the same key in a unique index. The request that carried them was
//! taken back, so they are placed one by one.

use super::{Counts, update_program};
use crate::error::{self, Failure};
use crate::exec::{operation, unique::duplicate};
use crate::plan::insert::{InsertPlan, OnConflict};
use crate::plan::select::encode_program;
use crate::session::Session;
use crate::store::Store;
use crate::table::Table;
use lats_client::api::{LockMode, RowOp, RowOpKind, RowOutcome, RowResult};
use lats_values::Value;

/// A row that meets more others than this is being chased by other writers.
const TRIES: u32 = 100;

/// True for a row that could not be stored.
fn is_refused(result: &RowResult) -> bool {
    matches!(result.outcome, RowOutcome::Exists | RowOutcome::Duplicate)
}

impl<S: Store> Session<S> {
    /// Goes on after a request that was taken back.
    pub(super) async fn resolve_duplicates(
        &mut self,
        plan: &InsertPlan,
        (rows, results): (Vec<Vec<u8>>, &[RowResult]),
        externals: &[Value],
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        let first = results.iter().zip(&rows).find(|(result, _)| is_refused(result));
        match (&plan.conflict, first) {
            (OnConflict::Error, Some((result, row))) => {
                Err(duplicate(&plan.table, Some(result), row).into())
            }
            // It may have been rolled back with its transaction.
            (OnConflict::Ignore, Some((result, row))) if rows.len() == 1 => {
                counts.duplicates += 1;
                self.add_warnings(vec![duplicate(&plan.table, Some(result), row)]);
                Ok(())
            }
            _ => self.place_rows(plan, rows, externals, counts).await,
        }
    }

    /// Places rows one by one, as MySQL does.
    pub(super) async fn place_rows(
        &mut self,
        plan: &InsertPlan,
        rows: Vec<Vec<u8>>,
        externals: &[Value],
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        for row in rows {
            self.place_row(plan, row, externals, counts).await?;
        }
        Ok(())
    }

    async fn place_row(
        &mut self,
        plan: &InsertPlan,
        row: Vec<u8>,
        externals: &[Value],
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        let table = &plan.table;
        let key = table.key_of(&row);
        let mut removed = 0;
        for try_number in 0..TRIES {
            let insert =
                RowOp { row: row.clone(), ..operation(table, RowOpKind::Insert, key.clone()) };
            let result = self.run_one(insert).await?;
            if !is_refused(&result) {
                counts.affected += 1 + removed;
                counts.ids.note(table, &row);
                return Ok(());
            }
            let replaces = matches!(plan.conflict, OnConflict::Replace);
            counts.duplicates += u64::from(try_number == 0 && !replaces);
            let holder = result.holder().map_or_else(|| key.clone(), |(_, holder)| holder);
            match &plan.conflict {
                OnConflict::Error => return Err(duplicate(table, Some(&result), &row).into()),
                OnConflict::Ignore => {
                    self.add_warnings(vec![duplicate(table, Some(&result), &row)]);
                    return Ok(());
                }
                OnConflict::Replace => {
                    let counted = u64::from(self.remove_holder(table, holder, &row).await?);
                    removed += counted;
                    counts.duplicates += counted;
                }
                OnConflict::Update(assignments) => {
                    let program = update_program(plan, assignments, &row, externals);
                    if self.update_holder(plan, (holder, program), counts).await? {
                        return Ok(());
                    }
                }
            }
        }
        Err(error::make(1205, "HY000", "Lock wait timeout exceeded; try restarting transaction")
            .into())
    }

    /// REPLACE takes the row away that has the key; true if it counts as gone. In MySQL a row that gets the values that it has
    /// does not, where the key is that of the last unique index.
    async fn remove_holder(
        &mut self,
        table: &Table,
        holder: Vec<u8>,
        row: &[u8],
    ) -> Result<bool, Failure> {
        let visible: Vec<u16> = table.visible().collect();
        let program = encode_program(None, Some(visible.clone()));
        let delete =
            RowOp { program: program.into(), ..operation(table, RowOpKind::Delete, holder) };
        let result = self.run_one(delete).await?;
        let mut shown = Vec::with_capacity(row.len());
        table.layout.project(row, &visible, &mut shown);
        let has_hidden_key = visible.len() < table.types.len();
        let is_last = has_hidden_key && table.def.unique_indexes().count() == 1;
        let is_same = is_last && result.row.is_some_and(|before| before == shown);
        Ok(result.outcome == RowOutcome::Done && !is_same)
    }

    /// ON DUPLICATE KEY UPDATE of the row that has the key; false if it is gone.
    async fn update_holder(
        &mut self,
        plan: &InsertPlan,
        (holder, program): (Vec<u8>, Vec<u8>),
        counts: &mut Counts,
    ) -> Result<bool, Failure> {
        let key = holder.clone();
        let update =
            RowOp { program: program.into(), ..operation(&plan.table, RowOpKind::Update, holder) };
        let result = self.run_one(update.clone()).await?;
        match result.outcome {
            RowOutcome::Missing => return Ok(false),
            RowOutcome::Duplicate => {
                return Err(self
                    .duplicate_in_update(&plan.table, (update.key, &update.program), &result)
                    .await);
            }
            RowOutcome::Unchanged => counts.affected += u64::from(self.client.found_rows),
            _ => {
                self.check_updated(plan, key.clone()).await?;
                counts.affected += 2;
                counts.ids.updated = Some(key);
            }
        }
        Ok(true)
    }

    /// WITH CHECK OPTION, for a row that was changed in the place of a new one.
    async fn check_updated(&mut self, plan: &InsertPlan, key: Vec<u8>) -> Result<(), Failure> {
        let Some(check) = &plan.check else { return Ok(()) };
        let read = operation(&plan.table, RowOpKind::Read(LockMode::Committed), key);
        let row = self.run_one(read).await?.row.unwrap_or_default();
        let values = plan.table.layout.decode(&row);
        match self.passes(check, &values, &[]).await? {
            true => Ok(()),
            false => Err(check.failed().into()),
        }
    }

    async fn run_one(&mut self, operation: RowOp) -> Result<RowResult, Failure> {
        let results = self.run_operations(vec![operation], false).await?;
        let missing = RowResult { outcome: RowOutcome::Missing, row: None, waited: false };
        Ok(results.into_iter().next().unwrap_or(missing))
    }
}
