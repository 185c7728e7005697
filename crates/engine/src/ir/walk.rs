//! Walks over plans and expressions.

use super::{ApplyKind, Bound, ColumnId, EXTERNAL_BASE, JoinKind, Rel, Scalar, SortKey};
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use lats_values::{Expr, Function};

/// The parts of an expression.
pub fn children(expr: &Scalar) -> Vec<&Scalar> {
    match expr {
        Expr::Literal(_) | Expr::Column(_) => Vec::new(),
        Expr::Unary { arg, .. }
        | Expr::IsNull { arg, .. }
        | Expr::Cast { arg, .. }
        | Expr::Collate { arg, .. } => Vec::from([&**arg]),
        Expr::Binary { left, right, .. } | Expr::Compare { left, right, .. } => {
            Vec::from([&**left, right])
        }
        Expr::Between { arg, low, high, .. } => Vec::from([&**arg, low, high]),
        Expr::In { arg, list, .. } => core::iter::once(&**arg).chain(list).collect(),
        Expr::Like { arg, pattern, .. } => Vec::from([&**arg, pattern]),
        Expr::Case { operand, branches, otherwise } => {
            let pairs = branches.iter().flat_map(|(when, then)| [when, then]);
            operand.as_deref().into_iter().chain(pairs).chain(otherwise.as_deref()).collect()
        }
        Expr::Call { args, .. } => args.iter().collect(),
    }
}

/// Calls `visit` with every column number in the expression, those of values from outside too.
pub fn visit_numbers(expr: &Scalar, visit: &mut dyn FnMut(u32)) {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        if let Expr::Column(number) = expr {
            visit(*number);
        }
        left.extend(children(expr));
    }
}

/// Adds the columns of an expression.
pub fn add_columns(expr: &Scalar, found: &mut BTreeSet<ColumnId>) {
    visit_numbers(expr, &mut |number| {
        if number < EXTERNAL_BASE {
            found.insert(ColumnId(number));
        }
    });
}

/// The columns of an expression.
pub fn columns_of(expr: &Scalar) -> BTreeSet<ColumnId> {
    let mut found = BTreeSet::new();
    add_columns(expr, &mut found);
    found
}

/// A copy of the expression with columns replaced where `replace` has something.
pub fn map_columns(expr: &Scalar, replace: &dyn Fn(u32) -> Option<Scalar>) -> Scalar {
    match expr {
        Expr::Column(number) => replace(*number).unwrap_or_else(|| expr.clone()),
        other => map_children(other, &mut |child| map_columns(child, replace)),
    }
}

/// A copy of the expression with other parts, which are made in the order of [`children`].
pub fn map_children(expr: &Scalar, map: &mut dyn FnMut(&Scalar) -> Scalar) -> Scalar {
    let mut boxed = |part: &Scalar| Box::new(map(part));
    match expr {
        Expr::Literal(_) | Expr::Column(_) => expr.clone(),
        Expr::Unary { op, arg } => Expr::Unary { op: *op, arg: boxed(arg) },
        Expr::Binary { op, left, right } => {
            Expr::Binary { op: *op, left: boxed(left), right: boxed(right) }
        }
        Expr::IsNull { arg, negated } => Expr::IsNull { arg: boxed(arg), negated: *negated },
        Expr::Between { arg, low, high, negated } => {
            Expr::Between { arg: boxed(arg), low: boxed(low), high: boxed(high), negated: *negated }
        }
        Expr::In { arg, list, negated } => {
            let arg = boxed(arg);
            Expr::In { arg, list: list.iter().map(map).collect(), negated: *negated }
        }
        Expr::Like { arg, pattern, escape, negated } => Expr::Like {
            arg: boxed(arg),
            pattern: boxed(pattern),
            escape: *escape,
            negated: *negated,
        },
        Expr::Case { operand, branches, otherwise } => Expr::Case {
            operand: operand.as_deref().map(&mut boxed),
            branches: branches.iter().map(|(when, then)| (*boxed(when), *boxed(then))).collect(),
            otherwise: otherwise.as_deref().map(boxed),
        },
        Expr::Cast { arg, to } => Expr::Cast { arg: boxed(arg), to: to.clone() },
        Expr::Call { function, args } => {
            Expr::Call { function: *function, args: args.iter().map(map).collect() }
        }
        Expr::Compare { op, by, left, right } => {
            Expr::Compare { op: *op, by: *by, left: boxed(left), right: boxed(right) }
        }
        Expr::Collate { arg, collation } => {
            Expr::Collate { arg: boxed(arg), collation: *collation }
        }
    }
}

