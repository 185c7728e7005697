//! Statements that need no plan: transaction control, USE, and definitions.

use super::{Done, Outcome, Session};
use crate::error::{self, Failure};
use crate::set::COMPLETION_CHAIN;
use crate::store::Store;
use crate::syntax::name;
use lats_mysql_syntax::Parsed;
use lats_mysql_syntax::tree::{Access, Completion, ExplainWhat, Statement};

impl<S: Store> Session<S> {
    pub(super) async fn other(&mut self, parsed: &Parsed) -> Result<Outcome, Failure> {
        let tree = &parsed.tree;
        match &parsed.statement {
            Statement::StartTransaction { with_consistent_snapshot: true, .. } => {
                return Err(error::not_supported("WITH CONSISTENT SNAPSHOT").into());
            }
            Statement::StartTransaction { access, .. } => {
                let read_only = match access {
                    Access::None => None,
                    Access::ReadOnly => Some(true),
                    Access::ReadWrite => Some(false),
                };
                self.begin(read_only).await?;
            }
            Statement::Commit(completion) => self.complete(*completion, true).await?,
            Statement::Rollback(completion) => self.complete(*completion, false).await?,
            Statement::RollbackTo(savepoint) => self.rollback_to(name(tree, *savepoint)?).await?,
            Statement::Savepoint(savepoint) => self.set_savepoint(name(tree, *savepoint)?),
            Statement::ReleaseSavepoint(savepoint) => {
                self.release_savepoint(name(tree, *savepoint)?)?;
            }
            Statement::Use(database) => self.use_database(name(tree, *database)?)?,
            // Nothing can be locked.
            Statement::UnlockTables | Statement::UnlockInstance => {}
            other => {
                if let Some(what) = refused(other) {
                    return Err(error::not_supported(&what).into());
                }
                return self.define(parsed).await;
            }
        }
        Ok(Done::nothing())
    }

    /// True if the last statement failed: then its error is the last of the warnings.
    pub(crate) fn has_failed(&self) -> bool {
        self.error_count > 0
    }

    /// COMMIT and ROLLBACK. What follows AND CHAIN is like the transaction before.
    async fn complete(&mut self, completion: Completion, commits: bool) -> Result<(), Failure> {
        if completion.release == Some(true) {
            return Err(error::not_supported("RELEASE").into());
        }
        let chain = completion.chain.unwrap_or_else(|| {
            self.variables.get("completion_type").to_display() == COMPLETION_CHAIN
        });
        let (read_only, isolation) = (self.read_only, self.isolation.clone());
        match commits {
            true => self.commit().await?,
            false => self.rollback().await,
        }
        if chain {
            self.explicit = true;
            self.read_only = read_only;
            self.isolation = isolation;
        }
        Ok(())
    }
}

/// What a statement is called if LatsDB does not run it.
fn refused(statement: &Statement) -> Option<String> {
    use Statement as S;
    let what = match statement {
        S::CreateTable(_) | S::DropTables { .. } | S::CreateIndex(_) | S::DropIndex { .. } => {
            return None;
        }
        S::CreateDatabase { .. } | S::DropDatabase { .. } | S::Truncate(_) => return None,
        S::CreateView(_) | S::DropViews { .. } | S::RenameTables(_) => return None,
        S::AlterTable(_) => "ALTER TABLE",
        S::AlterDatabase { .. } => "ALTER DATABASE",
        S::LockTables(_) => "LOCK TABLES",
        S::LockInstance => "LOCK INSTANCE FOR BACKUP",
        S::SetRole { .. } => "SET ROLE",
        S::SetDefaultRole { .. } => "SET DEFAULT ROLE",
        S::Explain(explain) => match (&explain.what, explain.is_analyze) {
            (ExplainWhat::Connection(_), _) => "EXPLAIN FOR CONNECTION",
            (_, true) => "EXPLAIN ANALYZE",
            _ => "EXPLAIN",
        },
        S::Help(_) => "HELP",
        S::Call { .. } => "CALL",
        S::Flush { .. } => "FLUSH",
        S::ResetPersist { .. } => "RESET PERSIST",
        S::TableAdmin(admin) => return Some(format!("{} TABLE", admin.verb.name())),
        S::User(user) if user.is_alter => "ALTER USER",
        S::User(_) => "CREATE USER",
        S::DropUsers { is_role: true, .. } => "DROP ROLE",
        S::DropUsers { .. } => "DROP USER",
        S::CreateRoles { .. } => "CREATE ROLE",
        S::RenameUsers(_) => "RENAME USER",
        S::Grant(grant) if grant.is_revoke => "REVOKE",
        S::Grant(_) => "GRANT",
        S::Other { name, .. } => name,
        _ => return None,
    };
    Some(what.to_owned())
}
