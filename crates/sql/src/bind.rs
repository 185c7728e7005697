//! The binder: from the parser's expressions to bound ones, with MySQL's rules for names.
//!
//! Whatever is not named here is refused. Where the parser's idea of precedence differs from
//! MySQL's, an expression without parentheses is refused rather than computed wrongly.

mod calls;
mod literals;
mod operators;
mod special;

use crate::error;
use crate::expr::{AGGREGATE_BASE, EXTERNAL_BASE, External};
use crate::table::Table;
use lats_values::{AggregateKind, Collation, Expr, SqlError};
use sqlparser::ast::{self, Ident};
use std::collections::BTreeMap;

pub(crate) use literals::number;
pub use literals::{charset_collation, data_type, literal};
pub use operators::balanced;
pub(crate) use operators::hex_beside;

/// Nesting of bound expressions that data nodes accept (with room for what plans add around them).
const DEPTH_MAX: usize = lats_base::limits::PROGRAM_DEPTH_MAX - 8;

/// A call of an aggregate function.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    /// Which function.
    pub kind: AggregateKind,
    /// DISTINCT.
    pub distinct: bool,
    /// What it aggregates; none for COUNT(*).
    pub arg: Option<Expr>,
}

/// Binds the expressions of one statement.
#[derive(Default)]
pub struct Binder<'a> {
    /// The table whose columns have names here.
    pub table: Option<&'a Table>,
    /// The name that qualifies its columns.
    pub alias: String,
    /// The part of the statement, for errors.
    pub clause: &'static str,
    /// Values that the statement takes from outside.
    pub externals: Vec<External>,
    /// Where each of them is in the list.
    pub external_places: BTreeMap<External, usize>,
    /// Number of `?` in the statement.
    pub parameters: u16,
    /// Aggregate functions are allowed here.
    pub aggregates_allowed: bool,
    /// The aggregate functions found.
    pub aggregates: Vec<AggregateCall>,
    /// Names of the select list's expressions, where they can be used.
    pub select_names: BTreeMap<String, Expr>,
    /// Within ON DUPLICATE KEY UPDATE: VALUES(column) is the table's column plus this.
    pub values_base: Option<u16>,
    /// Name of the row alias in `INSERT … AS new ON DUPLICATE KEY UPDATE`.
    pub values_alias: Option<String>,
    /// Places in the text of the `?` seen, in order of appearance.
    pub placeholders: BTreeMap<(u64, u64), u16>,
    depth: usize,
}

impl<'a> Binder<'a> {
    /// For the columns of `table`.
    pub fn new(table: Option<&'a Table>, alias: &str) -> Self {
        Self { table, alias: alias.to_owned(), clause: "field list", ..Self::default() }
    }

    /// Numbers the statement's placeholders by their place in the text.
    pub fn with_placeholders(mut self, tokens: &crate::parse::Tokens) -> Self {
        for token in &tokens.list {
            if matches!(&token.token, sqlparser::tokenizer::Token::Placeholder(_)) {
                let at = (token.span.start.line, token.span.start.column);
                self.placeholders.insert(at, self.parameters);
                self.parameters = self.parameters.saturating_add(1);
            }
        }
        self
    }

    /// Binds an expression of this clause.
    ///
    /// # Errors
    /// What MySQL says, or 1235.
    pub fn bind_in(&mut self, clause: &'static str, expr: &ast::Expr) -> Result<Expr, SqlError> {
        self.clause = clause;
        self.depth = 0;
        self.bind(expr)
    }

