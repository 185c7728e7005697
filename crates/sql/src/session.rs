//! A session: what one client's connection remembers between statements, and how a statement runs.

mod analyze;
mod cache;
mod control;
mod kill;
mod limit;
mod memory;
mod named;
mod planner;
mod plans;
mod settings;
mod shapes;
mod shared;
mod temporary;
mod transaction;
mod user_variables;

use crate::error::{self, Failure};
use crate::expr::External;
use crate::literal_rows::LiteralRows;
use crate::plan::{Columns, Plan, Prepared};
use crate::sessions::{Doing, Handle};
use crate::store::Store;
use crate::variables::{UserVariables, Variables};
use lats_mysql_syntax::{Mode, Statement as Syntax};
use lats_values::{Collation, ColumnType, DateTime, EvalContext, SqlError, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use memory::Reserved;
pub(crate) use memory::{Kept, Kind, NodeMemory, Share};
pub use memory::{MemoryFigure, Meter};
use plans::{ends_transaction, keeps_diagnostics};
pub use shared::Shared;
use temporary::Temporaries;
pub(crate) use transaction::Running;
use transaction::Savepoint;
use user_variables::{FormerVariables, variable_bytes};

/// How long a statement outside a transaction is run again after temporary errors.
const RETRY_TOTAL: Duration = Duration::from_secs(5);
/// What plans are made for beside their text and the catalog: who lets a plan depend on another variable adds it here.
pub(crate) const PLAN_VARIABLES: [&str; 8] = [
    "sql_mode",
    "optimizer_switch",
    "group_concat_max_len",
    "character_set_connection",
    "collation_connection",
    "default_week_format",
    "div_precision_increment",
    "lc_time_names",
];
/// Prepared statements of one session.
const STATEMENTS_MAX: usize = 16_382;

/// Where a statement's rows go.
pub trait Sink: Send {
    /// The result's columns; comes once, before its rows.
    fn begin(&mut self, columns: &Columns);
    /// A row.
    ///
    /// # Errors
    /// A value that cannot be sent as its column's type.
    fn row(&mut self, values: &[Value]) -> Result<(), SqlError>;
    /// Lets what was gathered leave, if it is much. Whoever stops polling before it is ready loses nothing.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    /// True once the client may have seen something of the result.
    fn has_begun(&self) -> bool;
    /// True if so much was gathered that the client sees it soon, before the statement ends.
    fn is_full(&self) -> bool {
        false
    }
}

/// What a statement did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gave rows, which went to the sink.
    Rows,
    /// It gave none.
    Done(Done),
}

/// What a statement without rows did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows changed.
    pub affected_rows: u64,
    /// The first generated AUTO_INCREMENT value that was stored, or 0: what LAST_INSERT_ID() gives next.
    pub last_insert_id: u64,
    /// The AUTO_INCREMENT value that the client is told: the former, or that of the last row.
    pub told_insert_id: u64,
    /// A line for people.
    pub info: String,
}

impl Done {
    /// Nothing to tell.
    pub fn nothing() -> Outcome {
        Outcome::Done(Self::default())
    }
}

/// Who a session is for.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// CONNECTION_ID().
    pub connection_id: u32,
    /// The account's name.
    pub user: String,
    /// Where the client connects from.
    pub host: String,
    /// Affected rows count the rows found (CLIENT_FOUND_ROWS).
    pub found_rows: bool,
    /// A person types at it (CLIENT_INTERACTIVE).
    pub interactive: bool,
    /// Random bytes that nobody else knows, for RAND(), UUID() and RANDOM_BYTES().
    pub secret: [u8; 20],
    /// What the session's statements are ended by.
    pub handle: Arc<Handle>,
}

/// A prepared statement.
struct Statement {
    text: Arc<[u8]>,
    /// The database that its names are looked up in: the current one when it was prepared.
    database: Option<String>,
    /// How its text is read: as it was when it was prepared.
    mode: Mode,
    prepared: Arc<Prepared>,
    /// Made for another `sql_mode`.
    stale: bool,
    /// What it is counted for.
    bytes: usize,
}

