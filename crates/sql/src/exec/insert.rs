//! INSERT and REPLACE.

mod conflict;

use super::{Chunks, operation, unique::duplicate};
use crate::error::{self, Failure};
use crate::expr::{RowSource, ValuesSource};
use crate::literal_rows::LiteralRows;
use crate::plan::Columns;
use crate::plan::check::Check;
use crate::plan::insert::{Cell, InsertPlan, OnConflict};
use crate::plan::query::QueryPlan;
use crate::session::{Done, Outcome, Session, Share, Sink};
use crate::store::Store;
use crate::table::Table;
use lats_catalog::DefaultValue;
use lats_client::api::{LockMode, RowOp, RowOpKind, RowOutcome};
use lats_values::{
    ColumnSource, ConvertContext, Date, DateTime, EvalContext, Expr, Program, SqlError, TypeKind,
    Value,
};
use std::collections::BTreeSet;

#[derive(Default)]
struct Counts {
    affected: u64,
    duplicates: u64,
    ids: Ids,
}

/// AUTO_INCREMENT values of a statement, as MySQL tells clients of them.
#[derive(Default)]
struct Ids {
    /// The column, and the values that were generated for it.
    column: Option<u16>,
    generated: Vec<std::ops::Range<u64>>,
    /// The first generated value that was stored.
    first: u64,
    /// The value of the last row that was stored.
    last: u64,
    /// The key of the last row that was updated in the place of a new one.
    updated: Option<Vec<u8>>,
}

impl Ids {
    /// A new row was stored.
    fn note(&mut self, table: &Table, row: &[u8]) {
        let Some(column) = self.column else { return };
        let value = table.positive(row, column);
        self.last = value;
        self.updated = None;
        if self.first == 0 && self.generated.iter().any(|range| range.contains(&value)) {
            self.first = value;
        }
    }
}

