//! WITH CHECK OPTION: what a row must meet to be written through a view.

use super::query::{self, QueryPlan};
use crate::bind::query::BoundQuery;
use crate::bind::{Binder, hex_beside};
use crate::error;
use crate::expr::{External, map_columns};
use crate::syntax::Context;
use lats_engine::ir::{ColumnId, Rel, Scalar, walk};
use lats_values::{BinaryOp, ColumnType, Expr, SqlError, TypeKind};
use std::collections::BTreeSet;

/// The condition of a view.
#[derive(Debug)]
pub struct Check {
    /// The view that is named: its database and its name.
    pub view: (String, String),
    /// The condition's values from outside.
    pub externals: Vec<External>,
    /// How it is looked at.
    pub kind: CheckKind,
    /// Columns of the view's other tables that it needs, counted from the first column that was made for the view. They stand
    /// behind the row's own.
    pub others: Vec<u32>,
}

/// How a condition is looked at.
#[derive(Debug)]
pub enum CheckKind {
    /// It is computed from the row.
    Row(Expr),
    /// It has subqueries, or is about other tables, too: a query gives its value. The row's values are [`External::OfRow`].
    Query(Box<QueryPlan>),
}

impl Check {
    /// What rows of one of a view's tables must meet; none if there is nothing.
    ///
    /// # Errors
    /// What binding the view gives, or 1235.
    pub fn of(
        context: &Context<'_>,
        place: &(String, String),
        base: usize,
    ) -> Result<Option<Self>, SqlError> {
        let Some(view) = context.views.get(&place.0, &place.1) else { return Ok(None) };
        let mut binder = Binder::new(context);
        binder.view(view, &view.def.name)?;
        let Some(last) = binder.views.len().checked_sub(1) else { return Ok(None) };
        let (terms, pending) = binder.checks(last, false);
        let Some(condition) = crate::bind::balanced(terms, BinaryOp::And) else { return Ok(None) };
        let condition = hex_beside(binder.expanded(&condition)?, true);
        let used = &binder.views[last];
        let first_column = used.first_column;
        let target = used.merged.as_ref().and_then(|merged| merged.bases.get(base).copied());
        let target = target.ok_or_else(|| error::internal("a view's table was expected"))?;
        let source = binder.source(target);
        let own = source.first..source.first + u32::try_from(source.table.types.len()).unwrap_or(0);
        let view = place.clone();
        if pending.is_empty() && walk::columns_of(&condition).iter().all(|c| own.contains(&c.0)) {
            let of_row =
                |number: u32| own.contains(&number).then(|| Expr::Column(number - own.start));
            let kind = CheckKind::Row(map_columns(&condition, &of_row));
            return Ok(Some(Self { view, externals: binder.externals, kind, others: Vec::new() }));
        }
        let mut inputs = Inputs { own, others: Vec::new(), items: Vec::new() };
        let rel = inputs.rows(&mut binder, &condition, pending)?;
        let value = binder.column("", ColumnType::new(TypeKind::BigInt), None);
        let rel = Rel::Extend { input: Box::new(rel), items: vec![(value, condition)] };
        let outputs = vec![(value, String::new())];
        let bound = BoundQuery { rel, outputs, select: None };
        let plan = query::finish(bound, &mut binder)?;
        let others = inputs.others.iter().map(|column| column.0 - first_column).collect();
        let kind = CheckKind::Query(Box::new(plan));
        Ok(Some(Self { view, externals: binder.externals, kind, others }))
    }

    /// 1369.
    pub fn failed(&self) -> SqlError {
        let text = format!("CHECK OPTION failed '{}.{}'", self.view.0, self.view.1);
        error::make(1369, "HY000", &text)
    }
}

/// What the query of a condition takes from outside.
struct Inputs {
    /// The columns of the row's table.
    own: std::ops::Range<u32>,
    others: Vec<ColumnId>,
    items: Vec<(ColumnId, Scalar)>,
}

impl Inputs {
    /// One row with all columns that the condition and its subqueries need.
    fn rows(
        &mut self,
        binder: &mut Binder<'_>,
        condition: &Scalar,
        pending: Vec<crate::bind::scope::Pending>,
    ) -> Result<Rel, SqlError> {
        let made: BTreeSet<ColumnId> =
            pending.iter().flat_map(crate::bind::scope::Pending::columns).collect();
        let mut needed = walk::columns_of(condition);
        for one in &pending {
            needed.extend(one.needs());
        }
        let mut computed = Vec::new();
        for column in needed.into_iter().filter(|column| !made.contains(column)) {
            let value = binder.expanded(&column.scalar())?;
            if value == column.scalar() {
                self.take(binder, column);
                continue;
            }
            for part in walk::columns_of(&value) {
                self.take(binder, part);
            }
            computed.push((column, value));
        }
        let items = std::mem::take(&mut self.items);
        let mut rel = Rel::Extend { input: Box::new(Rel::one_row()), items };
        if !computed.is_empty() {
            rel = Rel::Extend { input: Box::new(rel), items: computed };
        }
        Ok(Binder::apply(rel, pending))
    }

    fn take(&mut self, binder: &mut Binder<'_>, column: ColumnId) {
        if self.items.iter().any(|(known, _)| *known == column) {
            return;
        }
        let width = self.own.end - self.own.start;
        let place = if self.own.contains(&column.0) {
            column.0 - self.own.start
        } else {
            self.others.push(column);
            width + u32::try_from(self.others.len() - 1).unwrap_or(0)
        };
        let value = binder.external(External::OfRow(place));
        self.items.push((column, value));
    }
}
