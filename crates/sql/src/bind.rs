//! The binder: from the syntax tree to expressions and plans over the catalog, with MySQL's rules for names.
//!
//! Each column of a statement has a number of its own, so that no later step looks at names.

mod aliases;
mod calls;
pub mod change;
mod collations;
mod found;
pub mod from;
pub mod grouping;
mod hints;
mod items;
mod lazy;
mod literals;
mod notes;
mod operators;
pub mod query;
mod recursion;
pub(crate) mod row;
mod rows;
pub mod scope;
mod sets;
mod special;
mod subquery;
pub mod through;
mod variables;
pub mod view;
mod windows;

use crate::error;
use crate::expr::{EXTERNAL_BASE, External};
use crate::syntax::{Context, name};
use crate::table::Table;
use collations::Strength;
use lats_base::TableId;
use lats_engine::ir::{ApplyKind, ColumnId, Rel, SourceId, walk};
use lats_engine::rewrite::JoinOrder;
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{self, ExprId, Text};
use lats_values::{Collation, ColumnType, Expr, Look, SqlError, YearOperand};
use scope::{Block, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use literals::number;
pub use literals::{charset_collation, data_type, literal};
pub use operators::balanced;
pub(crate) use operators::hex_beside;

/// Nesting of expressions and queries within each other.
const DEPTH_MAX: usize = 640;

/// Where a column of a statement comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The table.
    pub source: SourceId,
    /// The position in the table.
    pub position: u16,
}

/// A column of a statement.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Where it comes from; none for what is computed.
    pub origin: Option<Origin>,
    /// The block that made it.
    pub block: u32,
    /// How its values are shown.
    pub look: Look,
    /// How strongly its texts hold to their collation, if it is computed.
    pub strength: Strength,
}

/// A mention of a table in a statement.
#[derive(Clone, Debug)]
pub struct Source {
    /// The table.
    pub table: Arc<Table>,
    /// Its name in the statement.
    pub alias: String,
    /// The number of its first column; the others follow.
    pub first: u32,
    /// What USE, FORCE and IGNORE INDEX say.
    pub hints: Vec<from::Hint>,
    /// The query block that mentions it.
    pub block: u32,
    /// It stands in a subquery or a derived table.
    pub is_inner: bool,
    /// It stands in a derived table.
    pub is_derived: bool,
}

/// Binds one statement.
pub struct Binder<'a> {
    pub(crate) context: Context<'a>,
    /// The part of the statement, for errors.
    pub(crate) clause: &'static str,
    /// Values that the statement takes from outside.
    pub externals: Vec<External>,
    external_places: BTreeMap<External, usize>,
    /// The types of these values, as far as they are known.
    pub(crate) external_types: &'a [ColumnType],
    /// The statement's columns, by their numbers, and beside them their types.
    pub columns: Vec<Column>,
    pub(crate) types: Vec<ColumnType>,
    /// The statement's tables.
    pub sources: Vec<Source>,
    /// The query blocks that are being bound, the innermost last.
    blocks: Vec<Block>,
    next_block: u32,
    /// The common tables that can be named, the innermost last.
    commons: Vec<query::Common<'a>>,
    next_recursion: u32,
    /// Columns that aggregate functions give.
    pub(crate) call_columns: BTreeSet<ColumnId>,
    /// Columns of constant texts, which have the connection's collation: that of any other column is stronger.
    constant_texts: BTreeSet<ColumnId>,
    /// Columns of results that are rounded to the digits of their type: they come from exact quotients.
    quotients: BTreeSet<ColumnId>,
    /// Blocks of which only it counts whether they have some row: their groups matter only for aggregate functions.
    groups_dropped: BTreeSet<u32>,
    /// Within ON DUPLICATE KEY UPDATE: VALUES(column) is the table's column plus this.
    pub(crate) values_base: Option<u32>,
    /// What was known in the last query that stands in no other.
    query_scope: Scope,
    /// Within ON DUPLICATE KEY UPDATE: the names of the table that is written.
    target_scope: Scope,
    /// The select list is bound for its names: keys of groups are not known yet.
    names_only: bool,
    /// What the statement says about the order of joins.
    pub(crate) order: JoinOrder,
    /// There are columns of YEAR.
    has_years: bool,
    /// What makes places in the text of a view others than those in the statement.
    place_base: i64,
    /// There are subqueries.
    has_queries: bool,
    /// The next SELECT is the statement, and counts all of its rows.
    counts_all: bool,
    /// LIMIT of a set operation whose rows are all counted.
    pub(crate) counted: Option<found::Counted>,
    /// The variables that the statement assigns in expressions: reading one gives what was assigned last.
    /// How often it names each of them comes with it.
    assigned_variables: BTreeMap<String, usize>,
    /// Where such variables have been named so far, in the order in which that was bound.
    variable_mentions: Vec<(String, Text)>,
    /// It compares variables with texts: their types matter for the plan.
    pub(crate) compares_variables: std::cell::Cell<bool>,
    depth: usize,
    /// The next query or body is that of a statement or of a view, without an order: UNION ALL sends its rows as they come.
    streams: bool,
    /// The views that were named, also by others.
    pub views: Vec<view::ViewUse>,
    /// The views that are being bound.
    within: Vec<lats_base::TableId>,
    /// What names stand for, if somebody wants to know.
    pub notes: Option<Box<notes::Notes>>,
}