impl<S: Store> Session<S> {
    pub(crate) async fn insert(
        &mut self,
        plan: &InsertPlan,
        externals: &[Value],
        literals: Option<&LiteralRows>,
    ) -> Result<Outcome, Failure> {
        let table = &plan.table;
        let selected = match &plan.query {
            Some(query) => Some(self.selected_rows(query, externals).await?),
            None => None,
        };
        let literals = selected.as_ref().or(literals);
        let mut rows = match plan.names_columns {
            true => self.compute_named_rows(plan, externals)?,
            false => self.compute_rows(plan, externals, literals)?,
        };
        if rows.is_empty() {
            return Ok(Outcome::Done(Done { info: insert_info(0, 0, 0), ..Done::default() }));
        }
        let generated = self.fill_sequence(plan, &mut rows).await?;
        if let Some(check) = &plan.check {
            rows = self.checked_rows(plan, check, rows).await?;
        }
        let ids = Ids {
            column: (0u16..)
                .zip(&table.def.columns)
                .find(|(_, c)| c.auto_increment && plan.tells_ids)
                .map(|(at, _)| at),
            generated,
            ..Ids::default()
        };
        let mut images = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut image = Vec::with_capacity(128);
            plan.table.layout.encode(row, &mut image)?;
            images.push(image);
        }
        drop(rows);
        let mark = self.statement_mark();
        let records = images.len();
        match self.insert_images(plan, images, ids, externals).await {
            Ok(counts) => Ok(Outcome::Done(Done {
                affected_rows: counts.affected,
                last_insert_id: counts.ids.first,
                told_insert_id: match counts.ids.first {
                    0 => counts.ids.last,
                    first => first,
                },
                info: self.insert_info(plan, records, &counts),
            })),
            Err(failure) => {
                self.undo_statement(mark).await;
                Err(super::with_column_names(failure, table))
            }
        }
    }

    /// The rows that are those of the view. IGNORE leaves the others out.
    async fn checked_rows(
        &mut self,
        plan: &InsertPlan,
        check: &Check,
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>, Failure> {
        let mut kept = Vec::with_capacity(rows.len());
        for row in rows {
            if self.passes(check, &row, &[]).await? {
                kept.push(row);
            } else if ignores(plan) {
                self.add_warnings(vec![check.failed()]);
            } else {
                return Err(check.failed().into());
            }
        }
        Ok(kept)
    }

    fn insert_info(&self, plan: &InsertPlan, records: usize, counts: &Counts) -> String {
        if records == 1 && plan.query.is_none() {
            return String::new();
        }
        insert_info(records, counts.duplicates, self.warnings.len())
    }

    /// The rows of a query, all of them: the table that is written may be one that it reads.
    async fn selected_rows(
        &mut self,
        query: &QueryPlan,
        externals: &[Value],
    ) -> Result<LiteralRows, Failure> {
        let mut kept = Kept::new(self.share());
        self.produce(query, externals, &mut kept, false).await?;
        let width = query.columns.len().max(1);
        Ok(LiteralRows { template: Vec::new(), width, values: kept.values })
    }

    /// Rows whose values name columns of the row: each sees what stands before it in the list, and defaults of the others.
    fn compute_named_rows(
        &mut self,
        plan: &InsertPlan,
        externals: &[Value],
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let mut rows = Vec::with_capacity(plan.rows.len());
        let mut warnings = std::mem::take(&mut self.warnings);
        let many = plan.rows.len() > 1;
        // The columns in the order of the list.
        let mut order: Vec<(usize, u16)> =
            plan.sources.iter().zip(0u16..).filter_map(|(from, at)| Some(((*from)?, at))).collect();
        order.sort_unstable();
        for (cells, number) in plan.rows.iter().zip(1u64..) {
            let mut row = Vec::with_capacity(plan.sources.len());
            for (from, at) in plan.sources.iter().zip(0u16..) {
                let value = match (from, self.default_value(plan, at, &mut Vec::new())) {
                    (None, default) => default?,
                    (Some(_), default) => default.unwrap_or(Value::Null),
                };
                row.push(value);
            }
            for (from, at) in &order {
                let Some(Cell::Expr(expr)) = cells.get(*from) else {
                    row[usize::from(*at)] = self.default_value(plan, *at, &mut warnings)?;
                    continue;
                };
                let source = ValuesSource { row: &row, externals };
                let value = given(plan, expr, &source, &mut warnings)?;
                row[usize::from(*at)] = stored(plan, *at, value, (number, many), &mut warnings)?;
            }
            rows.push(row);
        }
        self.warnings = warnings;
        Ok(rows)
    }

    /// The rows as the table stores them: those of the plan, or literals in the place of its one row of placeholders.
    fn compute_rows(
        &mut self,
        plan: &InsertPlan,
        externals: &[Value],
        literals: Option<&LiteralRows>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let source = RowSource::constant(externals);
        let count = literals.map_or(plan.rows.len(), LiteralRows::count);
        let mut rows = Vec::with_capacity(count);
        let mut warnings = std::mem::take(&mut self.warnings);
        for (at_row, number) in (0..count).zip(1u64..) {
            let mut row = Vec::with_capacity(plan.sources.len());
            for (from, at) in plan.sources.iter().zip(0u16..) {
                let value = match (from, literals) {
                    (Some(from), Some(literals)) => literals.row(at_row).get(*from).cloned(),
                    (Some(from), None) => match plan.rows[at_row].get(*from) {
                        Some(Cell::Expr(expr)) => Some(given(plan, expr, &source, &mut warnings)?),
                        Some(Cell::Default) | None => None,
                    },
                    (None, _) => None,
                };
                row.push(match value {
                    Some(value) => stored(plan, at, value, (number, count > 1), &mut warnings)?,
                    None => self.default_value(plan, at, &mut warnings)?,
                });
            }
            rows.push(row);
        }
        self.warnings = warnings;
        Ok(rows)
    }

    fn default_value(
        &self,
        plan: &InsertPlan,
        at: u16,
        warnings: &mut Vec<SqlError>,
    ) -> Result<Value, SqlError> {
        let def = &plan.table.def.columns[usize::from(at)];
        match &def.default {
            DefaultValue::Literal(value) => Ok(value.clone()),
            DefaultValue::Now => Ok(self.now(def.column_type.kind.fsp())),
            DefaultValue::None if generates(plan, at) || def.column_type.nullable => {
                Ok(Value::Null)
            }
            DefaultValue::None => {
                let error = match &plan.view {
                    Some((database, name)) => error::no_default_in_view(database, name),
                    None => error::no_default(&def.name),
                };
                match implicit_default(plan, at) {
                    Some(value) if !plan.strict => {
                        lats_values::error::push_warning(warnings, error);
                        Ok(value)
                    }
                    _ => Err(error),
                }
            }
        }
    }

    /// Gives AUTO_INCREMENT columns their values, in the order of the rows; those that were generated.
    async fn fill_sequence(
        &mut self,
        plan: &InsertPlan,
        rows: &mut [Vec<Value>],
    ) -> Result<Vec<std::ops::Range<u64>>, Failure> {
        let numbered = plan.table.def.columns.iter().zip(0u16..);
        let column = numbered.filter(|(_, at)| generates(plan, *at)).map(|(_, at)| at).next();
        let Some(column) = column else { return Ok(Vec::new()) };
        let is_hidden = plan.table.def.columns[usize::from(column)].hidden;
        let zero_counts =
            self.variables.get("sql_mode").to_display().contains("NO_AUTO_VALUE_ON_ZERO");
        let (at, many, id) = (usize::from(column), rows.len() > 1, plan.table.def.id);
        let mut generated = Vec::new();
        let mut without = Vec::new();
        let mut from = 0;
        while from < rows.len() {
            // Rows without a value get values in a row, rows with values move the sequence on.
            let is_wanted = wants_value(&rows[from][at], zero_counts);
            let same = |row: &&Vec<Value>| wants_value(&row[at], zero_counts) == is_wanted;
            let to = from + rows[from..].iter().take_while(same).count();
            if !is_wanted {
                let given = rows[from..to].iter().filter_map(|row| positive(&row[at]));
                if let Some(highest) = given.max() {
                    self.observe(id, highest).await?;
                }
                without.extend(from..to);
                from = to;
                continue;
            }
            let first = self.generate(id, (to - from) as u64).await?;
            for (row, (value, number)) in
                rows[from..to].iter_mut().zip((first..).zip(from as u64 + 1..))
            {
                row[at] =
                    stored(plan, column, Value::UInt(value), (number, many), &mut self.warnings)
                        .map_err(|_| sequence_is_used_up())?;
            }
            generated.push(first..first.saturating_add((to - from) as u64));
            from = to;
        }
        if is_hidden {
            return Ok(Vec::new());
        }
        if let Some(key) = plan.table.def.columns.iter().position(|column| column.hidden) {
            self.fill_hidden_key(plan, rows, (at, key), &without).await?;
        }
        Ok(generated)
    }

    /// The hidden key of a table that numbers another column: the row's number, or for the rows without one a number of their own. The
    /// sequence gives no number twice.
    async fn fill_hidden_key(
        &mut self,
        plan: &InsertPlan,
        rows: &mut [Vec<Value>],
        (numbered, key): (usize, usize),
        without: &[usize],
    ) -> Result<(), Failure> {
        let mut left: BTreeSet<usize> = without.iter().copied().collect();
        for (at, row) in rows.iter_mut().enumerate() {
            match positive(&row[numbered]) {
                Some(number) => row[key] = Value::UInt(number),
                None => _ = left.insert(at),
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let first = self.generate(plan.table.def.id, left.len() as u64).await?;
        for (at, number) in left.into_iter().zip(first..) {
            rows[at][key] = Value::UInt(number);
        }
        Ok(())
    }

    async fn insert_images(
        &mut self,
        plan: &InsertPlan,
        images: Vec<Vec<u8>>,
        ids: Ids,
        externals: &[Value],
    ) -> Result<Counts, Failure> {
        let table = &plan.table;
        let operations: Vec<RowOp> = images
            .into_iter()
            .map(|row| {
                let key = table.key_of(&row);
                RowOp { row, ..operation(table, RowOpKind::Insert, key) }
            })
            .collect();
        // A taken key is no error of the store: what was inserted beside it must not be committed
        // before the outcomes are known, unless such rows are only left out.
        let single = operations.len() == 1;
        let settled = match plan.conflict {
            OnConflict::Ignore => single || !table.has_unique_index(),
            OnConflict::Error => single,
            OnConflict::Replace | OnConflict::Update(_) => false,
        };
        // What one row takes away or changes, the next one may bring: then they come in their order.
        let replaces = matches!(plan.conflict, OnConflict::Replace | OnConflict::Update(_));
        // Each row that is changed is looked at by itself, too.
        let in_order = replaces && (table.has_unique_index() || plan.check.is_some());
        let mut counts = Counts { ids, ..Counts::default() };
        // The images are in the requests.
        let mut chunks = Chunks::of_writes(operations, table);
        while let Some((chunk, last)) = chunks.next_chunk() {
            let rows: Vec<Vec<u8>> = chunk.iter().map(|op| op.row.clone()).collect();
            let mark = self.mark();
            let results = self.run_operations(chunk, last && settled).await?;
            let taken = results.iter().any(|r| r.outcome == RowOutcome::Exists);
            let undone = results.iter().any(|r| r.outcome == RowOutcome::Duplicate);
            if in_order && taken && !undone {
                self.undo_to(mark).await?;
                self.place_rows(plan, rows, externals, &mut counts).await?;
                continue;
            }
            if undone {
                self.resolve_duplicates(plan, (rows, &results), externals, &mut counts).await?;
                continue;
            }
            let mut taken = Vec::new();
            for (result, row) in results.iter().zip(rows) {
                match result.outcome {
                    RowOutcome::Exists => taken.push(row),
                    _ => {
                        counts.affected += 1;
                        counts.ids.note(table, &row);
                    }
                }
            }
            self.resolve_taken(plan, taken, externals, &mut counts).await?;
        }
        if let (Some(key), Some(column)) = (counts.ids.updated.take(), counts.ids.column) {
            // It is told the row that took its place.
            let read = operation(table, RowOpKind::Read(LockMode::Committed), key);
            let rows = self.run_operations(vec![read], false).await?;
            let row = rows.into_iter().next().and_then(|r| r.row);
            counts.ids.last = row.map_or(0, |row| table.positive(&row, column));
        }
        self.finish_statement().await?;
        Ok(counts)
    }

    async fn resolve_taken(
        &mut self,
        plan: &InsertPlan,
        taken: Vec<Vec<u8>>,
        externals: &[Value],
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        let table = &plan.table;
        let Some(first) = taken.first() else { return Ok(()) };
        let assignments = match &plan.conflict {
            OnConflict::Error => return Err(duplicate(table, None, first).into()),
            OnConflict::Ignore => {
                counts.duplicates += taken.len() as u64;
                let warnings = taken.iter().map(|row| duplicate(table, None, row)).collect();
                self.add_warnings(warnings);
                return Ok(());
            }
            OnConflict::Replace => return self.replace_taken(table, taken, counts).await,
            OnConflict::Update(assignments) => assignments,
        };
        counts.duplicates += taken.len() as u64;
        let update = |row: Vec<u8>| RowOp {
            program: update_program(plan, assignments, &row, externals).into(),
            ..operation(table, RowOpKind::Update, table.key_of(&row))
        };
        let mut chunks = Chunks::changing(taken.into_iter().map(update).collect(), table);
        while let Some((chunk, _)) = chunks.next_chunk() {
            let keys: Vec<Vec<u8>> = chunk.iter().map(|op| op.key.clone()).collect();
            for (result, key) in self.run_operations(chunk, false).await?.iter().zip(keys) {
                match result.outcome {
                    RowOutcome::Unchanged => counts.affected += u64::from(self.client.found_rows),
                    _ => {
                        counts.affected += 2;
                        counts.ids.updated = Some(key);
                    }
                }
            }
        }
        Ok(())
    }

    /// REPLACE of rows whose primary keys are taken. A row that stays as it is counts once, as in MySQL.
    async fn replace_taken(
        &mut self,
        table: &Table,
        taken: Vec<Vec<u8>>,
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        // Each is read before it is written: one of the same statement may be what it meets.
        let both = taken.into_iter().flat_map(|row| {
            let key = table.key_of(&row);
            let read = operation(table, RowOpKind::Read(LockMode::Exclusive), key.clone());
            [read, RowOp { row, ..operation(table, RowOpKind::Write, key) }]
        });
        let mut chunks = Chunks::changing(both.collect(), table);
        let mut before = None;
        while let Some((chunk, _)) = chunks.next_chunk() {
            let rows: Vec<Vec<u8>> = chunk.iter().map(|op| op.row.clone()).collect();
            for (result, row) in self.run_operations(chunk, false).await?.into_iter().zip(rows) {
                if row.is_empty() {
                    before = result.row;
                    continue;
                }
                let is_other = before.take().is_none_or(|before| before != row);
                counts.affected += 1 + u64::from(is_other);
                counts.duplicates += u64::from(is_other);
                counts.ids.note(table, &row);
            }
        }
        Ok(())
    }
}

/// True if a column takes its next value: NULL says so, and 0 in most modes.
fn wants_value(value: &Value, zero_counts: bool) -> bool {
    match value {
        Value::Null => true,
        Value::Int(0) | Value::UInt(0) => !zero_counts,
        _ => false,
    }
}

fn positive(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::UInt(value) => Some(*value),
        _ => None,
    };
    number.filter(|number| *number > 0)
}

fn insert_info(records: usize, duplicates: u64, warnings: usize) -> String {
    format!("Records: {records}  Duplicates: {duplicates}  Warnings: {warnings}")
}

/// Keeps the rows of a query.
struct Kept {
    begun: bool,
    values: Vec<Value>,
    bytes: usize,
    share: Share,
}

impl Kept {
    fn new(share: Share) -> Self {
        Self { begun: false, values: Vec::new(), bytes: 0, share }
    }
}

impl Sink for Kept {
    fn begin(&mut self, _: &Columns) {
        self.begun = true;
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        self.bytes += super::select::row_bytes(values);
        self.share.cover(self.bytes)?;
        self.values.extend_from_slice(values);
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.begun
    }
}

fn sequence_is_used_up() -> SqlError {
    error::make(1467, "HY000", "Failed to read auto-increment value from storage engine")
}

/// The update of ON DUPLICATE KEY UPDATE for one new row.
fn update_program(
    plan: &InsertPlan,
    assignments: &[(u16, Expr)],
    row: &[u8],
    externals: &[Value],
) -> Vec<u8> {
    let columns = plan.table.types.len();
    let bound = |expr: &Expr| {
        let with_row = crate::expr::map_columns(expr, &|number| {
            let at = (number as usize).checked_sub(columns).filter(|at| *at < columns)?;
            let at = u16::try_from(at).ok()?;
            Some(Expr::Literal(plan.table.layout.value(row, at)))
        });
        crate::expr::with_externals(&with_row, externals)
    };
    Program {
        filter: None,
        assignments: assignments.iter().map(|(column, expr)| (*column, bound(expr))).collect(),
        projection: None,
        strict: plan.strict,
    }
    .encode()
}

fn ignores(plan: &InsertPlan) -> bool {
    matches!(plan.conflict, OnConflict::Ignore)
}

/// True for columns that are filled from the table's sequence.
fn generates(plan: &InsertPlan, at: u16) -> bool {
    let def = &plan.table.def.columns[usize::from(at)];
    def.auto_increment || def.hidden
}

fn given(
    plan: &InsertPlan,
    expr: &Expr,
    source: &dyn ColumnSource,
    warnings: &mut Vec<SqlError>,
) -> Result<Value, SqlError> {
    if let Expr::Literal(value) = expr {
        return Ok(value.clone());
    }
    let mut context = EvalContext::new(plan.strict);
    let value = lats_values::eval(expr, source, &mut context)?;
    for warning in context.warnings {
        lats_values::error::push_warning(warnings, warning);
    }
    Ok(value)
}

/// The value as the column stores it, in a row with this number, of many or alone.
fn stored(
    plan: &InsertPlan,
    at: u16,
    value: Value,
    (row, many): (u64, bool),
    warnings: &mut Vec<SqlError>,
) -> Result<Value, SqlError> {
    let def = &plan.table.def.columns[usize::from(at)];
    if value.is_null() {
        if def.column_type.nullable || generates(plan, at) {
            return Ok(Value::Null);
        }
        let error = error::null_not_allowed(&def.name);
        return match implicit_default(plan, at) {
            // One row alone must not be wrong; of many, the others count.
            Some(value) if !plan.strict && (ignores(plan) || many) => {
                lats_values::error::push_warning(warnings, error);
                Ok(value)
            }
            _ => Err(error),
        };
    }
    let mut context = ConvertContext::new(plan.strict, def.name.as_str(), row);
    let value = lats_values::convert_to_column(value, &def.column_type, &mut context)?;
    for warning in context.warnings {
        lats_values::error::push_warning(warnings, warning);
    }
    Ok(value)
}

/// What a NOT NULL column without a default gets outside strict mode.
fn implicit_default(plan: &InsertPlan, at: u16) -> Option<Value> {
    let column = plan.table.types.get(usize::from(at))?;
    let from = match column.kind {
        TypeKind::Date => return Some(Value::Date(Date::ZERO)),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            return Some(Value::DateTime(DateTime { fsp, ..DateTime::ZERO }));
        }
        kind if kind.is_text() || kind.is_bytes() => Value::text(""),
        TypeKind::Year => Value::UInt(0),
        _ => Value::Int(0),
    };
    let mut context = ConvertContext::new(false, "", 1);
    lats_values::convert_to_column(from, column, &mut context).ok()
}
