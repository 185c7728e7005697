//! ONLY_FULL_GROUP_BY: what groups do not determine may not be shown. And what DISTINCT leaves to order by.

use super::Select;
use crate::bind::Binder;
use crate::error;
use lats_engine::ir::{ColumnId, JoinKind, Rel, Scalar, walk};
use lats_values::{BinaryOp, Expr, SqlError};
use std::collections::BTreeSet;

/// What holds for the rows of a FROM clause.
#[derive(Default)]
struct Facts {
    /// These columns determine those.
    dependencies: Vec<(BTreeSet<ColumnId>, BTreeSet<ColumnId>)>,
}

/// Where an expression may be a key that is no column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// As a whole.
    Whole,
    /// This is a part of one that is none.
    Within,
    /// As a whole and as a part.
    Any,
}

impl Binder<'_> {
    /// # Errors
    /// 1055 with GROUP BY, 1140 without.
    pub(super) fn check_grouping(&self, parts: &Select) -> Result<(), SqlError> {
        // MySQL leaves such groups out before it looks at them.
        let plain = parts.calls.is_empty() && parts.having.is_none() && parts.rollup.is_empty();
        let is_dropped =
            plain && parts.windows.is_empty() && self.groups_dropped.contains(&parts.block);
        if !parts.is_grouped || !self.context.full_group_by || is_dropped {
            return Ok(());
        }
        let known = self.determined(parts);
        let lists = parts.outputs.iter().map(|o| (&o.expr, "SELECT list"));
        let lists = lists.chain(parts.having.iter().map(|h| (h, "HAVING clause")));
        let lists = lists.chain(parts.order.iter().map(|key| (&key.value, "ORDER BY clause")));
        let mut place = 0;
        let mut last = "";
        for (expr, clause) in lists {
            place = if clause == last { place + 1 } else { 1 };
            last = clause;
            // In HAVING and ORDER BY a name may stand for a key that is an expression.
            let depth = if clause == "SELECT list" { Depth::Whole } else { Depth::Any };
            if let Some(column) = self.free_column(expr, parts, &known, depth) {
                return Err(self.not_grouped(column, place, clause, parts.keys.is_empty()));
            }
        }
        Ok(())
    }

    fn not_grouped(&self, column: ColumnId, place: usize, clause: &str, no_keys: bool) -> SqlError {
        let name = self.full_name(column);
        if no_keys {
            let text = format!(
                "In aggregated query without GROUP BY, expression #{place} of {clause} contains nonaggregated column '{name}'; \
                 this is incompatible with sql_mode=only_full_group_by"
            );
            return error::make(1140, "42000", &text);
        }
        let text = format!(
            "Expression #{place} of {clause} is not in GROUP BY clause and contains nonaggregated column '{name}' which is not \
             functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by"
        );
        error::make(1055, "42000", &text)
    }

    fn full_name(&self, id: ColumnId) -> String {
        let Some(column) = self.columns.get(id.0 as usize) else { return String::new() };
        match column.origin {
            Some(origin) => {
                let source = self.source(origin.source);
                format!("{}.{}.{}", source.table.def.database, source.alias, column.name)
            }
            None => column.name.clone(),
        }
    }

    /// A column of this block in the expression, or in a subquery of it, that no key covers.
    fn free_column(
        &self,
        expr: &Scalar,
        parts: &Select,
        known: &BTreeSet<ColumnId>,
        depth: Depth,
    ) -> Option<ColumnId> {
        let is_plain = matches!(expr, Expr::Column(_));
        if (is_plain || depth != Depth::Within) && parts.keys.contains(expr) {
            return None;
        }
        let Expr::Column(number) = expr else {
            let depth = if depth == Depth::Any { Depth::Any } else { Depth::Within };
            let children = walk::children(expr);
            return children
                .into_iter()
                .find_map(|child| self.free_column(child, parts, known, depth));
        };
        let id = ColumnId(*number);
        let whole = if depth == Depth::Any { Depth::Any } else { Depth::Whole };
        let of = |scalar: &Scalar| self.free_column(scalar, parts, known, whole);
        let mut pending = parts.above.iter().chain(&parts.below);
        if let Some(pending) = pending.find(|pending| pending.columns().contains(&id)) {
            let scalars = pending.rel.all_scalars().into_iter();
            return scalars.chain(&pending.on).chain(&pending.when).find_map(of);
        }
        if let Some(window) = parts.windows.iter().find(|window| window.call.column == id) {
            return window.scalars().find_map(of);
        }
        let column = self.columns.get(*number as usize)?;
        let is_own = column.block == parts.block && !self.call_columns.contains(&id);
        let is_read = parts.read_columns().contains(&id);
        (is_own && is_read && !known.contains(&id)).then_some(id)
    }

    /// The columns that the keys determine.
    fn determined(&self, parts: &Select) -> BTreeSet<ColumnId> {
        let mut facts = Facts::default();
        facts.add(&parts.from, self);
        let mut known: BTreeSet<ColumnId> = BTreeSet::new();
        if let Some(filter) = &parts.filter {
            facts.add_condition(filter, &mut known, &BTreeSet::new());
        }
        for key in &parts.keys {
            if let Expr::Column(number) = key {
                known.insert(ColumnId(*number));
            }
        }
        loop {
            let before = known.len();
            for (from, to) in &facts.dependencies {
                if from.is_subset(&known) {
                    known.extend(to);
                }
            }
            if known.len() == before {
                return known;
            }
        }
    }
}

