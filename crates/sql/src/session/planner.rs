//! Making plans. What a plan is made from is apart from the session, so that long statements are planned in threads of their own:
//! no client waits because another one's statement is long.

use super::shared::PLANNERS_MAX;
use super::{
    Kind, NodeMemory, Session, kill, limit, plans::reads_years, user_variables::variable_bytes,
};
use crate::error;
use crate::expr::External;
use crate::literal_rows::LiteralRows;
use crate::optimizer_switch::Rules;
use crate::plan::{Plan, Prepared};
use crate::sessions::Handle;
use crate::store::Store;
use crate::syntax::{Bounds, Context};
use crate::views::Views;
use lats_catalog::Catalog;
use lats_mysql_syntax::tree::{Explain, ExplainWhat, TableContent};
use lats_mysql_syntax::{Mode, Parsed, Statement as Syntax};
use lats_values::{Collation, ColumnType, SqlError, Value};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Longer texts are read and planned elsewhere: shorter ones take well below a millisecond.
const LONG_TEXT_BYTES: usize = 16 << 10;
/// Rows of literals are read much faster.
const LONG_ROWS_BYTES: usize = 256 << 10;

/// What a session's variables say about plans.
#[derive(Clone, Copy)]
struct Settings {
    full_group_by: bool,
    strict: bool,
    quiet_division: bool,
    no_escapes: bool,
    connection_collation: Option<Collation>,
    group_concat_bytes: usize,
    rules: Rules,
}

impl Settings {
    fn context<'a>(
        self,
        catalog: &'a Catalog,
        database: Option<&'a str>,
        (text, parsed): (&'a [u8], &'a Parsed),
        views: &'a Views,
    ) -> Context<'a> {
        Context {
            catalog,
            base: catalog,
            database,
            text,
            parsed,
            full_group_by: self.full_group_by,
            no_escapes: self.no_escapes,
            strict: self.strict,
            quiet_division: self.quiet_division,
            connection_collation: self.connection_collation,
            group_concat_bytes: self.group_concat_bytes,
            rules: self.rules,
            views,
            statistics: &|_| None,
            values: &[],
            bounds: Bounds::none(),
        }
    }
}

/// All that a plan is made from beside its text.
struct Planner<S> {
    store: S,
    base: Arc<Catalog>,
    catalog: Arc<Catalog>,
    settings: Settings,
    database: Option<String>,
    mode: Mode,
    memory: Arc<NodeMemory>,
}

impl<S: Store> Planner<S> {
    /// Reads and binds a statement.
    fn plan(
        &self,
        text: &[u8],
        (external_types, values): (&[ColumnType], &[Value]),
    ) -> Result<Arc<Prepared>, SqlError> {
        let bytes_max = self.memory.tree_max();
        let bounds = Bounds::of(self.memory.meter().of_thread, bytes_max);
        let before = (self.memory.meter().of_thread)();
        let planned = self.plan_within(text, (external_types, values), bounds, bytes_max);
        let taken = (self.memory.meter().of_thread)().saturating_sub(before);
        let taken = usize::try_from(taken).unwrap_or(0);
        self.memory.note_planned(taken);
        let planned = planned.map(|planned| Arc::new(Prepared { bytes: taken, ..planned }));
        planned.inspect_err(|error| {
            if error.errno == 3170 {
                self.memory.refuse(Kind::Plans);
            }
        })
    }

    fn plan_within(
        &self,
        text: &[u8],
        (external_types, values): (&[ColumnType], &[Value]),
        bounds: Bounds,
        bytes_max: usize,
    ) -> Result<Prepared, SqlError> {
        // Arenas have room for more than what is in them, and the plan comes beside the tree.
        let parsed = crate::syntax::parse_within(text, self.mode, bytes_max / 3 * 2)?;
        let database = self.database.as_deref();
        let views = Views::of(&self.base, &parsed, database)?;
        let look = |table| self.store.statistics(table);
        let context = self.settings.context(&self.catalog, database, (text, &parsed), &views);
        let time_limit_ms = limit::hinted_limit(&context);
        let no_escapes = self.mode.no_backslash_escapes;
        let context =
            Context { statistics: &look, values, base: &self.base, no_escapes, bounds, ..context };
        let (plan, externals, parameters) = match plan_statement(&context, external_types)? {
            Some(planned) => planned,
            None if parsed.tree.parameters > 0 => {
                return Err(error::not_supported("? in this statement"));
            }
            None => (Plan::Other(Box::new(parsed)), Vec::new(), 0),
        };
        let reads_constants = reads_years(&plan);
        let catalog_version = self.catalog.version;
        Ok(Prepared {
            plan,
            externals,
            parameters,
            catalog_version,
            reads_constants,
            time_limit_ms,
            bytes: 0,
        })
    }
}

