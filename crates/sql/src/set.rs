//! SET: of system and user variables, NAMES, and TRANSACTION.

#[cfg(test)]
mod tests;
mod values;

use crate::bind::Binder;
use crate::error;
use crate::expr::{EXTERNAL_BASE, External};
use crate::plan::query::QueryPlan;
use crate::plan::{Plan, SetQueryPlan};
use crate::syntax::{Context, name, optional_name};
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{self, Access, Isolation, List, SetItem, SetValue, Text};
use lats_values::{ColumnType, Expr, SqlError, Value};
pub(crate) use values::{COMPLETION_CHAIN, ordered_modes, settled};

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This session.
    Session,
    /// Sessions that begin later.
    Global,
    /// Sessions that begin later, at all nodes, also when they were started again.
    Cluster,
    /// The next transaction.
    NextTransaction,
}

/// One assignment of a SET.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// `@name = value`.
    User(String, Expr),
    /// `name = value`; none for DEFAULT.
    System(Scope, String, Option<Expr>),
    /// NAMES, with a collation.
    Names(Option<String>, Option<String>),
    /// CHARACTER SET.
    CharacterSet(Option<String>),
}

type Planned = (Vec<Setting>, Vec<External>, u16);

/// Binds the assignments of a SET statement.
///
/// # Errors
/// What binding gives; 1193 for unknown variables.
pub fn plan(
    items: &[SetItem],
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<(Plan, Vec<External>, u16), SqlError> {
    let mut binder = Binder::new(context).with_external_types(external_types);
    let mut settings = Vec::with_capacity(items.len());
    for item in items {
        settings.push(setting(item, context.tree(), &mut binder)?);
    }
    let parameters = binder.parameters();
    if !binder.needs_query() {
        return Ok((Plan::Set(settings), binder.externals, parameters));
    }
    let (settings, query) = with_query(settings, &mut binder)?;
    let plan = Plan::SetQuery(Box::new(SetQueryPlan { settings, query }));
    Ok((plan, binder.externals, parameters))
}

/// Binds the values of a DO, which nobody sees.
///
/// # Errors
/// What binding gives.
pub fn plan_do(
    values: List,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<(Plan, Vec<External>, u16), SqlError> {
    let mut binder = Binder::new(context).with_external_types(external_types);
    let mut bound = Vec::new();
    for value in context.tree().list(values) {
        bound.push(binder.bind_in("field list", *value)?);
    }
    let parameters = binder.parameters();
    let rows = binder.rows_of(vec![bound])?;
    let query = crate::plan::query::finish(rows, &mut binder)?;
    let plan = Plan::SetQuery(Box::new(SetQueryPlan { settings: Vec::new(), query }));
    Ok((plan, binder.externals, parameters))
}

/// Values with subqueries are those of a query's one row: they stand behind the values from outside.
fn with_query(
    mut settings: Vec<Setting>,
    binder: &mut Binder<'_>,
) -> Result<(Vec<Setting>, QueryPlan), SqlError> {
    let first = EXTERNAL_BASE + u32::try_from(binder.externals.len()).unwrap_or(0);
    let mut values = Vec::new();
    for setting in &mut settings {
        let place = match setting {
            Setting::User(_, value) => value,
            Setting::System(_, _, Some(value)) => value,
            _ => continue,
        };
        let number = first + u32::try_from(values.len()).unwrap_or(0);
        values.push(std::mem::replace(place, Expr::Column(number)));
    }
    let bound = binder.rows_of(vec![values])?;
    Ok((settings, crate::plan::query::finish(bound, binder)?))
}

/// The assignments that SET TRANSACTION stands for.
///
/// # Errors
/// None at present.
pub fn plan_transaction(
    scope: tree::Scope,
    isolation: Isolation,
    access: Access,
) -> Result<Planned, SqlError> {
    let scope = match scope {
        tree::Scope::Global => Scope::Global,
        tree::Scope::None => Scope::NextTransaction,
        _ => Scope::Session,
    };
    let level = match isolation {
        Isolation::None => None,
        Isolation::ReadUncommitted => Some("READ-UNCOMMITTED"),
        Isolation::ReadCommitted => Some("READ-COMMITTED"),
        Isolation::RepeatableRead => Some("REPEATABLE-READ"),
        Isolation::Serializable => Some("SERIALIZABLE"),
    };
    let read_only = match access {
        Access::None => None,
        Access::ReadOnly => Some(true),
        Access::ReadWrite => Some(false),
    };
    let set =
        |name: &str, value| Setting::System(scope, name.to_owned(), Some(Expr::Literal(value)));
    let level = level.map(|level| set("transaction_isolation", Value::text(level)));
    let read_only = read_only.map(|on| set("transaction_read_only", Value::bool(on)));
    Ok((level.into_iter().chain(read_only).collect(), Vec::new(), 0))
}

fn setting(item: &SetItem, tree: &Tree, binder: &mut Binder<'_>) -> Result<Setting, SqlError> {
    let owned = |text| Ok::<_, SqlError>(optional_name(tree, text)?.map(str::to_owned));
    match *item {
        SetItem::User { name: user, value } => {
            let user = name(tree, user)?.to_lowercase();
            Ok(Setting::User(user, binder.bind_in("field list", value)?))
        }
        SetItem::Names { charset, collation } => {
            Ok(Setting::Names(owned(charset)?, owned(collation)?))
        }
        SetItem::Charset(charset) => Ok(Setting::CharacterSet(owned(charset)?)),
        SetItem::Password { .. } => Err(error::not_supported("SET PASSWORD")),
        SetItem::System { scope, has_at, component, name: text, value } => {
            let name = variable_name(tree, component, text)?;
            let scope = scope_of(scope, has_at, &name)?;
            let value = value_of(value, tree, binder)?;
            Ok(Setting::System(scope, name, value))
        }
    }
}

/// The name of a variable that there is, in lower case.
fn variable_name(tree: &Tree, component: Text, text: Text) -> Result<String, SqlError> {
    let variable = name(tree, text)?.to_lowercase();
    if let Some(component) = optional_name(tree, component)? {
        return Err(error::unknown_variable(&format!("{component}.{variable}")));
    }
    if !crate::variables::is_known(&variable) {
        return Err(error::unknown_variable(&variable));
    }
    Ok(variable)
}

fn scope_of(scope: tree::Scope, has_at: bool, name: &str) -> Result<Scope, SqlError> {
    let is_characteristic = matches!(
        name,
        "transaction_isolation" | "transaction_read_only" | "tx_isolation" | "tx_read_only"
    );
    match scope {
        tree::Scope::Global => Ok(Scope::Global),
        // As in MySQL: `@@name` without a scope means the next transaction only.
        tree::Scope::None if has_at && is_characteristic => Ok(Scope::NextTransaction),
        tree::Scope::None | tree::Scope::Session | tree::Scope::Local => Ok(Scope::Session),
        tree::Scope::Persist if name == "durability" => Ok(Scope::Cluster),
        tree::Scope::Persist => Err(error::not_supported(&format!("SET PERSIST {name}"))),
        tree::Scope::PersistOnly => Err(error::not_supported("SET PERSIST_ONLY")),
    }
}

fn value_of(
    value: SetValue,
    tree: &Tree,
    binder: &mut Binder<'_>,
) -> Result<Option<Expr>, SqlError> {
    let id = match value {
        SetValue::Default => return Ok(None),
        SetValue::Word(word) => return Ok(Some(Expr::Literal(Value::text(word.name())))),
        SetValue::Expr(id) => id,
    };
    match *tree.expr(id) {
        // A bare word is a value here: OFF, utf8mb4.
        tree::Expr::Column { schema, table, name: word } if schema.is_none() && table.is_none() => {
            Ok(Some(Expr::Literal(Value::text(name(tree, word)?))))
        }
        _ => binder.bind_in("field list", id).map(Some),
    }
}
