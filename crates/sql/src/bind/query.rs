//! Queries: WITH, set operations, VALUES, and what stands around a SELECT.

use super::Binder;
use super::grouping::Select;
use super::scope::{Aggregates, AliasUse, Block, Output, Scope};
use super::sets::{Place, different_columns};
use crate::error;
use lats_engine::ir::{ColumnId, Rel, Scalar, SortKey, walk};
use lats_mysql_syntax::tree::{self, Body, BodyId, List, QueryId, With};
use lats_values::{ColumnType, Expr, SqlError, Value};

/// A query that is bound.
#[derive(Debug)]
pub struct BoundQuery {
    /// Its rows.
    pub rel: Rel,
    /// Its columns and their names.
    pub outputs: Vec<(ColumnId, String)>,
    /// It is one SELECT; the parts of it, for those who can do with less than a plan.
    pub select: Option<Box<Select>>,
}

impl BoundQuery {
    /// Its columns.
    pub fn columns(&self) -> Vec<ColumnId> {
        self.outputs.iter().map(|(id, _)| *id).collect()
    }
}

/// A common table: the query behind a name of WITH.
#[derive(Clone, Debug)]
pub struct Common<'a> {
    name: String,
    columns: Option<Vec<String>>,
    kind: CommonKind<'a>,
    /// It may name itself: WITH RECURSIVE.
    is_recursive: bool,
    /// The blocks around WITH: the query sees these only.
    blocks: usize,
    /// It was named before.
    is_used: bool,
}

#[derive(Clone, Debug)]
enum CommonKind<'a> {
    /// It is bound where it is used.
    Query(QueryId, usize, std::marker::PhantomData<&'a ()>),
    /// It is being defined by itself: the rows found last.
    Working { id: u32, columns: Vec<(ColumnId, String)> },
}

/// Levels of queries in FROM and WITH.
type Clauses<'t> = (&'t [tree::OrderItem], Option<&'t tree::Limit>);

impl<'a> Binder<'a> {
    /// Binds a query; `hidden` blocks around it are not seen by it.
    pub fn bind_query(&mut self, id: QueryId, hidden: usize) -> Result<BoundQuery, SqlError> {
        let streams =
            std::mem::take(&mut self.streams) || (self.depth == 0 && self.blocks.len() == 1);
        self.enter()?;
        if self.depth == 1 {
            // The statement is this query.
            self.has_queries = self.tree().queries() > 1;
        }
        let query = self.tree().query(id);
        if !query.locks.is_empty() && self.blocks.len() > 1 {
            return Err(error::not_supported("FOR UPDATE and FOR SHARE in subqueries"));
        }
        let commons = self.commons.len();
        let with = match &query.with {
            Some(with) => self.with(with, hidden),
            None => Ok(()),
        };
        let mut clauses = (query.order.as_slice(), query.limit.as_ref());
        let counts = self.counts_rows(id);
        if self.depth == 1 {
            self.counts_all = counts && matches!(self.tree().body(query.body), Body::Select(_));
        } else if self.blocks.len() > 1 {
            self.refuse_options_of_result(query.body)?;
        }
        if counts && !self.counts_all {
            let limit = clauses.1.take();
            self.counted = limit.map(|limit| self.limit(limit)).transpose()?;
        }
        let bound = with.and_then(|()| {
            self.streams = streams && query.order.is_empty();
            self.body(query.body, clauses, hidden)
        });
        self.commons.truncate(commons);
        self.depth -= 1;
        bound
    }

    pub(super) fn with(&mut self, with: &With, hidden: usize) -> Result<(), SqlError> {
        let mut names: Vec<&str> = Vec::with_capacity(with.tables.len());
        for table in &with.tables {
            let name = self.name(table.name)?;
            if names.contains(&name) {
                let text = format!("Not unique table/alias: '{name}'");
                return Err(error::make(1066, "42000", &text));
            }
            names.push(name);
            let columns = self.column_names(&table.columns)?;
            let kind = CommonKind::Query(table.query, hidden, std::marker::PhantomData);
            let blocks = self.blocks.len();
            let is_recursive = with.is_recursive;
            self.commons.push(Common {
                name: name.to_owned(),
                columns,
                kind,
                is_recursive,
                blocks,
                is_used: false,
            });
        }
        Ok(())
    }

