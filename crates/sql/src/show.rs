//! SHOW, DESCRIBE and their like: tables made up on the spot.

mod lists;
mod tables;
#[cfg(test)]
mod tests;
mod views;

use crate::bind::row::RowCondition;
use crate::bind::{self, Binder};
use crate::error::{self, Failure};
use crate::exec::OnlyRow;
use crate::expr::{External, ValuesSource};
use crate::plan::query::QueryPlan;
use crate::plan::{ColumnMeta, Columns};
use crate::session::{Outcome, Session, Sink};
use crate::store::Store;
use crate::syntax::{Context, name, optional_name};
use lats_catalog::{ColumnDef, DefaultValue, TableDef};
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{self, Account, ExprId, ShowFilter, Statement, TableName};
use lats_values::{ColumnType, EvalContext, Expr, SqlError, TypeKind, Value};

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Variables {
        global: bool,
    },
    Status,
    Databases,
    Tables {
        database: String,
        full: bool,
    },
    Columns {
        database: String,
        table: String,
        full: bool,
        extended: bool,
    },
    CreateTable {
        database: String,
        table: String,
    },
    CreateView {
        database: String,
        view: String,
        current: Option<String>,
    },
    CreateDatabase {
        database: String,
        if_not_exists: bool,
    },
    Index {
        database: String,
        table: String,
        extended: bool,
    },
    TableStatus {
        database: String,
    },
    Engines,
    Collation,
    Charset,
    Warnings {
        errors_only: bool,
    },
    Count {
        errors_only: bool,
    },
    ProcessList {
        full: bool,
    },
    Plugins,
    Privileges,
    Grants {
        user: Option<(String, Option<String>)>,
    },
    /// There is none of it, in this database or any.
    Empty {
        columns: &'static [&'static str],
        database: Option<String>,
    },
}

/// A SHOW statement.
#[derive(Debug)]
pub struct Show {
    subject: Subject,
    /// Of LIKE.
    pattern: Option<String>,
    filter: Option<Expr>,
    /// A WHERE with subqueries.
    query: Option<Box<ShowQuery>>,
    limit: Option<(usize, usize)>,
}

/// A condition that a query gives the value of, for each row.
#[derive(Debug)]
struct ShowQuery {
    plan: QueryPlan,
    /// The values from outside that are of the row, and their places there.
    of_row: Vec<(usize, usize)>,
}

/// The rows that are shown.
pub(crate) struct Rows {
    pub(crate) columns: Vec<(String, ColumnType)>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// True for databases that exist only to be asked about.
pub fn is_virtual_database(name: &str) -> bool {
    name.eq_ignore_ascii_case("information_schema")
        || name.eq_ignore_ascii_case("performance_schema")
        || name.eq_ignore_ascii_case("mysql")
        || name.eq_ignore_ascii_case("sys")
}

impl Show {
    /// True if it shows what the statement before left.
    pub fn reads_diagnostics(&self) -> bool {
        matches!(self.subject, Subject::Warnings { .. } | Subject::Count { .. })
    }

    /// The columns of its result.
    pub fn columns(&self) -> Columns {
        self.named(&lists::columns(&self.subject))
    }

