//! Views in FROM: a view's query is bound in a scope of its own, and stands there as a derived table.

use super::Binder;
use super::from::Part;
use super::grouping::Select;
use super::query::BoundQuery;
use super::scope::{Block, Pending};
use crate::error;
use crate::syntax::{Context, collation_of_constants};
use crate::views::View;
use lats_catalog::{CheckOption, ViewAlgorithm};
use lats_engine::ir::{ColumnId, Rel, Scalar, SourceId};
use lats_mysql_syntax::tree::{self, Body, JoinKind, QueryId, Table, TableId, Tree};
use lats_values::{Expr, SqlError};
use std::ops::Range;

/// How deep views may stand in views.
const DEPTH_MAX: usize = 61;
/// How often a statement may name views, with what views name.
const USES_MAX: usize = 1_024;

/// A view where a statement names it.
#[derive(Clone, Debug)]
pub struct ViewUse {
    /// Its database and its name.
    pub place: (String, String),
    /// Its name in the statement.
    pub alias: String,
    /// The query block that names it.
    pub block: u32,
    /// It stands in a subquery, a derived table or another view.
    pub is_inner: bool,
    /// It stands in a derived table or another view.
    pub is_derived: bool,
    /// Its columns.
    pub columns: Vec<(String, ColumnId)>,
    /// The statement's tables that it reads.
    pub sources: Range<usize>,
    /// The number of the first column that was made for it.
    pub first_column: u32,
    /// What can be done through it; none if its rows are not those of tables.
    pub merged: Option<Merged>,
    /// WITH CHECK OPTION.
    pub check: CheckOption,
    /// The views in its FROM, by their numbers.
    pub children: Vec<usize>,
}

/// A view whose query is no more than a choice of rows of tables.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The values of its columns.
    pub values: Vec<Scalar>,
    /// Its tables, also those of views in its FROM, that can be changed. Empty if nothing can.
    pub bases: Vec<SourceId>,
    /// It has more than one table.
    pub is_join: bool,
    /// Rows can be inserted.
    pub is_insertable: bool,
    /// WITH CHECK OPTION is taken: also where all tables are derived ones, so that nothing can be changed.
    pub takes_check: bool,
    /// The columns that subqueries make.
    pub made: Vec<ColumnId>,
    /// Which rows it has of those in FROM: WHERE, and ON of inner joins.
    pub conditions: Vec<Scalar>,
    /// The subqueries in them.
    pub pending: Vec<Pending>,
    /// The number of its query block.
    pub block: u32,
}

impl ViewUse {
    /// True if rows of it can be changed.
    pub fn is_updatable(&self) -> bool {
        self.merged.as_ref().is_some_and(|merged| !merged.bases.is_empty())
    }
}

/// What stands around a view while its query is bound.
struct Around<'a> {
    place_base: i64,
    context: Context<'a>,
    blocks: Vec<Block>,
    commons: Vec<super::query::Common<'a>>,
    clause: &'static str,
    names_only: bool,
    has_queries: bool,
    values_base: Option<u32>,
    notes: Option<Box<super::notes::Notes>>,
}

impl<'a> Binder<'a> {
    /// The rows and names of a view.
    pub(crate) fn view(&mut self, view: &'a View, alias: &str) -> Result<Part, SqlError> {
        let (database, name) = (&view.def.database, &view.def.name);
        if self.within.contains(&view.def.id) {
            let text = format!("`{database}`.`{name}` contains view recursion");
            return Err(error::make(1462, "HY000", &text));
        }
        if self.within.len() == DEPTH_MAX {
            let what = format!("views in views deeper than {DEPTH_MAX}");
            return Err(error::not_supported(&what));
        }
        if self.views.len() >= USES_MAX {
            let what = format!("views that are named more than {USES_MAX} times in a statement");
            return Err(error::not_supported(&what));
        }
        let Some((parsed, query)) = &view.query else {
            return Err(error::invalid_view(database, name));
        };
        self.enter()?;
        let (first, first_column) = (self.sources.len(), self.columns.len());
        let is_inner = self.blocks.len() > 1;
        let around = self.step_into(view, parsed);
        self.within.push(view.def.id);
        self.streams = true;
        let bound = self.bind_query(*query, 1);
        self.within.pop();
        let is_derived = around.blocks.iter().any(|block| block.hidden > 0);
        self.step_out(around);
        self.depth -= 1;
        let mut bound = bound.map_err(|error| outer_error(error, view))?;
        let names = (!view.def.columns.is_empty()).then_some(view.def.columns.as_slice());
        let merged = self.merged(view, (parsed, *query), &bound, first);
        if merged.is_some() {
            bound.rel = whole(bound.rel);
        }
        let mut scope = self.export(alias, &bound.outputs, names)?;
        for table in &mut scope.tables {
            table.database = Some(database.clone());
        }
        let children = self.children(merged.as_ref());
        let block = self.block().number;
        self.views.push(ViewUse {
            place: (database.clone(), name.clone()),
            alias: alias.to_owned(),
            block,
            is_inner,
            is_derived,
            columns: scope.tables.iter().flat_map(|table| table.columns.clone()).collect(),
            sources: first..self.sources.len(),
            first_column: u32::try_from(first_column).unwrap_or(u32::MAX),
            merged,
            check: view.def.check,
            children,
        });
        Ok((bound.rel, scope))
    }

