//! Which names are known where.

use crate::error;
use lats_engine::ir::{Call, ColumnId, Rel, Scalar, walk};
use lats_mysql_syntax::tree::QueryId;
use lats_values::SqlError;
use std::collections::BTreeSet;

/// A table's name and its columns' names.
#[derive(Clone, Debug)]
pub struct Named {
    /// The database; none for derived tables.
    pub database: Option<String>,
    /// The alias.
    pub alias: String,
    /// The columns.
    pub columns: Vec<(String, ColumnId)>,
}

/// A name that is known without a table before it.
#[derive(Clone, Debug)]
pub struct Visible {
    /// The name.
    pub name: String,
    /// The column.
    pub id: ColumnId,
}

/// The names of a FROM clause, or of a part of it.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The tables.
    pub tables: Vec<Named>,
    /// The columns in the order of `*`.
    pub visible: Vec<Visible>,
}

impl Scope {
    /// One table's.
    pub fn of_table(database: Option<&str>, alias: &str, columns: Vec<(String, ColumnId)>) -> Self {
        let visible =
            columns.iter().map(|(name, id)| Visible { name: name.clone(), id: *id }).collect();
        let (database, alias) = (database.map(str::to_owned), alias.to_owned());
        Self { tables: Vec::from([Named { database, alias, columns }]), visible }
    }

    /// Both, one behind the other.
    ///
    /// # Errors
    /// 1066 for two tables of one name.
    pub fn join(mut self, other: Self) -> Result<Self, SqlError> {
        for table in &other.tables {
            let same = |t: &Named| {
                t.alias == table.alias
                    && (t.database == table.database
                        || t.database.is_none()
                        || table.database.is_none())
            };
            if self.tables.iter().any(same) {
                let text = format!("Not unique table/alias: '{}'", table.alias);
                return Err(error::make(1066, "42000", &text));
            }
        }
        self.tables.extend(other.tables);
        self.visible.extend(other.visible);
        Ok(self)
    }

    /// Adds a table whose columns need its name before them, unless they have names of their own.
    pub fn add_qualified(&mut self, other: Self, also_visible: bool) {
        self.tables.extend(other.tables);
        if also_visible {
            self.visible.extend(other.visible);
        }
    }

    /// The column with this name, if there is one.
    ///
    /// # Errors
    /// 1052 for more than one; the clause is for the message.
    pub fn find(
        &self,
        (database, table, name): (Option<&str>, Option<&str>, &str),
        clause: &str,
    ) -> Result<Option<ColumnId>, SqlError> {
        let mut found = None;
        let mut note = |id: ColumnId| match found {
            Some(other) if other != id => Err(ambiguous(table, name, clause)),
            _ => {
                found = Some(id);
                Ok(())
            }
        };
        let Some(table) = table else {
            for visible in self.visible.iter().filter(|v| same_name(&v.name, name)) {
                note(visible.id)?;
            }
            return Ok(found);
        };
        let fits = |t: &&Named| {
            t.alias == table && database.is_none_or(|d| t.database.as_deref() == Some(d))
        };
        for named in self.tables.iter().filter(fits) {
            for (_, id) in named.columns.iter().filter(|(n, _)| same_name(n, name)) {
                note(*id)?;
            }
        }
        Ok(found)
    }
}

/// 1052.
pub fn ambiguous(table: Option<&str>, name: &str, clause: &str) -> SqlError {
    let shown = table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"));
    error::make(1052, "23000", &format!("Column '{shown}' in {clause} is ambiguous"))
}

/// Names of columns are the same whatever their case.
pub fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// A subquery whose column stands in an expression that is not placed yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The right side of the Apply.
    pub rel: Rel,
    /// What it gives.
    pub kind: lats_engine::ir::ApplyKind,
    /// The condition of a mark.
    pub on: Option<Scalar>,
    /// Where this is not true, nobody looks at its columns.
    pub when: Option<Scalar>,
}

impl Pending {
    /// The columns that it makes.
    pub fn columns(&self) -> Vec<ColumnId> {
        self.kind.made()
    }

    /// True if it makes one of these columns.
    pub fn makes(&self, columns: &BTreeSet<ColumnId>) -> bool {
        self.columns().iter().any(|column| columns.contains(column))
    }

