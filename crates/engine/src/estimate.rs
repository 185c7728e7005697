//! How many rows a plan gives, and what it costs. Nothing here is exact, and plans are right whatever it says.

use crate::cost::{self, Lookup};
use crate::ir::{ApplyKind, ColumnId, JoinKind, Rel, Scalar, Scan, SourceId, walk};
use crate::physical::Touched;
use crate::reach::{Kinds, Reach, fixes, reach};
use crate::rewrite::{Context, JoinOrder};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::RefCell;
use lats_values::{BinaryOp, Expr, Value};

/// What is known about tables' rows.
pub trait Statistics {
    /// Rows of a table; none if nothing is known.
    fn rows(&self, source: SourceId) -> Option<f64>;

    /// Fragments of a table.
    fn fragments(&self, source: SourceId) -> f64;

    /// Which part of a table's rows these terms hold for. They name no columns but the table's.
    fn share(&self, scan: &Scan, terms: &[&Scalar]) -> f64;

    /// Which part of a table's rows is looked at to find those for which these terms hold.
    fn looked_at(&self, scan: &Scan, terms: &[&Scalar]) -> f64;

    /// How many different values these columns of a table have together.
    fn distinct(&self, scan: &Scan, columns: &[ColumnId]) -> Option<f64>;
}

/// Nothing is known.
pub struct Unknown;

impl Statistics for Unknown {
    fn rows(&self, _: SourceId) -> Option<f64> {
        None
    }

    fn fragments(&self, _: SourceId) -> f64 {
        1.0
    }

    fn share(&self, _: &Scan, terms: &[&Scalar]) -> f64 {
        terms.iter().map(|term| usual_share(term)).product()
    }

    fn looked_at(&self, _: &Scan, _: &[&Scalar]) -> f64 {
        1.0
    }

    fn distinct(&self, _: &Scan, _: &[ColumnId]) -> Option<f64> {
        None
    }
}

/// Rows of a table of which nothing is known.
const ROWS: f64 = 1_000.0;
/// Rows that a value of a column has if nothing is known.
const ROWS_FOR_EACH: f64 = 10.0;
/// A join by lookups does not turn to keeping more rows than this.
const KEPT_ROWS_MAX: f64 = 200_000.0;
/// So many lookups are tried before.
const LOOKUPS_MIN: f64 = 1_024.0;
/// Rows of a step of a recursion.
const WORKING_ROWS: f64 = 100.0;

/// Which part of rows a term holds for if nothing is known about it.
pub fn usual_share(term: &Scalar) -> f64 {
    match term {
        Expr::Binary { op: BinaryOp::Equal | BinaryOp::NullSafeEqual, .. } => 0.1,
        Expr::Binary { op: BinaryOp::NotEqual, .. } => 0.9,
        Expr::Binary { op: BinaryOp::Or, left, right } => {
            (usual_share(left) + usual_share(right)).min(1.0)
        }
        Expr::Binary { op: BinaryOp::And, left, right } => usual_share(left) * usual_share(right),
        Expr::In { list, negated: false, .. } => (0.05 * list.len() as f64).min(0.5),
        Expr::Like { negated: false, .. } | Expr::IsNull { negated: false, .. } => 0.1,
        Expr::Between { negated: false, .. } => 0.2,
        Expr::IsNull { .. } | Expr::Like { .. } | Expr::In { .. } => 0.9,
        _ => 0.33,
    }
}

/// Rows of a plan, and what it costs to get them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// The rows.
    pub rows: f64,
    /// The cost.
    pub cost: f64,
}

/// A join's rows, and what each way of it costs.
#[derive(Clone, Debug)]
pub struct Ways {
    /// Rows of the result.
    pub rows: f64,
    /// The right side is asked for with values of the left one.
    pub lookup: Option<(Reach, f64)>,
    /// The right side is kept.
    pub keep_right: f64,
    /// The left side is kept; only of inner joins.
    pub keep_left: f64,
}

impl Ways {
    /// The least cost.
    pub fn cost(&self) -> f64 {
        let lookup = self.lookup.as_ref().map_or(f64::INFINITY, |(_, cost)| *cost);
        self.keep_right.min(self.keep_left).min(lookup)
    }

