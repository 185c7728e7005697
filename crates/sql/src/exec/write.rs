//! UPDATE and DELETE.

use super::unique::Pursuit;
use super::{Chunks, limits, operation};
use crate::access::{Outside, Target};
use crate::error::Failure;
use crate::expr::{RowSource, with_externals};
use crate::plan::check::Check;
use crate::plan::write::WritePlan;
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use crate::table::Table;
use lats_client::api::{AsOf, LockMode, RowOp, RowOpKind, RowOutcome, Scan};
use lats_values::{EvalContext, Expr, Program, Value};

/// What an UPDATE of a table with unique indexes has sent: the text of 1062 is made from it.
#[derive(Default)]
struct Update {
    keys: Vec<Vec<u8>>,
    /// The same for all rows.
    program: Vec<u8>,
}

impl Update {
    fn of(operations: &[RowOp], table: &Table) -> Self {
        match operations {
            [first, ..] if first.kind == RowOpKind::Update && table.has_unique_index() => Self {
                keys: operations.iter().map(|op| op.key.clone()).collect(),
                program: first.program.clone(),
            },
            _ => Self::default(),
        }
    }
}

/// Rows whose images are written, and the columns that the statement assigns.
pub(super) struct Images<'a> {
    pub(super) table: &'a Table,
    pub(super) assigned: &'a [u16],
    /// What new rows must meet, and for each row the values that this needs of other tables.
    pub(super) check: Option<(&'a Check, &'a [Vec<Value>])>,
}

#[derive(Default)]
struct Counts {
    matched: u64,
    changed: u64,
}

impl<S: Store> Session<S> {
    pub(crate) async fn write(
        &mut self,
        plan: &WritePlan,
        externals: &[Value],
    ) -> Result<Outcome, Failure> {
        let careful = self.variables.changed_number("sql_safe_updates") == Some(1);
        if careful && plan.access.columns.is_empty() && plan.limit.count.is_none() {
            return Err(crate::error::unsafe_update().into());
        }
        let mark = self.statement_mark();
        match self.write_rows(plan, externals).await {
            Ok(counts) => Ok(self.write_outcome(plan, &counts)),
            Err(failure) => {
                self.undo_statement(mark).await;
                Err(super::with_column_names(failure, &plan.table))
            }
        }
    }

    fn write_outcome(&self, plan: &WritePlan, counts: &Counts) -> Outcome {
        if plan.assignments.is_none() {
            return Outcome::Done(Done { affected_rows: counts.changed, ..Done::default() });
        }
        let affected = if self.client.found_rows { counts.matched } else { counts.changed };
        let info = format!(
            "Rows matched: {}  Changed: {}  Warnings: {}",
            counts.matched,
            counts.changed,
            self.warnings.len()
        );
        Outcome::Done(Done { affected_rows: affected, info, ..Done::default() })
    }

    async fn write_rows(
        &mut self,
        plan: &WritePlan,
        externals: &[Value],
    ) -> Result<Counts, Failure> {
        let (_, limit) = limits(&plan.limit, externals)?;
        let resolved = plan.access.resolve(&plan.table, Outside::constants(externals))?;
        let filter = resolved.filter;
        // Columns that were planned to be fixed may not be: then the scan gives no order.
        let ordered = plan.ordered_scan && (resolved.exact || plan.access.fixed == 0);
        let (keys, filter) = match resolved.target {
            Target::Keys(keys) if limit >= keys.len() as u64 => (keys, filter),
            Target::UniqueKeys(keys) if limit >= keys.len() as u64 && !plan.by_image => {
                return self.write_by_unique(plan, keys, externals).await;
            }
            Target::UniqueKeys(keys) if limit >= keys.len() as u64 => {
                let keys = self.find_keys(&plan.table, plan.access.index, &keys).await?;
                (keys, plan.access.filter.as_ref())
            }
            Target::Keys(keys) | Target::UniqueKeys(keys) => {
                let ranges = crate::access::key_ranges(&keys);
                let keys = self.collect_keys(plan, (ranges, ordered), filter, externals).await?;
                (keys, plan.access.filter.as_ref())
            }
            Target::Ranges(ranges) => {
                let keys = self.collect_keys(plan, (ranges, ordered), filter, externals).await?;
                (keys, plan.access.filter.as_ref())
            }
        };
        if plan.by_image {
            return self.write_images(plan, keys, filter, externals).await;
        }
        let program = match &plan.program {
            Some(program) if filter == plan.access.residual.as_ref() => program.clone(),
            _ => plan.row_program(filter.cloned(), externals),
        };
        let kind = match plan.assignments {
            Some(_) => RowOpKind::Update,
            None => RowOpKind::Delete,
        };
        let operations = keys
            .into_iter()
            .map(|key| RowOp { program: program.clone(), ..operation(&plan.table, kind, key) })
            .collect();
        self.write_operations(operations, &plan.table).await
    }

