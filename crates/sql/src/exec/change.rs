//! UPDATE and DELETE of rows that a query has found.

use super::query::Kept;
use super::write::Images;
use crate::error::{self, Failure};
use crate::exec::operation;
use crate::expr::with_externals;
use crate::plan::change::{ChangePlan, NewValue, Target};
use crate::plan::query::TableSource;
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use lats_client::api::{LockMode, RowOpKind};
use lats_values::{Expr, Program, SqlError, Value, encode_key_value};
use std::collections::BTreeSet;

impl<S: Store> Session<S> {
    pub(crate) async fn change_found(
        &mut self,
        plan: &ChangePlan,
        externals: &[Value],
    ) -> Result<Outcome, Failure> {
        self.check_careful(plan)?;
        let mark = self.statement_mark();
        let counts = match self.change_rows(plan, externals).await {
            Ok(counts) => counts,
            Err(failure) => {
                self.undo_statement(mark).await;
                return Err(failure);
            }
        };
        let (matched, changed) = counts;
        if !plan.updates {
            return Ok(Outcome::Done(Done { affected_rows: changed, ..Done::default() }));
        }
        let affected_rows = if self.client.found_rows { matched } else { changed };
        let warnings = self.warnings.len();
        let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}");
        Ok(Outcome::Done(Done { affected_rows, info, ..Done::default() }))
    }

    /// `sql_safe_updates` and `updatable_views_with_limit`.
    fn check_careful(&mut self, plan: &ChangePlan) -> Result<(), SqlError> {
        let careful = self.variables.changed_number("sql_safe_updates") == Some(1);
        let is_scan = |source: &TableSource| {
            let is_target = source.lock.0 == LockMode::Exclusive;
            is_target && source.access.columns.is_empty()
        };
        if careful && !plan.is_limited && plan.query.sources.iter().any(is_scan) {
            return Err(error::unsafe_update());
        }
        let Some(view) = &plan.keyless else { return Ok(()) };
        if self.variables.get("updatable_views_with_limit").to_display() == "NO" {
            let verb = if plan.updates { "UPDATE" } else { "DELETE" };
            return Err(crate::bind::through::not_updatable(view, verb));
        }
        let text = "View being updated does not have complete key of underlying table in it";
        self.add_warnings(vec![error::make(1355, "HY000", text)]);
        Ok(())
    }

    async fn change_rows(
        &mut self,
        plan: &ChangePlan,
        externals: &[Value],
    ) -> Result<(u64, u64), Failure> {
        let mut rows = Kept::new(self.share());
        self.produce(&plan.query, externals, &mut rows, false).await?;
        let (mut matched, mut changed) = (0, 0);
        for target in &plan.targets {
            let (found, done) = self.change_target(plan, target, &rows.rows, externals).await?;
            matched += found;
            changed += done;
        }
        self.finish_statement().await?;
        Ok((matched, changed))
    }

    /// Changes the rows of one table; each once, as the first row of the query says.
    async fn change_target(
        &mut self,
        plan: &ChangePlan,
        target: &Target,
        rows: &[Vec<Value>],
        externals: &[Value],
    ) -> Result<(u64, u64), Failure> {
        let table = &target.table;
        let mut seen = BTreeSet::new();
        let (mut changes, mut others) = (Vec::new(), Vec::new());
        for row in rows {
            let Some(key) = key_of(target, row) else { continue };
            if !seen.insert(key.clone()) {
                continue;
            }
            changes.push((key, program(plan, target, row, externals)));
            if let Some((_, places)) = &target.check {
                let value = |place: &usize| row.get(*place).cloned().unwrap_or(Value::Null);
                others.push(places.iter().map(value).collect::<Vec<Value>>());
            }
        }
        if plan.updates {
            let assigned: Vec<u16> = target.assignments.iter().map(|(column, _)| *column).collect();
            let check = target.check.as_ref().map(|(check, _)| (check, others.as_slice()));
            let images = Images { table, assigned: &assigned, check };
            return self.write_changed_images(images, changes).await;
        }
        let deletes =
            changes.into_iter().map(|(key, _)| operation(table, RowOpKind::Delete, key)).collect();
        let changed = self.delete_rows(deletes, table).await?;
        Ok((changed, changed))
    }
}

/// The key of the target's row; none if an outer join has found none.
fn key_of(target: &Target, row: &[Value]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(16);
    for (place, column) in (target.first..).zip(&target.table.def.primary_key) {
        let value = row.get(place)?;
        if value.is_null() {
            return None;
        }
        encode_key_value(target.table.types.get(usize::from(*column))?, value, &mut key);
    }
    Some(key)
}

/// The assignments of one row.
fn program(plan: &ChangePlan, target: &Target, row: &[Value], externals: &[Value]) -> Program {
    let value = |value: &NewValue| match value {
        NewValue::OfRow(expr) => with_externals(expr, externals),
        NewValue::Found(place) => Expr::Literal(row.get(*place).cloned().unwrap_or(Value::Null)),
    };
    let assignments = target.assignments.iter().map(|(column, new)| (*column, value(new)));
    Program {
        filter: None,
        assignments: assignments.collect(),
        projection: None,
        strict: plan.strict,
    }
}