impl<'a> Binder<'a> {
    /// For expressions without tables, until tables are added.
    pub fn new(context: &Context<'a>) -> Self {
        Self {
            context: *context,
            clause: "field list",
            externals: Vec::new(),
            external_places: BTreeMap::new(),
            external_types: &[],
            columns: Vec::new(),
            types: Vec::new(),
            sources: Vec::new(),
            blocks: Vec::from([Block::new(0)]),
            next_block: 1,
            commons: Vec::new(),
            next_recursion: 0,
            call_columns: BTreeSet::new(),
            constant_texts: BTreeSet::new(),
            quotients: BTreeSet::new(),
            groups_dropped: BTreeSet::new(),
            values_base: None,
            query_scope: Scope::default(),
            target_scope: Scope::default(),
            names_only: false,
            order: JoinOrder::default(),
            has_years: false,
            place_base: 0,
            has_queries: context.tree().queries() > 0,
            counts_all: false,
            counted: None,
            assigned_variables: variables::assigned(context.tree()),
            variable_mentions: Vec::new(),
            compares_variables: std::cell::Cell::new(false),
            depth: 0,
            streams: false,
            views: Vec::new(),
            within: Vec::new(),
            notes: None,
        }
    }

    /// The same, where the types of the values from outside are known.
    #[must_use]
    pub fn with_external_types(mut self, types: &'a [ColumnType]) -> Self {
        self.external_types = types;
        self
    }

