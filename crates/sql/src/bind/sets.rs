//! Set operations: parts of UNION, INTERSECT and EXCEPT, and the types that they have in common.

use super::Binder;
use super::collations::Strength;
use super::query::BoundQuery;
use crate::error;
use lats_base::planted::{QueryBug, errs};
use lats_engine::ir::{ColumnId, Rel, SetOp};
use lats_mysql_syntax::tree::{self, Body, BodyId, QueryId, SetQuantifier};
use lats_values::{ColumnType, Expr, SqlError, Value};

/// A part of a set operation.
struct Part {
    /// The operation before it says ALL. Without a meaning for the first part.
    all: bool,
    query: BoundQuery,
}

/// What a part belongs to.
#[derive(Clone, Copy)]
struct Whole {
    op: tree::SetOp,
    /// The outermost of the operations says ALL.
    all: bool,
    /// Blocks around it that are not seen.
    hidden: usize,
}

impl Binder<'_> {
    /// A set operation. Operations of one kind behind each other are one operation of many parts: columns have the type that
    /// holds the values of all of them, as in MySQL since 8.0.31.
    pub(super) fn set_body(
        &mut self,
        op: tree::SetOp,
        body: BodyId,
        hidden: usize,
    ) -> Result<BoundQuery, SqlError> {
        let all =
            matches!(self.tree().body(body), Body::Set { quantifier: SetQuantifier::All, .. });
        let whole = Whole { op, all, hidden };
        let mut parts = Vec::new();
        self.parts(whole, all, body, false, &mut parts)?;
        let op = match op {
            tree::SetOp::Union => SetOp::Union,
            tree::SetOp::Intersect => SetOp::Intersect,
            tree::SetOp::Except => SetOp::Except,
        };
        self.set_operation(op, parts)
    }

    /// Rows of all these queries, in their order.
    pub(super) fn beneath(&mut self, queries: Vec<BoundQuery>) -> Result<BoundQuery, SqlError> {
        let parts = queries.into_iter().map(|query| Part { all: true, query });
        self.set_operation(SetOp::Union, parts.collect())
    }

    /// Binds the parts that the body has. `all`: what the operation before it says.
    fn parts(
        &mut self,
        whole: Whole,
        all: bool,
        body: BodyId,
        is_right: bool,
        found: &mut Vec<Part>,
    ) -> Result<(), SqlError> {
        if let Some(query) = self.is_transparent(whole, is_right, body) {
            let inner = self.tree().query(query).body;
            self.refuse_options_of_result(inner)?;
            return self.deeper(whole, all, inner, is_right, found);
        }
        let Body::Set { quantifier, left, right, .. } = self.tree().body(body) else {
            return self.part(whole, all, body, found);
        };
        if !self.is_of(whole, is_right, body) {
            return self.part(whole, all, body, found);
        }
        let (own, left, right) = (*quantifier == SetQuantifier::All, *left, *right);
        self.deeper(whole, all, left, is_right, found)?;
        self.refuse_options_of_result(right)?;
        // EXCEPT keeps equal rows or not at each step; for the others it makes no difference where equal rows end.
        let own = if whole.op == tree::SetOp::Except { own } else { whole.all };
        self.deeper(whole, own, right, true, found)
    }

    fn deeper(
        &mut self,
        whole: Whole,
        all: bool,
        body: BodyId,
        is_right: bool,
        found: &mut Vec<Part>,
    ) -> Result<(), SqlError> {
        self.enter()?;
        let done = self.parts(whole, all, body, is_right, found);
        self.depth -= 1;
        done
    }

    fn part(
        &mut self,
        whole: Whole,
        all: bool,
        body: BodyId,
        found: &mut Vec<Part>,
    ) -> Result<(), SqlError> {
        let mut query = self.body(body, (&[], None), whole.hidden)?;
        // Without a LIMIT, the order of a part is no order of the whole.
        query.rel = unordered(query.rel);
        found.push(Part { all, query });
        Ok(())
    }

    /// True if the body is a set operation whose parts are parts of the whole.
    fn is_of(&self, whole: Whole, is_right: bool, body: BodyId) -> bool {
        let Body::Set { op, quantifier, .. } = self.tree().body(body) else {
            return false;
        };
        if *op != whole.op {
            return false;
        }
        match op {
            tree::SetOp::Except => !is_right,
            _ => !whole.all || *quantifier == SetQuantifier::All,
        }
    }

    /// The query of parentheses that say nothing: those around a set operation whose parts are parts of the whole. Its ORDER BY
    /// is not even looked at.
    fn is_transparent(&self, whole: Whole, is_right: bool, body: BodyId) -> Option<QueryId> {
        let Body::Nested(id) = self.tree().body(body) else {
            return None;
        };
        let query = self.tree().query(*id);
        let is_plain = query.with.is_none()
            && query.limit.is_none()
            && query.into.is_none()
            && query.locks.is_empty();
        let is_of = self.is_of(whole, is_right, query.body)
            || self.is_transparent(whole, is_right, query.body).is_some();
        (is_plain && is_of).then_some(*id)
    }

    /// All parts with the columns of the first; types are what all have in common.
    fn set_operation(&mut self, op: SetOp, mut parts: Vec<Part>) -> Result<BoundQuery, SqlError> {
        if op == SetOp::Union {
            // The rows of all parts are compared with each other, once.
            let last = parts.iter().rposition(|part| !part.all).unwrap_or_default();
            parts.iter_mut().take(last).for_each(|part| part.all = true);
        }
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| error::internal("a set operation has parts"))?;
        let parts: Vec<Part> = parts.collect();
        let mut outputs = first.query.outputs.clone();
        let mut steps = Vec::with_capacity(parts.len());
        for part in &parts {
            outputs = self.in_common(&outputs, &part.query.outputs)?;
            steps.push(outputs.clone());
        }
        let columns: Vec<ColumnId> = outputs.iter().map(|(column, _)| *column).collect();
        for ((column, _), last) in steps.iter().flat_map(|step| step.iter().zip(&columns)) {
            self.types[column.0 as usize] = self.types[last.0 as usize].clone();
        }
        let mut bound = self.converted(first.query, &columns);
        for (part, outputs) in parts.into_iter().zip(steps) {
            let right = self.converted(part.query, &columns);
            let (of_left, of_right) = (bound.columns(), right.columns());
            let columns = outputs.iter().map(|(column, _)| *column).collect();
            let left = (Box::new(bound.rel), of_left);
            let right = (Box::new(right.rel), of_right);
            let rel = Rel::Set { op, all: part.all, columns, left, right };
            bound = BoundQuery { rel, outputs, select: None };
        }
        Ok(bound)
    }

    /// Columns that hold the values of both, with the names of the first.
    fn in_common(
        &mut self,
        left: &[(ColumnId, String)],
        right: &[(ColumnId, String)],
    ) -> Result<Vec<(ColumnId, String)>, SqlError> {
        if left.len() != right.len() {
            return Err(different_columns());
        }
        let mut outputs = Vec::with_capacity(left.len());
        for ((a, name), (b, _)) in left.iter().zip(right) {
            let column_type = self.common_type(*a, *b);
            let (a_scalar, b_scalar) = (a.scalar(), b.scalar());
            if self.check_mix("UNION", &[&a_scalar, &b_scalar]).is_err() {
                let text = "Illegal mix of collations for operation 'UNION'";
                return Err(error::make(1271, "HY000", text));
            }
            let strength = self.strength_of(&a_scalar).min(self.strength_of(&b_scalar));
            let column = self.column(name, column_type, None);
            self.set_strength(column, strength.max(Strength::Implicit));
            if [a, b].into_iter().all(|side| self.constant_texts.contains(side)) {
                self.constant_texts.insert(column);
            }
            outputs.push((column, name.clone()));
        }
        Ok(outputs)
    }

    fn common_type(&self, a: ColumnId, b: ColumnId) -> ColumnType {
        let (x, y) = (&self.types[a.0 as usize], &self.types[b.0 as usize]);
        let nullable = x.nullable || y.nullable;
        if errs(QueryBug::UnionOfFirstType) {
            return ColumnType { nullable, ..x.clone() };
        }
        if x.kind == y.kind && x.unsigned == y.unsigned && x.collation == y.collation {
            return ColumnType { nullable, ..x.clone() };
        }
        let one = Expr::Case {
            operand: None,
            branches: vec![(Expr::Literal(Value::Int(1)), a.scalar())],
            otherwise: Some(Box::new(b.scalar())),
        };
        let mut found = ColumnType { nullable, ..self.type_of(&one) };
        if found.kind.is_text()
            && let Some(collation) = self.of_results([a.scalar(), b.scalar()].iter())
        {
            found.collation = collation;
        }
        let is_weak = |side: ColumnId| self.constant_texts.contains(&side);
        if found.kind.is_text() && is_weak(a) != is_weak(b) {
            let strong = if is_weak(a) { y } else { x };
            if strong.kind.is_text() {
                found.collation = strong.collation;
            }
        }
        found
    }

    /// The query with values of the types of these columns.
    pub(super) fn converted(&mut self, query: BoundQuery, to: &[ColumnId]) -> BoundQuery {
        let mut items = Vec::new();
        let mut outputs = Vec::with_capacity(query.outputs.len());
        for ((from, name), to) in query.outputs.into_iter().zip(to) {
            let common = self.types[to.0 as usize].clone();
            if self.quotients.contains(&from) && common.kind.is_number() {
                // It is rounded once, to the digits of both.
                self.types[from.0 as usize] = common;
            }
            let (x, y) = (&self.types[from.0 as usize], self.types[to.0 as usize].clone());
            if x.kind == y.kind && x.unsigned == y.unsigned && x.collation == y.collation {
                outputs.push((from, name));
                continue;
            }
            let to = y;
            let column = self.column(&name, to, None);
            items.push((column, from.scalar()));
            outputs.push((column, name));
        }
        let rel = match items.is_empty() {
            true => query.rel,
            false => Rel::Extend { input: Box::new(query.rel), items },
        };
        BoundQuery { rel, outputs, select: None }
    }
}

/// The rows in any order.
fn unordered(rel: Rel) -> Rel {
    match rel {
        Rel::Sort { input, .. } => *input,
        Rel::Narrow { input, columns } => {
            Rel::Narrow { input: Box::new(unordered(*input)), columns }
        }
        other => other,
    }
}

/// 1222.
pub(super) fn different_columns() -> SqlError {
    let text = "The used SELECT statements have a different number of columns";
    error::make(1222, "21000", text)
}