    /// MySQL puts the pattern into the first column's name, where names of things are listed.
    fn named(&self, columns: &[(String, ColumnType)]) -> Columns {
        let listed = matches!(self.subject, Subject::Databases | Subject::Tables { .. });
        let pattern = self.pattern.as_ref().filter(|_| listed);
        let name = |at: usize, name: &str| match pattern {
            Some(pattern) if at == 0 => format!("{name} ({pattern})"),
            _ => name.to_owned(),
        };
        let columns = columns.iter().enumerate();
        columns.map(|(at, (n, kind))| ColumnMeta::expression(&name(at, n), kind.clone())).collect()
    }
}

/// Plans a SHOW or DESCRIBE statement; gives none for other statements.
///
/// # Errors
/// 1235 for what we do not show, and what binding gives.
pub fn plan(
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Option<Planned>, SqlError> {
    match &context.parsed.statement {
        Statement::Show(show) => plan_show(show, context, external_types).map(Some),
        Statement::Describe { table, column } => {
            let (database, table) = table_of(table, context)?;
            let subject = Subject::Columns { database, table, full: false, extended: false };
            let pattern = optional_name(context.tree(), *column)?;
            let filter = pattern.map(like_filter);
            let show = Show { subject, pattern: None, filter, query: None, limit: None };
            Ok(Some((show, Vec::new(), 0)))
        }
        _ => Ok(None),
    }
}

/// A SHOW, its values from outside, and how many `?` it has.
type Planned = (Show, Vec<External>, u16);

fn plan_show(
    show: &tree::Show,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Planned, SqlError> {
    let tree = context.tree();
    let subject = subject(show, context)?;
    let mut planned = Show { subject, pattern: None, filter: None, query: None, limit: None };
    let (mut externals, mut parameters) = (Vec::new(), 0);
    match show.filter {
        None => {}
        Some(ShowFilter::Like(text)) => {
            let pattern = name(tree, text)?;
            planned.filter = Some(like_filter(pattern));
            planned.pattern = Some(pattern.to_owned());
        }
        Some(ShowFilter::Where(condition)) => {
            let mut binder = Binder::new(context).with_external_types(external_types);
            if binder.assigns_variables() {
                return Err(error::not_supported("assignment to variables in SHOW … WHERE"));
            }
            match binder.row_condition(&lists::columns(&planned.subject), condition)? {
                RowCondition::Plain(condition) => planned.filter = Some(condition),
                RowCondition::Query(bound) => {
                    let plan = crate::plan::query::finish(bound, &mut binder)?;
                    let of_row = places_of_row(&binder.externals);
                    planned.query = Some(Box::new(ShowQuery { plan, of_row }));
                }
            }
            binder.check_limits()?;
            parameters = binder.parameters();
            externals = binder.externals;
        }
    }
    if let Some(limit) = &show.limit {
        let offset = limit.offset.map(|offset| row_count(tree, offset)).transpose()?;
        planned.limit = Some((offset.unwrap_or(0), row_count(tree, limit.count)?));
    }
    Ok((planned, externals, parameters))
}

/// Which values from outside are those of a row, and which of them.
fn places_of_row(externals: &[External]) -> Vec<(usize, usize)> {
    let place = |(at, external): (usize, &External)| match external {
        External::OfRow(place) => Some((at, *place as usize)),
        _ => None,
    };
    externals.iter().enumerate().filter_map(place).collect()
}

fn row_count(tree: &Tree, id: ExprId) -> Result<usize, SqlError> {
    match bind::literal(tree, id)? {
        Some(Value::Int(count)) if count >= 0 => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        Some(Value::UInt(count)) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err(error::not_supported("placeholders in SHOW … LIMIT")),
    }
}

fn subject(show: &tree::Show, context: &Context<'_>) -> Result<Subject, SqlError> {
    use tree::ShowWhat as W;
    let (full, extended) = (show.is_full, show.is_extended);
    let no_columns = |columns| Subject::Empty { columns, database: None };
    Ok(match show.what {
        W::Variables => Subject::Variables { global: show.scope == tree::Scope::Global },
        W::Status => Subject::Status,
        W::Databases => Subject::Databases,
        W::Tables => Subject::Tables { database: database_of(show, context)?, full },
        W::TableStatus => Subject::TableStatus { database: database_of(show, context)? },
        W::Columns => {
            let (database, table) = shown_table(show, context)?;
            Subject::Columns { database, table, full, extended }
        }
        W::Index => {
            let (database, table) = shown_table(show, context)?;
            Subject::Index { database, table, extended }
        }
        W::CreateTable => {
            let (database, table) = shown_table(show, context)?;
            match context.catalog.view(&database, &table) {
                Some(_) => create_view((database, table), context),
                None => Subject::CreateTable { database, table },
            }
        }
        W::CreateDatabase => {
            let database = database_of(show, context)?;
            Subject::CreateDatabase { database, if_not_exists: show.if_not_exists }
        }
        W::Engines => Subject::Engines,
        W::Collation => Subject::Collation,
        W::Charset => Subject::Charset,
        W::Warnings => Subject::Warnings { errors_only: false },
        W::Errors => Subject::Warnings { errors_only: true },
        W::CountWarnings => Subject::Count { errors_only: false },
        W::CountErrors => Subject::Count { errors_only: true },
        W::Processlist => Subject::ProcessList { full },
        W::Plugins => Subject::Plugins,
        W::Privileges => Subject::Privileges,
        W::Grants => grants(show, context.tree())?,
        W::Triggers => {
            let database = Some(database_of(show, context)?);
            Subject::Empty { columns: &lists::TRIGGERS, database }
        }
        W::Events => {
            let database = Some(database_of(show, context)?);
            Subject::Empty { columns: &lists::EVENTS, database }
        }
        W::ProcedureStatus | W::FunctionStatus => no_columns(&lists::ROUTINES),
        W::OpenTables => no_columns(&lists::OPEN_TABLES),
        W::Profiles => no_columns(&lists::PROFILES),
        W::CreateView => create_view(shown_table(show, context)?, context),
        W::CreateUser => return Err(error::not_supported("SHOW CREATE USER")),
    })
}

fn grants(show: &tree::Show, tree: &Tree) -> Result<Subject, SqlError> {
    if !show.roles.is_empty() {
        return Err(error::not_supported("roles"));
    }
    let user = match show.account {
        None | Some(Account::Current) => None,
        Some(Account::Name { user, host }) => {
            Some((name(tree, user)?.to_owned(), optional_name(tree, host)?.map(str::to_owned)))
        }
    };
    Ok(Subject::Grants { user })
}

fn create_view((database, view): (String, String), context: &Context<'_>) -> Subject {
    Subject::CreateView { database, view, current: context.database.map(str::to_owned) }
}

fn like_filter(pattern: &str) -> Expr {
    Expr::Like {
        arg: Box::new(Expr::Column(0)),
        pattern: Box::new(Expr::Literal(Value::text(pattern))),
        escape: None,
        negated: false,
    }
}

fn table_of(table: &TableName, context: &Context<'_>) -> Result<(String, String), SqlError> {
    crate::ddl::place(context.tree(), table, context.database)
}

/// The table, whose database may stand behind it.
fn shown_table(show: &tree::Show, context: &Context<'_>) -> Result<(String, String), SqlError> {
    let Some(table) = show.table else { return Err(error::internal("SHOW without its table")) };
    let schema = if show.schema.is_some() { show.schema } else { table.schema };
    table_of(&TableName { schema, ..table }, context)
}

/// The database that is named, or the current one.
fn database_of(show: &tree::Show, context: &Context<'_>) -> Result<String, SqlError> {
    match optional_name(context.tree(), show.schema)? {
        Some(database) => Ok(database.to_owned()),
        None => context.database.map(str::to_owned).ok_or_else(error::no_database),
    }
}

impl<S: Store> Session<S> {
    pub(crate) async fn show(
        &mut self,
        show: &Show,
        externals: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let mut rows = match show.subject {
            Subject::ProcessList { full } => self.show_processes(full).await?,
            _ => self.shown(&show.subject)?,
        };
        if let Subject::TableStatus { database } = &show.subject {
            let filter = (show.filter.as_ref(), externals);
            self.look_at_views(database, filter, &mut rows.rows).await?;
        }
        sink.begin(&show.named(&rows.columns));
        let (skip, count) = show.limit.unwrap_or((0, usize::MAX));
        let mut kept = Vec::new();
        for row in rows.rows {
            let is_shown = match &show.query {
                Some(query) => self.asks(query, &row, externals).await?,
                None => matches((show.filter.as_ref(), externals), &row)?,
            };
            if is_shown {
                kept.push(row);
            }
        }
        for row in kept.into_iter().skip(skip).take(count) {
            sink.row(&row)?;
        }
        Ok(Outcome::Rows)
    }
}

impl<S: Store> Session<S> {
    /// True if a row is to be shown, as a query says.
    async fn asks(
        &mut self,
        query: &ShowQuery,
        row: &[Value],
        externals: &[Value],
    ) -> Result<bool, Failure> {
        self.client.handle.check()?;
        let mut externals = externals.to_vec();
        for (at, place) in &query.of_row {
            if let (Some(value), Some(own)) = (externals.get_mut(*at), row.get(*place)) {
                value.clone_from(own);
            }
        }
        let mut only = OnlyRow::default();
        self.produce(&query.plan, &externals, &mut only, true).await?;
        let value = only.row.and_then(|row| row.into_iter().next());
        Ok(value.is_some_and(|value| value.truth() == Some(true)))
    }
}

/// A condition that is computed from rows, and its values from outside.
type Filter<'f> = (Option<&'f Expr>, &'f [Value]);

/// True if a row is to be shown.
fn matches((filter, externals): Filter<'_>, row: &[Value]) -> Result<bool, SqlError> {
    let Some(filter) = filter else { return Ok(true) };
    let source = ValuesSource { row, externals };
    lats_values::is_true(filter, &source, &mut EvalContext::new(false))
}

/// A column's default as SHOW prints it.
fn default_text(column: &ColumnDef) -> Option<String> {
    match &column.default {
        DefaultValue::None | DefaultValue::Literal(Value::Null) => None,
        DefaultValue::Literal(value) => Some(value.to_display()),
        DefaultValue::Now => Some(now_text(column)),
    }
}

fn now_text(column: &ColumnDef) -> String {
    match column.column_type.kind.fsp() {
        0 => "CURRENT_TIMESTAMP".to_owned(),
        fsp => format!("CURRENT_TIMESTAMP({fsp})"),
    }
}

fn key_text(table: &TableDef, at: u16) -> &'static str {
    if table.primary_key.contains(&at) {
        "PRI"
    } else if table.unique_indexes().any(|(i, _)| i.columns == [at]) {
        "UNI"
    } else if table.indexes.iter().any(|i| i.columns.first() == Some(&at)) {
        "MUL"
    } else {
        ""
    }
}

fn text_type() -> ColumnType {
    ColumnType::new(TypeKind::VarChar { chars: 1_024 })
}

fn number_type() -> ColumnType {
    ColumnType::new(TypeKind::BigInt).unsigned()
}
