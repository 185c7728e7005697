//! What a column's name stands for: columns of tables, names of the select list, columns of outer queries.

use super::Binder;
use super::scope::{Aggregates, AliasUse, same_name};
use crate::error;
use crate::syntax::{optional_name, shown_column};
use lats_base::planted::{QueryBug, errs};
use lats_engine::ir::walk;
use lats_mysql_syntax::tree::{self, ExprId};
use lats_values::{Expr, SqlError};

/// Database, table and name as they were written.
type Parts<'n> = (Option<&'n str>, Option<&'n str>, &'n str);

impl Binder<'_> {
    pub(super) fn column_reference(&mut self, id: ExprId) -> Result<Expr, SqlError> {
        let tree = self.tree();
        let tree::Expr::Column { schema, table, name } = *tree.expr(id) else {
            return Err(error::internal("a column's name was expected"));
        };
        let parts = (optional_name(tree, schema)?, optional_name(tree, table)?, self.name(name)?);
        let clause = self.clause;
        let found = self.resolve(parts)?;
        let found = found.ok_or_else(|| error::unknown_column(&shown_column(tree, id), clause))?;
        self.note_column(id, &found);
        Ok(found)
    }

    /// Looks a name up in the innermost block, then in those around it.
    pub(super) fn resolve(&mut self, parts: Parts<'_>) -> Result<Option<Expr>, SqlError> {
        if let [.., around, inner] = self.blocks.as_slice()
            && inner.hidden == 0
            && errs(QueryBug::OutermostNameFirst)
            && let Ok(Some(id)) = around.scope.find(parts, self.clause)
        {
            return Ok(Some(id.scalar()));
        }
        let mut at = self.blocks.len();
        let mut hidden = 0;
        while at > 0 {
            at -= 1;
            if hidden > 0 {
                // What a hidden block does not see is hidden, too.
                hidden += self.blocks[at].hidden;
                hidden -= 1;
                continue;
            }
            let found = match at + 1 == self.blocks.len() {
                true => self.resolve_in(at, parts)?,
                false => self.resolve_around(at, parts)?,
            };
            if let Some(found) = found {
                for block in &mut self.blocks[at + 1..] {
                    block.is_correlated = true;
                }
                return Ok(Some(found));
            }
            hidden = self.blocks[at].hidden;
        }
        Ok(None)
    }

    fn resolve_in(&self, at: usize, parts: Parts<'_>) -> Result<Option<Expr>, SqlError> {
        let block = &self.blocks[at];
        let (_, table, name) = parts;
        let alias_use = match block.aggregates {
            Aggregates::Inside => AliasUse::No,
            _ => block.alias_use,
        };
        if alias_use == AliasUse::First && table.is_none() {
            // A key of GROUP BY comes before a name of the select list.
            let visible = block.scope.visible.iter().filter(|v| same_name(&v.name, name));
            let mut keys = visible.map(|v| v.id).filter(|id| block.keys.contains(&id.scalar()));
            if let Some(key) = keys.next() {
                return match keys.all(|other| other == key) {
                    true => Ok(Some(key.scalar())),
                    false => Err(super::scope::ambiguous(table, name, self.clause)),
                };
            }
            if let Some(expr) = self.output_named(at, name)? {
                return Ok(Some(expr));
            }
        }
        let found = match block.scope.find(parts, self.clause) {
            // HAVING sees no more of the tables than the select list and the keys.
            Err(_) if alias_use == AliasUse::First => None,
            found => found?,
        };
        if let Some(id) = found {
            let is_known = alias_use != AliasUse::First
                || block.keys.contains(&id.scalar())
                || block.outputs.iter().any(|output| output.expr == id.scalar());
            if is_known {
                return Ok(Some(id.scalar()));
            }
        }
        if alias_use == AliasUse::Last && table.is_none() {
            return self.output_named(at, name);
        }
        Ok(None)
    }

    /// Looks a name up in a block for a subquery of it: columns come before names of the select list.
    fn resolve_around(&mut self, at: usize, parts: Parts<'_>) -> Result<Option<Expr>, SqlError> {
        let block = &self.blocks[at];
        if let Some(id) = block.scope.find(parts, self.clause)? {
            return Ok(Some(id.scalar()));
        }
        let (_, table, name) = parts;
        let is_hidden = block.alias_use == AliasUse::No || block.aggregates == Aggregates::Inside;
        if table.is_some() || is_hidden {
            return Ok(None);
        }
        let is_coming = block.coming.iter().any(|other| same_name(other, name));
        let found = self.output_named(at, name)?;
        if let Some(value) = &found {
            let columns = walk::columns_of(value);
            if columns.iter().any(|column| self.call_columns.contains(column)) {
                return Err(reference(name, "reference to group function"));
            }
        } else if is_coming {
            return Err(reference(name, "forward reference in item list"));
        }
        if found.as_ref().is_some_and(walk::uses_variables) {
            let what = "the name of a value that assigns variables, in a subquery";
            return Err(error::not_supported(what));
        }
        Ok(found.map(|value| self.named_value(at, name, value)))
    }

    /// The select list's expression with this name.
    pub(super) fn output_named(&self, at: usize, name: &str) -> Result<Option<Expr>, SqlError> {
        let named = self.blocks[at].outputs.iter().filter(|o| same_name(&o.name, name));
        let mut found: Option<&Expr> = None;
        for output in named {
            match found {
                Some(other) if *other != output.expr => {
                    return Err(super::scope::ambiguous(None, name, self.clause));
                }
                _ => found = Some(&output.expr),
            }
        }
        Ok(found.cloned())
    }
}

/// 1247.
fn reference(name: &str, why: &str) -> SqlError {
    error::make(1247, "42S22", &format!("Reference '{name}' not supported ({why})"))
}