    /// The index by which the right side is asked for, if that is the best way. Where it is nearly as good it is taken too:
    /// it costs little if there are fewer rows than was thought.
    pub fn looks_up(&self) -> Option<&Reach> {
        let (reach, cost) = self.lookup.as_ref()?;
        let other = self.keep_right.min(self.keep_left);
        let (factor, margin) = if reach.is_key { (1.25, 30.0) } else { (1.0, 0.0) };
        (*cost <= other * factor + margin).then_some(reach)
    }
}

/// Estimates for the plans of one statement.
pub struct Estimates<'a> {
    context: Context<'a>,
    scans: Vec<Scan>,
    sizes: RefCell<BTreeMap<SourceId, Size>>,
    shares: RefCell<BTreeMap<SourceId, f64>>,
}

impl<'a> Estimates<'a> {
    /// For parts of this plan.
    pub fn new(rel: &Rel, context: Context<'a>) -> Self {
        let mut scans = Vec::new();
        add_scans(rel, &mut scans);
        let (sizes, shares) = (RefCell::default(), RefCell::default());
        Self { context, scans, sizes, shares }
    }

    /// What the statement says about the order of joins.
    pub fn order(&self) -> &'a JoinOrder {
        self.context.order
    }

    fn kinds(&self) -> Kinds<'a> {
        Kinds { types: self.context.types, externals: self.context.externals }
    }

    /// Rows and cost of a plan. Columns that it takes from around it have one value each.
    pub fn size(&self, rel: &Rel) -> Size {
        let below: Vec<Size> = rel.inputs().into_iter().map(|input| self.size(input)).collect();
        self.size_above(rel, &below)
    }

    /// The same where the sizes of what is right below are known.
    pub fn size_above(&self, rel: &Rel, below: &[Size]) -> Size {
        let Size { rows, cost } = below.first().copied().unwrap_or_default();
        let second = below.get(1).copied().unwrap_or_default();
        match rel {
            Rel::Scan(scan) => self.scan_once(scan),
            Rel::Values { rows, .. } => Size { rows: rows.len() as f64, cost: 1.0 },
            Rel::Working { .. } => Size { rows: WORKING_ROWS, cost: WORKING_ROWS * cost::PASS },
            Rel::Join { kind, right, on, .. } => {
                let on: Vec<Scalar> = on.clone().map(walk::conjuncts).unwrap_or_default();
                let on: Vec<&Scalar> = on.iter().collect();
                let ways = self.join(*kind, (Size { rows, cost }, second), right, &on);
                Size { rows: ways.rows, cost: ways.cost() }
            }
            Rel::Apply { kind, right, .. } => {
                self.apply(kind, (Size { rows, cost }, second), right)
            }
            Rel::Filter { condition, .. } => {
                let terms = walk::conjuncts(condition.clone());
                let share: f64 = terms.iter().map(usual_share).product();
                Size { rows: rows * share, cost: cost + rows * cost::PASS }
            }
            Rel::Aggregate { keys, .. } => {
                let columns: Vec<ColumnId> = keys.iter().filter_map(column_of).collect();
                let groups = match (keys.is_empty(), columns.len() == keys.len()) {
                    (true, _) => 1.0,
                    (false, true) => self.distinct(&columns).unwrap_or(rows * 0.3).min(rows),
                    (false, false) => rows * 0.1,
                };
                Size { rows: groups.max(1.0), cost: cost + rows * cost::PASS * 2.0 }
            }
            Rel::Distinct { columns, .. } => {
                let groups = self.distinct(columns).unwrap_or(rows * 0.5).min(rows);
                Size { rows: groups, cost: cost + rows * cost::PASS * 2.0 }
            }
            Rel::Limit { count, .. } => Size { rows: rows.min(most_of(count.as_ref())), cost },
            Rel::MaxOneRow { .. } => Size { rows: 1.0, cost },
            Rel::Narrow { .. } => Size { rows, cost },
            _ => below.iter().fold(Size::default(), |all, one| Size {
                rows: all.rows + one.rows,
                cost: all.cost + one.cost + one.rows * cost::PASS,
            }),
        }
    }

    /// Rows of a table that its condition comes to.
    pub fn touched(&self, scan: &Scan) -> Touched {
        let terms = terms_of(scan);
        let (own, outer): (Vec<&Scalar>, Vec<&Scalar>) =
            terms.iter().partition(|term| is_own(scan, term));
        let statistics = self.context.statistics;
        let found = self.scan_once(scan).rows;
        let all: Vec<&Scalar> = terms.iter().collect();
        if !outer.is_empty()
            && let Some(reach) = reach(scan, &all, &|_| true, self.kinds(), statistics)
        {
            let lookup = self.lookup_of(scan, &reach, 1.0, 1.0);
            return Touched { looked_at: lookup.looked_at, found: found.min(lookup.looked_at) };
        }
        Touched { looked_at: self.total(scan) * statistics.looked_at(scan, &own), found }
    }

    /// Rows of a table that come for one row that they are asked for with.
    pub fn touched_by(&self, scan: &Scan, reach: &Reach) -> Touched {
        let lookup = self.lookup_of(scan, reach, 1.0, self.own_share(scan));
        Touched { looked_at: lookup.looked_at, found: lookup.found }
    }

    fn scan_once(&self, scan: &Scan) -> Size {
        if let Some(known) = self.sizes.borrow().get(&scan.source) {
            return *known;
        }
        let size = self.scan(scan);
        self.sizes.borrow_mut().insert(scan.source, size);
        size
    }

    fn total(&self, scan: &Scan) -> f64 {
        self.context.statistics.rows(scan.source).unwrap_or(ROWS)
    }

    /// The part of a table's rows that its own condition leaves; terms about columns from around it do not count.
    fn own_share(&self, scan: &Scan) -> f64 {
        if let Some(known) = self.shares.borrow().get(&scan.source) {
            return *known;
        }
        let terms = terms_of(scan);
        let own: Vec<&Scalar> = terms.iter().filter(|term| is_own(scan, term)).collect();
        let share = self.context.statistics.share(scan, &own);
        self.shares.borrow_mut().insert(scan.source, share);
        share
    }

    fn scan(&self, scan: &Scan) -> Size {
        let statistics = self.context.statistics;
        let total = self.total(scan);
        let terms = terms_of(scan);
        let (own, outer): (Vec<&Scalar>, Vec<&Scalar>) =
            terms.iter().partition(|term| is_own(scan, term));
        let share = self.own_share(scan);
        let fragments = statistics.fragments(scan.source);
        if outer.is_empty() {
            let looked_at = total * statistics.looked_at(scan, &own);
            let rows = total * share;
            return Size { rows, cost: cost::scan(looked_at, rows, fragments) };
        }
        let given = |_| true;
        let fixed: Vec<ColumnId> =
            outer.iter().filter_map(|term| fixes(scan, term, &given, self.kinds())).collect();
        let rest = outer.iter().filter(|t| fixes(scan, t, &given, self.kinds()).is_none());
        let of_rest: f64 = rest.map(|term| usual_share(term)).product();
        let rows = total * share * of_rest / self.values(scan, &fixed);
        let all: Vec<&Scalar> = terms.iter().collect();
        match reach(scan, &all, &given, self.kinds(), statistics) {
            Some(reach) if self.context.rules.key_join || reach.is_key => {
                let lookup = self.lookup_of(scan, &reach, 1.0, share);
                Size { rows, cost: cost::lookup(lookup) }
            }
            _ => Size { rows, cost: cost::scan(total, rows, fragments) },
        }
    }

    /// How many values these columns of a table have.
    fn values(&self, scan: &Scan, columns: &[ColumnId]) -> f64 {
        if columns.is_empty() {
            return 1.0;
        }
        let total = self.total(scan);
        let is_key = scan.keys.iter().any(|key| key.iter().all(|c| columns.contains(c)));
        let known =
            if is_key { Some(total) } else { self.context.statistics.distinct(scan, columns) };
        known.unwrap_or(total / ROWS_FOR_EACH).max(1.0)
    }

    fn lookup_of(&self, scan: &Scan, reach: &Reach, requests: f64, share: f64) -> Lookup {
        let looked_at = match reach.is_key {
            true => 1.0,
            false => self.total(scan) / self.values(scan, &reach.fixed),
        };
        let fragments = match reach.is_key {
            true => 1.0,
            false => self.context.statistics.fragments(scan.source),
        };
        // A unique index leads to the primary key.
        let requests = if reach.is_key && !reach.is_primary { requests * 2.0 } else { requests };
        Lookup { requests, looked_at, found: looked_at * share, by_key: reach.is_key, fragments }
    }

    /// How many values columns of any tables have together; none if one of them is no table's.
    fn distinct(&self, columns: &[ColumnId]) -> Option<f64> {
        let mut product = 1.0;
        let mut left: BTreeSet<ColumnId> = columns.iter().copied().collect();
        while let Some(first) = left.first().copied() {
            let scan = self.scans.iter().find(|scan| scan.has(first))?;
            let of_scan: Vec<ColumnId> = left.iter().copied().filter(|c| scan.has(*c)).collect();
            left.retain(|column| !scan.has(*column));
            product *= self.values(scan, &of_scan);
        }
        Some(product)
    }

    /// The part of all pairs of rows for which the condition of a join holds.
    fn pair_share(&self, is_right: &dyn Fn(ColumnId) -> bool, on: &[&Scalar]) -> f64 {
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        let mut share = 1.0;
        let mut is_known = [true, true];
        let mut equal = 0;
        for term in on {
            let Some((left, right)) = sides(term, is_right) else {
                share *= usual_share(term);
                continue;
            };
            equal += 1;
            match column_of(left) {
                Some(column) => lefts.push(column),
                None => is_known[0] = false,
            }
            match column_of(right) {
                Some(column) => rights.push(column),
                None => is_known[1] = false,
            }
        }
        if equal == 0 {
            return share;
        }
        let of = |columns: &[ColumnId], is_known: bool| match is_known {
            true => self.distinct(columns),
            false => None,
        };
        let values = match (of(&lefts, is_known[0]), of(&rights, is_known[1])) {
            (Some(a), Some(b)) => a.max(b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => 10.0_f64 * equal as f64,
        };
        share / values.max(1.0)
    }

    /// What a join gives and costs, of sides of these sizes; the right one makes the columns that the left one does not.
    pub fn join(
        &self,
        kind: JoinKind,
        (left, right): (Size, Size),
        right_rel: &Rel,
        on: &[&Scalar],
    ) -> Ways {
        let rights: BTreeSet<ColumnId> = match right_rel {
            Rel::Scan(scan) => (scan.first.0..scan.first.0 + scan.width).map(ColumnId).collect(),
            other => other.columns().into_iter().collect(),
        };
        let is_right = |column: ColumnId| rights.contains(&column);
        let share = self.pair_share(&is_right, on);
        let pairs = left.rows * right.rows * share;
        let partners = (right.rows * share).min(1.0);
        let rows = match kind {
            JoinKind::Inner => pairs,
            JoinKind::Left => pairs.max(left.rows),
            JoinKind::Semi => left.rows * partners,
            JoinKind::Anti => left.rows * (1.0 - partners).max(0.1),
        };
        let made = if matches!(kind, JoinKind::Inner | JoinKind::Left) { pairs } else { 0.0 };
        let both = left.cost + right.cost;
        let has_equal = on.iter().any(|term| sides(term, &is_right).is_some());
        let is_hashed = has_equal && self.context.rules.hash_join;
        let keep_right = both
            + match is_hashed {
                true => cost::hash_join(right.rows, left.rows, made),
                false => cost::nested_join(left.rows, right.rows, made),
            };
        let keep_left = match (kind, is_hashed) {
            (JoinKind::Inner, true) => both + cost::hash_join(left.rows, right.rows, made),
            (JoinKind::Inner, false) => both + cost::nested_join(right.rows, left.rows, made),
            _ => f64::INFINITY,
        };
        let lookup = self
            .lookup(left, right_rel, on)
            .map(|(reach, cost)| (reach, left.cost + cost + cost::pairs(made)));
        Ways { rows, lookup, keep_right, keep_left }
    }

    /// How the right side can be asked for with values of the left one, and what that costs.
    fn lookup(&self, left: Size, right: &Rel, on: &[&Scalar]) -> Option<(Reach, f64)> {
        let Rel::Scan(scan) = right else { return None };
        if !self.context.rules.key_join {
            return None;
        }
        let own = terms_of(scan);
        let terms: Vec<&Scalar> = own.iter().chain(on.iter().copied()).collect();
        let reach = reach(scan, &terms, &|_| true, self.kinds(), self.context.statistics)?;
        let lookup = self.lookup_of(scan, &reach, left.rows, self.own_share(scan));
        Some((reach, cost::lookup(lookup)))
    }

    /// How many rows of the left side may ask for rows of the right one before reading all of it once is better by far; none if
    /// that is never so, or if it is too large to be kept.
    pub fn lookups_max(&self, left: Size, right: &Rel, on: &[&Scalar]) -> Option<u64> {
        const ASKING: Size = Size { rows: 10_000.0, cost: 0.0 };
        let size = self.size(right);
        if size.rows > KEPT_ROWS_MAX {
            return None;
        }
        let (_, lookups) = self.lookup(ASKING, right, on)?;
        let for_each = lookups / ASKING.rows - cost::hash_join(0.0, 1.0, 0.0);
        let whole = size.cost + cost::hash_join(size.rows, 0.0, 0.0);
        let even = (for_each > 0.0).then_some(whole / for_each)?;
        Some((even * 2.0).max(left.rows * 4.0).max(LOOKUPS_MIN) as u64)
    }

    /// The right side of an Apply for rows of the left one, of these sizes.
    pub fn apply(&self, kind: &ApplyKind, (left, size): (Size, Size), right: &Rel) -> Size {
        // Rows with the same parameters share a run, but where its rows become rows of a join.
        let given: Vec<ColumnId> = walk::free_columns(right).into_iter().collect();
        let runs = match kind {
            _ if given.is_empty() => 1.0,
            ApplyKind::Join(_) => left.rows,
            _ => self.distinct(&given).map_or(left.rows, |values| values.min(left.rows)),
        };
        let rows = match kind {
            ApplyKind::Join(JoinKind::Inner) => left.rows * size.rows,
            ApplyKind::Join(JoinKind::Left) => left.rows * size.rows.max(1.0),
            ApplyKind::Join(_) => left.rows * 0.5,
            ApplyKind::Mark(_) | ApplyKind::Single { .. } => left.rows,
        };
        // Many run at once, so that they share round trips.
        let each = (size.cost - self.shared_cost(right)).max(0.0) + cost::INSTANCE;
        let cost = left.cost + size.cost + runs * each + left.rows * cost::PASS;
        Size { rows, cost }
    }

    /// What instances of a subquery that run at once pay together.
    fn shared_cost(&self, rel: &Rel) -> f64 {
        let mut scans = Vec::new();
        add_scans(rel, &mut scans);
        scans
            .iter()
            .map(|scan| cost::scan(0.0, 0.0, self.context.statistics.fragments(scan.source)))
            .sum()
    }
}

