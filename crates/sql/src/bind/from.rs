//! FROM: tables, derived tables and joins.

use super::scope::{Aggregates, AliasUse, Named, Pending, Scope, Visible, ambiguous, same_name};
use super::{Binder, lazy};
use crate::access::{indexes, refuses};
use crate::error;
use crate::syntax::{optional_name, split_name};
use crate::table::{Table, find};
use lats_base::planted::{QueryBug, errs};
use lats_engine::ir::{ApplyKind, ColumnId, JoinKind, Rel, Scalar, Scan, SourceId, walk};
use lats_mysql_syntax::tree::{
    self, IndexHintKind, JoinCondition, QueryId, TableId, TableName, Text,
};
use lats_values::SqlError;
use std::sync::Arc;

/// USE, FORCE or IGNORE INDEX.
#[derive(Clone, Debug)]
pub struct Hint {
    /// Which.
    pub kind: IndexHintKind,
    /// The indexes.
    pub indexes: Vec<String>,
}

/// A part of a FROM clause: its rows and its names.
pub(crate) type Part = (Rel, Scope);

/// Tables that a query may join, as in MySQL.
const TABLES_MAX: usize = 61;

impl Binder<'_> {
    /// Tables with commas between them; their names become those of the block.
    pub(super) fn tables_of(&mut self, tables: &[TableId]) -> Result<Rel, SqlError> {
        let first = self.sources.len();
        let mut all: Option<Part> = None;
        for table in tables {
            let part = self.beside(all.as_ref(), *table)?;
            all = Some(match all {
                None => part,
                Some(left) => cross(left, part)?,
            });
        }
        if self.sources.len() - first > TABLES_MAX {
            let text = format!("Too many tables; MySQL can only use {TABLES_MAX} tables in a join");
            return Err(error::make(1116, "HY000", &text));
        }
        let (rel, scope) = all.unwrap_or_else(|| (Rel::one_row(), Scope::default()));
        self.block().scope = scope;
        Ok(rel)
    }

    /// A table whose derived tables see what stands to its left, if they are LATERAL.
    fn beside(&mut self, left: Option<&Part>, table: TableId) -> Result<Part, SqlError> {
        let before = std::mem::take(&mut self.block().scope);
        let outer = match left {
            Some((_, scope)) => {
                // The names further left stay known, too.
                let mut all = before.clone();
                all.tables.extend(scope.tables.iter().cloned());
                all.visible.extend(scope.visible.iter().cloned());
                all
            }
            None => before.clone(),
        };
        self.block().scope = outer;
        let part = self.table_reference(table);
        self.block().scope = before;
        part
    }

    fn table_reference(&mut self, table: TableId) -> Result<Part, SqlError> {
        self.enter()?;
        let part = match self.tree().table(table) {
            tree::Table::Named { name, partitions, alias, hints } => {
                self.named_table(name, partitions, *alias, hints)
            }
            tree::Table::Derived { is_lateral, query, alias, columns, .. } => {
                self.derived(*query, *is_lateral, *alias, columns)
            }
            tree::Table::Json { .. } => Err(error::not_supported("JSON_TABLE")),
            tree::Table::Join { kind, left, right, condition } => {
                self.join(table, *kind, (*left, *right), condition)
            }
            tree::Table::Cross(tables) => {
                let mut all: Option<Part> = None;
                for table in tables {
                    let part = self.beside(all.as_ref(), *table)?;
                    all = Some(match all {
                        None => part,
                        Some(left) => cross(left, part)?,
                    });
                }
                all.ok_or_else(|| error::internal("tables were expected"))
            }
        };
        self.depth -= 1;
        part
    }

    pub(super) fn named_table(
        &mut self,
        table: &TableName,
        partitions: &[Text],
        alias: Text,
        hints: &[tree::IndexHint],
    ) -> Result<Part, SqlError> {
        if !partitions.is_empty() {
            return Err(error::not_supported("PARTITION (…)"));
        }
        let alias = optional_name(self.tree(), alias)?;
        if table.schema.is_none() {
            let name = self.name(table.name)?;
            if let Some(found) = self.common_table(name, alias.unwrap_or(name))? {
                return Ok(found);
            }
        }
        let (database, name) = split_name(self.tree(), table, self.context.database)?;
        let alias = alias.unwrap_or(&name).to_owned();
        self.note_table(table, &database, &name, &alias);
        if let Some(view) = self.context.view(&database, &name) {
            if let Some(index) = hints.iter().find_map(|hint| hint.indexes.first()) {
                return Err(no_key(self.name(*index)?, &name));
            }
            return self.view(view, &alias);
        }
        let found = Arc::new(Table::new(find(self.context.catalog, &database, &name)?));
        let mut hints = self.index_hints(&found, hints)?;
        hints.extend(self.hinted_indexes(&found, &alias));
        let source = self.add_source(&found, &alias, hints);
        let scope = self.scope_of(source);
        Ok((self.scan(source), scope))
    }

    fn index_hints(
        &self,
        table: &Arc<Table>,
        hints: &[tree::IndexHint],
    ) -> Result<Vec<Hint>, SqlError> {
        let mut found = Vec::with_capacity(hints.len());
        for hint in hints {
            let mut indexes = Vec::with_capacity(hint.indexes.len());
            for index in &hint.indexes {
                let name = self.name(*index)?;
                let known = name.eq_ignore_ascii_case("PRIMARY")
                    || table.def.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name));
                if !known {
                    return Err(no_key(name, &table.def.name));
                }
                indexes.push(name.to_owned());
            }
            found.push(Hint { kind: hint.kind, indexes });
        }
        Ok(found)
    }

    /// The rows of a table.
    pub(crate) fn scan(&self, source: SourceId) -> Rel {
        let found = self.source(source);
        let id = |at: &u16| ColumnId(found.first + u32::from(*at));
        let count = u16::try_from(found.table.types.len()).unwrap_or(u16::MAX);
        let columns: Vec<ColumnId> = (0..count).map(|at| id(&at)).collect();
        let def = &found.table.def;
        let unique = def.unique_indexes().filter(|(_, unique)| unique.builder.is_none());
        let keys = std::iter::once(&def.primary_key)
            .chain(unique.map(|(index, _)| &index.columns))
            .map(|key| key.iter().map(id).collect())
            .collect();
        let (first, width) = (ColumnId(found.first), u32::from(count));
        let indexes = indexes(&found.table)
            .filter(|(index, _)| !refuses(&found.hints, &found.table, *index))
            .map(|(_, columns)| columns.iter().map(id).collect())
            .collect();
        Rel::Scan(Box::new(Scan { source, first, width, columns, keys, indexes, condition: None }))
    }

    fn derived(
        &mut self,
        query: QueryId,
        is_lateral: bool,
        alias: Text,
        columns: &[Text],
    ) -> Result<Part, SqlError> {
        let Some(alias) = optional_name(self.tree(), alias)? else {
            return Err(error::make(1248, "42000", "Every derived table must have its own alias"));
        };
        let clause = std::mem::replace(&mut self.clause, "field list");
        let bound = self.bind_query(query, usize::from(!is_lateral));
        self.clause = clause;
        let bound = bound?;
        let names = self.column_names(columns)?;
        let scope = self.export(alias, &bound.outputs, names.as_deref())?;
        Ok((Self::apart(bound.rel), scope))
    }

    /// Names in parentheses behind an alias; none without.
    pub(super) fn column_names(&self, columns: &[Text]) -> Result<Option<Vec<String>>, SqlError> {
        if columns.is_empty() {
            return Ok(None);
        }
        let names = columns.iter().map(|column| self.name(*column).map(str::to_owned));
        names.collect::<Result<_, _>>().map(Some)
    }

    /// A query's columns as those of a table of the innermost block.
    pub(super) fn export(
        &mut self,
        alias: &str,
        outputs: &[(ColumnId, String)],
        names: Option<&[String]>,
    ) -> Result<Scope, SqlError> {
        if names.is_some_and(|names| names.len() != outputs.len()) {
            let text = "In definition of view, derived table or common table expression, SELECT list and column names list have \
                        different column counts";
            return Err(error::make(1353, "HY000", text));
        }
        let block = self.block().number;
        let mut columns: Vec<(String, ColumnId)> = Vec::with_capacity(outputs.len());
        for (at, (id, name)) in outputs.iter().enumerate() {
            let name = names.and_then(|names| names.get(at)).unwrap_or(name);
            if columns.iter().any(|(other, _)| same_name(other, name)) {
                let text = format!("Duplicate column name '{name}'");
                return Err(error::make(1060, "42S21", &text));
            }
            if let Some(column) = self.columns.get_mut(id.0 as usize) {
                column.block = block;
            }
            // Out here it is a column like others.
            self.call_columns.remove(id);
            columns.push((name.clone(), *id));
        }
        Ok(Scope::of_table(None, alias, columns))
    }

    fn join(
        &mut self,
        id: TableId,
        kind: tree::JoinKind,
        (left, right): (TableId, TableId),
        condition: &JoinCondition,
    ) -> Result<Part, SqlError> {
        use tree::JoinKind as K;
        let left = self.table_reference(left)?;
        let right = self.beside(Some(&left), right)?;
        let natural =
            matches!(kind, K::Natural | K::NaturalInner | K::NaturalLeft | K::NaturalRight);
        self.order.is_fixed |= kind == K::Straight;
        let turned = matches!(kind, K::Right | K::NaturalRight);
        let outer = turned || matches!(kind, K::Left | K::NaturalLeft);
        let merged = match condition {
            JoinCondition::Using(names) => {
                let names: Result<Vec<&str>, _> = names.iter().map(|n| self.name(*n)).collect();
                Some(names?.into_iter().map(str::to_owned).collect())
            }
            _ if natural => Some(common_names(&left.1, &right.1)?),
            _ => None,
        };
        let (mut scope, mut on) = match &merged {
            Some(names) => {
                self.note_join(id, &left.1, &right.1, names);
                self.merge(&left.1, &right.1, names, turned)?
            }
            None => (left.1.clone().join(right.1.clone())?, None),
        };
        let mut pending = Vec::new();
        if let JoinCondition::On(id) = condition {
            let before = std::mem::replace(&mut self.block().scope, scope);
            let bound = self.condition("on clause", *id);
            scope = std::mem::replace(&mut self.block().scope, before);
            let (bound, below) = bound?;
            (on, pending) = (Some(bound), below);
        }
        if !outer {
            let block = self.block();
            block.joined.extend(on.clone());
            block.in_joined.extend(pending.iter().cloned());
        }
        let free = walk::free_columns(&right.0);
        if turned && left.0.columns().iter().any(|column| free.contains(column)) {
            let text = "INNER or LEFT JOIN must be used for LATERAL references made by this table";
            return Err(error::make(3809, "HY000", text));
        }
        let (rel, nulls) = match turned {
            false => (join_rel(outer, left.0, right.0, on, pending), right.1),
            true => (join_rel(outer, right.0, left.0, on, pending), left.1),
        };
        if outer && !errs(QueryBug::OuterSideKeepsNotNull) {
            for (_, id) in nulls.tables.iter().flat_map(|table| &table.columns) {
                if let Some(column_type) = self.types.get_mut(id.0 as usize) {
                    column_type.nullable = true;
                }
            }
        }
        Ok((rel, scope))
    }

    /// A condition of this block without aggregate functions, and the subqueries in it.
    pub(super) fn condition(
        &mut self,
        clause: &'static str,
        id: tree::ExprId,
    ) -> Result<(Scalar, Vec<Pending>), SqlError> {
        let block = self.block();
        let aggregates = std::mem::replace(&mut block.aggregates, Aggregates::Refused);
        let alias_use = std::mem::replace(&mut block.alias_use, AliasUse::No);
        let windows = std::mem::replace(&mut block.windows_allowed, false);
        let kept = std::mem::take(&mut block.below);
        let guards = std::mem::take(&mut block.guards);
        let bound = self.bind_terms_in(clause, id);
        let block = self.block();
        block.guards = guards;
        (block.aggregates, block.alias_use) = (aggregates, alias_use);
        block.windows_allowed = windows;
        let pending = std::mem::replace(&mut block.below, kept);
        Ok((super::hex_beside(bound?, true), pending))
    }

    /// USING and NATURAL: columns of one name become one column.
    fn merge(
        &self,
        left: &Scope,
        right: &Scope,
        names: &[String],
        turned: bool,
    ) -> Result<(Scope, Option<Scalar>), SqlError> {
        let mut terms = Vec::with_capacity(names.len());
        let mut pairs = Vec::with_capacity(names.len());
        for name in names {
            let find = |scope: &Scope| {
                let found = scope.find((None, None, name), "from clause")?;
                found.ok_or_else(|| error::unknown_column(name, "from clause"))
            };
            let (a, b) = (find(left)?, find(right)?);
            let equal = lats_values::BinaryOp::Equal;
            self.check_collations(equal, &a.scalar(), &b.scalar())?;
            terms.push(self.combine(equal, a.scalar(), b.scalar()));
            pairs.push((name, a, b));
        }
        let tables = left.clone().join(right.clone())?.tables;
        let is_merged = |v: &&Visible| !names.iter().any(|name| same_name(name, &v.name));
        // MySQL turns RIGHT JOIN round, columns included. The merged columns come first, in the order of the first side.
        let [first, second] = if turned { [right, left] } else { [left, right] };
        let position = |name: &str| first.visible.iter().position(|v| same_name(&v.name, name));
        if !errs(QueryBug::UsingInListedOrder) {
            pairs.sort_by_key(|(name, ..)| position(name));
        }
        let mut visible: Vec<Visible> = pairs
            .iter()
            .map(|(name, a, b)| {
                let of_right = turned && !errs(QueryBug::UsingShowsLeftOfRightJoin);
                let id = if of_right { *b } else { *a };
                let shown = position(name).map_or(*name, |at| &first.visible[at].name);
                Visible { name: shown.clone(), id }
            })
            .collect();
        for side in [first, second] {
            visible.extend(side.visible.iter().filter(is_merged).cloned());
        }
        let on = super::balanced(terms, lats_values::BinaryOp::And);
        Ok((Scope { tables, visible }, on))
    }
}