    /// The rows of a common table, if there is one with this name.
    pub(super) fn common_table(
        &mut self,
        name: &str,
        alias: &str,
    ) -> Result<Option<super::from::Part>, SqlError> {
        let Some(at) = self.commons.iter().rposition(|common| common.name == name) else {
            return Ok(None);
        };
        let common = self.commons[at].clone();
        match common.kind {
            CommonKind::Working { id, columns } => {
                let mut own = Vec::with_capacity(columns.len());
                for (column, name) in &columns {
                    let column_type = self.types[column.0 as usize].clone();
                    own.push((self.column(name, column_type, None), name.clone()));
                }
                let ids = own.iter().map(|(column, _)| *column).collect();
                let scope = self.export(alias, &own, common.columns.as_deref())?;
                Ok(Some((Rel::Working { id, columns: ids }, scope)))
            }
            CommonKind::Query(query, hidden, _) => {
                // Names that came later, and blocks that did not exist, are not known within it.
                let later = self.commons.split_off(at + usize::from(self.is_recursive(at, query)));
                let blocks = self.blocks.split_off(common.blocks);
                let bound = self.common_query(query, hidden, &common);
                self.blocks.extend(blocks);
                self.commons.truncate(at);
                self.commons.push(Common { is_used: true, ..common.clone() });
                let kept = later.into_iter().filter(|c| c.name != common.name);
                let kept: Vec<Common<'a>> = kept.collect();
                self.commons.extend(kept);
                let bound = bound?;
                // It is bound anew each time, but has the same rows each time.
                if common.is_used && walk::makes_volatile(&bound.rel) {
                    let what = "a common table with random values that is named more than once";
                    return Err(error::not_supported(what));
                }
                let scope = self.export(alias, &bound.outputs, common.columns.as_deref())?;
                Ok(Some((Self::apart(bound.rel), scope)))
            }
        }
    }

    /// True if the query of a common table names it.
    fn is_recursive(&self, at: usize, query: QueryId) -> bool {
        let common = &self.commons[at];
        common.is_recursive && super::recursion::names_itself(self.tree(), query, &common.name)
    }

    fn common_query(
        &mut self,
        query: QueryId,
        hidden: usize,
        common: &Common<'a>,
    ) -> Result<BoundQuery, SqlError> {
        // Blocks around WITH are seen, but not the one whose FROM names the table.
        let names_itself = super::recursion::names_itself(self.tree(), query, &common.name);
        if !common.is_recursive || !names_itself {
            return self.bind_query(query, hidden);
        }
        self.recursive(query, hidden, common)
    }

    /// A common table that names itself: the parts of its UNION that do not are the anchor, the others are the step.
    fn recursive(
        &mut self,
        query: QueryId,
        hidden: usize,
        common: &Common<'a>,
    ) -> Result<BoundQuery, SqlError> {
        let tree = self.tree();
        let found = tree.query(query);
        let Some(split) = super::recursion::split(tree, found.body, &common.name) else {
            let text = format!(
                "Recursive Common Table Expression '{}' should have one or more non-recursive query blocks followed by one or \
                 more recursive ones",
                common.name
            );
            return Err(error::make(3574, "HY000", &text));
        };
        if !found.order.is_empty() {
            return Err(error::not_supported(
                "ORDER BY over UNION in recursive Common Table Expression",
            ));
        }
        let none: Clauses<'_> = (&[], None);
        if found.limit.as_ref().is_some_and(|limit| limit.offset.is_some()) {
            return Err(error::not_supported("OFFSET of a recursive common table"));
        }
        let place = self.commons.len().saturating_sub(1);
        let hide = self.commons.split_off(place);
        let anchor = self.body(split.anchor, none, hidden);
        self.commons.extend(hide);
        let anchor = anchor?;
        let mut outputs = Vec::with_capacity(anchor.outputs.len());
        for (at, (column, name)) in anchor.outputs.iter().enumerate() {
            let name = common.columns.as_ref().and_then(|names| names.get(at)).unwrap_or(name);
            let column_type =
                ColumnType { nullable: true, ..self.types[column.0 as usize].clone() };
            outputs.push((self.column(name, column_type, None), name.clone()));
        }
        self.next_recursion += 1;
        let id = self.next_recursion;
        let kind = CommonKind::Working { id, columns: outputs.clone() };
        self.commons.push(Common { columns: None, kind, ..common.clone() });
        let step = self.steps(&split.steps, hidden);
        self.commons.pop();
        let step = step?;
        if step.outputs.len() != outputs.len() {
            return Err(different_columns());
        }
        let columns: Vec<ColumnId> = outputs.iter().map(|(column, _)| *column).collect();
        let anchor = self.converted(anchor, &columns);
        let step = self.converted(step, &columns);
        let limit = found.limit.as_ref().map(|limit| self.row_count(limit.count)).transpose()?;
        let anchor = (Box::new(anchor.rel), anchor.outputs.iter().map(|(id, _)| *id).collect());
        let step = (Box::new(step.rel), step.outputs.iter().map(|(id, _)| *id).collect());
        let rel = Rel::Recursive { id, columns, anchor, step, distinct: split.distinct, limit };
        Ok(BoundQuery { rel, outputs, select: None })
    }

