//! Set operations: parts of UNION, INTERSECT and EXCEPT, and the types that they have in common.

use super::Binder;
use super::collations::Strength;
use super::query::BoundQuery;
use crate::error;
use lats_base::planted::{QueryBug, errs};
use lats_engine::ir::{ColumnId, Rel, SetOp};
use lats_mysql_syntax::tree::{self, Body, BodyId, SetQuantifier};
use lats_values::{ColumnType, Expr, SqlError, Value};

/// A part of a set operation.
struct Part {
    /// The operation before it says ALL. Without a meaning for the first part.
    all: bool,
    query: BoundQuery,
}

/// Where in a set operation a body stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    op: tree::SetOp,
    /// The operation that the body is an operand of says ALL.
    within_all: bool,
    /// It is the right operand.
    is_right: bool,
    /// UNION ALL sends rows as they come: what is beside it in UNION DISTINCT is a table of its own.
    streams: bool,
    /// What the operation before this body says, read from left to right.
    all: bool,
    /// It is within the right operand of an operation that says DISTINCT.
    in_distinct: bool,
    /// Blocks around all of it that are not seen.
    hidden: usize,
}

impl Place {
    /// That of the whole operation.
    pub(super) fn whole(op: tree::SetOp, streams: bool, hidden: usize) -> Self {
        let (within_all, is_right, all, in_distinct) = (false, false, false, false);
        Self { op, within_all, is_right, streams, all, in_distinct, hidden }
    }

    fn left(self, is_all: bool) -> Self {
        let streams = self.streams && is_all && self.op == tree::SetOp::Union;
        Self { within_all: is_all, is_right: false, streams, ..self }
    }

    fn right(self, is_all: bool) -> Self {
        let all = is_all && !self.in_distinct;
        Self { is_right: true, all, in_distinct: !all, ..self.left(is_all) }
    }
}

/// What a body within a set operation is to the whole.
enum Inner {
    /// A part of it.
    Part,
    /// An operation whose parts are parts of the whole.
    Operation { is_all: bool, left: BodyId, right: BodyId },
    /// Parentheses around such an operation that say nothing. Their ORDER BY is not even looked at.
    Parentheses(BodyId),
}

impl Binder<'_> {
    /// A set operation. Operations of one kind behind each other are one operation of many parts: columns have the type that
    /// holds the values of all of them, as in MySQL since 8.0.31.
    pub(super) fn set_body(&mut self, place: Place, body: BodyId) -> Result<BoundQuery, SqlError> {
        let mut parts = Vec::new();
        self.parts(place, body, &mut parts)?;
        let op = match place.op {
            tree::SetOp::Union => SetOp::Union,
            tree::SetOp::Intersect => SetOp::Intersect,
            tree::SetOp::Except => SetOp::Except,
        };
        self.set_operation(op, parts)
    }

    /// Rows of all these queries, in their order.
    pub(super) fn beneath(&mut self, queries: Vec<BoundQuery>) -> Result<BoundQuery, SqlError> {
        let mut parts = Vec::with_capacity(queries.len());
        for query in queries {
            add(&mut parts, Part { all: true, query })?;
        }
        self.set_operation(SetOp::Union, parts)
    }

    /// Binds the parts that the body has.
    fn parts(&mut self, place: Place, body: BodyId, found: &mut Vec<Part>) -> Result<(), SqlError> {
        self.enter()?;
        let done = match self.inner(place, body) {
            Inner::Parentheses(inner) => self.parts(place, inner, found),
            Inner::Operation { is_all, left, right } => self
                .parts(place.left(is_all), left, found)
                .and_then(|()| self.refuse_options_of_result(right))
                .and_then(|()| self.parts(place.right(is_all), right, found)),
            Inner::Part => self.part(place, body, found),
        };
        self.depth -= 1;
        done
    }

    fn part(&mut self, place: Place, body: BodyId, found: &mut Vec<Part>) -> Result<(), SqlError> {
        self.streams = place.streams;
        let mut query = self.body(body, (&[], None), place.hidden)?;
        // Without a LIMIT, the order of a part is no order of the whole.
        query.rel = unordered(query.rel);
        add(found, Part { all: place.all, query })
    }

    /// What the body is to the whole.
    fn inner(&self, place: Place, body: BodyId) -> Inner {
        match self.tree().body(body) {
            Body::Set { op, quantifier, left, right } if *op == place.op => {
                let is_all = *quantifier == SetQuantifier::All;
                let is_distinct = || self.is_distinct(place, body);
                let belongs = match op {
                    tree::SetOp::Except => !place.is_right,
                    _ if !place.within_all => true,
                    tree::SetOp::Union if place.is_right => !is_distinct(),
                    tree::SetOp::Union => is_all || !place.streams,
                    // INTERSECT ALL has two operands.
                    tree::SetOp::Intersect => is_distinct(),
                };
                match belongs {
                    true => Inner::Operation { is_all, left: *left, right: *right },
                    false => Inner::Part,
                }
            }
            Body::Nested(id) => {
                let query = self.tree().query(*id);
                let is_plain = query.with.is_none()
                    && query.limit.is_none()
                    && query.into.is_none()
                    && query.locks.is_empty();
                match is_plain && !matches!(self.inner(place, query.body), Inner::Part) {
                    true => Inner::Parentheses(query.body),
                    false => Inner::Part,
                }
            }
            _ => Inner::Part,
        }
    }

    /// True if the operation, or one whose parts are its parts, says DISTINCT. What is nested too deeply is refused anyway.
    fn is_distinct(&self, place: Place, mut body: BodyId) -> bool {
        let place = Place { within_all: false, is_right: false, ..place };
        for _ in 0..super::DEPTH_MAX {
            body = match self.inner(place, body) {
                Inner::Part => return false,
                Inner::Parentheses(inner) => inner,
                Inner::Operation { is_all: false, .. } => return true,
                Inner::Operation { left, right, .. } => match place.op {
                    // UNION DISTINCT on the right of ALL is a part, and so it is on the left if rows are sent as they come.
                    tree::SetOp::Union if place.streams => return false,
                    tree::SetOp::Union => left,
                    _ if self.is_distinct(place, right) => return true,
                    _ => left,
                },
            };
        }
        false
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

/// One more part; all have as many columns.
fn add(parts: &mut Vec<Part>, part: Part) -> Result<(), SqlError> {
    let width = part.query.outputs.len();
    if parts.first().is_some_and(|first| first.query.outputs.len() != width) {
        return Err(different_columns());
    }
    parts.push(part);
    Ok(())
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