/// What a client is told of a statement that it prepared.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    /// Its number.
    pub id: u32,
    /// Number of `?`.
    pub parameters: u16,
    /// Columns of its result; empty if it gives none.
    pub columns: Columns,
}

/// What a session has asked data nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trips {
    /// How often it has waited for them.
    pub(crate) count: u64,
    /// Rows that queries of one table have taken from them.
    pub(crate) rows: u64,
    /// When the first and the last answer has come, while somebody measures.
    pub(crate) times: Option<(u64, u64)>,
    /// Somebody measures.
    pub(crate) is_timed: bool,
}

/// A session.
pub struct Session<S: Store> {
    pub(crate) shared: Arc<Shared<S>>,
    pub(crate) client: Client,
    pub(crate) database: Option<String>,
    pub(crate) variables: Variables,
    user_variables: UserVariables,
    /// What those that the statement has assigned were before.
    former_variables: Option<FormerVariables>,
    variables_kept: Kept,
    statements_kept: Kept,
    pub(crate) transaction: Option<S::Transaction>,
    /// BEGIN came, and neither COMMIT nor ROLLBACK.
    explicit: bool,
    /// The transaction was rolled back, and the client may not know.
    doomed: bool,
    savepoints: Vec<Savepoint>,
    pub(crate) next_read_only: Option<bool>,
    read_only: bool,
    isolation_next: Option<String>,
    isolation: String,
    pub(crate) warnings: Vec<SqlError>,
    /// They are those of the statement before.
    warnings_kept: bool,
    pub(crate) last_insert_id: u64,
    row_count: i64,
    statement_micros: i64,
    /// How many statements there were.
    statement_count: u64,
    /// The number of what plans of this session depend on beside their texts, and a buffer for keys.
    settings: u64,
    key: Vec<u8>,
    statements: BTreeMap<u32, Statement>,
    next_statement: u32,
    /// The numbers of those that PREPARE has named.
    names: BTreeMap<String, u32>,
    syntax_mode: Mode,
    /// Rows of the last SELECT, for FOUND_ROWS().
    pub(crate) found_rows: u64,
    error_count: u16,
    /// When the statement began.
    began: tokio::time::Instant,
    /// The statement has changed definitions: what fails then is not run again as a whole (CHANGE-1).
    pub(crate) has_defined: bool,
    /// It has killed itself.
    ends_itself: bool,
    /// It has read rows since it has waited for disks last, and in a transaction by key, perhaps under locks (READ-7).
    has_read: bool,
    has_read_locked: bool,
    pub(crate) trips: Trips,
    pub(crate) temporaries: Temporaries<S>,
    /// A plan that takes long to drop.
    long_plan: Option<Arc<Prepared>>,
}

impl<S: Store> Session<S> {
    /// A fresh session.
    pub fn new(shared: Arc<Shared<S>>, client: Client) -> Self {
        let variables = shared.defaults();
        let temporaries = Temporaries::new(shared.store.clone());
        let kept = |kind| Kept::nothing(shared.memory(), &client.handle, kind);
        let (variables_kept, statements_kept) = (kept(Kind::Variables), kept(Kind::Prepared));
        let mut session = Self {
            shared,
            client,
            database: None,
            variables,
            user_variables: UserVariables::default(),
            former_variables: None,
            variables_kept,
            statements_kept,
            transaction: None,
            explicit: false,
            doomed: false,
            savepoints: Vec::new(),
            next_read_only: None,
            read_only: false,
            isolation_next: None,
            isolation: String::new(),
            warnings: Vec::new(),
            warnings_kept: false,
            last_insert_id: 0,
            row_count: 0,
            statement_micros: 0,
            statement_count: 0,
            settings: 0,
            key: Vec::new(),
            statements: BTreeMap::new(),
            next_statement: 1,
            names: BTreeMap::new(),
            syntax_mode: Mode::default(),
            found_rows: 0,
            error_count: 0,
            began: tokio::time::Instant::now(),
            has_defined: false,
            ends_itself: false,
            has_read: false,
            has_read_locked: false,
            trips: Trips::default(),
            temporaries,
            long_plan: None,
        };
        session.forget_plans();
        session.begin_to_rest();
        session
    }

