//! Which statement it is: its first words decide.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::Statement;
use Keyword as K;

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Statement> {
        let word = self.token().word;
        match word {
            K::SELECT | K::VALUES | K::TABLE => Ok(Statement::Query(self.query()?)),
            K::WITH => self.with_statement(),
            _ if self.is(Kind::Open) => Ok(Statement::Query(self.query()?)),
            K::INSERT | K::REPLACE => self.insert(),
            K::UPDATE => self.update(None),
            K::DELETE => self.delete(None),
            K::CREATE => self.create(),
            K::ALTER => self.alter(),
            K::DROP => self.drop_statement(),
            K::TRUNCATE => self.truncate(),
            K::RENAME => self.rename(),
            K::SET => self.set(),
            K::SHOW => self.show(),
            K::EXPLAIN | K::DESCRIBE | K::DESC => self.explain(),
            K::GRANT | K::REVOKE => self.grant(),
            K::CALL => self.call_statement(),
            K::DO => self.do_statement(),
            K::ANALYZE | K::CHECK | K::CHECKSUM | K::OPTIMIZE | K::REPAIR => self.table_admin(),
            K::KILL => self.kill(),
            K::FLUSH => self.flush(),
            K::RESET => self.reset(),
            _ => self.short_statement(word),
        }
    }

    /// Statements of transactions and sessions.
    fn short_statement(&mut self, word: Keyword) -> Result<Statement> {
        match word {
            K::START if self.word_ahead(1) == K::TRANSACTION => self.start_transaction(),
            K::BEGIN => Ok(self.begin()),
            K::COMMIT => self.commit(),
            K::ROLLBACK => self.rollback(),
            K::SAVEPOINT => {
                self.advance();
                Ok(Statement::Savepoint(self.name()?))
            }
            K::RELEASE => {
                self.advance();
                self.expect_word(K::SAVEPOINT)?;
                Ok(Statement::ReleaseSavepoint(self.name()?))
            }
            K::LOCK => self.lock(),
            K::UNLOCK => self.unlock(),
            K::USE => {
                self.advance();
                Ok(Statement::Use(self.name()?))
            }
            K::HELP => {
                self.advance();
                Ok(Statement::Help(self.name_or_text()?))
            }
            K::PREPARE => self.prepare(),
            K::EXECUTE => self.execute(),
            K::DEALLOCATE => self.deallocate(),
            _ => self.other(),
        }
    }

    /// WITH begins a query, UPDATE or DELETE.
    fn with_statement(&mut self) -> Result<Statement> {
        let start = self.token().start;
        self.enter()?;
        let with = self.with()?;
        let statement = match self.token().word {
            K::UPDATE => self.update(with)?,
            K::DELETE => self.delete(with)?,
            _ => {
                let query = self.query_with(with, start)?;
                Statement::Query(self.tree.add_query(query))
            }
        };
        self.leave();
        Ok(statement)
    }
}
