//! SELECT: its clauses in the order in which MySQL resolves them, and the plan that they make.

mod check;
mod rollup;

use super::Binder;
use super::lazy::{Steps, filtered};
use super::query::BoundQuery;
use super::scope::{Aggregates, AliasUse, Output, Pending};
use super::windows::{self, Found};
use crate::error;
use lats_base::planted::{QueryBug, errs};
use lats_engine::ir::{Call, ColumnId, Rel, Scalar, SortKey, walk};
use lats_mysql_syntax::tree;
use lats_values::{BinaryOp, ColumnType, Expr, SqlError, TypeKind, Value};
use std::collections::BTreeSet;

/// The parts of a SELECT.
#[derive(Clone, Debug)]
pub struct Select {
    /// FROM.
    pub from: Rel,
    /// WHERE.
    pub filter: Option<Scalar>,
    /// Subqueries in WHERE.
    pub in_filter: Vec<Pending>,
    /// Subqueries in keys and in arguments of aggregate functions.
    pub below: Vec<Pending>,
    /// There are groups.
    pub is_grouped: bool,
    /// GROUP BY.
    pub keys: Vec<Scalar>,
    /// WITH ROLLUP.
    pub rollup: Vec<(ColumnId, ColumnId)>,
    /// Aggregate functions.
    pub calls: Vec<Call>,
    /// Subqueries in what comes after the groups.
    pub above: Vec<Pending>,
    /// HAVING.
    pub having: Option<Scalar>,
    /// Window functions.
    pub windows: Vec<Found>,
    /// The select list.
    pub outputs: Vec<Output>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// LIMIT: count and offset.
    pub limit: (Option<Scalar>, Option<Scalar>),
    /// The block's number.
    pub block: u32,
    /// Conditions of inner joins in FROM.
    pub joined: Vec<Scalar>,
    /// The subqueries in them.
    pub in_joined: Vec<Pending>,
    /// The statement's tables when FROM was bound: those that come later stand in subqueries.
    pub from_sources: usize,
    /// SQL_CALC_FOUND_ROWS: LIMIT is not in the plan, so that all rows can be counted.
    pub counts_all: bool,
}

