//! Statements.

use super::Printer;
use crate::tree::{
    Access, Completion, Explain, ExplainWhat, FlushItem, Isolation, KillWhat, PrepareSource, Scope,
    SetItem, SetRoleKind, SetValue, Statement, TableAdmin, TableLockKind, Text,
};

pub(super) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::None => "",
        Scope::Global => "GLOBAL",
        Scope::Session => "SESSION",
        Scope::Local => "LOCAL",
        Scope::Persist => "PERSIST",
        Scope::PersistOnly => "PERSIST_ONLY",
    }
}

impl Printer<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Query(query) => self.query(*query),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::CreateTable(create) => self.create_table(create),
            Statement::AlterTable(alter) => self.alter_table(alter),
            Statement::CreateIndex(create) => self.create_index(create),
            Statement::CreateView(view) => self.create_view(view),
            Statement::Set(items) => {
                self.word("SET");
                self.commas(items.as_slice(), Self::set_item);
            }
            Statement::Show(show) => self.show(show),
            Statement::Explain(explain) => self.explain(explain),
            Statement::User(change) => self.user_change(change),
            Statement::Grant(grant) => self.grant(grant),
            Statement::TableAdmin(admin) => self.table_admin(admin),
            Statement::Other { text, .. } => self.source(*text),
            other => self.definition(other),
        }
    }

    /// Short statements about tables and databases.
    fn definition(&mut self, statement: &Statement) {
        match statement {
            Statement::DropTables { is_temporary, if_exists, tables } => {
                self.word("DROP");
                self.word_if(*is_temporary, "TEMPORARY");
                self.word("TABLE");
                self.word_if(*if_exists, "IF EXISTS");
                self.commas(tables, Self::table_name);
            }
            Statement::DropIndex { name, table, lock_and_algorithm } => {
                self.name_behind("DROP INDEX", *name);
                self.word("ON");
                self.table_name(*table);
                lock_and_algorithm.iter().for_each(|action| self.alter_action(action));
            }
            Statement::DropViews { if_exists, views } => {
                self.word("DROP VIEW");
                self.word_if(*if_exists, "IF EXISTS");
                self.commas(views, Self::table_name);
            }
            Statement::CreateDatabase { if_not_exists, name, options } => {
                self.word("CREATE DATABASE");
                self.word_if(*if_not_exists, "IF NOT EXISTS");
                self.name(*name);
                options.iter().for_each(|option| self.table_option(option));
            }
            Statement::AlterDatabase { name, options } => {
                self.word("ALTER DATABASE");
                if name.is_some() {
                    self.name(*name);
                }
                options.iter().for_each(|option| self.table_option(option));
            }
            Statement::DropDatabase { if_exists, name } => {
                self.word("DROP DATABASE");
                self.word_if(*if_exists, "IF EXISTS");
                self.name(*name);
            }
            Statement::Truncate(table) => {
                self.word("TRUNCATE TABLE");
                self.table_name(*table);
            }
            Statement::RenameTables(pairs) => {
                self.word("RENAME TABLE");
                self.commas(pairs, |printer, (old, new)| {
                    printer.table_name(old);
                    printer.word("TO");
                    printer.table_name(new);
                });
            }
            Statement::LockTables(locks) => {
                self.word("LOCK TABLES");
                self.commas(locks, |printer, lock| {
                    printer.table_name(lock.table);
                    printer.name_behind("AS", lock.alias);
                    printer.word(match lock.kind {
                        TableLockKind::Read => "READ",
                        TableLockKind::ReadLocal => "READ LOCAL",
                        TableLockKind::Write => "WRITE",
                    });
                });
            }
            other => self.transaction(other),
        }
    }

    /// Statements about transactions, locks and roles.
    fn transaction(&mut self, statement: &Statement) {
        match statement {
            Statement::UnlockTables => self.word("UNLOCK TABLES"),
            Statement::LockInstance => self.word("LOCK INSTANCE FOR BACKUP"),
            Statement::UnlockInstance => self.word("UNLOCK INSTANCE"),
            Statement::StartTransaction { is_begin: true, .. } => self.word("BEGIN"),
            Statement::StartTransaction { with_consistent_snapshot, access, .. } => {
                self.word("START TRANSACTION");
                self.word_if(*with_consistent_snapshot, "WITH CONSISTENT SNAPSHOT");
                if *with_consistent_snapshot && *access != Access::None {
                    self.raw(",");
                }
                self.access(*access);
            }
            Statement::Commit(completion) => self.completion("COMMIT", *completion),
            Statement::Rollback(completion) => self.completion("ROLLBACK", *completion),
            Statement::Savepoint(name) => self.name_behind("SAVEPOINT", *name),
            Statement::ReleaseSavepoint(name) => self.name_behind("RELEASE SAVEPOINT", *name),
            Statement::RollbackTo(name) => self.name_behind("ROLLBACK TO SAVEPOINT", *name),
            Statement::SetTransaction { scope, isolation, access, is_access_first } => {
                self.word("SET");
                self.word_if(*scope != Scope::None, scope_name(*scope));
                self.word("TRANSACTION");
                self.set_transaction(*isolation, *access, *is_access_first);
            }
            Statement::SetRole { kind, roles } => {
                self.word("SET ROLE");
                self.role_kind(*kind);
                self.accounts(roles);
            }
            Statement::SetDefaultRole { kind, roles, users } => {
                self.word("SET DEFAULT ROLE");
                self.role_kind(*kind);
                self.accounts(roles);
                self.word("TO");
                self.accounts(users);
            }
            Statement::DropUsers { is_role, if_exists, users } => {
                self.word(if *is_role { "DROP ROLE" } else { "DROP USER" });
                self.word_if(*if_exists, "IF EXISTS");
                self.accounts(users);
            }
            Statement::CreateRoles { if_not_exists, roles } => {
                self.word("CREATE ROLE");
                self.word_if(*if_not_exists, "IF NOT EXISTS");
                self.accounts(roles);
            }
            Statement::RenameUsers(pairs) => {
                self.word("RENAME USER");
                self.commas(pairs, |printer, (old, new)| {
                    printer.account(old);
                    printer.word("TO");
                    printer.account(new);
                });
            }
            other => self.utility(other),
        }
    }

    fn role_kind(&mut self, kind: SetRoleKind) {
        match kind {
            SetRoleKind::Roles => {}
            SetRoleKind::None => self.word("NONE"),
            SetRoleKind::Default => self.word("DEFAULT"),
            SetRoleKind::All => self.word("ALL"),
            SetRoleKind::AllExcept => self.word("ALL EXCEPT"),
        }
    }

    fn access(&mut self, access: Access) {
        match access {
            Access::None => {}
            Access::ReadOnly => self.word("READ ONLY"),
            Access::ReadWrite => self.word("READ WRITE"),
        }
    }

    fn set_transaction(&mut self, isolation: Isolation, access: Access, is_access_first: bool) {
        let has_both = isolation != Isolation::None && access != Access::None;
        if is_access_first {
            self.access(access);
            self.raw(if has_both { "," } else { "" });
        }
        if isolation != Isolation::None {
            self.word("ISOLATION LEVEL");
            self.word(match isolation {
                Isolation::ReadUncommitted => "READ UNCOMMITTED",
                Isolation::ReadCommitted => "READ COMMITTED",
                Isolation::RepeatableRead => "REPEATABLE READ",
                _ => "SERIALIZABLE",
            });
        }
        if !is_access_first {
            self.raw(if has_both { "," } else { "" });
            self.access(access);
        }
    }

    fn completion(&mut self, word: &str, completion: Completion) {
        self.word(word);
        if let Some(chain) = completion.chain {
            self.word(if chain { "AND CHAIN" } else { "AND NO CHAIN" });
        }
        if let Some(release) = completion.release {
            self.word(if release { "RELEASE" } else { "NO RELEASE" });
        }
    }

    fn utility(&mut self, statement: &Statement) {
        match statement {
            Statement::Describe { table, column } => {
                self.word("DESCRIBE");
                self.table_name(*table);
                if column.is_some() {
                    self.text(*column);
                }
            }
            Statement::Use(name) => self.name_behind("USE", *name),
            Statement::Help(topic) => self.text_behind("HELP", *topic),
            Statement::Prepare { name, source } => {
                self.name_behind("PREPARE", *name);
                self.word("FROM");
                match *source {
                    PrepareSource::Text(text) => self.text(text),
                    PrepareSource::Variable(name) => self.variable(name),
                }
            }
            Statement::Execute { name, variables } => {
                self.name_behind("EXECUTE", *name);
                self.word_if(!variables.is_empty(), "USING");
                self.commas(variables, Self::variable);
            }
            Statement::Deallocate(name) => self.name_behind("DEALLOCATE PREPARE", *name),
            Statement::Call { schema, name, arguments } => {
                self.word("CALL");
                self.qualified(*schema, *name);
                self.raw("(");
                self.exprs(*arguments);
                self.raw(")");
            }
            Statement::Do(values) => {
                self.word("DO");
                self.exprs(*values);
            }
            Statement::Kill { what, id } => {
                self.word("KILL");
                match what {
                    KillWhat::None => {}
                    KillWhat::Connection => self.word("CONNECTION"),
                    KillWhat::Query => self.word("QUERY"),
                }
                self.expr(*id);
            }
            Statement::Flush { is_local, what } => {
                self.word("FLUSH");
                self.word_if(*is_local, "NO_WRITE_TO_BINLOG");
                self.commas_ref(what, Self::flush_item);
            }
            Statement::ResetPersist { if_exists, name } => {
                self.word("RESET PERSIST");
                self.word_if(*if_exists, "IF EXISTS");
                self.source(*name);
            }
            _ => {}
        }
    }

    fn flush_item(&mut self, item: &FlushItem) {
        match item {
            FlushItem::Tables { tables, with_read_lock, for_export } => {
                self.word("TABLES");
                self.commas(tables, Self::table_name);
                self.word_if(*with_read_lock, "WITH READ LOCK");
                self.word_if(*for_export, "FOR EXPORT");
            }
            FlushItem::Logs(words) => self.word(words),
            FlushItem::RelayLogs(channel) => {
                self.word("RELAY LOGS");
                self.text_behind("FOR CHANNEL", *channel);
            }
        }
    }

    fn table_admin(&mut self, admin: &TableAdmin) {
        self.keyword(admin.verb);
        self.word_if(admin.is_local, "NO_WRITE_TO_BINLOG");
        self.word("TABLE");
        self.commas(&admin.tables, Self::table_name);
        self.source(admin.options);
    }

    fn explain(&mut self, explain: &Explain) {
        self.word("EXPLAIN");
        self.word_if(explain.is_analyze, "ANALYZE");
        self.name_behind("FORMAT =", explain.format);
        if explain.into.is_some() {
            self.word("INTO");
            self.variable(explain.into);
        }
        self.name_behind("FOR SCHEMA", explain.schema);
        match &explain.what {
            ExplainWhat::Statement(statement) => self.statement(statement),
            ExplainWhat::Connection(id) => self.clause("FOR CONNECTION", Some(*id)),
        }
    }

    fn set_item(&mut self, item: SetItem) {
        match item {
            SetItem::System { scope, has_at, component, name, value } => {
                if has_at {
                    self.word("@@");
                    self.scope_prefix(scope);
                } else {
                    self.word_if(scope != Scope::None, scope_name(scope));
                }
                self.qualified(component, name);
                self.word("=");
                match value {
                    SetValue::Expr(value) => self.expr(value),
                    SetValue::Default => self.word("DEFAULT"),
                    SetValue::Word(word) => self.keyword(word),
                }
            }
            SetItem::User { name, value } => {
                self.variable(name);
                self.word("=");
                self.expr(value);
            }
            SetItem::Names { charset, collation } => {
                self.word("NAMES");
                self.default_or(charset);
                self.name_behind("COLLATE", collation);
            }
            SetItem::Charset(charset) => {
                self.word("CHARACTER SET");
                self.default_or(charset);
            }
            SetItem::Password { account, password, is_random, current, retain } => {
                self.word("PASSWORD");
                if let Some(account) = account {
                    self.word("FOR");
                    self.account(account);
                }
                self.word_if(is_random, "TO RANDOM");
                self.text_behind("=", password);
                self.text_behind("REPLACE", current);
                self.word_if(retain, "RETAIN CURRENT PASSWORD");
            }
        }
    }

    fn default_or(&mut self, charset: Text) {
        if charset.is_some() {
            self.name(charset);
        } else {
            self.word("DEFAULT");
        }
    }
}