impl Select {
    fn read_columns(&self) -> BTreeSet<ColumnId> {
        self.from.columns().into_iter().collect()
    }
}

impl Facts {
    fn add(&mut self, rel: &Rel, binder: &Binder<'_>) {
        match rel {
            Rel::Scan(scan) => {
                let all: BTreeSet<ColumnId> = scan.columns.iter().copied().collect();
                let table = &binder.source(scan.source).table;
                let nullable = |column: &ColumnId| {
                    let of = table.types.get((column.0 - scan.first.0) as usize);
                    of.is_none_or(|of| of.nullable)
                };
                // Rows with NULL in a unique key may be many.
                for key in scan.keys.iter().filter(|key| !key.iter().any(nullable)) {
                    self.dependencies.push((key.iter().copied().collect(), all.clone()));
                }
            }
            Rel::Join { kind, left, right, on } => {
                self.add(left, binder);
                self.add(right, binder);
                let mut constants = BTreeSet::new();
                if let Some(on) = on {
                    let outer = match kind {
                        // What the condition says of the left side alone holds for partners only.
                        JoinKind::Left => left.columns().into_iter().collect(),
                        _ => BTreeSet::new(),
                    };
                    self.add_condition(on, &mut constants, &outer);
                }
                if *kind == JoinKind::Inner {
                    self.dependencies.push((BTreeSet::new(), constants));
                }
            }
            Rel::Aggregate { input, keys, .. } => {
                self.add(input, binder);
                let columns: Option<BTreeSet<ColumnId>> = keys
                    .iter()
                    .map(|key| match key {
                        Expr::Column(number) => Some(ColumnId(*number)),
                        _ => None,
                    })
                    .collect();
                if let Some(columns) = columns {
                    self.dependencies.push((columns, rel.columns().into_iter().collect()));
                }
            }
            other => other.inputs().into_iter().for_each(|input| self.add(input, binder)),
        }
        if let Rel::Extend { items, .. } = rel {
            for (column, value) in items {
                self.dependencies.push((walk::columns_of(value), BTreeSet::from([*column])));
            }
        }
        if let Rel::Filter { condition, .. } = rel {
            let mut constants = BTreeSet::new();
            self.add_condition(condition, &mut constants, &BTreeSet::new());
            self.dependencies.push((BTreeSet::new(), constants));
        }
    }

    /// Equalities of the condition; columns in `outer` are not determined by the others.
    fn add_condition(
        &mut self,
        condition: &Scalar,
        constants: &mut BTreeSet<ColumnId>,
        outer: &BTreeSet<ColumnId>,
    ) {
        for term in walk::conjuncts(condition.clone()) {
            let Expr::Binary { op: BinaryOp::Equal, left, right } = &term else { continue };
            for (a, b) in [(left, right), (right, left)] {
                let Expr::Column(number) = &**a else { continue };
                let id = ColumnId(*number);
                if *number >= lats_engine::ir::EXTERNAL_BASE || outer.contains(&id) {
                    continue;
                }
                let others = walk::columns_of(b);
                match others.is_empty() {
                    true => {
                        constants.insert(id);
                    }
                    false => self.dependencies.push((others, BTreeSet::from([id]))),
                }
            }
        }
    }
}

/// DISTINCT leaves no rows to order by what is not in the select list.
///
/// # Errors
/// 3065.
pub(super) fn distinct_order(parts: &Select) -> Result<(), SqlError> {
    if !parts.distinct {
        return Ok(());
    }
    let selected: Vec<&Scalar> = parts.outputs.iter().map(|o| &o.expr).collect();
    let outside = parts.order.iter().position(|key| uses_others(&key.value, &selected));
    match outside {
        None => Ok(()),
        Some(at) => Err(error::make(
            3065,
            "HY000",
            &format!(
                "Expression #{} of ORDER BY clause is not in SELECT list, references column which is not in SELECT list; this is \
                 incompatible with DISTINCT",
                at + 1
            ),
        )),
    }
}

fn uses_others(expr: &Scalar, selected: &[&Scalar]) -> bool {
    if selected.contains(&expr) {
        return false;
    }
    match expr {
        Expr::Column(number) => *number < lats_engine::ir::EXTERNAL_BASE,
        other => walk::children(other).into_iter().any(|child| uses_others(child, selected)),
    }
}