impl Binder<'_> {
    pub(super) fn select(
        &mut self,
        select: &tree::Select,
        (order, limit): (&[tree::OrderItem], Option<&tree::Limit>),
    ) -> Result<BoundQuery, SqlError> {
        let counts_all = std::mem::take(&mut self.counts_all);
        let first = self.sources.len();
        self.note_index_hints(select);
        let from = self.tables_of(&select.from)?;
        self.note_join_order(select, first);
        let from_sources = self.sources.len();
        self.block().named_windows = select.windows.clone();
        let (filter, in_filter) = match select.filter {
            Some(id) => {
                let (bound, pending) = self.condition("where clause", id)?;
                (Some(bound), pending)
            }
            None => (None, Vec::new()),
        };
        let has_groups = !select.group.is_empty();
        let keys = self.group_keys(select)?;
        let rollup = self.rollup_columns(select, &keys)?;
        let outputs = self.select_list(&select.items)?;
        // Names of the select list stand for what is behind the groups.
        let behind = outputs.iter().map(|output| rollup::output(output, self.block_ref()));
        self.block().outputs = behind.collect();
        let having = self.having(select)?;
        self.allow_aggregates();
        self.block().windows_allowed = true;
        let had_groups = has_groups || having.is_some() || !self.block().calls.is_empty();
        let order = self.order_keys(order)?;
        self.block().windows_allowed = false;
        if !had_groups && !self.block().calls.is_empty() {
            let text = "Expression #1 of ORDER BY contains aggregate function and applies to the result of a non-aggregated query";
            return Err(error::make(3029, "HY000", text));
        }
        self.block().aggregates = Aggregates::Refused;
        let limit = match limit {
            Some(limit) => self.limit(limit)?,
            None => (None, None),
        };
        let block = self.block();
        let parts = Select {
            from,
            filter,
            in_filter,
            below: std::mem::take(&mut block.below),
            is_grouped: has_groups || !block.calls.is_empty(),
            keys,
            rollup,
            calls: std::mem::take(&mut block.calls),
            above: std::mem::take(&mut block.above),
            having,
            windows: std::mem::take(&mut block.windows),
            outputs,
            distinct: select.options.is_distinct,
            order,
            limit,
            block: block.number,
            joined: std::mem::take(&mut block.joined),
            in_joined: std::mem::take(&mut block.in_joined),
            from_sources,
            counts_all,
        };
        self.check_grouping(&parts)?;
        let parts = rollup::behind(parts);
        check::distinct_order(&parts)?;
        self.assemble(parts)
    }

    /// GROUP BY: columns come before names of the select list, which is bound for them first.
    fn group_keys(&mut self, select: &tree::Select) -> Result<Vec<Scalar>, SqlError> {
        let list = self.tree().list(select.group);
        let mut keys = Vec::with_capacity(list.len());
        if list.is_empty() {
            return Ok(keys);
        }
        // The select list's names are needed, though its expressions are bound again when the keys are known.
        let saved = self.block().clone();
        let before = std::mem::replace(&mut self.names_only, true);
        let named = self.select_list(&select.items);
        self.names_only = before;
        let named = named?;
        let block = self.block();
        // Subqueries keep their columns, and aggregate functions in them their place.
        let subqueries = std::mem::take(&mut block.subqueries);
        let values = std::mem::take(&mut block.values);
        let calls = std::mem::take(&mut block.calls);
        *block = saved;
        (block.subqueries, block.values, block.calls) = (subqueries, values, calls);
        block.outputs = named;
        block.aggregates = Aggregates::Refused;
        block.windows_allowed = false;
        block.alias_use = match errs(QueryBug::GroupByAliasFirst) {
            true => AliasUse::First,
            false => AliasUse::Last,
        };
        for id in list {
            let clause = "group statement";
            let key = match self.by_position_or_name(*id, clause, false)? {
                Some(found) => found,
                None => self.bind_in(clause, *id)?,
            };
            self.check_key(&key)?;
            self.place_below(&key);
            keys.push(key);
        }
        let block = self.block();
        block.alias_use = AliasUse::No;
        block.outputs = Vec::new();
        block.keys = keys.clone();
        Ok(keys)
    }

    /// Subqueries in a key are needed before groups are made.
    fn place_below(&mut self, key: &Scalar) {
        let columns = walk::columns_of(key);
        let block = self.block();
        let used = block.subqueries.iter().filter(|(_, pending)| pending.makes(&columns));
        let used = used.map(|(_, pending)| pending.clone());
        let used: Vec<Pending> = used.flat_map(|pending| block.with_values(pending)).collect();
        for pending in used {
            if !block.below.contains(&pending) {
                block.below.push(pending);
            }
        }
    }

    /// Keys are made before groups are, so that no aggregate function can be in them.
    fn check_key(&self, key: &Scalar) -> Result<(), SqlError> {
        let made_later =
            walk::columns_of(key).iter().any(|column| self.call_columns.contains(column));
        match made_later {
            true => Err(error::make(1056, "42000", "Can't group on an aggregate function")),
            false => Ok(()),
        }
    }

    fn rollup_columns(
        &mut self,
        select: &tree::Select,
        keys: &[Scalar],
    ) -> Result<Vec<(ColumnId, ColumnId)>, SqlError> {
        if !select.with_rollup {
            return Ok(Vec::new());
        }
        let mut rollup = Vec::with_capacity(keys.len());
        for key in keys {
            let column_type = ColumnType { nullable: true, ..self.type_of(key) };
            let of_total = ColumnType::new(TypeKind::BigInt).not_null();
            rollup.push((self.column("", column_type, None), self.column("", of_total, None)));
        }
        self.block().rollup = rollup.clone();
        Ok(rollup)
    }

    /// GROUPING(key, …): a bit for each key that is totalled over.
    pub(super) fn grouping(&mut self, arguments: tree::List) -> Result<Scalar, SqlError> {
        if self.names_only {
            return Ok(Expr::Literal(Value::Int(0)));
        }
        let mut all: Option<Scalar> = None;
        for argument in self.tree().list(arguments) {
            let bound = self.bind(*argument)?;
            let block = self.block();
            let key = block.rollup.iter().position(|(key, _)| key.scalar() == bound);
            let key = key.or_else(|| block.keys.iter().position(|key| *key == bound));
            let Some(key) = key else {
                let text = "Argument #0 of GROUPING function is not in GROUP BY";
                return Err(error::make(3602, "HY000", text));
            };
            // Without ROLLUP there are no totals.
            let total = block.rollup.get(key).map(|(_, total)| total.scalar());
            let total = total.unwrap_or(Expr::Literal(Value::Int(0)));
            let (all_so_far, total) = match all {
                Some(before) if errs(QueryBug::GroupingBitsTurned) => (Some(total), before),
                before => (before, total),
            };
            all = Some(match all_so_far {
                None => total,
                Some(before) => {
                    let (two, or) = (Expr::Literal(Value::Int(2)), BinaryOp::Add);
                    let twice = Expr::Binary {
                        op: BinaryOp::Multiply,
                        left: Box::new(before),
                        right: Box::new(two),
                    };
                    Expr::Binary { op: or, left: Box::new(twice), right: Box::new(total) }
                }
            });
        }
        all.ok_or_else(|| error::wrong_argument_count("GROUPING"))
    }

    fn having(&mut self, select: &tree::Select) -> Result<Option<Scalar>, SqlError> {
        let Some(id) = select.having else { return Ok(None) };
        let block = self.block();
        block.aggregates = Aggregates::Allowed;
        block.alias_use = match errs(QueryBug::HavingColumnFirst) {
            true => AliasUse::Last,
            false => AliasUse::First,
        };
        block.windows_allowed = false;
        let bound = self.bind_terms_in("having clause", id);
        let block = self.block();
        block.alias_use = AliasUse::No;
        Ok(Some(super::hex_beside(bound?, true)))
    }

    /// True for an AVG or another function of groups or windows that gives exact numbers.
    fn is_quotient(&self, column: ColumnId) -> bool {
        let made = self.columns.get(column.0 as usize);
        made.is_some_and(|column| column.name.is_empty())
            && matches!(self.type_of(&column.scalar()).kind, TypeKind::Decimal { .. })
    }

    /// Keys that have another value each time become columns of the rows below the groups, so that they are computed once.
    fn volatile_keys(&mut self, parts: &mut Select) -> Vec<(ColumnId, Scalar)> {
        let mut items = Vec::new();
        for key in &mut parts.keys {
            if !walk::is_volatile(key) {
                continue;
            }
            let column_type = self.type_of(key);
            let column = self.column("", column_type, None);
            let outputs = parts.outputs.iter_mut().map(|output| &mut output.expr);
            let order = parts.order.iter_mut().map(|key| &mut key.value);
            for value in outputs.chain(order).filter(|value| **value == *key) {
                *value = column.scalar();
            }
            items.push((column, std::mem::replace(key, column.scalar())));
        }
        items
    }

    /// The columns of the select list; `below` are those that the rows have already.
    fn shown(&mut self, list: Vec<Output>, below: &BTreeSet<ColumnId>) -> Shown {
        let mut items = Vec::new();
        let mut outputs: Vec<(ColumnId, String)> = Vec::with_capacity(list.len());
        let mut made: Vec<(Scalar, ColumnId)> = Vec::new();
        for output in list {
            let id = match &output.expr {
                // Columns of outer queries become columns of this one.
                Expr::Column(number) if below.contains(&ColumnId(*number)) => {
                    // It has been rounded.
                    self.quotients.remove(&ColumnId(*number));
                    ColumnId(*number)
                }
                expr => {
                    let value = self.shown_constant(expr.clone());
                    let is_constant = value != *expr;
                    let value = self.shown_variable(value);
                    let column_type = self.type_of(&value);
                    let column = self.column(&output.name, column_type, None);
                    self.describe(column, expr);
                    if is_constant {
                        self.constant_texts.insert(column);
                    }
                    if matches!(expr, Expr::Column(number) if self.is_quotient(ColumnId(*number))) {
                        self.quotients.insert(column);
                    }
                    items.push((column, value));
                    made.push((output.expr, column));
                    column
                }
            };
            outputs.push((id, output.name));
        }
        Shown { items, outputs, made }
    }

    /// The plan of a SELECT.
    fn assemble(&mut self, mut parts: Select) -> Result<BoundQuery, SqlError> {
        let kept = parts.clone();
        let volatile = self.volatile_keys(&mut parts);
        let mut rel = filtered(parts.from, parts.filter, parts.in_filter);
        rel = extended(Self::apply(rel, parts.below), volatile);
        if parts.is_grouped {
            let (keys, rollup, calls) = (parts.keys, parts.rollup, parts.calls);
            rel = Rel::Aggregate { input: Box::new(rel), keys, rollup, calls };
        }
        let mut steps = Steps::new(rel, parts.above);
        steps.filter(parts.having);
        steps.need(parts.windows.iter().flat_map(Found::columns).collect());
        steps.change(|rel| windows::windows(rel, parts.windows));
        let shown = parts.outputs.iter().map(|output| &output.expr);
        let shown = shown.chain(parts.order.iter().map(|key| &key.value));
        steps.need(shown.flat_map(walk::columns_of).collect());
        let mut rel = steps.rel;
        let mut below: BTreeSet<ColumnId> = rel.columns().into_iter().collect();
        // Exact quotients have more digits than their type, until they are the column of a result.
        below.retain(|column| !self.is_quotient(*column));
        let Shown { mut items, outputs, made } = self.shown(parts.outputs, &below);
        let of_output = |value: Scalar| {
            let found = made.iter().find(|(expr, _)| *expr == value);
            found.map_or(value, |(_, column)| column.scalar())
        };
        let keys = parts.order.into_iter();
        let keys: Vec<SortKey> =
            keys.map(|key| SortKey { value: of_output(key.value), ..key }).collect();
        let mut late = Vec::new();
        if self.assigns_variables() && super::variables::come_last(&kept) {
            let needed: Vec<&Scalar> = keys.iter().map(|key| &key.value).collect();
            (items, late) = super::variables::split(items, &needed);
        }
        rel = extended(rel, items);
        let columns: Vec<ColumnId> = outputs.iter().map(|(id, _)| *id).collect();
        if parts.distinct {
            rel = Rel::Distinct { input: Box::new(rel), columns: columns.clone() };
        }
        if !keys.is_empty() {
            rel = Rel::Sort { input: Box::new(rel), keys };
        }
        let (count, offset) = parts.limit;
        if (count.is_some() || offset.is_some()) && !kept.counts_all {
            rel = Rel::Limit { input: Box::new(rel), count, offset };
        }
        rel = extended(rel, late);
        if rel.columns() != columns {
            rel = Rel::Narrow { input: Box::new(rel), columns };
        }
        Ok(BoundQuery { rel, outputs, select: Some(Box::new(kept)) })
    }
}

/// The columns of a select list.
struct Shown {
    /// Those that are computed.
    items: Vec<(ColumnId, Scalar)>,
    /// All of them, with their names.
    outputs: Vec<(ColumnId, String)>,
    /// What was computed for which expression.
    made: Vec<(Scalar, ColumnId)>,
}

/// The rows with these columns.
fn extended(rel: Rel, items: Vec<(ColumnId, Scalar)>) -> Rel {
    match items.is_empty() {
        true => rel,
        false => Rel::Extend { input: Box::new(rel), items },
    }
}
