//! SELECT: its clauses in the order in which MySQL resolves them, and the plan that they make.

mod check;

use super::Binder;
use super::query::BoundQuery;
use super::scope::{Aggregates, AliasUse, Output, Pending};
use super::windows::{self, Found};
use crate::error;
use lats_engine::ir::{Call, ColumnId, Rel, Scalar, SortKey, walk};
use lats_mysql_syntax::tree;
use lats_values::{BinaryOp, ColumnType, Expr, SqlError, Value};

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
    /// SQL_CALC_FOUND_ROWS: LIMIT is not in the plan, so that all rows can be counted.
    pub counts_all: bool,
}

impl Binder<'_> {
    pub(super) fn select(
        &mut self,
        select: &tree::Select,
        (order, limit): (&[tree::OrderItem], Option<&tree::Limit>),
    ) -> Result<BoundQuery, SqlError> {
        let from = self.tables_of(&select.from)?;
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
        let outputs = self.behind_rollup(outputs);
        self.block().outputs = outputs.clone();
        let having = self.having(select)?;
        self.allow_aggregates();
        self.block().windows_allowed = true;
        let order = self.order_keys(order)?;
        self.block().windows_allowed = false;
        self.block().aggregates = Aggregates::Refused;
        let limit = match limit {
            Some(limit) => self.limit(limit)?,
            None => (None, None),
        };
        let depth = self.blocks.len();
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
            counts_all: select.options.calc_found_rows && depth == 2,
        };
        let has_subqueries = !parts.above.is_empty() || !parts.below.is_empty();
        if !parts.rollup.is_empty() && has_subqueries {
            return Err(error::not_supported("subqueries beside WITH ROLLUP"));
        }
        self.check_grouping(&parts)?;
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
        let calls = std::mem::take(&mut block.calls);
        *block = saved;
        (block.subqueries, block.calls) = (subqueries, calls);
        block.outputs = named;
        block.aggregates = Aggregates::Refused;
        block.windows_allowed = false;
        block.alias_use = AliasUse::Last;
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
        for (_, pending) in &block.subqueries {
            let is_used = pending.column().is_some_and(|column| columns.contains(&column));
            if is_used && !block.below.contains(pending) {
                block.below.push(pending.clone());
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
        if keys.iter().any(|key| !matches!(key, Expr::Column(_))) {
            return Err(error::not_supported("WITH ROLLUP over expressions"));
        }
        let mut rollup = Vec::with_capacity(keys.len());
        for key in keys {
            let column_type = ColumnType { nullable: true, ..self.type_of(key) };
            let of_total = ColumnType::new(lats_values::TypeKind::BigInt).not_null();
            rollup.push((self.column("", column_type, None), self.column("", of_total, None)));
        }
        self.block().rollup = rollup.clone();
        Ok(rollup)
    }

    /// With ROLLUP, an expression of the select list that is a key is that key's column.
    fn behind_rollup(&mut self, mut outputs: Vec<Output>) -> Vec<Output> {
        let block = self.block();
        for output in &mut outputs {
            let key = block.keys.iter().position(|key| *key == output.expr);
            if let Some((column, _)) = key.and_then(|at| block.rollup.get(at)) {
                output.expr = column.scalar();
            }
        }
        outputs
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
            let Some((_, total)) = key.and_then(|at| block.rollup.get(at)) else {
                let text = "Argument #0 of GROUPING function is not in GROUP BY";
                return Err(error::make(3602, "HY000", text));
            };
            let total = total.scalar();
            all = Some(match all {
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
        block.alias_use = AliasUse::First;
        block.windows_allowed = false;
        let bound = self.bind_in("having clause", id);
        let block = self.block();
        block.alias_use = AliasUse::No;
        Ok(Some(super::hex_beside(bound?, true)))
    }

    /// The plan of a SELECT.
    fn assemble(&mut self, parts: Select) -> Result<BoundQuery, SqlError> {
        let kept = parts.clone();
        let mut rel = filtered(parts.from, parts.filter, parts.in_filter);
        rel = Self::apply(rel, parts.below);
        if parts.is_grouped {
            let (keys, rollup, calls) = (parts.keys, parts.rollup, parts.calls);
            rel = Rel::Aggregate { input: Box::new(rel), keys, rollup, calls };
        }
        // Subqueries of HAVING and those of the select list are not told apart: all see the same rows.
        rel = Self::apply(rel, parts.above);
        rel = rel.filter(parts.having);
        rel = windows::windows(rel, parts.windows);
        let below: std::collections::BTreeSet<ColumnId> = rel.columns().into_iter().collect();
        let mut items = Vec::new();
        let mut outputs: Vec<(ColumnId, String)> = Vec::with_capacity(parts.outputs.len());
        let mut made: Vec<(Scalar, ColumnId)> = Vec::new();
        for output in parts.outputs {
            let id = match &output.expr {
                // Columns of outer queries become columns of this one.
                Expr::Column(number) if below.contains(&ColumnId(*number)) => ColumnId(*number),
                expr => {
                    let column_type = self.type_of(expr);
                    let value = expr.clone();
                    let column = self.column(&output.name, column_type, None);
                    items.push((column, value));
                    made.push((output.expr, column));
                    column
                }
            };
            outputs.push((id, output.name));
        }
        if !items.is_empty() {
            rel = Rel::Extend { input: Box::new(rel), items };
        }
        let columns: Vec<ColumnId> = outputs.iter().map(|(id, _)| *id).collect();
        if parts.distinct {
            rel = Rel::Distinct { input: Box::new(rel), columns: columns.clone() };
        }
        if !parts.order.is_empty() {
            let of_output = |value: Scalar| {
                let found = made.iter().find(|(expr, _)| *expr == value);
                found.map_or(value, |(_, column)| column.scalar())
            };
            let keys = parts.order.into_iter();
            let keys = keys.map(|key| SortKey { value: of_output(key.value), ..key }).collect();
            rel = Rel::Sort { input: Box::new(rel), keys };
        }
        let (count, offset) = parts.limit;
        if (count.is_some() || offset.is_some()) && !kept.counts_all {
            rel = Rel::Limit { input: Box::new(rel), count, offset };
        }
        if rel.columns() != columns {
            rel = Rel::Narrow { input: Box::new(rel), columns };
        }
        Ok(BoundQuery { rel, outputs, select: Some(Box::new(kept)) })
    }
}

/// The rows that pass WHERE. Terms without subqueries are looked at first.
pub(super) fn filtered(from: Rel, filter: Option<Scalar>, pending: Vec<Pending>) -> Rel {
    let Some(filter) = filter else { return Binder::apply(from, pending) };
    if pending.is_empty() {
        return from.filter(Some(filter));
    }
    let is_plain = |term: &Scalar| {
        let columns = walk::columns_of(term);
        !columns.iter().any(|column| pending.iter().any(|p| gives(p, *column)))
    };
    let (plain, rest): (Vec<_>, Vec<_>) = walk::conjuncts(filter).into_iter().partition(is_plain);
    let rel = from.filter(walk::conjunction(plain));
    Binder::apply(rel, pending).filter(walk::conjunction(rest))
}

fn gives(pending: &Pending, column: ColumnId) -> bool {
    use lats_engine::ir::ApplyKind;
    match pending.kind {
        ApplyKind::Mark(made) | ApplyKind::Single { column: made, .. } => made == column,
        ApplyKind::Join(_) => false,
    }
}