    /// The columns that it takes from the row.
    pub fn needs(&self) -> BTreeSet<ColumnId> {
        let mut needs = BTreeSet::new();
        self.on.iter().for_each(|on| walk::add_columns(on, &mut needs));
        self.rel.columns().iter().for_each(|column| {
            needs.remove(column);
        });
        needs.extend(walk::free_columns(&self.rel));
        self.when.iter().for_each(|when| walk::add_columns(when, &mut needs));
        needs
    }
}

/// Which names of the select list an expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasUse {
    /// None.
    No,
    /// None itself, but subqueries in it may (the select list).
    Within,
    /// Columns of the tables come first (GROUP BY, and within expressions of ORDER BY).
    Last,
    /// The select list comes first (HAVING).
    First,
}

/// Where aggregate functions may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregates {
    /// Nowhere: 1111.
    Refused,
    /// Here.
    Allowed,
    /// This is within one.
    Inside,
}

/// A column of the select list.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its value.
    pub expr: Scalar,
    /// Its name.
    pub name: String,
    /// It has an alias, or is the column of a table.
    pub is_named: bool,
}

/// A query block while it is bound.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its number.
    pub number: u32,
    /// The names of its FROM clause.
    pub scope: Scope,
    /// Names of outer blocks are not seen: a derived table without LATERAL sees those around its block only.
    pub hidden: usize,
    /// Where aggregate functions may stand now.
    pub aggregates: Aggregates,
    /// Those found.
    pub calls: Vec<Call>,
    /// Window functions may stand here.
    pub windows_allowed: bool,
    /// Those found.
    pub windows: Vec<super::windows::Found>,
    /// The windows of WINDOW.
    pub named_windows: Vec<(lats_mysql_syntax::tree::Text, lats_mysql_syntax::tree::SideId)>,
    /// Subqueries in arguments of aggregate functions, and in conditions and keys.
    pub below: Vec<Pending>,
    /// Subqueries elsewhere, once groups are made.
    pub above: Vec<Pending>,
    /// What hints say about indexes.
    pub index_hints: Vec<super::hints::Named>,
    /// The select list, once it is bound.
    pub outputs: Vec<Output>,
    /// Which of its names may be used now.
    pub alias_use: AliasUse,
    /// The keys of GROUP BY.
    pub keys: Vec<Scalar>,
    /// WITH ROLLUP: the keys' columns, and those that tell rows of totals.
    pub rollup: Vec<(ColumnId, ColumnId)>,
    /// Names of the select list that are still to come.
    pub coming: Vec<String>,
    /// Values of the select list that subqueries name, and what makes columns of them.
    pub values: Vec<(Scalar, Pending)>,
    /// Where one of these is not true, what is bound now is not needed.
    pub guards: Vec<Scalar>,
    /// Columns of outer blocks were used.
    pub is_correlated: bool,
    /// Conditions of inner joins in FROM.
    pub joined: Vec<Scalar>,
    /// The subqueries in them.
    pub in_joined: Vec<Pending>,
    /// The subqueries of the block: where an expression is bound again, they keep their columns.
    pub subqueries: Vec<(QueryId, Pending)>,
}

impl Block {
    /// A block without names.
    pub fn new(number: u32) -> Self {
        Self {
            number,
            scope: Scope::default(),
            hidden: 0,
            aggregates: Aggregates::Refused,
            calls: Vec::new(),
            windows_allowed: false,
            windows: Vec::new(),
            named_windows: Vec::new(),
            below: Vec::new(),
            above: Vec::new(),
            index_hints: Vec::new(),
            outputs: Vec::new(),
            alias_use: AliasUse::No,
            keys: Vec::new(),
            rollup: Vec::new(),
            coming: Vec::new(),
            values: Vec::new(),
            guards: Vec::new(),
            is_correlated: false,
            joined: Vec::new(),
            in_joined: Vec::new(),
            subqueries: Vec::new(),
        }
    }

    /// True if it is known where the subquery runs.
    pub fn is_placed(&self, pending: &Pending) -> bool {
        self.below.contains(pending) || self.above.contains(pending)
    }

    /// A subquery behind the values of the select list that it names.
    pub fn with_values(&self, pending: Pending) -> Vec<Pending> {
        let needs = pending.needs();
        let values = self.values.iter().map(|(_, value)| value);
        let mut all: Vec<Pending> = values.filter(|value| value.makes(&needs)).cloned().collect();
        all.push(pending);
        all
    }
}