fn add_scans(rel: &Rel, scans: &mut Vec<Scan>) {
    if let Rel::Scan(scan) = rel {
        scans.push((**scan).clone());
    }
    rel.inputs().into_iter().for_each(|input| add_scans(input, scans));
}

fn terms_of(scan: &Scan) -> Vec<Scalar> {
    scan.condition.clone().map(walk::conjuncts).unwrap_or_default()
}

fn is_own(scan: &Scan, term: &Scalar) -> bool {
    walk::columns_of(term).into_iter().all(|column| scan.has(column))
}

/// How many rows a LIMIT leaves at most, if it says so.
fn most_of(count: Option<&Scalar>) -> f64 {
    match count {
        Some(Expr::Literal(Value::Int(count))) => *count as f64,
        Some(Expr::Literal(Value::UInt(count))) => *count as f64,
        _ => f64::INFINITY,
    }
}

fn column_of(scalar: &Scalar) -> Option<ColumnId> {
    match scalar {
        Expr::Column(number) if *number < crate::ir::EXTERNAL_BASE => Some(ColumnId(*number)),
        _ => None,
    }
}

/// The sides of an equality between rows of the left and of the right side.
fn sides<'s>(
    term: &'s Scalar,
    is_right: &dyn Fn(ColumnId) -> bool,
) -> Option<(&'s Scalar, &'s Scalar)> {
    let Expr::Binary { op: BinaryOp::Equal | BinaryOp::NullSafeEqual, left, right } = term else {
        return None;
    };
    let of_right = |scalar: &Scalar| {
        let columns = walk::columns_of(scalar);
        let count = columns.iter().filter(|column| is_right(**column)).count();
        (count > 0, count < columns.len())
    };
    match (of_right(left), of_right(right)) {
        ((false, true), (true, false)) => Some((left, right)),
        ((true, false), (false, true)) => Some((right, left)),
        _ => None,
    }
}
