//! Plans of queries that need more than one table's rows.

use super::known::Known;
use super::select::{self, column_number};
use super::{ColumnMeta, Columns, CreateAsPlan, Limit, Plan};
use crate::access::Access;
use crate::bind::query::BoundQuery;
use crate::bind::{Binder, Source};
use crate::error;
use crate::expr::{EXTERNAL_BASE, External, map_columns};
use crate::syntax::Context;
use crate::table::Table;
use lats_base::TableId;
use lats_client::api::{LockMode, LockWait};
use lats_engine::ir::{ColumnId, walk};
use lats_engine::lower::Lowering;
use lats_engine::physical::{self, PARAM_BASE, Touched};
use lats_engine::rewrite;
use lats_mysql_syntax::tree::{self, Into, IntoTarget, Query, QueryId};
use lats_values::{ColumnType, Expr, RowLayout, SqlError, TypeKind, Value};
use std::sync::Arc;

/// A query.
#[derive(Debug)]
pub struct QueryPlan {
    /// What is computed.
    pub plan: physical::Plan,
    /// How each of the plan's tables is read.
    pub sources: Vec<TableSource>,
    /// The columns of the result.
    pub columns: Columns,
    /// The user variables that take the values of the one row, of SELECT … INTO.
    pub into: Option<Vec<String>>,
    /// The types of the values from outside that it was made for.
    pub external_types: Vec<ColumnType>,
    /// It assigns user variables, or reads those that the statement assigns: its rows go one by one.
    pub uses_variables: bool,
    /// It has a LIMIT of its own.
    pub is_limited: bool,
    /// It is a part of a statement that changes rows in strict mode: values that do not fit are errors.
    pub strict: bool,
    /// SQL_CALC_FOUND_ROWS: the LIMIT that is left to who sends the rows.
    pub counted: Option<Limit>,
    /// The tables, and how many rows each was taken to have.
    pub tables: Vec<(TableId, Option<f64>)>,
}

/// How rows of a table are read.
#[derive(Debug)]
pub struct TableSource {
    /// The table.
    pub table: Arc<Table>,
    /// Its name in the statement.
    pub alias: String,
    /// How its rows are found. Parameters of the request stand behind the statement's values from outside.
    pub access: Access,
    /// The columns that are read; none for all.
    pub projection: Option<Vec<u16>>,
    /// The layout of what is read.
    pub layout: RowLayout,
    /// How many columns are read.
    pub width: u16,
    /// What data nodes run for the residual condition, where it is the same for all requests.
    pub program: Option<Arc<[u8]>>,
    /// FOR UPDATE, FOR SHARE.
    pub lock: (LockMode, LockWait),
    /// How many rows a request comes to, as was estimated.
    pub touched: Touched,
    /// One row of those that a request may come to is enough.
    pub one_is_enough: bool,
    /// How many values from outside there are before those of other rows.
    pub constants: u32,
    /// The names of the columns of other rows, as EXPLAIN shows them.
    pub given: Vec<String>,
}

impl TableSource {
    /// What data nodes run for the residual condition, if it is the same for all requests.
    fn fixed_program(&self, strict: bool) -> Option<Arc<[u8]>> {
        let residual = &self.access.residual;
        let is_fixed = !residual.as_ref().is_some_and(crate::expr::has_externals);
        is_fixed.then(|| {
            let projection = self.projection.clone();
            select::encode_strict_program(residual.clone(), projection, strict).into()
        })
    }
}

impl QueryPlan {
    /// The same as a part of a statement that changes rows.
    #[must_use]
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        for source in &mut self.sources {
            source.program = source.fixed_program(strict);
        }
        self
    }

    /// The columns of the result.
    pub fn columns(&self) -> Columns {
        match self.into {
            Some(_) => Columns::from([]),
            None => self.columns.clone(),
        }
    }
}

type Planned = (Plan, Vec<External>, u16);