    /// Binds an expression.
    ///
    /// # Errors
    /// What MySQL says, or 1235.
    pub fn bind(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(error::make(1436, "HY000", "Thread stack overrun: nested too deeply"));
        }
        let bound = self.bind_node(expr);
        self.depth -= 1;
        bound
    }

    fn bind_node(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        use ast::Expr as E;
        match expr {
            E::Identifier(ident) => self.identifier(ident),
            E::CompoundIdentifier(parts) => self.compound(parts),
            E::Value(value) => self.value(value),
            E::Nested(inner) => self.bind(inner),
            E::BinaryOp { left, op, right } => self.binary(left, op, right),
            E::UnaryOp { op, expr } => self.unary(*op, expr),
            E::IsNull(e) => self.is_null(e, false),
            E::IsNotNull(e) => self.is_null(e, true),
            E::IsTrue(e) => self.is_truth(e, true, false),
            E::IsNotTrue(e) => self.is_truth(e, true, true),
            E::IsFalse(e) => self.is_truth(e, false, false),
            E::IsNotFalse(e) => self.is_truth(e, false, true),
            E::IsUnknown(e) => self.is_null(e, false),
            E::IsNotUnknown(e) => self.is_null(e, true),
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            E::Between { expr, negated, low, high } => self.between([expr, low, high], *negated),
            E::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), *negated)
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            E::Collate { expr, collation } => {
                let name = crate::table::single_name(collation)?;
                let collation = collation_named(&name)?;
                Ok(Expr::Collate { arg: Box::new(self.bind(expr)?), collation })
            }
            E::Function(function) => self.function(function),
            _ => self.special(expr),
        }
    }

    fn identifier(&mut self, ident: &Ident) -> Result<Expr, SqlError> {
        if ident.quote_style.is_none() {
            if let Some(name) = ident.value.strip_prefix("@@") {
                return self.system_variable(false, name);
            }
            if let Some(name) = ident.value.strip_prefix('@') {
                return Ok(self.external(External::UserVariable(name.to_lowercase())));
            }
        }
        self.column(&ident.value, &ident.value)
    }

    fn column(&mut self, name: &str, shown: &str) -> Result<Expr, SqlError> {
        if let Some(at) = self.table.and_then(|t| t.column(name)) {
            return Ok(Expr::Column(at));
        }
        if let Some(expr) = self.select_names.get(&name.to_lowercase()) {
            return Ok(expr.clone());
        }
        Err(error::unknown_column(shown, self.clause))
    }

    fn compound(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        let names: Vec<&str> = parts.iter().map(|p| p.value.as_str()).collect();
        if let [scope, name] = names.as_slice()
            && let Some(scope) = scope.strip_prefix("@@")
        {
            return match scope.to_ascii_lowercase().as_str() {
                "session" | "local" => self.system_variable(false, name),
                "global" => self.system_variable(true, name),
                _ => Err(error::unknown_variable(&format!("{scope}.{name}"))),
            };
        }
        let shown = names.join(".");
        let Some(table) = self.table else {
            return Err(error::unknown_column(&shown, self.clause));
        };
        match names.as_slice() {
            [alias, name] if self.is_values_alias(alias) => {
                self.values_column(name).ok_or_else(|| error::unknown_column(&shown, self.clause))
            }
            [alias, name] if *alias == self.alias => self.own_column(table, name, &shown),
            [database, alias, name] if *alias == self.alias && *database == table.def.database => {
                self.own_column(table, name, &shown)
            }
            _ => Err(error::unknown_column(&shown, self.clause)),
        }
    }

    fn own_column(&self, table: &Table, name: &str, shown: &str) -> Result<Expr, SqlError> {
        let at = table.column(name).ok_or_else(|| error::unknown_column(shown, self.clause))?;
        Ok(Expr::Column(at))
    }

    fn is_values_alias(&self, alias: &str) -> bool {
        self.values_alias.as_deref() == Some(alias)
    }

    fn values_column(&self, name: &str) -> Option<Expr> {
        let at = self.table?.column(name)?;
        Some(Expr::Column(self.values_base? + at))
    }

    fn system_variable(&mut self, global: bool, name: &str) -> Result<Expr, SqlError> {
        let name = name.trim_matches('`').to_lowercase();
        if !crate::variables::is_known(&name) {
            return Err(error::unknown_variable(&name));
        }
        Ok(self.external(External::SystemVariable { global, name }))
    }

    /// The number of a value from outside.
    pub fn external(&mut self, external: External) -> Expr {
        let known = self.external_places.get(&external).copied();
        let at = known.unwrap_or_else(|| {
            self.external_places.insert(external.clone(), self.externals.len());
            self.externals.push(external);
            self.externals.len() - 1
        });
        // There are fewer tokens than this in any text that the protocol's packets carry; should
        // there be more, the numbers run into "no such value", which is NULL: refuse instead.
        match u16::try_from(at).ok().and_then(|at| at.checked_add(EXTERNAL_BASE)) {
            Some(number) => Expr::Column(number),
            None => Expr::Column(u16::MAX),
        }
    }

    /// The number of an aggregate function's result.
    ///
    /// # Errors
    /// 1111 where aggregate functions are not allowed.
    pub fn aggregate(&mut self, call: AggregateCall) -> Result<Expr, SqlError> {
        if !self.aggregates_allowed {
            return Err(error::make(1111, "HY000", "Invalid use of group function"));
        }
        let known = self.aggregates.iter().position(|c| *c == call);
        let at = known.unwrap_or_else(|| {
            self.aggregates.push(call);
            self.aggregates.len() - 1
        });
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        let limit = EXTERNAL_BASE - AGGREGATE_BASE;
        if at >= limit {
            return Err(error::not_supported("so many aggregate functions in one statement"));
        }
        Ok(Expr::Column(AGGREGATE_BASE + at))
    }

    /// Refuses a statement with more values from outside than can be numbered.
    ///
    /// # Errors
    /// 1390.
    pub fn check_limits(&self) -> Result<(), SqlError> {
        if self.externals.len() >= usize::from(u16::MAX - EXTERNAL_BASE) {
            let text = "Prepared statement contains too many placeholders";
            return Err(error::make(1390, "HY000", text));
        }
        Ok(())
    }
}

/// A collation by name. Those of MySQL that we do not have are refused, as what they would order
/// or find equal differs.
///
/// # Errors
/// 1273 for unknown names, 1235 for those that MySQL has.
pub fn collation_named(name: &str) -> Result<Collation, SqlError> {
    if let Some(found) = Collation::from_name(name) {
        return Ok(found);
    }
    match name.to_ascii_lowercase().as_str() {
        "utf8_general_ci" | "utf8mb3_general_ci" => Ok(Collation::Utf8mb4GeneralCi),
        "utf8_bin" | "utf8mb3_bin" => Ok(Collation::Utf8mb4Bin),
        lower if lower.starts_with("utf8") || lower.starts_with("latin1") => {
            Err(error::not_supported(&format!("collation {name}")))
        }
        _ => Err(error::make(1273, "HY000", &format!("Unknown collation: '{name}'"))),
    }
}
