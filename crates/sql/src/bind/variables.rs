//! User variables: those that the statement assigns itself are read anew each time, and what assigns or reads them is computed in the
//! order of the rows.

use super::Binder;
use super::grouping::Select;
use crate::error;
use crate::expr::External;
use lats_engine::ir::{ColumnId, JoinKind, Rel, Scalar, walk};
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{self, ExprId, Text};
use lats_values::{Expr, Function, SqlError, TypeKind, Value, VariableType};
use std::collections::{BTreeMap, BTreeSet};

/// The variables that are assigned in expressions of a statement, in lower case, and how often the statement names each.
pub(super) fn assigned(tree: &Tree) -> BTreeMap<String, usize> {
    // What is no name is refused where it is bound.
    let name = |text: Text| crate::syntax::name(tree, text).ok().map(str::to_lowercase);
    let assigned = |expr: &tree::Expr| match expr {
        tree::Expr::Assign { variable, .. } => name(*variable),
        _ => None,
    };
    let mut found: BTreeMap<String, usize> =
        tree.all_exprs().filter_map(assigned).map(|name| (name, 0)).collect();
    if found.is_empty() {
        return found;
    }
    for expr in tree.all_exprs() {
        if let tree::Expr::UserVariable(text) | tree::Expr::Assign { variable: text, .. } = expr
            && let Some(count) = name(*text).and_then(|name| found.get_mut(&name))
        {
            *count += 1;
        }
    }
    found
}

impl Binder<'_> {
    /// `@name`.
    pub(super) fn user_variable(&mut self, text: Text) -> Result<Expr, SqlError> {
        let name = self.name(text)?.to_lowercase();
        let before = self.external(External::UserVariable(name.clone()));
        if !self.assigned_variables.contains_key(&name) {
            return Ok(before);
        }
        self.variable_mentions.push((name.clone(), text));
        let args = vec![Expr::Literal(Value::text(&name)), before, as_type(VariableType::Any)];
        Ok(Expr::Call { function: Function::GetVariable, args })
    }

    /// A variable as a value of its own: it has its type.
    pub(super) fn shown_variable(&self, value: Expr) -> Expr {
        match self.variable_type(&value) {
            Some(known) => read_as(value, known),
            None => value,
        }
    }

    /// Variables as operands: arithmetic with a text is that of doubles, and what stands beside a value of the same type is of it.
    pub(super) fn as_operands(&self, compares: bool, left: Expr, right: Expr) -> (Expr, Expr) {
        let (of_left, of_right) =
            (self.operand(compares, &left, &right), self.operand(compares, &right, &left));
        let read = |value: Expr, wanted: Option<VariableType>| match wanted {
            Some(wanted) => read_as(value, wanted),
            None => value,
        };
        (read(left, of_left), read(right, of_right))
    }

    /// As what an operand is read beside the other one.
    fn operand(&self, compares: bool, value: &Expr, other: &Expr) -> Option<VariableType> {
        use VariableType as V;
        let known = self.variable_type(value)?;
        let beside = self.type_of(other).kind;
        match known {
            V::Text if !compares => Some(V::Double),
            V::Text if beside.is_number() => None,
            V::Integer | V::Unsigned if !is_whole(beside) => None,
            known => Some(known),
        }
    }

    /// The type of a variable that is read while the statement assigns it; none for other expressions, and for exact numbers.
    fn variable_type(&self, value: &Expr) -> Option<VariableType> {
        let Expr::Call { function: Function::GetVariable, .. } = value else { return None };
        let of = self.type_of(value);
        Some(match of.kind {
            TypeKind::Decimal { .. } => return None,
            kind if is_whole(kind) && of.unsigned => VariableType::Unsigned,
            kind if is_whole(kind) => VariableType::Integer,
            kind if kind.is_number() => VariableType::Double,
            _ => VariableType::Text,
        })
    }

    /// `@name := value`.
    pub(super) fn assign(&mut self, variable: Text, value: ExprId) -> Result<Expr, SqlError> {
        let name = self.name(variable)?.to_lowercase();
        self.variable_mentions.push((name.clone(), variable));
        let value = self.bind(value)?;
        let args = vec![Expr::Literal(Value::text(&name)), self.shown_variable(value)];
        Ok(Expr::Call { function: Function::SetVariable, args })
    }

    /// True if expressions of the statement assign variables.
    pub(crate) fn assigns_variables(&self) -> bool {
        !self.assigned_variables.is_empty()
    }

    /// True if the statement needs a query for its values.
    pub(crate) fn needs_query(&self) -> bool {
        self.has_subqueries() || self.assigns_variables()
    }

    /// A query in FROM that assigns or reads such variables has run to its end before its first row is read, and nothing is computed
    /// for fewer of its rows.
    pub(super) fn apart(rel: Rel) -> Rel {
        if !walk::rel_uses_variables(&rel) {
            return rel;
        }
        let sorted = Rel::Sort { input: Box::new(rel), keys: Vec::new() };
        Rel::Limit { input: Box::new(sorted), count: None, offset: None }
    }

    /// How many mentions of variables that the statement assigns have been bound.
    pub(super) fn variables_bound(&self) -> usize {
        self.variable_mentions.len()
    }

    /// Subqueries run before the expression that they stand in: a variable that the statement assigns may be used in one only if it
    /// is used nowhere else. The mentions in it are those that were bound since `before`; what stands for one, such as an alias in
    /// ORDER BY, is no other.
    ///
    /// # Errors
    /// 1235.
    pub(super) fn check_variables(&self, rel: &Rel, before: usize) -> Result<(), SqlError> {
        if !self.assigns_variables() {
            return Ok(());
        }
        let bound = self.variable_mentions.get(before..).unwrap_or_default();
        let distinct: BTreeSet<(&str, Text)> =
            bound.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let mut within: BTreeMap<&str, usize> = BTreeMap::new();
        distinct.iter().for_each(|(name, _)| *within.entry(name).or_default() += 1);
        // Copies of what was bound outside may be there, too.
        let mut used = BTreeSet::new();
        names_in(rel, &mut used);
        let is_outside = |name: &str| {
            let all = self.assigned_variables.get(name).copied().unwrap_or(0);
            within.get(name).copied().unwrap_or(0) < all
        };
        if used.iter().any(|name| is_outside(name)) {
            let what =
                "a variable that is assigned in the statement, within and outside of a subquery";
            return Err(error::not_supported(what));
        }
        Ok(())
    }

    /// The condition that a value is compared by with the rows of a subquery.
    ///
    /// # Errors
    /// 1235.
    pub(super) fn check_compared(&self, on: Option<&Scalar>) -> Result<(), SqlError> {
        match on {
            Some(on) if self.assigns_variables() && walk::uses_variables(on) => {
                let what = "variables that the statement assigns, compared with a subquery";
                Err(error::not_supported(what))
            }
            _ => Ok(()),
        }
    }
}