/// Plans a query; `external_types` are the types of its values from outside, as far as they are known.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan(
    id: QueryId,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Planned, SqlError> {
    let query = context.tree().query(id);
    let into = into_variables(query, context)?;
    let mut binder = Binder::new(context).with_external_types(external_types);
    let bound = binder.bind_query(id, 0)?;
    binder.check_limits()?;
    let parameters = binder.parameters();
    let block = bound.select.as_ref().map(|select| select.block);
    let locks = Locks::of(query, block, &binder)?;
    if into.is_none()
        && context.rules.short_way
        && !binder.assigns_variables()
        && !binder.compares_variables.get()
        && let Some(select) = &bound.select
    {
        let lock = locks.of_source(0, &binder);
        if let Some(plan) = select::plan(select, &binder, lock) {
            return Ok((Plan::Select(Box::new(plan)), binder.externals, parameters));
        }
    }
    if into.as_ref().is_some_and(|names| names.len() != bound.outputs.len()) {
        let text = "The used SELECT statements have a different number of columns";
        return Err(error::make(1222, "21000", text));
    }
    let mut plan = finish(bound, &mut binder)?;
    plan.into = into;
    plan.is_limited = query.limit.is_some();
    for (at, source) in plan.plan.sources.iter().enumerate() {
        let number = source.source.0 as usize;
        plan.sources[at].lock = locks.of_source(number, &binder);
    }
    Ok((Plan::Query(Box::new(plan)), binder.externals, parameters))
}

/// Locking clauses of queries within other statements are refused.
///
/// # Errors
/// 1235.
pub fn refuse_locks(id: QueryId, context: &Context<'_>) -> Result<(), SqlError> {
    match context.tree().query(id).locks.is_empty() {
        true => Ok(()),
        false => Err(error::not_supported("FOR UPDATE and FOR SHARE here")),
    }
}

