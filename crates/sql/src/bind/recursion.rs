//! Which parts of a common table's query name the table itself.

use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{Body, BodyId, QueryId, SetOp, SetQuantifier, Table, TableId};

/// The parts of a recursive common table.
pub(super) struct Split {
    /// What does not name the table.
    pub(super) anchor: BodyId,
    /// What does.
    pub(super) steps: Vec<BodyId>,
    /// Rows that were found before are left out.
    pub(super) distinct: bool,
}

/// True if FROM clauses of the query name the table.
pub(super) fn names_itself(tree: &Tree, query: QueryId, name: &str) -> bool {
    let query = tree.query(query);
    let hides = |with: &lats_mysql_syntax::tree::With| {
        with.tables.iter().any(|table| tree.text(table.name) == name.as_bytes())
    };
    if query.with.as_ref().is_some_and(|with| hides(with)) {
        return false;
    }
    let inner = query.with.iter().flat_map(|with| &with.tables);
    body_names(tree, query.body, name)
        || inner.into_iter().any(|table| names_itself(tree, table.query, name))
}

fn body_names(tree: &Tree, body: BodyId, name: &str) -> bool {
    match tree.body(body) {
        Body::Select(select) => select.from.iter().any(|table| table_names(tree, *table, name)),
        Body::Values(_) => false,
        Body::Table(table) => table.schema.is_none() && tree.text(table.name) == name.as_bytes(),
        Body::Set { left, right, .. } => {
            body_names(tree, *left, name) || body_names(tree, *right, name)
        }
        Body::Nested(query) => names_itself(tree, *query, name),
    }
}

fn table_names(tree: &Tree, table: TableId, name: &str) -> bool {
    match tree.table(table) {
        Table::Named { name: table, .. } => {
            table.schema.is_none() && tree.text(table.name) == name.as_bytes()
        }
        Table::Derived { query, .. } => names_itself(tree, *query, name),
        Table::Json { .. } => false,
        Table::Join { left, right, .. } => {
            table_names(tree, *left, name) || table_names(tree, *right, name)
        }
        Table::Cross(tables) => tables.iter().any(|table| table_names(tree, *table, name)),
    }
}

/// The anchor and the steps of `anchor UNION [ALL] step …`; none if the query has another form.
pub(super) fn split(tree: &Tree, body: BodyId, name: &str) -> Option<Split> {
    let mut steps = Vec::new();
    let mut distinct = false;
    let mut rest = body;
    loop {
        match tree.body(rest) {
            Body::Set { op: SetOp::Union, quantifier, left, right }
                if body_names(tree, rest, name) =>
            {
                distinct |= *quantifier != SetQuantifier::All;
                if !body_names(tree, *right, name) {
                    return None;
                }
                steps.push(*right);
                rest = *left;
            }
            Body::Nested(query) if body_names(tree, rest, name) => {
                let query = tree.query(*query);
                if !query.order.is_empty() || query.limit.is_some() || query.with.is_some() {
                    return None;
                }
                rest = query.body;
            }
            _ if body_names(tree, rest, name) || steps.is_empty() => return None,
            _ => {
                steps.reverse();
                return Some(Split { anchor: rest, steps, distinct });
            }
        }
    }
}
