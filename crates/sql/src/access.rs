//! Which index a WHERE condition is answered by, and which ranges of it.
//!
//! The choice of the index is made once, when a statement is planned, from the shape of its
//! condition. The ranges are computed when it runs, from its values. A value that does not order
//! like the column (text against a number, say) makes the index useless for that run: the whole
//! table is scanned with the whole condition as its filter.

mod bounds;

use crate::bind::from::Hint;
use crate::table::Table;
use lats_base::IndexId;
use lats_client::api::{KeyRange, PRIMARY_INDEX};
use lats_mysql_syntax::tree::IndexHintKind;
use lats_values::{BinaryOp, Expr, SqlError, Value, name_comparators};

pub use bounds::{ByteRange, Ranges};

/// More ranges than this are not worth computing; fewer index columns are used instead.
const RANGES_MAX: usize = 16_384;

/// What a condition says about one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// It equals one of these.
    Points(Vec<Expr>),
    /// It lies between these; a bound has a flag for "or equal".
    Range {
        /// From here.
        lower: Option<(Expr, bool)>,
        /// To here.
        upper: Option<(Expr, bool)>,
    },
    /// It is NULL.
    Null,
    /// All of these hold.
    All(Vec<Constraint>),
    /// One of these holds.
    Any(Vec<Constraint>),
}

/// How rows are found.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The index.
    pub index: IndexId,
    /// Its leading columns that the condition constrains.
    pub columns: Vec<(u16, Constraint)>,
    /// All columns of the primary key equal given values.
    pub is_key_lookup: bool,
    /// All columns of the index, which is unique, equal given values.
    pub is_unique_lookup: bool,
    /// What is left of the condition when the ranges say exactly what the constraints say.
    pub residual: Option<Expr>,
    /// The whole condition.
    pub filter: Option<Expr>,
    /// Leading columns that equal a single value each, so that they do not matter for the order.
    pub fixed: usize,
}

/// The rows to read in one run of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// These keys.
    Keys(Vec<Vec<u8>>),
    /// The rows with these keys of the unique index.
    UniqueKeys(Vec<Vec<u8>>),
    /// These ranges.
    Ranges(Vec<KeyRange>),
}

/// The values that a condition takes from outside its table.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// Values from outside the statement's rows, then those of another row.
    pub values: &'a [Value],
    /// How many are from outside the rows.
    pub constants: usize,
}

impl<'a> Outside<'a> {
    /// Without another row.
    pub fn constants(values: &'a [Value]) -> Self {
        Self { values, constants: values.len() }
    }

    /// True if the column with this number is no value of another row.
    fn is_constant(&self, number: u32) -> bool {
        let at = number.checked_sub(crate::expr::EXTERNAL_BASE);
        at.is_some_and(|at| (at as usize) < self.constants)
    }
}

/// What one run of a statement reads.
pub struct Resolved<'a> {
    /// The rows to read.
    pub target: Target,
    /// The condition to check on them.
    pub filter: Option<&'a Expr>,
    /// The ranges say exactly what the constraints say, so that the columns that were planned to
    /// be fixed are, and the index gives the order that was planned.
    pub exact: bool,
}

impl Access {
    /// Chooses the index for a condition.
    pub fn choose(table: &Table, filter: Option<Expr>) -> Self {
        Self::choose_with(table, filter, None)
    }

