//! What is known about the tables of a statement, for estimates: conditions are tried on some of the rows.

use crate::access::{Access, conjuncts};
use crate::bind::Source;
use crate::expr::{EXTERNAL_BASE, RowSource, has_externals, map_columns};
use crate::syntax::Context;
use crate::table::Table;
use lats_base::TableId;
use lats_catalog::statistics::TableStatistics;
use lats_engine::estimate::{Statistics, usual_share};
use lats_engine::ir::{ColumnId, Scalar, Scan, SourceId};
use lats_engine::physical::Touched;
use lats_values::{EvalContext, Expr, Value, encode_key_value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Gives what is known about a table.
pub type Look<'a> = &'a (dyn Fn(TableId) -> Option<Arc<TableStatistics>> + 'a);

/// The statistics of a statement's tables.
pub struct Known<'a> {
    sources: &'a [Source],
    tables: Vec<Option<Arc<TableStatistics>>>,
    /// The values from outside that the plan is made for, if they are known.
    values: &'a [Value],
    /// How many values columns were found to have.
    distinct: RefCell<BTreeMap<(SourceId, Vec<u16>), f64>>,
}

/// Sample rows in which nothing was found stand for so much of one.
const NOT_FOUND: f64 = 0.5;

impl<'a> Known<'a> {
    /// Of these tables.
    pub fn new(sources: &'a [Source], look: Look<'_>, values: &'a [Value]) -> Self {
        let tables = sources.iter().map(|source| look(source.table.def.id)).collect();
        Self { sources, tables, values, distinct: RefCell::default() }
    }

    /// The tables, and how many rows each was taken to have.
    pub fn tables(&self) -> Vec<(TableId, Option<f64>)> {
        let mut all: BTreeMap<TableId, Option<f64>> = BTreeMap::new();
        for (source, known) in self.sources.iter().zip(&self.tables) {
            all.insert(source.table.def.id, known.as_ref().map(|known| known.rows));
        }
        all.into_iter().collect()
    }

    fn of(&self, source: SourceId) -> Option<(&Source, &TableStatistics)> {
        let at = source.0 as usize;
        let known = self.tables.get(at)?.as_deref()?;
        Some((self.sources.get(at)?, known))
    }

    /// The term over positions in the table.
    fn own(scan: &Scan, term: &Scalar) -> Expr {
        map_columns(term, &|number| {
            let at = number.checked_sub(scan.first.0).filter(|at| *at < scan.width)?;
            Some(Expr::Column(at))
        })
    }

    /// True if the term's values from outside are known.
    fn is_known(&self, term: &Expr) -> bool {
        !has_externals(term) || !self.values.is_empty()
    }

    /// In how many sample rows all terms hold, and how many rows there are.
    fn tried(&self, table: &Table, known: &TableStatistics, terms: &[Expr]) -> (f64, f64) {
        let mut context = EvalContext::new(false);
        let mut held = 0;
        for image in &known.images {
            let row = RowSource {
                layout: Some(&table.layout),
                row: Some(image),
                positions: &[],
                aggregates: &[],
                externals: self.values,
            };
            let all = terms
                .iter()
                .all(|term| lats_values::is_true(term, &row, &mut context).unwrap_or(false));
            held += usize::from(all);
            context.warnings.clear();
        }
        (held as f64, known.images.len() as f64)
    }

    /// The part of a table's rows for which terms over its positions hold.
    fn share_of(&self, table: &Table, known: &TableStatistics, terms: Vec<Expr>) -> f64 {
        let (tried, guessed): (Vec<Expr>, Vec<Expr>) =
            terms.into_iter().partition(|term| self.is_known(term));
        let guess = |term: &Expr| match equal_column(term) {
            Some(column) => 1.0 / values_of(table, known, &[column]).max(1.0),
            None => usual_share(term),
        };
        let guessed: f64 = guessed.iter().map(guess).product();
        if tried.is_empty() {
            return guessed;
        }
        let (held, of) = self.tried(table, known, &tried);
        if of < 1.0 {
            return guessed * tried.iter().map(usual_share).product::<f64>();
        }
        if held >= 1.0 {
            return guessed * held / of;
        }
        // An equality with a value that no sample row has is about as rare as the column's values are.
        let equal = tried.iter().filter_map(equal_column);
        let equal = equal.map(|c| 1.0 / values_of(table, known, &[c]).max(1.0));
        guessed * equal.fold(NOT_FOUND / of, f64::min)
    }
}

/// The column that a term compares with a value, if it must be equal.
fn equal_column(term: &Expr) -> Option<u16> {
    let Expr::Binary { op: lats_values::BinaryOp::Equal, left, right } = term else { return None };
    [left, right].into_iter().find_map(|side| match **side {
        Expr::Column(number) if number < EXTERNAL_BASE => u16::try_from(number).ok(),
        _ => None,
    })
}

/// How many values these columns of a table have together.
fn values_of(table: &Table, known: &TableStatistics, columns: &[u16]) -> f64 {
    let mut left: Vec<u16> = columns.to_vec();
    let mut product = 1.0;
    while !left.is_empty() {
        let led = |of: &[u16]| of.iter().take_while(|column| left.contains(column)).count();
        let best = known.indexes.iter().max_by_key(|index| led(&index.columns));
        let (used, values) = match best.map(|index| (led(&index.columns), index)) {
            Some((count @ 1.., index)) => {
                let values = index.distinct.get(count - 1).copied().unwrap_or(1.0);
                (index.columns.iter().take(count).copied().collect(), values)
            }
            _ => {
                let column = left[0];
                (vec![column], values_in_samples(table, known, column))
            }
        };
        product *= values.max(1.0);
        left.retain(|column| !used.contains(column));
    }
    product.min(known.rows.max(1.0))
}

/// How many values a column has, from the sample rows: values that were seen once say how many were not seen.
fn values_in_samples(table: &Table, known: &TableStatistics, column: u16) -> f64 {
    let Some(column_type) = table.types.get(usize::from(column)) else { return 1.0 };
    let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for image in &known.images {
        let value = table.layout.value(image, column);
        let mut key = Vec::new();
        encode_key_value(column_type, &value, &mut key);
        *counts.entry(key).or_default() += 1;
    }
    let seen = known.images.len() as f64;
    if seen < 1.0 {
        return known.rows / 10.0;
    }
    let (different, once) =
        (counts.len() as f64, counts.values().filter(|count| **count == 1).count() as f64);
    let all = known.rows.max(seen);
    (seen * different / (seen - once + once * seen / all)).clamp(different, all)
}

/// How many rows a read of one table comes to; none if nothing is known of the table.
pub fn touched(table: &Table, access: &Access, context: &Context<'_>) -> Option<Touched> {
    let statistics = (context.statistics)(table.def.id)?;
    let known = Known::new(&[], context.statistics, context.values);
    let all = access.filter.as_ref().map(conjuncts).unwrap_or_default();
    let rest = access.residual.as_ref().map(conjuncts).unwrap_or_default();
    let owned = |terms: Vec<&Expr>| terms.into_iter().cloned().collect();
    let share = known.share_of(table, &statistics, owned(all.clone()));
    let used = all.into_iter().filter(|term| !rest.contains(term)).collect();
    let looked_at = match access.is_key_lookup || access.is_unique_lookup {
        true if access.fixed == access.columns.len() => 1.0,
        _ => statistics.rows * known.share_of(table, &statistics, owned(used)),
    };
    Some(Touched { looked_at, found: (statistics.rows * share).min(looked_at) })
}

impl Statistics for Known<'_> {
    fn rows(&self, source: SourceId) -> Option<f64> {
        self.of(source).map(|(_, known)| known.rows)
    }

    fn fragments(&self, source: SourceId) -> f64 {
        let source = self.sources.get(source.0 as usize);
        source.map_or(1.0, |source| f64::from(source.table.def.fragment_count.max(1)))
    }

    fn share(&self, scan: &Scan, terms: &[&Scalar]) -> f64 {
        if terms.is_empty() {
            return 1.0;
        }
        let terms: Vec<Expr> = terms.iter().map(|term| Self::own(scan, term)).collect();
        match self.of(scan.source) {
            Some((source, known)) => self.share_of(&source.table, known, terms),
            None => terms.iter().map(usual_share).product(),
        }
    }

    fn looked_at(&self, scan: &Scan, terms: &[&Scalar]) -> f64 {
        let Some((source, known)) = self.of(scan.source) else { return 1.0 };
        let terms: Vec<Expr> = terms.iter().map(|term| Self::own(scan, term)).collect();
        let condition = crate::bind::balanced(terms, lats_values::BinaryOp::And);
        let access = Access::choose(&source.table, condition);
        if access.is_key_lookup || access.is_unique_lookup {
            return 1.0 / known.rows.max(1.0);
        }
        if access.columns.is_empty() {
            return 1.0;
        }
        let rest = access.residual.as_ref().map(conjuncts).unwrap_or_default();
        let all = access.filter.as_ref().map(conjuncts).unwrap_or_default();
        let used = all.into_iter().filter(|term| !rest.contains(term)).cloned().collect();
        self.share_of(&source.table, known, used)
    }

    fn distinct(&self, scan: &Scan, columns: &[ColumnId]) -> Option<f64> {
        let (source, known) = self.of(scan.source)?;
        let position = |column: &ColumnId| {
            let at = column.0.checked_sub(scan.first.0).filter(|at| *at < scan.width)?;
            u16::try_from(at).ok()
        };
        let columns: Option<Vec<u16>> = columns.iter().map(position).collect();
        let key = (scan.source, columns?);
        if let Some(found) = self.distinct.borrow().get(&key) {
            return Some(*found);
        }
        let found = values_of(&source.table, known, &key.1);
        self.distinct.borrow_mut().insert(key, found);
        Some(found)
    }
}