/// Places for long statements, what ends the statement, and what tells the process of the thread's memory.
type Places = (Arc<Semaphore>, Arc<Handle>, fn());

/// What takes long is done in another thread: as many at a time as the process has places for. What it works with is copied when
/// there is a place, so that those who wait take nothing.
async fn elsewhere<R: Send + 'static, W: FnOnce() -> R + Send + 'static>(
    (places, handle, report): Places,
    prepare: impl FnOnce() -> Result<W, SqlError>,
) -> Result<R, SqlError> {
    let place = handle.unless_ended(places.acquire_owned()).await;
    let place = place.map_err(|_| handle.error())?;
    let work = prepare()?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        report();
        drop(place);
        done
    });
    match handle.unless_ended(done).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(failed)) => match failed.try_into_panic() {
            // As if it had happened here.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(error::interrupted()),
        },
        Err(_) => Err(handle.error()),
    }
}

impl<S: Store> Session<S> {
    fn plan_settings(&self) -> Settings {
        let mode = self.variables.get("sql_mode").to_display();
        Settings {
            full_group_by: mode.contains("ONLY_FULL_GROUP_BY"),
            no_escapes: self.syntax_mode.no_backslash_escapes,
            strict: mode.contains("STRICT_TRANS_TABLES") || mode.contains("STRICT_ALL_TABLES"),
            quiet_division: !mode.contains("ERROR_FOR_DIVISION_BY_ZERO"),
            connection_collation: self.connection_collation(),
            group_concat_bytes: self.group_concat_bytes(),
            rules: Rules::of(&self.variables.get("optimizer_switch").to_display()),
        }
    }

    /// What this session plans a statement from.
    pub(crate) fn context<'a>(
        &self,
        catalog: &'a Catalog,
        database: Option<&'a str>,
        text: (&'a [u8], &'a Parsed),
        views: &'a Views,
    ) -> Context<'a> {
        self.plan_settings().context(catalog, database, text, views)
    }

    /// Plans a statement: a long one in another thread.
    pub(super) async fn make_plan(
        &mut self,
        text: &[u8],
        (database, mode): (Option<String>, Mode),
        (types, values): (&[ColumnType], &[Value]),
    ) -> Result<Arc<Prepared>, SqlError> {
        let base = self.shared.store.catalog();
        // Both are of the same version, whatever comes meanwhile.
        let catalog = self.temporaries.catalog(Arc::clone(&base));
        let (store, settings) = (self.shared.store.clone(), self.plan_settings());
        let memory = Arc::clone(self.shared.memory());
        let planner = Planner { store, base, catalog, settings, database, mode, memory };
        if text.len() <= LONG_TEXT_BYTES {
            return planner.plan(text, (types, values));
        }
        // Nobody else gets what the tree may take, before it does.
        let prepare = || {
            let memory = self.shared.memory();
            let copied: usize = values.iter().map(|value| variable_bytes("", value)).sum();
            let bytes = memory.planning_bytes(text.len()).saturating_add(copied);
            let reserved = memory.reserve(Kind::Plans, bytes)?;
            let (text, types, values) = (text.to_vec(), types.to_vec(), values.to_vec());
            Ok(move || {
                let planned = planner.plan(&text, (&types, &values));
                drop(reserved);
                planned
            })
        };
        let planned = elsewhere(self.places(), prepare).await?;
        self.long_plan = planned.as_ref().ok().cloned();
        planned
    }

    /// The rows of an INSERT of literals.
    pub(super) async fn literal_rows(&mut self, text: &[u8]) -> Option<LiteralRows> {
        let mode = self.syntax_mode;
        if text.len() <= LONG_ROWS_BYTES || !LiteralRows::may_be(text) {
            return LiteralRows::of(text, mode, usize::MAX);
        }
        let prepare = || {
            // The text is copied, and so are the values.
            let reserved = self.shared.memory().reserve(Kind::Statements, 2 * text.len())?;
            let (text, memory) = (text.to_vec(), Arc::clone(self.shared.memory()));
            Ok(move || {
                let rows = LiteralRows::of(&text, mode, memory.rows_max(PLANNERS_MAX));
                drop(reserved);
                rows
            })
        };
        // Who is refused or ended meanwhile hears so when the statement is planned.
        elsewhere(self.places(), prepare).await.ok().flatten()
    }

    fn places(&self) -> Places {
        let report = self.shared.memory().meter().report;
        (Arc::clone(self.shared.planners()), Arc::clone(&self.client.handle), report)
    }

    /// The statement is over: a plan of a long text that nobody else has is dropped in another thread.
    pub(super) fn drop_long_plan(&mut self) {
        if let Some(plan) = self.long_plan.take()
            && Arc::strong_count(&plan) == 1
        {
            let report = self.shared.memory().meter().report;
            drop(tokio::task::spawn_blocking(move || {
                drop(plan);
                report();
            }));
        }
    }
}