    /// The same; of indexes that do not fix the row, the one with these columns is taken if it is of use.
    pub fn choose_with(table: &Table, filter: Option<Expr>, preferred: Option<&[u16]>) -> Self {
        let conjuncts = filter.as_ref().map(conjuncts).unwrap_or_default();
        let constraints: Vec<Option<(u16, Constraint)>> =
            conjuncts.iter().map(|c| constraint(c)).collect();
        let mut best = Vec::new();
        let (mut best_index, mut best_score) = (PRIMARY_INDEX, (0, 0));
        for (index, columns) in indexes(table) {
            let used = leading(&columns, &constraints);
            let points = used.iter().take_while(|(_, c)| is_points(c)).count();
            let score = match points == columns.len() {
                true if index == PRIMARY_INDEX => (PRIMARY_SCORE, used.len()),
                true if is_readable_unique(table, index) => (UNIQUE_SCORE, used.len()),
                _ if points > 0 && preferred == Some(&columns) => (PREFERRED_SCORE, used.len()),
                _ => (points, used.len()),
            };
            if score > best_score {
                (best, best_index, best_score) = (used, index, score);
            }
        }
        let used: Vec<u16> = best.iter().map(|(column, _)| *column).collect();
        let left: Vec<Expr> = conjuncts
            .iter()
            .zip(&constraints)
            .filter(|(_, c)| !matches!(c, Some((column, _)) if used.contains(column)))
            .map(|(conjunct, _)| (*conjunct).clone())
            .collect();
        let fixed = best.iter().take_while(|(_, c)| is_single(c)).count();
        Self {
            index: best_index,
            is_key_lookup: best_score.0 == PRIMARY_SCORE,
            is_unique_lookup: best_score.0 == UNIQUE_SCORE,
            columns: best,
            residual: crate::bind::balanced(left, BinaryOp::And),
            filter,
            fixed,
        }
    }

    /// Names how the comparisons compare that data nodes are to check. The first `constants` values from outside are constants, the
    /// others are values of other rows.
    #[must_use]
    pub fn with_comparators(mut self, table: &Table, constants: u32) -> Self {
        let is_constant = |number: u32| {
            number.checked_sub(crate::expr::EXTERNAL_BASE).is_some_and(|at| at < constants)
        };
        for condition in self.residual.iter_mut().chain(&mut self.filter) {
            name_comparators(condition, &table.types, &is_constant);
        }
        self
    }

    /// Leaves out indexes that the statement says not to use.
    pub fn obey(&mut self, table: &Table, hints: &[Hint]) {
        if refuses(hints, table, self.index) && !self.is_key_lookup {
            let filter = self.filter.take();
            *self = Self {
                index: PRIMARY_INDEX,
                columns: Vec::new(),
                is_key_lookup: false,
                is_unique_lookup: false,
                residual: filter.clone(),
                filter,
                fixed: 0,
            };
        }
    }

    /// The indexes of which the condition says something about the first column.
    pub fn possible(&self, table: &Table) -> Vec<IndexId> {
        let terms = self.filter.as_ref().map(conjuncts).unwrap_or_default();
        let said: Vec<u16> =
            terms.iter().filter_map(|term| constraint(term)).map(|c| c.0).collect();
        let is_led = |(_, columns): &(IndexId, Vec<u16>)| {
            columns.first().is_some_and(|first| said.contains(first))
        };
        let mut found: Vec<IndexId> = indexes(table).filter(is_led).map(|(id, _)| id).collect();
        // The primary key first, then unique indexes.
        found.sort_by_key(|id| (*id != PRIMARY_INDEX, !is_readable_unique(table, *id)));
        found
    }

    /// True if scanning in the index's order gives the rows in this order.
    pub fn gives_order(&self, table: &Table, order: &[(u16, bool)]) -> bool {
        let Some((_, descending)) = order.first() else { return true };
        if order.iter().any(|(_, other)| other != descending) {
            return false;
        }
        let Some((_, mut columns)) = indexes(table).find(|(id, _)| *id == self.index) else {
            return false;
        };
        if self.index != PRIMARY_INDEX {
            columns.extend(&table.def.primary_key);
        }
        let fixed: Vec<u16> = columns.iter().take(self.fixed).copied().collect();
        let mut rest = columns.into_iter().skip(self.fixed);
        order
            .iter()
            .filter(|(column, _)| !fixed.contains(column))
            .all(|(column, _)| rest.next() == Some(*column))
    }

    /// For a condition that constrains no index: an index that gives this order, if there is one.
    pub fn order_by_index(&mut self, table: &Table, order: &[(u16, bool)]) {
        if !self.columns.is_empty() {
            return;
        }
        for (index, _) in indexes(table) {
            let candidate = Self { index, ..self.clone() };
            if candidate.gives_order(table, order) {
                *self = candidate;
                return;
            }
        }
    }