    /// An answer of data nodes has come.
    pub(crate) fn note_trip(&mut self) {
        self.trips.count += 1;
        if self.trips.is_timed {
            let now = (self.shared.clock)();
            let first = self.trips.times.map_or(now, |(first, _)| first);
            self.trips.times = Some((first, now));
        }
    }

    /// Computes for a statement, which others may end.
    pub(crate) fn computing(&self, strict: bool) -> EvalContext {
        let handle = Arc::clone(&self.client.handle);
        EvalContext::new(strict).ended_by(handle)
    }

    /// Memory for a part of a statement.
    pub(crate) fn share(&self) -> Share {
        Share::of(self.shared.memory())
    }

    /// The current database.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// Warnings of the last statement.
    pub fn warning_count(&self) -> u16 {
        u16::try_from(self.warnings.len()).unwrap_or(u16::MAX)
    }

    /// Warnings that the last statement made itself: SHOW WARNINGS keeps those of the one before.
    pub fn new_warning_count(&self) -> u16 {
        if self.warnings_kept { 0 } else { self.warning_count() }
    }

    /// Selects a database.
    ///
    /// # Errors
    /// 1049.
    pub fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        if !crate::show::is_virtual_database(name)
            && !self.shared.store.catalog().has_database(name)
        {
            return Err(error::unknown_database(name));
        }
        self.database = Some(name.to_owned());
        self.client.handle.describe(&self.client.user, Some(name));
        Ok(())
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// The client's error, or that it is gone.
    pub async fn query(&mut self, text: &[u8], sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        self.begin_statement(Doing::Queries, text);
        let outcome = self.run(text, None, &[], sink).await;
        self.drop_long_plan();
        self.when_durable(outcome).await
    }

    fn begin_statement(&mut self, doing: Doing, text: &[u8]) {
        let now = (self.shared.now_micros)();
        self.statement_micros = self.variables.fixed_micros().unwrap_or(now);
        self.statement_count = self.statement_count.wrapping_add(1);
        self.began = tokio::time::Instant::now();
        self.has_defined = false;
        self.client.handle.begin(doing, text, now);
    }

    /// True if it has killed itself: its client hears of that, before it goes.
    pub(crate) fn ends_itself(&self) -> bool {
        self.ends_itself
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// As the statement itself would give.
    pub async fn prepare(&mut self, text: &[u8]) -> Result<PreparedInfo, SqlError> {
        if self.statements.len() >= STATEMENTS_MAX {
            let text = "Can't create more than max_prepared_stmt_count statements";
            return Err(error::make(1461, "42000", text));
        }
        // What the client is told of its columns does not depend on what others have asked.
        let prepared = self.find_plan(text, None, Some((&[], &[]))).await?;
        if let Plan::Other(parsed) = &prepared.plan {
            named::check_preparable(&parsed.statement)?;
        }
        let bytes = cache::statement_bytes(text, &prepared);
        self.statements_kept.grow(bytes)?;
        let id = self.next_statement;
        self.next_statement = self.next_statement.wrapping_add(1).max(1);
        let nulls = vec![Value::Null; prepared.externals.len()];
        let columns = match &prepared.plan {
            Plan::Select(plan) => plan.columns_with(&nulls),
            Plan::Query(plan) => plan.columns(),
            Plan::Explain(plan) => plan.columns.clone(),
            Plan::Analyze(plan) => plan.columns.clone(),
            Plan::Show(show) => show.columns(),
            _ => Columns::from([]),
        };
        let parameters = prepared.parameters;
        let database = self.database.clone();
        let (text, mode) = (Arc::from(text), self.syntax_mode);
        let statement = Statement { text, database, mode, prepared, stale: false, bytes };
        self.statements.insert(id, statement);
        Ok(PreparedInfo { id, parameters, columns })
    }

    /// Prepares a statement for a client, which may end this.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub async fn prepare_for_client(&mut self, text: &[u8]) -> Result<PreparedInfo, SqlError> {
        self.begin_statement(Doing::Queries, text);
        let prepared = self.prepare(text).await;
        self.long_plan = None;
        prepared
    }

