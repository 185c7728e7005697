//! Columns that nobody reads are not read from tables, and not carried through joins, sorts and groups.

use crate::ir::{ApplyKind, ColumnId, JoinKind, Rel, walk};
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};

type Columns = BTreeSet<ColumnId>;

/// The plan with nodes that give only what is used above them.
pub fn prune(rel: Rel, wanted: &[ColumnId]) -> Rel {
    narrow(rel, &wanted.iter().copied().collect())
}

/// The plan where these columns are wanted of its rows.
fn narrow(rel: Rel, wanted: &Columns) -> Rel {
    let with_own = |rel: &Rel| {
        let mut all = wanted.clone();
        rel.scalars().into_iter().for_each(|scalar| walk::add_columns(scalar, &mut all));
        all
    };
    match rel {
        Rel::Scan(mut scan) => {
            scan.columns.retain(|column| wanted.contains(column));
            Rel::Scan(scan)
        }
        Rel::Narrow { input, columns } => {
            let columns: Vec<ColumnId> =
                columns.into_iter().filter(|column| wanted.contains(column)).collect();
            let input = narrow(*input, &columns.iter().copied().collect());
            Rel::Narrow { input: Box::new(input), columns }
        }
        Rel::Set { op, all, columns, left, right } => {
            let side = |(rel, columns): (Box<Rel>, Vec<ColumnId>)| {
                (Box::new(prune(*rel, &columns)), columns)
            };
            Rel::Set { op, all, columns, left: side(left), right: side(right) }
        }
        Rel::Recursive { id, columns, anchor, step, distinct, limit } => {
            let side = |(rel, columns): (Box<Rel>, Vec<ColumnId>)| {
                (Box::new(prune(*rel, &columns)), columns)
            };
            Rel::Recursive { id, columns, anchor: side(anchor), step: side(step), distinct, limit }
        }
        Rel::Join { .. } | Rel::Apply { .. } => {
            let mut all = with_own(&rel);
            if let Rel::Apply { kind, right, .. } = &rel {
                all.extend(walk::free_columns(right));
                if let ApplyKind::Single { columns } = kind {
                    all.extend(columns.iter().map(|(_, of)| *of));
                }
            }
            rel.map_inputs(&mut |input| thin(narrow(input, &all), &all))
        }
        Rel::Extend { input, items } => {
            // Values that nobody reads are not computed: what is wrong with them is nobody's concern.
            let mut all = wanted.clone();
            let mut kept = Vec::with_capacity(items.len());
            for (column, value) in items.into_iter().rev() {
                if all.contains(&column) || walk::assigns(&value) {
                    walk::add_columns(&value, &mut all);
                    kept.push((column, value));
                }
            }
            kept.reverse();
            let input = narrow(*input, &all);
            match kept.is_empty() {
                true => input,
                false => Rel::Extend { input: Box::new(input), items: kept },
            }
        }
        Rel::Distinct { input, columns } => {
            let all: Columns = wanted.iter().chain(&columns).copied().collect();
            Rel::Distinct { input: Box::new(thin(narrow(*input, &all), &all)), columns }
        }
        Rel::Aggregate { .. } | Rel::Window { .. } | Rel::Sort { .. } => {
            let all = with_own(&rel);
            rel.map_inputs(&mut |input| thin(narrow(input, &all), &all))
        }
        other => {
            let all = with_own(&other);
            other.map_inputs(&mut |input| narrow(input, &all))
        }
    }
}

/// The rows without columns that nobody wants, where they come from more than one node.
fn thin(rel: Rel, wanted: &Columns) -> Rel {
    let makes_rows = match &rel {
        Rel::Join { kind, .. } => matches!(kind, JoinKind::Inner | JoinKind::Left),
        Rel::Apply { .. } | Rel::Aggregate { .. } | Rel::Window { .. } | Rel::Extend { .. } => true,
        _ => false,
    };
    if !makes_rows {
        return rel;
    }
    let columns = rel.columns();
    let kept: Vec<ColumnId> = columns.iter().copied().filter(|c| wanted.contains(c)).collect();
    match kept.len() < columns.len() {
        true => Rel::Narrow { input: Box::new(rel), columns: kept },
        false => rel,
    }
}