    /// The rows to read, and the condition to check on them.
    ///
    /// # Errors
    /// What computing the values gives.
    pub fn resolve(&self, table: &Table, outside: Outside<'_>) -> Result<Resolved<'_>, SqlError> {
        if self.is_key_lookup
            && let Some(key) = self.one_key(table, outside)?
        {
            let (target, filter) = (Target::Keys(vec![key]), self.residual.as_ref());
            return Ok(Resolved { target, filter, exact: true });
        }
        let mut prefixes = vec![Vec::new()];
        let mut exact = true;
        let mut ranges: Option<Vec<KeyRange>> = None;
        for (column, constraint) in &self.columns {
            let found = bounds::ranges(table, *column, constraint, outside)?;
            let Some(found) = found else {
                exact = false;
                break;
            };
            // Points of a primary key of one column are read by key, in as many requests as it takes.
            let by_key =
                found.points && self.index == PRIMARY_INDEX && table.def.primary_key.len() == 1;
            if !by_key && prefixes.len().saturating_mul(found.list.len()) > RANGES_MAX {
                exact = false;
                break;
            }
            if !found.points {
                ranges = Some(bounds::combine(&prefixes, &found.list));
                break;
            }
            prefixes = bounds::extend(&prefixes, found.list);
        }
        // Constraints after the first range, or after one that could not be used, are not in the
        // ranges: only a plan that used all of its columns may leave them out of the filter.
        let filter = if exact { self.residual.as_ref() } else { self.filter.as_ref() };
        if ranges.is_none() && exact && (self.is_key_lookup || self.is_unique_lookup) {
            prefixes.sort_unstable();
            prefixes.dedup();
            let target = match self.is_key_lookup {
                true => Target::Keys(prefixes),
                false => Target::UniqueKeys(prefixes),
            };
            return Ok(Resolved { target, filter, exact });
        }
        let ranges = ranges.unwrap_or_else(|| bounds::prefix_ranges(&prefixes));
        Ok(Resolved { target: Target::Ranges(bounds::merge(ranges)), filter, exact })
    }
}

impl Access {
    /// The one key that the condition allows, if each column has one value and all of them are values of the columns: the
    /// usual case, which needs no lists.
    fn one_key(&self, table: &Table, outside: Outside<'_>) -> Result<Option<Vec<u8>>, SqlError> {
        let mut key = Vec::with_capacity(bounds::POINT_BYTES * self.columns.len());
        for (column, constraint) in &self.columns {
            let Constraint::Points(values) = constraint else { return Ok(None) };
            let [value] = values.as_slice() else { return Ok(None) };
            if !bounds::point(table, *column, value, outside, &mut key)? {
                return Ok(None);
            }
        }
        Ok(Some(key))
    }
}

/// True if the statement says not to use an index.
pub fn refuses(hints: &[Hint], table: &Table, index: IndexId) -> bool {
    let name = match index {
        PRIMARY_INDEX => "PRIMARY",
        index => table.def.index(index).map_or("", |index| &index.name),
    };
    let named = |hint: &Hint| hint.indexes.iter().any(|i| i.eq_ignore_ascii_case(name));
    let uses = |hint: &&Hint| hint.kind != IndexHintKind::Ignore;
    hints.iter().any(|h| h.kind == IndexHintKind::Ignore && named(h))
        || (hints.iter().any(|h| uses(&h)) && !hints.iter().filter(uses).any(named))
}

/// Indexes by how many columns they fix; these fix the row.
const PRIMARY_SCORE: usize = usize::MAX;
const UNIQUE_SCORE: usize = usize::MAX - 1;
const PREFERRED_SCORE: usize = usize::MAX - 2;

fn is_readable_unique(table: &Table, index: IndexId) -> bool {
    let unique = table.def.index(index).and_then(|i| i.unique);
    unique.is_some_and(|u| u.builder.is_none())
}

/// The ranges that hold what has these keys.
pub fn key_ranges(keys: &[Vec<u8>]) -> Vec<KeyRange> {
    let range =
        |key: &Vec<u8>| KeyRange { lower: key.clone(), upper: lats_values::next_prefix(key) };
    keys.iter().map(range).collect()
}

/// The table's indexes with their columns; the primary key's first.
pub fn indexes(table: &Table) -> impl Iterator<Item = (IndexId, Vec<u16>)> + '_ {
    let secondary = table.def.indexes.iter().map(|i| (i.id, i.columns.clone()));
    std::iter::once((PRIMARY_INDEX, table.def.primary_key.clone())).chain(secondary)
}