    /// Nothing around a view is known within it.
    fn step_into(&mut self, view: &'a View, parsed: &'a lats_mysql_syntax::Parsed) -> Around<'a> {
        let context = Context {
            catalog: self.context.base,
            database: Some(&view.def.database),
            text: view.def.query.as_bytes(),
            parsed,
            // A view means the same in each mode.
            no_escapes: false,
            connection_collation: collation_of_constants(&view.def.character_set.1),
            ..self.context
        };
        let place_base = i64::try_from(self.columns.len()).unwrap_or(0) << 32;
        Around {
            place_base: std::mem::replace(&mut self.place_base, place_base),
            context: std::mem::replace(&mut self.context, context),
            blocks: std::mem::replace(&mut self.blocks, vec![Block::new(0)]),
            commons: std::mem::take(&mut self.commons),
            clause: std::mem::replace(&mut self.clause, "field list"),
            names_only: std::mem::take(&mut self.names_only),
            has_queries: std::mem::replace(&mut self.has_queries, parsed.tree.queries() > 0),
            values_base: self.values_base.take(),
            notes: self.notes.take(),
        }
    }

    fn step_out(&mut self, around: Around<'a>) {
        self.context = around.context;
        self.place_base = around.place_base;
        self.blocks = around.blocks;
        self.commons = around.commons;
        self.clause = around.clause;
        self.names_only = around.names_only;
        self.has_queries = around.has_queries;
        self.values_base = around.values_base;
        self.notes = around.notes;
    }

    /// The views in the FROM of a view. No other block has the number of its own.
    fn children(&self, merged: Option<&Merged>) -> Vec<usize> {
        let Some(merged) = merged else { return Vec::new() };
        let views = self.views.iter().enumerate();
        views.filter(|(_, of)| of.block == merged.block).map(|(at, _)| at).collect()
    }

    /// What can be done through a view that was just bound; none if its rows are not those of tables.
    fn merged(
        &self,
        view: &View,
        (parsed, query): (&lats_mysql_syntax::Parsed, QueryId),
        bound: &BoundQuery,
        first: usize,
    ) -> Option<Merged> {
        let select = bound.select.as_deref()?;
        if view.def.algorithm == ViewAlgorithm::TempTable {
            return None;
        }
        let from = mergeable(&parsed.tree, query, select)?;
        let children: Vec<&ViewUse> =
            self.views.iter().filter(|v| v.block == select.block).collect();
        let mut bases: Vec<SourceId> = Vec::new();
        for at in first..select.from_sources {
            if self.sources.get(at).is_some_and(|source| source.block == select.block) {
                bases.push(SourceId(u32::try_from(at).unwrap_or(u32::MAX)));
            }
        }
        for child in children.iter().filter_map(|child| child.merged.as_ref()) {
            bases.extend(&child.bases);
        }
        if from.has_outer || self.reads_itself(select, &bases) {
            bases.clear();
        }
        let values: Vec<Scalar> = select.outputs.iter().map(|output| output.expr.clone()).collect();
        let has_subqueries = !select.above.is_empty() || !select.below.is_empty();
        let is_insertable = !bases.is_empty()
            && !has_subqueries
            && self.are_columns(&values, &bases)
            && children.iter().all(|c| c.merged.as_ref().is_some_and(|m| m.is_insertable));
        let in_joins = select.joined.iter().cloned();
        let takes_check = !from.has_outer
            && children.iter().all(|c| c.merged.as_ref().is_some_and(|m| m.takes_check));
        let subqueries = select.above.iter().chain(&select.below);
        Some(Merged {
            takes_check,
            made: subqueries.flat_map(Pending::columns).collect(),
            is_join: from.tables > 1
                || children.iter().any(|c| c.merged.as_ref().is_some_and(|m| m.is_join)),
            values,
            bases,
            is_insertable,
            conditions: select.filter.iter().cloned().chain(in_joins).collect(),
            pending: select.in_filter.iter().chain(&select.in_joined).cloned().collect(),
            block: select.block,
        })
    }

    /// True if the select list has subqueries that depend on rows, or if subqueries read a table that could be changed.
    fn reads_itself(&self, select: &Select, bases: &[SourceId]) -> bool {
        let depends = |pending: &Pending| !pending.needs().is_empty();
        let id_of = |source: &SourceId| self.source(*source).table.def.id;
        let inner = self.sources.get(select.from_sources..).unwrap_or(&[]);
        let reads = |of: &super::Source| bases.iter().any(|base| id_of(base) == of.table.def.id);
        select.above.iter().any(depends) || inner.iter().any(reads)
    }

    /// True if the values are columns of these tables, each another one.
    fn are_columns(&self, values: &[Scalar], bases: &[SourceId]) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        values.iter().all(|value| {
            let Expr::Column(number) = value else { return false };
            let origin = self.columns.get(*number as usize).and_then(|column| column.origin);
            origin.is_some_and(|origin| bases.contains(&origin.source)) && seen.insert(*number)
        })
    }
}