    /// The recursive parts, one behind the other.
    fn steps(&mut self, steps: &[BodyId], hidden: usize) -> Result<BoundQuery, SqlError> {
        let mut all = Vec::with_capacity(steps.len());
        for step in steps {
            let next = self.body(*step, (&[], None), hidden)?;
            check_step(&next)?;
            all.push(next);
        }
        self.beneath(all)
    }

    pub(super) fn body(
        &mut self,
        body: BodyId,
        clauses: Clauses<'_>,
        hidden: usize,
    ) -> Result<BoundQuery, SqlError> {
        let streams = std::mem::take(&mut self.streams);
        self.enter()?;
        let bound = match self.tree().body(body) {
            Body::Select(select) => self.in_block(hidden, |binder| binder.select(select, clauses)),
            Body::Set { op, .. } => {
                let place = Place::whole(*op, streams, hidden);
                self.set_body(place, body).and_then(|bound| self.around(bound, clauses, hidden))
            }
            Body::Nested(query) => {
                self.streams = streams;
                let inner = self.bind_query(*query, hidden);
                inner.and_then(|bound| self.around(bound, clauses, hidden))
            }
            Body::Values(rows) => self
                .in_block(hidden, |binder| binder.values(rows))
                .and_then(|bound| self.around(bound, clauses, hidden)),
            Body::Table(table) => {
                let table = *table;
                self.in_block(hidden, |binder| binder.whole_table(&table))
                    .and_then(|bound| self.around(bound, clauses, hidden))
            }
        };
        self.depth -= 1;
        bound
    }

    /// Does it in a block of its own.
    pub(super) fn in_block<T>(
        &mut self,
        hidden: usize,
        work: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let number = self.new_block_number();
        self.blocks.push(Block { hidden, ..Block::new(number) });
        let done = work(self);
        let block = self.blocks.pop();
        if self.blocks.len() == 1 {
            self.query_scope = block.map(|block| block.scope).unwrap_or_default();
        }
        done
    }

    /// ORDER BY and LIMIT behind a query: names are those of its columns.
    fn around(
        &mut self,
        bound: BoundQuery,
        (order, limit): Clauses<'_>,
        hidden: usize,
    ) -> Result<BoundQuery, SqlError> {
        if order.is_empty() && limit.is_none() {
            return Ok(bound);
        }
        let BoundQuery { mut rel, outputs, .. } = bound;
        let keys = self.in_block(hidden, |binder| {
            let columns = outputs.iter().map(|(id, name)| (name.clone(), *id)).collect();
            let block = binder.block();
            block.scope = Scope::of_table(None, "", columns);
            block.outputs = outputs
                .iter()
                .map(|(id, name)| Output { expr: id.scalar(), name: name.clone(), is_named: true })
                .collect();
            let mut keys = Vec::with_capacity(order.len());
            for (at, item) in (1..).zip(order) {
                let found = binder.order_keys(std::slice::from_ref(item));
                keys.extend(found.map_err(|error| order_error(error, &rel, at))?);
            }
            let pending = std::mem::take(&mut binder.block().below);
            rel = Self::apply(std::mem::replace(&mut rel, Rel::one_row()), pending);
            Ok(keys)
        })?;
        if !keys.is_empty() {
            rel = Rel::Sort { input: Box::new(rel), keys };
        }
        if let Some(limit) = limit {
            let (count, offset) = self.limit(limit)?;
            rel = Rel::Limit { input: Box::new(rel), count, offset };
        }
        Ok(BoundQuery { rel, outputs, select: None })
    }

    /// The keys of ORDER BY. Constants order nothing.
    pub(super) fn order_keys(
        &mut self,
        list: &[tree::OrderItem],
    ) -> Result<Vec<SortKey>, SqlError> {
        let mut keys = Vec::with_capacity(list.len());
        self.block().alias_use = AliasUse::Last;
        for item in list {
            let clause = "order clause";
            let value = match self.by_position_or_name(item.value, clause, true)? {
                Some(found) => found,
                None => self.bind_in(clause, item.value)?,
            };
            if !crate::expr::is_constant(&value) {
                let descending = item.direction == tree::Direction::Descending;
                keys.push(SortKey { value, descending });
            }
        }
        self.block().alias_use = AliasUse::No;
        Ok(keys)
    }