/// Plans CREATE TABLE … SELECT.
///
/// # Errors
/// What MySQL says, or 1235.
pub fn plan_create_as(
    id: QueryId,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Planned, SqlError> {
    let mut binder = Binder::new(context).with_external_types(external_types);
    refuse_locks(id, context)?;
    let bound = binder.bind_query(id, 0)?;
    binder.check_limits()?;
    let parameters = binder.parameters();
    let query = Arc::new(finish(bound, &mut binder)?.with_strict(context.strict));
    let plan = CreateAsPlan { parsed: context.parsed.clone(), query };
    Ok((Plan::CreateAs(Box::new(plan)), binder.externals, parameters))
}

/// The plan of a query that is bound.
pub(crate) fn finish(bound: BoundQuery, binder: &mut Binder<'_>) -> Result<QueryPlan, SqlError> {
    let outputs = bound.columns();
    let rules = binder.context.rules;
    let (types, externals) = (&binder.types, binder.external_types);
    let known = Known::new(&binder.sources, binder.context.statistics, binder.context.values);
    let tables = known.tables();
    let (rules, order) = (rules.engine, &binder.order);
    let context = rewrite::Context { types, externals, rules, statistics: &known, order };
    let uses_variables = walk::rel_uses_variables(&bound.rel);
    let rel = rewrite::all(bound.rel, &outputs, context);
    let plan = Lowering::new(&rel, context).plan(&rel, &outputs);
    let refused = || error::not_supported("this combination of subqueries, windows and groups");
    let plan = plan.ok_or_else(refused)?;
    let externals = u32::try_from(binder.externals.len()).unwrap_or(u32::MAX);
    let sources = plan.sources.iter();
    let given = |column: &ColumnId| name_of(*column, binder);
    let sources = sources
        .map(|spec| TableSource {
            given: spec.given.iter().map(given).collect(),
            ..table_source(spec, binder.source(spec.source), externals)
        })
        .collect();
    let columns = bound.outputs.iter().map(|(id, name)| meta(*id, name, binder)).collect();
    let external_types = binder.external_types.to_vec();
    let counted = bound.select.filter(|select| select.counts_all).map(|select| select.limit);
    let counted = counted.or_else(|| binder.counted.take());
    let counted = counted.map(|(count, offset)| Limit { count, offset });
    Ok(QueryPlan {
        plan,
        sources,
        columns,
        into: None,
        external_types,
        uses_variables,
        is_limited: false,
        strict: false,
        counted,
        tables,
    })
}

fn table_source(spec: &physical::SourceSpec, source: &Source, externals: u32) -> TableSource {
    let table = &source.table;
    let condition = spec.condition.as_ref().map(|condition| {
        map_columns(condition, &|number| {
            let is_param = (PARAM_BASE..EXTERNAL_BASE).contains(&number);
            is_param.then(|| Expr::Column(EXTERNAL_BASE + externals + (number - PARAM_BASE)))
        })
    });
    let preferred: Option<Vec<u16>> = spec
        .index
        .as_ref()
        .map(|columns| columns.iter().map(|column| column_number(*column)).collect());
    let mut access = Access::choose_with(table, condition, preferred.as_deref());
    access.obey(table, &source.hints);
    let access = access.with_comparators(table, externals);
    let columns: Vec<u16> = spec.columns.iter().map(|column| column_number(*column)).collect();
    let types: Vec<ColumnType> =
        columns.iter().map(|column| table.types[usize::from(*column)].clone()).collect();
    let width = u16::try_from(columns.len()).unwrap_or(u16::MAX);
    let projection = (columns.len() < table.types.len()).then_some(columns);
    let mut found = TableSource {
        table: Arc::clone(table),
        alias: source.alias.clone(),
        access,
        projection,
        layout: RowLayout::new(&types),
        width,
        program: None,
        lock: (LockMode::Committed, LockWait::Wait),
        touched: spec.touched,
        one_is_enough: spec.one_is_enough,
        constants: externals,
        given: Vec::new(),
    };
    found.program = found.fixed_program(false);
    found
}

/// The name of a column with its table's.
fn name_of(id: ColumnId, binder: &Binder<'_>) -> String {
    let Some(column) = binder.columns.get(id.0 as usize) else { return "func".to_owned() };
    match column.origin {
        Some(origin) => {
            let source = binder.source(origin.source);
            let database = &source.table.def.database;
            format!("{database}.{}.{}", source.alias, source.table.column_name(origin.position))
        }
        None => "func".to_owned(),
    }
}

/// What the client is told about a column.
fn meta(id: ColumnId, name: &str, binder: &Binder<'_>) -> ColumnMeta {
    let column_type = binder.type_of(&id.scalar());
    let origin = binder.columns.get(id.0 as usize).and_then(|column| column.origin);
    match origin {
        Some(origin) => {
            let source = binder.source(origin.source);
            let meta = ColumnMeta::column(&source.table, &source.alias, origin.position, name);
            ColumnMeta { column_type, ..meta }
        }
        None => {
            let column = binder.columns.get(id.0 as usize);
            let look = column.map(|column| column.look).unwrap_or_default();
            ColumnMeta::computed(name, column_type, look)
        }
    }
}

/// INTO of the last SELECT, which is about the whole query.
fn inner_into(mut body: tree::BodyId, tree: &tree::Tree) -> Option<&Into> {
    loop {
        body = match tree.body(body) {
            tree::Body::Select(select) => return select.into.as_ref(),
            tree::Body::Set { right, .. } => *right,
            tree::Body::Nested(query) => {
                let query = tree.query(*query);
                if query.into.is_some() {
                    return query.into.as_deref();
                }
                query.body
            }
            tree::Body::Values(_) | tree::Body::Table(_) => return None,
        };
    }
}

/// The user variables of INTO.
fn into_variables(query: &Query, context: &Context<'_>) -> Result<Option<Vec<String>>, SqlError> {
    let inner = || inner_into(query.body, context.tree());
    match query.into.as_deref().or_else(inner) {
        None => Ok(None),
        Some(Into::Outfile { .. }) => Err(error::not_supported("INTO OUTFILE")),
        Some(Into::Dumpfile(_)) => Err(error::not_supported("INTO DUMPFILE")),
        Some(Into::Variables(targets)) => {
            let name = |target: &IntoTarget| match target {
                IntoTarget::User(name) => {
                    Ok(crate::syntax::name(context.tree(), *name)?.to_lowercase())
                }
                IntoTarget::Local(name) => {
                    let name = crate::syntax::name(context.tree(), *name)?;
                    Err(error::make(1327, "42000", &format!("Undeclared variable: {name}")))
                }
            };
            targets.iter().map(name).collect::<Result<_, _>>().map(Some)
        }
    }
}

/// FOR UPDATE and FOR SHARE: for all tables of the query, or for those that OF names.
struct Locks {
    clauses: Vec<(Option<Vec<String>>, LockMode, LockWait)>,
    block: Option<u32>,
}

impl Locks {
    /// # Errors
    /// 3568 for OF a table that is not there.
    fn of(query: &Query, block: Option<u32>, binder: &Binder<'_>) -> Result<Self, SqlError> {
        if block.is_none() && !query.locks.is_empty() {
            return Err(error::not_supported("FOR UPDATE and FOR SHARE of this form of query"));
        }
        let mut clauses = Vec::with_capacity(query.locks.len());
        for lock in &query.locks {
            let mut of = Vec::with_capacity(lock.of.len());
            for table in &lock.of {
                let name = binder.name(table.name)?;
                let known =
                    binder.sources.iter().any(|s| Some(s.block) == block && s.alias == name)
                        || binder.views.iter().any(|v| Some(v.block) == block && v.alias == name);
                if !known {
                    let text = format!("Unresolved table name '{name}' in locking clause.");
                    return Err(error::make(3568, "HY000", &text));
                }
                of.push(name.to_owned());
            }
            let mode = match lock.kind {
                tree::LockKind::Update => LockMode::Exclusive,
                tree::LockKind::Share | tree::LockKind::ShareMode => LockMode::Shared,
            };
            let wait = match lock.wait {
                tree::LockWait::Wait => LockWait::Wait,
                tree::LockWait::NoWait => LockWait::Refuse,
                tree::LockWait::SkipLocked => LockWait::Skip,
            };
            clauses.push(((!of.is_empty()).then_some(of), mode, wait));
        }
        Ok(Self { clauses, block })
    }

    fn of_source(&self, number: usize, binder: &Binder<'_>) -> (LockMode, LockWait) {
        let none = (LockMode::Committed, LockWait::Wait);
        let Some(source) = binder.sources.get(number) else { return none };
        let alias = match Some(source.block) == self.block {
            true => &source.alias,
            // Rows of a view are rows of its tables.
            false => match self.view_of(number, binder) {
                Some(view) => &view.alias,
                None => return none,
            },
        };
        let named = |of: &Option<Vec<String>>| match of {
            Some(names) => names.contains(alias),
            None => true,
        };
        let found = self.clauses.iter().find(|(of, ..)| named(of));
        found.map_or(none, |(_, mode, wait)| (*mode, *wait))
    }

    fn view_of<'b>(
        &self,
        number: usize,
        binder: &'b Binder<'_>,
    ) -> Option<&'b crate::bind::view::ViewUse> {
        if self.clauses.is_empty() {
            return None;
        }
        let mut own = binder.views.iter().filter(|view| Some(view.block) == self.block);
        own.find(|view| binder.tables_of_view(view).contains(&number))
    }
}

/// The type that a value from outside has in plans. Lengths are rounded up, so that a plan serves values like it.
pub fn type_of_external(value: &Value) -> ColumnType {
    let found = lats_values::result_type(&Expr::Literal(value.clone()), &[]);
    let kind = match found.kind {
        TypeKind::VarChar { chars } => match chars.checked_next_power_of_two() {
            Some(chars) if chars <= 16_383 => TypeKind::VarChar { chars: chars.max(64) },
            _ => TypeKind::LongText,
        },
        TypeKind::VarBinary { bytes } if bytes > 0 => match bytes.checked_next_power_of_two() {
            Some(bytes) => TypeKind::VarBinary { bytes: bytes.max(64) },
            None => TypeKind::LongBlob,
        },
        kind => kind,
    };
    ColumnType { kind, nullable: true, ..found }
}
