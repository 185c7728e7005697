//! UPDATE and DELETE.

use super::look::{Looks, is_not_free};
use super::unique::Pursuit;
use super::{Chunks, limits, operation};
use crate::access::{Outside, Target};
use crate::error::Failure;
use crate::expr::{RowSource, with_externals};
use crate::plan::check::Check;
use crate::plan::write::WritePlan;
use crate::session::{Done, Outcome, Session};
use crate::store::{Store, StoreTransaction};
use crate::table::Table;
use lats_client::api::{
    AsOf, KeyRange, LockMode, LockWait, PRIMARY_INDEX, RowOp, RowOpKind, RowOutcome, Scan,
};
use lats_values::{EvalContext, Expr, Program, Value};
use std::sync::Arc;

/// What an UPDATE of a table with unique indexes has sent: the text of 1062 is made from it.
#[derive(Default)]
struct Update {
    keys: Vec<Vec<u8>>,
    /// The same for all rows.
    program: Arc<[u8]>,
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

/// What the conditions of a statement cover.
enum Cover<'p> {
    /// Some keys.
    Keys,
    /// Ranges of an index, in its order or not, and the condition that rows in them meet.
    Ranges(Vec<KeyRange>, bool, Option<&'p Expr>),
}

/// An UPDATE or DELETE in progress.
struct Writing<'p> {
    plan: &'p WritePlan,
    externals: &'p [Value],
    limit: u64,
    cover: Cover<'p>,
    /// What each row must meet when it is locked.
    filter: Option<&'p Expr>,
    looks: Looks,
    counts: Counts,
    /// The new rows, if they are computed here.
    images: Option<(Program, NewImages)>,
    /// Its changes commit with themselves.
    ends: bool,
}

/// New rows that were computed, and are to be written when all of them are known.
#[derive(Default)]
struct NewImages {
    counts: Counts,
    deletes: Vec<RowOp>,
    inserts: Vec<RowOp>,
    /// The highest value of an AUTO_INCREMENT column.
    highest: u64,
    bytes: usize,
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
        // Who commits by itself does so with the changes, if there is nothing to wait for.
        let hurries = !self.in_transaction();
        let mut written = self.write_rows(plan, externals, hurries).await;
        if hurries && is_not_free(&written) {
            self.begin_anew().await;
            written = self.write_rows(plan, externals, false).await;
        }
        match written {
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
        hurries: bool,
    ) -> Result<Counts, Failure> {
        let (_, limit) = limits(&plan.limit, externals)?;
        let resolved = plan.access.resolve(&plan.table, Outside::constants(externals))?;
        let filter = resolved.filter;
        // Columns that were planned to be fixed may not be: then the scan gives no order.
        let ordered = plan.ordered_scan && (resolved.exact || plan.access.fixed == 0);
        let mut writing = Writing {
            plan,
            externals,
            limit,
            cover: Cover::Keys,
            filter: plan.access.filter.as_ref(),
            looks: Looks::new(self.share()),
            counts: Counts::default(),
            images: plan.by_image.then(|| (image_program(plan, externals), NewImages::default())),
            ends: false,
        };
        let keys = match resolved.target {
            Target::Keys(keys) if limit >= keys.len() as u64 => {
                writing.filter = filter;
                keys
            }
            Target::UniqueKeys(keys) if limit >= keys.len() as u64 => {
                writing.cover = Cover::Ranges(crate::access::key_ranges(&keys), false, filter);
                if !plan.by_image {
                    return self.write_by_unique(writing, keys).await;
                }
                self.find_keys(&plan.table, plan.access.index, &keys).await?
            }
            target => {
                let ranges = match target {
                    Target::Keys(keys) | Target::UniqueKeys(keys) => {
                        crate::access::key_ranges(&keys)
                    }
                    Target::Ranges(ranges) => ranges,
                };
                writing.cover = Cover::Ranges(ranges, ordered, filter);
                if limit != u64::MAX {
                    writing.looks.limit();
                }
                self.collect_keys(&mut writing).await?
            }
        };
        let is_single = matches!(writing.cover, Cover::Keys) && keys.len() == 1;
        let at_once = || Chunks::changing(Vec::new(), &plan.table).rows_max();
        let fits = !plan.by_image && (is_single || keys.len() <= at_once());
        writing.ends = fits && (is_single || hurries && !writing.looks.is_limited());
        let wait = if writing.ends && !is_single { LockWait::Refuse } else { LockWait::Wait };
        self.write_found(&mut writing, keys, wait).await?;
        if is_single && !plan.by_image {
            return Ok(writing.counts);
        }
        self.look_again(&mut writing).await?;
        self.finish_writing(writing).await
    }