/// True if the expression calls a function that passes the test.
pub fn calls(expr: &Scalar, test: fn(Function) -> bool) -> bool {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        if let Expr::Call { function, .. } = expr
            && test(*function)
        {
            return true;
        }
        left.extend(children(expr));
    }
    false
}

/// True if the expression has another value each time.
pub fn is_volatile(expr: &Scalar) -> bool {
    calls(expr, Function::is_volatile)
}

/// True if the expression assigns a variable, or reads one that the statement assigns.
pub fn uses_variables(expr: &Scalar) -> bool {
    calls(expr, Function::is_variable)
}

/// True if the expression assigns a variable: it is computed even if nobody looks at its value.
pub fn assigns(expr: &Scalar) -> bool {
    calls(expr, |function| function == Function::SetVariable)
}

/// True if rows of a plan come with assignments, or depend on them.
pub fn rel_uses_variables(rel: &Rel) -> bool {
    rel.scalars().into_iter().any(uses_variables)
        || rel.inputs().into_iter().any(rel_uses_variables)
}

/// Nesting of a term that data nodes take: a program has room for more, as many terms stand together in one.
const TERM_DEPTH_MAX: usize = lats_base::limits::PROGRAM_DEPTH_MAX - 28;

/// True if data nodes cannot compute the expression: it calls a function that they do not have, or is nested too deep.
pub fn is_local(expr: &Scalar) -> bool {
    calls(expr, Function::is_local) || is_deeper(expr, TERM_DEPTH_MAX)
}

/// True if the expression is nested deeper than so many levels.
pub fn is_deeper(expr: &Scalar, most: usize) -> bool {
    let mut left = Vec::from([(expr, 1)]);
    while let Some((expr, level)) = left.pop() {
        if level > most {
            return true;
        }
        left.extend(children(expr).into_iter().map(|child| (child, level + 1)));
    }
    false
}

/// True if the rows of a plan are others each time.
pub fn makes_volatile(rel: &Rel) -> bool {
    rel.scalars().into_iter().any(is_volatile) || rel.inputs().into_iter().any(makes_volatile)
}

/// How many parts a scalar has; none if there are more than so many.
pub fn size_within(expr: &Scalar, most: usize) -> Option<usize> {
    let (mut left, mut count) = (Vec::from([expr]), 0);
    while let Some(expr) = left.pop() {
        count += 1;
        if count > most {
            return None;
        }
        left.extend(children(expr));
    }
    Some(count)
}

/// The terms of a condition that all must hold.
pub fn conjuncts(condition: Scalar) -> Vec<Scalar> {
    let mut found = Vec::new();
    let mut left = Vec::from([condition]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Binary { op: lats_values::BinaryOp::And, left: a, right: b } => {
                left.push(*b);
                left.push(*a);
            }
            other => found.push(other),
        }
    }
    found
}

/// One condition of terms that all must hold, as a balanced tree.
pub fn conjunction(mut terms: Vec<Scalar>) -> Option<Scalar> {
    while terms.len() > 1 {
        let mut pairs = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => Expr::Binary {
                    op: lats_values::BinaryOp::And,
                    left: Box::new(left),
                    right: Box::new(right),
                },
                None => left,
            });
        }
        terms = pairs;
    }
    terms.pop()
}

fn sort_scalars(keys: &[SortKey]) -> impl Iterator<Item = &Scalar> {
    keys.iter().map(|key| &key.value)
}