    /// Number of `?` in a prepared statement.
    pub fn parameter_count(&self, id: u32) -> Option<u16> {
        self.statements.get(&id).map(|s| s.prepared.parameters)
    }

    /// Runs a prepared statement.
    ///
    /// # Errors
    /// As [`Session::query`]; 1243 for an unknown number.
    pub async fn execute(
        &mut self,
        id: u32,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        if let Some(statement) = self.statements.get(&id) {
            let text = Arc::clone(&statement.text);
            self.begin_statement(Doing::Executes, &text);
        }
        let outcome = self.execute_known(id, parameters, sink).await;
        self.drop_long_plan();
        self.when_durable(outcome).await
    }

    async fn execute_known(
        &mut self,
        id: u32,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let Some(statement) = self.statements.get(&id) else {
            let text = format!("Unknown prepared statement handler ({id}) given to EXECUTE");
            return Err(error::make(1243, "HY000", &text).into());
        };
        let text = Arc::clone(&statement.text);
        self.run(&text, Some(id), parameters, sink).await
    }

    /// True if a prepared statement is a query whose rows a cursor may keep.
    pub fn is_query(&self, id: u32) -> bool {
        let plan = self.statements.get(&id).map(|statement| &statement.prepared.plan);
        match plan {
            Some(Plan::Select(_)) => true,
            Some(Plan::Query(query)) => query.into.is_none(),
            _ => false,
        }
    }

    /// Forgets a prepared statement.
    pub fn close_statement(&mut self, id: u32) {
        if let Some(statement) = self.statements.remove(&id) {
            self.statements_kept.shrink(statement.bytes);
        }
    }

    /// Plans are made for the settings: those of prepared statements are made again.
    fn forget_plans(&mut self) {
        self.syntax_mode = crate::syntax::mode_of(&self.variables.get("sql_mode").to_display());
        let mut bytes = Vec::new();
        for name in PLAN_VARIABLES {
            bytes.extend_from_slice(self.variables.get(name).to_display().as_bytes());
            bytes.push(0);
        }
        self.settings = match self.temporaries.is_empty() {
            true => self.shared.plans().settings(bytes),
            // What names mean to this session they mean to no other.
            false => self.shared.plans().new_number(),
        };
        for statement in self.statements.values_mut() {
            statement.stale = true;
        }
    }

    /// How texts of this session are read.
    pub fn syntax_mode(&self) -> Mode {
        self.syntax_mode
    }

    /// The plan of a text, or of a prepared statement: one that any session has made, or a new one. With types, for values
    /// of these; a new one is estimated with the values.
    async fn find_plan(
        &mut self,
        text: &[u8],
        id: Option<u32>,
        made_for: Option<(&[ColumnType], &[Value])>,
    ) -> Result<Arc<Prepared>, SqlError> {
        let types = made_for.map(|(types, _)| types);
        let version = self.shared.store.catalog().version;
        let (database, mode) = match id.and_then(|id| self.statements.get(&id)) {
            Some(statement) => (statement.database.as_deref(), statement.mode),
            None => (self.database.as_deref(), self.syntax_mode),
        };
        if text.len() > cache::TEXT_BYTES_MAX {
            let database = database.map(str::to_owned);
            return self.make_plan(text, (database, mode), made_for.unwrap_or_default()).await;
        }
        let mut key = std::mem::take(&mut self.key);
        self.begin_key(&mut key, database, mode);
        key.extend_from_slice(text);
        let is_right = |prepared: &Prepared| self.is_right(prepared, version);
        let known = self.shared.plans().get(&key, types, is_right);
        let found = match known {
            Some(known) => Ok(known),
            None => {
                let database = database.map(str::to_owned);
                let made = self.make_plan(text, (database, mode), made_for.unwrap_or_default());
                made.await.inspect(|prepared| {
                    if prepared.is_kept() {
                        self.shared.plans().insert(&key, Arc::clone(prepared));
                    }
                })
            }
        };
        self.key = key;
        found
    }