/// The constraints on the leading columns of an index: points, then at most one of another kind.
fn leading(columns: &[u16], constraints: &[Option<(u16, Constraint)>]) -> Vec<(u16, Constraint)> {
    let mut used = Vec::new();
    for column in columns {
        let mut own: Vec<Constraint> = constraints
            .iter()
            .flatten()
            .filter(|(of, _)| of == column)
            .map(|(_, constraint)| constraint.clone())
            .collect();
        let constraint = match own.len() {
            0 => break,
            1 => own.remove(0),
            _ => Constraint::All(own),
        };
        let points = is_points(&constraint);
        used.push((*column, constraint));
        if !points {
            break;
        }
    }
    used
}

fn is_points(constraint: &Constraint) -> bool {
    matches!(constraint, Constraint::Points(_))
}

fn is_single(constraint: &Constraint) -> bool {
    matches!(constraint, Constraint::Points(list) if list.len() == 1)
}

/// The terms of an AND.
pub fn conjuncts(filter: &Expr) -> Vec<&Expr> {
    match filter {
        Expr::Binary { op: BinaryOp::And, left, right } => {
            let mut all = conjuncts(left);
            all.extend(conjuncts(right));
            all
        }
        other => vec![other],
    }
}

fn is_value(expr: &Expr) -> bool {
    crate::expr::is_constant(expr) && !has_collate(expr)
}

/// An explicit collation decides how a comparison is made, so that the column's index is no help.
fn has_collate(expr: &Expr) -> bool {
    matches!(expr, Expr::Collate { .. }) || crate::expr::children(expr).into_iter().any(has_collate)
}

fn constraint(expr: &Expr) -> Option<(u16, Constraint)> {
    match expr {
        Expr::Binary { op: BinaryOp::Or, left, right } => {
            let (column, left) = constraint(left)?;
            let (other, right) = constraint(right)?;
            (column == other).then(|| (column, either(left, right)))
        }
        Expr::Binary { op, left, right } | Expr::Compare { op, left, right, .. } => {
            match (column_of(left), column_of(right)) {
                (Some(column), _) if is_value(right) => Some((column, comparison(*op, right)?)),
                (_, Some(column)) if is_value(left) => {
                    Some((column, comparison(flipped(*op), left)?))
                }
                _ => None,
            }
        }
        Expr::Between { arg, low, high, negated: false } if is_value(low) && is_value(high) => {
            let lower = Some(((**low).clone(), true));
            let upper = Some(((**high).clone(), true));
            Some((column_of(arg)?, Constraint::Range { lower, upper }))
        }
        Expr::In { arg, list, negated: false } if list.iter().all(is_value) => {
            Some((column_of(arg)?, Constraint::Points(list.to_vec())))
        }
        Expr::IsNull { arg, negated: false } => Some((column_of(arg)?, Constraint::Null)),
        _ => None,
    }
}

/// The column of the table that the expression is.
fn column_of(expr: &Expr) -> Option<u16> {
    match expr {
        Expr::Column(number) if *number < crate::expr::AGGREGATE_BASE => {
            u16::try_from(*number).ok()
        }
        _ => None,
    }
}

fn either(left: Constraint, right: Constraint) -> Constraint {
    match (left, right) {
        (Constraint::Points(mut a), Constraint::Points(b)) => {
            a.extend(b);
            Constraint::Points(a)
        }
        (Constraint::Any(mut a), b) => {
            a.push(b);
            Constraint::Any(a)
        }
        (a, b) => Constraint::Any(vec![a, b]),
    }
}

fn comparison(op: BinaryOp, value: &Expr) -> Option<Constraint> {
    let bound = |inclusive| Some((value.clone(), inclusive));
    Some(match op {
        BinaryOp::Equal => Constraint::Points(vec![value.clone()]),
        BinaryOp::Less => Constraint::Range { lower: None, upper: bound(false) },
        BinaryOp::LessOrEqual => Constraint::Range { lower: None, upper: bound(true) },
        BinaryOp::Greater => Constraint::Range { lower: bound(false), upper: None },
        BinaryOp::GreaterOrEqual => Constraint::Range { lower: bound(true), upper: None },
        _ => return None,
    })
}

fn flipped(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        other => other,
    }
}