    /// Changes the rows with these keys of a unique index, whichever rows have them by then.
    async fn write_by_unique(
        &mut self,
        plan: &WritePlan,
        keys: Vec<Vec<u8>>,
        externals: &[Value],
    ) -> Result<Counts, Failure> {
        let kind = match plan.assignments {
            Some(_) => RowOpKind::Update,
            None => RowOpKind::Delete,
        };
        let program = plan.row_program(plan.access.filter.clone(), externals);
        let mut pursuit = Pursuit::new(plan.access.index, keys);
        let ends = pursuit.is_single();
        let mut counts = Counts::default();
        loop {
            let keys = pursuit.next(self, &plan.table).await?;
            if keys.is_empty() {
                self.finish_statement().await?;
                return Ok(counts);
            }
            let operations = keys
                .into_iter()
                .map(|key| RowOp { program: program.clone(), ..operation(&plan.table, kind, key) })
                .collect();
            let mut matched = Vec::new();
            let some = self.write_some((operations, &plan.table), ends, &mut matched).await?;
            counts.matched += some.matched;
            counts.changed += some.changed;
            pursuit.keep_missed(matched.into_iter());
        }
    }

    async fn write_operations(
        &mut self,
        operations: Vec<RowOp>,
        table: &Table,
    ) -> Result<Counts, Failure> {
        self.write_some((operations, table), true, &mut Vec::new()).await
    }

    /// Notes which operations met a row that matched. With `ends` the last ones commit, if the session
    /// commits by itself.
    async fn write_some(
        &mut self,
        (operations, table): (Vec<RowOp>, &Table),
        ends: bool,
        matched: &mut Vec<bool>,
    ) -> Result<Counts, Failure> {
        let mut counts = Counts::default();
        let mut chunks = Chunks::changing(operations, table);
        while let Some((chunk, last)) = chunks.next_chunk() {
            let last = last && ends;
            let update = Update::of(&chunk, table);
            let results = self.run_operations(chunk, last).await?;
            let mut both = update.keys.iter().zip(&results);
            if let Some((key, taken)) = both.find(|(_, r)| r.outcome == RowOutcome::Duplicate) {
                let (key, program) = (key.clone(), &update.program);
                return Err(self.duplicate_in_update(table, (key, program), taken).await);
            }
            for result in results {
                matched.push(matches!(result.outcome, RowOutcome::Done | RowOutcome::Unchanged));
                match result.outcome {
                    RowOutcome::Done => {
                        counts.matched += 1;
                        counts.changed += 1;
                    }
                    RowOutcome::Unchanged => counts.matched += 1,
                    _ => {}
                }
            }
        }
        Ok(counts)
    }