    /// What a text means depends on what is in a key before it.
    fn begin_key(&self, key: &mut Vec<u8>, database: Option<&str>, mode: Mode) {
        key.clear();
        key.extend_from_slice(&self.settings.to_be_bytes());
        key.extend_from_slice(database.unwrap_or_default().as_bytes());
        // No name has the second of these bytes.
        key.extend_from_slice(&[u8::from(database.is_some()), 0xff, mode.bits()]);
    }

    /// True of a plan for the definitions of this version, and for tables about as large as they are.
    fn is_right(&self, prepared: &Prepared, version: u64) -> bool {
        let look = |table| self.shared.store.statistics(table);
        prepared.catalog_version == version && prepared.plan.fits(&look)
    }

    async fn lookup(&mut self, text: &[u8], id: Option<u32>) -> Result<Arc<Prepared>, SqlError> {
        let version = self.shared.store.catalog().version;
        let Some(statement) = id.and_then(|id| self.statements.get(&id)) else {
            return self.find_plan(text, None, None).await;
        };
        if !statement.stale && self.is_right(&statement.prepared, version) {
            return Ok(Arc::clone(&statement.prepared));
        }
        let prepared = self.find_plan(text, id, None).await?;
        self.keep_prepared(id, &prepared);
        Ok(prepared)
    }

    /// This plan, or that of a text.
    async fn found_or(
        &mut self,
        known: Option<Arc<Prepared>>,
        text: &[u8],
        id: Option<u32>,
    ) -> Result<Arc<Prepared>, SqlError> {
        match known {
            Some(known) => Ok(known),
            None => self.lookup(text, id).await,
        }
    }

    /// A prepared statement has another plan from now on.
    fn keep_prepared(&mut self, id: Option<u32>, prepared: &Arc<Prepared>) {
        if let Some(statement) = id.and_then(|id| self.statements.get_mut(&id)) {
            statement.prepared = Arc::clone(prepared);
            statement.stale = false;
        }
    }

    /// The plan for rows of literals; none if there is something about the statement that its plan as it is must say.
    async fn lookup_template(&mut self, rows: &LiteralRows) -> Option<Arc<Prepared>> {
        let prepared = self.lookup(&rows.template, None).await.ok()?;
        let fits = usize::from(prepared.parameters) == rows.width
            && matches!(&prepared.plan, Plan::Insert(plan) if plan.is_template(rows.width, &prepared.externals));
        fits.then_some(prepared)
    }

    fn connection_collation(&self) -> Option<Collation> {
        crate::syntax::collation_of_constants(
            &self.variables.get("collation_connection").to_display(),
        )
    }

    fn group_concat_bytes(&self) -> usize {
        let bytes = match self.variables.get("group_concat_max_len") {
            Value::Int(bytes) => u64::try_from(bytes).unwrap_or(4),
            Value::UInt(bytes) => bytes,
            _ => 1_024,
        };
        usize::try_from(bytes.max(4)).unwrap_or(usize::MAX)
    }

    /// The plan for values of these types: plans of queries are made for them.
    async fn typed(
        &mut self,
        prepared: Arc<Prepared>,
        (text, id): (&[u8], Option<u32>),
        parameters: &[Value],
    ) -> Result<Arc<Prepared>, SqlError> {
        let Some(made_for) = prepared.external_types() else { return Ok(prepared) };
        let values = self.externals(&prepared.externals, parameters)?;
        let types: Vec<ColumnType> =
            values.iter().map(crate::plan::query::type_of_external).collect();
        if made_for == types {
            return Ok(prepared);
        }
        let prepared = self.find_plan(text, id, Some((&types, &values))).await?;
        self.keep_prepared(id, &prepared);
        Ok(prepared)
    }

    /// Looks at tables of which nothing is known yet; true if it has learned anything for the plan.
    async fn learn(&mut self, prepared: &Prepared) -> bool {
        let mut has_learned = false;
        for (table, known) in prepared.plan.tables() {
            if known.is_none() {
                let taken = self.shared.store.learn_statistics(*table);
                // The statement itself says that it was ended.
                let Ok(taken) = self.client.handle.unless_ended(taken).await else { break };
                has_learned |= taken.is_some();
            }
        }
        has_learned
    }