impl Rel {
    /// The expressions of this node alone.
    pub fn scalars(&self) -> Vec<&Scalar> {
        match self {
            Self::Scan(scan) => scan.condition.iter().collect(),
            Self::Values { rows, .. } => rows.iter().flatten().collect(),
            Self::Filter { condition, .. } => Vec::from([condition]),
            Self::Extend { items, .. } => items.iter().map(|(_, value)| value).collect(),
            Self::Join { on, .. } => on.iter().collect(),
            Self::Apply { on, when, .. } => on.iter().chain(when).collect(),
            Self::Aggregate { keys, calls, .. } => {
                keys.iter().chain(calls.iter().flat_map(|call| &call.args)).collect()
            }
            Self::Window { partition, order, calls, .. } => {
                let bounds = calls.iter().flat_map(|call| [&call.frame.start, &call.frame.end]);
                let bounds = bounds.flat_map(Bound::scalars);
                let args = calls.iter().flat_map(|call| &call.args);
                partition.iter().chain(sort_scalars(order)).chain(args).chain(bounds).collect()
            }
            Self::Sort { keys, .. } => sort_scalars(keys).collect(),
            Self::Limit { count, offset, .. } => count.iter().chain(offset).collect(),
            Self::Recursive { limit, .. } => limit.iter().collect(),
            Self::Narrow { .. }
            | Self::Distinct { .. }
            | Self::Set { .. }
            | Self::Working { .. }
            | Self::MaxOneRow { .. } => Vec::new(),
        }
    }

