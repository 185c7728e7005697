//! Statements.

#![allow(missing_docs, reason = "fields and variants have MySQL's words for what they hold")]

use super::{
    Account, AlterAction, AlterTable, CreateIndex, CreateTable, CreateView, Delete, ExprId, Grant,
    Insert, Limit, QueryId, Scope, TableName, TableOption, Text, Tree, Update, UserChange,
};
use crate::{Keyword, Span};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A statement and its tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub tree: Tree,
    pub statement: Statement,
    /// The text of the statement.
    pub span: Span,
    /// Where the next statement begins, if there is more than blanks behind this one.
    pub next: Option<Offset>,
    /// Calls whose arguments have names, as only loadable functions may have them. Printing loses the names.
    pub named_arguments: Vec<super::ExprId>,
}

/// A place or length that equal statements need not share, as printing loses it.
#[derive(Debug, Clone, Copy)]
pub struct Offset(pub u32);

impl PartialEq for Offset {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Query(QueryId),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    CreateTable(Box<CreateTable>),
    AlterTable(Box<AlterTable>),
    DropTables {
        is_temporary: bool,
        if_exists: bool,
        tables: Vec<TableName>,
    },
    CreateIndex(Box<CreateIndex>),
    DropIndex {
        name: Text,
        table: TableName,
        lock_and_algorithm: Vec<AlterAction>,
    },
    CreateView(Box<CreateView>),
    DropViews {
        if_exists: bool,
        views: Vec<TableName>,
    },
    CreateDatabase {
        if_not_exists: bool,
        name: Text,
        options: Vec<TableOption>,
    },
    AlterDatabase {
        name: Text,
        options: Vec<TableOption>,
    },
    DropDatabase {
        if_exists: bool,
        name: Text,
    },
    Truncate(TableName),
    RenameTables(Vec<(TableName, TableName)>),
    LockTables(Vec<TableLock>),
    UnlockTables,
    LockInstance,
    UnlockInstance,
    StartTransaction {
        is_begin: bool,
        with_consistent_snapshot: bool,
        access: Access,
    },
    Commit(Completion),
    Rollback(Completion),
    Savepoint(Text),
    ReleaseSavepoint(Text),
    RollbackTo(Text),
    Set(Vec<SetItem>),
    SetTransaction {
        scope: Scope,
        isolation: Isolation,
        access: Access,
        is_access_first: bool,
    },
    SetRole {
        kind: SetRoleKind,
        roles: Vec<Account>,
    },
    SetDefaultRole {
        kind: SetRoleKind,
        roles: Vec<Account>,
        users: Vec<Account>,
    },
    Show(Box<Show>),
    Describe {
        table: TableName,
        column: Text,
    },
    Explain(Box<Explain>),
    Use(Text),
    Help(Text),
    Prepare {
        name: Text,
        source: PrepareSource,
    },
    Execute {
        name: Text,
        variables: Vec<Text>,
    },
    Deallocate(Text),
    Call {
        schema: Text,
        name: Text,
        arguments: super::List,
    },
    Do(super::List),
    Kill {
        what: KillWhat,
        id: ExprId,
    },
    Flush {
        is_local: bool,
        what: Vec<FlushItem>,
    },
    ResetPersist {
        if_exists: bool,
        name: Text,
    },
    TableAdmin(Box<TableAdmin>),
    User(Box<UserChange>),
    DropUsers {
        is_role: bool,
        if_exists: bool,
        users: Vec<Account>,
    },
    CreateRoles {
        if_not_exists: bool,
        roles: Vec<Account>,
    },
    RenameUsers(Vec<(Account, Account)>),
    Grant(Box<Grant>),
    /// What LatsDB does not run: the name by which it is refused, and the statement's tokens.
    Other {
        name: &'static str,
        text: Text,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableLock {
    pub table: TableName,
    pub alias: Text,
    pub kind: TableLockKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableLockKind {
    Read,
    ReadLocal,
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    None,
    ReadOnly,
    ReadWrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    None,
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What comes behind COMMIT and ROLLBACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub chain: Option<bool>,
    pub release: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SetItem {
    System {
        scope: Scope,
        has_at: bool,
        component: Text,
        name: Text,
        value: SetValue,
    },
    User {
        name: Text,
        value: ExprId,
    },
    Names {
        charset: Text,
        collation: Text,
    },
    /// DEFAULT is a charset that is no text.
    Charset(Text),
    /// `SET PASSWORD`
    Password {
        account: Option<Account>,
        password: Text,
        is_random: bool,
        current: Text,
        retain: bool,
    },
}

/// ON, ALL, BINARY, ROW and SYSTEM may be values without quotes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SetValue {
    Expr(ExprId),
    Default,
    Word(Keyword),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetRoleKind {
    Roles,
    None,
    Default,
    All,
    AllExcept,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowWhat {
    Databases,
    Tables,
    TableStatus,
    OpenTables,
    Triggers,
    Events,
    Columns,
    Index,
    Engines,
    Plugins,
    Charset,
    Collation,
    Warnings,
    Errors,
    CountWarnings,
    CountErrors,
    Status,
    Variables,
    Processlist,
    Privileges,
    Grants,
    CreateTable,
    CreateView,
    CreateDatabase,
    CreateUser,
    ProcedureStatus,
    FunctionStatus,
    Profiles,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    pub what: ShowWhat,
    pub is_full: bool,
    pub is_extended: bool,
    pub scope: Scope,
    pub if_not_exists: bool,
    pub table: Option<TableName>,
    pub schema: Text,
    pub account: Option<Account>,
    pub roles: Vec<Account>,
    pub filter: Option<ShowFilter>,
    pub limit: Option<Limit>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ShowFilter {
    Like(Text),
    Where(ExprId),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    pub is_analyze: bool,
    /// The name behind FORMAT.
    pub format: Text,
    /// The variable behind INTO.
    pub into: Text,
    /// The database behind FOR.
    pub schema: Text,
    pub what: ExplainWhat,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExplainWhat {
    Statement(Box<Statement>),
    Connection(ExprId),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PrepareSource {
    Text(Text),
    Variable(Text),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillWhat {
    None,
    Connection,
    Query,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FlushItem {
    Tables {
        tables: Vec<TableName>,
        with_read_lock: bool,
        for_export: bool,
    },
    /// `BINARY LOGS`, `PRIVILEGES`, … in upper case.
    Logs(&'static str),
    RelayLogs(Text),
}

#[derive(Debug, Clone, PartialEq)]
pub struct TableAdmin {
    /// ANALYZE, CHECK, CHECKSUM, OPTIMIZE or REPAIR.
    pub verb: Keyword,
    pub is_local: bool,
    pub tables: Vec<TableName>,
    /// The options, or the clause for histograms, as they were written.
    pub options: Text,
}
