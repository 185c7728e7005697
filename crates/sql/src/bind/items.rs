//! The select list: values, names, stars.

use super::scope::{Aggregates, AliasUse, Output};
use super::{Binder, from};
use crate::error;
use crate::syntax::optional_name;
use lats_mysql_syntax::tree::{self, ExprId, SelectItem, Text};
use lats_values::SqlError;

/// Columns of a result, as of MySQL's own tables for results.
const COLUMNS_MAX: usize = 4_096;

impl Binder<'_> {
    /// Binds the select list.
    pub(super) fn select_list(&mut self, items: &[SelectItem]) -> Result<Vec<Output>, SqlError> {
        let block = self.block();
        block.aggregates = Aggregates::Allowed;
        block.windows_allowed = true;
        let names_known = self.has_queries;
        if names_known {
            self.coming_names(items)?;
            self.block().outputs.clear();
        }
        let mut outputs = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            if names_known {
                // Subqueries may use the names of what stands before.
                let block = self.block();
                block.alias_use = AliasUse::Within;
                let known = block.outputs.len();
                block.outputs.extend_from_slice(outputs.get(known..).unwrap_or_default());
                if at > 0 {
                    block.coming.pop();
                }
            }
            match *self.tree().expr(item.value) {
                tree::Expr::Star { schema, table } => {
                    let first = outputs.len();
                    self.star(schema, table, &mut outputs)?;
                    self.note_star(item.value, &outputs[first..]);
                }
                _ => {
                    let expr = self.bind_in("field list", item.value)?;
                    let is_column =
                        matches!(self.tree().expr(item.value), tree::Expr::Column { .. });
                    let (name, is_named) = match optional_name(self.tree(), item.alias)? {
                        Some(alias) => (alias.to_owned(), true),
                        None => (self.item_name(item)?, is_column),
                    };
                    self.note_name(item.value, &name);
                    outputs.push(Output { expr, name, is_named });
                }
            }
            if outputs.len() > COLUMNS_MAX {
                return Err(error::make(1117, "HY000", "Too many columns"));
            }
        }
        let block = self.block();
        block.alias_use = AliasUse::No;
        block.coming.clear();
        Ok(outputs)
    }

    /// Notes the names of the select list before they are bound, the last one first.
    fn coming_names(&mut self, items: &[SelectItem]) -> Result<(), SqlError> {
        let mut names = Vec::with_capacity(items.len());
        for item in items.iter().rev() {
            let alias = optional_name(self.tree(), item.alias)?;
            names.push(alias.unwrap_or_default().to_owned());
        }
        self.block().coming = names;
        Ok(())
    }

    /// MySQL's name for a column without an alias.
    fn item_name(&self, item: &SelectItem) -> Result<String, SqlError> {
        let tree = self.tree();
        let inner = without_plus(tree, item.value);
        match *tree.expr(inner) {
            tree::Expr::Column { name, .. } => Ok(self.name(name)?.to_owned()),
            tree::Expr::Text { text, first, .. } => {
                let bytes = tree.text(text);
                let bytes = bytes.get(..first.0 as usize).unwrap_or(bytes);
                let shown = String::from_utf8_lossy(bytes).into_owned();
                Ok(shown.trim_start_matches(|c: char| c.is_ascii_control() || c == ' ').to_owned())
            }
            _ if inner != item.value => {
                Ok(String::from_utf8_lossy(tree.span(inner).of(self.context.text)).into_owned())
            }
            _ => Ok(String::from_utf8_lossy(item.span.of(self.context.text)).into_owned()),
        }
    }

    fn star(
        &mut self,
        schema: Text,
        table: Text,
        outputs: &mut Vec<Output>,
    ) -> Result<(), SqlError> {
        let (database, table) =
            (optional_name(self.tree(), schema)?, optional_name(self.tree(), table)?);
        let scope = &self.block().scope;
        if scope.tables.is_empty() {
            return Err(error::make(1096, "HY000", "No tables used"));
        }
        let output = |name: &String, id: lats_engine::ir::ColumnId| Output {
            expr: id.scalar(),
            name: name.clone(),
            is_named: true,
        };
        match table {
            None => outputs.extend(scope.visible.iter().map(|v| output(&v.name, v.id))),
            Some(table) => {
                let Some(found) = from::table_named(scope, database, table) else {
                    let text = format!("Unknown table '{table}'");
                    return Err(error::make(1051, "42S02", &text));
                };
                outputs.extend(found.columns.iter().map(|(name, id)| output(name, *id)));
            }
        }
        Ok(())
    }

    /// The select list's expression that a number or a name stands for, where such a name comes before columns.
    pub(super) fn by_position_or_name(
        &self,
        id: ExprId,
        clause: &str,
        names_first: bool,
    ) -> Result<Option<lats_values::Expr>, SqlError> {
        let outputs = &self.blocks[self.blocks.len() - 1].outputs;
        match *self.tree().expr(id) {
            tree::Expr::Number { kind: tree::NumberKind::Integer, digits } => {
                let digits = self.name(digits)?;
                let at = digits.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                match at.and_then(|at| outputs.get(at)) {
                    Some(output) => Ok(Some(output.expr.clone())),
                    None => Err(error::unknown_column(digits, clause)),
                }
            }
            tree::Expr::Column { schema, table, name }
                if names_first && schema.is_none() && table.is_none() =>
            {
                self.output_named(self.blocks.len() - 1, self.name(name)?)
            }
            _ => Ok(None),
        }
    }
}

fn without_plus(tree: &tree::Tree, id: ExprId) -> ExprId {
    match *tree.expr(id) {
        tree::Expr::Unary(tree::UnaryOp::Plus, inner) => without_plus(tree, inner),
        _ => id,
    }
}
