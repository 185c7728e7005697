//! SHOW.

use super::Printer;
use crate::tree::{Show, ShowFilter, ShowWhat};

fn words(what: ShowWhat) -> &'static str {
    match what {
        ShowWhat::Databases => "DATABASES",
        ShowWhat::Tables => "TABLES",
        ShowWhat::TableStatus => "TABLE STATUS",
        ShowWhat::OpenTables => "OPEN TABLES",
        ShowWhat::Triggers => "TRIGGERS",
        ShowWhat::Events => "EVENTS",
        ShowWhat::Columns => "COLUMNS",
        ShowWhat::Index => "INDEX",
        ShowWhat::Engines => "ENGINES",
        ShowWhat::Plugins => "PLUGINS",
        ShowWhat::Charset => "CHARACTER SET",
        ShowWhat::Collation => "COLLATION",
        ShowWhat::Warnings => "WARNINGS",
        ShowWhat::Errors => "ERRORS",
        ShowWhat::CountWarnings => "COUNT(*) WARNINGS",
        ShowWhat::CountErrors => "COUNT(*) ERRORS",
        ShowWhat::Status => "STATUS",
        ShowWhat::Variables => "VARIABLES",
        ShowWhat::Processlist => "PROCESSLIST",
        ShowWhat::Privileges => "PRIVILEGES",
        ShowWhat::Grants => "GRANTS",
        ShowWhat::CreateTable => "CREATE TABLE",
        ShowWhat::CreateView => "CREATE VIEW",
        ShowWhat::CreateDatabase => "CREATE DATABASE",
        ShowWhat::CreateUser => "CREATE USER",
        ShowWhat::ProcedureStatus => "PROCEDURE STATUS",
        ShowWhat::FunctionStatus => "FUNCTION STATUS",
        ShowWhat::Profiles => "PROFILES",
    }
}

impl Printer<'_> {
    pub(super) fn show(&mut self, show: &Show) {
        self.word("SHOW");
        self.word_if(show.is_extended, "EXTENDED");
        self.word_if(show.is_full, "FULL");
        if show.scope != crate::tree::Scope::None {
            self.word(super::statement::scope_name(show.scope));
        }
        self.word(words(show.what));
        self.word_if(show.if_not_exists, "IF NOT EXISTS");
        if let Some(table) = show.table {
            self.word_if(matches!(show.what, ShowWhat::Columns | ShowWhat::Index), "FROM");
            self.table_name(table);
        }
        if show.what == ShowWhat::CreateDatabase {
            self.name(show.schema);
        } else {
            self.name_behind("FROM", show.schema);
        }
        if let Some(account) = show.account {
            self.word_if(show.what == ShowWhat::Grants, "FOR");
            self.account(account);
        }
        if !show.roles.is_empty() {
            self.word("USING");
            self.accounts(&show.roles);
        }
        match show.filter {
            None => {}
            Some(ShowFilter::Like(text)) => self.text_behind("LIKE", text),
            Some(ShowFilter::Where(condition)) => self.clause("WHERE", Some(condition)),
        }
        if let Some(limit) = show.limit {
            self.limit(limit);
        }
    }
}
