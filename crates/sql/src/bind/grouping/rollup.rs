//! WITH ROLLUP: behind the groups, keys are columns of their own, which are NULL in the rows of totals.

use super::Select;
use crate::bind::scope::{Block, Output, Pending};
use lats_engine::ir::{ColumnId, Scalar};
use lats_values::Expr;

/// The keys and their columns.
struct Keys<'k> {
    keys: &'k [Scalar],
    rollup: &'k [(ColumnId, ColumnId)],
}

impl Keys<'_> {
    fn column(&self, expr: &Scalar) -> Option<Scalar> {
        let at = self.keys.iter().position(|key| key == expr)?;
        self.rollup.get(at).map(|(column, _)| column.scalar())
    }

    /// The expression with the columns of keys in it.
    fn within(&self, mut expr: Scalar) -> Scalar {
        if self.rollup.is_empty() {
            return expr;
        }
        let mut left = Vec::from([&mut expr]);
        while let Some(expr) = left.pop() {
            // A constant stands for a key where the whole expression is one.
            if !matches!(expr, Expr::Literal(_))
                && let Some(column) = self.column(expr)
            {
                *expr = column;
                continue;
            }
            left.extend(expr.children_mut());
        }
        expr
    }

    /// The same for an item of the select list or a key of an order.
    fn whole(&self, expr: Scalar) -> Scalar {
        match self.column(&expr) {
            Some(column) => column,
            None => self.within(expr),
        }
    }

    fn pending(&self, pending: Pending) -> Pending {
        let Pending { rel, kind, on, when } = pending;
        let rel = rel.map_scalars(&mut |scalar| self.within(scalar));
        let within = |scalar: Option<Scalar>| scalar.map(|scalar| self.within(scalar));
        Pending { rel, kind, on: within(on), when: within(when) }
    }
}

/// An item of the select list as it is behind the groups.
pub(super) fn output(output: &Output, block: &Block) -> Output {
    let keys = Keys { keys: &block.keys, rollup: &block.rollup };
    Output { expr: keys.whole(output.expr.clone()), ..output.clone() }
}

/// The parts of a SELECT, of which those behind the groups take the columns of keys.
pub(super) fn behind(mut parts: Select) -> Select {
    if parts.rollup.is_empty() {
        return parts;
    }
    let keys = Keys { keys: &parts.keys, rollup: &parts.rollup };
    for output in &mut parts.outputs {
        output.expr = keys.whole(output.expr.clone());
    }
    parts.above = std::mem::take(&mut parts.above).into_iter().map(|p| keys.pending(p)).collect();
    parts.having = parts.having.take().map(|having| keys.within(having));
    for key in &mut parts.order {
        key.value = keys.whole(key.value.clone());
    }
    for found in &mut parts.windows {
        found.change(&mut |scalar| keys.whole(scalar));
    }
    parts
}