    /// The primary keys of the rows that a condition holds for, at most LIMIT of them.
    async fn collect_keys(
        &mut self,
        plan: &WritePlan,
        (ranges, ordered): (Vec<lats_client::api::KeyRange>, bool),
        filter: Option<&Expr>,
        externals: &[Value],
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let (_, limit) = limits(&plan.limit, externals)?;
        if ranges.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let sorts = !plan.order.is_empty() && !ordered && limit != u64::MAX;
        let filter = filter.map(|f| with_externals(f, externals));
        let projection = if sorts { None } else { Some(Vec::new()) };
        let scan = Scan {
            table: plan.table.def.id,
            schema_version: plan.table.def.schema_version,
            index: plan.access.index,
            ranges,
            ordered,
            reverse: ordered && plan.order.first().is_some_and(|(_, desc)| *desc),
            primary_keys: true,
            program: plan.find_program(filter, projection),
            limit: (limit != u64::MAX && !sorts).then_some(limit),
            as_of: AsOf::Newest,
            pending: false,
            few: false,
        };
        let mut running = self.start_scan(scan);
        let mut found: Vec<(Vec<Value>, Vec<u8>)> = Vec::new();
        let (mut bytes, mut share) = (0usize, self.share());
        while let Some(rows) = running.next().await? {
            for row in rows.iter() {
                bytes += row.primary_key.len() + 64;
                let order = if sorts { order_values(plan, row.row, externals)? } else { vec![] };
                found.push((order, row.primary_key.to_vec()));
            }
            share.cover(bytes)?;
            if !sorts && found.len() as u64 >= limit {
                break;
            }
        }
        if sorts {
            let descending: Vec<bool> = plan.order.iter().map(|(_, d)| *d).collect();
            found.sort_by(|a, b| super::select::compare_rows(&a.0, &b.0, &descending));
        }
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(found.into_iter().map(|(_, key)| key).collect())
    }

    /// Updates whose new rows are computed here: rows are locked and read, then written.
    async fn write_images(
        &mut self,
        plan: &WritePlan,
        keys: Vec<Vec<u8>>,
        filter: Option<&Expr>,
        externals: &[Value],
    ) -> Result<Counts, Failure> {
        let filter = filter.map(|f| with_externals(f, externals));
        let assigned: Vec<u16> = plan.assignments.iter().flatten().map(|(at, _)| *at).collect();
        let assignments = plan.assignments.iter().flatten();
        let program = Program {
            filter,
            assignments: assignments
                .map(|(column, expr)| (*column, with_externals(expr, externals)))
                .collect(),
            projection: None,
            strict: plan.strict,
        };
        let images = Images { table: &plan.table, assigned: &assigned, check: None };
        let counts = self.change_images(images, keys, &mut |_| &program).await?;
        self.finish_statement().await?;
        Ok(counts)
    }

    /// Updates of rows with a program each; how many there were, and how many have changed.
    pub(super) async fn write_changed_images(
        &mut self,
        images: Images<'_>,
        changes: Vec<(Vec<u8>, Program)>,
    ) -> Result<(u64, u64), Failure> {
        let (keys, programs): (Vec<Vec<u8>>, Vec<Program>) = changes.into_iter().unzip();
        let counts = self.change_images(images, keys, &mut |at| &programs[at]).await?;
        Ok((counts.matched, counts.changed))
    }

    /// Deletes rows; how many there were.
    pub(super) async fn delete_rows(
        &mut self,
        deletes: Vec<RowOp>,
        table: &Table,
    ) -> Result<u64, Failure> {
        let counts = self.write_some((deletes, table), false, &mut Vec::new()).await?;
        Ok(counts.changed)
    }