    /// LOCK-7: changes the rows that the conditions cover by now, as long as locks are waited for.
    async fn look_again(&mut self, writing: &mut Writing<'_>) -> Result<(), Failure> {
        while writing.counts.matched < writing.limit && writing.looks.again()? {
            writing.ends = false;
            let keys = match writing.cover {
                Cover::Keys => writing.looks.take_missing(),
                Cover::Ranges(..) => self.collect_keys(writing).await?,
            };
            self.write_found(writing, keys, LockWait::Wait).await?;
        }
        Ok(())
    }

    async fn finish_writing(&mut self, writing: Writing<'_>) -> Result<Counts, Failure> {
        let Writing { plan, counts, images, ends, .. } = writing;
        if let Some((_, images)) = images {
            self.write_new_images(&plan.table, images).await?;
        }
        if !ends {
            self.finish_statement().await?;
        }
        Ok(counts)
    }

    /// What a statement that commits by itself has done is taken back, and it begins once more.
    pub(super) async fn begin_anew(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            transaction.rollback().await;
        }
    }

    /// Changes rows that were found, or computes the new ones.
    async fn write_found(
        &mut self,
        writing: &mut Writing<'_>,
        keys: Vec<Vec<u8>>,
        wait: LockWait,
    ) -> Result<(), Failure> {
        let (plan, externals) = (writing.plan, writing.externals);
        if let Some((program, new)) = &mut writing.images {
            let program = &*program;
            let assigned: Vec<u16> = plan.assignments.iter().flatten().map(|(at, _)| *at).collect();
            let images = Images { table: &plan.table, assigned: &assigned, check: None };
            let looks = Some(&mut writing.looks);
            self.compute_images(&images, keys, &mut |_| program, (new, looks)).await?;
            writing.counts.matched = new.counts.matched;
            writing.counts.changed = new.counts.changed;
            return Ok(());
        }
        let program = match &plan.program {
            Some(program) if writing.filter == plan.access.residual.as_ref() => program.clone(),
            _ => plan.row_program(writing.filter.cloned(), externals).into(),
        };
        let kind = match plan.assignments {
            Some(_) => RowOpKind::Update,
            None => RowOpKind::Delete,
        };
        let operation = |key| {
            let program = program.clone();
            RowOp { program, wait, ..operation(&plan.table, kind, key) }
        };
        let operations = keys.into_iter().map(operation).collect();
        let looks = Some(&mut writing.looks);
        let some = self
            .write_some((operations, &plan.table), writing.ends, (looks, &mut Vec::new()))
            .await?;
        writing.counts.matched += some.matched;
        writing.counts.changed += some.changed;
        Ok(())
    }

    /// Changes the rows with these keys of a unique index, whichever rows have them by then.
    async fn write_by_unique(
        &mut self,
        mut writing: Writing<'_>,
        keys: Vec<Vec<u8>>,
    ) -> Result<Counts, Failure> {
        let (plan, externals) = (writing.plan, writing.externals);
        let kind = match plan.assignments {
            Some(_) => RowOpKind::Update,
            None => RowOpKind::Delete,
        };
        let program: Arc<[u8]> = plan.row_program(plan.access.filter.clone(), externals).into();
        let mut pursuit = Pursuit::new(plan.access.index, keys);
        let ends = pursuit.is_single();
        loop {
            let keys = pursuit.next(self, &plan.table).await?;
            if keys.is_empty() {
                break;
            }
            let operations = keys
                .into_iter()
                .map(|key| RowOp { program: program.clone(), ..operation(&plan.table, kind, key) })
                .collect();
            let mut matched = Vec::new();
            let looks = Some(&mut writing.looks);
            let some =
                self.write_some((operations, &plan.table), ends, (looks, &mut matched)).await?;
            writing.counts.matched += some.matched;
            writing.counts.changed += some.changed;
            pursuit.keep_missed(matched.into_iter());
        }
        if !ends {
            self.look_again(&mut writing).await?;
        }
        self.finish_statement().await?;
        Ok(writing.counts)
    }

    /// Notes what was locked, and which operations met a row that matched. With `ends` the last ones commit, if the session
    /// commits by itself.
    async fn write_some(
        &mut self,
        (operations, table): (Vec<RowOp>, &Table),
        ends: bool,
        (mut looks, matched): (Option<&mut Looks>, &mut Vec<bool>),
    ) -> Result<Counts, Failure> {
        let mut counts = Counts::default();
        let mut chunks = Chunks::changing(operations, table);
        while let Some((chunk, last)) = chunks.next_chunk() {
            let last = last && ends;
            let update = Update::of(&chunk, table);
            if let Some(looks) = &mut looks {
                looks.ask(&chunk);
            }
            let results = self.run_operations(chunk, last).await?;
            if let Some(looks) = &mut looks {
                looks.hear(&results)?;
            }
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

    /// The primary keys of the rows that a condition holds for and that no earlier look has locked, at most as many as LIMIT
    /// leaves.
    async fn collect_keys(&mut self, writing: &mut Writing<'_>) -> Result<Vec<Vec<u8>>, Failure> {
        let (plan, externals, looks) = (writing.plan, writing.externals, &mut writing.looks);
        let limit = writing.limit.saturating_sub(writing.counts.matched);
        let Cover::Ranges(ranges, ordered, filter) = &writing.cover else { return Ok(Vec::new()) };
        if ranges.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let sorts = !plan.order.is_empty() && !ordered && writing.limit != u64::MAX;
        let filter = filter.map(|f| with_externals(f, externals));
        let projection = if sorts { None } else { Some(Vec::new()) };
        let (is_first, is_limited) = (looks.is_first(), limit != u64::MAX);
        let by_index = plan.access.index != PRIMARY_INDEX;
        // The first in an order are wanted, and a change of others may be taken back: then they are others (LOCK-7).
        let by_others_order = is_limited && (sorts || (*ordered && by_index));
        let scan = Scan {
            table: plan.table.def.id,
            schema_version: plan.table.def.schema_version,
            index: plan.access.index,
            ranges: ranges.clone(),
            ordered: *ordered,
            reverse: *ordered && plan.order.first().is_some_and(|(_, desc)| *desc),
            primary_keys: true,
            program: plan.find_program(filter, projection).into(),
            // An index may find a row more than once.
            limit: (is_limited && !sorts && is_first && !by_index).then_some(limit),
            as_of: AsOf::Newest,
            pending: false,
            to_lock: !(is_first && by_others_order),
            few: is_limited && !sorts,
            first_of_range: false,
        };
        let mut running = self.start_scan(scan);
        let mut found: Vec<(Vec<Value>, Vec<u8>)> = Vec::new();
        let (mut bytes, mut share) = (0usize, self.share());
        while let Some(rows) = running.next().await? {
            for row in rows.iter() {
                if !looks.is_new(row.primary_key, plan.access.index)? {
                    continue;
                }
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

    /// Updates of rows with a program each; how many there were, and how many have changed.
    pub(super) async fn write_changed_images(
        &mut self,
        images: Images<'_>,
        changes: Vec<(Vec<u8>, Program)>,
    ) -> Result<(u64, u64), Failure> {
        let (keys, programs): (Vec<Vec<u8>>, Vec<Program>) = changes.into_iter().unzip();
        let mut new = NewImages::default();
        self.compute_images(&images, keys, &mut |at| &programs[at], (&mut new, None)).await?;
        let counts = (new.counts.matched, new.counts.changed);
        self.write_new_images(images.table, new).await?;
        Ok(counts)
    }

    /// Deletes rows; how many there were.
    pub(super) async fn delete_rows(
        &mut self,
        deletes: Vec<RowOp>,
        table: &Table,
    ) -> Result<u64, Failure> {
        let counts = self.write_some((deletes, table), false, (None, &mut Vec::new())).await?;
        Ok(counts.changed)
    }

    /// Locks and reads rows, and computes the new ones.
    async fn compute_images<'p>(
        &mut self,
        images: &Images<'_>,
        keys: Vec<Vec<u8>>,
        program: &mut (dyn FnMut(usize) -> &'p Program + Send),
        (new, mut looks): (&mut NewImages, Option<&mut Looks>),
    ) -> Result<(), Failure> {
        let table = images.table;
        let reads = keys.into_iter().enumerate();
        let reads: Vec<RowOp> = reads
            .map(|(at, key)| RowOp {
                program: filter_program(program(at)).into(),
                ..operation(table, RowOpKind::Read(LockMode::Exclusive), key)
            })
            .collect();
        let is_sequenced = |column: &&u16| table.def.columns[usize::from(**column)].auto_increment;
        let sequenced = images.assigned.iter().find(is_sequenced).copied();
        let mut chunks = Chunks::changing(reads, table);
        let (mut at, mut share) = (0, self.share());
        while let Some((chunk, _)) = chunks.next_chunk() {
            if let Some(looks) = &mut looks {
                looks.ask(&chunk);
            }
            let results = self.run_operations(chunk, false).await?;
            if let Some(looks) = &mut looks {
                looks.hear(&results)?;
            }
            for result in results {
                let program = program(at);
                at += 1;
                let Some(old) = result.row else { continue };
                new.counts.matched += 1;
                let Some(row) = program.updated(&table.layout, &old)? else { continue };
                if row == old {
                    continue;
                }
                new.counts.changed += 1;
                let row = self.touch(images, row)?;
                if let Some((check, others)) = images.check {
                    let others = others.get(at - 1).map_or(&[][..], Vec::as_slice);
                    if !self.passes(check, &table.layout.decode(&row), others).await? {
                        return Err(check.failed().into());
                    }
                }
                new.bytes += row.len() * 2;
                share.cover(new.bytes)?;
                if let Some(column) = sequenced {
                    new.highest = new.highest.max(table.positive(&row, column));
                }
                new.add(table, &old, row);
            }
        }
        Ok(())
    }

    /// Writes the new rows.
    async fn write_new_images(&mut self, table: &Table, new: NewImages) -> Result<(), Failure> {
        if new.highest > 0 {
            self.observe(table.def.id, new.highest).await?;
        }
        let mut operations = new.deletes;
        operations.extend(new.inserts);
        self.replace_rows(table, operations).await
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

impl NewImages {
    /// A row is to take the place of another one.
    fn add(&mut self, table: &Table, old: &[u8], new: Vec<u8>) {
        let (before, after) = (table.key_of(old), table.key_of(&new));
        let moved = before != after;
        let kind = if moved { RowOpKind::Insert } else { RowOpKind::Write };
        if moved {
            self.deletes.push(operation(table, RowOpKind::Delete, before));
        }
        self.inserts.push(RowOp { row: new, ..operation(table, kind, after) });
    }
}

/// The filter and assignments of an update whose new rows are computed here. A row may have changed since it was found: the whole
/// condition is checked.
fn image_program(plan: &WritePlan, externals: &[Value]) -> Program {
    let assignments = plan.assignments.iter().flatten();
    Program {
        filter: plan.access.filter.as_ref().map(|f| with_externals(f, externals)),
        assignments: assignments
            .map(|(column, expr)| (*column, with_externals(expr, externals)))
            .collect(),
        projection: None,
        strict: plan.strict,
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