/// The shape of a FROM clause.
struct From {
    tables: usize,
    has_outer: bool,
}

/// The FROM clause of a query that is no more than a choice of rows of tables.
fn mergeable(tree: &Tree, query: QueryId, select: &Select) -> Option<From> {
    let Body::Select(parsed) = tree.body(tree.query(query).body) else { return None };
    let is_plain = !select.is_grouped
        && select.windows.is_empty()
        && !select.distinct
        && select.having.is_none()
        && matches!(select.limit, (None, None));
    if !is_plain || parsed.from.is_empty() {
        return None;
    }
    let mut from = From { tables: 0, has_outer: false };
    let mut open: Vec<TableId> = parsed.from.clone();
    while let Some(id) = open.pop() {
        match tree.table(id) {
            Table::Join { kind, left, right, .. } => {
                use JoinKind as K;
                from.has_outer |=
                    matches!(kind, K::Left | K::Right | K::NaturalLeft | K::NaturalRight);
                open.extend([*left, *right]);
            }
            Table::Cross(tables) => open.extend(tables),
            _ => from.tables += 1,
        }
    }
    Some(from)
}

/// True if a view with this query could be merged, whatever its ALGORITHM.
pub fn could_merge(tree: &Tree, query: QueryId, bound: &BoundQuery) -> bool {
    bound.select.as_deref().is_some_and(|select| mergeable(tree, query, select).is_some())
}

/// The rows with all columns that there are, for those who change them.
fn whole(rel: Rel) -> Rel {
    match rel {
        Rel::Narrow { input, .. } => *input,
        other => other,
    }
}

/// What is said of a view whose query is wrong.
fn outer_error(error: SqlError, view: &View) -> SqlError {
    match error.errno {
        1054 | 1146 | 1305 | 1356 => error::invalid_view(&view.def.database, &view.def.name),
        _ => error,
    }
}

/// The SELECTs whose items give a query its columns.
pub(crate) fn top_selects(tree: &Tree, query: QueryId) -> Vec<&tree::Select> {
    let mut found = Vec::new();
    let mut open = vec![tree.query(query).body];
    while let Some(id) = open.pop() {
        match tree.body(id) {
            Body::Select(select) => found.push(&**select),
            Body::Set { left, right, .. } => open.extend([*left, *right]),
            Body::Nested(inner) => open.push(tree.query(*inner).body),
            Body::Values(_) | Body::Table(_) => {}
        }
    }
    found
}