    /// Locks and reads rows, computes the new ones, and writes them.
    async fn change_images<'p>(
        &mut self,
        images: Images<'_>,
        keys: Vec<Vec<u8>>,
        program: &mut (dyn FnMut(usize) -> &'p Program + Send),
    ) -> Result<Counts, Failure> {
        let table = images.table;
        let reads = keys.into_iter().enumerate();
        let reads: Vec<RowOp> = reads
            .map(|(at, key)| RowOp {
                program: filter_program(program(at)),
                ..operation(table, RowOpKind::Read(LockMode::Exclusive), key)
            })
            .collect();
        let mut counts = Counts::default();
        let is_sequenced = |column: &&u16| table.def.columns[usize::from(**column)].auto_increment;
        let sequenced = images.assigned.iter().find(is_sequenced).copied();
        let mut highest = 0;
        let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
        let mut chunks = Chunks::changing(reads, table);
        let (mut bytes, mut at, mut share) = (0, 0, self.share());
        while let Some((chunk, _)) = chunks.next_chunk() {
            for result in self.run_operations(chunk, false).await? {
                let program = program(at);
                at += 1;
                let Some(old) = result.row else { continue };
                counts.matched += 1;
                let Some(new) = program.updated(&table.layout, &old)? else { continue };
                if new == old {
                    continue;
                }
                counts.changed += 1;
                let new = self.touch(&images, new)?;
                if let Some((check, others)) = images.check {
                    let others = others.get(at - 1).map_or(&[][..], Vec::as_slice);
                    let row = table.layout.decode(&new);
                    if !self.passes(check, &row, others).await? {
                        return Err(check.failed().into());
                    }
                }
                bytes += new.len() * 2;
                share.cover(bytes)?;
                if let Some(column) = sequenced {
                    highest = highest.max(table.positive(&new, column));
                }
                let (before, after) = (table.key_of(&old), table.key_of(&new));
                let moved = before != after;
                let kind = if moved { RowOpKind::Insert } else { RowOpKind::Write };
                if moved {
                    deletes.push(operation(table, RowOpKind::Delete, before));
                }
                inserts.push(RowOp { row: new, ..operation(table, kind, after) });
            }
        }
        if highest > 0 {
            self.observe(table.def.id, highest).await?;
        }
        deletes.extend(inserts);
        self.replace_rows(table, deletes).await?;
        Ok(counts)
    }

    /// Sets the columns with ON UPDATE CURRENT_TIMESTAMP that the statement does not assign.
    fn touch(&self, images: &Images<'_>, row: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let table = images.table;
        let touched: Vec<(u16, u8)> = table
            .def
            .columns
            .iter()
            .zip(0u16..)
            .filter(|(def, at)| def.on_update_now && !images.assigned.contains(at))
            .map(|(def, at)| (at, def.column_type.kind.fsp()))
            .collect();
        if touched.is_empty() {
            return Ok(row);
        }
        let mut values = table.layout.decode(&row);
        for (at, fsp) in touched {
            if let Some(value) = values.get_mut(usize::from(at)) {
                *value = self.now(fsp);
            }
        }
        let mut out = Vec::with_capacity(row.len());
        table.layout.encode(&values, &mut out)?;
        Ok(out)
    }

    async fn replace_rows(&mut self, table: &Table, operations: Vec<RowOp>) -> Result<(), Failure> {
        let mut chunks = Chunks::changing(operations, table);
        while let Some((chunk, _)) = chunks.next_chunk() {
            let rows: Vec<Vec<u8>> = chunk.iter().map(|op| op.row.clone()).collect();
            for (result, row) in self.run_operations(chunk, false).await?.iter().zip(rows) {
                if matches!(result.outcome, RowOutcome::Exists | RowOutcome::Duplicate) {
                    return Err(super::unique::duplicate(table, Some(result), &row).into());
                }
            }
        }
        Ok(())
    }
}

/// Reads the rows that a program is for.
fn filter_program(program: &Program) -> Vec<u8> {
    match &program.filter {
        None => Vec::new(),
        filter => {
            let (filter, strict) = (filter.clone(), program.strict);
            Program { filter, strict, ..Program::default() }.encode()
        }
    }
}

fn order_values(plan: &WritePlan, row: &[u8], externals: &[Value]) -> Result<Vec<Value>, Failure> {
    let source = RowSource {
        layout: Some(&plan.table.layout),
        row: Some(row),
        positions: &[],
        aggregates: &[],
        externals,
    };
    let mut values = Vec::with_capacity(plan.order.len());
    for (expr, _) in &plan.order {
        let value = lats_values::eval(expr, &source, &mut EvalContext::new(plan.strict))?;
        let kind = crate::expr::type_of(expr, &plan.table.types, &[], externals);
        values.push(lats_values::present(value, &kind));
    }
    Ok(values)
}
