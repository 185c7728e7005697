//! Transactions and table locks.

use super::primary::scope_of;
use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    Access, Completion, Isolation, Scope, Statement, TableLock, TableLockKind, Text,
};
use Keyword as K;

impl Parser<'_> {
    /// START TRANSACTION.
    pub(super) fn start_transaction(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let (mut with_consistent_snapshot, mut access) = (false, Access::None);
        if matches!(self.token().word, K::WITH | K::READ) {
            loop {
                if self.eat_word(K::WITH) {
                    self.expect_words(&[K::CONSISTENT, K::SNAPSHOT])?;
                    with_consistent_snapshot = true;
                } else {
                    let found = self.access()?;
                    if access != Access::None && access != found {
                        return Err(self.error_at(self.last_span().start));
                    }
                    access = found;
                }
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        Ok(Statement::StartTransaction { is_begin: false, with_consistent_snapshot, access })
    }

    pub(super) fn begin(&mut self) -> Statement {
        self.advance();
        self.eat_word(K::WORK);
        Statement::StartTransaction {
            is_begin: true,
            with_consistent_snapshot: false,
            access: Access::None,
        }
    }

    /// READ ONLY or READ WRITE.
    fn access(&mut self) -> Result<Access> {
        self.expect_word(K::READ)?;
        let word = self.expect_one_of(&[K::ONLY, K::WRITE])?;
        Ok(if word == K::ONLY { Access::ReadOnly } else { Access::ReadWrite })
    }

    fn completion(&mut self) -> Result<Completion> {
        let (mut chain, mut release) = (None, None);
        if self.eat_word(K::AND) {
            chain = Some(!self.eat_word(K::NO));
            self.expect_word(K::CHAIN)?;
        }
        if self.is_word(K::NO) || self.is_word(K::RELEASE) {
            release = Some(!self.eat_word(K::NO));
            self.expect_word(K::RELEASE)?;
        }
        Ok(Completion { chain, release })
    }

    pub(super) fn commit(&mut self) -> Result<Statement> {
        self.advance();
        self.eat_word(K::WORK);
        Ok(Statement::Commit(self.completion()?))
    }

    pub(super) fn rollback(&mut self) -> Result<Statement> {
        self.advance();
        self.eat_word(K::WORK);
        if self.eat_word(K::TO) {
            if self.is_word(K::SAVEPOINT) && Self::is_name(self.ahead(1)) {
                self.advance();
            }
            return Ok(Statement::RollbackTo(self.name()?));
        }
        Ok(Statement::Rollback(self.completion()?))
    }

    /// `[GLOBAL | SESSION] TRANSACTION …`, whose first words are passed.
    pub(super) fn set_transaction(&mut self, scope: Scope) -> Result<Statement> {
        let (mut isolation, mut access) = (Isolation::None, Access::None);
        let is_access_first = self.is_word(K::READ);
        loop {
            if isolation == Isolation::None && self.eat_word(K::ISOLATION) {
                self.expect_word(K::LEVEL)?;
                isolation = match self.expect_one_of(&[K::READ, K::REPEATABLE, K::SERIALIZABLE])? {
                    K::READ => match self.expect_one_of(&[K::UNCOMMITTED, K::COMMITTED])? {
                        K::COMMITTED => Isolation::ReadCommitted,
                        _ => Isolation::ReadUncommitted,
                    },
                    K::REPEATABLE => {
                        self.expect_word(K::READ)?;
                        Isolation::RepeatableRead
                    }
                    _ => Isolation::Serializable,
                };
            } else if access == Access::None && self.is_word(K::READ) {
                access = self.access()?;
            } else {
                return Err(self.error());
            }
            if !self.eat(Kind::Comma) {
                return Ok(Statement::SetTransaction { scope, isolation, access, is_access_first });
            }
        }
    }

    /// True if SET TRANSACTION comes next, with its scope.
    pub(super) fn at_set_transaction(&self) -> Option<Scope> {
        let is_set = |at: usize| {
            self.word_ahead(at) == K::TRANSACTION
                && matches!(self.word_ahead(at + 1), K::ISOLATION | K::READ)
        };
        let scope = scope_of(self.token().word);
        match scope {
            Scope::None => is_set(0).then_some(scope),
            Scope::Global | Scope::Session | Scope::Local => is_set(1).then_some(scope),
            _ => None,
        }
    }

    pub(super) fn lock(&mut self) -> Result<Statement> {
        self.advance();
        if self.eat_word(K::INSTANCE) {
            self.expect_words(&[K::FOR, K::BACKUP])?;
            return Ok(Statement::LockInstance);
        }
        self.expect_one_of(&[K::TABLES, K::TABLE])?;
        let locks = self.comma_list(|parser| {
            let table = parser.table_name()?;
            let alias = if parser.is_word(K::LOCAL) { Text::NONE } else { parser.table_alias()? };
            let kind = if parser.eat_word(K::READ) {
                if parser.eat_word(K::LOCAL) {
                    TableLockKind::ReadLocal
                } else {
                    TableLockKind::Read
                }
            } else {
                parser.eat_word(K::LOW_PRIORITY);
                parser.expect_word(K::WRITE)?;
                TableLockKind::Write
            };
            Ok(TableLock { table, alias, kind })
        })?;
        Ok(Statement::LockTables(locks))
    }

    pub(super) fn unlock(&mut self) -> Result<Statement> {
        self.advance();
        if self.eat_word(K::INSTANCE) {
            return Ok(Statement::UnlockInstance);
        }
        self.expect_one_of(&[K::TABLES, K::TABLE])?;
        Ok(Statement::UnlockTables)
    }
}