type Planned = (Plan, Vec<External>, u16);

/// The plan of a statement that has one; the others are run from their trees.
fn plan_statement(
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Option<Planned>, SqlError> {
    if let Syntax::Explain(explain) = &context.parsed.statement
        && let ExplainWhat::Statement(statement) = &explain.what
    {
        return explained(explain, statement, context, external_types).map(Some);
    }
    if let Some((show, externals, parameters)) = crate::show::plan(context, external_types)? {
        return Ok(Some((Plan::Show(Box::new(show)), externals, parameters)));
    }
    Ok(Some(match &context.parsed.statement {
        Syntax::Query(query) => crate::plan::query::plan(*query, context, external_types)?,
        Syntax::CreateTable(create) => match &create.content {
            TableContent::Elements { query: Some(query), .. } => {
                crate::plan::query::plan_create_as(*query, context, external_types)?
            }
            _ => return Ok(None),
        },
        Syntax::Insert(insert) => {
            let (plan, externals, parameters) =
                crate::plan::insert::plan(insert, context, external_types)?;
            (Plan::Insert(Box::new(plan)), externals, parameters)
        }
        Syntax::Update(update) => match crate::plan::write::plan_update(update, context)? {
            Some((plan, externals, parameters)) => {
                (Plan::Write(Box::new(plan)), externals, parameters)
            }
            None => {
                let planned = crate::plan::change::plan_update(update, context, external_types)?;
                (Plan::Change(Box::new(planned.0)), planned.1, planned.2)
            }
        },
        Syntax::Delete(delete) => match crate::plan::write::plan_delete(delete, context)? {
            Some((plan, externals, parameters)) => {
                (Plan::Write(Box::new(plan)), externals, parameters)
            }
            None => {
                let planned = crate::plan::change::plan_delete(delete, context, external_types)?;
                (Plan::Change(Box::new(planned.0)), planned.1, planned.2)
            }
        },
        Syntax::CreateView(create) => {
            let plan = crate::plan::view::plan_create(create, context)?;
            (Plan::CreateView(Box::new(plan)), Vec::new(), 0)
        }
        Syntax::Kill { what, id } => kill::plan(*what, *id, context, external_types)?,
        Syntax::Set(items) => crate::set::plan(items, context, external_types)?,
        Syntax::Do(values) => crate::set::plan_do(*values, context, external_types)?,
        Syntax::SetTransaction { scope, isolation, access, .. } => {
            let (settings, externals, parameters) =
                crate::set::plan_transaction(*scope, *isolation, *access)?;
            (Plan::Set(settings), externals, parameters)
        }
        _ => return Ok(None),
    }))
}

/// EXPLAIN of a statement: its plan is made, and shown.
fn explained(
    explain: &Explain,
    statement: &Syntax,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<Planned, SqlError> {
    let format = crate::plan::explain::format(explain, context)?;
    let parsed = Parsed { statement: statement.clone(), ..context.parsed.clone() };
    let inner = Context { parsed: &parsed, ..*context };
    let Some((plan, externals, parameters)) = plan_statement(&inner, external_types)? else {
        return Err(error::not_supported("EXPLAIN of this statement"));
    };
    Ok((crate::plan::explain::explain(plan, format, context)?, externals, parameters))
}