    /// LIMIT's numbers: count and offset.
    pub(crate) fn limit(
        &mut self,
        limit: &tree::Limit,
    ) -> Result<(Option<Scalar>, Option<Scalar>), SqlError> {
        let count = self.row_count(limit.count)?;
        let offset = limit.offset.map(|id| self.row_count(id)).transpose()?;
        Ok((Some(count), offset))
    }

    fn row_count(&mut self, id: tree::ExprId) -> Result<Scalar, SqlError> {
        match self.tree().expr(id) {
            tree::Expr::Number { .. } | tree::Expr::Parameter(_) | tree::Expr::Hex { .. } => {}
            other => {
                // Local variables of stored programs, which do not exist here.
                let tree::Expr::Column { name, .. } = other else {
                    return Err(error::syntax("near LIMIT"));
                };
                let text = format!("Undeclared variable: {}", self.name(*name)?);
                return Err(error::make(1327, "42000", &text));
            }
        }
        Ok(super::hex_beside(self.bind_in("limit clause", id)?, true))
    }

    fn values(&mut self, rows: &[List]) -> Result<BoundQuery, SqlError> {
        let width = rows.first().map_or(0, |row| row.len());
        let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            if row.len() != width {
                return Err(error::value_count(at + 1));
            }
            let values = self.tree().list(*row).iter().map(|value| self.bind(*value));
            bound.push(values.collect::<Result<Vec<Expr>, SqlError>>()?);
        }
        let mut outputs = Vec::with_capacity(width);
        for at in 0..width {
            let branches = bound.iter().map(|row| (Expr::Literal(Value::Int(1)), row[at].clone()));
            let one = Expr::Case { operand: None, branches: branches.collect(), otherwise: None };
            let column_type = match bound.as_slice() {
                [row] => self.type_of(&row[at]),
                _ => self.type_of(&one),
            };
            let name = format!("column_{at}");
            outputs.push((self.column(&name, column_type, None), name));
        }
        let columns = outputs.iter().map(|(column, _)| *column).collect();
        let pending = std::mem::take(&mut self.block().below);
        if !pending.is_empty() {
            return Err(error::not_supported("subqueries in VALUES ROW(…)"));
        }
        let rel = Rel::Values { columns, rows: bound };
        Ok(BoundQuery { rel, outputs, select: None })
    }

    /// `TABLE t`.
    fn whole_table(&mut self, table: &tree::TableName) -> Result<BoundQuery, SqlError> {
        let (rel, scope) = self.named_table(table, &[], tree::Text::NONE, &[])?;
        self.note_whole(table, &scope);
        let outputs: Vec<(ColumnId, String)> =
            scope.visible.iter().map(|v| (v.id, v.name.clone())).collect();
        let columns = outputs.iter().map(|(id, _)| *id).collect();
        let rel = Rel::Narrow { input: Box::new(rel), columns };
        Ok(BoundQuery { rel, outputs, select: None })
    }
}

impl Binder<'_> {
    /// Groups may be made in this block from now on.
    pub(super) fn allow_aggregates(&mut self) {
        self.block().aggregates = Aggregates::Allowed;
    }
}

/// What the recursive part of a common table may not have.
///
/// # Errors
/// 3575, 3577.
fn check_step(step: &BoundQuery) -> Result<(), SqlError> {
    let Some(select) = &step.select else {
        return Err(error::not_supported("this form of a recursive common table"));
    };
    if select.is_grouped || !select.windows.is_empty() || select.distinct {
        let text = "Recursive Common Table Expression can contain neither aggregation nor window functions in recursive query block";
        return Err(error::make(3575, "HY000", text));
    }
    let in_from = count_working(&select.from);
    if in_from != 1 || count_working(&step.rel) != 1 {
        let text = "In recursive query block of Recursive Common Table Expression, the recursive table must be referenced only once, and \
                    not in any subquery";
        return Err(error::make(3577, "HY000", text));
    }
    Ok(())
}

fn count_working(rel: &Rel) -> usize {
    let below: usize = rel.inputs().into_iter().map(count_working).sum();
    below + usize::from(matches!(rel, Rel::Working { .. }))
}

/// 3028 for an aggregate or window function over a set operation.
fn order_error(error: SqlError, rel: &Rel, number: usize) -> SqlError {
    if !matches!(error.errno, 1111 | 3593) || !matches!(rel, Rel::Set { .. }) {
        return error;
    }
    let text = format!(
        "Expression #{number} of ORDER BY contains aggregate function and applies to a UNION, EXCEPT or INTERSECT"
    );
    error::make(3028, "HY000", &text)
}