    /// Memory for rows of literals, if they are many.
    fn hold_rows(&self, rows: &LiteralRows) -> Result<Share, SqlError> {
        const FEW_VALUES: usize = 1_024;
        let mut share = self.share();
        if rows.values.len() > FEW_VALUES {
            share.hold(rows.bytes())?;
        }
        Ok(share)
    }

    /// A statement is run once more: what it has done is as if it had not been.
    fn forget_attempt(&mut self, alone: bool) {
        if alone {
            self.transaction = None;
        }
        self.restore_variables();
    }

    async fn run(
        &mut self,
        text: &[u8],
        id: Option<u32>,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        // Their memory is held until the statement is through.
        let literals = if id.is_none() { self.literal_rows(text).await } else { None };
        let held = literals.as_ref().map(|rows| self.hold_rows(rows)).transpose();
        let _held = match held {
            Ok(held) => held,
            Err(error) => return Err(self.fail(error.into()).await),
        };
        let (shape, mut first) = match (id, &literals) {
            (None, None) => self.shape_of(text).await.unzip(),
            _ => (None, None),
        };
        let (text, parameters) = match &shape {
            Some(shape) => (&*shape.template, shape.values.as_slice()),
            None => (text, parameters),
        };
        let mut wait = Duration::from_millis(2);
        // Since when it is repeated.
        let (mut begun, mut repeats_since) = (self.began, None);
        let mut has_learned = false;
        loop {
            let template = match &literals {
                Some(rows) => self.lookup_template(rows).await,
                None => None,
            };
            let literals = literals.as_ref().filter(|_| template.is_some());
            let known = template.or_else(|| first.take());
            let prepared = match self.found_or(known, text, id).await {
                Ok(prepared) => prepared,
                Err(error) => {
                    self.commit_before_definition(text, &error).await?;
                    return Err(self.fail(error.into()).await);
                }
            };
            if id.is_none() && shape.is_none() && literals.is_none() && prepared.parameters > 0 {
                // Nobody has prepared it.
                return Err(self.fail(error::syntax("near '?'").into()).await);
            }
            let prepared = match self.typed(prepared, (text, id), parameters).await {
                Ok(prepared) => prepared,
                Err(error) => return Err(self.fail(error.into()).await),
            };
            if !has_learned && self.learn(&prepared).await {
                has_learned = true;
                continue;
            }
            let given = literals.map_or(Given::Parameters(parameters), Given::Rows);
            let alone = self.is_alone();
            let assigns = prepared.plan.query().is_some_and(|query| query.uses_variables);
            self.former_variables = assigns.then(FormerVariables::new);
            let failure = match self.run_in_time(&prepared, given, sink).await {
                Ok(outcome) => {
                    self.former_variables = None;
                    self.note(&outcome);
                    return Ok(outcome);
                }
                Err(failure) => failure,
            };
            let is_over = self.is_repeated_enough(&failure, begun, &mut repeats_since);
            let again = (failure.is_temporary() && alone) || self.may_repeat(&failure);
            if !again || is_over || self.has_defined || sink.has_begun() {
                self.former_variables = None;
                return Err(self.fail(failure).await);
            }
            self.forget_attempt(alone);
            if let Err(ended) = self.client.handle.unless_ended(tokio::time::sleep(wait)).await {
                return Err(self.fail(ended.into()).await);
            }
            wait = (wait * 2).min(Duration::from_millis(200));
            begun = tokio::time::Instant::now();
        }
    }

    async fn run_prepared(
        &mut self,
        prepared: &Prepared,
        given: Given<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let (parameters, literals) = match given {
            Given::Parameters(parameters) => (parameters, None),
            // Nothing but the rows' places in the plan is for them.
            Given::Rows(rows) => (&[][..], Some(rows)),
        };
        if literals.is_none() && parameters.len() != usize::from(prepared.parameters) {
            let text = "Incorrect arguments to mysqld_stmt_execute";
            return Err(error::make(1210, "HY000", text).into());
        }
        if self.doomed && !ends_transaction(&prepared.plan) {
            self.end();
            return Err(error::transaction_lost().into());
        }
        let externals = self.externals(&prepared.externals, parameters)?;
        self.warnings_kept = keeps_diagnostics(&prepared.plan);
        if self.warnings_kept {
            return self.run_beside(prepared, (externals, literals), sink).await;
        }
        self.warnings.clear();
        self.error_count = 0;
        self.run_plan(prepared, (externals, literals), sink).await
    }