    /// The nodes below this one.
    pub fn inputs(&self) -> Vec<&Rel> {
        match self {
            Self::Scan(_) | Self::Values { .. } | Self::Working { .. } => Vec::new(),
            Self::Filter { input, .. }
            | Self::Extend { input, .. }
            | Self::Narrow { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Window { input, .. }
            | Self::Distinct { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::MaxOneRow { input } => Vec::from([&**input]),
            Self::Join { left, right, .. } | Self::Apply { left, right, .. } => {
                Vec::from([&**left, right])
            }
            Self::Set { left, right, .. } => Vec::from([&*left.0, &right.0]),
            Self::Recursive { anchor, step, .. } => Vec::from([&*anchor.0, &step.0]),
        }
    }

    /// The expressions of this node and of those below it.
    pub fn all_scalars(&self) -> Vec<&Scalar> {
        let mut found = self.scalars();
        for input in self.inputs() {
            found.extend(input.all_scalars());
        }
        found
    }

    /// Replaces each expression of this node and of those below it.
    #[must_use]
    pub fn map_scalars(self, change: &mut dyn FnMut(Scalar) -> Scalar) -> Self {
        let mut rel = self.map_inputs(&mut |input| input.map_scalars(change));
        rel.scalars_mut().into_iter().for_each(|scalar| {
            let before = core::mem::replace(scalar, Expr::Column(0));
            *scalar = change(before);
        });
        rel
    }

    /// The expressions of this node alone, to be changed.
    fn scalars_mut(&mut self) -> Vec<&mut Scalar> {
        match self {
            Self::Scan(scan) => scan.condition.iter_mut().collect(),
            Self::Values { rows, .. } => rows.iter_mut().flatten().collect(),
            Self::Filter { condition, .. } => Vec::from([condition]),
            Self::Extend { items, .. } => items.iter_mut().map(|(_, value)| value).collect(),
            Self::Join { on, .. } => on.iter_mut().collect(),
            Self::Apply { on, when, .. } => on.iter_mut().chain(when).collect(),
            Self::Aggregate { keys, calls, .. } => {
                keys.iter_mut().chain(calls.iter_mut().flat_map(|call| &mut call.args)).collect()
            }
            Self::Window { partition, order, calls, .. } => {
                let order = order.iter_mut().map(|key| &mut key.value);
                partition
                    .iter_mut()
                    .chain(order)
                    .chain(calls.iter_mut().flat_map(of_window))
                    .collect()
            }
            Self::Sort { keys, .. } => keys.iter_mut().map(|key| &mut key.value).collect(),
            Self::Limit { count, offset, .. } => count.iter_mut().chain(offset).collect(),
            Self::Recursive { limit, .. } => limit.iter_mut().collect(),
            Self::Narrow { .. }
            | Self::Distinct { .. }
            | Self::Set { .. }
            | Self::Working { .. }
            | Self::MaxOneRow { .. } => Vec::new(),
        }
    }

    /// Replaces each node below this one.
    #[must_use]
    pub fn map_inputs(self, change: &mut dyn FnMut(Rel) -> Rel) -> Self {
        let mut boxed = |rel: Box<Rel>| Box::new(change(*rel));
        match self {
            Self::Scan(_) | Self::Values { .. } | Self::Working { .. } => self,
            Self::Filter { input, condition } => Self::Filter { input: boxed(input), condition },
            Self::Extend { input, items } => Self::Extend { input: boxed(input), items },
            Self::Narrow { input, columns } => Self::Narrow { input: boxed(input), columns },
            Self::Aggregate { input, keys, rollup, calls } => {
                Self::Aggregate { input: boxed(input), keys, rollup, calls }
            }
            Self::Window { input, partition, order, calls } => {
                Self::Window { input: boxed(input), partition, order, calls }
            }
            Self::Distinct { input, columns } => Self::Distinct { input: boxed(input), columns },
            Self::Sort { input, keys } => Self::Sort { input: boxed(input), keys },
            Self::Limit { input, count, offset } => {
                Self::Limit { input: boxed(input), count, offset }
            }
            Self::MaxOneRow { input } => Self::MaxOneRow { input: boxed(input) },
            Self::Join { kind, left, right, on } => {
                Self::Join { kind, left: boxed(left), right: boxed(right), on }
            }
            Self::Apply { kind, left, right, on, when } => {
                Self::Apply { kind, left: boxed(left), right: boxed(right), on, when }
            }
            Self::Set { op, all, columns, left, right } => Self::Set {
                op,
                all,
                columns,
                left: (boxed(left.0), left.1),
                right: (boxed(right.0), right.1),
            },
            Self::Recursive { id, columns, anchor, step, distinct, limit } => Self::Recursive {
                id,
                columns,
                anchor: (boxed(anchor.0), anchor.1),
                step: (boxed(step.0), step.1),
                distinct,
                limit,
            },
        }
    }
}

fn of_window(call: &mut super::WindowCall) -> impl Iterator<Item = &mut Scalar> {
    let bounds = [&mut call.frame.start, &mut call.frame.end];
    let bounds = bounds.into_iter().flat_map(Bound::scalars_mut);
    call.args.iter_mut().chain(bounds)
}

/// The columns that a plan takes from around it: those that its expressions name and no node in it makes.
pub fn free_columns(rel: &Rel) -> BTreeSet<ColumnId> {
    let mut free = BTreeSet::new();
    add_free(rel, &mut free);
    free
}

fn add_free(rel: &Rel, free: &mut BTreeSet<ColumnId>) {
    let mut own = BTreeSet::new();
    for scalar in rel.scalars() {
        add_columns(scalar, &mut own);
    }
    for input in rel.inputs() {
        add_free(input, &mut own);
    }
    for column in made_below(rel) {
        own.remove(&column);
    }
    free.extend(own);
}

/// True if the plan makes this column, and no outer join or group without rows puts NULL in its place.
pub fn always_made(rel: &Rel, column: ColumnId) -> bool {
    match rel {
        Rel::Scan(scan) => scan.has(column),
        Rel::Join { kind: JoinKind::Left, left, .. }
        | Rel::Apply { kind: ApplyKind::Join(JoinKind::Left), left, .. } => {
            always_made(left, column)
        }
        Rel::Extend { input, items } => {
            items.iter().any(|(made, _)| *made == column) || always_made(input, column)
        }
        Rel::Aggregate { input, keys, calls, .. } => {
            calls.iter().any(|call| call.column == column)
                || (!keys.is_empty() && always_made(input, column))
        }
        Rel::Values { columns, .. }
        | Rel::Working { columns, .. }
        | Rel::Set { columns, .. }
        | Rel::Recursive { columns, .. } => columns.contains(&column),
        other => other.inputs().into_iter().any(|input| always_made(input, column)),
    }
}

/// The columns that a node's expressions, and the right side of an Apply, find in its inputs.
fn made_below(rel: &Rel) -> Vec<ColumnId> {
    match rel {
        Rel::Scan(scan) => (scan.first.0..scan.first.0 + scan.width).map(ColumnId).collect(),
        other => other.inputs().iter().flat_map(|input| input.columns()).collect(),
    }
}
