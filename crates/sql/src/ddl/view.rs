//! CREATE, ALTER and DROP VIEW.

use super::places;
use crate::error::{self, Failure};
use crate::plan::view::CreateViewPlan;
use crate::session::{Done, Outcome, Session};
use crate::store::Store;
use crate::table::check_not_system;
use lats_catalog::{Change, ViewDef};
use lats_mysql_syntax::lexer::Lexer;
use lats_mysql_syntax::tree::{Statement, TableName};
use lats_mysql_syntax::{Keyword, Tree};
use lats_values::SqlError;

impl<S: Store> Session<S> {
    pub(crate) async fn create_view(&mut self, plan: &CreateViewPlan) -> Result<Outcome, Failure> {
        self.check_writable()?;
        self.commit().await?;
        let own = || (self.client.user.clone(), self.client.host.clone());
        let shown = |name: &str| self.variables.get(name).to_display();
        let view = ViewDef {
            definer: plan.definer.clone().unwrap_or_else(own),
            sql_mode: shown("sql_mode"),
            character_set: (shown("character_set_client"), shown("collation_connection")),
            ..plan.def.clone()
        };
        let outcome = self.change(Change::PutView { view, way: plan.way }, false).await?;
        self.add_warnings(plan.warnings.clone());
        if self.variables.wants_disk() {
            self.shared.store.all_durable().await?;
        }
        Ok(outcome)
    }

    /// Definitions commit what was done before them, also if their query is wrong.
    pub(crate) async fn commit_before_definition(
        &mut self,
        text: &[u8],
        error: &SqlError,
    ) -> Result<(), Failure> {
        // What cannot be read, and what LatsDB does not have, leaves the transaction as it is.
        let is_ended = self.client.handle.why().is_some();
        if matches!(error.errno, 1064 | 1235) || is_ended || self.check_writable().is_err() {
            return Ok(());
        }
        // Most other statements need not be read again.
        let first = Lexer::new(text, 0, self.syntax_mode()).next_token();
        if !matches!(first.word, Keyword::CREATE | Keyword::ALTER) {
            return Ok(());
        }
        let parsed = crate::syntax::parse(text, self.syntax_mode());
        let defines = parsed.is_ok_and(|parsed| match parsed.statement {
            Statement::CreateTable(create) => !create.is_temporary,
            statement => matches!(statement, Statement::CreateView(_)),
        });
        if defines { self.commit().await } else { Ok(()) }
    }

    pub(super) async fn drop_views(
        &mut self,
        tree: &Tree,
        names: &[TableName],
        if_exists: bool,
    ) -> Result<Outcome, Failure> {
        let mut views = places(tree, names, self.database.as_deref())?;
        views.iter().try_for_each(|place| check_not_system(&place.0))?;
        let catalog = self.shared.store.catalog();
        let mut missing: Vec<String> = Vec::new();
        let mut wrong = Vec::new();
        for (database, name) in &views {
            if catalog.table(database, name).is_some() {
                wrong.push(error::wrong_object(database, name, "VIEW"));
            } else if catalog.view(database, name).is_none() {
                missing.push(format!("{database}.{name}"));
            }
        }
        let unknown = |names: &str| error::make(1051, "42S02", &format!("Unknown table '{names}'"));
        if if_exists {
            views.retain(|(database, name)| catalog.view(database, name).is_some());
            self.add_warnings(missing.iter().map(|name| unknown(name)).chain(wrong).collect());
        } else if let Some(first) = wrong.into_iter().next() {
            return Err(first.into());
        } else if !missing.is_empty() {
            return Err(unknown(&missing.join(",")).into());
        }
        if views.is_empty() {
            return Ok(Done::nothing());
        }
        self.change(Change::DropViews { views, if_exists }, true).await
    }
}