fn as_type(wanted: VariableType) -> Expr {
    Expr::Literal(Value::Int(wanted.number()))
}

/// The same variable, read as this type.
fn read_as(value: Expr, wanted: VariableType) -> Expr {
    match value {
        Expr::Call { function: Function::GetVariable, mut args } => {
            args.truncate(2);
            args.push(as_type(wanted));
            Expr::Call { function: Function::GetVariable, args }
        }
        other => other,
    }
}

fn is_whole(kind: TypeKind) -> bool {
    use TypeKind as K;
    matches!(kind, K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Year)
}

/// The variables that the scalars of a plan name.
fn names_in(rel: &Rel, names: &mut BTreeSet<String>) {
    for scalar in rel.scalars() {
        let mut left = vec![scalar];
        while let Some(expr) = left.pop() {
            if let Expr::Call { function, args } = expr
                && function.is_variable()
                && let Some(Expr::Literal(name)) = args.first()
            {
                names.insert(name.to_display());
            }
            left.extend(crate::expr::children(expr));
        }
    }
    rel.inputs().into_iter().for_each(|input| names_in(input, names));
}

/// New columns and their values.
type Items = Vec<(ColumnId, Scalar)>;

/// New columns of a select list: those that are computed before the rows are ordered and limited, and those that come behind.
/// What assigns or reads variables comes behind, as MySQL computes it for the rows that it sends, unless rows are ordered by it.
pub(super) fn split(items: Items, needed: &[&Scalar]) -> (Items, Items) {
    let late = |item: &(ColumnId, Scalar)| walk::uses_variables(&item.1);
    let is_needed = |item: &(ColumnId, Scalar)| {
        needed.iter().any(|value| walk::columns_of(value).contains(&item.0))
    };
    if items.iter().any(|item| late(item) && is_needed(item)) {
        return (items, Vec::new());
    }
    items.into_iter().partition(|item| !late(item))
}

/// True if MySQL computes the select list for the rows in their order. It does so where rows are ordered by keys of their groups, or by
/// columns of one table whose rows no outer join makes up; otherwise it orders rows that have been computed.
pub(super) fn come_last(select: &Select) -> bool {
    if select.distinct || !select.windows.is_empty() {
        return false;
    }
    if select.is_grouped {
        return select.order.iter().all(|key| select.keys.contains(&key.value));
    }
    let columns: BTreeSet<ColumnId> =
        select.order.iter().flat_map(|key| walk::columns_of(&key.value)).collect();
    has_all(&select.from, &columns)
}

fn has_all(rel: &Rel, columns: &BTreeSet<ColumnId>) -> bool {
    match rel {
        Rel::Scan(scan) => columns.iter().all(|column| scan.has(*column)),
        Rel::Join { kind: JoinKind::Inner, left, right, .. } => {
            has_all(left, columns) || has_all(right, columns)
        }
        Rel::Join { left, .. } | Rel::Apply { left, .. } => has_all(left, columns),
        other => {
            let own = other.columns();
            columns.iter().all(|column| own.contains(column))
        }
    }
}