fn no_key(name: &str, table: &str) -> SqlError {
    error::make(1176, "42000", &format!("Key '{name}' doesn't exist in table '{table}'"))
}

/// The names that both sides have.
fn common_names(left: &Scope, right: &Scope) -> Result<Vec<String>, SqlError> {
    let mut names: Vec<String> = Vec::new();
    for visible in &left.visible {
        let count = |scope: &Scope| {
            scope.visible.iter().filter(|v| same_name(&v.name, &visible.name)).count()
        };
        match (count(left), count(right)) {
            (_, 0) => {}
            (1, 1) => names.push(visible.name.clone()),
            _ => return Err(ambiguous(None, &visible.name, "from clause")),
        }
    }
    Ok(names)
}

/// Both parts, one beside the other.
pub(super) fn cross(left: Part, right: Part) -> Result<Part, SqlError> {
    let scope = left.1.join(right.1)?;
    Ok((join_rel(false, left.0, right.0, None, Vec::new()), scope))
}

/// A join; an Apply if the right side takes columns of the left one, or if the condition has subqueries.
fn join_rel(outer: bool, left: Rel, right: Rel, on: Option<Scalar>, pending: Vec<Pending>) -> Rel {
    let kind = if outer { JoinKind::Left } else { JoinKind::Inner };
    let (lefts, free) = (left.columns(), walk::free_columns(&right));
    let takes_left = lefts.iter().any(|column| free.contains(column));
    let (left, right) = (Box::new(left), Box::new(right));
    if pending.is_empty() && !takes_left {
        return Rel::Join { kind, left, right, on };
    }
    let right = Box::new(lazy::filtered(*right, on, pending));
    Rel::Apply { kind: ApplyKind::Join(kind), left, right, on: None, when: None }
}

/// A table of a scope, by its name.
pub(super) fn table_named<'s>(
    scope: &'s Scope,
    database: Option<&str>,
    alias: &str,
) -> Option<&'s Named> {
    let mut tables = scope.tables.iter();
    tables.find(|t| t.alias == alias && database.is_none_or(|d| t.database.as_deref() == Some(d)))
}