    pub(crate) fn tree(&self) -> &'a Tree {
        &self.context.parsed.tree
    }

    /// The number of `?` in the statement.
    pub fn parameters(&self) -> u16 {
        u16::try_from(self.tree().parameters).unwrap_or(u16::MAX)
    }

    /// A name in the tree.
    pub(crate) fn name(&self, text: Text) -> Result<&'a str, SqlError> {
        name(self.tree(), text)
    }

    pub(crate) fn block(&mut self) -> &mut Block {
        // There is always one: the first is never popped.
        let last = self.blocks.len().saturating_sub(1);
        &mut self.blocks[last]
    }

    pub(crate) fn block_ref(&self) -> &Block {
        &self.blocks[self.blocks.len().saturating_sub(1)]
    }

    pub(crate) fn new_block_number(&mut self) -> u32 {
        self.next_block += 1;
        self.next_block - 1
    }

    /// A new column of the innermost block.
    pub(crate) fn column(
        &mut self,
        name: &str,
        column_type: ColumnType,
        origin: Option<Origin>,
    ) -> ColumnId {
        let block = self.block().number;
        let (name, look, strength) = (name.to_owned(), Look::default(), Strength::Coercible);
        self.columns.push(Column { name, origin, block, look, strength });
        self.types.push(column_type);
        ColumnId(u32::try_from(self.columns.len() - 1).unwrap_or(u32::MAX))
    }

    /// How values of an expression are shown.
    pub(crate) fn look_of(&self, expr: &Expr) -> Look {
        let known = |number: u32| {
            let column = self.columns.get(number as usize)?;
            (column.look.is_expression || column.look.decimals.is_some()).then_some(column.look)
        };
        Look::of(expr, &self.types, &known)
    }

    /// Says what the values of a column are, which are those of an expression.
    pub(crate) fn describe(&mut self, column: ColumnId, expr: &Expr) {
        let (look, strength) = (self.look_of(expr), self.strength_of(expr));
        self.set_look(column, look);
        self.set_strength(column, strength);
    }

    /// Says how a column's values are shown.
    pub(crate) fn set_look(&mut self, column: ColumnId, look: Look) {
        if let Some(column) = self.columns.get_mut(column.0 as usize) {
            column.look = look;
        }
    }

    /// Makes a table's columns the next ones, and their names known in the innermost block.
    pub fn add_table(&mut self, table: &Arc<Table>, alias: &str) -> SourceId {
        let source = self.add_source(table, alias, Vec::new());
        let scope = self.scope_of(source);
        self.block().scope = scope;
        source
    }

    pub(crate) fn add_source(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        hints: Vec<from::Hint>,
    ) -> SourceId {
        let source = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        let first = u32::try_from(self.columns.len()).unwrap_or(u32::MAX);
        for (position, (def, column_type)) in
            (0u16..).zip(table.def.columns.iter().zip(&table.types))
        {
            self.column(&def.name, column_type.clone(), Some(Origin { source, position }));
        }
        self.has_years |= table.types.iter().any(|of| of.kind == lats_values::TypeKind::Year);
        let block = self.block().number;
        let (table, alias) = (Arc::clone(table), alias.to_owned());
        let is_inner = self.blocks.len() > 1;
        let is_derived = self.blocks.iter().any(|block| block.hidden > 0);
        self.sources.push(Source { table, alias, first, hints, block, is_inner, is_derived });
        source
    }

    pub(crate) fn source(&self, source: SourceId) -> &Source {
        &self.sources[source.0 as usize]
    }

    /// The names of a table's columns.
    fn scope_of(&self, source: SourceId) -> Scope {
        let source = self.source(source);
        let table = &source.table;
        let names = table.visible().map(|at| {
            let id = ColumnId(source.first + u32::from(at));
            (table.column_name(at).to_owned(), id)
        });
        Scope::of_table(Some(&table.def.database), &source.alias, names.collect())
    }

    /// Makes these names the columns 0, 1, …, of a row.
    pub fn bind_names(&mut self, names: &[(String, ColumnType)]) {
        let mut columns = Vec::with_capacity(names.len());
        for (name, column_type) in names {
            columns.push((name.clone(), self.column(name, column_type.clone(), None)));
        }
        self.block().scope = Scope::of_table(None, "", columns);
    }

    /// In an upsert: the columns of the new row follow those of the table, and have this alias. Beside them the columns that
    /// can be named.
    pub fn add_new_row(
        &mut self,
        (table, visible): (&Arc<Table>, &[(String, u16)]),
        alias: Option<(&str, &[String])>,
    ) {
        let source = SourceId(0);
        let base = u32::try_from(self.columns.len()).unwrap_or(u32::MAX);
        self.values_base = Some(base);
        self.target_scope = self.block().scope.clone();
        for (position, (def, column_type)) in
            (0u16..).zip(table.def.columns.iter().zip(&table.types))
        {
            self.column(&def.name, column_type.clone(), Some(Origin { source, position }));
        }
        let Some((alias, names)) = alias else { return };
        let named = visible.iter().enumerate().map(|(nth, (name, at))| {
            let name = names.get(nth).unwrap_or(name);
            (name.clone(), ColumnId(base + u32::from(*at)))
        });
        let scope = Scope::of_table(None, alias, named.collect());
        self.block().scope.add_qualified(scope, !names.is_empty());
    }

    /// Makes the columns that the last query of the statement has seen known beside those that are.
    pub fn add_query_scope(&mut self) {
        let scope = std::mem::take(&mut self.query_scope);
        self.block().scope.add_qualified(scope, true);
    }

    /// True if expressions of the outermost block have subqueries.
    pub fn has_subqueries(&self) -> bool {
        self.blocks.iter().any(|block| !block.below.is_empty() || !block.above.is_empty())
    }

    /// Binds an expression of this clause.
    ///
    /// # Errors
    /// What MySQL says, or 1235.
    pub fn bind_in(&mut self, clause: &'static str, id: ExprId) -> Result<Expr, SqlError> {
        self.in_clause(clause, |binder| binder.bind(id))
    }

    /// Binds a condition of this clause.
    ///
    /// # Errors
    /// What MySQL says, or 1235.
    pub(crate) fn bind_terms_in(
        &mut self,
        clause: &'static str,
        id: ExprId,
    ) -> Result<Expr, SqlError> {
        self.in_clause(clause, |binder| binder.terms(id))
    }

    fn in_clause(
        &mut self,
        clause: &'static str,
        work: impl FnOnce(&mut Self) -> Result<Expr, SqlError>,
    ) -> Result<Expr, SqlError> {
        let before = std::mem::replace(&mut self.clause, clause);
        let bound = work(self);
        self.clause = before;
        let mut bound = bound?;
        self.adapt_years(&mut bound);
        Ok(bound)
    }

    /// What is compared with YEAR columns is read as a year.
    pub(crate) fn adapt_years(&mut self, bound: &mut Expr) {
        if !self.has_years {
            return;
        }
        let types = std::mem::take(&mut self.types);
        lats_values::adapt_years(bound, &types, &mut |number| {
            let Some(at) = number.checked_sub(EXTERNAL_BASE) else {
                return match self.is_of_subquery(ColumnId(number)) {
                    true => YearOperand::Constant,
                    false => YearOperand::Row,
                };
            };
            match self.externals.get(at as usize) {
                Some(External::Parameter(at)) => {
                    YearOperand::Year(self.external(External::YearParameter(*at)))
                }
                _ => YearOperand::Row,
            }
        });
        self.types = types;
    }

    /// True if a column is the value of a subquery without tables: it is as good as a constant.
    fn is_of_subquery(&self, column: ColumnId) -> bool {
        let block = self.block_ref();
        let mut pending = block.below.iter().chain(&block.above);
        let own = pending.find(|pending| pending.columns().contains(&column));
        own.is_some_and(|pending| {
            let is_value = matches!(pending.kind, ApplyKind::Single { .. });
            is_value && pending.needs().is_empty() && is_constant(&pending.rel)
        })
    }

    /// Binds an expression.
    ///
    /// # Errors
    /// What MySQL says, or 1235.
    pub fn bind(&mut self, id: ExprId) -> Result<Expr, SqlError> {
        self.enter()?;
        let bound = self.bind_node(id);
        self.depth -= 1;
        bound
    }

    fn enter(&mut self) -> Result<(), SqlError> {
        self.context.bounds.check()?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(error::make(1436, "HY000", "Thread stack overrun: nested too deeply"));
        }
        Ok(())
    }

    fn bind_node(&mut self, id: ExprId) -> Result<Expr, SqlError> {
        use tree::Expr as E;
        match *self.tree().expr(id) {
            E::Column { .. } => self.column_reference(id),
            E::Parameter(number) => self.parameter(number),
            E::UserVariable(text) => self.user_variable(text),
            E::SystemVariable { scope, component, name } => {
                self.system_variable(scope, component, name)
            }
            E::Unary(op, arg) => self.unary(op, arg),
            E::Binary(op, left, right) => self.binary(id, op, left, right),
            E::And(list) => self.chain(list, lats_values::BinaryOp::And),
            E::Or(list) => self.chain(list, lats_values::BinaryOp::Or),
            E::Is { value, is_not, truth } => self.is(value, is_not, truth),
            E::In { value, is_not, list } => self.in_list(value, is_not, list),
            E::Between { value, is_not, bounds } => self.between(value, is_not, bounds),
            E::Like { value, is_not, pattern } => self.like(value, is_not, pattern),
            E::Case { operand, whens, otherwise } => self.case(operand, whens, otherwise),
            E::Collate { value, collation } => {
                let collation = collation_named(self.name(collation)?)?;
                Ok(Expr::Collate { arg: Box::new(self.bind(value)?), collation })
            }
            E::Aggregate(call) => self.aggregate_or_window(id, call),
            E::Subquery(query) => self.scalar_subquery(query),
            E::Exists(query) => self.exists(query),
            E::InQuery { value, is_not, query } => self.in_query(value, is_not, query),
            E::Quantified { op, left, is_all, query } => self.quantified(op, left, is_all, query),
            E::Row { .. } => Err(operand_columns(1)),
            _ => match literal(self.tree(), id)? {
                Some(value) => Ok(Expr::Literal(value)),
                None => self.special(id),
            },
        }
    }

    fn parameter(&mut self, number: u32) -> Result<Expr, SqlError> {
        match u16::try_from(number) {
            Ok(number) if number < u16::MAX => Ok(self.external(External::Parameter(number))),
            _ => Err(too_many_placeholders()),
        }
    }

    fn system_variable(
        &mut self,
        scope: tree::Scope,
        component: Text,
        text: Text,
    ) -> Result<Expr, SqlError> {
        let name = self.name(text)?.to_lowercase();
        if component.is_some() {
            let component = self.name(component)?;
            return Err(error::unknown_variable(&format!("{component}.{name}")));
        }
        if !crate::variables::is_known(&name) {
            return Err(error::unknown_variable(&name));
        }
        let global = scope == tree::Scope::Global;
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
        Expr::Column(EXTERNAL_BASE + u32::try_from(at).unwrap_or(0))
    }

    /// The type of an expression.
    pub fn type_of(&self, expr: &Expr) -> ColumnType {
        type_with(expr, &self.types, self.external_types)
    }

    /// Refuses a statement with more placeholders than the protocol can number, and one that names a temporary table twice, which
    /// MySQL cannot open again.
    ///
    /// # Errors
    /// 1390, or 1137.
    pub fn check_limits(&self) -> Result<(), SqlError> {
        self.check_temporaries()?;
        if self.tree().parameters > u32::from(u16::MAX) {
            return Err(too_many_placeholders());
        }
        Ok(())
    }

    fn check_temporaries(&self) -> Result<(), SqlError> {
        let base = self.context.base;
        let is_temporary = |source: &&Source| {
            base.tables.get(&source.table.def.id).and_then(|t| t.owner()).is_some()
        };
        let mut seen: BTreeMap<TableId, &str> = BTreeMap::new();
        for source in self.sources.iter().filter(is_temporary) {
            if let Some(alias) = seen.insert(source.table.def.id, &source.alias) {
                let text = format!("Can't reopen table: '{alias}'");
                return Err(error::make(1137, "HY000", &text));
            }
        }
        Ok(())
    }
}

pub use lats_engine::ir::types::{type_with, unknown as unknown_type};

fn too_many_placeholders() -> SqlError {
    error::make(1390, "HY000", "Prepared statement contains too many placeholders")
}

/// 1241: an operand has not as many columns as it should.
pub(crate) fn operand_columns(wanted: usize) -> SqlError {
    error::make(1241, "21000", &format!("Operand should contain {wanted} column(s)"))
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

/// True if a plan reads no tables, and always gives the same.
fn is_constant(rel: &Rel) -> bool {
    let reads = matches!(rel, Rel::Scan(_) | Rel::Working { .. });
    let scalars = rel.scalars();
    !reads
        && !scalars
            .into_iter()
            .any(|scalar| walk::is_volatile(scalar) || crate::expr::has_externals(scalar))
        && rel.inputs().into_iter().all(is_constant)
}