    /// Runs a statement that keeps what the one before has left, unless it has warnings of its own.
    async fn run_beside(
        &mut self,
        prepared: &Prepared,
        given: (Vec<Value>, Option<&LiteralRows>),
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        if matches!(&prepared.plan, Plan::Show(_)) {
            return self.run_plan(prepared, given, sink).await;
        }
        let before = (std::mem::take(&mut self.warnings), std::mem::take(&mut self.error_count));
        let outcome = self.run_plan(prepared, given, sink).await?;
        match self.warnings.is_empty() {
            true => (self.warnings, self.error_count) = before,
            false => self.warnings_kept = false,
        }
        Ok(outcome)
    }

    async fn run_plan(
        &mut self,
        prepared: &Prepared,
        (externals, literals): (Vec<Value>, Option<&LiteralRows>),
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        match &prepared.plan {
            Plan::Select(plan) => self.select(plan, &externals, sink).await,
            Plan::Query(plan) => self.run_query(plan, &externals, sink).await,
            Plan::Insert(plan) => {
                self.check_writes(&plan.table.def)?;
                self.insert(plan, &externals, literals).await
            }
            Plan::Write(plan) => {
                self.check_writes(&plan.table.def)?;
                self.write(plan, &externals).await
            }
            Plan::Change(plan) => {
                for target in &plan.targets {
                    self.check_writes(&target.table.def)?;
                }
                self.change_found(plan, &externals).await
            }
            Plan::Show(show) => self.show(show, &externals, sink).await,
            Plan::Set(settings) => {
                self.set(settings, &externals).await?;
                self.limit_rest();
                Ok(Done::nothing())
            }
            Plan::SetQuery(plan) => {
                let mut only = crate::exec::OnlyRow::default();
                self.produce(&plan.query, &externals, &mut only, true).await?;
                let externals: Vec<Value> =
                    externals.into_iter().chain(only.row.unwrap_or_default()).collect();
                self.set(&plan.settings, &externals).await?;
                self.limit_rest();
                Ok(Done::nothing())
            }
            Plan::CreateAs(plan) => self.create_as(plan, &externals).await,
            Plan::CreateView(plan) => self.create_view(plan).await,
            Plan::Kill(whole, id) => self.run_kill(*whole, id, &externals).await,
            Plan::Analyze(plan) => self.analyze(plan, &externals, sink).await,
            Plan::Explain(plan) => {
                sink.begin(&plan.columns);
                for row in &plan.rows {
                    sink.row(row)?;
                }
                Ok(Outcome::Rows)
            }
            Plan::Other(parsed) => match &parsed.statement {
                Syntax::Prepare { name, source } => {
                    Ok(self.prepare_named(&parsed.tree, *name, *source).await?)
                }
                Syntax::Execute { name, variables } => {
                    self.execute_named(&parsed.tree, (*name, variables), sink).await
                }
                Syntax::Deallocate(name) => {
                    self.deallocate(&parsed.tree, *name)?;
                    Ok(Done::nothing())
                }
                Syntax::TableAdmin(admin) if admin.verb.name() == "ANALYZE" => {
                    self.analyze_tables(&parsed.tree, admin, sink).await
                }
                _ => self.other(parsed).await,
            },
        }
    }

