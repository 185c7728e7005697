//! Statements that need no plan: transaction control, USE, and DDL.

use super::{Done, Outcome, Session};
use crate::error::{self, Failure};
use crate::store::Store;
use lats_values::SqlError;
use sqlparser::ast::{self, Statement, TransactionAccessMode, TransactionMode, Use};

impl<S: Store> Session<S> {
    pub(super) async fn other(&mut self, statement: &Statement) -> Result<Outcome, Failure> {
        match statement {
            Statement::StartTransaction {
                modes,
                modifier: None,
                statements,
                exception: None,
                has_end_keyword: false,
                ..
            } if statements.is_empty() => {
                let read_only = read_only(modes)?;
                self.begin(read_only).await?;
            }
            Statement::Commit { chain, modifier: None, end: false } => {
                self.commit().await?;
                self.chain(*chain);
            }
            Statement::Rollback { chain, savepoint: None } => {
                self.rollback().await;
                self.chain(*chain);
            }
            Statement::Rollback { chain: false, savepoint: Some(name) } => {
                self.rollback_to(&name.value).await?;
            }
            Statement::Savepoint { name } => self.set_savepoint(&name.value),
            Statement::ReleaseSavepoint { name } => self.release_savepoint(&name.value)?,
            Statement::Use(Use::Object(name)) => {
                self.use_database(&crate::table::single_name(name)?)?;
            }
            Statement::LockTables { .. } => {
                return Err(error::not_supported("LOCK TABLES").into());
            }
            Statement::UnlockTables => {}
            other => return self.define(other).await,
        }
        Ok(Done::nothing())
    }

    /// A change of definitions. It waits for disks as a commit does.
    async fn define(&mut self, statement: &Statement) -> Result<Outcome, Failure> {
        let outcome = match statement {
            Statement::CreateTable(create) => self.create_table(create).await,
            Statement::CreateIndex(create) => self.create_index(create).await,
            Statement::CreateDatabase { .. } | Statement::CreateSchema { .. } => {
                self.create_database(statement).await
            }
            Statement::Drop { .. } => self.drop_object(statement).await,
            Statement::Truncate(truncate) => self.truncate(truncate).await,
            other => Err(refused(other).into()),
        }?;
        if self.variables.wants_disk() {
            self.shared.store.all_durable().await?;
        }
        Ok(outcome)
    }

    fn chain(&mut self, chain: bool) {
        self.explicit = chain;
    }
}

fn read_only(modes: &[TransactionMode]) -> Result<Option<bool>, SqlError> {
    match modes {
        [] => Ok(None),
        [TransactionMode::AccessMode(TransactionAccessMode::ReadOnly)] => Ok(Some(true)),
        [TransactionMode::AccessMode(TransactionAccessMode::ReadWrite)] => Ok(Some(false)),
        _ => Err(error::not_supported("this form of START TRANSACTION")),
    }
}

fn refused(statement: &Statement) -> SqlError {
    let what = match statement {
        Statement::CreateView(_) => "views".to_owned(),
        Statement::CreateTrigger(_) => "triggers".to_owned(),
        Statement::CreateProcedure { .. } => "procedures".to_owned(),
        Statement::CreateFunction(_) => "functions".to_owned(),
        Statement::AlterTable(ast::AlterTable { .. }) => "ALTER TABLE".to_owned(),
        other => other.to_string().chars().take(60).collect(),
    };
    error::not_supported(&what)
}
