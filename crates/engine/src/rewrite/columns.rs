//! Columns of tables that nobody reads are not read.

use crate::ir::{ApplyKind, ColumnId, Rel, walk};
use alloc::collections::BTreeSet;

/// The plan with scans that give only what is used above them.
pub fn prune(rel: Rel, wanted: &[ColumnId]) -> Rel {
    let mut used: BTreeSet<ColumnId> = wanted.iter().copied().collect();
    note(&rel, &mut used);
    narrow(rel, &used)
}

fn note(rel: &Rel, used: &mut BTreeSet<ColumnId>) {
    // A scan's condition is looked at where the row is stored; what it takes from outside is used.
    for scalar in rel.scalars() {
        let columns = walk::columns_of(scalar);
        match rel {
            Rel::Scan(scan) => used.extend(columns.into_iter().filter(|column| !scan.has(*column))),
            _ => used.extend(columns),
        }
    }
    match rel {
        Rel::Narrow { columns, .. } | Rel::Distinct { columns, .. } => used.extend(columns),
        Rel::Set { left, right, .. } => used.extend(left.1.iter().chain(&right.1)),
        Rel::Recursive { anchor, step, .. } => used.extend(anchor.1.iter().chain(&step.1)),
        Rel::Apply { kind: ApplyKind::Single { of, .. }, .. } => {
            used.insert(*of);
        }
        _ => {}
    }
    for input in rel.inputs() {
        note(input, used);
    }
}

fn narrow(rel: Rel, used: &BTreeSet<ColumnId>) -> Rel {
    match rel {
        Rel::Scan(mut scan) => {
            scan.columns.retain(|column| used.contains(column));
            Rel::Scan(scan)
        }
        other => other.map_inputs(&mut |input| narrow(input, used)),
    }
}
