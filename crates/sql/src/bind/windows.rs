//! Window functions and named windows.

mod frame;

use super::Binder;
use super::scope::Aggregates;
use crate::error;
use lats_engine::ir::{Bound, ColumnId, Rel, Scalar, SortKey, WindowCall, WindowFunction, walk};
use lats_mysql_syntax::Keyword as K;
use lats_mysql_syntax::tree::{self, Over, SideId, Text, Window};
use lats_values::{ColumnType, Expr, SqlError, TypeKind, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A window function and its window.
#[derive(Clone, Debug)]
pub struct Found {
    /// What rows of a part have in common.
    pub partition: Vec<Scalar>,
    /// The order within a part.
    pub order: Vec<SortKey>,
    /// The function.
    pub call: WindowCall,
}

impl Found {
    /// Its expressions.
    pub fn scalars(&self) -> impl Iterator<Item = &Scalar> {
        let order = self.order.iter().map(|key| &key.value);
        self.partition.iter().chain(order).chain(&self.call.args)
    }

    /// The columns that it takes.
    pub fn columns(&self) -> BTreeSet<ColumnId> {
        let mut columns = BTreeSet::new();
        self.scalars().for_each(|scalar| walk::add_columns(scalar, &mut columns));
        for bound in [&self.call.frame.start, &self.call.frame.end] {
            bound.scalars().into_iter().for_each(|value| walk::add_columns(value, &mut columns));
        }
        columns
    }

    /// Replaces its expressions.
    pub fn change(&mut self, change: &mut dyn FnMut(Scalar) -> Scalar) {
        let order = self.order.iter_mut().map(|key| &mut key.value);
        let WindowCall { args, frame, .. } = &mut self.call;
        let bounds = [&mut frame.start, &mut frame.end].into_iter().flat_map(Bound::scalars_mut);
        for scalar in self.partition.iter_mut().chain(order).chain(args).chain(bounds) {
            *scalar = change(scalar.clone());
        }
    }
}

/// A window with what it takes from the windows that it names.
struct Definition {
    partition: Vec<tree::ExprId>,
    order: Vec<tree::OrderItem>,
    frame: Option<tree::Frame>,
}

/// Named windows that lead to each other.
const NAMES_MAX: usize = 64;

impl Binder<'_> {
    pub(super) fn window_function(&mut self, call: &tree::Aggregate) -> Result<Expr, SqlError> {
        if !self.block().windows_allowed || self.block().aggregates == Aggregates::Inside {
            let name = call.name.name().to_ascii_lowercase();
            let text = format!("You cannot use the window function '{name}' in this context.'");
            return Err(error::make(3593, "HY000", &text));
        }
        if call.is_distinct {
            return Err(error::not_supported("<window function>(DISTINCT ..)"));
        }
        if call.nulls == tree::Nulls::Ignore {
            return Err(error::not_supported("IGNORE NULLS"));
        }
        let block = self.block();
        block.windows_allowed = false;
        // It is computed for all rows, whatever its result is for.
        let guards = std::mem::take(&mut block.guards);
        let found = self.window_call(call);
        let block = self.block();
        (block.windows_allowed, block.guards) = (true, guards);
        let found = found?;
        let column = found.call.column;
        self.block().windows.push(found);
        Ok(column.scalar())
    }

    fn window_call(&mut self, call: &tree::Aggregate) -> Result<Found, SqlError> {
        let definition = self.definition(call.over)?;
        let name = match call.over {
            Over::Name(name) => Some(self.name(name)?),
            _ => None,
        };
        let ordered = definition.order.iter().map(|item| item.value);
        self.refuse_positions(definition.partition.iter().copied().chain(ordered), name)?;
        let mut partition = Vec::with_capacity(definition.partition.len());
        for id in &definition.partition {
            partition.push(self.bind_in("window partition by", *id)?);
        }
        let mut order = Vec::with_capacity(definition.order.len());
        for item in &definition.order {
            let value = self.bind_in("window order by", item.value)?;
            order
                .push(SortKey { value, descending: item.direction == tree::Direction::Descending });
        }
        let frame = self.frame(definition.frame.as_ref(), &order, name)?;
        let (function, args, column_type) = self.window_kind(call)?;
        let column = self.column("", column_type, None);
        let call = WindowCall { column, function, args, frame };
        Ok(Found { partition, order, call })
    }

    /// 3592: whole numbers, which would be positions in the select list.
    fn refuse_positions(
        &self,
        mut keys: impl Iterator<Item = tree::ExprId>,
        name: Option<&str>,
    ) -> Result<(), SqlError> {
        let is_position = |id: tree::ExprId| {
            let integer = tree::NumberKind::Integer;
            matches!(self.tree().expr(id), tree::Expr::Number { kind, .. } if *kind == integer)
        };
        if !keys.any(is_position) {
            return Ok(());
        }
        let name = name.unwrap_or(frame::UNNAMED);
        let text = format!(
            "Window '{name}': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression."
        );
        Err(error::make(3592, "HY000", &text))
    }

    fn window_kind(
        &mut self,
        call: &tree::Aggregate,
    ) -> Result<(WindowFunction, Vec<Scalar>, ColumnType), SqlError> {
        use WindowFunction as W;
        if let Some(kind) = super::calls::aggregate_kind(call.name) {
            if call.name == K::GROUP_CONCAT {
                return Err(error::not_supported("group_concat as window function"));
            }
            let (spec, args) = self.aggregate_arguments(kind, call)?;
            let column_type = spec.result_type();
            return Ok((W::Aggregate(Arc::new(spec)), args, column_type));
        }
        let list = self.tree().list(call.arguments);
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            args.push(self.bind(*arg)?);
        }
        let count = ColumnType::new(TypeKind::BigInt).unsigned().not_null();
        let of_first = |binder: &Self, args: &[Scalar]| {
            let found = args.first().map(|arg| binder.type_of(arg));
            ColumnType { nullable: true, ..found.unwrap_or_else(super::unknown_type) }
        };
        Ok(match call.name {
            K::ROW_NUMBER => (W::RowNumber, args, count),
            K::RANK => (W::Rank, args, count),
            K::DENSE_RANK => (W::DenseRank, args, count),
            K::PERCENT_RANK => (W::PercentRank, args, ColumnType::new(TypeKind::Double).not_null()),
            K::CUME_DIST => (W::CumeDist, args, ColumnType::new(TypeKind::Double).not_null()),
            K::NTILE => (W::Ntile, args, ColumnType { nullable: true, ..count }),
            K::FIRST_VALUE => (W::FirstValue, args.clone(), of_first(self, &args)),
            K::LAST_VALUE => (W::LastValue, args.clone(), of_first(self, &args)),
            K::NTH_VALUE if call.from_first || call.nulls != tree::Nulls::Ignore => {
                (W::NthValue, args.clone(), of_first(self, &args))
            }
            K::LAG | K::LEAD => {
                let function = if call.name == K::LAG { W::Lag } else { W::Lead };
                // The default's type counts, too.
                let mut all = Vec::from([args[0].clone()]);
                all.extend(args.get(2).cloned());
                let one = Expr::Case {
                    operand: None,
                    branches: all.into_iter().map(|e| (Expr::Literal(Value::Int(1)), e)).collect(),
                    otherwise: None,
                };
                let column_type = self.type_of(&one);
                (function, args, column_type)
            }
            other => return Err(error::not_supported(&format!("function {}", other.name()))),
        })
    }

    /// The window behind OVER, with all that it takes from named ones.
    fn definition(&mut self, over: Over) -> Result<Definition, SqlError> {
        let found = match over {
            Over::None => return Err(error::internal("a window was expected")),
            Over::Name(name) => self.named_window(name)?,
            Over::Window(window) => window,
        };
        self.resolved(found)
    }

    fn named_window(&self, text: Text) -> Result<SideId, SqlError> {
        let name = self.name(text)?;
        let block = &self.blocks[self.blocks.len() - 1];
        for (other, window) in &block.named_windows {
            if self.name(*other)?.eq_ignore_ascii_case(name) {
                return Ok(*window);
            }
        }
        let text = format!("Window name '{name}' is not defined.");
        Err(error::make(3579, "HY000", &text))
    }

    fn resolved(&self, window: SideId) -> Result<Definition, SqlError> {
        let tree = self.tree();
        let mut chain: Vec<&Window> = vec![tree.window(window)];
        while let Some(last) = chain.last()
            && last.base.is_some()
        {
            if chain.len() > NAMES_MAX {
                let text = "There is a circularity in the window dependency graph.";
                return Err(error::make(3580, "HY000", text));
            }
            chain.push(tree.window(self.named_window(last.base)?));
        }
        let mut all = Definition { partition: Vec::new(), order: Vec::new(), frame: None };
        for (level, window) in chain.iter().enumerate().rev() {
            let is_base = level > 0;
            if is_base && window.frame.is_some() {
                let text =
                    "Window has a frame definition, so cannot be referenced by another window.";
                return Err(error::make(3582, "HY000", text));
            }
            if level + 1 < chain.len() && !window.partition.is_empty() {
                let text = "A window which depends on another cannot define partitioning.";
                return Err(error::make(3581, "HY000", text));
            }
            if !window.order.is_empty() && !all.order.is_empty() {
                let text = "Window cannot inherit, since both contain an ORDER BY clause.";
                return Err(error::make(3583, "HY000", text));
            }
            all.partition.extend(tree.list(window.partition));
            all.order.extend(window.order.iter().copied());
            all.frame = window.frame;
        }
        Ok(all)
    }
}

/// The rows with the columns of these window functions: those with the same window are computed together.
pub(super) fn windows(mut rel: Rel, found: Vec<Found>) -> Rel {
    let mut groups: Vec<(Vec<Scalar>, Vec<SortKey>, Vec<WindowCall>)> = Vec::new();
    for Found { partition, order, call } in found {
        match groups.iter_mut().find(|(p, o, _)| *p == partition && *o == order) {
            Some((_, _, calls)) => calls.push(call),
            None => groups.push((partition, order, Vec::from([call]))),
        }
    }
    for (partition, order, calls) in groups {
        rel = Rel::Window { input: Box::new(rel), partition, order, calls };
    }
    rel
}