    fn note(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Rows => self.row_count = -1,
            Outcome::Done(done) => {
                self.row_count = i64::try_from(done.affected_rows).unwrap_or(i64::MAX);
                if done.last_insert_id != 0 {
                    self.last_insert_id = done.last_insert_id;
                }
            }
        }
    }

    /// # Errors
    /// 4082: there is no memory for copies of large ones.
    pub(crate) fn externals(
        &self,
        wanted: &[External],
        parameters: &[Value],
    ) -> Result<Vec<Value>, SqlError> {
        // Large values come in packets, or from variables, which are counted.
        let is_large = self.client.handle.kept_bytes() > 0;
        // Until the copies are there.
        let _reserved = match is_large {
            true => self.reserve_externals(wanted, parameters)?,
            false => None,
        };
        let values = wanted.iter().map(|external| self.external(external, parameters)).collect();
        Ok(values)
    }

    #[cold]
    fn reserve_externals(
        &self,
        wanted: &[External],
        parameters: &[Value],
    ) -> Result<Option<Reserved>, SqlError> {
        let bytes = wanted.iter().filter_map(|external| match external {
            External::Parameter(at) => parameters.get(usize::from(*at)),
            External::UserVariable(name) => self.user_variables.get(name),
            _ => None,
        });
        let bytes = bytes.map(|value| variable_bytes("", value)).sum();
        self.shared.memory().reserve_copies(bytes)
    }

    fn external(&self, external: &External, parameters: &[Value]) -> Value {
        match external {
            External::Parameter(at) => {
                parameters.get(usize::from(*at)).cloned().unwrap_or(Value::Null)
            }
            External::YearParameter(at) => {
                let value = parameters.get(usize::from(*at)).cloned().unwrap_or(Value::Null);
                lats_values::adapted_year(value)
            }
            External::Random => Value::Bytes(self.random_bytes()),
            External::Now(fsp) => self.now(*fsp),
            External::CurrentDate => match self.moment(0) {
                Some(moment) => Value::Date(moment.date),
                None => Value::Null,
            },
            External::CurrentTime(fsp) => match self.moment(*fsp) {
                Some(moment) => Value::Time(moment.time()),
                None => Value::Null,
            },
            External::UnixTime => Value::Int(self.statement_micros.div_euclid(1_000_000)),
            External::LastInsertId => Value::UInt(self.last_insert_id),
            External::RowCount => Value::Int(self.row_count),
            External::FoundRows => Value::UInt(self.found_rows),
            // Put in where rows are checked.
            External::OfRow(_) => Value::Null,
            External::ConnectionId => Value::UInt(u64::from(self.client.connection_id)),
            External::Database => match &self.database {
                Some(name) => Value::text(name),
                None => Value::Null,
            },
            External::User => Value::text(&format!("{}@{}", self.client.user, self.client.host)),
            External::UserVariable(name) => {
                self.user_variables.get(name).cloned().unwrap_or(Value::Null)
            }
            External::SystemVariable { name, .. } if name == "timestamp" => {
                Value::Double(self.statement_micros as f64 / 1e6)
            }
            External::SystemVariable { global: true, name } => self.shared.defaults().get(name),
            External::SystemVariable { global: false, name } => match name.as_str() {
                "warning_count" => Value::Int(i64::from(self.warning_count())),
                "error_count" => Value::Int(i64::from(self.error_count)),
                "last_insert_id" | "identity" => Value::UInt(self.last_insert_id),
                _ => self.variables.get(name),
            },
        }
    }

    /// Bytes that are others in each statement.
    fn random_bytes(&self) -> Vec<u8> {
        let mut bytes = self.client.secret.to_vec();
        bytes.extend(self.statement_count.to_le_bytes());
        bytes
    }

    /// When the statement began.
    pub(crate) fn now(&self, fsp: u8) -> Value {
        self.moment(fsp).map_or(Value::Null, Value::DateTime)
    }

    fn moment(&self, fsp: u8) -> Option<DateTime> {
        let step = 10_i64.pow(6 - u32::from(fsp.min(6)));
        DateTime::from_unix_micros(self.statement_micros.div_euclid(step) * step, fsp)
    }

    /// What a session that begins now would have.
    pub(crate) fn global_variables(&self) -> Variables {
        self.shared.defaults()
    }
}

/// What comes with a statement's text.
enum Given<'a> {
    /// The values of a prepared statement's placeholders.
    Parameters(&'a [Value]),
    /// Rows that stand in the text.
    Rows(&'a LiteralRows),
}
